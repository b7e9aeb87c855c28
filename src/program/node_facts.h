// SPDX-License-Identifier: Apache-2.0
// What the compiler of a program knows of a module's values: what a let-bound variable stands for, who runs an
// operator, and what the compiler of a region will know of its operands.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "relay/expr.h"
#include "relay/ops/program/attrs_program.h"

namespace tilewright::program {

using relay::Expr;
using relay::ExprNode;

// What let-bound variables stand for, over the whole module: variables are unique.
class Aliases {
 public:
  Expr resolve(Expr e);
  void bind(const Expr& var, const Expr& value) { values_.emplace(var.get(), value); }

 private:
  std::unordered_map<const ExprNode*, Expr> values_;
};

// What the compiler of a region will know of a value, the least first.
enum class Known {
  kNo,     // computed from data
  kInput,  // computed from small integer inputs of the model: settings, compiled in
  kShape,  // computed from shapes
  kConstant,
};

// Who runs a call of an operator.
struct Treatment {
  enum Kind { kRegion, kHost, kEvaluate } kind = kRegion;
  std::vector<size_t> values = {};  // operands of a region that must be values when it is compiled
};

class NodeFacts {
 public:
  Aliases aliases;
  // A parameter of main whose values are settings of the model as far as sizes depend on them; one that holds texts.
  void set_setting(const Expr& var) { known_[var.get()] = Known::kInput; }
  void set_text(const Expr& var) { text_[var.get()] = true; }
  // Asked for operands before users, so that no recursion goes deep.
  Known known(const Expr& e);
  bool text(const Expr& e);
  const Treatment& treatment(const Expr& call);
  // Whether a branch is decided when a region is compiled, because sizes may depend on it, and its sides are operators
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

// "Name\nkey=value\n...": the source of a region that calls the runtime's function for a kHost call.
std::string host_source(const Expr& call);

}  // namespace tilewright::program
