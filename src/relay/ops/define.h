// SPDX-License-Identifier: Apache-2.0
// Builds a record of the operator table in one call; the number of inputs is that of the documented operands.
#pragma once
#include <utility>
#include <vector>

#include "relay/op.h"

namespace tilewright::relay {

inline OpDef define_op(const char* name, const char* doc, std::vector<ArgDoc> operands, OpPattern pattern,
                       Result<Type> (*type)(const TypeArgs&), Result<std::vector<Value>> (*eval)(const EvalArgs&),
                       AttrsRef (*make)()) {
  OpDef d;
  d.name = name;
  d.num_inputs = static_cast<int>(operands.size());
  d.pattern = pattern;
  d.doc = doc;
  d.args = std::move(operands);
  d.infer_type = type;
  d.evaluate = eval;
  d.make_attrs = make;
  return d;
}

// A composed operator: everything but, optionally, the type follows from its expansion.
inline OpDef define_composed(const char* name, const char* doc, std::vector<ArgDoc> operands, OpPattern pattern,
                             Result<Expr> (*expand)(const TypeArgs&), AttrsRef (*make)() = nullptr,
                             Result<Type> (*type)(const TypeArgs&) = nullptr) {
  OpDef d = define_op(name, doc, std::move(operands), pattern, type, nullptr, make);
  d.expand = expand;
  return d;
}

}  // namespace tilewright::relay
