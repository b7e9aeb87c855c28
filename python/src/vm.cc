// SPDX-License-Identifier: Apache-2.0
// VM programs: compiling modules, saving, loading and running them.
#include <memory>

#include "driver/vm.h"
#include "passes.h"
#include "relay.h"
#include "runtime/artifact.h"
#include "runtime/vm/compiler_hook.h"
#include "tilewright/compiler.h"

namespace tilewright::python {
namespace {

using runtime::vm::Executable;
using runtime::vm::Program;
using Value = runtime::vm::Value;
using ObjectKind = runtime::vm::Object::Kind;

// Tensors become numpy arrays; tuples and data types (tag, [fields]); closures stay opaque.
nb::object python_of(const Value& v) {
  if (!v) return nb::none();
  switch (v->kind) {
    case ObjectKind::kTensor:
      return numpy_of(v->tensor);
    case ObjectKind::kAdt: {
      nb::list fields;
      for (const Value& f : v->fields) fields.append(python_of(f));
      return nb::make_tuple(v->tag, fields);
    }
    case ObjectKind::kRef:
    case ObjectKind::kStorage:
    case ObjectKind::kClosure:
      return nb::cast(v);
  }
  return nb::none();
}

Value value_of(nb::handle object) {
  if (nb::isinstance<Value>(object)) return nb::cast<Value>(object);
  if (PyTuple_Check(object.ptr())) {
    std::vector<Value> fields;
    for (nb::handle f : object[1]) fields.push_back(value_of(f));
    return runtime::vm::make_adt(nb::cast<int64_t>(object[0]), std::move(fields));
  }
  return runtime::vm::make_tensor(tensor_of(nb::cast<ReadArray>(object)));
}

class Machine {
 public:
  Machine(const Program& program, int threads) : program_(std::make_shared<Program>(program)) {
    runtime::vm::SpecializedOptions options;
    options.threads = threads;
    options.evaluate = runtime::vm::evaluate_with(program_, tw_compiler_evaluate, tw_compiler_last_error_message);
    functions_ = std::make_shared<runtime::vm::SpecializedFunctions>(
        program_, runtime::vm::specialize_with(program_, tw_compiler_specialize, tw_compiler_last_error_message),
        options);
    machine_ = unwrap(runtime::vm::VirtualMachine::create({program_, &program_->executable}, functions_));
  }
  nb::object invoke(const std::string& name, nb::list arguments) {
    std::vector<Value> values;
    for (nb::handle a : arguments) values.push_back(value_of(a));
    auto result = [&] {
      nb::gil_scoped_release release;
      return machine_->invoke(name, std::move(values));
    }();
    return python_of(unwrap(std::move(result)));
  }
  // (result, (name, source, ns) for each step in order, table, Chrome trace)
  nb::tuple profile(const std::string& name, nb::list arguments) {
    std::vector<runtime::vm::TraceEvent> events;
    functions_->set_trace(&events);
    struct Untraced {
      runtime::vm::SpecializedFunctions& functions;
      ~Untraced() { functions.set_trace(nullptr); }
    } untraced{*functions_};
    nb::object result = invoke(name, std::move(arguments));
    nb::list steps;
    for (const auto& e : events) steps.append(nb::make_tuple(e.name, e.source, e.time.end_ns - e.time.begin_ns));
    return nb::make_tuple(result, steps, runtime::vm::trace_table(events), runtime::vm::trace_chrome(events));
  }
  size_t compiled() const { return functions_->compiled(); }

 private:
  std::shared_ptr<const Program> program_;
  std::shared_ptr<runtime::vm::SpecializedFunctions> functions_;
  std::unique_ptr<runtime::vm::VirtualMachine> machine_;
};

nb::bytes bytes_of(const std::string& text) { return nb::bytes(text.data(), text.size()); }
std::span<const std::byte> span_of(const nb::bytes& data) {
  return std::as_bytes(std::span(data.c_str(), data.size()));
}

}  // namespace

void bind_vm(nb::module_& m) {
  nb::class_<Value>(m, "VMObject", "A closure of a VM program");
  nb::class_<Program>(m, "VMProgram", "Bytecode, and the source of the regions it calls")
      .def_prop_ro("code", [](const Program& self) { return bytes_of(runtime::vm::write_executable(self.executable)); })
      .def_prop_ro("bytecode", [](const Program& self) { return runtime::vm::bytecode_text(self.executable); })
      .def_prop_ro("constants_text", [](const Program& self) { return runtime::vm::constants_text(self.executable); })
      .def_prop_ro("primitives_text", [](const Program& self) { return runtime::vm::primitives_text(self.executable); })
      .def_prop_ro("constants",
                   [](const Program& self) {
                     nb::list out;
                     for (const auto& c : self.executable.constants)
                       out.append(c.data.defined() ? numpy_of(c.data) : nb::none());
                     return out;
                   })
      .def_prop_ro("primitives", [](const Program& self) { return self.executable.primitives; })
      .def_prop_ro("functions",
                   [](const Program& self) {  // (name, parameters, registers, instructions)
                     nb::list out;
                     for (const auto& f : self.executable.functions)
                       out.append(nb::make_tuple(f.name, f.params, f.registers, f.code.size()));
                     return out;
                   })
      .def_prop_ro("inputs",
                   [](const Program& self) {  // of main; -1 is free
                     nb::list out;
                     for (const auto& t : self.inputs)
                       out.append(nb::make_tuple(t.name, t.dtype.str(), nb::tuple(nb::cast(t.shape))));
                     return out;
                   })
      .def_prop_ro("outputs", [](const Program& self) { return self.outputs; })
      .def_prop_ro("target", [](const Program& self) { return self.target; })
      .def("late_bound_constants",
           [](Program& self, uint64_t limit) {
             return bytes_of(runtime::vm::move_late_bound_constants(&self.executable, limit));
           })
      .def("bind_constants",
           [](Program& self, nb::bytes params) {
             unwrap(runtime::vm::load_late_bound_constants(&self.executable, span_of(params)));
           })
      .def("with_code",
           [](const Program& self, nb::bytes code) {  // this program's regions with other, saved bytecode
             Program out = self;
             out.executable = unwrap(runtime::vm::read_executable(span_of(code)));
             if (out.executable.primitives != self.executable.primitives)
               raise(Diagnostic(ErrorCode::kBadArtifact, "the bytecode calls other functions than the library has", "",
                                "save and load both parts together"));
             return out;
           })
      .def("copy", [](const Program& self) { return Program(self); })
      .def("export_library", [](const Program& self, const std::string& path, const std::string& name) {
        unwrap(driver::export_program(self, name, path));
      });
  m.def("vm_compile", [](const relay::Module& module, const std::string& target, int opt_level, nb::dict config) {
    driver::BuildOptions options;
    options.target = target;
    options.opt_level = opt_level;
    options.config = config_of(config);
    const relay::Module whole = completed(module);
    auto result = [&] {
      nb::gil_scoped_release release;
      return driver::vm_program(whole, options);
    }();
    return unwrap(std::move(result));
  });
  // None: all sizes are known, the model is an ordinary library.
  m.def("onnx_program_file", [](const std::string& path, const driver::BuildOptions& options) -> nb::object {
    auto program = unwrap(driver::program_if_needed(path, options));
    return program ? nb::cast(std::move(*program)) : nb::none();
  });
  m.def("vm_program_of", [](const std::string& path) -> nb::object {  // None: an ordinary library
    auto artifact = unwrap(runtime::Artifact::load(path));
    auto program = unwrap(runtime::vm::program_of(artifact));
    return program ? nb::cast(Program(*program)) : nb::none();
  });
  m.def("vm_listing", [](nb::bytes code) {  // of any classic .ro, without kernels
    Executable e = unwrap(runtime::vm::read_executable(span_of(code)));
    return nb::make_tuple(runtime::vm::bytecode_text(e), runtime::vm::constants_text(e),
                          runtime::vm::primitives_text(e));
  });
  nb::class_<Machine>(m, "VMMachine", "Runs a program; serves one thread at a time")
      .def(nb::init<const Program&, int>(), nb::arg("program"), nb::arg("threads") = 0)
      .def("invoke", &Machine::invoke)
      .def("profile", &Machine::profile)
      .def_prop_ro("compiled", &Machine::compiled);
}

}  // namespace tilewright::python
