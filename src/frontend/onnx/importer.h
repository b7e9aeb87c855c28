// SPDX-License-Identifier: Apache-2.0
// The state of one import: scopes of names, inlined functions, the folding of constants, the list of what is
// unsupported.
#pragma once
#include <map>
#include <unordered_map>

#include "frontend/onnx/convert.h"
#include "frontend/onnx/import.h"

namespace tilewright::onnx {

// Names of one graph or function body. A subgraph sees its parent's; a function does not.
struct Scope {
  const Scope* parent = nullptr;
  std::unordered_map<std::string, Value> values;
  const std::map<std::string, int64_t>* opsets = nullptr;
  std::map<std::string, const Attribute*> function_attributes;  // of the call being inlined
  std::string prefix;                                           // "call/" for spans of inlined functions
  int depth = 0;

  const Value* find(const std::string& name) const {
    for (const Scope* s = this; s; s = s->parent)
      if (auto it = s->values.find(name); it != s->values.end()) return &it->second;
    return nullptr;
  }
};

class Importer {
 public:
  Importer(const Model& model, const ImportOptions& options) : model_(model), options_(options) {}
  Result<relay::Module> run();

  // Used by NodeContext.
  Values import_graph(const Graph& graph, Scope& scope);
  Expr call(std::string_view op, const std::vector<Expr>& args, const AttrsRef& attrs, const relay::Span& span);
  // The model inputs an expression reads; also noted as needed constants.
  std::vector<std::string> inputs_of(const Expr& e);
  void release_pages(const Tensor& weight) const;
  int64_t unrolled = 0;  // nodes imported by unrolling, bounded by kMaxNodes

 private:
  struct Unsupported {
    std::string op, where, why;
    int64_t version;
  };
  void bind_shapes();
  void import_nodes(const std::vector<Node>& nodes, Scope& scope);
  void import_node(const Node& node, Scope& scope);
  Values convert(const Node& node, Scope& scope, std::vector<Value> inputs);
  Values custom_conversion(const CustomConverter& converter, const Node& node, int64_t version,
                           const std::vector<Value>& inputs);
  Values inline_function(const Function& function, const Node& node, Scope& scope, std::vector<Value> inputs);
  const Function* find_function(const Node& node) const;
  void note_unsupported(const Node& node, int64_t version, const std::vector<Value>& inputs, std::string why);
  Diagnostic unsupported_report() const;
  Diagnostic with_free_dimensions(Diagnostic failure) const;

  const Model& model_;
  const ImportOptions& options_;
  std::map<std::string, Dim> symbols_;  // named dimensions bound by options.shapes
  std::vector<Unsupported> unsupported_;
  std::vector<Expr> inputs_;
  std::vector<std::string> input_names_;
};

}  // namespace tilewright::onnx
