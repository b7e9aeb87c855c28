// SPDX-License-Identifier: Apache-2.0
// Attributes of composed operators that index data or take sizes from another tensor.
#pragma once
#include "ir/attrs.h"

namespace tilewright::relay {

// reshape_like(data, shape_like): axes lhs_begin:lhs_end of data become axes rhs_begin:rhs_end of the other.
struct ReshapeLikeAttrs : Attrs<ReshapeLikeAttrs> {
  static constexpr const char* kName = "relay.attrs.ReshapeLikeAttrs";
  int64_t lhs_begin = 0;
  std::optional<int64_t> lhs_end;
  int64_t rhs_begin = 0;
  std::optional<int64_t> rhs_end;
  template <class V>
  void fields(V& v) {
    v("lhs_begin", lhs_begin);
    v("lhs_end", lhs_end, "None: to the last axis");
    v("rhs_begin", rhs_begin);
    v("rhs_end", rhs_end, "None: to the last axis");
  }
};

struct SliceLikeAttrs : Attrs<SliceLikeAttrs> {
  static constexpr const char* kName = "relay.attrs.SliceLikeAttrs";
  std::optional<std::vector<int64_t>> axes;
  template <class V>
  void fields(V& v) {
    v("axes", axes, "None or empty: every axis of shape_like");
  }
};

}  // namespace tilewright::relay
