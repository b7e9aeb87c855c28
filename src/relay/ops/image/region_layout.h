// SPDX-License-Identifier: Apache-2.0
// The layout in which regions of pictures are pooled.
#pragma once
#include <vector>

#include "ir/dim.h"

namespace tilewright::relay {

// Whether few enough regions of pictures (N, C, H, W) are pooled that their planes are read as they are. Otherwise they
// are turned to channels last, which costs once per pixel what planes cost several times per bin.
inline bool pools_planes(const std::vector<Dim>& pictures, const Dim& regions,
                         const std::vector<int64_t>& pooled_size) {
  constexpr double kPerBin = 8;  // measured on AVX2 and AVX-512
  if (!regions.is_const() || pooled_size.size() != 2 || pictures.size() != 4) return false;
  double pixels = 1;
  for (size_t d : {size_t{0}, size_t{2}, size_t{3}}) {
    if (!pictures[d].is_const()) return false;
    pixels *= static_cast<double>(pictures[d].value());
  }
  return kPerBin * static_cast<double>(regions.value()) * static_cast<double>(pooled_size[0] * pooled_size[1]) < pixels;
}

}  // namespace tilewright::relay
