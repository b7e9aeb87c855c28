// SPDX-License-Identifier: Apache-2.0
// Resizing by precomputed tables: for each output coordinate of an axis, the input indices and their weights. Nearest
// has one tap, linear two, cubic four; all coordinate conventions are in the tables.
#pragma once
#include "base/tensor.h"
#include "topi/view.h"

namespace tilewright::topi {

enum class ResizeMethod { kNearest, kLinear, kCubic };
enum class ResizeCoordinates {
  kHalfPixel,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kHalfPixelSymmetric,
  kTfHalfPixelForNearest,
  kTfCropAndResize
};
enum class ResizeRounding { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };

struct ResizeAxis {
  int64_t in = 0, out = 0;
  double scale = 0;  // out/in as given by the model; 0: from the extents
  ResizeMethod method = ResizeMethod::kNearest;
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  ResizeRounding rounding = ResizeRounding::kRoundPreferFloor;
  double cubic_coefficient = -0.75;
  bool exclude_outside = false;
  double roi_start = 0, roi_end = 1;  // kTfCropAndResize
};
int resize_taps(ResizeMethod method);
// Input coordinate of each output coordinate, before taps and rounding.
double resize_coordinate(const ResizeAxis& axis, int64_t out);
// Input indices (out, taps), int32, clamped to the input; weights (out, taps).
Tensor resize_indices(const ResizeAxis& axis);
Tensor resize_weights(const ResizeAxis& axis, DataType dtype = kFloat32);
// The dtype for weighted sums of a dtype's elements.
DataType resized_in(DataType dtype);

// data and out: (N, C, H, W) or channel-blocked (N, C/v, H, W, v). The tables of both axes as contiguous views.
struct ResizeTables {
  View rows, row_weights, columns, column_weights;
};
tir::Stmt resize2d(ResizeMethod method, const ResizeTables& tables, const View& data, const View& out,
                   const Epilogue& epilogue, const KernelContext& context);

}  // namespace tilewright::topi
