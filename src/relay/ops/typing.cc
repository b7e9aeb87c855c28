// SPDX-License-Identifier: Apache-2.0
#include "relay/ops/typing.h"

#include <algorithm>

namespace tilewright::relay {

Result<int64_t> checked_axis(int64_t axis, size_t rank) {
  auto n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n) return type_error(format("axis {} is outside a tensor of rank {}", axis, rank));
  return axis < 0 ? axis + n : axis;
}

Result<std::vector<int64_t>> checked_axes(const std::vector<int64_t>& axes, size_t rank) {
  std::vector<int64_t> out;
  for (int64_t axis : axes) out.push_back(TW_TRY(checked_axis(axis, rank)));
  std::sort(out.begin(), out.end());
  for (size_t i = 1; i < out.size(); ++i)
    if (out[i] == out[i - 1]) return type_error(format("axis {} is listed twice", out[i]));
  return out;
}

Result<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& other = a.size() >= b.size() ? b : a;
  Shape out = longer;
  const size_t lead = longer.size() - other.size();
  for (size_t i = 0; i < other.size(); ++i) {
    const Dim &x = longer[lead + i], &y = other[i];
    if (x == y || y == Dim(1)) continue;
    if (x == Dim(1)) {
      out[lead + i] = y;
    } else if (x.is_const() && y.is_const()) {
      return type_error(format("shapes {} and {} do not broadcast", shape_str(a), shape_str(b)));
    } else if (x.is_const() || y.is_const()) {
      out[lead + i] = x.is_const() ? x : y;  // the symbol is this size or 1
    } else {
      bool any = x.node()->kind == DimKind::kAny || y.node()->kind == DimKind::kAny;
      out[lead + i] = any ? Dim::any() : make_dim(DimKind::kMax, x, y);
    }
  }
  return out;
}

std::vector<Type> flat_types(const TypeArgs& args) {
  std::vector<Type> out;
  for (const Type& type : args.types) {
    if (const auto* tuple = as_tuple(type))
      out.insert(out.end(), tuple->fields.begin(), tuple->fields.end());
    else
      out.push_back(type);
  }
  return out;
}

const Tensor* constant_operand(const TypeArgs& args, size_t i) {
  const auto* constant = i < args.args.size() ? as<ConstantNode>(args.args[i]) : nullptr;
  return constant ? &constant->data : nullptr;
}

std::vector<int64_t> int_values(const Tensor& tensor) {
  std::vector<int64_t> out(static_cast<size_t>(tensor.size()));
  for (int64_t i = 0; i < tensor.size(); ++i) out[static_cast<size_t>(i)] = tensor.at_int(i);
  return out;
}

Status number_dtype(DataType dtype) {
  if (!dtype.is_float() && !dtype.is_integral()) return type_error(format("dtype is {}, not a number's", dtype.str()));
  return Ok{};
}

Status product_dtypes(const TypeArgs& args) {
  DataType a = args.tensor(0).dtype, b = args.tensor(1).dtype;
  bool ok = a.is_float() ? a == b : a.is_integral() && b.is_integral();
  if (!ok) return type_error(format("operands are {} and {}", type_str(args.types[0]), type_str(args.types[1])));
  return Ok{};
}

Result<DataType> number_dtype_or(const std::string& name, DataType like) {
  DataType dtype = TW_TRY(dtype_or(name, like));
  TW_TRY_STATUS(number_dtype(dtype));
  return dtype;
}

Result<DataType> dtype_or(const std::string& name, DataType like) {
  if (name.empty()) return like;
  return parse_dtype(name);
}

Result<std::vector<int64_t>> full_padding(const std::vector<int64_t>& padding, size_t spatial) {
  std::vector<int64_t> out;
  if (padding.size() == 2 * spatial) {
    out = padding;
  } else if (padding.size() == spatial) {
    out = padding;
    out.insert(out.end(), padding.begin(), padding.end());
  } else if (padding.size() == 1) {
    out.assign(2 * spatial, padding[0]);
  } else {
    return type_error(format("padding has {} values; {} spatial axes need 1, {} or {}", padding.size(), spatial,
                             spatial, 2 * spatial));
  }
  for (int64_t p : out)
    if (p < -(int64_t{1} << 31) || p > (int64_t{1} << 31)) return type_error(format("padding {} is out of range", p));
  return out;
}

Status checked_window(const char* what, const std::vector<int64_t>& values, size_t spatial, int64_t least) {
  if (values.size() != spatial)
    return type_error(format("{} has {} values for {} spatial axes", what, values.size(), spatial));
  for (int64_t v : values)
    if (v < least || v > (int64_t{1} << 31)) return type_error(format("{} {} is out of range", what, v));
  return Ok{};
}

}  // namespace tilewright::relay
