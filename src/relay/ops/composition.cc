// SPDX-License-Identifier: Apache-2.0
#include "relay/ops/composition.h"

#include <algorithm>

#include "base/checked.h"
#include "relay/ops/reference.h"

namespace tilewright::relay {

Result<std::vector<int64_t>> known_sizes(const TypeArgs& args, size_t i) {
  auto shape = static_shape(args.tensor(i).shape);
  if (shape) return *shape;
  return Diagnostic(ErrorCode::kFreeDimension,
                    format("the sizes of operand {}, {}, are not all known", i, shape_str(args.tensor(i).shape)));
}

Result<std::vector<int64_t>> known_values(const TypeArgs& args, size_t i) {
  if (!args.tensor(i).dtype.is_integral())
    return type_error(format("operand {} is {}, not integers", i, type_str(args.types[i])));
  const Tensor* data = constant_operand(args, i);
  if (data) return int_values(*data);
  return Diagnostic(ErrorCode::kFreeDimension, format("operand {} is not constant", i));
}

Status fits_constant(std::vector<int64_t> shape) {
  constexpr int64_t kLargest = int64_t{1} << 24;
  if (std::any_of(shape.begin(), shape.end(), [](int64_t d) { return d < 0; }))
    return type_error(format("a size of {} is negative", shape_str(shape)));
  const int64_t count = TW_TRY(checked_element_count(shape));
  if (count > kLargest)
    return Diagnostic(ErrorCode::kLimitExceeded,
                      format("it needs a table of {} numbers, at most {} are made", count, kLargest));
  return Ok{};
}

Result<Expr> Composition::result(Expr e) const {
  if (failure_) return *failure_;
  TW_ICHECK(e, "an expansion gives a value");
  return e;
}

Expr Composition::call(std::string_view op, std::vector<Expr> operands, AttrsRef attrs) {
  if (failure_ || std::any_of(operands.begin(), operands.end(), [](const Expr& e) { return !e; })) return {};
  auto made = try_call(op, std::move(operands), std::move(attrs), args_.span);
  if (made.ok()) return *made;
  failure_ = made.error();
  return {};
}

Expr Composition::tuple(std::vector<Expr> fields) {
  if (failure_ || std::any_of(fields.begin(), fields.end(), [](const Expr& e) { return !e; })) return {};
  return make_tuple(std::move(fields), args_.span);
}

Expr Composition::field(const Expr& tuple, int64_t i) { return tuple ? make_get(tuple, i, args_.span) : Expr(); }

Expr Composition::number(double value, DataType dtype) { return numbers({value}, {}, dtype); }

Expr Composition::numbers(const std::vector<double>& values, Ints shape, DataType dtype) {
  if (failure_) return {};
  if (!dtype.is_float() && !dtype.is_integral() && !dtype.is_bool()) {
    failure_ = type_error(format("{} has no numbers", dtype.str()));
    return {};
  }
  Tensor data = Tensor::zeros(dtype, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i)
    if (dtype.is_float())
      data.set_double(static_cast<int64_t>(i), values[i]);
    else
      data.set_int(static_cast<int64_t>(i), float_to_int(dtype, values[i]));
  return make_constant(std::move(data));
}

Expr Composition::indices(const Ints& values, Ints shape) {
  if (failure_) return {};
  Tensor data = Tensor::zeros(kInt64, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) data.set_int(static_cast<int64_t>(i), values[i]);
  return make_constant(std::move(data));
}

Expr Composition::beside(const Expr& x, double value) { return x ? number(value, as_tensor(x->type)->dtype) : Expr(); }

Expr Composition::clip(const Expr& x, double low, double high) {
  return call<ClipAttrs>("clip", {x}, [&](auto& a) {
    a.a_min = low;
    a.a_max = high;
  });
}
Expr Composition::cast(const Expr& x, DataType dtype) {
  if (x && as_tensor(x->type)->dtype == dtype) return x;
  return call<CastAttrs>("cast", {x}, [&](auto& a) { a.dtype = dtype; });
}

Expr Composition::reshape(const Expr& x, Ints shape) {
  if (x && as_tensor(x->type)->shape == to_shape(shape)) return x;
  return call<ReshapeAttrs>("reshape", {x}, [&](auto& a) {
    a.newshape = std::move(shape);
    a.allowzero = std::find(a.newshape.begin(), a.newshape.end(), 0) != a.newshape.end();
  });
}
Expr Composition::transpose(const Expr& x, Ints axes) {
  return call<TransposeAttrs>("transpose", {x}, [&](auto& a) { a.axes = std::move(axes); });
}
Expr Composition::expand_dims(const Expr& x, int64_t axis, int64_t count) {
  return call<ExpandDimsAttrs>("expand_dims", {x}, [&](auto& a) {
    a.axis = axis;
    a.num_newaxis = count;
  });
}
Expr Composition::broadcast(const Expr& x, Ints shape) {
  if (x && as_tensor(x->type)->shape == to_shape(shape)) return x;
  return call<InitOpAttrs>("broadcast_to", {x}, [&](auto& a) { a.shape = std::move(shape); });
}
Expr Composition::slice(const Expr& x, int64_t axis, int64_t begin, int64_t end, int64_t stride) {
  return call<StridedSliceAttrs>("strided_slice", {x}, [&](auto& a) {
    a.begin = {begin};
    a.end = {end};
    a.strides = {stride};
    a.axes = Ints{axis};
  });
}
Expr Composition::take(const Expr& x, const Expr& indices, int64_t axis) {
  return call<TakeAttrs>("take", {x, indices}, [&](auto& a) { a.axis = axis; });
}
Expr Composition::concatenate(std::vector<Expr> parts, int64_t axis) {
  if (parts.size() == 1) return parts[0];
  return call<ConcatenateAttrs>("concatenate", {tuple(std::move(parts))}, [&](auto& a) { a.axis = axis; });
}
Expr Composition::pad(const Expr& x, std::vector<Ints> widths, const Expr& value) {
  if (std::all_of(widths.begin(), widths.end(), [](const Ints& w) { return w == Ints{0, 0}; })) return x;
  return call<PadAttrs>("nn.pad", {x, value}, [&](auto& a) { a.pad_width = std::move(widths); });
}
Expr Composition::sum(const Expr& x, Ints axes, bool keepdims) {
  if (axes.empty()) return x;
  return call<ReduceAttrs>("sum", {x}, [&](auto& a) {
    a.axis = std::move(axes);
    a.keepdims = keepdims;
  });
}

}  // namespace tilewright::relay
