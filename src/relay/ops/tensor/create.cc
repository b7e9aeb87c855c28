// SPDX-License-Identifier: Apache-2.0
// Operators that create tensors from attributes, shapes or scalars.
#include <algorithm>

#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/reference.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 48;

Status valid_shape(const std::vector<int64_t>& shape) {
  for (int64_t d : shape)
    if (d < 0 || d > kMostElements) return type_error(format("shape has {}", d));
  return Ok{};
}

Result<Type> filled_type(const TypeArgs& args) {
  const auto& a = attrs_of<InitOpAttrs>(args);
  TW_TRY_STATUS(valid_shape(a.shape));
  return tensor_type(to_shape(a.shape), TW_TRY(dtype_or(a.dtype, kFloat32)));
}
Result<Type> full_type(const TypeArgs& args) {
  const auto& a = attrs_of<InitOpAttrs>(args);
  const auto& v = args.tensor(0);
  TW_TRY_STATUS(valid_shape(a.shape));
  if (!v.shape.empty()) return type_error(format("fill_value is {}, not a scalar", type_str(args.types[0])));
  DataType t = TW_TRY(dtype_or(a.dtype, v.dtype));
  if (t != v.dtype) return type_error(format("fill_value is {}, but dtype is {}", v.dtype.str(), t.str()));
  return tensor_type(to_shape(a.shape), t);
}
Result<Type> like_type(const TypeArgs& args) { return args.types[0]; }
Result<Type> full_like_type(const TypeArgs& args) {
  const auto &x = args.tensor(0), &v = args.tensor(1);
  if (!v.shape.empty() || v.dtype != x.dtype)
    return type_error(format("fill_value is {}, not a scalar {}", type_str(args.types[1]), x.dtype.str()));
  return args.types[0];
}

template <int kValue>
Result<std::vector<Value>> eval_constant(const EvalArgs& args) {
  Value out = out_value(args);
  std::fill(out.f.begin(), out.f.end(), kValue);
  std::fill(out.i.begin(), out.i.end(), kValue);
  return one(std::move(out));
}
template <size_t kOperand>
Result<std::vector<Value>> eval_full(const EvalArgs& args) {
  std::vector<int64_t> shape = out_shape(args);
  return one(strided_copy(args.inputs[kOperand], shape, std::vector<int64_t>(shape.size(), 0)));
}

struct NumberRange {
  bool is_float;
  double start, step;
  int64_t int_start, int_step, count;
};
Result<NumberRange> range_of(const Tensor& start, const Tensor& stop, const Tensor& step) {
  NumberRange r{};
  r.is_float = start.dtype().is_float();
  if (r.is_float) {
    r.start = start.at_double(0);
    r.step = step.at_double(0);
    const double n = std::ceil((stop.at_double(0) - r.start) / r.step);
    if (!(n <= static_cast<double>(kMostElements)))
      return type_error(format("from {} to {} in steps of {} has no end", r.start, stop.at_double(0), r.step));
    r.count = n > 0 ? static_cast<int64_t>(n) : 0;
    return r;
  }
  r.int_start = start.at_int(0);
  r.int_step = step.at_int(0);
  const int64_t end = stop.at_int(0);
  if (r.int_step == 0) return type_error("the step is 0");
  const bool up = r.int_step > 0;
  r.count = 0;
  if (up ? end <= r.int_start : end >= r.int_start) return r;
  const auto from = static_cast<uint64_t>(r.int_start), to = static_cast<uint64_t>(end);
  const auto step_size = static_cast<uint64_t>(r.int_step);  // modulo 2^64, in which -2^63 has a magnitude, too
  const uint64_t n = ((up ? to - from : from - to) - 1) / (up ? step_size : 0 - step_size) + 1;
  if (n > static_cast<uint64_t>(kMostElements)) return type_error("the range is too long");
  r.count = static_cast<int64_t>(n);
  return r;
}
Result<Type> arange_type(const TypeArgs& args) {
  const auto& a = attrs_of<ArangeAttrs>(args);
  TW_TRY_STATUS(number_dtype(a.dtype));
  for (size_t i = 0; i < 3; ++i) {
    const auto& t = args.tensor(i);
    if (element_count(t.shape) != Dim(1) || t.dtype != args.tensor(0).dtype ||
        !(t.dtype.is_float() || t.dtype.is_integral()))
      return type_error(format("start, stop and step are {}, {} and {}, not scalars of one dtype",
                               type_str(args.types[0]), type_str(args.types[1]), type_str(args.types[2])));
  }
  const Tensor *start = constant_operand(args, 0), *stop = constant_operand(args, 1), *step = constant_operand(args, 2);
  Dim n = Dim::any();
  if (start && stop && step) n = TW_TRY(range_of(*start, *stop, *step)).count;
  return tensor_type({n}, a.dtype);
}
Result<std::vector<Value>> eval_arange(const EvalArgs& args) {
  NumberRange r = TW_TRY(range_of(to_tensor(args.inputs[0]), to_tensor(args.inputs[1]), to_tensor(args.inputs[2])));
  Value out = make_value(args.as<ArangeAttrs>().dtype, {r.count});
  for (int64_t i = 0; i < r.count; ++i) {
    const double d =
        r.is_float ? r.start + static_cast<double>(i) * r.step : static_cast<double>(r.int_start + i * r.int_step);
    if (out.is_float())
      out.f[i] = d;
    else
      out.i[i] = wrap_int(out.dtype, r.is_float ? static_cast<int64_t>(d) : r.int_start + i * r.int_step);
  }
  return one(std::move(out));
}

Result<Type> shape_of_type(const TypeArgs& args) {
  TW_TRY_STATUS(number_dtype(attrs_of<ShapeOfAttrs>(args).dtype));
  return tensor_type({Dim(static_cast<int64_t>(args.tensor(0).shape.size()))}, attrs_of<ShapeOfAttrs>(args).dtype);
}
Result<std::vector<Value>> eval_shape_of(const EvalArgs& args) {
  const auto& shape = args.inputs[0].shape;
  Value out = make_value(args.as<ShapeOfAttrs>().dtype, {static_cast<int64_t>(shape.size())});
  for (size_t i = 0; i < shape.size(); ++i) {
    if (out.is_float())
      out.f[i] = static_cast<double>(shape[i]);
    else
      out.i[i] = shape[i];
  }
  return one(std::move(out));
}
Result<Type> size_type(const TypeArgs& args) {
  TW_TRY_STATUS(number_dtype(attrs_of<NdarraySizeAttrs>(args).dtype));
  return tensor_type({}, attrs_of<NdarraySizeAttrs>(args).dtype);
}
Result<std::vector<Value>> eval_size(const EvalArgs& args) {
  Value out = make_value(args.as<NdarraySizeAttrs>().dtype, {});
  if (out.is_float())
    out.f[0] = static_cast<double>(args.inputs[0].size());
  else
    out.i[0] = args.inputs[0].size();
  return one(std::move(out));
}

Result<Type> meshgrid_type(const TypeArgs& args) {
  const auto& a = attrs_of<MeshgridAttrs>(args);
  if (a.indexing != "ij" && a.indexing != "xy")
    return type_error(format("indexing is \"{}\", not ij or xy", a.indexing));
  std::vector<Type> in = flat_types(args);
  if (in.empty()) return type_error("it needs at least one tensor");
  Shape shape;
  for (const Type& t : in) {
    if (as_tensor(t)->shape.size() > 1 || as_tensor(t)->dtype != as_tensor(in[0])->dtype)
      return type_error(format("{} is not a vector like the others", type_str(t)));
    shape.push_back(as_tensor(t)->shape.empty() ? Dim(1) : as_tensor(t)->shape[0]);
  }
  if (a.indexing == "xy" && shape.size() >= 2) std::swap(shape[0], shape[1]);
  return tuple_type(std::vector<Type>(in.size(), tensor_type(shape, as_tensor(in[0])->dtype)));
}
Result<std::vector<Value>> eval_meshgrid(const EvalArgs& args) {
  const bool swap = args.as<MeshgridAttrs>().indexing == "xy" && args.inputs.size() >= 2;
  std::vector<Value> out;
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    const std::vector<int64_t> shape = out_shape(args, i);
    std::vector<int64_t> strides(shape.size(), 0);
    strides[swap && i < 2 ? 1 - i : i] = 1;
    out.push_back(strided_copy(args.inputs[i], shape, strides));
  }
  return out;
}

Result<Type> trilu_type(const TypeArgs& args) {
  const auto &x = args.tensor(0), &k = args.tensor(1);
  if (x.shape.size() < 2) return type_error(format("data {} is not a matrix", shape_str(x.shape)));
  if (!k.dtype.is_integral() || element_count(k.shape) != Dim(1))
    return type_error(format("k is {}, not an integer scalar", type_str(args.types[1])));
  return args.types[0];
}
Result<std::vector<Value>> eval_trilu(const EvalArgs& args) {
  const Value& x = args.inputs[0];
  const int64_t k = args.inputs[1].i[0], rows = x.shape[x.shape.size() - 2], cols = x.shape.back();
  const bool upper = args.as<TriluAttrs>().upper;
  std::vector<int64_t> index(static_cast<size_t>(x.size()));
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t r = i / cols % rows, c = i % cols;
    index[static_cast<size_t>(i)] = (upper ? c - r >= k : c - r <= k) ? i : -1;
  }
  return one(pick(x, x.shape, index));
}

}  // namespace

std::vector<OpDef> create_ops() {
  constexpr OpPattern kElem = OpPattern::kElemWise, kInj = OpPattern::kInjective, kOpaque = OpPattern::kOpaque;
  std::vector<OpDef> ops = {
      define_op("zeros", "A tensor of zeros.", {}, kElem, filled_type, eval_constant<0>,
                make_default_attrs<InitOpAttrs>),
      define_op("ones", "A tensor of ones.", {}, kElem, filled_type, eval_constant<1>, make_default_attrs<InitOpAttrs>),
      define_op("full", "A tensor of one value.", {{"fill_value", "a scalar"}}, kElem, full_type, eval_full<0>,
                make_default_attrs<InitOpAttrs>),
      define_op("zeros_like", "Zeros of the data's shape and dtype.", {{"data", "any"}}, kElem, like_type,
                eval_constant<0>, nullptr),
      define_op("ones_like", "Ones of the data's shape and dtype.", {{"data", "any"}}, kElem, like_type,
                eval_constant<1>, nullptr),
      define_op("full_like", "One value in the data's shape.", {{"data", "any"}, {"fill_value", "a scalar"}}, kElem,
                full_like_type, eval_full<1>, nullptr),
      define_op("arange", "start, start + step, ... below stop.",
                {{"start", "a scalar"}, {"stop", "a scalar"}, {"step", "a scalar"}}, kOpaque, arange_type, eval_arange,
                make_default_attrs<ArangeAttrs>),
      define_op("shape_of", "The data's shape as a vector.", {{"data", "any"}}, kOpaque, shape_of_type, eval_shape_of,
                make_default_attrs<ShapeOfAttrs>),
      define_op("ndarray_size", "The data's number of elements as a scalar.", {{"data", "any"}}, kInj, size_type,
                eval_size, make_default_attrs<NdarraySizeAttrs>),
      define_op("meshgrid", "Coordinate grids of vectors, one per vector.", {{"data", "a tuple of vectors"}}, kInj,
                meshgrid_type, eval_meshgrid, make_default_attrs<MeshgridAttrs>),
      define_op("trilu", "The upper or lower triangle of the last two axes, from diagonal k; zero elsewhere.",
                {{"data", "any dtype"}, {"k", "an integer scalar"}}, kInj, trilu_type, eval_trilu,
                make_default_attrs<TriluAttrs>),
  };
  for (OpDef& d : ops)
    if (std::string_view(d.name) == "meshgrid") d.num_inputs = -1;
  return ops;
}

}  // namespace tilewright::relay
