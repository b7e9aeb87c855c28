// SPDX-License-Identifier: Apache-2.0
// Operators on images and small matrices, composed of gathers, scatters and arithmetic.
#include <algorithm>

#include "base/format.h"
#include "frontend/matrices.h"
#include "frontend/onnx/convert.h"
#include "relay/ops/image/region_layout.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

// Col2Im: overlapping blocks are added up by a scatter whose indices are known at import.
Values col2im(NodeContext& c) {
  // Booleans are summed as integers; a non-zero sum is true.
  const DataType dtype = c.dtype(c.input(0));
  Expr x = dtype.is_bool() ? c.cast(c.input(0), kInt32) : c.input(0);
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
  // The index of each column element in the padded image.
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
  return {c.cast(picture, dtype)};
}

// Determinants of small matrices, by expansion along the first row.
Expr expanded_determinant(NodeContext& c, const Expr& x, const Ints& columns, int64_t row, int64_t rank) {
  Expr sum;
  for (size_t i = 0; i < columns.size(); ++i) {
    Expr element = c.squeeze(c.slice(c.slice(x, rank - 2, row, row + 1), rank - 1, columns[i], columns[i] + 1),
                             {rank - 2, rank - 1});
    if (columns.size() > 1) {
      Ints others = columns;
      others.erase(others.begin() + static_cast<int64_t>(i));
      element = c.mul(element, expanded_determinant(c, x, others, row + 1, rank));
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
  if (n > 4) {
    const DataType dtype = c.dtype(x);
    return {c.cast(frontend::determinant(c, dtype == kFloat64 ? x : c.cast(x, kFloat32)), dtype)};
  }
  Ints columns;
  for (int64_t i = 0; i < n; ++i) columns.push_back(i);
  return {expanded_determinant(c, x, columns, 0, rank)};
}

// Writes values back to the indices that MaxPool returned.
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
  // Indices refer to the image that MaxPool saw; with a larger output that image fills its leading corner.
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

// Resamples regions of images to one size. A bin is the mean of a grid of bilinear samples, or the largest weighted
// pixel among those that contribute to one.
Values roi_align(NodeContext& c) {
  Expr data = c.input(0), rois = c.input(1), batches = c.cast(c.input(2), c.dtype(rois));
  if (c.rank(data) != 4 || c.rank(rois) != 2 || c.rank(batches) != 1)
    c.fail_type("its operands must have rank 4, 2 and 1");
  int64_t height = c.int_attr("output_height", 1), width = c.int_attr("output_width", 1),
          samples = c.int_attr("sampling_ratio", 0);
  double scale = c.float_attr("spatial_scale", 1);
  bool half_pixel = c.opset() >= 16 && c.string_attr("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  if (height < 1 || width < 1 || samples < 0 || height > 4096 || width > 4096 || samples > 64)
    c.fail("its sizes are out of range");
  const std::string mode = c.string_attr("mode", "avg");
  if (mode != "avg" && mode != "max") c.fail(format("its mode '{}' is unknown", mode));
  Expr regions = c.concat({c.reshape(batches, {c.dims(rois)[0], 1}), rois}, 1);
  const bool planes = mode == "avg" && samples > 0 &&
                      relay::pools_planes(as_tensor(data->type)->shape, Dim(c.dims(rois)[0]), {height, width});
  Expr bins = c.call("vision.region_align", {planes ? data : c.transpose(data, {0, 2, 3, 1}), regions},
                     make_attrs<relay::RegionAlignAttrs>([&](auto& a) {
                       a.pooled_size = {height, width};
                       a.spatial_scale = scale;
                       a.sample_ratio = samples;
                       a.layout = planes ? "NCHW" : "NHWC";
                       a.mode = mode == "max" ? "max_pixel" : "avg";
                       a.half_pixel = half_pixel;
                     }));
  return {planes ? bins : c.transpose(bins, {0, 3, 1, 2})};
}

Values max_roi_pool(NodeContext& c) {
  Expr data = c.input(0), rois = c.input(1);
  if (c.rank(data) != 4 || c.rank(rois) != 2) c.fail_type("its operands must have rank 4 and 2");
  const std::vector<int64_t> bins = c.ints_attr("pooled_shape");
  if (bins.size() != 2 || bins[0] < 1 || bins[1] < 1 || bins[0] > 4096 || bins[1] > 4096)
    c.fail("its pooled_shape is not two sizes up to 4096");
  const double scale = c.float_attr("spatial_scale", 1);
  return {c.call("vision.roi_pool", {data, rois}, make_attrs<relay::ROIPoolAttrs>([&](auto& a) {
                   a.pooled_size = bins;
                   a.spatial_scale = scale;
                 }))};
}

// Runs in the runtime: the image's size is known only from its bytes.
Values image_decoder(NodeContext& c) {
  const std::string pixels = c.string_attr("pixel_format", "RGB");
  if (pixels != "RGB" && pixels != "BGR" && pixels != "Grayscale")
    c.fail_type(format("its pixel_format '{}' is unknown", pixels));
  if (c.dtype(c.input(0)) != kUInt8) c.fail_type("an encoded picture is a vector of uint8");
  throw ConversionFailure{Diagnostic(ErrorCode::kFreeDimension, "the size of a decoded picture is only known in a run",
                                     {}, "compile the model as a VM program")};
}

constexpr ConverterEntry kVisionConverters[] = {{"Col2Im", 18, col2im},
                                                {"Det", 11, det},
                                                {"ImageDecoder", 20, image_decoder},
                                                {"MaxUnpool", 9, max_unpool},
                                                {"MaxRoiPool", 1, max_roi_pool},
                                                {"RoiAlign", 10, roi_align}};

}  // namespace

std::span<const ConverterEntry> vision_converters() { return kVisionConverters; }

}  // namespace tilewright::onnx
