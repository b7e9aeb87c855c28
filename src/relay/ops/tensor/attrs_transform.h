// SPDX-License-Identifier: Apache-2.0
// Attributes of operators that move, index or create data.
#pragma once
#include "ir/attrs.h"

namespace tilewright::relay {

// reshape. Codes of newshape: 0 copies the dim, -1 is inferred, -2 copies all remaining dims, -3 merges two dims,
// -4 splits a dim into the next two values (one may be -1).
struct ReshapeAttrs : Attrs<ReshapeAttrs> {
  static constexpr const char* kName = "relay.attrs.ReshapeAttrs";
  std::vector<int64_t> newshape;
  bool allowzero = false;
  template <class V>
  void fields(V& v) {
    v("newshape", newshape);
    v("allowzero", allowzero, "0 means an empty axis instead of a copy");
  }
};

struct TransposeAttrs : Attrs<TransposeAttrs> {
  static constexpr const char* kName = "relay.attrs.TransposeAttrs";
  std::optional<std::vector<int64_t>> axes;
  template <class V>
  void fields(V& v) {
    v("axes", axes, "None: reversed");
  }
};

struct SqueezeAttrs : Attrs<SqueezeAttrs> {
  static constexpr const char* kName = "relay.attrs.SqueezeAttrs";
  std::optional<std::vector<int64_t>> axis;
  template <class V>
  void fields(V& v) {
    v("axis", axis, "None: every axis of size 1");
  }
};

struct ExpandDimsAttrs : Attrs<ExpandDimsAttrs> {
  static constexpr const char* kName = "relay.attrs.ExpandDimsAttrs";
  int64_t axis = 0, num_newaxis = 1;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
    v("num_newaxis", num_newaxis);
  }
};

// concatenate(tuple)
struct ConcatenateAttrs : Attrs<ConcatenateAttrs> {
  static constexpr const char* kName = "relay.attrs.ConcatenateAttrs";
  int64_t axis = 0;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
  }
};

// stack(tuple)
struct StackAttrs : Attrs<StackAttrs> {
  static constexpr const char* kName = "relay.attrs.StackAttrs";
  int64_t axis = 0;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
  }
};

// split: into `sections` equal parts when sections > 0, else at the indices (a tuple result either way).
struct SplitAttrs : Attrs<SplitAttrs> {
  static constexpr const char* kName = "relay.attrs.SplitAttrs";
  std::vector<int64_t> indices_or_sections;
  int64_t axis = 0, sections = 0;
  template <class V>
  void fields(V& v) {
    v("indices_or_sections", indices_or_sections, "start of every part but the first");
    v("axis", axis);
    v("sections", sections, "number of equal parts (ours; the classic text puts it in indices_or_sections)");
  }
};

// strided_slice. Negative begin and end count from the end; out-of-range values are clipped (numpy rules).
// An end of INT64_MAX (INT64_MIN with a negative stride) runs to the edge.
struct StridedSliceAttrs : Attrs<StridedSliceAttrs> {
  static constexpr const char* kName = "relay.attrs.StridedSliceAttrs";
  std::vector<int64_t> begin, end;
  std::vector<int64_t> strides;
  std::string slice_mode = "end";
  std::optional<std::vector<int64_t>> axes;
  template <class V>
  void fields(V& v) {
    v("begin", begin);
    v("end", end);
    v("strides", strides, "empty: 1");
    v("slice_mode", slice_mode, "end, or size: `end` holds sizes (-1: to the edge)");
    v("axes", axes, "None: the leading axes");
  }
};

struct TakeAttrs : Attrs<TakeAttrs> {
  static constexpr const char* kName = "relay.attrs.TakeAttrs";
  int64_t batch_dims = 0;
  std::optional<int64_t> axis;
  std::string mode = "clip";
  template <class V>
  void fields(V& v) {
    v("batch_dims", batch_dims);
    v("axis", axis, "None: into the flattened tensor");
    v("mode", mode, "clip, wrap, or fast: negative indices count from the end (ONNX Gather)");
  }
};

// gather(data, indices): elements along an axis (ONNX GatherElements)
struct GatherAttrs : Attrs<GatherAttrs> {
  static constexpr const char* kName = "relay.attrs.GatherAttrs";
  int64_t axis = 0;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
  }
};

// gather_nd(data, indices): indices (M, Y...) with the index tuple FIRST, as in the classic stack.
struct GatherNDAttrs : Attrs<GatherNDAttrs> {
  static constexpr const char* kName = "relay.attrs.GatherNDAttrs";
  int64_t batch_dims = 0;
  std::optional<int64_t> index_rank;
  template <class V>
  void fields(V& v) {
    v("batch_dims", batch_dims);
    v("index_rank", index_rank, "M when it is not known from the type");
  }
};

// scatter_elements(data, indices, updates)
struct ScatterElementsAttrs : Attrs<ScatterElementsAttrs> {
  static constexpr const char* kName = "relay.attrs.ScatterElementsAttrs";
  int64_t axis = 0;
  std::string reduction = "update";
  template <class V>
  void fields(V& v) {
    v("axis", axis);
    v("reduction", reduction, "update, add, mul, min or max");
  }
};

// scatter_nd(data, indices, updates): indices (M, Y...) with the index tuple FIRST, as in the classic stack.
struct ScatterNDAttrs : Attrs<ScatterNDAttrs> {
  static constexpr const char* kName = "relay.attrs.ScatterNDAttrs";
  std::string mode = "update";
  template <class V>
  void fields(V& v) {
    v("mode", mode, "update, add, mul, min or max");
  }
};

// one_hot(indices, on_value, off_value)
struct OneHotAttrs : Attrs<OneHotAttrs> {
  static constexpr const char* kName = "relay.attrs.OneHotAttrs";
  int64_t depth = 0, axis = -1;
  DataType dtype = kFloat32;
  template <class V>
  void fields(V& v) {
    v("depth", depth);
    v("axis", axis);
    v("dtype", dtype);
  }
};

// zeros(), ones(), full(fill_value), broadcast_to(data)
struct InitOpAttrs : Attrs<InitOpAttrs> {
  static constexpr const char* kName = "relay.attrs.InitOpAttrs";
  std::vector<int64_t> shape;
  std::string dtype;
  template <class V>
  void fields(V& v) {
    v("shape", shape);
    v("dtype", dtype, "empty: the operand's, or float32");
  }
};

// arange(start, stop, step): scalar operands
struct ArangeAttrs : Attrs<ArangeAttrs> {
  static constexpr const char* kName = "relay.attrs.ArangeAttrs";
  DataType dtype = kFloat32;
  template <class V>
  void fields(V& v) {
    v("dtype", dtype);
  }
};

struct ReverseAttrs : Attrs<ReverseAttrs> {
  static constexpr const char* kName = "relay.attrs.ReverseAttrs";
  int64_t axis = 0;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
  }
};

// reverse_sequence(data, seq_lengths)
struct ReverseSequenceAttrs : Attrs<ReverseSequenceAttrs> {
  static constexpr const char* kName = "relay.attrs.ReverseSequenceAttrs";
  int64_t seq_axis = 1, batch_axis = 0;
  template <class V>
  void fields(V& v) {
    v("seq_axis", seq_axis);
    v("batch_axis", batch_axis);
  }
};

struct RepeatAttrs : Attrs<RepeatAttrs> {
  static constexpr const char* kName = "relay.attrs.RepeatAttrs";
  int64_t repeats = 1;
  std::optional<int64_t> axis;
  template <class V>
  void fields(V& v) {
    v("repeats", repeats);
    v("axis", axis, "None: of the flattened tensor");
  }
};

struct TileAttrs : Attrs<TileAttrs> {
  static constexpr const char* kName = "relay.attrs.TileAttrs";
  std::vector<int64_t> reps;
  template <class V>
  void fields(V& v) {
    v("reps", reps);
  }
};

// layout_transform: NCHW <-> NCHW16c, NHWC; OIHW <-> OIHW16i16o, ... A blocked axis that does not divide is zero padded
// on the way in; on the way out `channels` (the primal C or O) and `in_channels` (I) give the logical counts to keep.
struct LayoutTransformAttrs : Attrs<LayoutTransformAttrs> {
  static constexpr const char* kName = "relay.attrs.LayoutTransformAttrs";
  std::string src_layout, dst_layout;
  std::optional<int64_t> channels, in_channels;
  template <class V>
  void fields(V& v) {
    v("src_layout", src_layout);
    v("dst_layout", dst_layout);
    v("channels", channels, "logical channels of a padded source (ours)");
    v("in_channels", in_channels, "logical input channels of a padded weight (ours)");
  }
};

struct ShapeOfAttrs : Attrs<ShapeOfAttrs> {
  static constexpr const char* kName = "relay.attrs.ShapeOfAttrs";
  DataType dtype = kInt32;
  template <class V>
  void fields(V& v) {
    v("dtype", dtype);
  }
};

struct NdarraySizeAttrs : Attrs<NdarraySizeAttrs> {
  static constexpr const char* kName = "relay.attrs.NdarraySizeAttrs";
  DataType dtype = kInt32;
  template <class V>
  void fields(V& v) {
    v("dtype", dtype);
  }
};

// meshgrid(tuple of vectors) -> tuple
struct MeshgridAttrs : Attrs<MeshgridAttrs> {
  static constexpr const char* kName = "relay.attrs.MeshgridAttrs";
  std::string indexing = "ij";
  template <class V>
  void fields(V& v) {
    v("indexing", indexing, "ij or xy");
  }
};

// einsum(tuple)
struct EinsumAttrs : Attrs<EinsumAttrs> {
  static constexpr const char* kName = "relay.attrs.EinsumAttrs";
  std::string equation;
  template <class V>
  void fields(V& v) {
    v("equation", equation);
  }
};

// trilu(data, k): the upper or lower triangle of the last two axes
struct TriluAttrs : Attrs<TriluAttrs> {
  static constexpr const char* kName = "relay.attrs.TriluAttrs";
  bool upper = true;
  template <class V>
  void fields(V& v) {
    v("upper", upper);
  }
};

}  // namespace tilewright::relay
