// SPDX-License-Identifier: Apache-2.0
// What a model uses that cannot be imported, gathered so that it is reported all at once.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace tilewright::frontend {

class UnsupportedNodes {
 public:
  // `detail` tells operators of the same name apart ("opset 13"); `why` is empty where there is no converter at all.
  void add(std::string op, std::string detail, std::string where, std::string why) {
    nodes_.push_back({std::move(op), std::move(detail), std::move(where), std::move(why)});
  }
  size_t size() const { return nodes_.size(); }
  void forget(size_t from) { nodes_.resize(from); }
  // One line for each operator and reason, with how often and where.
  Diagnostic report(std::string hint) const;

 private:
  struct Unsupported {
    std::string op, detail, where, why;
  };
  std::vector<Unsupported> nodes_;
};

}  // namespace tilewright::frontend
