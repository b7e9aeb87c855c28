// SPDX-License-Identifier: Apache-2.0
// Operators that a script defines (relay.op.register in Python): they have a type, by the script's relation, and a
// build needs a computation of the script's.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "relay/op.h"

namespace tilewright::relay {

using ScriptRelation = std::function<Result<Type>(const TypeArgs&)>;
// The gradients of a call's operands, from the gradient of its result.
using ScriptGradient = std::function<Result<std::vector<Expr>>(const Expr& call, const Expr& gradient)>;

// Attributes of a call of such an operator: what the script gave, in the order of the names.
class ScriptAttrs : public AttrsNode {
 public:
  explicit ScriptAttrs(std::vector<std::pair<std::string, AttrValue>> values);
  const char* type_name() const override { return "DictAttrs"; }
  void visit(AttrVisitor& visitor) override;
  AttrsNode* clone() const override { return new ScriptAttrs(values_); }
  const std::vector<std::pair<std::string, AttrValue>>& values() const { return values_; }

 private:
  std::vector<std::pair<std::string, AttrValue>> values_;
};

// The new operator's record, or null if there is an operator of that name already.
OpDef* define_script_op(const std::string& name, const std::string& doc);
OpDef* find_script_op(std::string_view name);
void set_script_relation(const OpDef& op, ScriptRelation relation);
// Of any operator: replaces the compiler's own; without a function that is back.
void set_script_gradient(const std::string& op, ScriptGradient gradient);
// Null if no script gave one.
std::shared_ptr<const ScriptGradient> find_script_gradient(std::string_view op);
// The type of a call, by the relation; an error if there is none.
Result<Type> script_op_type(const OpDef& op, const TypeArgs& args);
// A copy that lives as long as the records, which refer to their texts.
const char* kept_text(std::string text);

}  // namespace tilewright::relay
