// SPDX-License-Identifier: Apache-2.0
// Runs passes by name, with instruments written in Python.
#include "passes.h"

#include <memory>

#include "codegen/codegen.h"
#include "driver/target_list.h"
#include "relay.h"
#include "relay/op.h"
#include "relay/passes/classic/plan_virtual_devices.h"
#include "relay/passes/classic/to_mixed_precision.h"
#include "relay/passes/default_pipeline.h"
#include "relay/passes/fusion/compiler_regions.h"
#include "relay/passes/layout/layout_rewrite.h"
#include "relay/passes/pipeline/combine_parallel.h"
#include "relay/passes/pipeline/dead_code.h"
#include "relay/passes/pipeline/eliminate_common_subexpr.h"
#include "relay/passes/program/lambda_lift.h"
#include "relay/passes/quantize/fake_quantization_to_integer.h"
#include "relay/passes/quantize/quantize.h"

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
  PyObject* bridge_;  // borrowed: the Python caller keeps it alive while passes run
};

relay::QuantizeOptions quantize_options(nb::dict given) {
  relay::QuantizeOptions out;
  auto dtype = [&](const char* name) { return unwrap(parse_dtype(nb::cast<std::string>(given[name]))); };
  out.nbit_input = nb::cast<int>(given["nbit_input"]);
  out.nbit_weight = nb::cast<int>(given["nbit_weight"]);
  out.dtype_input = dtype("dtype_input");
  out.dtype_weight = dtype("dtype_weight");
  out.dtype_activation = dtype("dtype_activation");
  out.global_scale = nb::cast<double>(given["global_scale"]);
  out.max_weight_scale = nb::cast<bool>(given["max_weight_scale"]);
  out.skip_dense_layer = nb::cast<bool>(given["skip_dense_layer"]);
  out.skip_conv_layers = nb::cast<std::vector<int64_t>>(given["skip_conv_layers"]);
  out.round_for_shift = nb::cast<bool>(given["round_for_shift"]);
  out.to_nearest = nb::cast<bool>(given["to_nearest"]);
  return out;
}

// A script's `rules(name, call)`: returns None, or (category, accumulation dtype, result dtype).
relay::PrecisionRules precision_rules(const std::shared_ptr<nb::object>& rules) {
  return [rules](const std::string& op, const relay::Expr& e) -> std::optional<relay::PrecisionRule> {
    nb::gil_scoped_acquire gil;
    nb::object made = (*rules)(op, wrap(e));
    if (made.is_none()) return std::nullopt;
    // Classic encoding: 0 always, 1 follow, 2 never.
    constexpr relay::Narrowing kClassic[] = {relay::Narrowing::kAlways, relay::Narrowing::kFollows,
                                             relay::Narrowing::kNever};
    return relay::PrecisionRule{kClassic[nb::cast<size_t>(made[0])],
                                unwrap(parse_dtype(nb::cast<std::string>(made[1]))),
                                unwrap(parse_dtype(nb::cast<std::string>(made[2])))};
  };
}

// A script's `rules(name, call, operands, optional)`: returns None, or (integers, scale, zero point, dtype, axis), the
// form in which operands are passed as well; the scale is None for unquantised values.
relay::FakeQuantizationRules fake_quantization_rules(const std::shared_ptr<nb::object>& rules) {
  return [rules](const std::string& op, const relay::Expr& e, const std::vector<relay::AffineValue>& operands,
                 bool optional) -> std::optional<relay::AffineValue> {
    nb::gil_scoped_acquire gil;
    nb::list given;
    for (const relay::AffineValue& x : operands)
      given.append(x.scale ? nb::make_tuple(wrap(x.integers), wrap(x.scale), wrap(x.zero), x.dtype.str(), x.axis)
                           : nb::make_tuple(wrap(x.integers), nb::none(), nb::none(), "", -1));
    nb::object made = (*rules)(op, wrap(e), given, optional);
    if (made.is_none()) return std::nullopt;
    auto part = [&](int i) { return nb::cast<relay::Expr>(made[i]); };
    return relay::AffineValue{part(0), part(1), part(2), unwrap(parse_dtype(nb::cast<std::string>(made[3]))),
                              nb::cast<int64_t>(made[4])};
  };
}

// A pass with arguments that are not options: min_num_branches, fskip (a Python predicate on calls), hard_fail,
// expand_constructor and expand_global_var, dtype and keep.
Pass<relay::Module> pass_with(const std::string& name, nb::dict arguments) {
  const Pass<relay::Module>* known = find_pass<relay::Module>(relay::all_passes(), name);
  if (!known) raise(unknown_pass(name, pass_names<relay::Module>(relay::all_passes())));
  Pass<relay::Module> pass = *known;
  if (arguments.contains("min_num_branches")) {
    const bool batch = arguments.contains("to_batch") && nb::cast<bool>(arguments["to_batch"]);
    auto* combine = name == "CombineParallelConv2D"  ? relay::combine_conv2d
                    : name != "CombineParallelDense" ? relay::combine_batch_matmul
                    : batch                          ? relay::combine_dense_to_batch
                                                     : relay::combine_dense;
    pass.run = [combine, branches = nb::cast<int64_t>(arguments["min_num_branches"])](
                   const relay::Module& m, PassContext&) { return combine(m, branches); };
  } else if (arguments.contains("fskip")) {
    // Shared, since the runner copies passes without holding the interpreter's lock.
    pass.run = [skip = std::make_shared<nb::object>(arguments["fskip"])](const relay::Module& m, PassContext&) {
      nb::gil_scoped_acquire gil;
      return relay::eliminate_common_subexpr_except(
          m, [&](const relay::Expr& e) { return nb::cast<bool>((*skip)(wrap(e))); });
    };
  } else if (arguments.contains("hard_fail")) {
    relay::FakeQuantizationRules rules;
    if (!arguments["rules"].is_none())
      rules = fake_quantization_rules(std::make_shared<nb::object>(arguments["rules"]));
    pass.run = [hard_fail = nb::cast<bool>(arguments["hard_fail"]), use_qat = nb::cast<bool>(arguments["use_qat"]),
                rules](const relay::Module& m, PassContext&) {
      return relay::fake_quantization_to_integer(m, hard_fail, use_qat, rules);
    };
  } else if (arguments.contains("virtual_devices")) {
    pass.run = [devices = nb::cast<std::vector<std::string>>(arguments["virtual_devices"])](
                   const relay::Module& m, PassContext&) { return relay::plan_virtual_devices(m, devices); };
  } else if (arguments.contains("inline_once")) {
    const relay::DeadCodeOptions options{nb::cast<bool>(arguments["inline_once"]),
                                         nb::cast<bool>(arguments["ignore_impurity"]), false};
    pass.run = [options](const relay::Module& m, PassContext&) { return relay::dead_code_elimination(m, options); };
  } else if (arguments.contains("expand_constructor")) {
    pass.run = [constructors = nb::cast<bool>(arguments["expand_constructor"]),
                globals = nb::cast<bool>(arguments["expand_global_var"])](const relay::Module& m, PassContext&) {
      return relay::eta_expand(m, constructors, globals);
    };
  } else if (arguments.contains("takes")) {
    relay::TargetRules rules;
    rules.targets = nb::cast<std::vector<std::string>>(arguments["targets"]);
    rules.include_non_call_ops = nb::cast<bool>(arguments["include_non_call_ops"]);
    rules.takes = [takes = std::make_shared<nb::object>(arguments["takes"])](const std::string& target,
                                                                             const relay::Expr& call) {
      nb::gil_scoped_acquire gil;
      return relay::called_op(call) ? nb::cast<bool>((*takes)(target, wrap(call)))
                                    : relay::takes_composite(target, call);
    };
    pass.run = [rules = std::make_shared<relay::TargetRules>(std::move(rules))](const relay::Module& m, PassContext&) {
      return relay::annotate_target(m, *rules);
    };
  } else if (arguments.contains("quantize")) {
    const auto options = quantize_options(nb::cast<nb::dict>(arguments["quantize"]));
    std::vector<double> scales;
    if (arguments.contains("scales")) scales = nb::cast<std::vector<double>>(arguments["scales"]);
    pass.run = [=](const relay::Module& m, PassContext&) {
      if (name == "QuantizeCalibrate") return relay::quantize_calibrate(m, options, scales);
      return name == "QuantizeRealize" ? relay::quantize_realize(m, options) : relay::quantize_annotate(m, options);
    };
  } else if (arguments.contains("dtype")) {
    pass.run = [dtype = unwrap(parse_dtype(nb::cast<std::string>(arguments["dtype"]))),
                keep = nb::cast<bool>(arguments["keep"]),
                rules = std::make_shared<nb::object>(arguments["rules"])](const relay::Module& m, PassContext&) {
      return relay::to_mixed_precision(m, dtype, keep, precision_rules(rules));
    };
  }
  return pass;
}

}  // namespace

std::map<std::string, ConfigValue> config_of(nb::dict config) {
  std::map<std::string, ConfigValue> out;
  for (auto [key, value] : config) {
    std::string name = nb::cast<std::string>(key);
    if (PyBool_Check(value.ptr()))
      out[name] = nb::cast<bool>(value);
    else if (PyLong_Check(value.ptr()))
      out[name] = nb::cast<int64_t>(value);
    else if (PyFloat_Check(value.ptr()))
      out[name] = nb::cast<double>(value);
    else if (PyUnicode_Check(value.ptr()))
      out[name] = nb::cast<std::string>(value);
    else
      out[name] = nb::cast<std::vector<std::string>>(value);
  }
  return out;
}

Instrumented instrument_passes(const relay::Module& module, nb::object bridge) {
  Instrumented out;
  if (bridge.is_none()) return out;
  auto instrument = std::make_shared<PythonInstrument>(module, bridge.ptr());
  // Rules registered by a script run before their pass.
  nb::dict rules = nb::cast<nb::dict>(bridge.attr("rules"));
  for (const Pass<relay::Module>& pass : relay::all_passes())
    out.passes.push_back(
        {pass.info, [run = pass.run, instrument,
                     rule = rules.contains(pass.info.name.c_str()) ? rules[pass.info.name.c_str()].ptr() : nullptr](
                        const relay::Module& m, PassContext& context) {
           relay::Module before = m;
           if (rule) {
             nb::gil_scoped_acquire gil;
             before = completed(nb::cast<relay::Module>(nb::borrow(rule)(nb::cast(m))));
           }
           auto result = run(before, context);
           if (result.ok()) instrument->current = *result;
           return result;
         }});
  out.instruments.push_back(std::move(instrument));
  return out;
}

void bind_passes(nb::module_& m) {
  m.def("pass_infos", [] {
    nb::list out;
    for (const auto& pass : relay::all_passes())
      out.append(nb::make_tuple(pass.info.name, pass.info.opt_level, pass.info.doc));
    return out;
  });
  m.def("simulated_inputs", [](const relay::Module& m) { return unwrap(relay::simulated_inputs(m)); });
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
  // Runs one pass regardless of its level, which the
  // caller has checked. `arguments`: see pass_with.
  m.def("run_pass", [](const relay::Module& module, const std::string& name, int opt_level, const std::string& target,
                       nb::dict config, nb::dict arguments) {
    PassContext context;
    context.opt_level = opt_level;
    context.required.insert(name);
    context.verify = !arguments.contains("alone");  // a function without the module of the names in it
    for (auto& [key, value] : config_of(config)) unwrap(context.set_config(key, value));
    std::vector<Pass<relay::Module>> changed;
    if (nb::len(arguments) > 0) changed.push_back(pass_with(name, arguments));
    const relay::Module whole = completed(module);
    auto result = [&]() -> Result<relay::Module> {
      nb::gil_scoped_release release;
      context.target = TW_TRY(driver::targets_of(target))[0].target;
      return relay::run_passes(whole, {name}, context, changed);
    }();
    return unwrap(std::move(result));
  });
  // rules: {operator: callable(call, attrs, operands) -> the call in other layouts, or None}
  m.def("rewrite_layouts", [](const relay::Module& module, nb::dict rules) {
    return unwrap(relay::rewrite_layouts(
        completed(module),
        [&](const relay::Expr& e, const AttrsRef& attrs, const std::vector<relay::Expr>& args) -> Result<relay::Expr> {
          const char* name = relay::called_op(e)->name;
          if (!rules.contains(name)) return relay::Expr();
          nb::object made = rules[name](wrap(e), attrs ? nb::cast(attrs) : nb::none(), wrap_all(args));
          if (made.is_none()) return relay::Expr();
          if (!nb::isinstance<relay::Expr>(made))
            throw nb::type_error("a rule about layouts gives an expression, or None");
          return nb::cast<relay::Expr>(made);
        }));
  });
  // Checks every target of a list; raises the error of an invalid one.
  m.def("check_target", [](const std::string& text) {
    for (const std::string& one : split_targets(text)) unwrap(parse_target(one));
  });
  m.def("resolve_target", [](const std::string& text) {
    const Target t = unwrap(driver::targets_of(text))[0].target;  // of a list, the best target
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
