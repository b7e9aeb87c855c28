// SPDX-License-Identifier: Apache-2.0
// In which form packed weights are in a library for several shapes or processors. Alone, each shape would take the form
// that suits it best (the width of a matrix's panels, the tile of a Winograd convolution), and the library would hold a
// weight once for each; together they take those that lose little of the predicted time of anything that reads the
// weight, most often one, and it is stored once.
#pragma once
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "ir/target.h"
#include "relay/expr.h"
#include "topi/gemm.h"

namespace tilewright::lower {

struct Problem;

class WeightForms {
 public:
  // Adds what one shape's module reads on one processor. Errors: those of extract_graph.
  Status add(const relay::Module& fused, const Target& target);
  // Once everything was added: settles what agreed() says.
  void agree();
  // Vectors in a panel of this weight; 0 when no product that was added reads it.
  int panel_vectors(const Tensor& weight) const;
  // Whether all the products that read the weight take it as rows for dot products (topi::packed_as_dots).
  bool as_dots(const Tensor& weight) const;
  // The forms (Implementation::forms) that kernels of this weight may read; empty: any.
  std::set<std::string> agreed(const Tensor& weight) const;

 private:
  struct Product {
    topi::GemmProblem problem;
    Target target;
  };
  struct FormCost {
    double time, bytes;  // of the kernel; of the weight
  };
  // A kernel of one plan, and what each form of the weight costs it.
  struct Reader {
    size_t plan;
    std::map<std::string, FormCost> forms;
    double best() const;
    double time(const std::set<std::string>& taken) const;
  };
  void add_forms(const Problem& problem);
  static std::string best_addition(const std::vector<Reader>& readers, const std::set<std::string>& taken,
                                   const std::vector<double>& worth, double* score);

  size_t plans_ = 0;
  // By what the weight holds.
  std::unordered_map<uint64_t, std::vector<Product>> products_;
  std::map<uint64_t, std::vector<Reader>> readers_;
  std::map<uint64_t, std::set<std::string>> agreed_;
};

}  // namespace tilewright::lower
