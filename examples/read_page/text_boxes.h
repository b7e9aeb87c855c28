// SPDX-License-Identifier: Apache-2.0
// From the detector's probability map to rectangles around lines of text (the post-processing of
// "differentiable binarization", Liao et al., arXiv:1911.08947).
#pragma once
#include <vector>

#include "picture.h"

namespace read_page {

struct BoxOptions {
  float pixel_threshold = 0.3f;  // a pixel belongs to text from this probability on
  float box_threshold = 0.5f;    // the mean probability that a rectangle must have
  float unclip = 1.6f;           // the network is trained on shrunk boxes: grow by area * unclip / perimeter
  float smallest_side = 3;       // in pixels of the map, before growing
};

struct TextBox {
  Quad corners;  // in pixels of the map
  float score;   // mean probability of the pixels found
};

// Boxes in reading order: lines from the top, and within a line from the left.
std::vector<TextBox> find_text_boxes(const float* probability, int width, int height, const BoxOptions& options = {});

}  // namespace read_page
