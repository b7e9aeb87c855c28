// SPDX-License-Identifier: Apache-2.0
// Pictures in memory: reading, writing, resampling, cutting out and drawing.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace read_page {

struct Point {
  float x = 0, y = 0;
};

// Corners of a rectangle of any slant, clockwise from the one where reading starts.
using Quad = std::array<Point, 4>;

// 8-bit RGB, rows from the top, no padding.
struct Picture {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;

  Picture() = default;
  Picture(int width, int height, uint8_t value = 255)
      : width(width), height(height), rgb(size_t(3) * width * height, value) {}
  uint8_t* pixel(int x, int y) { return &rgb[3 * (size_t(y) * width + x)]; }
  const uint8_t* pixel(int x, int y) const { return &rgb[3 * (size_t(y) * width + x)]; }
};

// PNG, JPEG and what else stb_image reads. Throws std::runtime_error with the path and the reason.
Picture read_picture(const std::string& path);
void write_png(const Picture& picture, const std::string& path);

// The part of `picture` inside `quad`, straightened to width x height. Shrinking averages, so that thin
// strokes survive.
Picture cut_out(const Picture& picture, const Quad& quad, int width, int height);
Picture turned_by_180(const Picture& picture);

void draw_outline(Picture& picture, const Quad& quad, std::array<uint8_t, 3> colour, float thickness);

}  // namespace read_page
