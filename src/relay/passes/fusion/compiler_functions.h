// SPDX-License-Identifier: Apache-2.0
// Functions of external code generators, as scripts move them about.
// InlineCompilerFunctionsBoundTo: the global functions named by the option relay.InlineCompilerFunctionsBoundTo.
//   global_vars become their bodies where they are called, and so do the composites inside: a part goes back to the
//   processor.
// OutlineCompilerFunctionsWithExistingGlobalSymbols: function literals with Compiler and global_symbol, called in
//   place or bound by a let, become global functions of that name.
// MarkCompilerFunctionsAsExtern: global functions with Compiler keep one attribute, Extern: their code comes with a
//   module that the library imports.
// The last two look at one generator's functions where the option *.compiler_filter names it.
// Requires: typed module. Ensures: the same values. Tests: tests/relay/passes/compiler_functions*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> inline_compiler_functions(const Module& module, PassContext& context);
// Errors: InvalidArgument where two functions that differ have one name.
Result<Module> outline_compiler_functions(const Module& module, PassContext& context);
Result<Module> mark_compiler_functions_extern(const Module& module, PassContext& context);
}  // namespace tilewright::relay
