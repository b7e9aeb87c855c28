// SPDX-License-Identifier: Apache-2.0
// Regions for external code generators, in the classic stack's three steps.
// AnnotateTarget: wraps every operator in compiler_begin and compiler_end of the first generator that supports it, or
// of "default". Tuples and fields belong to a generator when all their operators do.
// MergeCompilerRegions: merges adjacent regions of one generator, unless a path between them leaves them, or they lie
// in different branches.
// PartitionGraph: replaces each region by a call of a new global function with the attributes Compiler, global_symbol,
// Primitive and Inline, and removes the marks. Constants stay inside.
// Requires: typed module.
// Ensures: the same values; unsupported operators are untouched.
// Why three: scripts may insert their own marks between them.
// Tests: tests/relay/passes/{annotate_target, merge_compiler_regions,partition_graph}*.txt
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {

struct TargetRules {
  std::vector<std::string> targets;  // generators, the preferred one first
  // Whether a generator supports the call of an operator or of a Composite function.
  std::function<bool(const std::string& target, const Expr& call)> takes;
  bool include_non_call_ops = true;  // false: tuples and fields stay with the CPU
};
Result<Module> annotate_target(const Module& module, const TargetRules& rules);
// Takes the option relay.AnnotateTarget.targets: generators by name, or "name=operator,operator"; each also supports
// its own composites.
Result<Module> annotate_target(const Module& module, PassContext& context);
// Whether the call is of a Composite function of that generator: its name begins with the generator's and a dot.
bool takes_composite(const std::string& target, const Expr& call);
Result<Module> merge_compiler_regions(const Module& module, PassContext& context);
// Functions are named tvmgen_<mod_name>_<generator>_<function>_<number>. Without
// bind_constants, constants are passed as arguments. Errors: InvalidArgument
// when marks set by a script delimit a region that depends on itself.
Result<Module> partition_graph(const Module& module, const std::string& mod_name, bool bind_constants = true);
// Takes the options relay.PartitionGraph.*.
Result<Module> partition_graph(const Module& module, PassContext& context);

// The attribute of that name as text; empty where there is none.
std::string function_attr(const FunctionNode& function, const std::string& name);

}  // namespace tilewright::relay
