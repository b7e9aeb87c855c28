// SPDX-License-Identifier: Apache-2.0
// Passes by name, and instruments written in Python around them.
#include "passes.h"

#include "codegen/codegen.h"
#include "relay.h"
#include "relay/passes/pipeline.h"

namespace tilewright::python {
namespace {

class PythonInstrument : public PassInstrument {
 public:
  PythonInstrument(const relay::Module& module, PyObject* bridge) : current(module), bridge_(bridge) {}
  bool should_run(const PassInfo& info) override {
    nb::gil_scoped_acquire gil;
    return nb::cast<bool>(call("should_run", info));
  }
  void before(const PassInfo& info, const std::function<std::string()>&) override {
    nb::gil_scoped_acquire gil;
    call("before", info);
  }
  void after(const PassInfo& info, bool, const std::function<std::string()>&) override {
    nb::gil_scoped_acquire gil;
    call("after", info);
  }
  relay::Module current;

 private:
  nb::object call(const char* method, const PassInfo& info) {
    return nb::borrow(bridge_).attr(method)(nb::cast(current), info.name, info.opt_level);
  }
  PyObject* bridge_;  // borrowed: the Python caller holds it while passes run
};

}  // namespace

std::map<std::string, ConfigValue> config_of(nb::dict config) {
  std::map<std::string, ConfigValue> out;
  for (auto [key, value] : config) {
    std::string name = nb::cast<std::string>(key);
    if (PyBool_Check(value.ptr())) out[name] = nb::cast<bool>(value);
    else if (PyLong_Check(value.ptr())) out[name] = nb::cast<int64_t>(value);
    else if (PyFloat_Check(value.ptr())) out[name] = nb::cast<double>(value);
    else if (PyUnicode_Check(value.ptr())) out[name] = nb::cast<std::string>(value);
    else out[name] = nb::cast<std::vector<std::string>>(value);
  }
  return out;
}

Instrumented instrument_passes(const relay::Module& module, nb::object bridge) {
  Instrumented out;
  if (bridge.is_none()) return out;
  auto instrument = std::make_shared<PythonInstrument>(module, bridge.ptr());
  for (const Pass<relay::Module>& pass : relay::all_passes())
    out.passes.push_back({pass.info, [run = pass.run, instrument](const relay::Module& m, PassContext& context) {
                            auto result = run(m, context);
                            if (result.ok()) instrument->current = *result;
                            return result;
                          }});
  out.instruments.push_back(std::move(instrument));
  return out;
}

void bind_passes(nb::module_& m) {
  m.def("pass_infos", [] {
    nb::list out;
    for (const auto& pass : relay::all_passes()) out.append(nb::make_tuple(pass.info.name, pass.info.opt_level, pass.info.doc));
    return out;
  });
  m.def("config_keys", [] {
    nb::list out;
    for (const ConfigKeyInfo& key : all_config_keys()) out.append(nb::make_tuple(key.name, key.type, key.doc));
    return out;
  });
  m.def("check_config", [](nb::dict config) {
    PassContext context;
    for (auto& [key, value] : config_of(config)) unwrap(context.set_config(key, value));
  });
  m.def("default_pipeline", [] { return relay::default_pipeline(); });
  // One pass, whatever its level: who calls has decided.
  m.def("run_pass", [](const relay::Module& module, const std::string& name, int opt_level, const std::string& target, nb::dict config) {
    PassContext context;
    context.opt_level = opt_level;
    context.required.insert(name);
    for (auto& [key, value] : config_of(config)) unwrap(context.set_config(key, value));
    const relay::Module whole = completed(module);
    auto result = [&]() -> Result<relay::Module> {
      nb::gil_scoped_release release;
      context.target = TW_TRY(codegen::resolve_target(TW_TRY(parse_target(target))));
      return relay::run_passes(whole, {name}, context);
    }();
    return unwrap(std::move(result));
  });
  m.def("parse_target", [](const std::string& text) { return unwrap(parse_target(text)).str(); });
  m.def("resolve_target", [](const std::string& text) {
    Target t = unwrap(codegen::resolve_target(unwrap(parse_target(text))));
    nb::dict out;
    out["kind"] = t.kind;
    out["mtriple"] = t.mtriple;
    out["mcpu"] = t.mcpu;
    out["mattr"] = t.mattr;
    out["vector_bits"] = t.vector_bits;
    out["cpu_features"] = t.cpu_features;
    return out;
  });
}

}  // namespace tilewright::python
