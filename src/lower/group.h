// SPDX-License-Identifier: Apache-2.0
// The structure of a fusion group: the anchor, the call that decides the kernel, with computed operands and an epilogue
// around it.
#pragma once
#include <optional>
#include <unordered_map>
#include <vector>

#include "lower/graph.h"
#include "topi/view.h"

namespace tilewright::lower {

// The one call of a group that needs a template; null if the group has compute definitions only.
struct Anchor {
  const relay::CallNode* call = nullptr;
  relay::Expr expr;
  std::string_view op;
  // For each flattened argument the group input it is; -1 if something is computed in between.
  std::vector<int> inputs;
  bool direct() const;  // all arguments are group inputs
};

// Whether a group can become one kernel: at most one anchor, compute definitions for all other calls, and a single
// chain from the anchor to the only result.
bool lowers_whole(const relay::FunctionNode& function);
Anchor find_anchor(const relay::FunctionNode& function);

// Splits groups that cannot be lowered as a whole, and `apart`, into one group per call. What still cannot be lowered
// is reported.
relay::Module split_groups(const relay::Module& fused, const relay::FunctionNode* apart = nullptr);

// The group's expressions over its views, as loop IR.
class GroupScope {
 public:
  GroupScope(const Group& group, std::vector<topi::View> inputs, std::vector<topi::View> outputs);
  const topi::View& input(size_t i) const { return inputs_[i]; }
  const topi::View& output(size_t i = 0) const { return outputs_[i]; }
  const Group& group() const { return group_; }
  // Result `output` of an expression of the group, evaluated per element.
  topi::Operand operand(const relay::Expr& e, int output = 0) const;
  // The same for indices whose vectors along the last dimension lie within [first, last).
  topi::Operand operand_within(const relay::Expr& e, int output, int64_t first, int64_t last) const;
  // Argument i of the anchor, evaluated per element.
  topi::Operand anchor_operand(const Anchor& anchor, size_t i) const;
  // Computes the group's stored result from the anchor's value.
  topi::Epilogue epilogue(const Anchor& anchor) const;

 private:
  struct Evaluation;  // the evaluation at one index; shares repeated subexpressions
  const Group& group_;
  std::vector<topi::View> inputs_, outputs_;
  // Var or lifted constant -> indices of group inputs
  std::unordered_map<const relay::ExprNode*, std::vector<size_t>> input_of_;
};

}  // namespace tilewright::lower
