// SPDX-License-Identifier: Apache-2.0
// Encoded pictures as pixels: BMP and PNM by our own readers, JPEG, PNG, WebP, TIFF and JPEG 2000 by the system's
// libraries, each of which may be missing where this was built. The bytes may be anything.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tilewright::pictures {

struct Picture {  // rows from the top, three bytes (red, green, blue) for each pixel
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;

  Picture() = default;
  Picture(int64_t rows, int64_t columns)
      : height(rows), width(columns), pixels(static_cast<size_t>(rows * columns * 3)) {}
  uint8_t* at(int64_t y, int64_t x) { return pixels.data() + (y * width + x) * 3; }
};

using Bytes = std::span<const uint8_t>;

// A few bytes can claim gigabytes.
inline constexpr int64_t kMostPixels = int64_t{1} << 26;
inline bool is_size(int64_t height, int64_t width) {
  return height > 0 && width > 0 && height <= kMostPixels && width <= kMostPixels / height;
}

// Null where the bytes are no such picture, are damaged, or have too many pixels.
std::optional<Picture> decode_bmp(Bytes bytes);
std::optional<Picture> decode_pnm(Bytes bytes);
std::optional<Picture> decode_jpeg(Bytes bytes);
std::optional<Picture> decode_png(Bytes bytes);
std::optional<Picture> decode_webp(Bytes bytes);
std::optional<Picture> decode_tiff(Bytes bytes);
std::optional<Picture> decode_jpeg2000(Bytes bytes);

struct Decoded {
  std::optional<Picture> picture;
  const char* missing = nullptr;  // the library that would decode it
};
// By the format that the first bytes name.
Decoded decode(Bytes bytes);

}  // namespace tilewright::pictures
