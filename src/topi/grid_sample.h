// SPDX-License-Identifier: Apache-2.0
// Samples (N, C, spatial...) at the points of a grid (N, spatial axes, points...); the grid's first coordinate is the
// data's last axis.
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
  // Dtype of the computation: float32, or float64, which planes of 2^31 elements need as well: places are integers as
  // wide.
  DataType dtype = kFloat32;
};

// Weights and indices of the taps are computed once for points that lie together, for all channels, and kept in
// scratch; a tap with weight 0 counts as 0 even if the data there is not finite.
tir::Stmt grid_sample(const GridSampleProblem& problem, const View& data, const Operand& grid, const View& out,
                      const Epilogue& epilogue, const KernelContext& context);
DataType grid_sample_scratch_dtype(const GridSampleProblem& problem);
int64_t grid_sample_scratch_bytes(const GridSampleProblem& problem, const Target& target);  // of each thread
Cost estimate(const GridSampleProblem& problem, const Target& target);

}  // namespace tilewright::topi
