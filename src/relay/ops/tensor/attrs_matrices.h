// SPDX-License-Identifier: Apache-2.0
// Attributes of decompositions of matrices.
#pragma once
#include "ir/attrs.h"

namespace tilewright::relay {

// linalg.row_order (ours)
struct RowOrderAttrs : Attrs<RowOrderAttrs> {
  static constexpr const char* kName = "relay.attrs.RowOrderAttrs";
  int64_t rows = 1;
  template <class V>
  void fields(V& v) {
    v("rows", rows, "rows of the matrices, at least as many as there are pivots");
  }
};

// linalg.solve_triangular (ours)
struct SolveTriangularAttrs : Attrs<SolveTriangularAttrs> {
  static constexpr const char* kName = "relay.attrs.SolveTriangularAttrs";
  bool upper = false, unit = false;
  template <class V>
  void fields(V& v) {
    v("upper", upper, "the triangle is the upper one");
    v("unit", unit, "its diagonal is taken as ones");
  }
};

// linalg.qr (ours)
struct QrAttrs : Attrs<QrAttrs> {
  static constexpr const char* kName = "relay.attrs.QrAttrs";
  bool complete = false;
  template <class V>
  void fields(V& v) {
    v("complete", complete, "q is square; otherwise it has as many columns as r has rows, at most the operand's");
  }
};

}  // namespace tilewright::relay
