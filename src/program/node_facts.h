// SPDX-License-Identifier: Apache-2.0
// Facts about a module's values for the program compiler: values of let variables, who executes an operator, and what
// will be known about its operands when a region is compiled.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "relay/expr.h"
#include "relay/ops/program/attrs_program.h"

namespace tilewright::program {

using relay::Expr;
using relay::ExprNode;

// The values of let variables, over the whole module: variables are unique.
class Aliases {
 public:
  Expr resolve(Expr e);
  void bind(const Expr& var, const Expr& value) { values_.emplace(var.get(), value); }

 private:
  std::unordered_map<const ExprNode*, Expr> values_;
};

// What will be known about a value when a region is compiled, least first.
enum class Known {
  kNo,     // depends on data
  kInput,  // depends on small integer inputs of the model (settings), which are compiled in
  kShape,  // depends on shapes only
  kConstant,
};

// Who executes an operator call.
struct Treatment {
  enum Kind { kRegion, kHost, kEvaluate } kind = kRegion;
  std::vector<size_t> values = {};  // operands of a region whose values are needed for compiling it
};

class NodeFacts {
 public:
  Aliases aliases;
  // Marks a parameter of main as a setting (its values may determine sizes) or as one that holds strings.
  void set_setting(const Expr& var) { known_[var.get()] = Known::kInput; }
  void set_text(const Expr& var) { text_[var.get()] = true; }
  // Must be called for operands before users, to bound recursion.
  Known known(const Expr& e);
  bool text(const Expr& e);
  const Treatment& treatment(const Expr& call);
  // Whether a branch is resolved when a region is compiled, because sizes may depend on it, and its sides are operators
  // of that region.
  bool settled(const Expr& branch);

 private:
  Known find_known(const Expr& e);
  bool find_text(const Expr& e);
  Treatment find_treatment(const Expr& call);
  bool find_settled(const relay::IfNode& branch);
  bool is_part_of_region(const Expr& side, bool several);
  Treatment onnx_treatment(const relay::CallNode& call, const relay::OnnxNodeAttrs& attrs);
  std::unordered_map<const ExprNode*, Known> known_;
  std::unordered_map<const ExprNode*, bool> text_;
  std::unordered_map<const ExprNode*, bool> settled_;
  std::unordered_map<const ExprNode*, Treatment> treatments_;
};

// The source of a region for a kHost call: "Name\nkey=value\n...".
std::string host_source(const Expr& call);

}  // namespace tilewright::program
