// SPDX-License-Identifier: Apache-2.0
// Compiles a Relay module to a VM program: functions, closures, recursion, data types and branches become bytecode; the
// operators between decisions form regions, compiled for the sizes they meet (docs/vm.md).
#pragma once
#include <string>

#include "base/result.h"
#include "relay/expr.h"
#include "runtime/vm/program.h"

namespace tilewright::program {

// Regions are compiled for `target`. main's attribute "input_kinds" marks parameters that are not tensors of known rank
// ("unranked float32", "value"); "output_names" names its results. Errors: UnsupportedModel (another kind of parameter
// of main, a constructor used as a value), LimitExceeded.
Result<runtime::vm::Program> make_program(const relay::Module& module, const std::string& target);

// Whether a module needs to be a program: certainly with free sizes, types known only at run time, or text that depends
// on inputs; possibly with open result sizes, control flow or text of constants, which passes may resolve.
enum class Need { kNone, kPossible, kCertain };
Need need_of(const relay::Module& module);

}  // namespace tilewright::program
