// SPDX-License-Identifier: Apache-2.0
#include "picture.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <stb/stb_image.h>
#include <stb/stb_image_write.h>

namespace read_page {

Picture read_picture(const std::string& path) {
  int width = 0, height = 0, channels = 0;
  uint8_t* data = stbi_load(path.c_str(), &width, &height, &channels, 3);
  if (!data) throw std::runtime_error(path + ": cannot be read as a picture (" + stbi_failure_reason() + ")");
  Picture picture(width, height);
  std::copy(data, data + picture.rgb.size(), picture.rgb.begin());
  stbi_image_free(data);
  return picture;
}

void write_png(const Picture& picture, const std::string& path) {
  if (!stbi_write_png(path.c_str(), picture.width, picture.height, 3, picture.rgb.data(), 3 * picture.width))
    throw std::runtime_error(path + ": cannot be written; is the folder there, and is the disk full?");
}

static Point mix(Point a, Point b, float t) { return {a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t}; }

static void add_sample(const Picture& picture, Point at, float* sum) {
  // Pixel centres lie at half-integers; outside, the border repeats.
  const float x = std::clamp(at.x - 0.5f, 0.f, float(picture.width - 1));
  const float y = std::clamp(at.y - 0.5f, 0.f, float(picture.height - 1));
  const int x0 = int(x), y0 = int(y);
  const int x1 = std::min(x0 + 1, picture.width - 1), y1 = std::min(y0 + 1, picture.height - 1);
  const float fx = x - x0, fy = y - y0;
  const uint8_t *a = picture.pixel(x0, y0), *b = picture.pixel(x1, y0);
  const uint8_t *c = picture.pixel(x0, y1), *d = picture.pixel(x1, y1);
  for (int i = 0; i < 3; ++i) sum[i] += (a[i] * (1 - fx) + b[i] * fx) * (1 - fy) + (c[i] * (1 - fx) + d[i] * fx) * fy;
}

Picture cut_out(const Picture& picture, const Quad& quad, int width, int height) {
  const auto length = [](Point a, Point b) { return std::hypot(a.x - b.x, a.y - b.y); };
  const int across = std::clamp(int(std::ceil(length(quad[0], quad[1]) / width)), 1, 16);
  const int down = std::clamp(int(std::ceil(length(quad[0], quad[3]) / height)), 1, 16);
  Picture result(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      float sum[3] = {0, 0, 0};
      for (int j = 0; j < down; ++j)
        for (int i = 0; i < across; ++i) {
          const float u = (x + (i + 0.5f) / across) / width, v = (y + (j + 0.5f) / down) / height;
          add_sample(picture, mix(mix(quad[0], quad[1], u), mix(quad[3], quad[2], u), v), sum);
        }
      for (int c = 0; c < 3; ++c) result.pixel(x, y)[c] = uint8_t(std::lround(sum[c] / (across * down)));
    }
  return result;
}

Picture turned_by_180(const Picture& picture) {
  Picture result(picture.width, picture.height);
  for (int y = 0; y < picture.height; ++y)
    for (int x = 0; x < picture.width; ++x)
      std::copy_n(picture.pixel(x, y), 3, result.pixel(picture.width - 1 - x, picture.height - 1 - y));
  return result;
}

void draw_outline(Picture& picture, const Quad& quad, std::array<uint8_t, 3> colour, float thickness) {
  for (int side = 0; side < 4; ++side) {
    const Point a = quad[side], b = quad[(side + 1) % 4];
    const int steps = 2 * int(std::hypot(b.x - a.x, b.y - a.y)) + 1;
    const int reach = int(std::ceil(thickness / 2));
    for (int step = 0; step <= steps; ++step) {
      const Point p = mix(a, b, float(step) / steps);
      for (int dy = -reach; dy <= reach; ++dy)
        for (int dx = -reach; dx <= reach; ++dx) {
          const int x = int(p.x) + dx, y = int(p.y) + dy;
          const bool inside = x >= 0 && y >= 0 && x < picture.width && y < picture.height;
          if (inside && std::hypot(float(dx), float(dy)) <= thickness / 2)
            std::copy(colour.begin(), colour.end(), picture.pixel(x, y));
        }
    }
  }
}

}  // namespace read_page
