// SPDX-License-Identifier: Apache-2.0
// The operator table: everything the compiler knows about an operator sits in one record, in one file of ops/.
// Adding an operator: a record here (attributes, typing, reference, docs), a lowering, a frontend converter, a test.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "relay/expr.h"

namespace tilewright::relay {

// Fusion classes of the classic stack (FuseOps): how an op's output index relates to its inputs'.
enum class OpPattern : int {
  kElemWise = 0,
  kBroadcast = 1,
  kInjective = 2,
  kCommReduce = 3,
  kOutEWiseFusable = 4,
  kTuple = 7,
  kOpaque = 8,
};

// A tensor of the reference interpreter. Floats (every floating dtype) are doubles, each with an absolute bound on how
// far a float32-class implementation may stray; integers and bools are exact int64 (uint64 as its bits); strings apart.
struct Value {
  DataType dtype;
  std::vector<int64_t> shape;
  std::vector<double> f;       // is_float()
  std::vector<double> bound;   // same length as f, or empty: all zero
  std::vector<int64_t> i;      // integers and bool
  std::vector<std::string> s;  // strings
  int64_t size() const;
  bool is_float() const { return dtype.is_float(); }
};
Value make_value(DataType dtype, std::vector<int64_t> shape);  // zero filled, no bounds
Value value_from(const Tensor& tensor);
Tensor to_tensor(const Value& value);  // rounds floats to the dtype

struct TypeArgs {
  std::span<const Type> types;  // one per argument, complete
  std::span<const Expr> args;   // the arguments themselves (constants decide some output shapes)
  const AttrsRef& attrs;
  Span span = {};
  const TensorTypeNode& tensor(size_t i) const;  // argument i as a tensor type (a bug if it is not)
};
struct EvalArgs {
  std::span<const Value> inputs;  // tuple arguments are flattened into their fields
  const AttrsRef& attrs;
  const Type& out_type;  // the call's inferred type
  template <class A>
  const A& as() const {
    return *attrs_as<A>(attrs);
  }
};

struct ArgDoc {
  const char* name;
  const char* doc;
};

// What the elements of a result are.
enum class Elements {
  kComputed,
  kSame,      // the first operand's, in its shape
  kReshaped,  // the first operand's in their order, in another shape
  kSelected,  // the first operand's, all or a part of them, in another order
  kRepeated,  // the first operand's, any number of times
  kExtreme,   // the first operand's, each the largest or smallest of some
  kMoved,     // several operands', or a constant, any number of times
};
inline bool keeps_order(Elements e) { return e == Elements::kSame || e == Elements::kReshaped; }
// What all elements of the first operand are (in a range, of one scale, zero), all of the result's are.
inline bool of_first_operand(Elements e) { return e != Elements::kComputed && e != Elements::kMoved; }
// Nothing looks at values: bits are carried.
inline bool moves_bits(Elements e) { return e != Elements::kComputed && e != Elements::kExtreme; }
// What a factor on the first operand, one number for each channel, does to the result.
enum class Scaling {
  kOther,
  kPositive,  // a factor above zero is the result's factor
  kLinear,    // any factor is the result's factor
};
// What ToMixedPrecision does with an operator of float32.
enum class Narrowing {
  kNever,    // it loses by it: sums, exponentials, norms
  kFollows,  // it becomes narrow where its operands are
  kAlways,   // it gains most: convolutions, matrix products
};
// One for each operand; a null one means zero. None at all: there is no rule for such attributes.
using Gradients = std::vector<Expr>;
using GradientRule = Gradients (*)(const Expr& call, const Expr& gradient);
// ops/layout_inference.h
struct LayoutQuery;
struct LayoutInference;
using InferLayouts = std::optional<LayoutInference> (*)(const LayoutQuery&);

// What passes ask of an operator. What is not said has the answer that is right for every operator.
struct OpFacts {
  Elements elements = Elements::kComputed;
  Narrowing narrowing = Narrowing::kNever;
  Scaling scaling = Scaling::kOther;
  bool keeps_finite = false;        // of finite operands, whatever they are, it makes finite results
  const char* fast_form = nullptr;  // the operator that approximates it
  uint32_t deciding_operands = 0;   // a bit for each operand whose value, not its type alone, decides the result's type
  bool sized_by_data = false;       // only a run knows how large its result is; the runtime has it as a function
  GradientRule gradient = nullptr;  // ops/gradient.h
  bool gradient_of_any_shape = false;
  InferLayouts layouts = nullptr;  // ops/layout_inference.h
  // The type of a weight that a script left open, as the attributes and the first operand's type have it; null:
  // unknown.
  Type (*operand_type)(const AttrsRef& attrs, size_t index, const TensorTypeNode& data) = nullptr;
};
// The facts of the operator of that name, while the table is made.
using FactsOf = std::function<OpFacts&(std::string_view op)>;

struct OpDef {
  const char* name = "";  // classic Relay name, for instance "nn.conv2d"
  int num_inputs = 1;     // -1: one tuple argument or any number
  OpPattern pattern = OpPattern::kOpaque;
  const char* doc = "";  // one line, then shapes and dtypes
  std::vector<ArgDoc> args;
  // Checks the operands and gives the result type. Errors are TypeMismatch with both shapes in the message.
  Result<Type> (*infer_type)(const TypeArgs&) = nullptr;
  // Reference result(s), one Value per output tensor.
  Result<std::vector<Value>> (*evaluate)(const EvalArgs&) = nullptr;
  // A fresh attribute struct of the op's type, or null when it has none (used by the parser).
  AttrsRef (*make_attrs)() = nullptr;
  // Of a composed operator: the call written in other operators. Its type and its reference result follow from that,
  // where infer_type and evaluate are null. Errors: TypeMismatch; FreeDimension while the sizes that decide it are not
  // known, and then infer_type gives the type. Written with ops/composition.h; the pass ExpandComposed runs it.
  Result<Expr> (*expand)(const TypeArgs&) = nullptr;
  bool stateful = false;  // random, side effects: never folded, never merged
  OpFacts facts = {};

  // The record with what else is known of it.
  OpDef with(const OpFacts& more) && {
    facts = more;
    return std::move(*this);
  }
};

// Every built-in operator, sorted by name. Families live in relay/ops/*.cc and are listed in relay/ops/list.h.
std::span<const OpDef> all_ops();
const OpDef* find_op(std::string_view name);
// The type that the operator's own rule gives, or that its expansion has.
Result<Type> result_type(const OpDef& def, const TypeArgs& args);
// Checks the operands of a call (their number, that they are tensors) and infers its type; incomplete when an operand
// is.
Result<Type> infer_call_type(const OpDef& def, std::span<const Expr> args, const AttrsRef& attrs);

template <class A>
AttrsRef make_default_attrs() {
  return AttrsRef(new A());
}

}  // namespace tilewright::relay
