// SPDX-License-Identifier: Apache-2.0
// Operators on pictures and small matrices, written out in gathers, scatters and arithmetic.
#include <algorithm>

#include "base/format.h"
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

// Columns back to pictures, overlapping blocks added up: a scatter with places known at import.
Values col2im(NodeContext& c) {
  Expr x = c.input(0);
  Ints image = c.ints(1, "image shape"), block = c.ints(2, "block shape"), d = c.dims(x);
  size_t n = image.size();
  Ints strides = c.ints_attr("strides", Ints(n, 1)), dilations = c.ints_attr("dilations", Ints(n, 1)),
       pads = c.ints_attr("pads", Ints(2 * n, 0));
  if (n < 1 || block.size() != n || strides.size() != n || dilations.size() != n || pads.size() != 2 * n ||
      d.size() != 3)
    c.fail("its shapes and attributes do not fit");
  for (const Ints* list : {&image, &block, &strides, &dilations})
    for (int64_t v : *list)
      if (v < 1 || v > (1 << 20)) c.fail(format("a size of {} is out of range", v));
  for (int64_t v : pads)
    if (v < 0 || v > (1 << 20)) c.fail(format("a padding of {} is out of range", v));
  Ints steps(n), padded(n);
  for (size_t i = 0; i < n; ++i) {
    padded[i] = image[i] + pads[i] + pads[i + n];
    int64_t room = padded[i] - dilations[i] * (block[i] - 1) - 1;
    if (room < 0) c.fail("its blocks are larger than its image");
    steps[i] = room / strides[i] + 1;
  }
  int64_t in_block = c.product(block), blocks = c.product(steps), area = c.product(padded);
  if (d[1] % in_block != 0 || d[2] != blocks)
    c.fail_type(format("an operand of {} does not hold {} blocks of {}", shape_str(d), blocks, in_block));
  if (in_block * blocks > (1 << 24)) c.unsupported(format("{} elements a picture", in_block * blocks));
  int64_t channels = d[1] / in_block;
  // The place of each column element in the padded picture.
  Ints places;
  for (int64_t k = 0; k < in_block; ++k)
    for (int64_t b = 0; b < blocks; ++b) {
      int64_t place = 0, inside = k, which = b, unit = 1;
      for (size_t i = n; i-- > 0;) {
        int64_t at = (inside % block[i]) * dilations[i] + (which % steps[i]) * strides[i];
        inside /= block[i];
        which /= steps[i];
        place += at * unit;
        unit *= padded[i];
      }
      places.push_back(place);
    }
  Expr columns = c.reshape(x, {d[0] * channels, in_block * blocks});
  Expr index =
      c.broadcast_to(c.reshape(c.ints_constant(places), {1, in_block * blocks}), {d[0] * channels, in_block * blocks});
  Expr sums = c.call("scatter_elements", {c.zeros(c.dtype(x), {d[0] * channels, area}), index, columns},
                     make_attrs<relay::ScatterElementsAttrs>([](auto& a) {
                       a.axis = 1;
                       a.reduction = "add";
                     }));
  Ints shape = {d[0], channels};
  shape.insert(shape.end(), padded.begin(), padded.end());
  Expr picture = c.reshape(sums, shape);
  for (size_t i = 0; i < n; ++i)
    if (pads[i] != 0 || pads[i + n] != 0)
      picture = c.slice(picture, static_cast<int64_t>(i) + 2, pads[i], pads[i] + image[i]);
  return {picture};
}

// Determinants of matrices up to 4 x 4, by expansion along the first row.
Expr determinant(NodeContext& c, const Expr& x, const Ints& columns, int64_t row, int64_t rank) {
  Expr sum;
  for (size_t i = 0; i < columns.size(); ++i) {
    Expr element = c.squeeze(c.slice(c.slice(x, rank - 2, row, row + 1), rank - 1, columns[i], columns[i] + 1),
                             {rank - 2, rank - 1});
    if (columns.size() > 1) {
      Ints others = columns;
      others.erase(others.begin() + static_cast<int64_t>(i));
      element = c.mul(element, determinant(c, x, others, row + 1, rank));
    }
    sum = !sum ? element : i % 2 ? c.sub(sum, element) : c.add(sum, element);
  }
  return sum;
}
Values det(NodeContext& c) {
  Expr x = c.input(0);
  int64_t rank = c.rank(x);
  if (rank < 2) c.fail_type("its input is not a matrix");
  int64_t n = c.dims(x).back();
  if (c.dims(x)[static_cast<size_t>(rank - 2)] != n || n < 1) c.fail_type("its matrices are not square");
  if (n > 4) c.unsupported(format("matrices of {} x {}", n, n));
  Ints columns;
  for (int64_t i = 0; i < n; ++i) columns.push_back(i);
  return {determinant(c, x, columns, 0, rank)};
}

// Values put back where a max pool found them.
Values max_unpool(NodeContext& c) {
  Expr x = c.input(0), indices = c.input(1);
  Ints d = c.dims(x), kernel = c.ints_attr("kernel_shape");
  size_t n = d.size() < 2 ? 0 : d.size() - 2;
  Ints strides = c.ints_attr("strides", Ints(n, 1)), pads = c.ints_attr("pads", Ints(2 * n, 0));
  if (n < 1 || kernel.size() != n || strides.size() != n || pads.size() != 2 * n)
    c.fail("its attributes do not fit its input");
  Ints plain = {d[0], d[1]};
  for (size_t i = 0; i < n; ++i) plain.push_back((d[i + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + n]);
  Ints shape = c.has(2) ? c.ints(2, "output shape") : plain;
  if (shape.size() != d.size()) c.fail(format("its output shape {} does not fit", shape_str(shape)));
  // Indices count in the picture the pool saw; a larger output keeps that picture in its corner.
  Expr flat = c.call("scatter_elements",
                     {c.zeros(c.dtype(x), {c.product(plain)}), c.reshape(indices, {-1}), c.reshape(x, {-1})},
                     make_attrs<relay::ScatterElementsAttrs>([](auto& a) { a.axis = 0; }));
  Expr y = c.reshape(flat, plain);
  std::vector<Ints> widths;
  for (size_t i = 0; i < shape.size(); ++i) widths.push_back({0, shape[i] - plain[i]});
  if (shape == plain) return {y};
  return {
      c.call("nn.pad", {y, c.scalar_like(0, y)}, make_attrs<relay::PadAttrs>([&](auto& a) { a.pad_width = widths; }))};
}

// Bilinear samples of pictures at points known at run time. data (N, C, H, W); batch, y, x: index tensors of one shape
// P... (batch int64; y and x float, inside the picture by the caller's clamping). Gives (P..., C): sums of the four
// weighted pixels, or the largest of them.
Expr bilinear(NodeContext& c, const Expr& data, const Expr& batch, const Expr& y, const Expr& x, bool largest) {
  Ints d = c.dims(data);
  Expr rows = c.reshape(c.transpose(data, {0, 2, 3, 1}), {d[0] * d[2] * d[3], d[1]});
  auto clamped = [&](const Expr& v, int64_t size) {
    return c.call("clip", {v}, make_attrs<relay::ClipAttrs>([&](auto& a) {
                    a.a_min = 0;
                    a.a_max = static_cast<double>(size - 1);
                  }));
  };
  auto whole = [&](double v) { return c.scalar(v, kInt64); };
  Expr cy = clamped(y, d[2]), cx = clamped(x, d[3]);
  Expr fy = c.call("floor", {cy}), fx = c.call("floor", {cx});
  Expr wy = c.sub(cy, fy), wx = c.sub(cx, fx);
  Expr y0 = c.cast(fy, kInt64), x0 = c.cast(fx, kInt64);
  Expr y1 = c.call("minimum", {c.add(y0, whole(1)), whole(static_cast<double>(d[2] - 1))});
  Expr x1 = c.call("minimum", {c.add(x0, whole(1)), whole(static_cast<double>(d[3] - 1))});
  Expr one = c.scalar_like(1, wy);
  auto corner = [&](const Expr& iy, const Expr& ix, const Expr& weight) {
    Expr place =
        c.add(c.mul(c.add(c.mul(batch, whole(static_cast<double>(d[2]))), iy), whole(static_cast<double>(d[3]))), ix);
    Expr values = c.call("take", {rows, place}, make_attrs<relay::TakeAttrs>([](auto& a) {
                           a.axis = 0;
                           a.mode = "clip";
                         }));
    return std::pair(values, c.expand(c.cast(weight, c.dtype(data)), c.rank(weight)));
  };
  auto [v00, w00] = corner(y0, x0, c.mul(c.sub(one, wy), c.sub(one, wx)));
  auto [v01, w01] = corner(y0, x1, c.mul(c.sub(one, wy), wx));
  auto [v10, w10] = corner(y1, x0, c.mul(wy, c.sub(one, wx)));
  auto [v11, w11] = corner(y1, x1, c.mul(wy, wx));
  auto join = [&](const Expr& a, const Expr& b) { return largest ? c.call("maximum", {a, b}) : c.add(a, b); };
  return join(join(c.mul(v00, w00), c.mul(v01, w01)), join(c.mul(v10, w10), c.mul(v11, w11)));
}

// Regions of pictures resampled to one size, each bin the mean of a grid of bilinear samples, or the largest weighted
// pixel that takes part in one.
Values roi_align(NodeContext& c) {
  Expr data = c.input(0), rois = c.input(1), batches = c.cast(c.input(2), kInt64);
  if (c.rank(data) != 4 || c.rank(rois) != 2 || c.rank(batches) != 1)
    c.fail_type("its operands must have rank 4, 2 and 1");
  int64_t height = c.int_attr("output_height", 1), width = c.int_attr("output_width", 1),
          samples = c.int_attr("sampling_ratio", 0);
  double scale = c.float_attr("spatial_scale", 1);
  bool half_pixel = c.opset() >= 16 && c.string_attr("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  if (height < 1 || width < 1 || samples < 0 || height > 4096 || width > 4096 || samples > 64)
    c.fail("its sizes are out of range");
  if (samples == 0) c.unsupported("sampling_ratio 0, a number of samples that depends on the region");
  const std::string mode = c.string_attr("mode", "avg");
  if (mode != "avg" && mode != "max") c.fail(format("its mode '{}' is unknown", mode));
  const bool largest = mode == "max";
  Ints d = c.dims(data);
  int64_t regions = c.dims(rois)[0];
  DataType dtype = c.dtype(rois);
  auto number = [&](double v) { return c.scalar(v, dtype); };
  auto edge = [&](int64_t i) {  // (regions, 1, 1, 1, 1)
    Expr e = c.sub(c.mul(c.slice(rois, 1, i, i + 1), number(scale)), number(half_pixel ? 0.5 : 0));
    return c.reshape(e, {regions, 1, 1, 1, 1});
  };
  // Axes: region, bin row, sample row, bin column, sample column.
  auto coordinates = [&](const Expr& low, const Expr& high, int64_t bins, bool vertical) {
    Expr extent = c.sub(high, low);
    if (!half_pixel) extent = c.call("maximum", {extent, number(1)});
    Expr bin = c.div(extent, number(static_cast<double>(bins)));
    Tensor steps(dtype, vertical ? Ints{1, bins, samples, 1, 1} : Ints{1, 1, 1, bins, samples});
    for (int64_t b = 0; b < bins; ++b)
      for (int64_t s = 0; s < samples; ++s)
        steps.set_double(b * samples + s,
                         static_cast<double>(b) + (static_cast<double>(s) + 0.5) / static_cast<double>(samples));
    return c.add(low, c.mul(bin, c.constant_of(steps)));
  };
  Ints all = {regions, height, samples, width, samples};
  Expr y = c.broadcast_to(coordinates(edge(1), edge(3), height, true), all);
  Expr x = c.broadcast_to(coordinates(edge(0), edge(2), width, false), all);
  Expr batch = c.broadcast_to(c.reshape(batches, {regions, 1, 1, 1, 1}), all);
  // Points more than one pixel outside count as zero.
  auto inside = [&](const Expr& v, int64_t size) {
    return c.call("logical_and", {c.call("greater_equal", {v, number(-1)}),
                                  c.call("less_equal", {v, number(static_cast<double>(size))})});
  };
  Expr valid = c.cast(c.call("logical_and", {inside(y, d[2]), inside(x, d[3])}), c.dtype(data));
  Expr sampled = c.mul(bilinear(c, data, batch, y, x, largest), c.expand(valid, 5));
  return {c.transpose(c.reduce(largest ? "max" : "mean", sampled, {2, 4}, false), {0, 3, 1, 2})};
}

constexpr ConverterEntry kTable[] = {
    {"Col2Im", 18, col2im}, {"Det", 11, det}, {"MaxUnpool", 9, max_unpool}, {"RoiAlign", 10, roi_align}};

}  // namespace

std::span<const ConverterEntry> vision_converters() { return kTable; }

}  // namespace tilewright::onnx
