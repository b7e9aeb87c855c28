// SPDX-License-Identifier: Apache-2.0
// Decodes images: BMP and PNM by our own readers; JPEG, PNG, WebP, TIFF and JPEG 2000 by system libraries, each of
// which is optional at build time. The input is untrusted.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tilewright::pictures {

struct Picture {  // rows from the top, three bytes (red, green, blue) per pixel
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;

  Picture() = default;
  Picture(int64_t rows, int64_t columns)
      : height(rows), width(columns), pixels(static_cast<size_t>(rows * columns * 3)) {}
  uint8_t* at(int64_t y, int64_t x) { return pixels.data() + (y * width + x) * 3; }
};

using Bytes = std::span<const uint8_t>;

// Limit on the size: a few bytes can declare gigabytes.
inline constexpr int64_t kMostPixels = int64_t{1} << 26;
inline bool is_size(int64_t height, int64_t width) {
  return height > 0 && width > 0 && height <= kMostPixels && width <= kMostPixels / height;
}

// Null if the format differs, the data is damaged, or there are too many pixels.
std::optional<Picture> decode_bmp(Bytes bytes);
std::optional<Picture> decode_pnm(Bytes bytes);
std::optional<Picture> decode_jpeg(Bytes bytes);
std::optional<Picture> decode_png(Bytes bytes);
std::optional<Picture> decode_webp(Bytes bytes);
std::optional<Picture> decode_tiff(Bytes bytes);
std::optional<Picture> decode_jpeg2000(Bytes bytes);

struct Decoded {
  std::optional<Picture> picture;
  const char* missing = nullptr;  // the library needed to decode it
};
// Decodes by the format that the first bytes indicate.
Decoded decode(Bytes bytes);

}  // namespace tilewright::pictures
