// SPDX-License-Identifier: Apache-2.0
#include "text_boxes.h"

#include <gtest/gtest.h>

#include <cmath>

namespace read_page {
namespace {

constexpr int kWidth = 200, kHeight = 100;

// A map that is `value` inside a rectangle of the given centre, size and slant (radians), and 0 elsewhere.
void add_rectangle(std::vector<float>& map, Point centre, float length, float breadth, float slant, float value) {
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      const float dx = x + 0.5f - centre.x, dy = y + 0.5f - centre.y;
      const float along = dx * std::cos(slant) + dy * std::sin(slant);
      const float aside = -dx * std::sin(slant) + dy * std::cos(slant);
      if (std::abs(along) <= length / 2 && std::abs(aside) <= breadth / 2) map[y * kWidth + x] = value;
    }
}

std::vector<float> empty_map() { return std::vector<float>(kWidth * kHeight, 0.f); }

TEST(TextBoxes, EmptyMapHasNone) { EXPECT_TRUE(find_text_boxes(empty_map().data(), kWidth, kHeight).empty()); }

TEST(TextBoxes, NotANumberIsNoText) {
  std::vector<float> map(kWidth * kHeight, NAN);
  EXPECT_TRUE(find_text_boxes(map.data(), kWidth, kHeight).empty());
}

TEST(TextBoxes, GrowsAStraightLineByAreaOverPerimeter) {
  std::vector<float> map = empty_map();
  add_rectangle(map, {100, 50}, 120, 10, 0, 0.9f);
  const std::vector<TextBox> boxes = find_text_boxes(map.data(), kWidth, kHeight);
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_NEAR(boxes[0].score, 0.9f, 1e-5);
  const float grow = 120 * 10 * 1.6f / (2 * (120 + 10));
  EXPECT_NEAR(boxes[0].corners[0].x, 40 - grow, 0.01);
  EXPECT_NEAR(boxes[0].corners[0].y, 45 - grow, 0.01);
  EXPECT_NEAR(boxes[0].corners[2].x, 160 + grow, 0.01);
  EXPECT_NEAR(boxes[0].corners[2].y, 55 + grow, 0.01);
}

TEST(TextBoxes, FollowsTheSlant) {
  std::vector<float> map = empty_map();
  add_rectangle(map, {100, 50}, 120, 12, 0.3f, 0.8f);
  const std::vector<TextBox> boxes = find_text_boxes(map.data(), kWidth, kHeight);
  ASSERT_EQ(boxes.size(), 1u);
  const Point a = boxes[0].corners[0], b = boxes[0].corners[1];
  EXPECT_NEAR(std::atan2(b.y - a.y, b.x - a.x), 0.3f, 0.03);
}

TEST(TextBoxes, AnUprightLineIsReadFromTheBottom) {
  std::vector<float> map = empty_map();
  add_rectangle(map, {100, 50}, 10, 80, 0, 0.8f);
  const std::vector<TextBox> boxes = find_text_boxes(map.data(), kWidth, kHeight);
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_GT(boxes[0].corners[0].y, 90);  // reading starts at the lower left
  EXPECT_LT(boxes[0].corners[1].y, 10);
}

TEST(TextBoxes, DropsFaintAndTinyOnes) {
  std::vector<float> map = empty_map();
  add_rectangle(map, {50, 20}, 60, 10, 0, 0.4f);
  add_rectangle(map, {150, 80}, 2, 2, 0, 0.9f);
  EXPECT_TRUE(find_text_boxes(map.data(), kWidth, kHeight).empty());
  BoxOptions lower;
  lower.box_threshold = 0.35f;
  EXPECT_EQ(find_text_boxes(map.data(), kWidth, kHeight, lower).size(), 1u);
}

TEST(TextBoxes, ComeInReadingOrder) {
  std::vector<float> map = empty_map();
  add_rectangle(map, {150, 21}, 60, 10, 0, 0.9f);
  add_rectangle(map, {50, 23}, 60, 10, 0, 0.9f);
  add_rectangle(map, {100, 70}, 60, 10, 0, 0.9f);
  const std::vector<TextBox> boxes = find_text_boxes(map.data(), kWidth, kHeight);
  ASSERT_EQ(boxes.size(), 3u);
  EXPECT_LT(boxes[0].corners[0].x, 40);
  EXPECT_GT(boxes[1].corners[0].x, 100);
  EXPECT_GT(boxes[2].corners[0].y, 50);
}

}  // namespace
}  // namespace read_page
