// SPDX-License-Identifier: Apache-2.0
// Object detection: selects boxes and derives boxes from predictions. The greedy selection is vision.suppress, and
// vision.compact moves selected rows to the front; everything else is expressed by other operators. Where the classic
// operators leave rows undefined (behind the last valid one), they are -1 here, and 0 in all-class suppression.
#include <cmath>

#include "base/checked.h"
#include "relay/ops/composition.h"
#include "relay/ops/image/attrs_vision.h"

namespace tilewright::relay {
namespace {

using Ints = std::vector<int64_t>;

// Adds the calls that detection needs to those of Composition.
class Detection : public Composition {
 public:
  using Composition::Composition;
  Expr scalar(size_t i, DataType dtype) { return cast(reshape((*this)[i], {}), dtype); }
  Expr ints32(const Ints& values, Ints shape) { return cast(indices(values, std::move(shape)), kInt32); }
  // 0, 1, ... as (1, n).
  Expr iota(int64_t n) {
    Ints values(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i)] = i;
    return ints32(values, {1, n});
  }
  // One component (a coordinate, the score or the class) of every box: (rows, n, length) -> (rows, n).
  Expr component(const Expr& boxes, int64_t at, int64_t rows, int64_t n) {
    return reshape(slice(boxes, 2, at, at + 1), {rows, n});
  }
  // Gathers in each row: data (rows, n, ...), at (rows, k) -> (rows, k, ...). Out-of-range indices give unspecified
  // elements.
  Expr gather_rows(const Expr& data, const Expr& at, Ints shape) {
    Ints firsts;
    for (int64_t r = 0; r < shape[0]; ++r) firsts.push_back(r * shape[1]);
    const Expr flat = plus(at, ints32(firsts, {shape[0], 1}));
    shape.erase(shape.begin());
    shape[0] = -1;
    return take(call<ReshapeAttrs>("reshape", {data}, [&](auto& a) { a.newshape = shape; }), flat, 0);
  }
  // Indices that sort each row in descending order.
  Expr descending_order(const Expr& x) {
    return call<ArgsortAttrs>("argsort", {x}, [](auto& a) {
      a.axis = 1;
      a.is_ascend = false;
      a.dtype = kInt32;
    });
  }
  Expr logical_and(const Expr& a, const Expr& b) { return call("logical_and", {a, b}); }
  Expr reduced(const char* op, const Expr& x, int64_t axis) {
    return call<ReduceAttrs>(op, {x}, [&](auto& a) { a.axis = Ints{axis}; });
  }
  Expr chosen(const Expr& condition, const Expr& x, double otherwise) {
    return x ? where(condition, x, number(otherwise, as_tensor(x->type)->dtype)) : Expr();
  }
  // Stream compaction, per batch: the rows whose flag is set, their indices (both padded with -1), and their number.
  struct Compacted {
    Expr rows, places, counts;
  };
  Compacted compacted(const Expr& rows, const Expr& flags, const Ints& shape) {
    const Expr found = call("vision.compact", {flags});
    Compacted out{{}, field(found, 0), field(found, 1)};
    Expr is_one = compare("greater_equal", out.places, 0);
    if (shape.size() == 3) is_one = expand_dims(is_one, 2);
    out.rows = chosen(is_one, gather_rows(rows, out.places, shape), -1);
    return out;
  }
};

Status needs_floats(const TypeArgs& args, size_t i, const char* name, size_t rank) {
  const auto& t = args.tensor(i);
  if (t.shape.size() != rank || !t.dtype.is_float())
    return type_error(format("{} is {}, not {} axes of floats", name, type_str(args.types[i]), rank));
  return Ok{};
}
Status needs_one(const TypeArgs& args, size_t i, const char* name) {
  if (dims_differ(element_count(args.tensor(i).shape), Dim(1)))
    return type_error(format("{} is {}, not one number", name, type_str(args.types[i])));
  return Ok{};
}
Status no_empty(const Ints& sizes) {
  for (int64_t d : sizes)
    if (d < 1) return type_error(format("{} has no elements", shape_str(sizes)));
  return Ok{};
}
Status inside(const char* name, int64_t value, int64_t least, int64_t end) {
  if (value < least || value >= end)
    return type_error(format("{} {} is outside {} elements of a box", name, value, end));
  return Ok{};
}

Result<Expr> expand_get_valid_counts(const TypeArgs& args) {
  const auto& a = attrs_of<GetValidCountsAttrs>(args);
  TW_TRY_STATUS(needs_floats(args, 0, "data", 3));
  TW_TRY_STATUS(needs_one(args, 1, "score_threshold"));
  const Ints sizes = TW_TRY(known_sizes(args, 0));
  TW_TRY_STATUS(no_empty(sizes));
  TW_TRY_STATUS(inside("score_index", a.score_index, 0, sizes[2]));
  if (a.id_index >= 0) TW_TRY_STATUS(inside("id_index", a.id_index, 0, sizes[2]));
  Detection c(args);
  auto component = [&](int64_t at) { return c.component(c[0], at, sizes[0], sizes[1]); };
  Expr flags = c.call("greater", {component(a.score_index), c.scalar(1, args.tensor(0).dtype)});
  if (a.id_index >= 0) flags = c.logical_and(flags, c.compare("greater_equal", component(a.id_index), 0));
  const auto compacted = c.compacted(c[0], flags, sizes);
  return c.result(c.tuple({compacted.counts, compacted.rows, compacted.places}));
}
Result<Type> get_valid_counts_type(const TypeArgs& args) {
  auto made = expand_get_valid_counts(args);
  if (made.ok()) return (*made)->type;
  if (made.error().code != ErrorCode::kFreeDimension) return made.error();
  const auto& t = args.tensor(0);
  return tuple_type({tensor_type({t.shape[0]}, kInt32), args.types[0], tensor_type({t.shape[0], t.shape[1]}, kInt32)});
}

Result<Expr> expand_non_max_suppression(const TypeArgs& args) {
  const auto& a = attrs_of<NonMaximumSuppressionAttrs>(args);
  TW_TRY_STATUS(needs_floats(args, 0, "data", 3));
  TW_TRY_STATUS(needs_one(args, 3, "max_output_size"));
  TW_TRY_STATUS(needs_one(args, 4, "iou_threshold"));
  const Ints sizes = TW_TRY(known_sizes(args, 0));
  TW_TRY_STATUS(no_empty(sizes));
  const int64_t rows = sizes[0], n = sizes[1];
  TW_TRY_STATUS(inside("score_index", a.score_index, 0, sizes[2]));
  TW_TRY_STATUS(inside("coord_start", a.coord_start, 0, sizes[2] - 3));
  if (a.id_index >= 0) TW_TRY_STATUS(inside("id_index", a.id_index, 0, sizes[2]));
  for (size_t i : {1, 2, 3})  // indices only matter to the results that are indices
    if (!args.tensor(i).dtype.is_integral() && (i != 2 || a.return_indices))
      return type_error(format("operand {} is {}, not integers", i, type_str(args.types[i])));
  if (element_count(args.tensor(1).shape) != Dim(rows))
    return type_error(
        format("valid_count is {}, not one number for each of {} pictures", type_str(args.types[1]), rows));
  if (a.return_indices && args.tensor(2).shape != to_shape({rows, n}))
    return type_error(format("indices are {}, not {}", type_str(args.types[2]), shape_str(Ints{rows, n})));
  const DataType dtype = args.tensor(0).dtype;
  Detection c(args);
  const Expr valid = c.cast(c.reshape(c[1], {rows}), kInt32), iou = c.scalar(4, dtype), places = c.iota(n);
  // A threshold of 0 or less disables suppression.
  const Expr active = c.compare("greater", iou, 0);
  const Expr scores = c.component(c[0], a.score_index, rows, n);
  const Expr is_box = c.call("less", {places, c.reshape(valid, {rows, 1})});
  const Expr order =
      c.where(active, c.descending_order(c.chosen(is_box, scores, -HUGE_VAL)), c.broadcast(places, {rows, n}));
  Expr looked_at = valid;
  if (a.top_k > 0) {
    const Expr most = c.number(static_cast<double>(std::min<int64_t>(a.top_k, n)), kInt32);
    looked_at = c.where(active, c.call("minimum", {valid, most}), valid);
  }
  std::vector<Expr> operands{
      c.slice(c[0], 2, a.coord_start, a.coord_start + 4), scores, order, looked_at, c.scalar(3, kInt32), iou};
  if (a.id_index >= 0) operands.push_back(c.component(c[0], a.id_index, rows, n));
  const Expr kept = c.call<SuppressAttrs>("vision.suppress", std::move(operands),
                                          [&](auto& s) { s.force_suppress = a.force_suppress; });
  const Expr stays = c.compare("greater", kept, 0);
  if (a.return_indices) {
    const Expr own = c.gather_rows(c.cast(c[2], kInt32), order, {rows, n});
    const auto compacted = c.compacted(own, c.logical_and(stays, c.compare("greater_equal", own, 0)), {rows, n});
    return c.result(c.tuple({compacted.rows, c.reshape(compacted.counts, {rows, 1})}));
  }
  const Expr out = c.chosen(c.expand_dims(stays, 2), c.gather_rows(c[0], order, sizes), -1);
  if (!a.invalid_to_bottom) return c.result(out);
  return c.result(c.compacted(out, c.compare("greater_equal", c.component(out, 0, rows, n), 0), sizes).rows);
}
Result<Type> non_max_suppression_type(const TypeArgs& args) {
  auto made = expand_non_max_suppression(args);
  if (made.ok()) return (*made)->type;
  if (made.error().code != ErrorCode::kFreeDimension) return made.error();
  if (!attrs_of<NonMaximumSuppressionAttrs>(args).return_indices) return args.types[0];
  const Shape& shape = args.tensor(0).shape;
  return tuple_type({tensor_type({shape[0], shape[1]}, kInt32), tensor_type({shape[0], Dim(1)}, kInt32)});
}

Result<Expr> expand_all_class_non_max_suppression(const TypeArgs& args) {
  const auto& a = attrs_of<AllClassNonMaximumSuppressionAttrs>(args);
  const bool onnx = a.output_format == "onnx";
  if (!onnx && a.output_format != "tensorflow")
    return type_error(format("output_format is \"{}\", not onnx or tensorflow", a.output_format));
  TW_TRY_STATUS(needs_floats(args, 0, "boxes", 3));
  TW_TRY_STATUS(needs_floats(args, 1, "scores", 3));
  TW_TRY_STATUS(needs_one(args, 2, "max_output_boxes_per_class"));
  TW_TRY_STATUS(needs_one(args, 3, "iou_threshold"));
  TW_TRY_STATUS(needs_one(args, 4, "score_threshold"));
  if (!args.tensor(2).dtype.is_integral()) return type_error("max_output_boxes_per_class is no integer");
  const Ints boxes = TW_TRY(known_sizes(args, 0)), sizes = TW_TRY(known_sizes(args, 1));
  TW_TRY_STATUS(no_empty(sizes));
  if (boxes != Ints{sizes[0], sizes[2], 4})
    return type_error(format("boxes {} and scores {} are not (pictures, n, 4) and (pictures, classes, n)",
                             shape_str(boxes), shape_str(sizes)));
  const int64_t pictures = sizes[0], classes = sizes[1], n = sizes[2], rows = pictures * classes;
  if (TW_TRY(checked_element_count(sizes)) > std::numeric_limits<int32_t>::max())
    return type_error(format("{} scores are too many", shape_str(sizes)));
  const DataType dtype = args.tensor(1).dtype;
  Detection c(args);
  const Expr scores = c.reshape(c[1], {rows, n}), iou = c.scalar(3, dtype), order = c.descending_order(scores);
  // Scores of -1 and below are never selected.
  const Expr least = c.call("maximum", {c.scalar(4, dtype), c.number(-1, dtype)});
  Expr valid = c.reduced("sum", c.cast(c.call("greater", {scores, least}), kInt32), 1);
  valid = c.where(c.compare("greater", iou, 0), valid, c.number(0, kInt32));
  Expr most = c.scalar(2, kInt32);
  most = c.where(c.compare("greater", most, 0), most, c.number(-1, kInt32));
  const Expr kept = c.call<SuppressAttrs>("vision.suppress", {c[0], scores, order, valid, most, iou},
                                          [&](auto& s) { s.count_all = true; });
  // Each result list covers the rows of one image, or for ONNX of all.
  const int64_t lists = onnx ? 1 : pictures, length = rows * n / lists;
  const Expr found = c.call("vision.compact", {c.reshape(kept, {lists, length})});
  const Expr place = c.field(found, 0), is_one = c.compare("greater_equal", place, 0);
  auto by = [&](const char* op, const Expr& x, int64_t count) {
    return c.call(op, {x, c.number(static_cast<double>(count), kInt32)});
  };
  const Expr row = by("floor_divide", place, n), kind = onnx ? by("floor_mod", row, classes) : row;
  const Expr box = c.gather_rows(c.reshape(order, {lists, length}), place, {lists, length});
  std::vector<Expr> columns{kind, box};
  if (onnx) columns.insert(columns.begin(), by("floor_divide", row, classes));
  for (Expr& column : columns) column = c.expand_dims(c.cast(c.chosen(is_one, column, 0), kInt64), 2);
  Expr indices = c.concatenate(columns, 2), counts = c.cast(c.field(found, 1), kInt64);
  if (onnx) return c.result(c.tuple({c.reshape(indices, {length, 3}), counts}));
  // Indices refer to boxes, not to their rank by score.
  const Expr score =
      c.gather_rows(c.reshape(scores, {lists, length}),
                    c.plus(c.call("multiply", {row, c.number(static_cast<double>(n), kInt32)}), box), {lists, length});
  return c.result(c.tuple({indices, c.cast(c.chosen(is_one, score, 0), kFloat32), counts}));
}
Result<Type> all_class_non_max_suppression_type(const TypeArgs& args) {
  auto made = expand_all_class_non_max_suppression(args);
  if (made.ok()) return (*made)->type;
  if (made.error().code != ErrorCode::kFreeDimension) return made.error();
  const Shape& sizes = args.tensor(1).shape;
  if (attrs_of<AllClassNonMaximumSuppressionAttrs>(args).output_format == "onnx")
    return tuple_type({tensor_type({sizes[0] * sizes[1] * sizes[2], Dim(3)}, kInt64), tensor_type({Dim(1)}, kInt64)});
  const Dim all = sizes[1] * sizes[2];
  return tuple_type({tensor_type({sizes[0], all, Dim(2)}, kInt64), tensor_type({sizes[0], all}, kFloat32),
                     tensor_type({sizes[0]}, kInt64)});
}

Result<Expr> expand_multibox_transform_loc(const TypeArgs& args) {
  const auto& a = attrs_of<MultiBoxTransformLocAttrs>(args);
  TW_TRY_STATUS(needs_floats(args, 0, "cls_prob", 3));
  TW_TRY_STATUS(needs_floats(args, 1, "loc_pred", 2));
  TW_TRY_STATUS(needs_floats(args, 2, "anchor", 3));
  const Ints sizes = TW_TRY(known_sizes(args, 0));
  TW_TRY_STATUS(no_empty(sizes));
  const int64_t rows = sizes[0], classes = sizes[1], n = sizes[2];
  if (classes < 2) return type_error("cls_prob has no class besides the background");
  if (args.tensor(1).shape != to_shape({rows, 4 * n}) || args.tensor(2).shape != to_shape({1, n, 4}))
    return type_error(format("loc_pred {} and anchor {} are not {} and {}", type_str(args.types[1]),
                             type_str(args.types[2]), shape_str(Ints{rows, 4 * n}), shape_str(Ints{1, n, 4})));
  if (a.variances.size() != 4) return type_error(format("there are {} variances, not 4", a.variances.size()));
  const DataType dtype = args.tensor(1).dtype;
  Detection c(args);
  const Expr objects = c.cast(c.slice(c[0], 1, 1, classes), dtype);
  const Expr best = c.reduced("max", objects, 1),
             kind = c.call<ArgReduceAttrs>("argmax", {objects}, [](auto&r) { r.axis = Ints{1}; });
  const Expr flags = c.logical_and(c.compare("greater", best, -1), c.compare("greater_equal", best, a.threshold));
  const Expr moves = c.reshape(c[1], {rows, n, 4}), anchor = c.cast(c[2], dtype);
  const Expr low = c.slice(anchor, 2, 0, 2), high = c.slice(anchor, 2, 2, 4);
  const Expr extent = c.minus(high, low), centre = c.divide(c.plus(low, high), 2);
  auto variance = [&](size_t i) { return c.numbers({a.variances[i], a.variances[i + 1]}, {2}, dtype); };
  const Expr at = c.plus(c.times(c.times(c.slice(moves, 2, 0, 2), variance(0)), extent), centre);
  const Expr half = c.divide(c.times(c.call("exp", {c.times(c.slice(moves, 2, 2, 4), variance(2))}), extent), 2);
  Expr box = c.concatenate({c.minus(at, half), c.plus(at, half)}, 2);
  if (a.clip) box = c.clip(box, 0, 1);
  const Expr found = c.concatenate({c.expand_dims(c.cast(kind, dtype), 2), c.expand_dims(best, 2), box}, 2);
  const auto compacted = c.compacted(found, flags, {rows, n, 6});
  return c.result(c.tuple({compacted.rows, compacted.counts}));
}

Result<Expr> expand_proposal(const TypeArgs& args) {
  const auto& a = attrs_of<ProposalAttrs>(args);
  TW_TRY_STATUS(needs_floats(args, 0, "cls_prob", 4));
  TW_TRY_STATUS(needs_floats(args, 1, "bbox_pred", 4));
  TW_TRY_STATUS(needs_floats(args, 2, "im_info", 2));
  const Ints sizes = TW_TRY(known_sizes(args, 0));
  TW_TRY_STATUS(no_empty(sizes));
  const auto anchors = static_cast<int64_t>(a.scales.size() * a.ratios.size());
  const int64_t rows = sizes[0], height = sizes[2], width = sizes[3];
  if (sizes[1] != 2 * anchors || args.tensor(1).shape != to_shape({rows, 4 * anchors, height, width}) ||
      args.tensor(2).shape != to_shape({rows, 3}))
    return type_error(format("cls_prob {}, bbox_pred {} and im_info {} do not fit {} anchors at each place",
                             type_str(args.types[0]), type_str(args.types[1]), type_str(args.types[2]), anchors));
  if (a.feature_stride < 1 || a.feature_stride > (1 << 16) || a.rpn_post_nms_top_n < 1 ||
      a.rpn_post_nms_top_n > (1 << 20))
    return type_error("feature_stride or rpn_post_nms_top_n is out of range");
  for (double v : a.ratios)
    if (!(v > 0x1p-20 && v < 0x1p20)) return type_error(format("a ratio of {} is out of range", v));
  for (double v : a.scales)
    if (!(v > 0x1p-20 && v < 0x1p20)) return type_error(format("a scale of {} is out of range", v));
  TW_TRY_STATUS(fits_constant({height, width, anchors, 4}));
  const int64_t n = height * width * anchors;
  const int64_t looked_at = a.rpn_pre_nms_top_n > 0 ? std::min(a.rpn_pre_nms_top_n, n) : n;
  const int64_t wanted = a.rpn_post_nms_top_n;
  // Base windows: one area for each aspect ratio, at whole pixels, then scaled; they are shifted to every position.
  std::vector<double> table, down, across;
  const double base = static_cast<double>(a.feature_stride), middle = 0.5 * (base - 1);
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (double ratio : a.ratios)
        for (double scale : a.scales) {
          const double side = std::floor(std::sqrt(std::floor(base * base / ratio)) + 0.5);
          const double w = side * scale, h = std::floor(side * ratio + 0.5) * scale;
          const double dx = static_cast<double>(x) * base, dy = static_cast<double>(y) * base;
          for (double v : {middle - 0.5 * (w - 1) + dx, middle - 0.5 * (h - 1) + dy, middle + 0.5 * (w - 1) + dx,
                           middle + 0.5 * (h - 1) + dy})
            table.push_back(v);
          down.push_back(static_cast<double>(y));
          across.push_back(static_cast<double>(x));
        }
  const DataType dtype = args.tensor(0).dtype;
  Detection c(args);
  const Expr anchor = c.numbers(table, {1, n, 4}, dtype);
  const Expr deltas = c.reshape(
      c.transpose(c.reshape(c.cast(c[1], dtype), {rows, anchors, 4, height, width}), {0, 3, 4, 1, 2}), {rows, n, 4});
  auto pairs = [&](const Expr& x, int64_t from) { return c.slice(x, 2, from, from + 2); };
  Expr low, high;
  if (a.iou_loss) {
    low = c.plus(pairs(anchor, 0), pairs(deltas, 0));
    high = c.plus(pairs(anchor, 2), pairs(deltas, 2));
  } else {
    const Expr extent = c.plus(c.minus(pairs(anchor, 2), pairs(anchor, 0)), 1);
    const Expr centre = c.plus(pairs(anchor, 0), c.times(c.minus(extent, 1), 0.5));
    const Expr at = c.plus(c.times(pairs(deltas, 0), extent), centre);
    const Expr half = c.times(c.minus(c.times(c.call("exp", {pairs(deltas, 2)}), extent), 1), 0.5);
    low = c.minus(at, half), high = c.plus(at, half);
  }
  const Expr info = c.cast(c[2], dtype);
  auto of_picture = [&](int64_t i) { return c.slice(info, 1, i, i + 1); };  // (rows, 1)
  // The image's last pixel, x before y.
  const Expr edge = c.reshape(c.minus(c.concatenate({of_picture(1), of_picture(0)}, 1), 1), {rows, 1, 2});
  auto held = [&](const Expr& v) { return c.call("maximum", {c.call("minimum", {v, edge}), c.number(0, dtype)}); };
  low = held(low), high = held(high);
  const Expr least = c.times(of_picture(2), static_cast<double>(a.rpn_min_size));
  const Expr sides = c.plus(c.minus(high, low), 1);
  const Expr small = c.call("less", {c.reduced("min", sides, 2), least});
  const Expr grow = c.reshape(c.chosen(small, c.broadcast(c.times(least, 0.5), {rows, n}), 0), {rows, n, 1});
  const Expr boxes = c.concatenate({c.minus(low, grow), c.plus(high, grow)}, 2);
  auto beyond = [&](const std::vector<double>& at, int64_t i) {
    const Expr real = c.call("trunc", {c.divide(of_picture(i), base)});
    return c.call("greater_equal", {c.numbers(at, {1, n}, dtype), real});
  };
  const Expr invalid = c.call("logical_or", {small, c.call("logical_or", {beyond(down, 0), beyond(across, 1)})});
  const Expr positive = c.slice(c[0], 1, anchors, 2 * anchors);
  Expr scores = c.reshape(c.transpose(positive, {0, 2, 3, 1}), {rows, n});
  scores = c.where(invalid, c.number(-1, dtype), scores);
  const Expr order = c.slice(c.descending_order(scores), 1, 0, looked_at);
  const Expr best = c.gather_rows(boxes, order, {rows, n, 4});
  const Expr kept = c.call<SuppressAttrs>(
      "vision.suppress",
      {best, c.broadcast(c.number(1, dtype), {rows, looked_at}), c.broadcast(c.iota(looked_at), {rows, looked_at}),
       c.broadcast(c.number(static_cast<double>(looked_at), kInt32), {rows}),
       c.number(static_cast<double>(wanted), kInt32), c.number(a.threshold, dtype)},
      [](auto& s) { s.pixels = true; });
  // The kept boxes, repeated cyclically up to the required number.
  const Expr found = c.call("vision.compact", {kept});
  const Expr count = c.reshape(c.call("maximum", {c.field(found, 1), c.number(1, kInt32)}), {rows, 1});
  const Expr turn = c.call("floor_mod", {c.broadcast(c.iota(wanted), {rows, wanted}), count});
  const Expr place = c.gather_rows(c.field(found, 0), turn, {rows, looked_at});
  const Expr result = c.gather_rows(best, place, {rows, looked_at, 4});
  std::vector<double> numbers;
  for (int64_t r = 0; r < rows; ++r) numbers.push_back(static_cast<double>(r));
  const Expr picture = c.broadcast(c.numbers(numbers, {rows, 1, 1}, dtype), {rows, wanted, 1});
  return c.result(c.reshape(c.concatenate({picture, result}, 2), {rows * wanted, 5}));
}

// A region operator in either layout, by the channels-last one.
template <class A>
Result<Expr> of_regions(const TypeArgs& args, const char* op, AttrsRef attrs) {
  const auto& a = attrs_of<A>(args);
  if (a.layout != "NCHW" && a.layout != "NHWC")
    return type_error(format("layout is \"{}\", not NCHW or NHWC", a.layout));
  TW_TRY_STATUS(needs_floats(args, 0, "data", 4));
  TW_TRY_STATUS(needs_floats(args, 1, "rois", 2));
  Composition c(args);
  if (a.layout == "NHWC") return c.result(c.call(op, {c[0], c[1]}, std::move(attrs)));
  const Expr bins = c.call(op, {c.transpose(c[0], {0, 2, 3, 1}), c[1]}, std::move(attrs));
  return c.result(c.transpose(bins, {0, 3, 1, 2}));
}
Result<Expr> expand_roi_align(const TypeArgs& args) {
  const auto& a = attrs_of<ROIAlignAttrs>(args);
  if (a.mode != "avg" && a.mode != "max") return type_error(format("mode is \"{}\", not avg or max", a.mode));
  return of_regions<ROIAlignAttrs>(args, "vision.region_align", make_attrs<RegionAlignAttrs>([&](auto& r) {
                                     r.pooled_size = a.pooled_size;
                                     r.spatial_scale = a.spatial_scale;
                                     r.sample_ratio = a.sample_ratio;
                                     r.mode = a.mode;
                                   }));
}
Result<Expr> expand_roi_pool(const TypeArgs& args) {
  const auto& a = attrs_of<ROIPoolAttrs>(args);
  return of_regions<ROIPoolAttrs>(args, "vision.region_pool", make_attrs<ROIPoolAttrs>([&](auto& r) {
                                    r.pooled_size = a.pooled_size;
                                    r.spatial_scale = a.spatial_scale;
                                    r.layout = "NHWC";
                                  }));
}

Result<Type> yolo_reorg_type(const TypeArgs& args) {
  const int64_t s = attrs_of<YoloReorgAttrs>(args).stride;
  const Shape& d = args.tensor(0).shape;
  if (d.size() != 4) return type_error(format("data is {}, not (N, C, H, W)", shape_str(d)));
  auto divides = [&](const Dim& size, int64_t by) { return !size.is_const() || size.value() % by == 0; };
  if (s < 1 || s > 4096 || !divides(d[1], s * s) || !divides(d[2], s) || !divides(d[3], s))
    return type_error(format("{} does not divide by stride {}", shape_str(d), s));
  return tensor_type({d[0], d[1] * Dim(s * s), floordiv(d[2], s), floordiv(d[3], s)}, args.tensor(0).dtype);
}
Result<Expr> expand_yolo_reorg(const TypeArgs& args) {
  const Ints d = TW_TRY(known_sizes(args, 0));
  const Type type = TW_TRY(yolo_reorg_type(args));
  TW_TRY_STATUS(no_empty(d));
  const int64_t stride = attrs_of<YoloReorgAttrs>(args).stride, deep = d[1] / (stride * stride);
  Composition c(args);
  const Expr wide = c.reshape(c[0], {d[0], deep, d[2], stride, d[3], stride});
  return c.result(c.reshape(c.transpose(wide, {0, 3, 5, 1, 2, 4}), *static_shape(as_tensor(type)->shape)));
}

Result<Expr> expand_multibox_prior(const TypeArgs& args) {
  const auto& a = attrs_of<MultiBoxPriorAttrs>(args);
  const Ints d = TW_TRY(known_sizes(args, 0));
  if (d.size() != 4) return type_error(format("data is {}, not (N, C, H, W)", shape_str(d)));
  if (a.sizes.empty() || a.ratios.empty() || a.steps.size() != 2 || a.offsets.size() != 2)
    return type_error("it needs sizes, ratios, two steps and two offsets");
  const int64_t height = d[2], width = d[3], boxes = static_cast<int64_t>(a.sizes.size() + a.ratios.size()) - 1;
  TW_TRY_STATUS(fits_constant({height, width, boxes, 4}));
  const double step_y = a.steps[0] > 0 ? a.steps[0] : 1 / static_cast<double>(height),
               step_x = a.steps[1] > 0 ? a.steps[1] : 1 / static_cast<double>(width);
  const double narrow = static_cast<double>(height) / static_cast<double>(width);
  std::vector<double> table;
  for (int64_t i = 0; i < height; ++i)
    for (int64_t j = 0; j < width; ++j)
      for (size_t k = 0; k < static_cast<size_t>(boxes); ++k) {
        const bool sized = k < a.sizes.size();
        const double size = sized ? a.sizes[k] : a.sizes[0],
                     root = sized ? 1 : std::sqrt(a.ratios[k - a.sizes.size() + 1]);
        const double y = (static_cast<double>(i) + a.offsets[0]) * step_y,
                     x = (static_cast<double>(j) + a.offsets[1]) * step_x;
        const double w = size * narrow * root / 2, h = size / root / 2;
        for (double v : {x - w, y - h, x + w, y + h}) table.push_back(a.clip ? std::fmin(std::fmax(v, 0), 1) : v);
      }
  Composition c(args);
  return c.result(c.numbers(table, {1, height * width * boxes, 4}, kFloat32));
}

}  // namespace

std::vector<OpDef> composed_vision_ops() {
  constexpr OpPattern kOpaque = OpPattern::kOpaque;
  const std::vector<ArgDoc> regions = {{"data", "floats, in `layout`"},
                                       {"rois", "(regions, 5) floats: picture, x0, y0, x1, y1"}};
  return {
      define_composed(
          "vision.get_valid_counts",
          "Boxes with a score above the threshold, moved to the front: how many, the boxes, where they were.",
          {{"data", "(pictures, n, elements) floats"}, {"score_threshold", "one number"}}, kOpaque,
          expand_get_valid_counts, make_default_attrs<GetValidCountsAttrs>, get_valid_counts_type),
      define_composed(
          "vision.non_max_suppression",
          "Boxes by falling score; those that a better one of their class overlaps become -1. Or the indices "
          "of those that stay, and how many.",
          {{"data", "(pictures, n, elements) floats"},
           {"valid_count", "(pictures): how many of the boxes count"},
           {"indices", "(pictures, n): what the indices of the result come from"},
           {"max_output_size", "one number; below 0: no limit"},
           {"iou_threshold", "one number"}},
          kOpaque, expand_non_max_suppression, make_default_attrs<NonMaximumSuppressionAttrs>,
          non_max_suppression_type),
      define_composed(
          "vision.all_class_non_max_suppression",
          "Boxes that stay, for each picture and class: their indices and how many, or by picture with scores.",
          {{"boxes", "(pictures, n, 4) floats"},
           {"scores", "(pictures, classes, n) floats"},
           {"max_output_boxes_per_class", "one number; not above 0: no limit"},
           {"iou_threshold", "one number"},
           {"score_threshold", "one number"}},
          kOpaque, expand_all_class_non_max_suppression, make_default_attrs<AllClassNonMaximumSuppressionAttrs>,
          all_class_non_max_suppression_type),
      define_composed("vision.multibox_transform_loc",
                      "Anchors moved as predicted, with their best class and its probability; how many are objects.",
                      {{"cls_prob", "(pictures, classes, n) floats, the background first"},
                       {"loc_pred", "(pictures, 4 n) floats"},
                       {"anchor", "(1, n, 4) floats"}},
                      kOpaque, expand_multibox_transform_loc, make_default_attrs<MultiBoxTransformLocAttrs>),
      define_composed("vision.multibox_prior", "Anchors at every place of data: (1, H * W * boxes, 4).",
                      {{"data", "(N, C, H, W); only its sizes count"}}, kOpaque, expand_multibox_prior,
                      make_default_attrs<MultiBoxPriorAttrs>),
      define_composed(
          "vision.proposal",
          "Regions that may hold objects, of anchors moved as predicted: (pictures * rpn_post_nms_top_n, 5).",
          {{"cls_prob", "(pictures, 2 anchors, H, W) floats"},
           {"bbox_pred", "(pictures, 4 anchors, H, W) floats"},
           {"im_info", "(pictures, 3) floats: height, width, scale"}},
          kOpaque, expand_proposal, make_default_attrs<ProposalAttrs>),
      define_composed("vision.roi_align", "Regions at pooled_size: means or largest of bilinear samples.", regions,
                      OpPattern::kOutEWiseFusable, expand_roi_align, make_default_attrs<ROIAlignAttrs>),
      define_composed("vision.roi_pool", "Regions at pooled_size: the largest pixel of each bin.", regions,
                      OpPattern::kOutEWiseFusable, expand_roi_pool, make_default_attrs<ROIPoolAttrs>),
      define_composed("vision.yolo_reorg", "Blocks of stride x stride places become channels (Darknet's reorg).",
                      {{"data", "(N, C, H, W)"}}, OpPattern::kInjective, expand_yolo_reorg,
                      make_default_attrs<YoloReorgAttrs>, yolo_reorg_type),
  };
}

}  // namespace tilewright::relay
