// SPDX-License-Identifier: Apache-2.0
// Builds libraries from modules and ONNX models.
#include "driver/build.h"

#include "base/format.h"
#include "base/formats/stackvm.h"
#include "codegen/codegen.h"
#include "codegen/kernel_cache.h"
#include "codegen/source/c_interface.h"
#include "compiler.h"
#include "driver/ahead_of_time.h"
#include "driver/cli/commands.h"
#include "driver/crt_files.h"
#include "driver/external_code/generators.h"
#include "driver/function_metadata.h"
#include "driver/functions.h"
#include "driver/micro/project.h"
#include "driver/model_library.h"
#include "driver/plugin.h"
#include "driver/target_list.h"
#include "passes.h"
#include "relay.h"
#include "relay/op.h"
#include "runtime/classic/graph_json.h"

namespace tilewright::python {
namespace {

nb::list infos(const std::vector<plan::TensorInfo>& list) {
  nb::list out;
  for (const auto& t : list) out.append(nb::make_tuple(t.name, t.dtype.str(), nb::tuple(nb::cast(t.shape))));
  return out;
}

// A chooser written in Python: callable(call, [(implementation, configuration, plevel, microseconds)]) returns an index
// into the list, or None for the cost model's choice.
class ScriptChooser : public lower::KernelChooser {
 public:
  explicit ScriptChooser(nb::object callable) : callable_(std::move(callable)) {}
  ~ScriptChooser() override {
    nb::gil_scoped_acquire gil;
    callable_.reset();
  }
  ScriptChooser(const ScriptChooser&) = delete;
  ScriptChooser& operator=(const ScriptChooser&) = delete;

  lower::Decision choose(const lower::Problem& problem, std::span<const lower::Candidate> candidates) const override {
    nb::gil_scoped_acquire gil;
    nb::list rows;
    for (const lower::Candidate& c : candidates)
      rows.append(nb::make_tuple(c.implementation->name, c.configs[0].text, c.implementation->plevel,
                                 c.configs[0].cost.microseconds));
    nb::object at = callable_(wrap(relay::Expr(problem.anchor.call)), rows);
    if (at.is_none()) return KernelChooser::choose(problem, candidates);
    const auto place = nb::cast<size_t>(at);
    if (place >= candidates.size()) throw nb::index_error("a strategy chose a kernel that does not apply");
    return {place, candidates[place].configs[0].text};
  }

 private:
  nb::object callable_;
};

// A code generator registered by a script: generate(symbol, function) returns (type key, bytes, names of constants);
// constants(symbol, function) returns a dictionary of arrays, or is None.
driver::ExternalCodegen script_codegen(const std::string& name, nb::object generate, nb::object constants) {
  // The last reference may be dropped in a thread that does not hold the interpreter's lock.
  auto kept = [](nb::object object) {
    return std::shared_ptr<PyObject>(object.release().ptr(), [](PyObject* o) {
      nb::gil_scoped_acquire gil;
      Py_DECREF(o);
    });
  };
  driver::ExternalCodegen out;
  out.name = name;
  out.generate_from = [f = kept(std::move(generate))](const std::string& symbol,
                                                      const relay::Expr& function) -> Result<driver::SavedModule> {
    nb::gil_scoped_acquire gil;
    const auto made = nb::cast<nb::tuple>(nb::handle(f.get())(symbol, wrap(function)));
    const auto bytes = nb::cast<nb::bytes>(made[1]);
    return driver::SavedModule{nb::cast<std::string>(made[0]), std::string(bytes.c_str(), bytes.size()),
                               nb::cast<std::vector<std::string>>(made[2])};
  };
  if (!constants.is_none())
    out.constants = [f = kept(std::move(constants))](
                        const std::string& symbol,
                        const relay::Expr& function) -> Result<std::map<std::string, Tensor>> {
      nb::gil_scoped_acquire gil;
      std::map<std::string, Tensor> named;
      for (auto [key, value] : nb::cast<nb::dict>(nb::handle(f.get())(symbol, wrap(function))))
        named[nb::cast<std::string>(key)] = tensor_of(nb::cast<ReadArray>(value));
      return named;
    };
  return out;
}

// Pools given as (name, bytes or -1).
std::vector<lower::MemoryPool> pools_from(const std::vector<std::pair<std::string, int64_t>>& given) {
  std::vector<lower::MemoryPool> out;
  for (const auto& [name, limit] : given) out.push_back({name, limit});
  return out;
}
nb::list buffer_rows(std::span<const lower::PooledBuffer> buffers) {
  nb::list rows;
  for (const lower::PooledBuffer& b : buffers)
    rows.append(nb::make_tuple(b.name, b.bytes, b.alignment, b.first_use, b.last_use, b.pools));
  return rows;
}

// A planner written in Python: callable([(name, bytes, alignment, first step, last step, pools)]) returns [(pool,
// offset)].
lower::PoolPlanner script_planner(const nb::object& callable) {
  std::shared_ptr<nb::object> kept(new nb::object(callable), [](nb::object* object) {
    nb::gil_scoped_acquire gil;
    delete object;
  });
  return [kept](std::span<lower::PooledBuffer> buffers, std::span<const lower::MemoryPool>) -> Status {
    nb::gil_scoped_acquire gil;
    const auto places = nb::cast<std::vector<std::pair<uint32_t, int64_t>>>((*kept)(buffer_rows(buffers)));
    if (places.size() != buffers.size())
      return Diagnostic(ErrorCode::kInvalidArgument,
                        format("the memory planner gave {} places for {} buffers", places.size(), buffers.size()));
    for (size_t i = 0; i < buffers.size(); ++i) buffers[i].pool = places[i].first, buffers[i].offset = places[i].second;
    return Ok{};
  };
}

void bind_pools(nb::module_& m) {
  // The placement (pool, offset) of buffers (name, bytes, alignment, pools, indices of those that may not overlap with
  // it) by an algorithm in pools (name, bytes).
  m.def("plan_pools", [](const nb::list& rows, const std::vector<std::pair<std::string, int64_t>>& given,
                         const std::string& algorithm) {
    std::vector<lower::PooledBuffer> buffers;
    for (const nb::handle row : rows) {
      const auto [name, bytes, alignment, pools, conflicts] =
          nb::cast<std::tuple<std::string, int64_t, int64_t, std::vector<uint32_t>, std::vector<uint32_t>>>(row);
      lower::PooledBuffer buffer{name, bytes, std::max<int64_t>(1, alignment), 0, 0, pools};
      buffer.number = static_cast<uint32_t>(buffers.size());
      buffer.conflicts.emplace(conflicts.begin(), conflicts.end());
      buffers.push_back(std::move(buffer));
      for (const uint32_t p : pools)
        if (p >= given.size()) throw nb::index_error("a buffer names a pool that is not there");
    }
    unwrap(lower::plan_pools(buffers, pools_from(given), algorithm));
    nb::list out;
    for (const lower::PooledBuffer& b : buffers) out.append(nb::make_tuple(b.pool, b.offset));
    return out;
  });
  m.def("write_model_library", [](const std::vector<const driver::Built*>& models, const std::string& path) {
    unwrap([&] {
      nb::gil_scoped_release release;
      return driver::write_model_library(models, path);
    }());
  });
  // The options of a project: name, default and help.
  m.def("micro_project_options", [] {
    nb::list out;
    for (const driver::ProjectOption& o : driver::project_options())
      out.append(nb::make_tuple(o.name, o.fallback, o.help));
    return out;
  });
  m.def("write_function_library",
        [](const driver::Built& functions, const std::string& loops, const std::string& path) {
          unwrap([&] {
            nb::gil_scoped_release release;
            return driver::write_function_library(functions, loops, path);
          }());
        });
  // The C runtime's files, by their path in the classic stack's tree.
  m.def("standalone_crt", [] {
    nb::dict out;
    for (const driver::CrtFile& file : driver::crt_files())
      if (const std::string path = driver::classic_crt_path(file.path); !path.empty())
        out[path.c_str()] = nb::bytes(file.bytes.data(), file.bytes.size());
    return out;
  });
  m.def("create_micro_project", [](const std::string& library, const std::string& folder, const std::string& platform,
                                   const std::map<std::string, std::string>& values, bool force) {
    unwrap([&] {
      nb::gil_scoped_release release;
      return driver::create_project(library, folder, {platform, values}, force);
    }());
  });
  m.def("build_micro_project", [](const std::string& folder) {
    unwrap([&] {
      nb::gil_scoped_release release;
      return driver::build_project(folder);
    }());
  });
}

}  // namespace

void bind_build(nb::module_& m) {
  nb::class_<driver::Built>(m, "Built", "Kernels, plan and weights of a compiled module")
      // `imports`: an import tree that replaces the result of external code generators; empty: keeps that.
      .def(
          "export_library",
          [](driver::Built& self, const std::string& path, nb::bytes imports, const std::string& form) {
            if (imports.size()) self.lowered.plan.imports.assign(imports.c_str(), imports.size());
            Status status = [&]() -> Status {
              nb::gil_scoped_release release;
              return driver::export_library(self, path, TW_TRY(driver::output_form(path, form)));
            }();
            unwrap(std::move(status));
          },
          nb::arg("path"), nb::arg("imports") = nb::bytes("", 0), nb::arg("form") = "")
      .def(
          "export_objects",
          [](driver::Built& self, const std::string& folder, nb::bytes imports, bool in_c) {
            if (imports.size()) self.lowered.plan.imports.assign(imports.c_str(), imports.size());
            auto names = [&] {
              nb::gil_scoped_release release;
              return driver::export_objects(self, folder, in_c);
            }();
            return unwrap(std::move(names));
          },
          nb::arg("folder"), nb::arg("imports") = nb::bytes("", 0), nb::arg("in_c") = false)
      .def_prop_ro("pools",
                   [](const driver::Built& self) {  // (name, bytes, whether of weights)
                     nb::list out;
                     for (const driver::PoolUse& p : unwrap(driver::pools_of(self)))
                       out.append(nb::make_tuple(p.name, p.bytes, p.constant));
                     return out;
                   })
      .def_prop_ro(
          "tensors_in_pools",  // (name, pool, byte) of inputs and outputs; empty: they are the caller's memory
          [](const driver::Built& self) {
            nb::list out;
            if (!self.ahead_of_time) return out;
            const codegen::CInterface f = unwrap(driver::ahead_of_time_interface(self));
            for (const bool inputs : {true, false}) {
              const auto& offsets = inputs ? f.input_offsets : f.output_offsets;
              for (size_t i = 0; i < offsets.size(); ++i) {
                const codegen::CPool& pool = codegen::pool_of(f, offsets[i]);
                out.append(nb::make_tuple(inputs ? f.inputs[i] : f.outputs[i], pool.name, offsets[i] - pool.begin));
              }
            }
            return out;
          })
      .def_prop_ro("byte_code_text",
                   [](const driver::Built& self) {
                     std::string out;
                     for (const std::string& program : self.objects)
                       out += stackvm::to_text(unwrap(stackvm::read_program(program)));
                     return out;
                   })
      .def_prop_ro("system_lib", [](const driver::Built& self) { return self.system_lib; })
      .def_prop_ro("devices", [](const driver::Built& self) { return self.lowered.plan.devices; })
      .def_prop_ro("external_modules",
                   [](const driver::Built& self) {  // (type key, bytes, which of them imports it: 0 is the library)
                     nb::list out;
                     for (const auto& [key, bytes, importer] : self.external.modules)
                       out.append(nb::make_tuple(key, nb::bytes(bytes.data(), bytes.size()), importer));
                     return out;
                   })
      .def_prop_ro("external_sources",
                   [](const driver::Built& self) {  // (code, form, functions, constants)
                     nb::list out;
                     for (const driver::CSource& source : self.external.sources)
                       out.append(nb::make_tuple(source.code, source.form, source.functions, source.constants));
                     return out;
                   })
      .def("add_source",
           [](driver::Built& self, const std::string& code, const std::string& form) {
             self.external.sources.push_back({code, form, {}, {}});
           })
      .def_prop_ro("optimized", [](const driver::Built& self) { return self.optimized; })
      .def_prop_ro("target", [](const driver::Built& self) { return self.target.str(); })
      .def_prop_ro("graph_json", [](const driver::Built& self) { return runtime::write_graph_json(self.lowered.plan); })
      .def_prop_ro("params",
                   [](const driver::Built& self) {
                     nb::dict out;
                     for (size_t i = 0; i < self.lowered.plan.params.size(); ++i)
                       out[self.lowered.plan.params[i].name.c_str()] = numpy_of(self.lowered.params[i].tensor());
                     return out;
                   })
      .def_prop_ro("kernels", [](const driver::Built& self) { return self.lowered.plan.kernels; })
      .def("kernel",  // which the name `kernels[i]` is of
           [](const driver::Built& self, size_t i) {
             if (i >= self.lowered.kernels.size()) throw nb::index_error("the model has fewer kernels");
             return driver::function_of_kernel(self.lowered.kernels[i]);
           })
      .def_prop_ro("function_metadata",
                   [](const driver::Built& self) {  // (name, device, workspace, constants, inputs and outputs) in bytes
                     nb::list out;
                     for (const auto& f : driver::function_metadata(self.lowered))
                       out.append(nb::make_tuple(f.name, f.device, f.workspace, f.constants, f.io));
                     return out;
                   })
      .def_prop_ro("passes",
                   [](const driver::Built& self) {
                     nb::list out;
                     for (const PassRecord& r : self.passes)
                       out.append(nb::make_tuple(r.name, r.ran, r.changed, r.milliseconds, r.skipped));
                     return out;
                   })
      // For each step: operator names, implementation, configuration, and all candidates as (implementation,
      // configuration, plevel, microseconds).
      .def_prop_ro(
          "choices",
          [](const driver::Built& self) {
            nb::list out;
            for (const lower::StepTrace& trace : self.lowered.traces) {
              nb::list ops, candidates;
              for (const relay::Expr& e : relay::post_order(trace.function, true))
                if (const relay::OpDef* op = relay::called_op(e)) ops.append(op->name);
              if (!trace.choice) continue;
              for (const lower::Candidate& c : trace.choice->candidates)
                candidates.append(nb::make_tuple(c.implementation->name, c.configs[0].text, c.implementation->plevel,
                                                 c.configs[0].cost.microseconds));
              out.append(nb::make_tuple(ops, trace.choice->implementation, trace.choice->configuration, candidates));
            }
            return out;
          })
      .def_prop_ro("inputs", [](const driver::Built& self) { return infos(self.lowered.plan.inputs); })
      .def_prop_ro("outputs", [](const driver::Built& self) { return infos(self.lowered.plan.outputs); });

  bind_pools(m);
  using Options = driver::BuildOptions;
  nb::class_<Options>(m, "BuildOptions", "What a build is told")
      .def(nb::init<>())
      .def_rw("target", &Options::target)
      .def_rw("opt_level", &Options::opt_level)
      .def_rw("required_passes", &Options::required_passes)
      .def_rw("disabled_passes", &Options::disabled_passes)
      .def_rw("name", &Options::name)
      .def_rw("jobs", &Options::jobs)
      .def_rw("aot", &Options::aot)
      .def_rw("classic_names", &Options::classic_names)
      .def_rw("system_lib", &Options::system_lib)
      .def_rw("device_targets", &Options::device_targets)
      .def(
          "set_ahead_of_time",
          [](Options& self, bool packed, const std::vector<std::pair<std::string, int64_t>>& workspace,
             const std::vector<std::pair<std::string, int64_t>>& constants, int64_t workspace_alignment,
             int64_t constant_alignment, bool tensors_in_pools, const std::string& algorithm, nb::object planner) {
            driver::AheadOfTime a;
            a.packed = packed, a.tensors_in_pools = tensors_in_pools, a.algorithm = algorithm;
            a.workspace = pools_from(workspace), a.constants = pools_from(constants);
            a.workspace_alignment = workspace_alignment, a.constant_alignment = constant_alignment;
            if (!planner.is_none()) a.planner = script_planner(planner);
            self.ahead_of_time = std::move(a);
          },
          nb::arg("packed"), nb::arg("workspace"), nb::arg("constants"), nb::arg("workspace_alignment"),
          nb::arg("constant_alignment"), nb::arg("tensors_in_pools"), nb::arg("algorithm"),
          nb::arg("planner") = nb::none())
      .def(
          "set_runtime_pools",
          [](Options& self, const std::vector<std::pair<std::string, int64_t>>& workspace,
             const std::vector<std::pair<std::string, int64_t>>& constants, const std::string& algorithm,
             nb::object planner) {
            driver::RuntimePools pools{pools_from(workspace), pools_from(constants), algorithm, {}};
            if (!planner.is_none()) pools.planner = script_planner(planner);
            self.runtime_pools = std::move(pools);
          },
          nb::arg("workspace"), nb::arg("constants"), nb::arg("algorithm"), nb::arg("planner").none())
      .def("set_graph_in_c", [](Options& self, bool link_params) { self.graph_in_c = driver::GraphInC{link_params}; })
      .def("load_plugin",
           [](Options& self, const std::string& path) { unwrap(driver::load_plugin(path, &self.external)); })
      .def(
          "add_external",
          [](Options& self, const std::string& name, nb::object generate, nb::object constants) {
            self.external.push_back(script_codegen(name, generate, constants));
          },
          nb::arg("name"), nb::arg("generate"), nb::arg("constants").none())
      .def_rw("kernel_cache", &Options::kernel_cache)
      .def_rw("weights_file", &Options::weights_file)
      .def_rw("dump_ir", &Options::dump_ir)
      .def_rw("keep_modules", &Options::keep_modules)
      .def_rw("shapes", &Options::shapes)
      .def_rw("params", &Options::params)
      .def_rw("more_shapes", &Options::more_shapes)
      .def_rw("constants", &Options::constants)
      .def(
          "set_bounds",
          [](Options& self, const std::vector<std::string>& texts) {
            self.bounds = unwrap(driver::parse_bounds(texts));
          },
          "Bounds as the command line writes them: batch=1..8")
      .def("set_chooser",
           [](Options& self, nb::object callable) { self.chooser = std::make_shared<ScriptChooser>(callable); })
      .def("set_config", [](Options& self, nb::dict config) { self.config = config_of(config); })
      .def("set_constant", [](Options& self, const std::string& name,
                              const ReadArray& value) { self.constant_tensors[name] = tensor_of(value); })
      .def(
          "add_shapes",
          [](Options& self, const std::vector<std::string>& texts) { unwrap(driver::add_shapes(texts, &self)); },
          "Shapes as the command line writes them: x=1x3x48x{320,640}");
  m.def("implementations", [](const std::string& op) {  // (name, plevel)
    nb::list out;
    for (const lower::Implementation* i : lower::implementations_of(op)) out.append(nb::make_tuple(i->name, i->plevel));
    return out;
  });
  m.def("compile_ir", [](const std::string& path, const std::string& output) {
    Status status = [&] {
      nb::gil_scoped_release release;
      return driver::compile_ir_file(path, output);
    }();
    unwrap(std::move(status));
  });
  // Compiles an import tree to the object devc.o.
  m.def("compile_imports", [](nb::bytes tree, const std::string& target) {
    auto made = [&]() -> Result<std::string> {
      const Target resolved = TW_TRY(driver::targets_of(target)).back().target;
      return codegen::compile_imports({tree.c_str(), tree.size()}, resolved);
    }();
    const std::string object = unwrap(std::move(made));
    return nb::bytes(object.data(), object.size());
  });
  // Runs a built-in external code generator; returns (type key, bytes).
  // `plugin`: the shared library that has the generator; empty: the compiler.
  m.def(
      "generate_external",
      [](const std::string& name, const std::string& symbol, nb::object function, const std::string& plugin) {
        auto made = [&]() -> Result<driver::SavedModule> {
          std::vector<driver::ExternalCodegen> others;
          if (!plugin.empty()) TW_TRY_STATUS(driver::load_plugin(plugin, &others));
          const auto found = std::find_if(others.begin(), others.end(), [&](const auto& g) { return g.name == name; });
          const driver::ExternalCodegen* generator = found == others.end() ? driver::own_generator(name) : &*found;
          if (generator == nullptr)
            return Diagnostic(ErrorCode::kUnknownFunction, format("there is no code generator '{}'", name), plugin);
          const relay::Expr given = exprs_of(nb::make_tuple(function))[0];
          const driver::ExternalGraph graph =
              TW_TRY(driver::external_graph(*relay::as<relay::FunctionNode>(given), symbol));
          return generator->generate(symbol, graph.json, graph.constants);
        }();
        const driver::SavedModule module = unwrap(std::move(made));
        return nb::make_tuple(module.type_key, nb::bytes(module.bytes.data(), module.bytes.size()), module.constants);
      },
      nb::arg("name"), nb::arg("symbol"), nb::arg("function"), nb::arg("plugin") = "");
  m.def("default_kernel_cache", codegen::default_kernel_cache_folder);

  // `bridge`: see instrument_passes; None without instruments.
  auto bind_build = [&](const char* name, Result<driver::Built> (*build)(const relay::Module&, const Options&)) {
    m.def(
        name,
        [build](const relay::Module& module, Options options, nb::object bridge) {
          const relay::Module whole = completed(module);
          Instrumented instrumented = instrument_passes(whole, bridge);
          options.instruments = instrumented.instruments;
          options.user_passes = instrumented.passes;
          auto result = [&] {
            nb::gil_scoped_release release;
            return build(whole, options);
          }();
          return unwrap(std::move(result));
        },
        nb::arg("module"), nb::arg("options"), nb::arg("bridge") = nb::none());
  };
  bind_build("build", driver::build);
  bind_build("optimize", driver::optimize);
  m.def("build_onnx_file", [](const std::string& path, const Options& options) {
    auto result = [&] {
      nb::gil_scoped_release release;
      return driver::build_onnx(path, options);
    }();
    return unwrap(std::move(result));
  });
  m.def("build_onnx_bytes", [](nb::bytes data, const Options& options) {
    // copied, since the module's constants may refer to it
    auto copy = std::make_shared<std::string>(data.c_str(), data.size());
    auto result = [&] {
      nb::gil_scoped_release release;
      return driver::build_onnx(onnx::SharedBytes{std::as_bytes(std::span(*copy)), copy}, options);
    }();
    return unwrap(std::move(result));
  });
}

}  // namespace tilewright::python
