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

struct SlidingWindowAttrs : Attrs<SlidingWindowAttrs> {
  static constexpr const char* kName = "relay.attrs.SlidingWindowAttrs";
  int64_t axis = 0;
  std::vector<int64_t> window_shape, strides;
  template <class V>
  void fields(V& v) {
    v("axis", axis, "the first axis that windows slide over; those behind it follow");
    v("window_shape", window_shape);
    v("strides", strides);
  }
};

struct SearchSortedAttrs : Attrs<SearchSortedAttrs> {
  static constexpr const char* kName = "relay.attrs.SearchSortedAttrs";
  bool right = false;
  DataType dtype = kInt32;
  template <class V>
  void fields(V& v) {
    v("right", right, "behind equal elements instead of before them");
    v("dtype", dtype, "int32 or int64");
  }
};

struct SparseToDenseAttrs : Attrs<SparseToDenseAttrs> {
  static constexpr const char* kName = "relay.attrs.SparseToDenseAttrs";
  std::vector<int64_t> output_shape;
  template <class V>
  void fields(V& v) {
    v("output_shape", output_shape);
  }
};

struct MatrixSetDiagAttrs : Attrs<MatrixSetDiagAttrs> {
  static constexpr const char* kName = "relay.attrs.MatrixSetDiagAttrs";
  int64_t k1 = 0, k2 = 0;
  bool super_diag_right_align = true, sub_diag_right_align = false;
  template <class V>
  void fields(V& v) {
    v("k1", k1, "the lowest diagonal; 0 is the main one, below it are negative ones");
    v("k2", k2, "the highest");
    v("super_diag_right_align", super_diag_right_align, "a short one above the main one ends its row");
    v("sub_diag_right_align", sub_diag_right_align, "a short one below the main one ends its row");
  }
};

struct ScatterAttrs : Attrs<ScatterAttrs> {
  static constexpr const char* kName = "relay.attrs.ScatterAttrs";
  int64_t axis = 0;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
  }
};
struct ScatterAddAttrs : Attrs<ScatterAddAttrs> {
  static constexpr const char* kName = "relay.attrs.ScatterAddAttrs";
  int64_t axis = 0;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
  }
};

struct SequenceMaskAttrs : Attrs<SequenceMaskAttrs> {
  static constexpr const char* kName = "relay.attrs.SequenceMaskAttrs";
  double mask_value = 0;
  int64_t axis = 0;
  template <class V>
  void fields(V& v) {
    v("mask_value", mask_value);
    v("axis", axis, "of the length: 0 or 1");
  }
};

}  // namespace tilewright::relay
