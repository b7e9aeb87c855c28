// SPDX-License-Identifier: Apache-2.0
// Code generators of the user's: which parts of a model they take, and what they make of them
// (docs/external-codegen.md).
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/tensor.h"
#include "lower/lower.h"

namespace tilewright::driver {

// A module as it is written into a library: its type key, and the bytes that runtime.module.loadbinary_<type key>
// takes.
using SavedModule = std::pair<std::string, std::string>;

struct ExternalCodegen {
  std::string name;      // "vecunit"
  std::string patterns;  // what it takes, one chain of operators a line; empty: only functions that are marked already
  // Whether it takes a match, given as a graph of one kernel; null: every match.
  std::function<Result<bool>(const std::string& graph_json)> supports;
  // The module for one function. `constants` are those of the graph's nodes with op "const", in their order.
  std::function<Result<SavedModule>(const std::string& symbol, const std::string& graph_json,
                                    const std::vector<Tensor>& constants)>
      generate;
};

// A function as the graph JSON that code generators read: nodes (input, const, kernel), arg_nodes, heads, node_row_ptr.
struct ExternalGraph {
  std::string json;
  std::vector<Tensor> constants;
};
// Errors: UnsupportedModel (control flow, a free size).
Result<ExternalGraph> external_graph(const relay::FunctionNode& function, const std::string& symbol);

// The parts that the generators' patterns match become functions of theirs.
Result<relay::Module> take_external_parts(const relay::Module& module, const std::vector<ExternalCodegen>& codegens,
                                          const std::string& mod_name);

// The modules of all external functions, in their order. A function whose compiler is not among `codegens` goes to the
// function relay.ext.<compiler> of the table of functions: (symbol, graph JSON, list of constants) -> module. Errors:
// UnknownFunction, CodegenFailed, and what the generator reports.
Result<std::vector<SavedModule>> compile_external(const std::vector<lower::ExternalFunction>& functions,
                                                  const std::vector<ExternalCodegen>& codegens);

}  // namespace tilewright::driver
