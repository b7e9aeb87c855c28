// SPDX-License-Identifier: Apache-2.0
// Operators that change shapes, query them, or create tensors from them.
#include <algorithm>
#include <climits>
#include <limits>

#include "base/format.h"
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

Values reshape(NodeContext& c) {
  Expr x = c.input(0);
  Ints target = c.opset() < 5 ? c.ints_attr("shape") : c.ints(1, "target shape");
  bool zero_is_empty = c.int_attr("allowzero", 0) != 0;
  int inferred = 0;
  for (int64_t d : target) {
    if (d < -1) c.fail(format("its target shape holds {}", d));
    inferred += d == -1;
  }
  if (inferred > 1) c.fail("its target shape has more than one -1");
  if (std::find(target.begin(), target.end(), 0) == target.end()) return {c.reshape(x, target)};
  for (size_t i = 0; i < target.size(); ++i)
    if (target[i] == 0 && !zero_is_empty && static_cast<int64_t>(i) >= c.rank(x))
      c.fail_type(format("its target shape copies dimension {} of an operand of rank {}", i, c.rank(x)));
  return {c.call("reshape", {x}, make_attrs<relay::ReshapeAttrs>([&](auto& a) {
                   a.newshape = target;
                   a.allowzero = zero_is_empty;
                 }))};
}

Values transpose(NodeContext& c) {
  Expr x = c.input(0);
  Ints perm = c.ints_attr("perm");
  if (perm.empty())
    for (int64_t i = c.rank(x); i-- > 0;) perm.push_back(i);
  Ints sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int64_t>(i) || static_cast<int64_t>(sorted.size()) != c.rank(x))
      c.fail(format("its perm {} is not a permutation of {} axes", shape_str(perm), c.rank(x)));
  return {c.transpose(x, perm)};
}

Values flatten(NodeContext& c) {
  Expr x = c.input(0);
  int64_t rank = c.rank(x), axis = c.int_attr("axis", 1);
  if (axis < -rank || axis > rank) c.fail(format("its axis {} is out of range for rank {}", axis, rank));
  if (axis < 0) axis += rank;
  if (axis == 1 && rank >= 1) return {rank == 2 ? x : c.call("nn.batch_flatten", {x})};
  if (axis == 0) return {c.reshape(x, {1, -1})};
  Ints dims = c.dims(x);
  int64_t rows = c.product(dims, 0, axis), columns = c.product(dims, axis);
  return {c.reshape(x, {rows, columns})};
}

Ints axes_of(NodeContext& c, int64_t rank) {
  Ints axes = c.opset() >= 13 && c.has(1) ? c.ints(1, "axes") : c.ints_attr("axes");
  for (int64_t& a : axes) a = c.axis(a, rank);
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) c.fail("its axes hold one twice");
  return axes;
}

Values squeeze(NodeContext& c) {
  Expr x = c.input(0);
  Ints axes = axes_of(c, c.rank(x));
  if (axes.empty()) {
    Ints dims = c.dims(x);
    for (size_t i = 0; i < dims.size(); ++i)
      if (dims[i] == 1) axes.push_back(static_cast<int64_t>(i));
  }
  return {c.squeeze(x, axes)};
}

Values unsqueeze(NodeContext& c) {
  Expr x = c.input(0);
  size_t count = (c.opset() >= 13 ? c.ints(1, "axes") : c.ints_attr("axes")).size();
  for (int64_t a : axes_of(c, c.rank(x) + static_cast<int64_t>(count))) x = c.expand(x, a);
  return {x};
}

Values concat(NodeContext& c) {
  std::vector<Expr> in = c.all_inputs();
  if (in.empty()) c.fail("it has no input");
  int64_t axis = c.axis(c.opset() < 4 ? c.int_attr("axis", 1) : c.int_attr("axis"), c.rank(in[0]));
  return {c.concat(in, axis)};
}

Values split(NodeContext& c) {
  Expr x = c.input(0);
  int64_t axis = c.axis(c.int_attr("axis", 0), c.rank(x));
  auto outputs = static_cast<int64_t>(c.node().outputs.size());
  Ints sizes = c.opset() < 13 ? c.ints_attr("split") : Ints();
  if (sizes.empty() && c.has(1)) sizes = c.ints(1, "split sizes");
  if (sizes.empty()) {
    int64_t parts = c.int_attr("num_outputs", outputs);
    auto size = c.shape(x)[static_cast<size_t>(axis)].constant();
    if (!size) size = c.dims(x)[static_cast<size_t>(axis)];
    if (parts < 1 || parts > outputs) c.fail(format("it has {} outputs and {} parts", outputs, parts));
    // When the size does not divide evenly, the last part is smaller.
    int64_t part = (*size + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<int64_t>(*size - i * part, 0, part));
  }
  if (static_cast<int64_t>(sizes.size()) < outputs)
    c.fail(format("it has {} outputs and {} split sizes", outputs, sizes.size()));
  int64_t total = 0;
  Ints starts;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || __builtin_add_overflow(total, sizes[i], &total)) c.fail(format("a split size is {}", sizes[i]));
    if (i + 1 < sizes.size()) starts.push_back(total);
  }
  auto size = c.shape(x)[static_cast<size_t>(axis)].constant();
  if (size && total != *size) c.fail_type(format("its split sizes sum to {}, its axis has {}", total, *size));
  if (sizes.size() == 1) return {x};
  Expr parts = c.call("split", {x}, make_attrs<relay::SplitAttrs>([&](auto& a) {
                        a.indices_or_sections = starts;
                        a.axis = axis;
                      }));
  Values out;
  for (int64_t i = 0; i < outputs; ++i) out.push_back(c.get(parts, i));
  return out;
}

Values slice(NodeContext& c) {
  Expr x = c.input(0);
  int64_t rank = c.rank(x);
  Ints starts, ends, axes, steps;
  if (c.opset() < 10) {
    starts = c.ints_attr("starts"), ends = c.ints_attr("ends"), axes = c.ints_attr("axes");
  } else {
    starts = c.ints(1, "starts"), ends = c.ints(2, "ends");
    if (c.has(3)) axes = c.ints(3, "axes");
    if (c.has(4)) steps = c.ints(4, "steps");
  }
  if (axes.empty())
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    c.fail(format("it has {} starts, {} ends, {} axes and {} steps", starts.size(), ends.size(), axes.size(),
                  steps.size()));
  if (starts.empty()) return {x};
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i] = c.axis(axes[i], rank);
    if (seen[static_cast<size_t>(axes[i])]) c.fail(format("its axes hold {} twice", axes[i]));
    seen[static_cast<size_t>(axes[i])] = true;
    if (steps[i] == 0 || steps[i] == std::numeric_limits<int64_t>::min()) c.fail(format("a step is {}", steps[i]));
    // A huge end means the end of the axis.
    if (ends[i] >= INT_MAX) ends[i] = std::numeric_limits<int64_t>::max();
    if (ends[i] <= INT_MIN && steps[i] < 0) ends[i] = std::numeric_limits<int64_t>::min();
    if (auto size = c.shape(x)[static_cast<size_t>(axes[i])].constant()) {
      // A start before the first element: clamped to the first for a negative step (unlike numpy), else to just before
      // it.
      starts[i] = std::clamp(starts[i], steps[i] < 0 ? -*size : -*size - 1, *size);
      if (steps[i] < 0 && ends[i] < -*size) ends[i] = std::numeric_limits<int64_t>::min();
    }
  }
  return {c.call("strided_slice", {x}, make_attrs<relay::StridedSliceAttrs>([&](auto& a) {
                   a.begin = starts;
                   a.end = ends;
                   a.strides = steps;
                   a.axes = axes;
                 }))};
}

// Zero, or empty text.
Expr nothing_of(NodeContext& c, const Expr& like) {
  return c.dtype(like).is_string() ? c.constant_of(Tensor::strings({}, {""})) : c.scalar_like(0, like);
}

Values padded(NodeContext& c, const Ints& pads, Expr value, Ints axes) {
  Expr x = c.input(0);
  int64_t rank = c.rank(x);
  if (c.rank(value) == 1) value = c.reshape(value, {});
  for (int64_t& a : axes) a = c.axis(a, rank);
  if (pads.size() != 2 * axes.size()) c.fail(format("it has {} pads for {} axes", pads.size(), axes.size()));
  std::vector<Ints> widths(static_cast<size_t>(rank), Ints{0, 0});
  for (size_t i = 0; i < axes.size(); ++i) widths[static_cast<size_t>(axes[i])] = {pads[i], pads[i + axes.size()]};
  std::string mode = c.string_attr("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    c.fail(format("its mode '{}' is unknown", mode));
  return {c.call("nn.pad", {x, value}, make_attrs<relay::PadAttrs>([&](auto& a) {
                   a.pad_width = widths;
                   a.pad_mode = mode;
                 }))};
}
Ints all_axes(NodeContext& c) {
  Ints axes;
  for (int64_t i = 0; i < c.rank(c.input(0)); ++i) axes.push_back(i);
  return axes;
}
Values pad(NodeContext& c) {
  Ints pads = c.opset() < 2 ? c.ints_attr("paddings") : c.opset() < 11 ? c.ints_attr("pads") : c.ints(1, "pads");
  Expr value = c.opset() < 11 ? c.scalar_like(c.float_attr("value", 0), c.input(0))
               : c.has(2)     ? c.input(2)
                              : nothing_of(c, c.input(0));
  return padded(c, pads, value, c.opset() >= 18 && c.has(3) ? c.ints(3, "axes") : all_axes(c));
}
// com.microsoft's: the pads may be a matrix of one row.
Values pad_by_operands(NodeContext& c) {
  const Tensor given = c.constant(1, "pads");
  Ints pads;
  for (int64_t i = 0; i < given.size(); ++i) pads.push_back(given.at_int(i));
  return padded(c, pads, c.has(2) ? c.input(2) : nothing_of(c, c.input(0)), all_axes(c));
}

Values expand(NodeContext& c) {
  Expr x = c.input(0);
  Ints target = c.ints(1, "target shape"), dims = c.dims(x);
  // Expand broadcasts both ways: the target may have smaller extents or a lower rank than the operand.
  size_t rank = std::max(target.size(), dims.size());
  target.insert(target.begin(), rank - target.size(), 1);
  dims.insert(dims.begin(), rank - dims.size(), 1);
  for (size_t i = 0; i < rank; ++i) {
    if (target[i] < 0) c.fail(format("its target shape holds {}", target[i]));
    if (target[i] != dims[i] && target[i] != 1 && dims[i] != 1)
      c.fail_type(format("{} does not broadcast to {}", shape_str(dims), shape_str(target)));
    if (target[i] == 1) target[i] = dims[i];
  }
  return {c.broadcast_to(x, target)};
}

Values tile(NodeContext& c) {
  Expr x = c.input(0);
  Ints reps;
  if (c.opset() < 6) {
    reps.assign(static_cast<size_t>(c.rank(x)), 1);
    reps[static_cast<size_t>(c.axis(c.int_scalar(2, "axis"), c.rank(x)))] = c.int_scalar(1, "number of tiles");
  } else {
    reps = c.ints(1, "repeats");
  }
  if (static_cast<int64_t>(reps.size()) != c.rank(x))
    c.fail_type(format("it has {} repeats for an operand of rank {}", reps.size(), c.rank(x)));
  for (int64_t r : reps)
    if (r < 0) c.fail(format("a repeat is {}", r));
  return {c.call("tile", {x}, make_attrs<relay::TileAttrs>([&](auto& a) { a.reps = reps; }))};
}

Values shape(NodeContext& c) {
  Expr x = c.input(0);
  int64_t rank = c.rank(x);
  int64_t begin = c.int_attr("start", 0), end = c.int_attr("end", rank);
  auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  begin = clamp(begin);
  end = std::max(clamp(end), begin);
  const Shape& dims = c.shape(x);
  Shape part(dims.begin() + begin, dims.begin() + end);
  if (auto known = static_shape(part)) return {c.ints_constant(*known)};
  Expr all = c.call("shape_of", {x}, make_attrs<relay::ShapeOfAttrs>([](auto& a) { a.dtype = kInt64; }));
  return {begin == 0 && end == rank ? all : c.slice(all, 0, begin, end)};
}

Values size(NodeContext& c) {
  Expr x = c.input(0);
  if (auto dims = static_shape(c.shape(x))) {
    return {c.constant_of(Tensor::scalar<int64_t>(kInt64, c.product(*dims)))};
  }
  return {c.call("ndarray_size", {x}, make_attrs<relay::NdarraySizeAttrs>([](auto& a) { a.dtype = kInt64; }))};
}

void check_sizes(NodeContext& c, const Ints& dims) {
  int64_t n = 1;
  for (int64_t d : dims)
    if (d < 0 || __builtin_mul_overflow(n, d, &n) || n > (int64_t{1} << 40))
      c.fail(format("its shape {} is impossible", shape_str(dims)));
}

Values constant_of_shape(NodeContext& c) {
  Ints dims = c.ints(0, "shape");
  check_sizes(c, dims);
  const Attribute* a = c.attr("value", AttributeKind::kTensor);
  Expr value = c.scalar(0, kFloat32);
  if (a) {
    if (a->tensors.at(0).size() != 1) c.fail("its value is not one element");
    value = c.constant_of(a->tensors[0].reshaped({}));
  }
  return {c.call("full", {value}, make_attrs<relay::InitOpAttrs>([&](auto& attrs) {
                   attrs.shape = dims;
                   attrs.dtype = c.dtype(value).str();
                 }))};
}

Values constant(NodeContext& c) {
  const Node& n = c.node();
  auto vector = [&](auto values, DataType dtype) {
    using T = typename decltype(values)::value_type;
    return c.constant_of(Tensor::from<T>(dtype, {static_cast<int64_t>(values.size())}, values));
  };
  const Attribute* found = nullptr;
  for (const auto& a : n.attributes) found = c.attr(a.name, AttributeKind::kUndefined);
  if (n.attributes.size() != 1 || !found) c.fail("it must have exactly one attribute, its value");
  switch (found->kind) {
    case AttributeKind::kTensor:
    case AttributeKind::kSparseTensor:
      return {c.constant_of(found->tensors.at(0))};
    case AttributeKind::kFloat:
      return {c.constant_of(Tensor::scalar<float>(kFloat32, found->f))};
    case AttributeKind::kInt:
      return {c.constant_of(Tensor::scalar<int64_t>(kInt64, found->i))};
    case AttributeKind::kString:
      return {c.constant_of(Tensor::strings({}, {found->s}))};
    case AttributeKind::kFloats:
      return {vector(found->floats, kFloat32)};
    case AttributeKind::kInts:
      return {vector(found->ints, kInt64)};
    case AttributeKind::kStrings:
      return {c.constant_of(Tensor::strings({static_cast<int64_t>(found->strings.size())}, found->strings))};
    case AttributeKind::kUndefined:
    case AttributeKind::kGraph:
    case AttributeKind::kTensors:
    case AttributeKind::kGraphs:
    case AttributeKind::kSparseTensors:
    case AttributeKind::kType:
    case AttributeKind::kTypes:
      break;
  }
  c.fail(format("its value is of kind {}", attribute_kind_name(found->kind)));
}

Values range(NodeContext& c) {
  Expr start = c.input(0), limit = c.input(1), delta = c.has(2) ? c.input(2) : c.scalar_like(1, start);
  Tensor s = c.constant(start, "start"), l = c.constant(limit, "limit"), d = c.constant(delta, "delta");
  if (s.size() != 1 || l.size() != 1 || d.size() != 1) c.fail_type("its operands must be scalars");
  double step = d.at_double(0), length = (l.at_double(0) - s.at_double(0)) / step;
  if (step == 0 || !(length < 1e9)) c.fail(format("{} steps of {} are impossible", length, step));
  auto scalar = [&](const Expr& e) { return c.rank(e) == 0 ? e : c.reshape(e, {}); };
  return {c.call("arange", {scalar(start), scalar(limit), scalar(delta)},
                 make_attrs<relay::ArangeAttrs>([&](auto& a) { a.dtype = c.dtype(start); }))};
}

Values center_crop_pad(NodeContext& c) {
  Expr x = c.input(0);
  int64_t rank = c.rank(x);
  Ints target = c.ints(1, "target shape"), axes = c.ints_attr("axes"), dims = c.dims(x);
  if (axes.empty())
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  if (axes.size() != target.size()) c.fail(format("it has {} axes and {} sizes", axes.size(), target.size()));
  std::vector<Ints> widths(static_cast<size_t>(rank), Ints{0, 0});
  for (size_t i = 0; i < axes.size(); ++i) {
    auto a = static_cast<size_t>(c.axis(axes[i], rank));
    int64_t grow = target[i] - dims[a];
    if (target[i] < 0) c.fail(format("its target shape holds {}", target[i]));
    // An odd element is cropped, or padded, at the end.
    int64_t before = grow >= 0 ? grow / 2 : -((-grow) / 2);
    widths[a] = {before, grow - before};
  }
  return {c.call("nn.pad", {x, nothing_of(c, x)}, make_attrs<relay::PadAttrs>([&](auto& a) { a.pad_width = widths; }))};
}

// row + k and column of a matrix's elements; in int32 where it holds all of them: a vector then compares twice as many.
std::pair<Expr, Expr> diagonals(NodeContext& c, int64_t rows, int64_t columns, int64_t k) {
  const DataType dtype = std::abs(k) + rows < INT_MAX && columns < INT_MAX ? kInt32 : kInt64;
  return {c.expand(c.cast(c.counting(rows, k), dtype), 1), c.expand(c.cast(c.counting(columns, 0), dtype), 0)};
}

// Ones on a diagonal: row + k == column.
Values eye_like(NodeContext& c) {
  Expr x = c.input(0);
  Ints dims = c.dims(x);
  if (dims.size() != 2) c.fail_type("its input is not a matrix");
  DataType dtype = c.dtype_attr("dtype", c.dtype(x));
  int64_t k = c.int_attr("k", 0);
  if (k < -(int64_t{1} << 48) || k > (int64_t{1} << 48)) c.fail(format("its k is {}", k));
  const auto [diagonal, column] = diagonals(c, dims[0], dims[1], k);
  return {c.cast(c.call("equal", {diagonal, column}), dtype)};
}

Values trilu(NodeContext& c) {
  Expr x = c.input(0);
  int64_t rank = c.rank(x);
  if (rank < 2) c.fail_type("its input is not a matrix");
  Ints dims = c.dims(x);
  int64_t rows = dims[static_cast<size_t>(rank - 2)], columns = dims[static_cast<size_t>(rank - 1)];
  // Any diagonal outside the matrix equals the one just past the corner, which avoids overflow.
  int64_t k = std::clamp(c.has(1) ? c.int_scalar(1, "k") : 0, -rows - 1, columns + 1);
  bool upper = c.int_attr("upper", 1) != 0;
  const auto [diagonal, column] = diagonals(c, rows, columns, k);
  Expr kept = c.call(upper ? "less_equal" : "greater_equal", {diagonal, column});
  return {c.where(kept, x, nothing_of(c, x))};
}

Values depth_to_space(NodeContext& c) {
  std::string mode = c.string_attr("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") c.fail(format("its mode '{}' is neither DCR nor CRD", mode));
  return {c.call("nn.depth_to_space", {c.input(0)}, make_attrs<relay::SubPixelAttrs>([&](auto& a) {
                   a.block_size = c.int_attr("blocksize");
                   a.mode = mode == "CRD" ? "CDR" : mode;
                 }))};
}
Values space_to_depth(NodeContext& c) {
  return {c.call("nn.space_to_depth", {c.input(0)},
                 make_attrs<relay::SubPixelAttrs>([&](auto& a) { a.block_size = c.int_attr("blocksize"); }))};
}

constexpr ConverterEntry kShapeConverters[] = {
    {"Reshape", 1, reshape},
    {"Transpose", 1, transpose},
    {"Flatten", 1, flatten},
    {"Squeeze", 1, squeeze},
    {"Unsqueeze", 1, unsqueeze},
    {"Concat", 1, concat},
    {"Split", 1, split},
    {"Slice", 1, slice},
    {"Pad", 1, pad},
    {"Pad", 1, pad_by_operands, "com.microsoft"},
    {"Expand", 8, expand},
    {"Tile", 1, tile},
    {"Shape", 1, shape},
    {"Size", 1, size},
    {"ConstantOfShape", 9, constant_of_shape},
    {"Constant", 1, constant},
    {"Range", 11, range},
    {"Range", 1, range, "com.microsoft"},
    {"CenterCropPad", 18, center_crop_pad},
    {"EyeLike", 9, eye_like},
    {"Trilu", 14, trilu},
    {"Trilu", 1, trilu, "com.microsoft"},
    {"DepthToSpace", 1, depth_to_space},
    {"SpaceToDepth", 1, space_to_depth},
};

}  // namespace

std::span<const ConverterEntry> shape_converters() { return kShapeConverters; }

}  // namespace tilewright::onnx
