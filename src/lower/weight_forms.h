// SPDX-License-Identifier: Apache-2.0
// Chooses the packed forms of weights in a library for several shapes or processors. Alone, each shape would pick its
// best form (panel width of a matrix, tile of a Winograd convolution), and the library would store each weight several
// times. Together they agree on forms that cost every reader little predicted time, usually a single one.
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
  // Adds the weights that one shape's module reads on one processor. Errors: those of extract_graph.
  Status add(const relay::Module& fused, const Target& target);
  // Decides, after everything was added.
  void agree();
  // Panel width of this weight in vectors; 0 if no added product reads it.
  int panel_vectors(const Tensor& weight) const;
  // Whether all products that read the weight use it as rows for dot products (topi::packed_as_dots).
  bool as_dots(const Tensor& weight) const;
  // The forms (Implementation::forms) that kernels may read; empty: any.
  std::set<std::string> agreed(const Tensor& weight) const;

 private:
  struct Product {
    topi::GemmProblem problem;
    Target target;
    bool looked_up = false;
  };
  struct FormCost {
    double time, bytes;  // time of the kernel; size of the weight
  };
  // A kernel of one plan, and its time for each form of the weight.
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
  // By hash of the weight.
  std::unordered_map<uint64_t, std::vector<Product>> products_;
  std::map<uint64_t, std::vector<Reader>> readers_;
  std::map<uint64_t, std::set<std::string>> agreed_;
};

}  // namespace tilewright::lower
