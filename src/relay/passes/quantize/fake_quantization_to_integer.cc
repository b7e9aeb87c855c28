// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/quantize/fake_quantization_to_integer.h"

#include <algorithm>
#include <unordered_set>

#include "base/format.h"
#include "relay/calls.h"
#include "relay/ops/attrs.h"
#include "relay/ops/quantize/attrs_qnn.h"
#include "relay/passes/pipeline/fold_constant.h"
#include "relay/passes/quantize/byte_products.h"
#include "relay/passes/quantize/fake_quantized_region.h"

namespace tilewright::relay {
namespace {

// Whether it is computed from dequantizes and constants only.
bool fake_quantized(const Expr& root) {
  std::vector<Expr> waiting{root};
  std::unordered_set<const ExprNode*> seen;
  bool any = false;
  while (!waiting.empty()) {
    const Expr e = waiting.back();
    waiting.pop_back();
    if (!seen.insert(e.get()).second || as<ConstantNode>(e)) continue;
    if (is_call_to(e, "qnn.dequantize")) {
      any = true;
      continue;
    }
    if (!called_op(e) && !as<TupleNode>(e) && !as<TupleGetItemNode>(e)) return false;
    for (const Expr& child : children(e)) waiting.push_back(child);
  }
  return any;
}

// The quantize as integer arithmetic, or unchanged; `culprit` is the operator without a rule.
Expr realized(const Expr& e, const FakeQuantizationRules& rules, Expr* culprit) {
  const auto& a = attrs_of<QuantizeAttrs>(e);
  auto target = affine_of(arg(e, 1), arg(e, 2), tensor_of(e).dtype, a.axis, tensor_of(e).shape.size());
  if (!target) return e;
  FakeQuantizedRegion region(*target, rules, false);
  Found out = region.integers(arg(e, 0), true);
  if (!out) {
    if (!*culprit && fake_quantized(arg(e, 0))) *culprit = region.culprit();
    return e;
  }
  if (!region.any()) return e;
  if (same_numbers(out->as, *target)) return out->integers;
  if (!target->uniform()) return e;
  auto made = requantize(out->integers, out->as, *target, e->span);
  return made.ok() ? *made : e;
}

// After quantisation-aware training, integer arithmetic may continue without a quantize: an operator on dequantized
// operands becomes the dequantized result of its integer form.
Expr with_integers(const Expr& e, const FakeQuantizationRules& rules) {
  const OpDef* op = called_op(e);
  const auto* call = as<CallNode>(e);
  if (!op || !as_tensor(e->type) || std::string_view(op->name).starts_with("qnn.")) return e;
  const bool any =
      std::any_of(call->args.begin(), call->args.end(), [](const Expr& a) { return is_call_to(a, "qnn.dequantize"); });
  if (!any || !is_float_tensor(e)) return e;
  FakeQuantizedRegion region(Affine{{}, {}, kInt32, 0}, rules, true);  // no target scale: results are not requantised
  Found out = region.integers(e, false);
  if (!out || !region.any()) return e;
  auto made = try_call("qnn.dequantize", {out->integers, scale_expr(out->as), zero_expr(out->as)},
                       make_attrs<DequantizeAttrs>([&](auto& attrs) {
                         attrs.axis = out->as.uniform() ? -1 : out->as.axis;
                         attrs.out_dtype = tensor_of(e).dtype.str();
                       }),
                       e->span);
  return made.ok() && same_tensor_type(*made, e) ? *made : e;
}

bool is_product(const Expr& e) {
  return is_call_to(e, "nn.conv2d") || is_call_to(e, "nn.dense") || is_call_to(e, "nn.matmul");
}

// A convolution of groups whose sums of bytes are exact in float32, by which IntegerProducts computes them: kernels of
// floats are the same with numbers that are whole.
bool is_exact_in_floats(const Expr& e, const Target& target) {
  constexpr int64_t kMostTerms = (int64_t{1} << 24) / (255 * 128);
  const auto shape = static_shape(tensor_of(arg(e, 1)).shape);
  if (!is_call_to(e, "nn.conv2d") || target.vector_bits < 128 || attrs_of<Conv2DAttrs>(e).groups == 1 || !shape)
    return false;
  const auto outputs = attrs_of<Conv2DAttrs>(e).kernel_layout.find('O');
  int64_t terms = 1;
  for (size_t i = 0; i < shape->size(); ++i) terms *= i == outputs ? 1 : (*shape)[i];
  return terms <= kMostTerms;
}

// The same where only a run has the scale and zero point of the data: dynamic quantisation.
Expr with_run_time_grid(const Expr& e) {
  const Expr x = arg(e, 0), w = arg(e, 1);
  const auto affine = affine_of(arg(w, 1), arg(w, 2), tensor_of(arg(w, 0)).dtype, attrs_of<DequantizeAttrs>(w).axis,
                                tensor_of(w).shape.size());
  const auto is_scalar = [](const Expr& v) { return as_tensor(v->type) && tensor_of(v).shape.empty(); };
  if (!is_call_to(e, "nn.dense") || !affine || !affine->centred() || !is_scalar(arg(x, 1)) || !is_scalar(arg(x, 2)) ||
      (!affine->uniform() && affine->axis != 0) || !is_byte(tensor_of(arg(x, 0)).dtype) || !is_byte(affine->dtype) ||
      tensor_of(e).dtype != kFloat32)
    return e;
  AttrsRef attrs(attrs_of<DenseAttrs>(e).clone());
  const_cast<DenseAttrs*>(attrs_as<DenseAttrs>(attrs))->out_dtype = "int32";
  auto sums = try_call(
      "qnn.dense", {arg(x, 0), arg(w, 0), cast(arg(x, 2), kInt32), zero_expr(*affine), arg(x, 1), scale_expr(*affine)},
      attrs, e->span);
  if (!sums.ok()) return e;
  const Expr step = call("multiply", {scale_expr(*affine), arg(x, 1)}, {}, e->span);
  return call("multiply", {cast(*sums, kFloat32), step}, {}, e->span);
}

// A product of dequantized bytes as the dequantized integer product.
Expr with_integer_sums(const Expr& e, const Target& target) {
  if (!is_call_to(arg(e, 0), "qnn.dequantize") || !is_call_to(arg(e, 1), "qnn.dequantize")) return e;
  if (!constant_data(fold_expr(arg(arg(e, 1), 0), int64_t{1} << 28)) ||
      !(gains_by_bytes(e, target) || may_keep_bytes(e, target) || is_exact_in_floats(e, target)))
    return e;
  const bool at_run_time = !constant_data(arg(arg(e, 0), 1)) || !constant_data(arg(arg(e, 0), 2));
  return at_run_time ? with_run_time_grid(e) : with_integers(e, {});
}

// A quantized mean over a whole map: the producer stores the map as bytes and the sum reads those. As floats the map
// would take four times the memory.
Expr mean_of_bytes(const Expr& e) {
  const Expr pool = arg(e, 0);
  const auto shape = static_shape(tensor_of(arg(pool, 0)).shape);
  if (!shape || shape->size() != 4) return e;
  bool whole = is_call_to(pool, "nn.global_avg_pool2d") && attrs_of<GlobalPool2DAttrs>(pool).layout == "NCHW";
  if (is_call_to(pool, "nn.avg_pool2d")) {
    const auto& a = attrs_of<AvgPool2DAttrs>(pool);
    whole = a.layout == "NCHW" && a.pool_size == std::vector<int64_t>{(*shape)[2], (*shape)[3]} &&
            std::all_of(a.padding.begin(), a.padding.end(), [](int64_t p) { return p == 0; }) &&
            std::all_of(a.dilation.begin(), a.dilation.end(), [](int64_t d) { return d == 1; });
  }
  if (!whole) return e;
  const Expr real = arg(pool, 0), bytes = call("annotation.stop_fusion", {arg(real, 0)}, {}, e->span);
  const Expr numbers = call("qnn.dequantize", {bytes, arg(real, 1), arg(real, 2)}, as<CallNode>(real)->attrs, e->span);
  const Expr mean = call("mean", {numbers}, make_attrs<ReduceAttrs>([](auto& r) {
                           r.axis = std::vector<int64_t>{2, 3};
                           r.keepdims = true;
                         }),
                         e->span);
  return call("qnn.quantize", {mean, arg(e, 1), arg(e, 2)}, as<CallNode>(e)->attrs, e->span);
}

// A sum of two dequantized maps: one is stored as bytes, and the other's kernel reads it; otherwise the first would be
// stored as floats.
Expr with_stored_operand(const Expr& e) {
  const Expr stored = arg(e, 0), other = arg(e, 1);
  for (const Expr& side : {stored, other})
    if (!is_call_to(side, "qnn.dequantize") || tensor_of(arg(side, 0)).dtype.bits != 8 || !as<CallNode>(arg(side, 0)))
      return e;
  const Expr bytes = call("annotation.stop_fusion", {arg(stored, 0)}, {}, e->span);
  const Expr numbers =
      call("qnn.dequantize", {bytes, arg(stored, 1), arg(stored, 2)}, as<CallNode>(stored)->attrs, e->span);
  return call("add", {numbers, other}, as<CallNode>(e)->attrs, e->span);
}

// A quantize of values that were only moved or selected since a dequantize with the same scale.
Expr moved_as_integers(const Expr& e, const Target& target) {
  const OpDef* op = called_op(arg(e, 0));
  if (!op || as<CallNode>(arg(e, 0))->args.empty() || !is_call_to(arg(arg(e, 0), 0), "qnn.dequantize")) return e;
  if (Expr mean = keeps_bytes(target) ? mean_of_bytes(e) : e; mean != e) return mean;
  Expr culprit;
  const Elements elements = op->facts.elements;
  const bool moves = of_first_operand(elements) &&
                     (elements != Elements::kExtreme || is_call_to(arg(e, 0), "nn.max_pool2d"));  // has an 8-bit kernel
  const Expr out = moves ? realized(e, {}, &culprit) : e;
  return out == e || is_call_to(out, "qnn.requantize") ? e : out;
}

}  // namespace

Result<Module> integer_arithmetic(const Module& module, PassContext& context) {
  if (!context.target) return module;
  const Target target = *context.target;
  return rewrite_module(module, [&](const Expr&, const Expr& e) {
    if (is_call_to(e, "qnn.quantize")) return moved_as_integers(e, target);
    if (is_call_to(e, "add") && keeps_bytes(target)) return with_stored_operand(e);
    return is_product(e) ? with_integer_sums(e, target) : e;
  });
}

Result<Module> fake_quantization_to_integer(const Module& module, bool hard_fail, bool use_qat,
                                            const FakeQuantizationRules& rules) {
  Expr culprit;
  Module out = rewrite_module(module, [&](const Expr&, const Expr& e) {
    return is_call_to(e, "qnn.quantize") ? realized(e, rules, &culprit) : e;
  });
  if (hard_fail && culprit) {
    const OpDef* op = called_op(culprit);
    return Diagnostic(ErrorCode::kUnsupportedOp,
                      format("{} between a dequantize and a quantize has no integer form here",
                             op ? op->name : "what is no operator"),
                      culprit->span ? *culprit->span : "", "without hard_fail the region stays real");
  }
  if (use_qat) return rewrite_module(out, [&](const Expr&, const Expr& e) { return with_integers(e, rules); });
  return out;
}

Result<Module> fake_quantization_to_integer(const Module& module, PassContext&) {
  return fake_quantization_to_integer(module, false);
}

}  // namespace tilewright::relay
