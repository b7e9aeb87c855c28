// SPDX-License-Identifier: Apache-2.0
// The state of one import: name scopes, inlined functions,
// constant folding, and the list of unsupported nodes.
#pragma once
#include <map>
#include <unordered_map>

#include "frontend/onnx/convert.h"
#include "frontend/onnx/import.h"
#include "frontend/unsupported.h"

namespace tilewright::onnx {

// The names of one graph or function body. A subgraph sees its parent's names; a function does not.
struct Scope {
  const Scope* parent = nullptr;
  std::unordered_map<std::string, Value> values;
  const std::map<std::string, int64_t>* opsets = nullptr;
  std::map<std::string, const Attribute*> function_attributes;  // attributes of the call being inlined
  std::string prefix;                                           // "call/", for the spans of inlined functions
  int depth = 0;

  const Value* find(const std::string& name) const {
    for (const Scope* s = this; s; s = s->parent)
      if (auto it = s->values.find(name); it != s->values.end()) return &it->second;
    return nullptr;
  }
};

// Fails by ConversionFailure.
[[noreturn]] void refuse(ErrorCode code, std::string message, std::string where = {}, std::string hint = {});
// The type of a tensor, or of the tensor an optional holds; null for others.
const ValueType* tensor_of(const ValueType& type);

class Importer {
 public:
  Importer(const Model& model, const ImportOptions& options)
      : is_program(options.programs == Programs::kAlways), model_(model), options_(options) {}
  Result<relay::Module> run();

  // Used by NodeContext.
  Values import_graph(const Graph& graph, Scope& scope);
  // The model inputs that an expression reads; they are also recorded as needed constants.
  std::vector<std::string> inputs_of(const Expr& e);
  void release_pages(const Tensor& weight) const;
  int64_t unrolled = 0;  // nodes that unrolling has imported, bounded by kMaxNodes
  bool programs() const { return options_.programs != Programs::kRefused; }
  // True once something was imported that only a program can run: a deferred node, control flow, a non-tensor value.
  bool is_program;
  // The node as a call of onnx.node. Attributes that refer to a function's attribute are replaced by its value.
  Values defer(const Node& node, const std::map<std::string, const Attribute*>& function_attributes, int64_t version,
               const std::vector<Value>& inputs);
  // A value of any kind as one expression.
  Expr one_value(const Value& v);
  static bool is_static_value(const Value& v);
  size_t unsupported_count() const { return unsupported_.size(); }
  void forget_unsupported(size_t from) { unsupported_.forget(from); }

  // Used by convert_deferred: adds an argument of the region; converts one node.
  void add_input(const std::string& name, const Expr& var);
  Values converted(const Node& node, const std::map<std::string, int64_t>& opsets, std::vector<Value> inputs);

 private:
  void bind_shapes();
  void add_graph_input(const ValueInfo& info, Scope& scope);
  Expr program_input(const ValueInfo& info);
  Value map_input(const ValueInfo& info);
  Expr results(const Values& outputs, relay::DictAttrs* attrs);
  bool may_wait(const Node& node, const std::vector<Value>& inputs, const Diagnostic& failure);
  void import_nodes(const std::vector<Node>& nodes, Scope& scope);
  void import_node(const Node& node, Scope& scope);
  Values convert(const Node& node, Scope& scope, std::vector<Value> inputs);
  Values with_converter(const Node& node, Scope& scope, int64_t version, std::vector<Value> inputs);
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
  frontend::UnsupportedNodes unsupported_;
  std::vector<Expr> inputs_;
  std::vector<std::string> input_names_;
  std::vector<std::string> input_kinds_;  // kinds of main's inputs: "tensor", "unranked float32", "value"
};

}  // namespace tilewright::onnx
