// SPDX-License-Identifier: Apache-2.0
// Attributes of space_to_batch_nd and batch_to_space_nd.
#pragma once
#include "ir/attrs.h"

namespace tilewright::relay {

struct SpaceToBatchNDAttrs : Attrs<SpaceToBatchNDAttrs> {
  static constexpr const char* kName = "relay.attrs.SpaceToBatchNDAttrs";
  std::vector<int64_t> block_shape;
  std::vector<std::vector<int64_t>> paddings;
  double pad_value = 0;
  template <class V>
  void fields(V& v) {
    v("block_shape", block_shape, "a block size for each axis from 1 on");
    v("paddings", paddings, "[before, after] of those axes");
    v("pad_value", pad_value);
  }
};

struct BatchToSpaceNDAttrs : Attrs<BatchToSpaceNDAttrs> {
  static constexpr const char* kName = "relay.attrs.BatchToSpaceNDAttrs";
  std::vector<int64_t> block_shape;
  std::vector<std::vector<int64_t>> crops;
  template <class V>
  void fields(V& v) {
    v("block_shape", block_shape, "a block size for each axis from 1 on");
    v("crops", crops, "elements left out [before, after] of those axes");
  }
};

}  // namespace tilewright::relay
