// SPDX-License-Identifier: Apache-2.0
// A Relay module as a VM program: functions, closures, recursion, data types and branches become bytecode, and the
// operators between two decisions regions, which are compiled for the sizes they meet (docs/vm.md).
#pragma once
#include <string>

#include "base/result.h"
#include "relay/expr.h"
#include "runtime/vm/program.h"

namespace tilewright::program {

// Regions are compiled for `target`. main's attribute "input_kinds" says which of its parameters are no tensors of
// known rank ("unranked float32", "value"), "output_names" what its results are called. Errors: UnsupportedModel (a
// parameter of main that is neither, a constructor used as a value), LimitExceeded.
Result<runtime::vm::Program> make_program(const relay::Module& module, const std::string& target);

// Whether an ordinary library can hold the module: not with free sizes or types that only a run has; perhaps with
// results whose size is open and control flow, which passes may settle.
enum class Need { kNone, kPossible, kCertain };
Need need_of(const relay::Module& module);

}  // namespace tilewright::program
