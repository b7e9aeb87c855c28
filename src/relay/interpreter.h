// SPDX-License-Identifier: Apache-2.0
// The reference interpreter: evaluates a graph on Values, in double with error bounds. The oracle of every pass, kernel
// and backend; shares no code with them. Iterative over operands; intermediates die at their last use.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "relay/expr.h"
#include "relay/op.h"

namespace tilewright::relay {

// Called for every evaluated expression with its value(s), one per tensor of its (flattened) type. An error stops the
// evaluation and is returned.
using EvalHook = std::function<Status(const Expr& expr, std::span<const Value> values)>;

struct InterpretOptions {
  EvalHook hook;                           // may be empty
  const Module* module = nullptr;          // resolves GlobalVars
  int64_t max_elements = int64_t{1} << 32;  // of one tensor; larger ones are LimitExceeded
};

using Environment = std::unordered_map<const ExprNode*, std::vector<Value>>;

// One call of an operator. When the result's dims are not all constant, the type is inferred again from the values.
Result<std::vector<Value>> evaluate_op(const OpDef& def, std::span<const Value> inputs, std::span<const size_t> fields_per_operand,
                                       const AttrsRef& attrs, const Type& out_type);
// An expression, given the values of its free variables (one Value per tensor of a tuple).
Result<std::vector<Value>> evaluate(const Expr& expr, const Environment& free_vars, const InterpretOptions& options = {});
// A module's main on inputs by name. Errors: UnknownInput, ShapeMismatch, DtypeMismatch, and what operators report.
Result<std::vector<Value>> interpret(const Module& module, const std::map<std::string, Value>& inputs, const InterpretOptions& options = {});

}  // namespace tilewright::relay
