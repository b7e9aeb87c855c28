// SPDX-License-Identifier: Apache-2.0
// Where the bins of a region lie: what the kernels over channels-last images and those over planes share.
#pragma once
#include <utility>

#include "topi/detection.h"

namespace tilewright::topi {

// Clamps to [0, extent).
inline tir::PrimExpr bounded(tir::PrimExpr value, int64_t extent) {
  return max(min(cast(kInt64, std::move(value)), tir::make_int(extent - 1)), tir::make_int(0));
}
inline tir::PrimExpr spread(const tir::PrimExpr& value, int lanes) {
  return lanes > 1 ? broadcast(value, lanes) : value;
}

struct Regions {
  const RegionProblem& p;
  const Operand& regions;
  tir::PrimExpr number(double v) const { return tir::make_const(p.dtype, v); }
  tir::PrimExpr edge(const tir::PrimExpr& region, int i) const {
    return cast(p.dtype, regions({region, tir::make_int(i)}, 1, {})) * number(p.scale);
  }
  // The picture that a region belongs to.
  tir::PrimExpr picture(const tir::PrimExpr& region) const;
};

// One axis of images and bins.
struct RegionAxis {
  int low, high;  // where a region's edges are
  int64_t bins, extent;
};
inline RegionAxis vertical_axis(const RegionProblem& p) { return {2, 4, p.rows, p.data[1]}; }
inline RegionAxis horizontal_axis(const RegionProblem& p) { return {1, 3, p.columns, p.data[2]}; }

// The sampling of a bin along an axis.
struct Samples {
  tir::PrimExpr start, size, count;  // of the bin, in pixels; count is int64
  tir::PrimExpr first, end;          // of the samples that may be near the map
};
tir::Stmt samples_along(const Regions& regions, const tir::PrimExpr& region, const tir::PrimExpr& bin,
                        const RegionAxis& axis, const std::function<tir::Stmt(Samples)>& body);

// The pixels around a sample and their weights, which are 0 where the sample is outside.
struct SampledPixels {
  tir::PrimExpr before, after, weight_before, weight_after;
};
tir::Stmt with_sample(const Regions& regions, const Samples& samples, const tir::PrimExpr& i, int64_t extent,
                      const std::function<tir::Stmt(SampledPixels)>& body);

// The pixels [begin, end) of a bin along an axis, whose maximum region_pool takes.
tir::Stmt pooled_range(const Regions& regions, const tir::PrimExpr& region, const tir::PrimExpr& bin,
                       const RegionAxis& axis,
                       const std::function<tir::Stmt(tir::PrimExpr begin, tir::PrimExpr end)>& body);

// Kernels over planes (RegionProblem::planes) that compute a bin's row for all of its columns at once; nothing where
// they do not apply.
tir::Stmt region_align_planes(const RegionProblem& problem, const Operand& data, const Operand& regions,
                              const View& out, const KernelContext& context);
tir::Stmt region_pool_planes(const RegionProblem& problem, const Operand& data, const Operand& regions, const View& out,
                             const KernelContext& context);

}  // namespace tilewright::topi
