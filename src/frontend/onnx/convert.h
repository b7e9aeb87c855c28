// SPDX-License-Identifier: Apache-2.0
// What a converter works with: one ONNX node, the values of its inputs, and calls that build graph IR. A converter
// gives up with fail() or a similar function; the importer catches the exception and makes a diagnostic that names the
// node.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/expression_builder.h"
#include "frontend/onnx/proto.h"
#include "relay/expr.h"
#include "relay/op.h"
#include "relay/ops/attrs.h"

namespace tilewright::onnx {

using frontend::ConversionFailure;
using frontend::ExpressionBuilder;
using relay::Expr;
using relay::make_attrs;

// What a name stands for during the import: a tensor expression, a sequence whose length is known, or nothing (an
// absent optional).
struct Value {
  Expr expr;
  std::shared_ptr<const std::vector<Value>> sequence;
  bool poisoned = false;  // made by a node that could not be converted; its users are not converted either
  Value() = default;
  Value(Expr e) : expr(std::move(e)) {}
  bool present() const { return expr || sequence; }
};
using Values = std::vector<Value>;

class Importer;
struct Scope;

class NodeContext : public ExpressionBuilder {
 public:
  NodeContext(Importer& importer, Scope& scope, const Node& node, int64_t opset, std::vector<Value> inputs);
  const Node& node() const { return node_; }
  int64_t opset() const { return opset_; }

  // Inputs. input() fails when the input is absent or not a tensor.
  size_t input_count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].present(); }
  Expr input(size_t i) const;
  const Value& value(size_t i) const;
  std::vector<Expr> all_inputs() const;
  bool wants(size_t output) const { return output < node_.outputs.size() && !node_.outputs[output].empty(); }
  // The value of an input that must be known at import time. `what` names it in the error.
  Tensor constant(size_t i, const char* what) const { return constant(input(i), what); }
  using ExpressionBuilder::constant;
  std::vector<int64_t> ints(size_t i, const char* what) const;
  int64_t int_scalar(size_t i, const char* what) const;
  // Returns the mapped pages of a weight to the system, once the weight was copied into another form.
  void release_pages(const Tensor& weight);

  // Attributes; a value of another kind is an error. Without a default the attribute is required.
  bool has_attr(std::string_view name) const { return attr(name, AttributeKind::kUndefined) != nullptr; }
  int64_t int_attr(std::string_view name) const;
  int64_t int_attr(std::string_view name, int64_t fallback) const;
  double float_attr(std::string_view name, double fallback) const;
  std::string string_attr(std::string_view name, const std::string& fallback) const;
  std::vector<int64_t> ints_attr(std::string_view name, const std::vector<int64_t>& fallback = {}) const;
  std::vector<double> floats_attr(std::string_view name, const std::vector<double>& fallback = {}) const;
  std::vector<std::string> strings_attr(std::string_view name) const;
  const Attribute* attr(std::string_view name, AttributeKind kind) const;
  DataType dtype_attr(std::string_view name, DataType fallback) const;

  // Imports a subgraph (an If's branch, a Loop's body) in place; `arguments` are the values of its inputs. Names in
  // `outside` shadow those of the scopes around the node.
  Values inline_graph(const Graph& graph, std::vector<Value> arguments,
                      const std::map<std::string, Value>& outside = {}) const;
  // The value of a name in the scopes around the node; null when there is none.
  const Value* outer(const std::string& name) const;
  Importer& importer() const { return importer_; }

 private:
  std::vector<std::string> inputs_of(const Expr& e) const override;
  Importer& importer_;
  Scope& scope_;
  const Node& node_;
  int64_t opset_;
  std::vector<Value> inputs_;
};

using Converter = Values (*)(NodeContext&);
struct ConverterEntry {
  const char* op = nullptr;
  int since = 1;  // the first opset version that this converter implements
  Converter convert = nullptr;
  const char* domain = "";
};

// One file of converters/ for each family; it defines `std::span<const ConverterEntry> <family>_converters()`.
// clang-format off
#define TW_CONVERTER_FAMILIES(X) \
  X(elementwise) X(activation) X(conv) X(pool) X(linear) X(norm) X(reduce) X(shape) X(indexing) X(resize) X(recurrent) X(quant) X(control) \
  X(attention) X(loss) X(signal) X(vision) X(training) X(text) X(fused) X(attention_microsoft) X(norm_microsoft) X(quant_microsoft) \
  X(weight_blocks) X(nchwc) X(ml) X(ml_maps) X(ml_svm) X(ml_trees) X(random) \
  X(exported) X(experts) X(gates_microsoft) X(attention_grouped) X(search)
// clang-format on
#define TW_FAMILY(name) std::span<const ConverterEntry> name##_converters();
TW_CONVERTER_FAMILIES(TW_FAMILY)
#undef TW_FAMILY

// An operator of ONNX without a converter: programs have it as a function of the runtime.
inline constexpr const char* kOnlyAtRunTime = "NonMaxSuppression";
// The converter with the highest `since` that is at most `version`, or null. The standard domain is "".
const ConverterEntry* find_converter(const std::string& domain, const std::string& op, int64_t version);

}  // namespace tilewright::onnx
