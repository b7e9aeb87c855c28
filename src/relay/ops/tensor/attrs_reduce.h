// SPDX-License-Identifier: Apache-2.0
// Attributes of elementwise operators with parameters, reductions, scans and sorts.
#pragma once
#include <limits>

#include "ir/attrs.h"

namespace tilewright::relay {

// clip; bounds are inclusive, NaN passes through.
struct ClipAttrs : Attrs<ClipAttrs> {
  static constexpr const char* kName = "relay.attrs.ClipAttrs";
  double a_min = -std::numeric_limits<double>::infinity(), a_max = std::numeric_limits<double>::infinity();
  template <class V>
  void fields(V& v) {
    v("a_min", a_min, "lower bound");
    v("a_max", a_max, "upper bound");
  }
};

// cast, reinterpret
struct CastAttrs : Attrs<CastAttrs> {
  static constexpr const char* kName = "relay.attrs.CastAttrs";
  DataType dtype = kFloat32;
  template <class V>
  void fields(V& v) {
    v("dtype", dtype, "target element type");
  }
};

// nn.leaky_relu
struct LeakyReluAttrs : Attrs<LeakyReluAttrs> {
  static constexpr const char* kName = "relay.attrs.LeakyReluAttrs";
  double alpha = 0.25;
  template <class V>
  void fields(V& v) {
    v("alpha", alpha, "slope below zero");
  }
};

// nn.prelu: alpha is a vector along `axis`.
struct PReluAttrs : Attrs<PReluAttrs> {
  static constexpr const char* kName = "relay.attrs.PReluAttrs";
  int64_t axis = 1;
  template <class V>
  void fields(V& v) {
    v("axis", axis, "the axis alpha runs along");
  }
};

// nn.bias_add
struct BiasAddAttrs : Attrs<BiasAddAttrs> {
  static constexpr const char* kName = "relay.attrs.BiasAddAttrs";
  int64_t axis = 1;
  template <class V>
  void fields(V& v) {
    v("axis", axis, "the axis the bias runs along");
  }
};

// sum, mean, prod, max, min, all, any, logsumexp
struct ReduceAttrs : Attrs<ReduceAttrs> {
  static constexpr const char* kName = "relay.attrs.ReduceAttrs";
  std::optional<std::vector<int64_t>> axis;
  bool keepdims = false, exclude = false;
  template <class V>
  void fields(V& v) {
    v("axis", axis, "axes to reduce; None: all of them; []: none");
    v("keepdims", keepdims, "keep reduced axes with size 1");
    v("exclude", exclude, "reduce every axis but the listed ones");
  }
};

// argmax, argmin: int64 unless dtype says otherwise (the classic result is int32).
struct ArgReduceAttrs : Attrs<ArgReduceAttrs> {
  static constexpr const char* kName = "relay.attrs.ArgReduceAttrs";
  std::optional<std::vector<int64_t>> axis;
  bool keepdims = false, select_last_index = false, exclude = false;
  DataType dtype = kInt32;
  template <class V>
  void fields(V& v) {
    v("axis", axis, "axes to reduce (None: the flattened tensor)");
    v("keepdims", keepdims, "keep reduced axes with size 1");
    v("select_last_index", select_last_index, "of equal extremes take the last, not the first");
    v("exclude", exclude, "reduce every axis but the listed ones");
    v("dtype", dtype, "element type of the indices (ours)");
  }
};

// variance
struct VarianceAttrs : Attrs<VarianceAttrs> {
  static constexpr const char* kName = "relay.attrs.VarianceAttrs";
  std::optional<std::vector<int64_t>> axis;
  bool keepdims = false, exclude = false, unbiased = false;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
    v("keepdims", keepdims);
    v("exclude", exclude);
    v("unbiased", unbiased, "divide by n - 1");
  }
};

// cumsum, cumprod; axis None: over the flattened tensor. An empty dtype keeps the input's.
struct ScanopAttrs : Attrs<ScanopAttrs> {
  static constexpr const char* kName = "relay.attrs.ScanopAttrs";
  std::optional<int64_t> axis;
  std::string dtype;
  bool exclusive = false, reverse = false;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
    v("dtype", dtype);
    v("exclusive", exclusive, "leave the element itself out");
    v("reverse", reverse, "scan from the end (ours)");
  }
};

// sort
struct SortAttrs : Attrs<SortAttrs> {
  static constexpr const char* kName = "relay.attrs.SortAttrs";
  int64_t axis = -1;
  bool is_ascend = true;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
    v("is_ascend", is_ascend);
  }
};

// argsort; stable
struct ArgsortAttrs : Attrs<ArgsortAttrs> {
  static constexpr const char* kName = "relay.attrs.ArgsortAttrs";
  int64_t axis = -1;
  bool is_ascend = true;
  DataType dtype = kInt32;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
    v("is_ascend", is_ascend);
    v("dtype", dtype);
  }
};

// topk(data) or topk(data, k); equal values in order of their index
struct TopKAttrs : Attrs<TopKAttrs> {
  static constexpr const char* kName = "relay.attrs.TopkAttrs";
  std::optional<int64_t> k;
  int64_t axis = -1;
  std::string ret_type = "both";
  bool is_ascend = false;
  DataType dtype = kInt32;
  template <class V>
  void fields(V& v) {
    v("k", k, "how many; None: the second operand says (ours), or all");
    v("axis", axis);
    v("ret_type", ret_type, "both (a tuple), values or indices");
    v("is_ascend", is_ascend, "the smallest instead of the largest");
    v("dtype", dtype, "element type of the indices");
  }
};

// unique(data): (sorted unique values, first index, inverse index, counts), as ONNX Unique (ours).
struct UniqueAttrs : Attrs<UniqueAttrs> {
  static constexpr const char* kName = "relay.attrs.UniqueAttrs";
  std::optional<int64_t> axis;
  bool sorted = true;
  template <class V>
  void fields(V& v) {
    v("axis", axis, "compare slices along this axis; None: elements");
    v("sorted", sorted, "ascending, else in order of first appearance");
  }
};

}  // namespace tilewright::relay
