// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/fuse_composites.h"

#include <cmath>
#include <functional>
#include <string>

#include "base/format.h"
#include "relay/ops/attrs.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

// mean over the last axis with the axis kept.
bool is_last_mean(const Expr& e) {
  if (!is_call_to(e, "mean")) return false;
  const auto& attrs = attrs_of<ReduceAttrs>(e);
  size_t rank = tensor_of(arg(e, 0)).shape.size();
  return attrs.keepdims && !attrs.exclude && attrs.axis && attrs.axis->size() == 1 && rank > 0 &&
         positive_axis((*attrs.axis)[0], rank) == static_cast<int64_t>(rank) - 1;
}

// x when `e` is x - mean(x).
Expr centred_source(const Expr& e) {
  const auto* difference = as_call(e, "subtract");
  if (!difference || !is_last_mean(difference->args[1]) || !(arg(difference->args[1], 0) == difference->args[0]))
    return {};
  return difference->args[0];
}

struct Deviation {
  Expr source;
  double epsilon;
};

// mean(c * c) + eps, where c is x - mean(x) (exporters may write separate copies of c).
std::optional<Deviation> variance_of(const Expr& e) {
  const auto* sum = as_call(e, "add");
  if (!sum) return std::nullopt;
  for (size_t i : {size_t{0}, size_t{1}}) {
    auto epsilon = uniform_value(sum->args[i]);
    const Expr& mean = sum->args[1 - i];
    if (!epsilon || !is_last_mean(mean)) continue;
    const Expr& square = arg(mean, 0);
    Expr factor;
    if (is_call_to(square, "multiply") && arg(square, 0) == arg(square, 1)) factor = arg(square, 0);
    if (is_call_to(square, "power") && is_uniform(arg(square, 1), 2)) factor = arg(square, 0);
    if (!factor) continue;
    // The shortest decimal that rounds to the float: 1e-05 rather than its exact binary value.
    double decimal = std::stod(format("{}", static_cast<float>(*epsilon)));
    if (Expr source = centred_source(factor)) return Deviation{source, decimal};
  }
  return std::nullopt;
}

// The normalised x of (x - mean) / sqrt(v) or (x - mean) * rsqrt(v).
std::optional<Deviation> normalised(const Expr& e) {
  auto match = [&](const Expr& centred, const Expr& variance) -> std::optional<Deviation> {
    Expr source = centred_source(centred);
    auto deviation = source ? variance_of(variance) : std::nullopt;
    if (!deviation || !(deviation->source == source)) return std::nullopt;
    return deviation;
  };
  if (is_call_to(e, "divide") && is_call_to(arg(e, 1), "sqrt")) return match(arg(e, 0), arg(arg(e, 1), 0));
  if (!is_call_to(e, "multiply")) return std::nullopt;
  for (size_t i : {size_t{0}, size_t{1}})
    if (is_call_to(arg(e, i), "rsqrt"))
      if (auto out = match(arg(e, 1 - i), arg(arg(e, i), 0))) return out;
  return std::nullopt;
}

// `e` as a constant or variable vector along the last axis of `x`, or null.
Expr as_vector(const Expr& e, const Expr& x) {
  const auto* type = as_tensor(e->type);
  const auto& shape = tensor_of(x).shape;
  if (!type || type->dtype != tensor_of(x).dtype) return {};
  if (type->shape.size() == 1 && type->shape[0] == shape.back()) return e;
  auto channels = shape.back().constant();
  auto data = channels ? per_channel(e, shape.size(), static_cast<int64_t>(shape.size()) - 1, *channels) : std::nullopt;
  return data ? make_constant(*data, e->span) : Expr();
}

Expr layer_norm(const Expr& x, const Expr& gamma, const Expr& beta, double epsilon, bool scale, bool center,
                const Span& span) {
  auto out = try_call("nn.layer_norm", {x, gamma, beta}, make_attrs<LayerNormAttrs>([&](auto& a) {
                        a.axis = -1;
                        a.epsilon = epsilon;
                        a.scale = scale;
                        a.center = center;
                      }),
                      span);
  return out.ok() ? *out : Expr();
}

Expr match_bare(const Expr& e) {
  auto match = normalised(e);
  if (!match || tensor_of(e).dtype != kFloat32) return {};
  auto channels = tensor_of(match->source).shape.back().constant();
  if (!channels) return {};
  Expr ones = full_constant(1, kFloat32, {*channels}), zeros = full_constant(0, kFloat32, {*channels});
  return layer_norm(match->source, ones, zeros, match->epsilon, false, false, e->span);
}

// Absorbs a product or sum with a vector into a layer_norm that has no gamma or beta yet.
Expr absorb(const Expr& e, const UseCounts& uses, const std::unordered_map<const ExprNode*, Expr>& original_of) {
  bool product = is_call_to(e, "multiply");
  if (!product && !is_call_to(e, "add")) return {};
  for (size_t i : {size_t{0}, size_t{1}}) {
    const Expr &norm = arg(e, i), &other = arg(e, 1 - i);
    if (!is_call_to(norm, "nn.layer_norm")) continue;
    const auto& attrs = attrs_of<LayerNormAttrs>(norm);
    auto original = original_of.find(norm.get());
    if (original == original_of.end() || uses.at(original->second.get()) != 1) continue;
    if (attrs.center || (product && attrs.scale)) continue;
    Expr vector = as_vector(other, norm);
    if (!vector || !same_tensor_type(norm, e)) continue;
    return product ? layer_norm(arg(norm, 0), vector, arg(norm, 2), attrs.epsilon, true, false,
                                join_spans(norm->span, e->span))
                   : layer_norm(arg(norm, 0), arg(norm, 1), vector, attrs.epsilon, attrs.scale, true,
                                join_spans(norm->span, e->span));
  }
  return {};
}

// Whether a scalar constant is `value` as exporters write it: rounded to float32, possibly via its reciprocal.
bool is_about(std::optional<double> constant, double value) {
  return constant && std::fabs(*constant / value - 1) < 1e-6;
}

// x and 1 + f(x * scale), found among the factors of a product.
struct Gate {
  Expr sum, inner;  // 1 + f(inner)
  bool erf;
};
std::optional<Gate> find_gate(const Expr& e, int depth) {
  if (is_call_to(e, "add"))
    for (size_t i : {size_t{0}, size_t{1}}) {
      const Expr& f = arg(e, i);
      bool erf = is_call_to(f, "erf");
      if ((erf || is_call_to(f, "tanh")) && is_uniform(arg(e, 1 - i), 1)) return Gate{e, arg(f, 0), erf};
    }
  if (depth == 0 || !is_call_to(e, "multiply")) return std::nullopt;
  auto left = find_gate(arg(e, 0), depth - 1);
  return left ? left : find_gate(arg(e, 1), depth - 1);
}

// Multiplies constant factors into `scale`; false if there are others than `sum` and `x`, each once.
bool only_factors(const Expr& e, const Expr& sum, const Expr& x, int depth, double* scale, int* sums, int* xs) {
  if (e == sum) return ++*sums == 1;
  if (x ? e == x : !is_call_to(e, "multiply") && !uniform_value(e)) return ++*xs == 1;
  if (auto value = uniform_value(e)) return *scale *= *value, true;
  return depth > 0 && is_call_to(e, "multiply") && only_factors(arg(e, 0), sum, x, depth - 1, scale, sums, xs) &&
         only_factors(arg(e, 1), sum, x, depth - 1, scale, sums, xs);
}

// x * (1 + erf(x / sqrt(2))) / 2 is nn.gelu; x * (1 + tanh(u)) / 2 is x * sigmoid(2u), whatever x and u.
Expr match_gelu(const Expr& e) {
  constexpr int kDepth = 3;
  if (!is_call_to(e, "multiply") || !is_float_tensor(e)) return {};
  auto gate = find_gate(e, kDepth);
  if (!gate) return {};
  double scale = 1;
  int sums = 0, xs = 0;
  if (!gate->erf) {
    if (!only_factors(e, gate->sum, {}, kDepth, &scale, &sums, &xs) || sums != 1 || scale != 0.5) return {};
    Expr two = full_constant(2, tensor_of(e).dtype), u = call("multiply", {gate->inner, two}, {}, gate->sum->span);
    Expr share = call("sigmoid", {u}, {}, gate->sum->span);
    std::function<Expr(const Expr&)> strip =
        [&](const Expr& p) -> Expr {  // the product without its constants, the gate replaced
      if (p == gate->sum) return share;
      if (uniform_value(p)) return {};
      if (!is_call_to(p, "multiply")) return p;
      Expr a = strip(arg(p, 0)), b = strip(arg(p, 1));
      return !a ? b : !b ? a : call("multiply", {a, b}, {}, p->span);
    };
    Expr out = strip(e);
    return out && same_tensor_type(out, e) ? out : Expr();
  }
  for (const char* op : {"multiply", "divide"}) {
    if (!is_call_to(gate->inner, op)) continue;
    bool product = std::string_view(op) == "multiply";
    for (size_t i : {size_t{0}, size_t{1}}) {
      if (!product && i == 1) continue;
      const Expr& x = arg(gate->inner, i);
      if (!is_about(uniform_value(arg(gate->inner, 1 - i)), product ? std::sqrt(0.5) : std::sqrt(2.0))) continue;
      if (!same_tensor_type(x, e)) continue;
      scale = 1, sums = xs = 0;
      if (only_factors(e, gate->sum, x, kDepth, &scale, &sums, &xs) && sums == 1 && xs == 1 && is_about(scale, 0.5))
        return call("nn.gelu", {x}, {}, join_spans(gate->sum->span, e->span));
    }
  }
  return {};
}

}  // namespace

Result<Module> fuse_composites(const Module& module, PassContext&) {
  return rewrite_functions(module, [](const Expr& function) {
    UseCounts uses = count_uses(function);
    // Layer normalisations made here, with the expressions they replace, whose uses are known.
    std::unordered_map<const ExprNode*, Expr> original_of;
    std::vector<Expr> kept;
    return rewrite_expr(function, [&](const Expr& original, const Expr& e) {
      Expr out = match_bare(e);
      if (!out) out = absorb(e, uses, original_of);
      if (!out) {
        Expr gelu = match_gelu(e);
        return gelu ? gelu : e;
      }
      original_of[out.get()] = original;
      kept.push_back(out);
      return out;
    });
  });
}

}  // namespace tilewright::relay
