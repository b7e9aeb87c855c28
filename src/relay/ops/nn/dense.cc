// SPDX-License-Identifier: Apache-2.0
// Matrix products.
#include <algorithm>

#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/nn/gemm.h"
#include "relay/ops/tensor/layout.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

Status same_depth(const TypeArgs& args, const Dim& a, const Dim& b) {
  if (dims_differ(a, b))
    return type_error(format("the inner sizes of {} and {} are {} and {}", type_str(args.types[0]),
                             type_str(args.types[1]), a.str(), b.str()));
  return Ok{};
}

// The type of (..., K) times a weight with `n` outputs and `k` inputs.
Result<Type> dense_result(const TypeArgs& args, const Dim& k, Dim n, const std::string& out_dtype) {
  const auto& data = args.tensor(0);
  TW_TRY_STATUS(product_dtypes(args));
  if (data.shape.empty()) return type_error("the data is a scalar");
  TW_TRY_STATUS(same_depth(args, data.shape.back(), k));
  Shape out = data.shape;
  out.back() = std::move(n);
  return tensor_type(std::move(out), TW_TRY(number_dtype_or(out_dtype, data.dtype)));
}

Result<Type> dense_type(const TypeArgs& args) {
  const auto& a = attrs_of<DenseAttrs>(args);
  const auto& w = args.tensor(1);
  if (w.shape.size() != 2) return type_error(format("the weight {} is not (units, in)", shape_str(w.shape)));
  if (a.units && dims_differ(w.shape[0], Dim(*a.units)))
    return type_error(format("units is {}, but the weight is {}", *a.units, shape_str(w.shape)));
  return dense_result(args, w.shape[1], w.shape[0], a.out_dtype);
}

Result<Layout> pack_layout(const DensePackAttrs& a) {
  Layout l = TW_TRY(parse_layout(a.weight_layout));
  if (l.find('N') < 0 || l.find('C') < 0 || l.find_block('C') >= 0 || l.rank() != (l.find_block('N') >= 0 ? 3u : 2u))
    return type_error(format("weight_layout \"{}\" is not NC or NC{{v}}n", a.weight_layout));
  return l;
}
Result<Type> dense_pack_type(const TypeArgs& args) {
  const auto& a = attrs_of<DensePackAttrs>(args);
  Layout l = TW_TRY(pack_layout(a));
  const auto& w = args.tensor(1);
  LogicalSizes logical = logical_sizes(l, a.units, {});
  Shape plain = TW_TRY(relayout_shape(l, TW_TRY(parse_layout("NC")), w.shape, logical));
  return dense_result(args, plain[1], plain[0], a.out_dtype);
}

Result<Type> matmul_type(const TypeArgs& args) {
  const auto& a = attrs_of<MatmulAttrs>(args);
  const auto &x = args.tensor(0), &w = args.tensor(1);
  TW_TRY_STATUS(product_dtypes(args));
  if (x.shape.size() < 2 || w.shape.size() != 2)
    return type_error(format("operands are {} and {}, not matrices", shape_str(x.shape), shape_str(w.shape)));
  Shape out = x.shape;
  const size_t n = out.size();
  if (a.transpose_a) std::swap(out[n - 1], out[n - 2]);
  TW_TRY_STATUS(same_depth(args, out[n - 1], w.shape[a.transpose_b ? 1 : 0]));
  out[n - 1] = w.shape[a.transpose_b ? 0 : 1];
  if (a.units && dims_differ(out[n - 1], Dim(*a.units)))
    return type_error(format("units is {}, but the result has {} columns", *a.units, out[n - 1].str()));
  return tensor_type(std::move(out), TW_TRY(number_dtype_or(a.out_dtype, x.dtype)));
}

Result<Type> batch_matmul_type(const TypeArgs& args) {
  const auto& a = attrs_of<BatchMatmulAttrs>(args);
  const auto &x = args.tensor(0), &y = args.tensor(1);
  TW_TRY_STATUS(product_dtypes(args));
  if (x.shape.size() < 2 || y.shape.size() < 2)
    return type_error(format("operands are {} and {}, not matrices", shape_str(x.shape), shape_str(y.shape)));
  auto dim = [](const TensorTypeNode& t, bool transposed, size_t from_end) {
    return t.shape[t.shape.size() - (transposed ? 3 - from_end : from_end)];
  };
  TW_TRY_STATUS(same_depth(args, dim(x, a.transpose_a, 1), dim(y, a.transpose_b, 2)));
  Shape out =
      TW_TRY(broadcast_shapes(Shape(x.shape.begin(), x.shape.end() - 2), Shape(y.shape.begin(), y.shape.end() - 2)));
  out.push_back(dim(x, a.transpose_a, 2));
  out.push_back(dim(y, a.transpose_b, 1));
  return tensor_type(std::move(out), TW_TRY(number_dtype_or(a.out_dtype, x.dtype)));
}

// An operand as a stack of row-major (rows x cols) matrices of doubles, with norms along the `kept` index for the
// bounds.
struct Matrices {
  int64_t rows = 0, cols = 0, count = 0;
  std::vector<double> data;          // count x rows x cols
  std::vector<double> norm, spread;  // count x kept: root sums of squares of values and of bounds
};
Matrices matrices(const Value& v, bool transpose, bool keep_rows) {
  const size_t rank = v.shape.size();
  Matrices m;
  m.rows = v.shape[rank - 2];
  m.cols = v.shape[rank - 1];
  m.count = product(v.shape, 0, rank - 2);
  const int64_t area = m.rows * m.cols;
  auto oriented = [&](const std::vector<double>& from) {
    if (!transpose) return from;
    std::vector<double> to(from.size());
    for (int64_t n = 0; n < m.count; ++n)
      for (int64_t r = 0; r < m.rows; ++r)
        for (int64_t c = 0; c < m.cols; ++c) to[n * area + c * m.rows + r] = from[n * area + r * m.cols + c];
    return to;
  };
  std::vector<double> bounds;
  if (v.is_float()) {
    m.data = oriented(v.f);
    if (!v.bound.empty()) bounds = oriented(v.bound);
  } else {
    m.data = oriented({v.i.begin(), v.i.end()});
  }
  if (transpose) std::swap(m.rows, m.cols);
  auto norms = [&](const std::vector<double>& x) {
    const int64_t kept = keep_rows ? m.rows : m.cols;
    std::vector<double> out(static_cast<size_t>(m.count * kept), 0.0);
    if (x.empty()) return out;
    for (int64_t n = 0; n < m.count; ++n)
      for (int64_t r = 0; r < m.rows; ++r)
        for (int64_t c = 0; c < m.cols; ++c) {
          double e = x[n * area + r * m.cols + c];
          out[n * kept + (keep_rows ? r : c)] += e * e;
        }
    for (double& e : out) e = std::sqrt(e);
    return out;
  };
  if (v.is_float()) {
    m.norm = norms(m.data);
    m.spread = norms(bounds);
  }
  return m;
}

// For integers: exact, wrapping at 64 bits.
void multiply_exactly(const Value& a, bool transpose_a, int64_t a_at, const Value& b, bool transpose_b, int64_t b_at,
                      int64_t m, int64_t n, int64_t k, Value* out, int64_t out_at) {
  for (int64_t r = 0; r < m; ++r)
    for (int64_t c = 0; c < n; ++c) {
      uint64_t sum = 0;
      for (int64_t i = 0; i < k; ++i)
        sum += static_cast<uint64_t>(a.i[a_at + (transpose_a ? i * m + r : r * k + i)]) *
               static_cast<uint64_t>(b.i[b_at + (transpose_b ? c * k + i : i * n + c)]);
      out->i[out_at + r * n + c] = wrap_int(out->dtype, static_cast<int64_t>(sum));
    }
}

// Batched a (M x K) times b (K x N) with broadcast batch axes.
Value multiply(const Value& a, bool transpose_a, const Value& b, bool transpose_b, DataType dtype,
               const std::vector<int64_t>& shape) {
  Value out = make_value(dtype, shape);
  const size_t rank = shape.size();
  Matrices x = matrices(a, transpose_a, true), y = matrices(b, transpose_b, false);
  const int64_t m = x.rows, n = y.cols, k = x.cols;
  std::vector<double> result(static_cast<size_t>(out.size()), 0.0);
  std::vector<int64_t> batch(shape.begin(), shape.begin() + static_cast<int64_t>(rank) - 2);
  auto lead = [](const Value& v) { return std::vector<int64_t>(v.shape.begin(), v.shape.end() - 2); };
  const double u = unit_roundoff(dtype) * kSumSlack,
               per_term = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(k, 1)));
  const bool exact = !a.is_float() && !b.is_float() && !dtype.is_float();
  if (dtype.is_float()) out.bound.resize(result.size());
  walk<2>(batch, {broadcast_strides(lead(a), batch), broadcast_strides(lead(b), batch)},
          [&](int64_t o, const int64_t* at) {
            if (exact)
              return multiply_exactly(a, transpose_a, at[0] * m * k, b, transpose_b, at[1] * k * n, m, n, k, &out,
                                      o * m * n);
            gemm_double(m, n, k, x.data.data() + at[0] * m * k, k, y.data.data() + at[1] * k * n, n,
                        result.data() + o * m * n, n);
            if (!dtype.is_float() || x.norm.empty()) return;
            for (int64_t r = 0; r < m; ++r)
              for (int64_t c = 0; c < n; ++c) {
                const size_t i = at[0] * m + r, j = at[1] * n + c;
                out.bound[o * m * n + r * n + c] =
                    u * x.norm[i] * y.norm[j] + per_term * (x.spread[i] * y.norm[j] + x.norm[i] * y.spread[j]);
              }
          });
  if (out.is_float())
    out.f = std::move(result);
  else if (!exact)
    for (size_t i = 0; i < result.size(); ++i) out.i[i] = float_to_int(dtype, result[i]);
  return out;
}

Value as_matrix(const Value& v) {
  const int64_t k = v.shape.back();
  return reshaped(v, {k ? v.size() / k : product(v.shape, 0, v.shape.size() - 1), k});
}
Result<std::vector<Value>> dense_value(const EvalArgs& args, const Value& weight) {
  const Value data = as_matrix(args.inputs[0]);
  Value out = multiply(data, false, weight, true, out_tensor(args).dtype, {data.shape[0], weight.shape[0]});
  return one(reshaped(std::move(out), out_shape(args)));
}
Result<std::vector<Value>> eval_dense(const EvalArgs& args) { return dense_value(args, args.inputs[1]); }
Result<std::vector<Value>> eval_dense_pack(const EvalArgs& args) {
  const auto& a = args.as<DensePackAttrs>();
  Layout l = TW_TRY(pack_layout(a));
  return dense_value(args, relayout(args.inputs[1], l, TW_TRY(parse_layout("NC")), logical_sizes(l, a.units, {})));
}
Result<std::vector<Value>> eval_matmul(const EvalArgs& args) {
  const auto& a = args.as<MatmulAttrs>();
  return one(
      multiply(args.inputs[0], a.transpose_a, args.inputs[1], a.transpose_b, out_tensor(args).dtype, out_shape(args)));
}
Result<std::vector<Value>> eval_batch_matmul(const EvalArgs& args) {
  const auto& a = args.as<BatchMatmulAttrs>();
  return one(
      multiply(args.inputs[0], a.transpose_a, args.inputs[1], a.transpose_b, out_tensor(args).dtype, out_shape(args)));
}

OpDef product_op(const char* name, const char* doc, const char* second, Result<Type> (*type)(const TypeArgs&),
                 Result<std::vector<Value>> (*eval)(const EvalArgs&), AttrsRef (*make)()) {
  return define_op(name, doc, {{"data", "floats or integers"}, {"weight", second}}, OpPattern::kOutEWiseFusable, type,
                   eval, make);
}

// The types of untyped weights.
Type dense_weight(const AttrsRef& attrs, size_t index, const TensorTypeNode& data) {
  const auto& units = attrs_as<DenseAttrs>(attrs)->units;
  if (index != 1 || !units || data.shape.empty()) return {};
  return tensor_type({Dim(*units), data.shape.back()}, data.dtype);
}
Type matmul_weight(const AttrsRef& attrs, size_t index, const TensorTypeNode& data) {
  const auto& a = *attrs_as<MatmulAttrs>(attrs);
  const size_t rank = data.shape.size();
  if (index != 1 || !a.units || rank == 0) return {};
  const Dim units(*a.units), depth = data.shape[a.transpose_a && rank > 1 ? rank - 2 : rank - 1];
  return tensor_type(a.transpose_b ? Shape{units, depth} : Shape{depth, units}, data.dtype);
}

}  // namespace

std::vector<OpDef> dense_ops() {
  return {
      product_op("nn.dense", "(..., K) x (N, K) -> (..., N).", "(N, K)", dense_type, eval_dense,
                 make_default_attrs<DenseAttrs>)
          .with({.narrowing = Narrowing::kAlways, .operand_type = dense_weight}),
      product_op("nn.contrib_dense_pack", "nn.dense with the weight in blocks of outputs.", "(ceil(N/v), K, v)",
                 dense_pack_type, eval_dense_pack, make_default_attrs<DensePackAttrs>),
      product_op("nn.matmul", "(..., M, K) x (K, N) -> (..., M, N), either transposed.", "a matrix", matmul_type,
                 eval_matmul, make_default_attrs<MatmulAttrs>)
          .with({.narrowing = Narrowing::kAlways, .operand_type = matmul_weight}),
      product_op("nn.batch_matmul", "(B..., M, K) x (B..., N, K) -> (B..., M, N); batch axes broadcast.", "matrices",
                 batch_matmul_type, eval_batch_matmul, make_default_attrs<BatchMatmulAttrs>)
          .with({.narrowing = Narrowing::kAlways}),
  };
}

}  // namespace tilewright::relay
