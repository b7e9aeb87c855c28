// SPDX-License-Identifier: Apache-2.0
// The non-elementwise loops of object detection: box suppression, compaction of set elements, pooling of regions. Each
// row, or bin of a region, is computed by one thread.
#pragma once
#include "topi/view.h"

namespace tilewright::topi {

// keep[r, j] = 1 if the box at rank j of row r is kept. order[r, j] is the index of that box among the `count` boxes of
// the row's image (rows / pictures rows share one); scores and classes have the boxes' indices. Ranks are visited from
// 0 to valid[r] - 1 until max_output_size boxes are kept (below 0: no limit). A box with a score above 0 is suppressed
// when its overlap (intersection over union) with a kept one reaches iou_threshold and both have the same class, not
// below 0; others are kept. A box is compared with whole vectors of kept boxes.
struct SuppressProblem {
  int64_t pictures = 1, rows = 1, count = 0;
  DataType dtype = kFloat32;
  bool classes = false, force = false, count_all = false, pixels = false;  // as in SuppressAttrs
};
struct SuppressOperands {
  Operand boxes, scores, order, valid, max_output_size, iou_threshold, classes;
};
int64_t suppress_scratch_bytes(const SuppressProblem& problem, const Target& target);
tir::Stmt suppress(const SuppressProblem& problem, const SuppressOperands& operands, const View& keep,
                   const KernelContext& context);

// For each row, the indices of its set elements in ascending order, padded with -1, and their count.
tir::Stmt compact(int64_t rows, int64_t count, const Operand& flags, const View& places, const View& counts,
                  const KernelContext& context);

// Pools regions (picture, x0, y0, x1, y1) of channels-last images (N, H, W, C) to (regions, rows, columns, C), or
// (planes) of (N, C, H, W) to (regions, C, rows, columns).
struct RegionProblem {
  std::vector<int64_t> data;  // N, H, W, C in either case
  bool planes = false;
  int64_t regions = 0, rows = 1, columns = 1;
  double scale = 1;
  DataType dtype = kFloat32;  // dtype of values and coordinates in the computation
  // kAverage, kMax: a grid of bilinear samples; kMaxPixel: the largest weighted pixel.
  enum class Mode { kAverage, kMax, kMaxPixel } mode = Mode::kAverage;
  int64_t samples = 0;
  bool half_pixel = false;
};
// Limit on samples per bin and axis when it depends
// on the data; only those near the map are taken.
inline constexpr double kMostSamples = 0x1p31;
int64_t region_scratch_bytes(const RegionProblem& problem, const Target& target);
tir::Stmt region_align(const RegionProblem& problem, const Operand& data, const Operand& regions, const View& out,
                       const KernelContext& context);
// The maximum of each bin's pixels, 0 for an empty bin.
tir::Stmt region_pool(const RegionProblem& problem, const Operand& data, const Operand& regions, const View& out,
                      const KernelContext& context);

}  // namespace tilewright::topi
