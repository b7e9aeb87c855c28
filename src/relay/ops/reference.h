// SPDX-License-Identifier: Apache-2.0
// What the reference evaluations share.
//
// Error bounds. `Value::bound` says how far a float32-class implementation may stray from the double result:
//  - an operator that only moves data passes bounds on; one rounding adds u*|y| with u the dtype's unit roundoff;
//  - pointwise functions take the larger difference at x - b and x + b, plus a few u*|y| for their approximation;
//  - sums, of two terms or of n, treat the terms' errors as independent (root of the sum of squares), because
//  worst-case growth
//    through fifty layers would say nothing; their own rounding adds kSumSlack * u * (norm of a)*(norm of b).
#pragma once
#include <cmath>
#include <vector>

#include "base/format.h"
#include "relay/op.h"

namespace tilewright::relay {

inline constexpr double kSumSlack = 8;      // covers blocked and Winograd-transformed sums
inline constexpr double kFunctionUlps = 4;  // approximation error of a vectorised exp, erf, tanh, ...

double unit_roundoff(DataType dtype);
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }

// The call's output type i as a tensor type with constant dims (evaluate_op ensures that).
const TensorTypeNode& out_tensor(const EvalArgs& args, size_t i = 0);
std::vector<int64_t> out_shape(const EvalArgs& args, size_t i = 0);
Value out_value(const EvalArgs& args, size_t i = 0);

inline Result<std::vector<Value>> one(Value v) {
  std::vector<Value> out;
  out.push_back(std::move(v));
  return out;
}
inline Diagnostic eval_error(std::string message) {
  return Diagnostic(ErrorCode::kInvalidArgument, std::move(message));
}

// An int64 wrapped to the dtype's width, sign- or zero-extended.
int64_t wrap_int(DataType dtype, int64_t value);
// Truncates a float to an integer dtype: wraps around; NaN gives 0, values beyond int64 its nearest bound.
int64_t float_to_int(DataType to, double x);
std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape);
// Strides that broadcast `shape` to `out` (numpy rules): 0 along axes of size 1.
std::vector<int64_t> broadcast_strides(const std::vector<int64_t>& shape, const std::vector<int64_t>& out);
// out[i...] = in[offset + i . strides]: transposes, slices, flips and broadcasts.
Value strided_copy(const Value& in, std::vector<int64_t> shape, const std::vector<int64_t>& strides,
                   int64_t offset = 0);
// out[j] = in[index[j]], or zero where the index is negative.
Value pick(const Value& in, std::vector<int64_t> shape, const std::vector<int64_t>& index);
Value reshaped(Value v, std::vector<int64_t> shape);
inline double bound_at(const Value& v, int64_t i) { return v.bound.empty() ? 0 : v.bound[static_cast<size_t>(i)]; }
int64_t product(const std::vector<int64_t>& dims, size_t begin, size_t end);

// Calls fn(out_index, a_index, b_index, ...) for every element of `shape` in row-major order.
template <size_t N, class F>
void walk(const std::vector<int64_t>& shape, const std::vector<int64_t> (&strides)[N], F&& fn) {
  const size_t rank = shape.size();
  int64_t total = 1;
  for (int64_t d : shape) total *= d;
  if (total == 0) return;
  std::vector<int64_t> counter(rank, 0);
  int64_t at[N] = {};
  const int64_t inner = rank ? shape[rank - 1] : 1;
  int64_t step[N];
  for (size_t k = 0; k < N; ++k) step[k] = rank ? strides[k][rank - 1] : 0;
  for (int64_t out = 0; out < total; out += inner) {
    int64_t cursor[N];
    for (size_t k = 0; k < N; ++k) cursor[k] = at[k];
    for (int64_t i = 0; i < inner; ++i) {
      fn(out + i, cursor);
      for (size_t k = 0; k < N; ++k) cursor[k] += step[k];
    }
    for (size_t d = rank >= 2 ? rank - 1 : 0; d-- > 0;) {
      for (size_t k = 0; k < N; ++k) at[k] += strides[k][d];
      if (++counter[d] < shape[d]) break;
      for (size_t k = 0; k < N; ++k) at[k] -= strides[k][d] * shape[d];
      counter[d] = 0;
    }
  }
}

}  // namespace tilewright::relay
