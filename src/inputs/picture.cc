// SPDX-License-Identifier: Apache-2.0
#include "inputs/picture.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "base/format.h"
#include "base/read_whole.h"
#include "inputs/file.h"

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_STDIO
#define STBI_NO_HDR
#define STBI_NO_PSD
#define STBI_NO_PIC
#define STBI_NO_LINEAR
#define STBI_MAX_DIMENSIONS (1 << 15)
// Zeroed memory: otherwise a JPEG that uses an undefined Huffman table would be decoded with whatever the memory held,
// and read far out of bounds.
#define STBI_MALLOC(size) std::calloc(1, size)
#define STBI_REALLOC(pointer, size) std::realloc(pointer, size)
#define STBI_FREE(pointer) std::free(pointer)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace tilewright::inputs {
namespace {

struct Image {  // rows of pixels, channels interleaved, values 0 to 255
  int width = 0, height = 0, channels = 3;
  std::vector<float> values;
  const float* at(int y, int x) const { return values.data() + (static_cast<size_t>(y) * width + x) * channels; }
  float* at(int y, int x) { return values.data() + (static_cast<size_t>(y) * width + x) * channels; }
};

constexpr int64_t kMostPixels = 1 << 26;

struct Taps {
  int first;
  std::vector<float> weights;
};

// Triangle filter weights around each output pixel; wider than two taps only when shrinking with antialias.
std::vector<Taps> triangle(int from, int to, bool antialias) {
  double ratio = static_cast<double>(from) / to, support = antialias ? std::max(1.0, ratio) : 1.0;
  std::vector<Taps> out;
  for (int i = 0; i < to; ++i) {
    double center = (i + 0.5) * ratio - 0.5;
    int first = static_cast<int>(std::ceil(center - support)), last = static_cast<int>(std::floor(center + support));
    Taps taps{std::clamp(first, 0, from - 1), {}};
    last = std::clamp(last, 0, from - 1);
    // Taps past the edge: dropped with antialiasing (weights are normalised), else they repeat the edge pixel.
    double sum = 0;
    std::vector<double> weights;
    for (int j = taps.first; j <= last; ++j) {
      weights.push_back(std::max(0.0, 1 - std::abs(j - center) / support));
      sum += weights.back();
    }
    if (sum <= 0) weights.assign(1, sum = 1);
    for (double w : weights) taps.weights.push_back(static_cast<float>(w / sum));
    out.push_back(std::move(taps));
  }
  return out;
}

Image resized(const Image& in, int width, int height, bool antialias) {
  if (in.width == width && in.height == height) return in;
  auto columns = triangle(in.width, width, antialias), rows = triangle(in.height, height, antialias);
  Image wide{width, in.height, in.channels, std::vector<float>(static_cast<size_t>(width) * in.height * in.channels)};
  for (int y = 0; y < in.height; ++y)
    for (int x = 0; x < width; ++x)
      for (size_t k = 0; k < columns[x].weights.size(); ++k)
        for (int c = 0; c < in.channels; ++c)
          wide.at(y, x)[c] += columns[x].weights[k] * in.at(y, columns[x].first + static_cast<int>(k))[c];
  Image out{width, height, in.channels, std::vector<float>(static_cast<size_t>(width) * height * in.channels)};
  for (int y = 0; y < height; ++y)
    for (size_t k = 0; k < rows[y].weights.size(); ++k)
      for (int i = 0; i < width * in.channels; ++i)
        out.at(y, 0)[i] += rows[y].weights[k] * wide.at(rows[y].first + static_cast<int>(k), 0)[i];
  for (float& v : out.values) v = std::round(std::clamp(v, 0.0f, 255.0f));  // image values are integral
  return out;
}

Image cropped(const Image& in, int side) {
  Image out{side, side, in.channels, std::vector<float>(static_cast<size_t>(side) * side * in.channels)};
  int top = (in.height - side) / 2, left = (in.width - side) / 2;
  for (int y = 0; y < side; ++y)
    for (int i = 0; i < side * in.channels; ++i) out.at(y, 0)[i] = in.at(y + top, left)[i];
  return out;
}

Result<Image> decode(const std::string& path, int channels) {
  std::string bytes = TW_TRY(read_whole(path));
  int width = 0, height = 0, found = 0;
  if (bytes.size() > (1u << 30)) return Diagnostic(ErrorCode::kLimitExceeded, "the picture is larger than 1 GiB", path);
  // Check the declared size first: a few bytes can declare gigabytes.
  const auto* data = reinterpret_cast<const stbi_uc*>(bytes.data());
  if (stbi_info_from_memory(data, static_cast<int>(bytes.size()), &width, &height, &found) &&
      static_cast<int64_t>(width) * height > kMostPixels)
    return Diagnostic(ErrorCode::kLimitExceeded,
                      format("the picture has {}x{} pixels, more than {} million", width, height, kMostPixels >> 20),
                      path, "shrink it first");
  // For 16-bit PNM the decoder takes the wrong byte of each value, and reads past the end when converting channels.
  if (bytes.size() > 1 && bytes[0] == 'P' && (bytes[1] == '5' || bytes[1] == '6') &&
      stbi_is_16_bit_from_memory(data, static_cast<int>(bytes.size())))
    return Diagnostic(ErrorCode::kUnsupportedModel, "16-bit PNM pictures cannot be read", path,
                      "save it with 8 bits for each channel, or as PNG");
  std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
      stbi_load_from_memory(data, static_cast<int>(bytes.size()), &width, &height, &found, 0), stbi_image_free);
  if (!pixels)
    return Diagnostic(ErrorCode::kMalformedModel, format("the picture cannot be decoded: {}", stbi_failure_reason()),
                      path, "JPEG, PNG, BMP, GIF, PNM and TGA pictures, .npy, .npz and .pb files can be read");
  if (width < 1 || height < 1)
    return Diagnostic(ErrorCode::kMalformedModel, "the picture has no pixels", path, "give another picture");
  Image image{width, height, channels, {}};
  const size_t n = static_cast<size_t>(width) * height;
  image.values.resize(n * channels);
  // One or two channels (grey, alpha), or three or four.
  for (size_t i = 0; i < n; ++i) {
    const stbi_uc* from = pixels.get() + i * found;
    float* to = image.values.data() + i * channels;
    if (channels == 1)
      to[0] = static_cast<float>(found < 3 ? from[0] : (from[0] * 77 + from[1] * 150 + from[2] * 29) >> 8);
    else
      for (int c = 0; c < channels; ++c) to[c] = from[found < 3 ? 0 : c];
  }
  return image;
}

}  // namespace

Result<Tensor> load_picture(const std::string& path, const PictureOptions& o, DataType dtype,
                            const std::vector<int64_t>& shape) {
  auto wrong = [&](std::string what, std::string hint = {}) {
    return Diagnostic(ErrorCode::kShapeMismatch, std::move(what), path, std::move(hint));
  };
  size_t rank = shape.size();
  if ((rank != 3 && rank != 4) || (rank == 4 && shape[0] != 1))
    return wrong(format("a picture does not fit an input of shape {}", shape_str(shape)),
                 "pictures fit 1xCxHxW and 1xHxWxC");
  const int64_t* dims = shape.data() + (rank - 3);
  auto is_channels = [](int64_t d) { return d == 1 || d == 3; };
  bool nchw = o.layout == "nchw" || (o.layout.empty() && (is_channels(dims[0]) || !is_channels(dims[2])));
  int64_t channels = nchw ? dims[0] : dims[2], height = nchw ? dims[1] : dims[0], width = nchw ? dims[2] : dims[1];
  if (!is_channels(channels) || height > (1 << 15) || width > (1 << 15))
    return wrong(format("the input of shape {} has {} channels, a picture has 1 or 3", shape_str(shape), channels),
                 "say layout=nchw or layout=nhwc");
  if ((channels == 1) != (o.color == "gray") && !o.color.empty())
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("color={} does not fit an input of {} channels", o.color, channels), path);

  Image image = TW_TRY(decode(path, static_cast<int>(channels)));
  if (o.shorter > 0) {
    int less = std::min(image.width, image.height);
    auto scaled = [&](int side) {
      return std::max(1, static_cast<int>(static_cast<int64_t>(side) * o.shorter / less));
    };
    if (scaled(image.width) > (1 << 16) || scaled(image.height) > (1 << 16))
      return wrong("the resized picture would be too large");
    image = resized(image, scaled(image.width), scaled(image.height), o.antialias);
  } else if (o.width > 0) {
    image = resized(image, o.width, o.height, o.antialias);
  } else if (o.crop == 0) {
    image = resized(image, static_cast<int>(width), static_cast<int>(height), o.antialias);
  }
  if (o.crop > 0) {
    if (o.crop > image.width || o.crop > image.height)
      return wrong(format("a square of {} cannot be cut out of a picture of {}x{}", o.crop, image.width, image.height),
                   "add short=N with N not below crop");
    image = cropped(image, o.crop);
  }
  if (image.width != width || image.height != height)
    return wrong(format("the picture is {}x{} (width x height) after resizing and cropping, the model takes {}x{}",
                        image.width, image.height, width, height),
                 format("use resize={}x{}", width, height));

  for (const auto* values : {&o.mean, &o.std})
    if (values->size() != 1 && values->size() != static_cast<size_t>(channels))
      return Diagnostic(ErrorCode::kInvalidArgument,
                        format("{} values are given for {} channels", values->size(), channels), path);
  double scale = o.scale >= 0 ? o.scale : dtype.is_float() ? 1.0 / 255 : 1.0;
  Tensor t(dtype, shape);
  int64_t i = 0;
  auto store = [&](int y, int x, int c) {
    int source = o.color == "bgr" ? static_cast<int>(channels) - 1 - c : c;
    double mean = o.mean[o.mean.size() == 1 ? 0 : static_cast<size_t>(c)],
           std = o.std[o.std.size() == 1 ? 0 : static_cast<size_t>(c)];
    t.set_double(i++, (image.at(y, x)[source] * scale - mean) / std);
  };
  if (nchw) {
    for (int c = 0; c < channels; ++c)
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) store(y, x, c);
  } else {
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        for (int c = 0; c < channels; ++c) store(y, x, c);
  }
  return t;
}

}  // namespace tilewright::inputs
