// SPDX-License-Identifier: Apache-2.0
// Affine quantisation: integers with scales and zero points, and their expressions.
#pragma once
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "relay/calls.h"
#include "relay/ops/quantize/attrs_qnn.h"

namespace tilewright::relay {

// real = scale * (integer - zero), per tensor or per index along `axis`.
struct Affine {
  std::vector<float> scale;
  std::vector<int64_t> zero;
  DataType dtype;
  int64_t axis = 0;
  bool uniform() const { return scale.size() == 1 && zero.size() == 1; }
  // All zero points are 0.
  bool centred() const {
    return std::all_of(zero.begin(), zero.end(), [](int64_t z) { return z == 0; });
  }
  // An unrounded sum of products, wider than activations.
  bool wide() const { return dtype == kInt32 && centred(); }
};
struct Quantized {
  Expr integers;  // a tensor, or a tuple of several results
  Affine as;
};
using Found = std::optional<Quantized>;

inline bool near(float a, float b) { return std::fabs(a - b) <= 1e-6f * std::fabs(b); }
inline bool same_numbers(const Affine& a, const Affine& b) {
  return a.dtype == b.dtype && a.zero == b.zero &&
         std::equal(a.scale.begin(), a.scale.end(), b.scale.begin(), b.scale.end(),
                    [](float x, float y) { return near(x, y); }) &&
         (a.uniform() || a.axis == b.axis);
}
inline bool is_byte(DataType t) { return t == kInt8 || t == kUInt8; }

inline Expr scale_expr(const Affine& a) {
  if (a.scale.size() == 1) return make_scalar(a.scale[0]);
  return make_constant(Tensor::from<float>(kFloat32, {static_cast<int64_t>(a.scale.size())}, a.scale));
}
inline Expr zero_expr(const Affine& a) {
  if (a.zero.size() == 1) return make_scalar(static_cast<double>(a.zero[0]), kInt32);
  std::vector<int32_t> values(a.zero.begin(), a.zero.end());
  return make_constant(
      Tensor::from<int32_t>(kInt32, {static_cast<int64_t>(values.size())}, std::span<const int32_t>(values)));
}

// The scale and zero point of a call, if they are constant and valid.
inline std::optional<Affine> affine_of(const Expr& scale, const Expr& zero, DataType dtype, int64_t axis, size_t rank) {
  const Tensor *s = constant_data(scale), *z = constant_data(zero);
  if (!s || !z || s->size() == 0 || z->size() == 0 || dtype.bits > 32) return std::nullopt;
  Affine out;
  for (int64_t i = 0; i < s->size(); ++i) out.scale.push_back(static_cast<float>(s->at_double(i)));
  for (int64_t i = 0; i < z->size(); ++i) out.zero.push_back(z->at_int(i));
  for (float v : out.scale)
    if (!(v > 0) || !std::isfinite(v)) return std::nullopt;
  for (int64_t v : out.zero)
    if (v < lowest(dtype) || v > highest(dtype)) return std::nullopt;
  out.dtype = dtype;
  if (std::all_of(out.zero.begin(), out.zero.end(), [&](int64_t v) { return v == out.zero[0]; })) out.zero.resize(1);
  if (!out.uniform() && rank > 0) out.axis = positive_axis(axis, rank);
  return out;
}

inline Result<Expr> requantize(const Expr& integers, const Affine& from, const Affine& to, const Span& span) {
  return try_call("qnn.requantize", {integers, scale_expr(from), zero_expr(from), scale_expr(to), zero_expr(to)},
                  make_attrs<RequantizeAttrs>([&](auto& attrs) {
                    attrs.axis = from.uniform() ? -1 : from.axis;
                    attrs.out_dtype = to.dtype.str();
                  }),
                  span);
}

}  // namespace tilewright::relay
