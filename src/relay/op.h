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
Value make_value(DataType dtype, std::vector<int64_t> shape);  // zero filled, without bounds
Value value_from(const Tensor& tensor);
Tensor to_tensor(const Value& value);  // rounds floats to the dtype

struct TypeArgs {
  std::span<const Type> types;  // one per argument, complete
  std::span<const Expr> args;   // the arguments themselves: constants can decide output shapes
  const AttrsRef& attrs;
  Span span = {};
  const TensorTypeNode& tensor(size_t i) const;  // argument i as a tensor type (an internal error if it is not)
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

// How the elements of a result derive from those of its operands.
enum class Elements {
  kComputed,
  kSame,      // the first operand's, in the same shape
  kReshaped,  // the first operand's in the same order, in another shape
  kSelected,  // the first operand's, all or some, in another order
  kRepeated,  // the first operand's, each any number of times
  kExtreme,   // each the largest or smallest of several of the first operand's
  kMoved,     // from several operands or a constant, any number of times
};
inline bool keeps_order(Elements e) { return e == Elements::kSame || e == Elements::kReshaped; }
// Whether what all elements of the first operand share (a range, a scale, being zero) holds for all of the result's.
inline bool of_first_operand(Elements e) { return e != Elements::kComputed && e != Elements::kMoved; }
// Whether values are copied bit by bit, without being looked at.
inline bool moves_bits(Elements e) { return e != Elements::kComputed && e != Elements::kExtreme; }
// What scaling the first operand, by one factor per channel, does to the result.
enum class Scaling {
  kOther,
  kPositive,  // a positive factor carries over to the result
  kLinear,    // any factor carries over to the result
};
// What ToMixedPrecision does with a float32 operator.
enum class Narrowing {
  kNever,    // loses accuracy: sums, exponentials, norms
  kFollows,  // narrow when its operands are
  kAlways,   // gains most: convolutions, matrix products
};
// One gradient per operand; null means zero. An empty list: there is no rule for these attributes.
using Gradients = std::vector<Expr>;
using GradientRule = Gradients (*)(const Expr& call, const Expr& gradient);
// ops/layout_inference.h
struct LayoutQuery;
struct LayoutInference;
using InferLayouts = std::optional<LayoutInference> (*)(const LayoutQuery&);

// Facts about an operator that passes rely on. The defaults are correct for any operator.
struct OpFacts {
  Elements elements = Elements::kComputed;
  Narrowing narrowing = Narrowing::kNever;
  Scaling scaling = Scaling::kOther;
  bool keeps_finite = false;        // finite operands always give finite results
  const char* fast_form = nullptr;  // name of the operator that approximates it
  uint32_t deciding_operands = 0;   // one bit per operand whose value (not only its type) decides the result's type
  bool rounds = false;              // gives whole numbers, which leap where the operand moves a little
  bool sized_by_data = false;       // the result's size depends on the data; implemented by a function of the runtime
  GradientRule gradient = nullptr;  // ops/gradient.h
  bool gradient_of_any_shape = false;
  InferLayouts layouts = nullptr;  // ops/layout_inference.h
  // The type of an untyped weight, from the attributes
  // and the first operand's type; null: unknown.
  Type (*operand_type)(const AttrsRef& attrs, size_t index, const TensorTypeNode& data) = nullptr;
};
// Access to the facts of an operator by name, while the table is built.
using FactsOf = std::function<OpFacts&(std::string_view op)>;

struct OpDef {
  const char* name = "";  // classic Relay name, for instance "nn.conv2d"
  int num_inputs = 1;     // -1: one tuple argument or any number
  OpPattern pattern = OpPattern::kOpaque;
  const char* doc = "";  // one line, then shapes and dtypes
  std::vector<ArgDoc> args;
  // Checks the operands and gives the result type. Errors: TypeMismatch, with both shapes in the message.
  Result<Type> (*infer_type)(const TypeArgs&) = nullptr;
  // Reference result(s), one Value per output tensor.
  Result<std::vector<Value>> (*evaluate)(const EvalArgs&) = nullptr;
  // A fresh attribute struct of the op's type, or null when it has none (used by the parser).
  AttrsRef (*make_attrs)() = nullptr;
  // Composed operators only: the call expressed by other operators. Where infer_type and evaluate are null, type and
  // reference result follow from it. Errors: TypeMismatch; FreeDimension while sizes that it depends on are unknown, in
  // which case infer_type gives the type. Written with ops/composition.h; the pass ExpandComposed applies it.
  Result<Expr> (*expand)(const TypeArgs&) = nullptr;
  bool stateful = false;  // random numbers or side effects: never folded, never merged
  OpFacts facts = {};

  // The record with further facts.
  OpDef with(const OpFacts& more) && {
    facts = more;
    return std::move(*this);
  }
};

// Every built-in operator, sorted by name. Families live in relay/ops/*.cc and are listed in relay/ops/list.h.
std::span<const OpDef> all_ops();
const OpDef* find_op(std::string_view name);
// The result type by the operator's own rule, or from its expansion.
Result<Type> result_type(const OpDef& def, const TypeArgs& args);
// Checks a call's operands (their number, and that they are tensors) and infers its type; incomplete when an operand's
// type is.
Result<Type> infer_call_type(const OpDef& def, std::span<const Expr> args, const AttrsRef& attrs);

template <class A>
AttrsRef make_default_attrs() {
  return AttrsRef(new A());
}

}  // namespace tilewright::relay
