// SPDX-License-Identifier: Apache-2.0
// Functions over arrays that call each other (a main function whose calls are the steps of a model, say) become
// functions without such calls: a call is replaced by the statements of what it calls.
//
// Requires: functions of the form that scripts write (tir/block.h). Ensures: no function calls another of the list; a
// handle among a function's parameters is the array of the parameter that it is given to first; memory and addresses
// of each copy are its own. First of all, because everything behind it looks at one function at a time.
// Test: tests/tir/inline_calls_test.cc, classic_programs/planned_memory.py
#pragma once
#include <map>
#include <string>

#include "base/result.h"
#include "tir/block.h"

namespace tilewright::tir {

// By the names that calls use, of which a function may have several; null: a function without such statements, whose
// calls are errors.
using CallableFunctions = std::map<std::string, const BlockFunction*>;

// The functions that call others of them, inlined. Errors: InvalidArgument (a function that calls itself, or is given
// other counts or kinds of values).
using InlinedFunctions = std::map<const BlockFunction*, BlockFunction>;
Result<InlinedFunctions> inline_calls(const CallableFunctions& functions);

}  // namespace tilewright::tir
