// SPDX-License-Identifier: Apache-2.0
// Operators that extract parts of a tensor, or reverse it.
#include <algorithm>
#include <limits>

#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/reference.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

Result<Type> split_type(const TypeArgs& args) {
  const auto& a = attrs_of<SplitAttrs>(args);
  const auto& t = args.tensor(0);
  int64_t k = TW_TRY(checked_axis(a.axis, t.shape.size()));
  const Dim& size = t.shape[k];
  std::vector<Type> fields;
  auto add = [&](Dim d) {
    Shape s = t.shape;
    s[k] = std::move(d);
    fields.push_back(tensor_type(std::move(s), t.dtype));
  };
  if (a.sections > 0) {
    if (a.sections > 65536) return type_error(format("{} sections are too many", a.sections));
    if (size.is_const() && size.value() % a.sections)
      return type_error(format("axis {} of {} does not divide into {}", k, shape_str(t.shape), a.sections));
    for (int64_t i = 0; i < a.sections; ++i) add(floordiv(size, Dim(a.sections)));
    return tuple_type(std::move(fields));
  }
  int64_t before = 0;
  for (int64_t index : a.indices_or_sections) {
    if (index < before || (size.is_const() && index > size.value()))
      return type_error(
          format("split index {} is out of order or outside axis {} of {}", index, k, shape_str(t.shape)));
    add(index - before);
    before = index;
  }
  add(size - Dim(before));
  return tuple_type(std::move(fields));
}
Result<std::vector<Value>> eval_split(const EvalArgs& args) {
  const Value& in = args.inputs[0];
  const int64_t axis = args.as<SplitAttrs>().axis;
  const size_t k = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(in.shape.size()) : axis);
  std::vector<int64_t> strides = row_major_strides(in.shape);
  std::vector<Value> out;
  int64_t at = 0;
  for (size_t i = 0; i < as_tuple(args.out_type)->fields.size(); ++i) {
    std::vector<int64_t> shape = out_shape(args, i);
    const int64_t width = shape[k];
    out.push_back(strided_copy(in, std::move(shape), strides, at * strides[k]));
    at += width;
  }
  return out;
}

// One axis of a slice over `size` elements: first index, step and count.
struct SliceRange {
  int64_t first = 0, step = 1, count = 0;
};
SliceRange slice_range(int64_t begin, int64_t end, int64_t step, int64_t size) {
  auto clip = [&](int64_t v) {
    if (v < 0) v = v < -size ? -1 : v + size;
    return step > 0 ? std::clamp<int64_t>(v, 0, size) : std::clamp<int64_t>(v, -1, size - 1);
  };
  // In a backward slice an end below -size means "through element 0".
  int64_t b = clip(begin), e = step < 0 && end < -size ? -1 : clip(end);
  SliceRange r{b, step, 0};
  if (step > 0 && e > b) r.count = (e - b - 1) / step + 1;
  if (step < 0 && e < b) r.count = (b - e - 1) / -step + 1;
  return r;
}

struct SliceAxis {
  int64_t axis, begin, end, step;
};
Result<std::vector<SliceAxis>> slice_axes(const StridedSliceAttrs& a, size_t rank) {
  const size_t n = a.begin.size();
  if (a.end.size() != n || (!a.strides.empty() && a.strides.size() != n && a.strides.size() != 1) ||
      (a.axes && a.axes->size() != n))
    return type_error(format("begin, end, strides and axes have {}, {}, {} and {} values", n, a.end.size(),
                             a.strides.size(), a.axes ? a.axes->size() : n));
  if (!a.axes && n > rank) return type_error(format("begin has {} values for rank {}", n, rank));
  if (a.axes) {
    Result<std::vector<int64_t>> checked = checked_axes(*a.axes, rank);
    if (!checked.ok()) return std::move(checked).error();
  }
  if (a.slice_mode != "end" && a.slice_mode != "size")
    return type_error(format("slice_mode is \"{}\", not \"end\" or \"size\"", a.slice_mode));
  std::vector<SliceAxis> out;
  for (size_t i = 0; i < n; ++i) {
    int64_t step = a.strides.empty() ? 1 : a.strides[a.strides.size() == 1 ? 0 : i];
    int64_t begin = a.begin[i], end = a.end[i];
    if (a.slice_mode == "size") {
      step = 1;
      if (end < 0 || __builtin_add_overflow(begin, end, &end)) end = std::numeric_limits<int64_t>::max();
      if (begin < 0 && end >= 0 && a.end[i] >= 0 && end == 0) end = std::numeric_limits<int64_t>::max();
    }
    if (step == 0 || step == std::numeric_limits<int64_t>::min())
      return type_error(format("stride {} of axis {}", step, i));
    int64_t axis = a.axes ? (*a.axes)[i] : static_cast<int64_t>(i);
    out.push_back({axis < 0 ? axis + static_cast<int64_t>(rank) : axis, begin, end, step});
  }
  return out;
}
Result<Type> strided_slice_type(const TypeArgs& args) {
  const auto& t = args.tensor(0);
  Shape out = t.shape;
  for (const SliceAxis& s : TW_TRY(slice_axes(attrs_of<StridedSliceAttrs>(args), t.shape.size()))) {
    Dim& d = out[static_cast<size_t>(s.axis)];
    constexpr int64_t kFar = int64_t{1} << 31;
    if (d.is_const())
      d = slice_range(s.begin, s.end, s.step, d.value()).count;
    else if (std::abs(s.begin) > kFar || s.begin == std::numeric_limits<int64_t>::min())
      d = Dim::any();
    else if (s.step == 1 && s.end >= kFar)
      d = s.begin >= 0 ? d - Dim(s.begin) : Dim(-s.begin);
    else if (s.step == 1 && s.end < 0 && s.end > -kFar && s.begin >= 0)
      d = d + Dim(s.end - s.begin);
    else if (s.step == 1 && s.begin >= 0 && s.end >= s.begin)
      d = make_dim(DimKind::kMin, d, Dim(s.end)) - Dim(s.begin);
    else if (s.step == -1 && s.begin == -1 && s.end < -kFar)
      continue;
    else
      d = Dim::any();
  }
  return tensor_type(std::move(out), t.dtype);
}
Result<std::vector<Value>> eval_strided_slice(const EvalArgs& args) {
  const Value& in = args.inputs[0];
  std::vector<int64_t> shape = in.shape, strides = row_major_strides(in.shape);
  int64_t offset = 0;
  for (const SliceAxis& s : TW_TRY(slice_axes(args.as<StridedSliceAttrs>(), in.shape.size()))) {
    const auto k = static_cast<size_t>(s.axis);
    SliceRange r = slice_range(s.begin, s.end, s.step, in.shape[k]);
    shape[k] = r.count;
    if (r.count) offset += r.first * strides[k];
    strides[k] *= r.step;
  }
  return one(strided_copy(in, shape, strides, offset));
}

Result<Type> reverse_type(const TypeArgs& args) {
  TW_TRY(checked_axis(attrs_of<ReverseAttrs>(args).axis, args.tensor(0).shape.size()));
  return args.types[0];
}
Result<std::vector<Value>> eval_reverse(const EvalArgs& args) {
  const Value& in = args.inputs[0];
  std::vector<int64_t> strides = row_major_strides(in.shape);
  const auto k = static_cast<size_t>(TW_TRY(checked_axis(args.as<ReverseAttrs>().axis, in.shape.size())));
  const int64_t offset = in.shape[k] ? (in.shape[k] - 1) * strides[k] : 0;
  strides[k] = -strides[k];
  return one(strided_copy(in, in.shape, strides, offset));
}

Result<Type> reverse_sequence_type(const TypeArgs& args) {
  const auto& a = attrs_of<ReverseSequenceAttrs>(args);
  const auto &t = args.tensor(0), &n = args.tensor(1);
  int64_t seq = TW_TRY(checked_axis(a.seq_axis, t.shape.size())),
          batch = TW_TRY(checked_axis(a.batch_axis, t.shape.size()));
  if (seq == batch) return type_error("seq_axis and batch_axis are the same");
  if (!n.dtype.is_integral() || n.shape.size() != 1 || dims_differ(n.shape[0], t.shape[batch]))
    return type_error(format("the lengths are {}, but axis {} of the data has {}", type_str(args.types[1]), batch,
                             t.shape[batch].str()));
  return args.types[0];
}
Result<std::vector<Value>> eval_reverse_sequence(const EvalArgs& args) {
  const auto& a = args.as<ReverseSequenceAttrs>();
  const Value &in = args.inputs[0], &lengths = args.inputs[1];
  const auto seq = static_cast<size_t>(TW_TRY(checked_axis(a.seq_axis, in.shape.size())));
  const auto batch = static_cast<size_t>(TW_TRY(checked_axis(a.batch_axis, in.shape.size())));
  std::vector<int64_t> strides = row_major_strides(in.shape), index(static_cast<size_t>(in.size()));
  for (int64_t j = 0; j < in.size(); ++j) {
    const int64_t t = j / strides[seq] % in.shape[seq], b = j / strides[batch] % in.shape[batch];
    const int64_t n = std::clamp<int64_t>(lengths.i[static_cast<size_t>(b)], 0, in.shape[seq]);
    index[static_cast<size_t>(j)] = t < n ? j + (n - 1 - 2 * t) * strides[seq] : j;
  }
  return one(pick(in, in.shape, index));
}

OpDef slice_op(const char* name, const char* doc, OpPattern pattern, Result<Type> (*type)(const TypeArgs&),
               Result<std::vector<Value>> (*eval)(const EvalArgs&), AttrsRef (*make)()) {
  return define_op(name, doc, {{"data", "any shape and dtype"}}, pattern, type, eval, make);
}

}  // namespace

std::vector<OpDef> slice_ops() {
  std::vector<OpDef> ops = {
      slice_op("split", "A tuple of parts along an axis.", OpPattern::kInjective, split_type, eval_split,
               make_default_attrs<SplitAttrs>)
          .with({.elements = Elements::kSelected, .narrowing = Narrowing::kFollows}),
      slice_op("strided_slice", "begin:end:stride of the listed axes, as numpy.", OpPattern::kInjective,
               strided_slice_type, eval_strided_slice, make_default_attrs<StridedSliceAttrs>)
          .with({.elements = Elements::kSelected, .narrowing = Narrowing::kFollows}),
      slice_op("reverse", "The order of one axis reversed.", OpPattern::kInjective, reverse_type, eval_reverse,
               make_default_attrs<ReverseAttrs>)
          .with({.elements = Elements::kRepeated, .narrowing = Narrowing::kFollows}),
      slice_op("reverse_sequence", "The first lengths[b] elements of seq_axis reversed in each batch.",
               OpPattern::kInjective, reverse_sequence_type, eval_reverse_sequence,
               make_default_attrs<ReverseSequenceAttrs>)
          .with({.elements = Elements::kRepeated}),
  };
  OpDef& sequence = ops.back();
  sequence.num_inputs = 2;
  sequence.args.push_back({"seq_lengths", "an integer per batch"});
  return ops;
}

}  // namespace tilewright::relay
