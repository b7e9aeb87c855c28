// SPDX-License-Identifier: Apache-2.0
// The basic steps of object detection that other operators cannot express: greedy box selection, indices of set
// elements, region sampling. The classic operators built on them are in composed_vision.cc.
#include <algorithm>
#include <cmath>

#include "relay/ops/define.h"
#include "relay/ops/image/attrs_vision.h"
#include "relay/ops/reference.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

// Required rank and kind of an operand.
enum class Kind : uint8_t { kFloat, kInt };
Status expect(const TypeArgs& args, size_t i, const char* name, size_t rank, Kind kind) {
  const auto& t = args.tensor(i);
  if (t.shape.size() != rank)
    return type_error(format("{} has the shape {}, whose rank is not {}", name, shape_str(t.shape), rank));
  if (kind == Kind::kFloat ? !t.dtype.is_float() : !t.dtype.is_integral())
    return type_error(
        format("{} has the dtype {}, not {}", name, t.dtype.str(), kind == Kind::kFloat ? "a float" : "an integer"));
  return Ok{};
}

Result<Type> suppress_type(const TypeArgs& args) {
  if (args.types.size() != 6 && args.types.size() != 7)
    return type_error(format("it takes 6 or 7 operands, not {}", args.types.size()));
  for (size_t i = 0; i < args.types.size(); ++i)
    if (!as_tensor(args.types[i]))
      return type_error(format("operand {} is {}, not a tensor", i, type_str(args.types[i])));
  TW_TRY_STATUS(expect(args, 0, "boxes", 3, Kind::kFloat));
  TW_TRY_STATUS(expect(args, 1, "scores", 2, Kind::kFloat));
  TW_TRY_STATUS(expect(args, 2, "order", 2, Kind::kInt));
  TW_TRY_STATUS(expect(args, 3, "valid", 1, Kind::kInt));
  TW_TRY_STATUS(expect(args, 4, "max_output_size", 0, Kind::kInt));
  TW_TRY_STATUS(expect(args, 5, "iou_threshold", 0, Kind::kFloat));
  if (args.types.size() == 7) TW_TRY_STATUS(expect(args, 6, "classes", 2, Kind::kFloat));
  const Shape &boxes = args.tensor(0).shape, &order = args.tensor(2).shape;
  auto fits = [&](const Shape& shape) { return !dims_differ(shape[0], order[0]) && !dims_differ(shape[1], order[1]); };
  if (dims_differ(boxes[2], Dim(4)) || dims_differ(boxes[1], order[1]) || !fits(args.tensor(1).shape) ||
      dims_differ(args.tensor(3).shape[0], order[0]) || (args.types.size() == 7 && !fits(args.tensor(6).shape)))
    return type_error(
        format("boxes {}, scores {}, order {} and valid {} are not (pictures, n, 4), (rows, n), (rows, n) "
               "and (rows)",
               shape_str(boxes), shape_str(args.tensor(1).shape), shape_str(order), shape_str(args.tensor(3).shape)));
  if (boxes[0].is_const() && order[0].is_const()) {
    const int64_t pictures = boxes[0].value(), rows = order[0].value();
    if (pictures == 0 ? rows != 0 : rows % pictures != 0)
      return type_error(format("{} rows are not divided among {} pictures", rows, pictures));
  }
  return tensor_type(order, kInt32);
}

struct Rectangle {
  double left, top, right, bottom, area, kind;
};
Result<std::vector<Value>> eval_suppress(const EvalArgs& args) {
  const auto& a = args.as<SuppressAttrs>();
  const Value &boxes = args.inputs[0], &scores = args.inputs[1], &order = args.inputs[2], &valid = args.inputs[3];
  const int64_t limit = args.inputs[4].i[0], rows = order.shape[0], n = order.shape[1], pictures = boxes.shape[0];
  const double threshold = args.inputs[5].f[0], end = a.pixels ? 1 : 0;
  const Value* classes = args.inputs.size() == 7 ? &args.inputs[6] : nullptr;
  Value keep = out_value(args);
  std::vector<Rectangle> list;
  for (int64_t r = 0; r < rows && n > 0; ++r) {
    list.clear();
    const int64_t from = r / (rows / pictures) * n, last = std::clamp<int64_t>(valid.i[r], 0, n);
    int64_t counted = 0;
    for (int64_t j = 0; j < last; ++j) {
      int64_t& stays = keep.i[r * n + j];
      if (!a.pixels && !(threshold > 0)) {
        stays = 1;
        continue;
      }
      if (counted == limit) break;
      const int64_t i = std::clamp<int64_t>(order.i[r * n + j], 0, n - 1);
      if (!(scores.f[r * n + i] > 0)) {
        stays = 1;
        counted += a.count_all;
        continue;
      }
      const double* c = &boxes.f[static_cast<size_t>((from + i) * 4)];
      Rectangle box{c[0], c[1], c[2], c[3], 0, classes ? classes->f[r * n + i] : 0};
      if (!a.pixels)
        box = {std::min(c[0], c[2]), std::min(c[1], c[3]), std::max(c[0], c[2]), std::max(c[1], c[3]), 0, box.kind};
      box.area = (box.right - box.left + end) * (box.bottom - box.top + end);
      const bool falls = std::any_of(list.begin(), list.end(), [&](const Rectangle& other) {
        if (!a.force_suppress && box.kind != other.kind) return false;
        const double width = std::min(box.right, other.right) - std::max(box.left, other.left) + end;
        const double height = std::min(box.bottom, other.bottom) - std::max(box.top, other.top) + end;
        const double inner = std::max(0.0, width) * std::max(0.0, height), all = box.area + other.area - inner;
        if (a.pixels) return inner / all > threshold;
        return (all <= 0 ? 0 : inner / all) >= threshold;
      });
      if (falls) continue;
      stays = 1;
      ++counted;
      if (!classes || box.kind >= 0) list.push_back(box);
    }
  }
  return one(std::move(keep));
}

Result<Type> compact_type(const TypeArgs& args) {
  const auto& t = args.tensor(0);
  if (t.shape.size() != 2 || !(t.dtype.is_bool() || t.dtype.is_integral()))
    return type_error(format("flags are {}{}, not (rows, n) of bools or integers", t.dtype.str(), shape_str(t.shape)));
  return tuple_type({tensor_type(t.shape, kInt32), tensor_type({t.shape[0]}, kInt32)});
}
Result<std::vector<Value>> eval_compact(const EvalArgs& args) {
  const Value& flags = args.inputs[0];
  Value places = out_value(args, 0), counts = out_value(args, 1);
  std::fill(places.i.begin(), places.i.end(), -1);
  const int64_t n = flags.shape[1];
  for (int64_t j = 0; j < flags.size(); ++j)
    if (flags.i[j]) places.i[j / n * n + counts.i[j / n]++] = j % n;
  return std::vector<Value>{std::move(places), std::move(counts)};
}

constexpr int64_t kMostBins = 4096, kMostSamples = 64;
// The places of height, width and channels in a layout of images.
struct ImageAxes {
  explicit ImageAxes(std::string_view layout) : planes(layout == "NCHW") {}
  bool planes;
  size_t height() const { return planes ? 2 : 1; }
  size_t width() const { return planes ? 3 : 2; }
  size_t channels() const { return planes ? 1 : 3; }
  // The element of a channel of a pixel, or of a bin.
  int64_t at(const std::vector<int64_t>& shape, int64_t n, int64_t y, int64_t x, int64_t c) const {
    const int64_t inner[] = {planes ? c : y, planes ? y : x, planes ? x : c};
    return ((n * shape[1] + inner[0]) * shape[2] + inner[1]) * shape[3] + inner[2];
  }
};
template <class A>
Result<Type> region_type(const TypeArgs& args) {
  const auto& a = attrs_of<A>(args);
  TW_TRY_STATUS(expect(args, 0, "data", 4, Kind::kFloat));
  TW_TRY_STATUS(expect(args, 1, "regions", 2, Kind::kFloat));
  TW_TRY_STATUS(checked_window("pooled_size", a.pooled_size, 2));
  for (int64_t size : a.pooled_size)
    if (size > kMostBins) return type_error(format("a pooled_size of {} is out of range", size));
  if (!std::isfinite(a.spatial_scale)) return type_error("spatial_scale is not finite");
  const Shape &data = args.tensor(0).shape, &regions = args.tensor(1).shape;
  if (dims_differ(regions[1], Dim(5)))
    return type_error(format("regions are {}, not (regions, 5)", shape_str(regions)));
  if (a.layout != "NCHW" && a.layout != "NHWC")
    return type_error(format("layout is \"{}\", not NCHW or NHWC", a.layout));
  const ImageAxes axes(a.layout);
  for (size_t d : {size_t{0}, axes.height(), axes.width()})
    if (data[d] == Dim(0) && !(regions[0] == Dim(0)))
      return type_error(format("pictures {} have no pixels", shape_str(data)));
  const Dim rows(a.pooled_size[0]), columns(a.pooled_size[1]), channels = data[axes.channels()];
  return tensor_type(
      axes.planes ? Shape{regions[0], channels, rows, columns} : Shape{regions[0], rows, columns, channels},
      args.tensor(0).dtype);
}
Result<Type> region_align_type(const TypeArgs& args) {
  const auto& a = attrs_of<RegionAlignAttrs>(args);
  if (a.mode != "avg" && a.mode != "max" && a.mode != "max_pixel")
    return type_error(format("mode is \"{}\", not avg, max or max_pixel", a.mode));
  if (a.sample_ratio > kMostSamples)
    return type_error(format("sample_ratio {} is above {}", a.sample_ratio, kMostSamples));
  return region_type<RegionAlignAttrs>(args);
}

// The image index of a region, clamped as the kernels do.
int64_t picture_of(const Value& regions, int64_t k, int64_t pictures) {
  const double v = regions.f[k * 5];
  return v > 0 ? static_cast<int64_t>(std::min(v, static_cast<double>(pictures - 1))) : 0;
}

Result<std::vector<Value>> eval_region_align(const EvalArgs& args) {
  const auto& a = args.as<RegionAlignAttrs>();
  const Value &x = args.inputs[0], &regions = args.inputs[1];
  Value out = out_value(args);
  out.bound.resize(out.f.size());
  const ImageAxes axes(a.layout);
  const int64_t height = x.shape[axes.height()], width = x.shape[axes.width()], channels = x.shape[axes.channels()],
                count = regions.shape[0], rows = a.pooled_size[0], columns = a.pooled_size[1];
  const double worst = x.bound.empty() ? 0 : *std::max_element(x.bound.begin(), x.bound.end()),
               u = 16 * unit_roundoff(x.dtype == kFloat64 ? kFloat64 : kFloat32);
  struct Axis {
    double start, size;
    int64_t samples;
    double extent;
    bool given;
    // Samples of a bin that may be near the map: few of a region of any size.
    int64_t first(int64_t bin) const { return given ? 0 : place(bin, -1, -2); }
    int64_t end(int64_t bin) const { return given ? samples : std::max(first(bin), place(bin, extent, 2)); }
    int64_t place(int64_t bin, double at, double margin) const {
      const double n = static_cast<double>(samples),
                   i = std::floor((at - start - static_cast<double>(bin) * size) * n / size + margin);
      return i > 0 ? static_cast<int64_t>(std::min(i, n)) : 0;
    }
  };
  auto axis = [&](int64_t k, int64_t low, int64_t bins, int64_t extent) {
    const double shift = a.half_pixel ? 0.5 : 0;
    const double from = regions.f[k * 5 + low] * a.spatial_scale - shift,
                 to = regions.f[k * 5 + low + 2] * a.spatial_scale - shift;
    const double length = a.half_pixel || to - from > 1 ? to - from : 1;
    Axis r{from, length / static_cast<double>(bins), a.sample_ratio, static_cast<double>(extent), a.sample_ratio > 0};
    const double least = a.half_pixel ? 0 : 1, many = std::ceil(r.size);
    if (r.samples <= 0) r.samples = static_cast<int64_t>(many > least ? std::min(many, 0x1p31) : least);
    return r;
  };
  struct Tap {
    int64_t before, after;
    double low, high, far;
  };
  auto tap = [&](const Axis& r, int64_t bin, int64_t i, int64_t extent) {
    const double at = r.start + static_cast<double>(bin) * r.size +
                      (static_cast<double>(i) + 0.5) * r.size / static_cast<double>(r.samples);
    const double inside = at >= -1 && at <= static_cast<double>(extent) ? 1 : 0;
    const double held = at > 0 ? std::min(at, static_cast<double>(extent - 1)) : 0;
    const auto before = static_cast<int64_t>(held);
    const double part = held - static_cast<double>(before);
    return Tap{before, std::min(before + 1, extent - 1), (1 - part) * inside, part * inside, std::fabs(held)};
  };
  const bool average = a.mode == "avg";
  for (int64_t k = 0; k < count; ++k) {
    const int64_t picture = picture_of(regions, k, x.shape[0]);
    const Axis down = axis(k, 2, rows, height), across = axis(k, 1, columns, width);
    for (int64_t bin = 0; bin < rows * columns; ++bin) {
      auto to = [&](int64_t c) { return axes.at(out.shape, k, bin / columns, bin % columns, c); };
      std::vector<double> magnitude(static_cast<size_t>(channels));
      const int64_t row0 = down.first(bin / columns), row1 = down.end(bin / columns),
                    column0 = across.first(bin % columns), column1 = across.end(bin % columns);
      // Samples outside of the map are 0.
      const bool all = (row1 - row0) * (column1 - column0) == down.samples * across.samples;
      for (int64_t c = 0; c < channels; ++c)
        out.f[to(c)] = average || !all || down.samples * across.samples == 0 ? 0 : -HUGE_VAL;
      for (int64_t iy = row0; iy < row1; ++iy)
        for (int64_t ix = column0; ix < column1; ++ix) {
          const Tap y = tap(down, bin / columns, iy, height), t = tap(across, bin % columns, ix, width);
          for (int64_t c = 0; c < channels; ++c) {
            auto pixel = [&](int64_t row, int64_t column) { return x.f[axes.at(x.shape, picture, row, column, c)]; };
            const double v[] = {y.low * t.low * pixel(y.before, t.before), y.low * t.high * pixel(y.before, t.after),
                                y.high * t.low * pixel(y.after, t.before), y.high * t.high * pixel(y.after, t.after)};
            const double sum = v[0] + v[1] + v[2] + v[3];
            // A position error changes a sample by that fraction of the difference between its pixels.
            const double pixels = std::fabs(pixel(y.before, t.before)) + std::fabs(pixel(y.before, t.after)) +
                                  std::fabs(pixel(y.after, t.before)) + std::fabs(pixel(y.after, t.after));
            magnitude[c] = std::max(magnitude[c], pixels * (1 + y.far + t.far));
            double& value = out.f[to(c)];
            if (average)
              value += sum;
            else
              value = std::max(value, a.mode == "max" ? sum : *std::max_element(v, v + 4));
          }
        }
      for (int64_t c = 0; c < channels; ++c) {
        if (average) out.f[to(c)] /= static_cast<double>(std::max<int64_t>(down.samples * across.samples, 1));
        out.bound[to(c)] = worst + u * magnitude[c];
      }
    }
  }
  return one(std::move(out));
}

Result<std::vector<Value>> eval_region_pool(const EvalArgs& args) {
  const auto& a = args.as<ROIPoolAttrs>();
  const Value &x = args.inputs[0], &regions = args.inputs[1];
  Value out = out_value(args);
  const ImageAxes axes(a.layout);
  const int64_t height = x.shape[axes.height()], width = x.shape[axes.width()], channels = x.shape[axes.channels()],
                count = regions.shape[0], rows = a.pooled_size[0], columns = a.pooled_size[1];
  if (!x.bound.empty()) out.bound.resize(out.f.size());
  const double worst = x.bound.empty() ? 0 : *std::max_element(x.bound.begin(), x.bound.end());
  auto range = [&](int64_t k, int64_t low, int64_t bin, int64_t bins, int64_t extent) {
    auto rounded = [&](int64_t i) {
      constexpr double kFar = 1e9;
      const double v = regions.f[k * 5 + i] * a.spatial_scale;
      return static_cast<int64_t>(std::round(std::isnan(v) ? -kFar : std::clamp(v, -kFar, kFar)));
    };
    const int64_t start = rounded(low), length = std::max<int64_t>(rounded(low + 2) - start + 1, 1);
    const double size = static_cast<double>(length) / static_cast<double>(bins), epsilon = 1e-5;
    auto held = [&](double v) { return std::clamp<int64_t>(static_cast<int64_t>(v) + start, 0, extent); };
    return std::pair(held(std::floor(static_cast<double>(bin) * size + epsilon)),
                     held(std::ceil(static_cast<double>(bin + 1) * size - epsilon)));
  };
  for (int64_t k = 0; k < count; ++k) {
    const int64_t picture = picture_of(regions, k, x.shape[0]);
    for (int64_t bin = 0; bin < rows * columns; ++bin) {
      const auto [y0, y1] = range(k, 2, bin / columns, rows, height);
      const auto [x0, x1] = range(k, 1, bin % columns, columns, width);
      for (int64_t c = 0; c < channels; ++c) {
        double best = y0 < y1 && x0 < x1 ? -HUGE_VAL : 0;
        for (int64_t y = y0; y < y1; ++y)
          for (int64_t i = x0; i < x1; ++i) best = std::max(best, x.f[axes.at(x.shape, picture, y, i, c)]);
        const int64_t to = axes.at(out.shape, k, bin / columns, bin % columns, c);
        out.f[to] = best;
        if (!out.bound.empty()) out.bound[to] = worst;
      }
    }
  }
  return one(std::move(out));
}

}  // namespace

std::vector<OpDef> vision_ops() {
  const std::vector<ArgDoc> region_args = {{"data", "(N, H, W, C) floats, or (N, C, H, W)"},
                                           {"regions", "(regions, 5) floats: picture, x0, y0, x1, y1"}};
  OpDef suppress = define_op("vision.suppress",
                             "1 for boxes that stay beside better ones, 0 for others, in the given order; a box with a "
                             "score above 0 falls when "
                             "its overlap with an earlier one of its class that stays reaches the threshold. A "
                             "threshold not above 0: all stay.",
                             {{"boxes", "(pictures, n, 4) floats: opposite corners"},
                              {"scores", "(rows, n) floats; as many rows for each picture"},
                              {"order", "(rows, n): numbers of boxes, the best first"},
                              {"valid", "(rows): how many of the order are boxes"},
                              {"max_output_size", "scalar; below 0: no limit"},
                              {"iou_threshold", "scalar"},
                              {"classes", "(rows, n) floats, may be absent; boxes of classes below 0 make none fall"}},
                             OpPattern::kOpaque, suppress_type, eval_suppress, make_default_attrs<SuppressAttrs>);
  suppress.num_inputs = -1;
  return {
      std::move(suppress),
      define_op("vision.compact", "The places of the set elements of each row, then -1; and how many they are.",
                {{"flags", "(rows, n) bools or integers"}}, OpPattern::kOpaque, compact_type, eval_compact, nullptr),
      define_op("vision.region_align",
                "(regions, rows, columns, C) or (regions, C, rows, columns): means or largest of bilinear samples of "
                "each bin of each region.",
                region_args, OpPattern::kOpaque, region_align_type, eval_region_align,
                make_default_attrs<RegionAlignAttrs>),
      define_op(
          "vision.region_pool",
          "(regions, rows, columns, C) or (regions, C, rows, columns): the largest pixel of each bin of each region.",
          region_args, OpPattern::kOpaque, region_type<ROIPoolAttrs>, eval_region_pool,
          make_default_attrs<ROIPoolAttrs>),
  };
}

}  // namespace tilewright::relay
