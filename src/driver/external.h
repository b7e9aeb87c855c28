// SPDX-License-Identifier: Apache-2.0
// Code generators of the user's: which parts of a model they take, and what they make of them
// (docs/external-codegen.md).
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "driver/external_code/c_source.h"
#include "lower/lower.h"
#include "runtime/module.h"

namespace tilewright::driver {

// A module as it is written into a library: its type key, and the bytes that runtime.module.loadbinary_<type key>
// takes. `constants`: names of those that its __init_<symbol> wants when the library is loaded. A module of C source
// (external_code/c_source.h) is compiled into the library, and names its constants itself.
struct SavedModule {
  std::string type_key, bytes;
  std::vector<std::string> constants = {};
};

struct ExternalCodegen {
  std::string name;      // "vecunit"
  std::string patterns;  // what it takes, one chain of operators a line; empty: only functions that are marked already
  // Whether it takes a match, given as a graph of one kernel; null: every match.
  std::function<Result<bool>(const std::string& graph_json)> supports;
  // The module for one function. `constants` are those of the graph's nodes with op "const", in their order.
  std::function<Result<SavedModule>(const std::string& symbol, const std::string& graph_json,
                                    const std::vector<Tensor>& constants)>
      generate;
  // The same of the function itself, for a generator that does not read JSON; goes first.
  std::function<Result<SavedModule>(const std::string& symbol, const relay::Expr& function)> generate_from = {};
  // Constants by the names under which the module wants them; null: those of the graph as <symbol>_const_<number>.
  std::function<Result<std::map<std::string, Tensor>>(const std::string& symbol, const relay::Expr& function)>
      constants = {};
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

// What generators made of all external functions: the modules that the library imports, and source that is compiled
// into it.
struct ExternalCode {
  std::vector<runtime::ImportRecord> modules;
  std::vector<CSource> sources;
};
// A function whose compiler is not among `codegens` goes to the function relay.ext.<compiler> of the table of
// functions: (symbol, graph JSON, list of constants) -> module; or else to a generator of our own
// (external_code/generators.h). Errors: UnknownFunction, CodegenFailed, and what the generator reports.
Result<ExternalCode> compile_external(const std::vector<lower::ExternalFunction>& functions,
                                      const std::vector<ExternalCodegen>& codegens);

}  // namespace tilewright::driver
