// SPDX-License-Identifier: Apache-2.0
// Helpers for operators' type rules: errors, axes, broadcasting over symbolic dims.
#pragma once
#include <string>
#include <vector>

#include "base/format.h"
#include "relay/op.h"

namespace tilewright::relay {

inline Diagnostic type_error(std::string message, std::string hint = {}) {
  return Diagnostic(ErrorCode::kTypeMismatch, std::move(message), "", std::move(hint));
}

// Definitely different: both constant and unequal. Different symbols may turn out equal at run time.
inline bool dims_differ(const Dim& a, const Dim& b) { return a.is_const() && b.is_const() && a.value() != b.value(); }
// The more specific of two dims that must agree.
inline const Dim& known_dim(const Dim& a, const Dim& b) {
  if (a.is_const()) return a;
  if (b.is_const()) return b;
  return a.node()->kind == DimKind::kAny ? b : a;
}

// A possibly negative axis as 0..rank-1.
Result<int64_t> checked_axis(int64_t axis, size_t rank);
// The same for a list without duplicates, sorted.
Result<std::vector<int64_t>> checked_axes(const std::vector<int64_t>& axes, size_t rank);
// numpy broadcasting, aligned at the last axis.
Result<Shape> broadcast_shapes(const Shape& a, const Shape& b);
// The operand types with tuples flattened.
std::vector<Type> flat_types(const TypeArgs& args);
// Operand i's data when it is a constant, else null.
const Tensor* constant_operand(const TypeArgs& args, size_t i);
std::vector<int64_t> int_values(const Tensor& tensor);
// Checks a dtype attribute of a numeric result. Errors: strings, complex numbers.
Status number_dtype(DataType dtype);
// Checks operands 0 and 1 of a product: one floating dtype, or two integer dtypes.
Status product_dtypes(const TypeArgs& args);
// dtype_or, restricted to numeric dtypes.
Result<DataType> number_dtype_or(const std::string& name, DataType like);
// "" means `like`.
Result<DataType> dtype_or(const std::string& name, DataType like);

// Expands 1, n or 2n padding values to begins then ends of n axes.
Result<std::vector<int64_t>> full_padding(const std::vector<int64_t>& padding, size_t spatial);
// Checks a per-axis list: its length, and that every value is >= least.
Status checked_window(const char* what, const std::vector<int64_t>& values, size_t spatial, int64_t least = 1);

template <class A>
const A& attrs_of(const TypeArgs& args) {
  return *attrs_as<A>(args.attrs);
}

}  // namespace tilewright::relay
