// SPDX-License-Identifier: Apache-2.0
// Moves functions of external code generators, for scripts.
// InlineCompilerFunctionsBoundTo: the global functions named by the option relay.InlineCompilerFunctionsBoundTo.
// global_vars are inlined, with the composites inside: the region returns to the CPU.
// OutlineCompilerFunctionsWithExistingGlobalSymbols: function literals with Compiler and global_symbol, called in place
// or bound by a let, become global functions of that name.
// MarkCompilerFunctionsAsExtern: global functions with Compiler keep one attribute, Extern: their code comes with a
// module that the library imports. The option *.compiler_filter restricts the last two to one generator.
// Requires: typed module.
// Ensures: the same values.
// Tests: tests/relay/passes/compiler_functions*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> inline_compiler_functions(const Module& module, PassContext& context);
// Errors: InvalidArgument when two different functions have the same name.
Result<Module> outline_compiler_functions(const Module& module, PassContext& context);
Result<Module> mark_compiler_functions_extern(const Module& module, PassContext& context);
}  // namespace tilewright::relay
