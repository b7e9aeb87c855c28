// SPDX-License-Identifier: Apache-2.0
// Attributes of operators on sparse matrices.
#pragma once
#include "ir/attrs.h"

namespace tilewright::relay {

// nn.sparse_dense, nn.internal.sparse_dense_padded
struct SparseDenseAttrs : Attrs<SparseDenseAttrs> {
  static constexpr const char* kName = "relay.attrs.SparseDenseAttrs";
  bool sparse_lhs = false;
  template <class V>
  void fields(V& v) {
    v("sparse_lhs", sparse_lhs, "the sparse matrix times the other one's transpose, not the other way round");
  }
};

struct SparseTransposeAttrs : Attrs<SparseTransposeAttrs> {
  static constexpr const char* kName = "relay.attrs.SparseTransposeAttrs";
  template <class V>
  void fields(V&) {}
};

struct SparseConv2DAttrs : Attrs<SparseConv2DAttrs> {
  static constexpr const char* kName = "relay.attrs.SparseConv2DAttrs";
  std::string layout = "NHWC";
  std::vector<int64_t> kernel_size{1, 1};
  template <class V>
  void fields(V& v) {
    v("layout", layout, "of the data and of the result: NHWC or NCHW");
    v("kernel_size", kernel_size, "[1, 1], or [3, 3] with padding 1");
  }
};

}  // namespace tilewright::relay
