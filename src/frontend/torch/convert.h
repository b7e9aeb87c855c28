// SPDX-License-Identifier: Apache-2.0
// What a converter works with: one ATen node, its arguments by their names in the operator's schema, and calls that
// build graph IR. The importer handles in-place operators and views (alias.h): a converter is a function of its
// arguments.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "frontend/expression_builder.h"
#include "frontend/onnx/proto.h"
#include "frontend/torch/graph.h"

namespace tilewright::onnx {
class Importer;
}

namespace tilewright::torch {

using frontend::ConversionFailure;
using frontend::Expr;
using frontend::make_attrs;

struct View;

// The grid of a quantised tensor of TorchScript, whose value is its real numbers (converters/quantized.cc).
struct TensorGrid {
  Expr scale, zero_point;  // scalars, float32 and int32
  DataType dtype = kUInt8;
};

// What is known about a tensor whose sizes are known only at run time.
struct Likeness {
  DataType dtype = kFloat32;
  int64_t rank = 0;                 // -1: only a run has it (wait.h)
  std::vector<int64_t> sizes = {};  // of each axis, -1 where only a run has it; empty: none is known
};

// What a name stands for during the import.
struct Value {
  enum Kind {
    kNothing,
    kTensor,
    kNumber,  // Python's int, float or bool: a scalar int64, float64 or bool with the lowest rank in type promotion
    kText,
    kDtype,
    kOption,  // a layout, memory format or device
    kList,
    kGrown,  // the one item of a list whose length is known only at run time: a sequence (growing.h)
    kGraph
  } kind = kNothing;
  Expr expr;         // kTensor, kNumber
  std::string text;  // kText; kOption: the device
  DataType dtype = kFloat32;
  int64_t option = 0;
  std::shared_ptr<std::vector<Value>> list;  // shared: TorchScript appends to it
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const TensorGrid> grid;  // of a quantised tensor with one scale
  std::shared_ptr<View> view;              // the memory of a tensor (alias.h)
  std::optional<Likeness> like;            // dtype and rank of a tensor without a type, if known
  bool complex = false;                    // the last axis holds real and imaginary parts (converters/complex.cc);
                                           // kDtype: of parts of that dtype
  bool packed = false;                     // sequences of a packed one: (time, sequence, ...), of which PyTorch has
                                           // one axis less (converters/attention.cc)
  bool poisoned = false;                   // made by a node that could not be converted; its users are skipped
  Value() = default;
  Value(Expr e) : kind(kTensor), expr(std::move(e)) {}
  static Value number(Expr e);
  static Value of_list(std::vector<Value> items);
  static Value of_text(std::string text);
  static Value of_dtype(DataType dtype);
};
using Values = std::vector<Value>;
using NamedValues = std::vector<std::pair<std::string, Value>>;

class Importer;
// The context of a conversion; `torch` is null when a program's region is converted.
struct Place {
  onnx::Importer& onnx;
  Importer* torch = nullptr;
};

// A whole number as an argument.
Value whole(int64_t i);

class NodeContext : public frontend::ExpressionBuilder {
 public:
  NodeContext(const Place& place, const Node& node, NamedValues arguments);
  const Node& node() const { return node_; }
  std::string_view overload() const;  // "Tensor" of aten.add.Tensor
  const Place& place() const { return place_; }
  size_t output_count() const;

  // Arguments. One that is absent or None and has no default is an error; a number known only at run time is
  // FreeDimension.
  bool has(std::string_view name) const;
  const Value* find(std::string_view name) const;
  const Value& value(std::string_view name) const;
  const Value& positional(size_t i) const;
  size_t argument_count() const { return arguments_.size(); }
  const NamedValues& arguments() const { return arguments_; }
  Expr tensor(std::string_view name) const;  // a number as a scalar tensor
  std::vector<Expr> tensors(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t fallback) const;
  std::optional<int64_t> maybe_integer(std::string_view name) const;
  double number(std::string_view name) const;
  double number(std::string_view name, double fallback) const;
  std::optional<double> maybe_number(std::string_view name) const;
  bool flag(std::string_view name, bool fallback) const;
  std::string text(std::string_view name, const std::string& fallback) const;
  DataType dtype_arg(std::string_view name, DataType fallback) const;
  // The element type that a value is; TorchScript has PyTorch's own codes for them, which are numbers.
  static std::optional<DataType> element_type(const Value& v);
  // One integer is a list of one.
  std::vector<int64_t> ints(std::string_view name) const;
  std::vector<int64_t> ints(std::string_view name, const std::vector<int64_t>& fallback) const;
  // A list of `count` integers; a single one is repeated.
  std::vector<int64_t> ints(std::string_view name, size_t count, int64_t fallback) const;
  std::vector<double> numbers(std::string_view name) const;
  // Axes in [0, rank), without repetition; `fallback` when none are given.
  std::vector<int64_t> axes(std::string_view name, int64_t rank) const;
  // The number of a value; fails when it is none, or known only at run time.
  int64_t integer_of(const Value& v, std::string_view what) const;
  double number_of(const Value& v, std::string_view what) const;

  // Types. PyTorch's promotion: tensors with axes rank above scalar tensors, those above Python's numbers.
  DataType promoted(const std::vector<const Value*>& operands) const;
  // The same for floating-point operators: integers become float32.
  DataType promoted_real(const std::vector<const Value*>& operands) const;
  Expr as_tensor(const Value& v, DataType dtype) const;
  Expr real(const Expr& e) const;  // integers are cast to float32
  Expr zero_like(const Expr& e) const { return scalar_like(0, e); }
  Expr tensor_or(std::string_view name, double fallback, DataType dtype) const;
  // Shapes: PyTorch's rules for axes and for views.
  int64_t dim(int64_t axis, int64_t rank) const;  // a scalar counts as having one axis
  Expr reshaped(const Expr& e, std::vector<int64_t> sizes) const;
  // The results of another ATen operator.
  std::vector<Value> aten(const std::string& target, NamedValues arguments) const;
  Expr one_of(const std::string& target, NamedValues arguments) const;  // its only result, a tensor

  // Converts by an ONNX operator's converter (inputs: null when absent), so that both formats share one definition.
  struct OnnxAttribute {
    std::string name;
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, std::vector<std::string>>
        value;
  };
  std::vector<Expr> onnx(const std::string& op, int64_t version, const std::vector<Expr>& inputs,
                         const std::vector<OnnxAttribute>& attributes, size_t outputs = 1,
                         const std::string& domain = {}) const;

 protected:
  std::vector<std::string> inputs_of(const Expr& e) const override;

 private:
  Place place_;
  const Node& node_;
  NamedValues arguments_;
};

// Converts a node whose arguments have values; an in-place operator is converted as its functional form.
Values convert_resolved(const Place& place, const Node& node, NamedValues arguments);

// Operators on a quantised tensor that keep its grid: averages round to it. Nothing for others.
std::optional<Values> convert_on_grid(const Place& place, const Node& node, const NamedValues& arguments);

// A literal as a value. Names are not literals.
Value literal_value(const Argument& a);

using Converter = Values (*)(NodeContext&);
struct ConverterEntry {
  const char* target = nullptr;  // "aten.add", or of one overload: "aten.add.t"
  Converter convert = nullptr;
};

// One file of converters/ for each family; it defines `std::span<const ConverterEntry> <family>_converters()`.
// clang-format off
#define TW_TORCH_FAMILIES(X) \
  X(arithmetic) X(comparison) X(activation) X(reduction) X(view) X(shape) X(creation) X(linear) X(conv) X(norm) \
  X(indexing) X(attention) X(control) X(higher_order) X(cells) X(quantized) X(prim) X(vision) X(windows) \
  X(complex) X(complex_matrices) X(dictionary) X(fourier) X(list) X(losses) X(composite) X(matrices) X(special) X(sequences) X(spectra) X(statistics) X(rearrange)
// clang-format on
#define TW_TORCH_FAMILY(name) std::span<const ConverterEntry> name##_converters();
TW_TORCH_FAMILIES(TW_TORCH_FAMILY)
#undef TW_TORCH_FAMILY

// "aten.add" of "aten.add.Tensor".
std::string_view without_overload(std::string_view target);
// The converter of a target, looked up with its overload, then without; null when there is none.
const ConverterEntry* find_converter(std::string_view target);
// The same for complex operands.
const ConverterEntry* find_complex_converter(std::string_view target);
// The functional form of an in-place operator: "aten.add"
// for "aten.add_.Tensor"; empty for other operators.
std::string functional_name(std::string_view target);

}  // namespace tilewright::torch
