// SPDX-License-Identifier: Apache-2.0
// Samples of (N, C, spatial...) at the points of a grid (N, spatial axes, points...), the last axis of the data first.
#pragma once
#include "topi/view.h"

namespace tilewright::topi {

struct GridSampleProblem {
  enum class Method { kNearest, kLinear, kCubic };
  enum class Padding { kZeros, kBorder, kReflection };
  Method method = Method::kLinear;
  Padding padding = Padding::kZeros;
  bool align_corners = true;
  std::vector<int64_t> data, out;  // shapes
  DataType dtype = kFloat32;       // computed in: float32 or float64
};

// The taps of a run of points, weights and places, are found once for all channels; a place with weight 0 counts as 0
// whatever it holds.
tir::Stmt grid_sample(const GridSampleProblem& problem, const View& data, const Operand& grid, const View& out,
                      const Epilogue& epilogue, const KernelContext& context);
Cost estimate(const GridSampleProblem& problem, const Target& target);

}  // namespace tilewright::topi
