// SPDX-License-Identifier: Apache-2.0
#include "text_boxes.h"

#include <algorithm>
#include <cmath>

namespace read_page {
namespace {

float cross(Point o, Point a, Point b) { return (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x); }

// Andrew's monotone chain; the hull turns one way and repeats no point.
std::vector<Point> convex_hull(std::vector<Point> points) {
  std::sort(points.begin(), points.end(), [](Point a, Point b) { return a.x < b.x || (a.x == b.x && a.y < b.y); });
  std::vector<Point> hull;
  for (int pass = 0; pass < 2; ++pass) {
    const size_t start = hull.size();
    for (const Point& p : points) {
      while (hull.size() >= start + 2 && cross(hull[hull.size() - 2], hull.back(), p) <= 0) hull.pop_back();
      hull.push_back(p);
    }
    hull.pop_back();
    std::reverse(points.begin(), points.end());
  }
  return hull;
}

struct SlantedBox {
  Point centre, axis;  // axis: unit vector along the longer side
  float length = 0, breadth = 0;
};

// The smallest rectangle around a convex polygon has one side along a side of the polygon.
SlantedBox smallest_rectangle(const std::vector<Point>& hull) {
  SlantedBox best;
  float best_area = INFINITY;
  for (size_t i = 0; i < hull.size(); ++i) {
    const Point a = hull[i], b = hull[(i + 1) % hull.size()];
    const float norm = std::hypot(b.x - a.x, b.y - a.y);
    if (norm == 0) continue;
    const Point u{(b.x - a.x) / norm, (b.y - a.y) / norm}, v{-u.y, u.x};
    float lowest_u = INFINITY, highest_u = -INFINITY, lowest_v = INFINITY, highest_v = -INFINITY;
    for (const Point& p : hull) {
      const float along = p.x * u.x + p.y * u.y, aside = p.x * v.x + p.y * v.y;
      lowest_u = std::min(lowest_u, along), highest_u = std::max(highest_u, along);
      lowest_v = std::min(lowest_v, aside), highest_v = std::max(highest_v, aside);
    }
    const float length = highest_u - lowest_u, breadth = highest_v - lowest_v;
    if (length * breadth >= best_area) continue;
    best_area = length * breadth;
    const float mu = (lowest_u + highest_u) / 2, mv = (lowest_v + highest_v) / 2;
    best = {{u.x * mu + v.x * mv, u.y * mu + v.y * mv}, u, length, breadth};
  }
  return best;
}

// Corners clockwise from the top left. Text runs along the longer side, left to right; a box that is clearly
// upright holds a turned line and is read from the bottom to the top.
Quad corners_of(SlantedBox box) {
  if (box.breadth > box.length) {
    std::swap(box.length, box.breadth);
    box.axis = {-box.axis.y, box.axis.x};
  }
  Point u = box.axis;
  const bool upright = std::abs(u.y) > std::abs(u.x) && box.length > 1.5f * box.breadth;
  if (!upright && std::abs(u.y) > std::abs(u.x)) {
    u = {-u.y, u.x};
    std::swap(box.length, box.breadth);
  }
  if (upright ? u.y > 0 : u.x < 0) u = {-u.x, -u.y};
  const Point v{-u.y, u.x};
  const float l = box.length / 2, b = box.breadth / 2;
  const auto corner = [&](float s, float t) {
    return Point{box.centre.x + s * u.x + t * v.x, box.centre.y + s * u.y + t * v.y};
  };
  return {corner(-l, -b), corner(l, -b), corner(l, b), corner(-l, b)};
}

Point centre_of(const TextBox& box) {
  return {(box.corners[0].x + box.corners[2].x) / 2, (box.corners[0].y + box.corners[2].y) / 2};
}

float height_of(const TextBox& box) {
  return std::hypot(box.corners[3].x - box.corners[0].x, box.corners[3].y - box.corners[0].y);
}

void sort_for_reading(std::vector<TextBox>& boxes) {
  std::sort(boxes.begin(), boxes.end(), [](const auto& a, const auto& b) { return centre_of(a).y < centre_of(b).y; });
  for (size_t begin = 0; begin < boxes.size();) {
    size_t end = begin + 1;
    // The same line as long as the centre is less than half a line below the line's first box.
    while (end < boxes.size() && centre_of(boxes[end]).y - centre_of(boxes[begin]).y < height_of(boxes[begin]) / 2)
      ++end;
    std::sort(boxes.begin() + begin, boxes.begin() + end,
              [](const auto& a, const auto& b) { return centre_of(a).x < centre_of(b).x; });
    begin = end;
  }
}

}  // namespace

std::vector<TextBox> find_text_boxes(const float* probability, int width, int height, const BoxOptions& options) {
  std::vector<TextBox> boxes;
  std::vector<char> seen(size_t(width) * height, 0);
  std::vector<int> stack;
  for (int start = 0; start < width * height; ++start) {
    if (seen[start] || !(probability[start] > options.pixel_threshold)) continue;
    std::vector<Point> points;
    double sum = 0;
    int count = 0;
    stack.assign(1, start);
    seen[start] = 1;
    while (!stack.empty()) {
      const int at = stack.back(), x = at % width, y = at / width;
      stack.pop_back();
      sum += probability[at];
      ++count;
      // A pixel is a square: its corners give the rectangle its full size.
      for (int corner = 0; corner < 4; ++corner) points.push_back({float(x + corner % 2), float(y + corner / 2)});
      for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
          const int nx = x + dx, ny = y + dy, next = ny * width + nx;
          if (nx < 0 || ny < 0 || nx >= width || ny >= height || seen[next]) continue;
          if (!(probability[next] > options.pixel_threshold)) continue;
          seen[next] = 1;
          stack.push_back(next);
        }
    }
    const float score = float(sum / count);
    SlantedBox box = smallest_rectangle(convex_hull(std::move(points)));
    if (score < options.box_threshold || std::min(box.length, box.breadth) < options.smallest_side) continue;
    const float grow = box.length * box.breadth * options.unclip / (2 * (box.length + box.breadth));
    box.length += 2 * grow;
    box.breadth += 2 * grow;
    boxes.push_back({corners_of(box), score});
  }
  sort_for_reading(boxes);
  return boxes;
}

}  // namespace read_page
