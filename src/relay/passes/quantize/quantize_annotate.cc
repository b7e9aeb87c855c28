// SPDX-License-Identifier: Apache-2.0
// QuantizeAnnotate and QuantizeCalibrate.
#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "base/format.h"
#include "relay/calls.h"
#include "relay/ops/quantize/attrs_qnn.h"
#include "relay/passes/quantize/quantize.h"

namespace tilewright::relay {
namespace {

constexpr const char* kSimulated = "relay.op.annotation.simulated_quantize";

// A value and its quantisation role; no kind: unquantised floats.
struct Annotated {
  Expr expr;
  std::optional<QuantizeKind> kind;
};

class Annotator {
 public:
  Annotator(const QuantizeOptions& options, const Expr& root) : options_(options), uses_(count_uses(root)) {}

  Expr run(const Expr& root) {
    for (const Expr& e : post_order(root)) {
      Annotated made = annotated(e);
      // A value with several users is quantised once.
      if (made.kind == QuantizeKind::kActivation && uses_[e.get()] > 1)
        made = {simulated(made.expr), QuantizeKind::kInput};
      done_[e.get()] = made;
    }
    return done_.at(root.get()).expr;
  }

 private:
  using Operands = std::vector<Annotated>;
  using Rule = Annotated (Annotator::*)(const Expr& e, const Operands& args);

  Annotated annotated(const Expr& e) {
    static const std::map<std::string_view, Rule> kRules = {{"nn.conv1d", &Annotator::product},
                                                            {"nn.conv2d", &Annotator::product},
                                                            {"nn.conv2d_transpose", &Annotator::product},
                                                            {"nn.dense", &Annotator::product},
                                                            {"nn.batch_matmul", &Annotator::product},
                                                            {"add", &Annotator::sum},
                                                            {"multiply", &Annotator::scaled},
                                                            {"nn.bias_add", &Annotator::sum},
                                                            {"clip", &Annotator::kept},
                                                            {"nn.relu", &Annotator::kept},
                                                            {"strided_slice", &Annotator::kept},
                                                            {"transpose", &Annotator::kept},
                                                            {"nn.batch_flatten", &Annotator::kept},
                                                            {"reshape", &Annotator::kept},
                                                            {"annotation.stop_fusion", &Annotator::kept},
                                                            {"annotation.cast_hint", &Annotator::kept},
                                                            {"nn.max_pool1d", &Annotator::pooled},
                                                            {"nn.max_pool2d", &Annotator::pooled},
                                                            {"nn.avg_pool2d", &Annotator::pooled},
                                                            {"concatenate", &Annotator::joined}};
    if (as<FunctionNode>(e)) return {e, std::nullopt};
    const OpDef* op = called_op(e);
    auto rule = op ? kRules.find(op->name) : kRules.end();
    std::vector<Expr> kids;
    std::vector<Annotated> given;
    for (const Expr& kid : children(e)) {
      given.push_back(done_.at(kid.get()));
      kids.push_back(given.back().expr);
    }
    if (rule == kRules.end()) return {with_children(e, kids), std::nullopt};
    // A tuple's fields are handled where the tuple is concatenated.
    if (const auto* tuple = op->name == std::string_view("concatenate") ? as<TupleNode>(arg(e, 0)) : nullptr) {
      given.clear();
      for (const Expr& field : tuple->fields) given.push_back(done_.at(field.get()));
    }
    return (this->*rule->second)(e, given);
  }

  Expr simulated(const Expr& x, QuantizeKind kind = QuantizeKind::kInput) {
    Expr& made = made_[{x.get(), kind}];
    if (!made)
      made = call(kSimulated, {x, make_scalar(1), make_scalar(-1), make_scalar(1)},
                  make_attrs<SimulatedQuantizeAttrs>([&](auto& a) { a.kind = static_cast<int64_t>(kind); }), x->span);
    return made;
  }
  Expr as_input(const Annotated& a) {
    return !a.kind || a.kind == QuantizeKind::kActivation ? simulated(a.expr) : a.expr;
  }
  // Quantises a constant operand as a weight.
  Expr beside(const Annotated& a) {
    return as<ConstantNode>(a.expr) ? simulated(a.expr, QuantizeKind::kWeight) : simulated(a.expr);
  }
  static Annotated rebuilt(const Expr& e, const std::vector<Expr>& args, std::optional<QuantizeKind> kind) {
    return {with_children(e, args), kind};
  }
  static Annotated plain(const Expr& e, const std::vector<Annotated>& args) {
    std::vector<Expr> exprs;
    for (const Annotated& a : args) exprs.push_back(a.expr);
    return rebuilt(e, exprs, std::nullopt);
  }

  bool skipped(const Expr& e) {
    if (!is_float_tensor(e)) return true;
    const std::string_view name = called_op(e)->name;
    if (name == "nn.dense") return options_.skip_dense_layer;
    if (name != "nn.conv2d") return false;
    const int64_t number = convolutions_++;
    return std::find(options_.skip_conv_layers.begin(), options_.skip_conv_layers.end(), number) !=
           options_.skip_conv_layers.end();
  }

  Annotated product(const Expr& e, const Operands& args) {
    // Weights computed by the program have no scale at compile time.
    if (skipped(e) || (!as<ConstantNode>(args[1].expr) && !is_call_to(e, "nn.batch_matmul"))) return plain(e, args);
    const Expr other =
        as<ConstantNode>(args[1].expr) ? simulated(args[1].expr, QuantizeKind::kWeight) : as_input(args[1]);
    return rebuilt(e, {as_input(args[0]), other}, QuantizeKind::kActivation);
  }
  Annotated scaled(const Expr& e, const Operands& given) {
    Operands args = given;
    if (!args[0].kind && args[1].kind) std::swap(args[0], args[1]);
    if (!args[0].kind) return plain(e, args);
    const Expr other = args[1].kind ? as_input(args[1]) : beside(args[1]);
    return rebuilt(e, {as_input(args[0]), other}, QuantizeKind::kActivation);
  }
  Annotated sum(const Expr& e, const Operands& given) {
    Operands args = given;
    Annotated &a = args[0], &b = args[1];
    if (!a.kind && !b.kind) return plain(e, args);
    if (!a.kind) return rebuilt(e, {beside(a), b.expr}, QuantizeKind::kInput);
    if (!b.kind) return rebuilt(e, {a.expr, beside(b)}, QuantizeKind::kActivation);
    if (a.kind == QuantizeKind::kInput && b.kind == a.kind) return rebuilt(e, {a.expr, b.expr}, QuantizeKind::kInput);
    if (a.kind == b.kind) b.expr = simulated(b.expr);
    return rebuilt(e, {a.expr, b.expr}, QuantizeKind::kActivation);
  }
  Annotated kept(const Expr& e, const Operands& args) { return rebuilt(e, {args[0].expr}, args[0].kind); }
  Annotated pooled(const Expr& e, const Operands& args) {
    if (!args[0].kind) return plain(e, args);
    return rebuilt(e, {as_input(args[0])},
                   is_call_to(e, "nn.avg_pool2d") ? QuantizeKind::kActivation : QuantizeKind::kInput);
  }
  Annotated joined(const Expr& e, const Operands& args) {
    bool any = false;
    for (const Annotated& a : args) any = any || a.kind;
    if (!any || !as<TupleNode>(arg(e, 0))) return {with_children(e, {done_.at(arg(e, 0).get()).expr}), std::nullopt};
    std::vector<Expr> fields;
    for (const Annotated& a : args) fields.push_back(a.kind ? a.expr : simulated(a.expr));
    return {with_children(e, {make_tuple(std::move(fields))}), QuantizeKind::kActivation};
  }

  const QuantizeOptions& options_;
  UseCounts uses_;
  int64_t convolutions_ = 0;
  std::unordered_map<const ExprNode*, Annotated> done_;
  std::map<std::pair<const ExprNode*, QuantizeKind>, Expr> made_;
};

bool of_weight(const Expr& e) {
  return attrs_of<SimulatedQuantizeAttrs>(e).kind == static_cast<int64_t>(QuantizeKind::kWeight);
}

// The simulated quantisations of main, in post order.
std::vector<Expr> simulations(const Module& module, bool weights) {
  std::vector<Expr> out;
  for (const Expr& e : post_order(module.main_function()->body))
    if (is_call_to(e, kSimulated) && (weights || !of_weight(e))) out.push_back(e);
  return out;
}

double weight_scale(const Tensor& weights, bool max) {
  double most = 0;
  for (int64_t i = 0; i < weights.size(); ++i) most = std::max(most, std::fabs(weights.at_double(i)));
  if (most == 0 || !std::isfinite(most)) return 1;
  return max ? most : std::exp2(std::ceil(std::log2(most)));
}

}  // namespace

Result<Module> quantize_annotate(const Module& module, const QuantizeOptions& options) {
  return rewrite_functions(module, [&](const Expr& function) {
    const auto* f = as<FunctionNode>(function);
    Expr body = Annotator(options, f->body).run(f->body);
    return body == f->body ? function : with_body(*f, body);
  });
}

Result<Module> simulated_inputs(const Module& module) {
  std::vector<Expr> fields;
  rewrite_expr(module.main_function()->body, [&](const Expr&, const Expr& e) {
    if (!is_call_to(e, kSimulated)) return e;
    if (!of_weight(e)) fields.push_back(arg(e, 0));
    return arg(e, 0);
  });
  return module.with_main(with_body(*module.main_function(), make_tuple(std::move(fields))));
}

Result<Module> quantize_calibrate(const Module& module, const QuantizeOptions& options,
                                  std::span<const double> activation_scales) {
  const std::vector<Expr> all = simulations(module, true);
  size_t activations = simulations(module, false).size(), next = 0;
  if (!activation_scales.empty() && activation_scales.size() != activations)
    return Diagnostic(ErrorCode::kInvalidArgument, format("{} scales are given for {} simulated quantisations",
                                                          activation_scales.size(), activations));
  std::unordered_map<const ExprNode*, double> scale_of;
  for (const Expr& e : all) {
    if (!of_weight(e)) {
      const double given = activation_scales.empty() ? options.global_scale : activation_scales[next++];
      if (!(given > 0) || !std::isfinite(given))
        return Diagnostic(ErrorCode::kInvalidArgument, format("{} is no scale: scales are positive", given));
      scale_of[e.get()] = given;
      continue;
    }
    const Tensor* weights = constant_data(arg(e, 0));
    if (!weights)
      return Diagnostic(ErrorCode::kInvalidArgument, "a weight to quantise is not constant", e->span ? *e->span : "",
                        "bind the parameters and run FoldConstant first");
    scale_of[e.get()] = weight_scale(*weights, options.max_weight_scale);
  }
  auto with_scale = [&](const Expr& original, const Expr& e) {
    auto found = scale_of.find(original.get());
    if (found == scale_of.end()) return e;
    const int bits = (of_weight(e) ? options.nbit_weight : options.nbit_input) - 1;
    const double steps = std::ldexp(1, bits);
    return call(kSimulated,
                {arg(e, 0), make_scalar(found->second / steps), make_scalar(1 - steps), make_scalar(steps - 1)},
                as<CallNode>(e)->attrs, e->span);
  };
  return rewrite_module(module, with_scale);
}

Result<Module> quantize_annotate(const Module& module, PassContext&) {
  return quantize_annotate(module, QuantizeOptions());
}
Result<Module> quantize_calibrate(const Module& module, PassContext&) {
  return quantize_calibrate(module, QuantizeOptions());
}

}  // namespace tilewright::relay
