// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "lower/halo.h"
#include "topi/conv2d_nchwc.h"

namespace tilewright::lower {

// The halo that a reader of `rank`-dimensional data needs, from its needs along the height and width dimensions.
inline Halo spatial_halo(size_t rank, const topi::HaloNeed& need, size_t height = 2, size_t width = 3) {
  Halo h;
  h.before.assign(rank, 0);
  h.after.assign(rank, 0);
  h.before[height] = need.top;
  h.before[width] = need.left;
  h.after[height] = need.bottom;
  h.after[width] = need.right;
  return h;
}

}  // namespace tilewright::lower
