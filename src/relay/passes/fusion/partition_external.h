// SPDX-License-Identifier: Apache-2.0
// Partitions a module for an external code generator.
// What: matches of the generator's patterns become functions with the attribute Composite (the classic MergeComposite);
// then the three steps of compiler_regions.h.
// Requires: typed module.
// Ensures: the same values; everything else is untouched.
// Tests: tests/driver/external_test.cc.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "relay/expr.h"

namespace tilewright::relay {

// A chain of operators in which each reads the previous result; `optional` ones may be missing.
struct CompositePattern {
  struct Link {
    std::string op;
    bool optional = false;
  };
  std::string name;  // "vecunit.dense"
  std::vector<Link> links;
};

// Parses one pattern per line: "vecunit.dense: nn.dense add? nn.relu?". Errors: InvalidArgument, UnknownOp (with the
// line).
Result<std::vector<CompositePattern>> parse_composite_patterns(const std::string& text);

struct ExternalCompiler {
  std::string name;                        // "vecunit"
  std::vector<CompositePattern> patterns;  // tried in order
  // checks a match, as its Composite function; null: all are accepted
  std::function<bool(const FunctionNode&)> supports = {};
};

// Functions are named tvmgen_<mod_name>_<compiler>_main_<number>.
Result<Module> partition_external(const Module& module, const ExternalCompiler& compiler, const std::string& mod_name);

}  // namespace tilewright::relay
