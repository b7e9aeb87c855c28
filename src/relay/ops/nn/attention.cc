// SPDX-License-Identifier: Apache-2.0
// Fused attention. The reference composes those of the products and the softmax that it replaces.
#include <algorithm>

#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/nn/attrs_attention.h"
#include "relay/ops/reference.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

constexpr std::string_view kAxes = "BHSD";

// The index of each of B, H, S, D in a layout.
Result<std::vector<size_t>> axes_of(const std::string& layout) {
  std::string sorted = layout, wanted(kAxes);
  std::sort(sorted.begin(), sorted.end());
  std::sort(wanted.begin(), wanted.end());
  if (sorted != wanted) return type_error(format("layout \"{}\" does not name B, H, S and D once each", layout));
  std::vector<size_t> out;
  for (char c : kAxes) out.push_back(layout.find(c));
  return out;
}

Result<Type> attention_type(const TypeArgs& args) {
  const auto& a = attrs_of<AttentionAttrs>(args);
  if (args.types.size() < 3 || args.types.size() > 4)
    return type_error(format("it takes query, key, value and perhaps a mask, not {} operands", args.types.size()));
  if (a.num_heads < 1 || a.group < 1 || a.num_heads % a.group != 0)
    return type_error(format("{} heads in groups of {}", a.num_heads, a.group));
  Shape shapes[3];
  const std::string* layouts[] = {&a.query_layout, &a.key_layout, &a.value_layout};
  const int64_t first[] = {a.query_head, a.key_head, a.value_head};
  const char* names[] = {"query", "key", "value"};
  for (size_t i = 0; i < 3; ++i) {
    const auto& t = args.tensor(i);
    if (t.shape.size() != 4 || !t.dtype.is_float() || t.dtype != args.tensor(0).dtype)
      return type_error(
          format("{} is {}, not floats of rank 4 and the query's dtype", names[i], type_str(args.types[i])));
    for (size_t at : TW_TRY(axes_of(*layouts[i]))) shapes[i].push_back(t.shape[at]);
    const int64_t heads = a.num_heads / (i == 0 ? 1 : a.group);
    if (first[i] < 0 || !shapes[i][1].is_const() || first[i] > shapes[i][1].value() - heads)
      return type_error(
          format("{} has {} heads, not {} from head {} on", names[i], shapes[i][1].str(), heads, first[i]));
  }
  auto same = [](const Dim& x, const Dim& y) { return !dims_differ(x, y); };
  if (!same(shapes[0][0], shapes[1][0]) || !same(shapes[0][0], shapes[2][0]))
    return type_error("query, key and value have different batches");
  if (!same(shapes[0][3], shapes[1][3]))
    return type_error(format("heads of query and key have sizes {} and {}", shapes[0][3].str(), shapes[1][3].str()));
  if (!same(shapes[1][2], shapes[2][2]))
    return type_error(format("there are {} keys and {} values", shapes[1][2].str(), shapes[2][2].str()));
  if (args.types.size() == 4) {
    const auto& mask = args.tensor(3);
    const Shape scores = {shapes[0][0], Dim(a.num_heads), shapes[0][2], shapes[1][2]};
    bool fits = mask.shape.size() == 4 && mask.dtype == args.tensor(0).dtype;
    for (size_t d = 0; fits && d < 4; ++d)
      fits = same(mask.shape[d], scores[d]) || (mask.shape[d].is_const() && mask.shape[d].value() == 1);
    if (!fits)
      return type_error(
          format("mask is {}, which does not broadcast to {}", type_str(args.types[3]), shape_str(scores)));
  }
  const Shape result = {shapes[0][0], Dim(a.num_heads), shapes[0][2], shapes[2][3]};
  Shape out(4);
  std::vector<size_t> at = TW_TRY(axes_of(a.out_layout));
  for (size_t i = 0; i < 4; ++i) out[at[i]] = result[i];
  return tensor_type(std::move(out), args.tensor(0).dtype);
}

Result<Value> evaluate_one(const char* op, std::vector<Value> inputs, const AttrsRef& attrs, const Type& type) {
  auto out = find_op(op)->evaluate({inputs, attrs, type});
  TW_TRY_STATUS(out);
  return std::move((*out)[0]);
}

Result<std::vector<Value>> eval_attention(const EvalArgs& args) {
  const auto& a = args.as<AttentionAttrs>();
  // `heads` heads of an operand, from `first` on, each repeated `times`, as (B, H, S, D).
  auto operand = [&](size_t i, const std::string& layout, int64_t first, int64_t times) -> Result<Value> {
    const Value& v = args.inputs[i];
    std::vector<size_t> at = TW_TRY(axes_of(layout));
    std::vector<int64_t> strides = row_major_strides(v.shape), shape, permuted;
    for (size_t d : at) shape.push_back(v.shape[d]), permuted.push_back(strides[d]);
    shape = {shape[0], a.num_heads / times, times, shape[2], shape[3]};
    Value out = strided_copy(v, shape, {permuted[0], permuted[1], 0, permuted[2], permuted[3]}, first * permuted[1]);
    return reshaped(std::move(out), {shape[0], a.num_heads, shape[3], shape[4]});
  };
  Value q = TW_TRY(operand(0, a.query_layout, a.query_head, 1)),
        k = TW_TRY(operand(1, a.key_layout, a.key_head, a.group)),
        v = TW_TRY(operand(2, a.value_layout, a.value_head, a.group));
  const DataType dtype = q.dtype;
  const std::vector<int64_t> shape{q.shape[0], a.num_heads, q.shape[2], k.shape[2]},
      result{q.shape[0], a.num_heads, q.shape[2], v.shape[3]};
  const Type scores_type = tensor_type(to_shape(shape), dtype);
  auto product = [](bool transposed) {
    return make_attrs<BatchMatmulAttrs>([&](auto& b) { b.transpose_b = transposed; });
  };
  Value scores = TW_TRY(evaluate_one("nn.batch_matmul", {std::move(q), std::move(k)}, product(true), scores_type));
  const double u = unit_roundoff(dtype);
  for (size_t i = 0; i < scores.f.size(); ++i) {
    scores.f[i] *= a.scale;
    if (!scores.bound.empty()) scores.bound[i] = std::fabs(a.scale) * scores.bound[i] + 2 * u * std::fabs(scores.f[i]);
  }
  if (args.inputs.size() == 4)
    scores = TW_TRY(evaluate_one("add", {std::move(scores), args.inputs[3]}, {}, scores_type));
  Value shares = TW_TRY(evaluate_one("nn.softmax", {std::move(scores)},
                                     make_attrs<SoftmaxAttrs>([](auto& s) { s.axis = -1; }), scores_type));
  Value out = TW_TRY(evaluate_one("nn.batch_matmul", {std::move(shares), std::move(v)}, product(false),
                                  tensor_type(to_shape(result), dtype)));
  std::vector<int64_t> strides = row_major_strides(out.shape), permuted;
  for (char c : a.out_layout) permuted.push_back(strides[kAxes.find(c)]);
  return one(strided_copy(out, out_shape(args), permuted));
}

}  // namespace

std::vector<OpDef> attention_ops() {
  OpDef d =
      define_op("nn.attention", "softmax(scale * query key^T + mask) value for every head of every batch. Floats.",
                {{"query", "rank 4 in query_layout"},
                 {"key", "rank 4 in key_layout"},
                 {"value", "rank 4 in value_layout"},
                 {"mask", "optional; broadcasts to (batch, heads, queries, keys)"}},
                OpPattern::kOutEWiseFusable, attention_type, eval_attention, make_default_attrs<AttentionAttrs>);
  d.num_inputs = -1;
  return {d};
}

}  // namespace tilewright::relay
