// SPDX-License-Identifier: Apache-2.0
// External code generators: which parts of a model they
// take, and what they produce (docs/external-codegen.md).
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/formats/plan.h"
#include "base/tensor.h"
#include "codegen/source/c_external.h"
#include "driver/external_code/c_source.h"
#include "lower/lower.h"
#include "runtime/module.h"

namespace tilewright::driver {

// A module as stored in a library: type key, and the bytes for runtime.module.loadbinary_<type key>. `constants`: names
// that its __init_<symbol> receives when the library is loaded. A C source module (external_code/c_source.h) is
// compiled into the library, and names its constants itself.
struct SavedModule {
  std::string type_key, bytes;
  std::vector<std::string> constants = {};
};

struct ExternalCodegen {
  std::string name;      // "vecunit"
  std::string patterns;  // supported chains of operators, one per line; empty: only functions that are already marked
  // Whether a match, given as the graph of one kernel, is supported; null: all are.
  std::function<Result<bool>(const std::string& graph_json)> supports;
  // Generates the module for one function. `constants` are the graph's nodes with op "const", in order.
  std::function<Result<SavedModule>(const std::string& symbol, const std::string& graph_json,
                                    const std::vector<Tensor>& constants)>
      generate;
  // The same from the function itself, for generators that do not read JSON; takes precedence.
  std::function<Result<SavedModule>(const std::string& symbol, const relay::Expr& function)> generate_from = {};
  // Constants by the names that the module expects; null: those of the graph as <symbol>_const_<number>.
  std::function<Result<std::map<std::string, Tensor>>(const std::string& symbol, const relay::Expr& function)>
      constants = {};
};

// A function as graph JSON for code generators: nodes (input, const, kernel), arg_nodes, heads, node_row_ptr.
struct ExternalGraph {
  std::string json;
  std::vector<Tensor> constants;
};
// Errors: UnsupportedModel (control flow, a free size).
Result<ExternalGraph> external_graph(const relay::FunctionNode& function, const std::string& symbol);

// Partitions the module: matches of the generators' patterns become functions of theirs.
Result<relay::Module> take_external_parts(const relay::Module& module, const std::vector<ExternalCodegen>& codegens,
                                          const std::string& mod_name);

// The results of all external functions: modules for
// the library to import, and source to compile into it.
struct ExternalCode {
  std::vector<runtime::ImportRecord> modules;
  std::vector<CSource> sources;
  std::map<std::string, std::vector<Tensor>> source_constants;  // by function: what its source's __init_ receives
};
// The C functions that a program without the runtime links for plan.externals, in their order. Error: UnsupportedModel
// if a function is another module's.
Result<std::vector<codegen::CExternal>> c_externals(const plan::Plan& plan, const ExternalCode& code);
// Their source, by names that end in the numbers behind `first`: NAME_lib2.c. It needs no header of another place.
std::vector<std::pair<std::string, std::string>> c_external_files(const ExternalCode& code, const std::string& name,
                                                                  int first);
// For a function whose compiler is not in `codegens`, calls the global function relay.ext.<compiler>: (symbol, graph
// JSON, list of constants) -> module; otherwise a built-in generator (external_code/generators.h). Errors:
// UnknownFunction, CodegenFailed, and what the generator reports.
Result<ExternalCode> compile_external(const std::vector<lower::ExternalFunction>& functions,
                                      const std::vector<ExternalCodegen>& codegens);

}  // namespace tilewright::driver
