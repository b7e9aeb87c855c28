// SPDX-License-Identifier: Apache-2.0
// Inside a fusion group: which call decides the kernel (the anchor), and what surrounds it as computed operands and an
// epilogue.
#pragma once
#include <optional>
#include <unordered_map>
#include <vector>

#include "lower/graph.h"
#include "topi/view.h"

namespace tilewright::lower {

// The one call of a group that needs a template; null for a group of compute definitions only.
struct Anchor {
  const relay::CallNode* call = nullptr;
  relay::Expr expr;
  std::string_view op;
  // Which group input each (flattened) argument is; -1 where something is computed on the way.
  std::vector<int> inputs;
  bool direct() const;  // every argument is a group input
};

// Whether a group can become one kernel: at most one anchor, every other call has a compute definition, and only a
// plain chain leads from the anchor to the single result.
bool lowers_whole(const relay::FunctionNode& function);
Anchor find_anchor(const relay::FunctionNode& function);

// Groups that do not lower whole, and `apart`, as one group per call. What is left then either lowers or is reported.
relay::Module split_groups(const relay::Module& fused, const relay::FunctionNode* apart = nullptr);

// The group's expressions over its views, as loop IR.
class GroupScope {
 public:
  GroupScope(const Group& group, std::vector<topi::View> inputs, std::vector<topi::View> outputs);
  const topi::View& input(size_t i) const { return inputs_[i]; }
  const topi::View& output(size_t i = 0) const { return outputs_[i]; }
  const Group& group() const { return group_; }
  // Result `output` of an expression of the group, element by element.
  topi::Operand operand(const relay::Expr& e, int output = 0) const;
  // The same for indices whose last one, and the lanes behind it, lie in [first, last).
  topi::Operand operand_within(const relay::Expr& e, int output, int64_t first, int64_t last) const;
  // Argument i of the anchor, element by element.
  topi::Operand anchor_operand(const Anchor& anchor, size_t i) const;
  // From the anchor's value to the stored value of the group's result.
  topi::Epilogue epilogue(const Anchor& anchor) const;

 private:
  struct Evaluation;  // one index; shares repeated subexpressions
  const Group& group_;
  std::vector<topi::View> inputs_, outputs_;
  std::unordered_map<const relay::ExprNode*, std::vector<size_t>> input_of_;  // Var or lifted constant -> group inputs
};

}  // namespace tilewright::lower
