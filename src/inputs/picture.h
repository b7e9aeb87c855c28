// SPDX-License-Identifier: Apache-2.0
// Images as network inputs: decodes (JPEG, PNG, BMP, GIF, PNM, TGA), resizes, crops, normalises, and arranges the
// layout.
#pragma once
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "base/tensor.h"

namespace tilewright::inputs {

struct PictureOptions {
  int width = 0, height = 0;  // resizes to exactly this size; 0: off
  int shorter = 0;            // resizes so that the shorter side has this length; 0: off
  int crop = 0;               // then crops this central square; 0: off
  bool antialias = true;      // shrinks with a wide triangle filter, as Pillow does; false: two taps, as OpenCV does
  std::vector<double> mean = {0}, std = {1};  // one value, or one per channel, in the model's channel order
  double scale = -1;                          // -1: 1/255 for floating inputs, 1 for others
  std::string color;                          // "rgb", "bgr", "gray"; "": from the model's channel count
  std::string layout;                         // "nchw", "nhwc"; "": from the model's shape
};

// The image as a tensor of the model's dtype and shape: (pixel * scale - mean) / std. Without resize options it is
// resized to the model's height and width. Errors: FileNotFound, MalformedModel (no image), ShapeMismatch,
// InvalidArgument.
Result<Tensor> load_picture(const std::string& path, const PictureOptions& options, DataType dtype,
                            const std::vector<int64_t>& shape);

}  // namespace tilewright::inputs
