// SPDX-License-Identifier: Apache-2.0
// Parts of a module for external code generators, in the classic stack's three steps.
// AnnotateTarget: every operator stands between compiler_begin and compiler_end of the first generator that takes it,
//   or of "default". Tuples and fields belong to a generator when all that they are made of does.
// MergeCompilerRegions: neighbouring parts of one generator become one, unless a path between them leads through
//   something else, or one of them lies in a branch that the other does not lie in.
// PartitionGraph: each part becomes a global function with the attributes Compiler, global_symbol, Primitive and
//   Inline, which its place calls; marks disappear. Constants stay inside.
// Requires: typed module. Ensures: the same values; what no generator takes is untouched.
// Why three: scripts put marks of their own between them. Tests: tests/relay/passes/{annotate_target,
// merge_compiler_regions,partition_graph}*.txt
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {

struct TargetRules {
  std::vector<std::string> targets;  // generators, the preferred one first
  // Whether a generator takes the call of an operator or of a Composite function.
  std::function<bool(const std::string& target, const Expr& call)> takes;
  bool include_non_call_ops = true;  // false: tuples and fields stay with the processor
};
Result<Module> annotate_target(const Module& module, const TargetRules& rules);
// With the option relay.AnnotateTarget.targets: generators by name, or "name=operator,operator"; each also takes its
// composites.
Result<Module> annotate_target(const Module& module, PassContext& context);
// Whether the call is of a Composite function of that generator: its name begins with the generator's and a dot.
bool takes_composite(const std::string& target, const Expr& call);
Result<Module> merge_compiler_regions(const Module& module, PassContext& context);
// Functions are named tvmgen_<mod_name>_<generator>_<function>_<number>. Without bind_constants, constants are
// arguments like any other value. Errors: InvalidArgument for marks that scripts put around a part that depends on
// itself.
Result<Module> partition_graph(const Module& module, const std::string& mod_name, bool bind_constants = true);
// As the options relay.PartitionGraph.* say.
Result<Module> partition_graph(const Module& module, PassContext& context);

// The attribute of that name as text; empty where there is none.
std::string function_attr(const FunctionNode& function, const std::string& name);

}  // namespace tilewright::relay
