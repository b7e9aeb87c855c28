// SPDX-License-Identifier: Apache-2.0
// The loops of object detection that are not elementwise: which boxes stay beside better ones, which elements of a row
// are set, and values of regions of pictures. A row, or a bin of a region, is done by one thread.
#pragma once
#include "topi/view.h"

namespace tilewright::topi {

// keep[r, j] = 1 when the box at place j of row r stays. order[r, j] is its number among `count` boxes of the row's
// picture (rows / pictures rows share one); scores and classes are by number, as boxes are. Places are looked at from
// the first to valid[r] - 1 until max_output_size boxes are counted (below 0: all). A box with a score above 0 falls
// when its overlap (intersection over union) with one that stays reaches iou_threshold and both have the same class,
// which is not below 0; others stay. Boxes are compared with whole vectors of those that stay.
struct SuppressProblem {
  int64_t pictures = 1, rows = 1, count = 0;
  DataType dtype = kFloat32;
  bool classes = false, force = false, count_all = false, pixels = false;  // as SuppressAttrs
};
struct SuppressOperands {
  Operand boxes, scores, order, valid, max_output_size, iou_threshold, classes;
};
int64_t suppress_scratch_bytes(const SuppressProblem& problem, const Target& target);
tir::Stmt suppress(const SuppressProblem& problem, const SuppressOperands& operands, const View& keep,
                   const KernelContext& context);

// The places of a row's set elements, in order, then -1; and how many they are.
tir::Stmt compact(int64_t rows, int64_t count, const Operand& flags, const View& places, const View& counts,
                  const KernelContext& context);

// Bins of regions (picture, x0, y0, x1, y1) of channels-last pictures (N, H, W, C), as (regions, rows, columns, C).
struct RegionProblem {
  std::vector<int64_t> data;  // N, H, W, C
  int64_t regions = 0, rows = 1, columns = 1;
  double scale = 1;
  DataType dtype = kFloat32;  // what values and coordinates are computed in
  // Align: a grid of samples, each from the four pixels around it.
  enum class Mode { kAverage, kMax, kMaxPixel } mode = Mode::kAverage;
  int64_t samples = 0;
  bool half_pixel = false;
};
// Where data decides the number of samples of a bin, it has at most so many for each pixel of the picture along an
// axis.
inline constexpr int64_t kMostSamplesPerPixel = 4;
int64_t region_scratch_bytes(const RegionProblem& problem, const Target& target);
tir::Stmt region_align(const RegionProblem& problem, const Operand& data, const Operand& regions, const View& out,
                       const KernelContext& context);
// The largest pixel of each bin, 0 in an empty one.
tir::Stmt region_pool(const RegionProblem& problem, const Operand& data, const Operand& regions, const View& out,
                      const KernelContext& context);

}  // namespace tilewright::topi
