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

// Called for every evaluated expression with its values, one per tensor of its (flattened) type. An error stops the
// evaluation and is returned.
using EvalHook = std::function<Status(const Expr& expr, std::span<const Value> values)>;

// A Value takes 16 bytes per element: 8 GiB for the largest.
inline constexpr int64_t kMaxElements = int64_t{1} << 29;

struct InterpretOptions {
  EvalHook hook;                        // may be empty
  const Module* module = nullptr;       // resolves GlobalVars
  int64_t max_elements = kMaxElements;  // of one result; larger ones are LimitExceeded
};

using Environment = std::unordered_map<const ExprNode*, std::vector<Value>>;

// Error: LimitExceeded where a tensor of the type has more elements.
Status within_limit(const Type& type, int64_t limit);
// Evaluates one operator call. fields_per_operand is 0 for a tensor, else the number of fields of a tuple. When the
// result's dims are not all constant, the type is inferred again from the values.
Result<std::vector<Value>> evaluate_op(const OpDef& def, std::span<const Value> inputs,
                                       std::span<const size_t> fields_per_operand, const AttrsRef& attrs,
                                       const Type& out_type, int64_t max_elements = kMaxElements);
// Evaluates an expression, given the values of its free variables (one Value per tensor of a tuple).
Result<std::vector<Value>> evaluate(const Expr& expr, const Environment& free_vars,
                                    const InterpretOptions& options = {});
// Evaluates main on inputs by name. Errors: UnknownInput, ShapeMismatch, DtypeMismatch, and those of operators.
Result<std::vector<Value>> interpret(const Module& module, const std::map<std::string, Value>& inputs,
                                     const InterpretOptions& options = {});

}  // namespace tilewright::relay
