// SPDX-License-Identifier: Apache-2.0
// The state of one import: name scopes, memories and their changes, and the list of unsupported nodes.
#pragma once
#include <map>
#include <set>
#include <unordered_map>

#include "frontend/onnx/importer.h"
#include "frontend/torch/convert.h"
#include "frontend/torch/import.h"
#include "frontend/unsupported.h"

namespace tilewright::torch {

// The names of one graph. Graphs of some control flow operators see the surrounding names, others do not.
struct Scope {
  const Scope* parent = nullptr;
  std::unordered_map<std::string, Value> values;
  int depth = 0;
  const Value* find(const std::string& name) const {
    for (const Scope* s = this; s; s = s->parent)
      if (auto it = s->values.find(name); it != s->values.end()) return &it->second;
    return nullptr;
  }
};

class Importer {
 public:
  Importer(const Program& program, const ImportOptions& options);
  Result<relay::Module> run();

  // For the converters of control flow: the graph's outputs for these inputs. `outside`: the scope whose names it sees.
  Values import_graph(const Graph& graph, Values arguments, const Scope* outside = nullptr);
  // The same of a graph that a converter wrote, which is kept as long as the import.
  Values import_made(std::shared_ptr<const Graph> graph, Values arguments) {
    made_graphs_.push_back(std::move(graph));
    return import_graph(*made_graphs_.back(), std::move(arguments));
  }
  const Scope* scope() const { return scope_; }
  // The value in the current version of its memory.
  Value current_value(const Value& v) { return now(v); }
  // Converts a node by the same rules as those of the model; it may be deferred.
  Values convert_node(const Node& node, const NamedValues& arguments) { return convert(node, arguments); }
  Value made_by(const std::string& target, const Node& near, const NamedValues& arguments);
  bool programs() const { return options_.programs != Programs::kRefused; }
  size_t unsupported_count() const { return unsupported_.size(); }
  void forget_unsupported(size_t from) { unsupported_.forget(from); }
  Place place() { return {onnx_, this}; }

 private:
  Result<relay::Module> attempt();
  void bind_shapes();
  const Range* range_of(const std::string& symbol) const;
  void add_inputs(Scope& scope);
  void add_input(const std::string& name, const Expr& var);
  void add_user_input(const InputSpec& spec, Scope& scope);
  void add_weight(const InputSpec& spec, Scope& scope);
  Shape input_shape(const std::string& name, const TensorMeta& meta) const;
  const TensorMeta* input_meta(const std::string& name) const;
  void import_nodes(const Graph& graph, Scope& scope);
  void import_node(const Node& node, Scope& scope);
  Value resolved(const Argument& a, const Scope& scope);
  Value now(const Value& v);
  Values convert(const Node& node, const NamedValues& arguments);
  Values custom_conversion(const CustomConverter& converter, const Node& node, const NamedValues& arguments);
  std::optional<Values> sized_by_data(const Node& node, const NamedValues& arguments);
  Value places_of(const Node& near, const Value& v);
  Values axes_of_places(const Node& near, const Value& v);
  NamedValues without_masks(const Node& node, const NamedValues& arguments);
  Value kept_boxes(const Node& near, const NamedValues& arguments);
  Values histogram(const Node& node, const NamedValues& arguments);
  Values in_place(const Node& node, const std::string& functional, const NamedValues& arguments);
  Values wait(const Node& node, const NamedValues& arguments);
  std::optional<size_t> parts_of(const Node& node, const NamedValues& arguments);
  void describe(const Node& node, const NamedValues& arguments, Values* made);
  std::optional<Values> shape_of_complex(const Node& node, const NamedValues& arguments);
  std::optional<Values> answered(const Node& node, const NamedValues& arguments);
  Values reshaped_in_place(const Node& node, const std::string& functional, const NamedValues& arguments, Scope& scope);
  void bind(const Node& node, Values made, Scope& scope);
  void add_result(const Value& v, const std::string& name);
  Result<relay::Module> finish(Scope& scope);

  const Program& program_;
  const ImportOptions& options_;
  const onnx::Model nothing_;
  onnx::ImportOptions onnx_options_;
  onnx::Importer onnx_;
  std::map<std::string, Dim> symbols_;  // bound by options.shapes
  frontend::UnsupportedNodes unsupported_;
  std::map<std::string, std::string> unreadable_;  // weights and outputs that have no value, with the reason
  std::set<std::string> changed_;                  // buffers and inputs that the model mutates
  std::vector<std::shared_ptr<View>> memories_;    // of those that it may mutate, in order
  std::vector<Expr> inputs_, results_;
  std::vector<std::string> input_names_, output_names_;
  const Scope* scope_ = nullptr;
  std::vector<std::unique_ptr<Node>> made_nodes_;  // nodes made by the importer, in no graph
  std::vector<std::shared_ptr<const Graph>> made_graphs_;
  int64_t imported_ = 0;  // nodes imported, counted again in each unrolled iteration
};

}  // namespace tilewright::torch
