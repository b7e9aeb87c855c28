// SPDX-License-Identifier: Apache-2.0
// Reductions, arg-reductions, scans and sorts.
#include "base/format.h"
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

struct Reduced {
  Ints axes;
  bool keepdims = true;
  bool nothing = false;  // empty axes with noop_with_empty_axes: no reduction
};

// Axes are an attribute; from some opset on an input (13 for ReduceSum, 18 for the others).
Reduced read_axes(NodeContext& c, int since_input) {
  Reduced r;
  r.keepdims = c.int_attr("keepdims", 1) != 0;
  if (c.opset() >= since_input) {
    if (c.has(1)) r.axes = c.ints(1, "axes");
    r.nothing = r.axes.empty() && c.int_attr("noop_with_empty_axes", 0) != 0;
  } else {
    r.axes = c.ints_attr("axes");
  }
  int64_t rank = c.rank(c.input(0));
  for (int64_t& a : r.axes) a = c.axis(a, rank);
  if (r.axes.empty())
    for (int64_t i = 0; i < rank; ++i) r.axes.push_back(i);
  return r;
}

using Around = Expr (*)(NodeContext&, const Expr&);
Expr same(NodeContext&, const Expr& e) { return e; }
Expr absolute(NodeContext& c, const Expr& e) { return c.call("abs", {e}); }
Expr square(NodeContext& c, const Expr& e) { return c.mul(e, e); }
// Sums of integers whose roots and logarithms fit the type, where they do not.
Expr wide(NodeContext& c, const Expr& e) { return c.dtype(e).is_float() ? e : c.cast(e, kFloat64); }
Expr wide_square(NodeContext& c, const Expr& e) { return square(c, wide(c, e)); }
Expr root(NodeContext& c, const Expr& e) { return c.cast(c.call("sqrt", {e}), c.dtype(c.input(0))); }
Expr logarithm(NodeContext& c, const Expr& e) { return c.cast(c.call("log", {e}), c.dtype(c.input(0))); }

template <const char* kOp, Around kBefore, Around kAfter, int kAxesInput>
Values reduction(NodeContext& c) {
  Reduced r = read_axes(c, kAxesInput);
  Expr x = kBefore(c, c.input(0));
  // Without a reduction, what surrounds it (square, log ...) still applies.
  if (!r.nothing && !r.axes.empty()) {
    // The graph IR has no maximum of booleans.
    bool boolean = c.dtype(x).is_bool();
    Expr y = c.reduce(kOp, boolean ? c.cast(x, kUInt8) : x, r.axes, r.keepdims);
    x = boolean ? c.cast(y, kBool) : y;
  }
  return {kAfter(c, x)};
}

constexpr char kSum[] = "sum", kMean[] = "mean", kProd[] = "prod", kLargest[] = "max", kSmallest[] = "min";

Values log_sum_exp(NodeContext& c) {
  Reduced r = read_axes(c, 18);
  Expr x = c.input(0);
  if (r.nothing || r.axes.empty()) return {x};
  DataType dtype = c.dtype(x), wide = dtype.is_float() ? dtype : kFloat64;
  Expr wide_x = c.cast(x, wide);
  for (const Dim& d : c.shape(x))
    if (d == Dim(0))
      return {c.cast(c.call("log", {c.reduce("sum", c.call("exp", {wide_x}), r.axes, r.keepdims)}), dtype)};
  // Subtracts the largest finite element first, so that exp does not overflow.
  Expr largest = c.reduce("max", wide_x, r.axes, true);
  Expr finite = c.where(c.call("isinf", {largest}), c.scalar(0, wide), largest);
  Expr sum = c.call("log", {c.reduce("sum", c.call("exp", {c.sub(wide_x, finite)}), r.axes, true)});
  Expr y = c.add(sum, finite);
  return {c.cast(r.keepdims ? y : c.squeeze(y, r.axes), dtype)};
}

Values arg_reduce(NodeContext& c, const char* op) {
  Expr x = c.input(0);
  int64_t axis = c.axis(c.int_attr("axis", 0), c.rank(x));
  return {c.call(op, {x}, make_attrs<relay::ArgReduceAttrs>([&](auto& a) {
                   a.axis = Ints{axis};
                   a.keepdims = c.int_attr("keepdims", 1) != 0;
                   a.select_last_index = c.int_attr("select_last_index", 0) != 0;
                   a.dtype = kInt64;
                 }))};
}
Values arg_max(NodeContext& c) { return arg_reduce(c, "argmax"); }
Values arg_min(NodeContext& c) { return arg_reduce(c, "argmin"); }

Values scan(NodeContext& c, const char* op) {
  Expr x = c.input(0);
  int64_t axis = c.axis(c.int_scalar(1, "axis"), c.rank(x));
  return {c.call(op, {x}, make_attrs<relay::ScanopAttrs>([&](auto& a) {
                   a.axis = axis;
                   a.exclusive = c.int_attr("exclusive", 0) != 0;
                   a.reverse = c.int_attr("reverse", 0) != 0;
                 }))};
}
Values cum_sum(NodeContext& c) { return scan(c, "cumsum"); }
Values cum_prod(NodeContext& c) { return scan(c, "cumprod"); }

Values top_k(NodeContext& c) {
  Expr x = c.input(0);
  int64_t k = c.opset() < 10 ? c.int_attr("k") : c.int_scalar(1, "k");
  int64_t axis = c.axis(c.int_attr("axis", -1), c.rank(x));
  if (k < 0) c.fail(format("its k is {}", k));
  Expr pair = c.call("topk", {x}, make_attrs<relay::TopKAttrs>([&](auto& a) {
                       a.k = k;
                       a.axis = axis;
                       a.is_ascend = c.int_attr("largest", 1) == 0;
                       a.dtype = kInt64;
                     }));
  return {c.get(pair, 0), c.get(pair, 1)};
}

Values unique(NodeContext& c) {
  Expr x = c.input(0);
  Expr all = c.call("unique", {x}, make_attrs<relay::UniqueAttrs>([&](auto& a) {
                      if (c.has_attr("axis")) a.axis = c.axis(c.int_attr("axis"), c.rank(x));
                      a.sorted = c.int_attr("sorted", 1) != 0;
                    }));
  return {c.get(all, 0), c.get(all, 1), c.get(all, 2), c.get(all, 3)};
}

constexpr ConverterEntry kReduceConverters[] = {
    {"ReduceSum", 1, reduction<kSum, same, same, 13>},
    {"ReduceMean", 1, reduction<kMean, same, same, 18>},
    {"ReduceProd", 1, reduction<kProd, same, same, 18>},
    {"ReduceMax", 1, reduction<kLargest, same, same, 18>},
    {"ReduceMin", 1, reduction<kSmallest, same, same, 18>},
    {"ReduceL1", 1, reduction<kSum, absolute, same, 18>},
    {"ReduceL2", 1, reduction<kSum, wide_square, root, 18>},
    {"ReduceSumSquare", 1, reduction<kSum, square, same, 18>},
    {"ReduceLogSum", 1, reduction<kSum, wide, logarithm, 18>},
    {"ReduceLogSumExp", 1, log_sum_exp},
    {"ArgMax", 1, arg_max},
    {"ArgMin", 1, arg_min},
    {"CumSum", 11, cum_sum},
    {"CumProd", 26, cum_prod},
    {"TopK", 1, top_k},
    {"Unique", 11, unique},
};

}  // namespace

std::span<const ConverterEntry> reduce_converters() { return kReduceConverters; }

}  // namespace tilewright::onnx
