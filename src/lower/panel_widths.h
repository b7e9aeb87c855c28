// SPDX-License-Identifier: Apache-2.0
// How wide the panels of packed matrices are in a library for several shapes or processors. Alone, each shape would
// take the width that suits its number of rows, and the library would hold a weight once for each width; together they
// take the one with the least predicted time summed over all the products that read the weight, and it is stored once.
#pragma once
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "ir/target.h"
#include "relay/expr.h"
#include "topi/gemm.h"

namespace tilewright::lower {

class PanelWidths {
 public:
  // Adds the products of one shape's module for one processor. Errors: those of extract_graph.
  Status add(const relay::Module& fused, const Target& target);
  // Vectors in a panel of this weight; 0 when no product that was added reads it.
  int vectors(const Tensor& weight) const;
  // Whether all the products that read the weight take it as rows for dot products (topi::packed_as_dots).
  bool as_dots(const Tensor& weight) const;

 private:
  struct Product {
    topi::GemmProblem problem;
    Target target;
  };
  std::unordered_map<uint64_t, std::vector<Product>> products_;  // by what the weight holds
};

}  // namespace tilewright::lower
