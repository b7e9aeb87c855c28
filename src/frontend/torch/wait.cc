// SPDX-License-Identifier: Apache-2.0
#include "frontend/torch/wait.h"

#include <algorithm>

#include "base/base64.h"
#include "base/format.h"
#include "frontend/torch/growing.h"
#include "frontend/torch/importer.h"
#include "frontend/torch/read_json.h"
#include "relay/op.h"
#include "relay/ops/program/attrs_program.h"

namespace tilewright::torch {
namespace {

constexpr const char* kTensorMark = "%";
constexpr const char* kNumberMark = "#";   // marks a Python number, which ranks lowest in type promotion
constexpr const char* kComplexMark = "~";  // marks pairs, the parts of complex numbers

// Rebuilds the argument; what is not a literal becomes an operand.
Argument argument_of(const Value& v, std::vector<Expr>* operands, std::vector<size_t>* numbers) {
  Argument a;
  switch (v.kind) {
    case Value::kNothing:
    case Value::kGraph:
      return a;
    case Value::kGrown:
      throw ConversionFailure{Diagnostic(ErrorCode::kUnsupportedOp, "a list whose length only a run knows")};
    case Value::kTensor:
    case Value::kNumber: {
      const Tensor* t = NodeContext::known(v.expr);
      if (v.kind == Value::kNumber && v.complex) {
        if (!t)
          throw ConversionFailure{Diagnostic(ErrorCode::kUnsupportedOp, "a complex number that only a run knows")};
        a.kind = Argument::kComplex;
        a.number = t->at_double(0);
        a.imaginary = t->at_double(1);
        return a;
      }
      if (v.kind == Value::kNumber && t && t->size() == 1) {
        a.kind = t->dtype().is_float() ? Argument::kFloat : t->dtype().is_bool() ? Argument::kBool : Argument::kInt;
        a.number = t->at_double(0);
        a.integer = t->dtype().is_float() ? 0 : t->at_int(0);
        return a;
      }
      a.kind = Argument::kValue;
      const char* mark = v.complex ? kComplexMark : v.kind == Value::kNumber ? kNumberMark : kTensorMark;
      a.text = format("{}{}", mark, operands->size());
      if (v.kind == Value::kNumber) numbers->push_back(operands->size());
      operands->push_back(v.expr);
      return a;
    }
    case Value::kText:
      a.kind = Argument::kText;
      a.text = v.text;
      return a;
    case Value::kDtype:
      a.kind = Argument::kDtype;
      a.dtype = v.dtype;
      return a;
    case Value::kOption:
      a.kind = v.text.empty() ? Argument::kMemoryFormat : Argument::kDevice;
      a.text = v.text;
      a.integer = v.option;
      return a;
    case Value::kList:
      a.kind = Argument::kList;
      for (const Value& item : *v.list) a.items.push_back(argument_of(item, operands, numbers));
      return a;
  }
  return a;
}

Value value_of(const Argument& a, const std::vector<Expr>& operands) {
  if (a.kind == Argument::kList) {
    std::vector<Value> items;
    for (const Argument& item : a.items) items.push_back(value_of(item, operands));
    return Value::of_list(std::move(items));
  }
  if (a.kind != Argument::kValue) return literal_value(a);
  size_t at = 0;
  for (size_t i = 1; i < a.text.size() && i < 8; ++i) at = at * 10 + static_cast<size_t>(a.text[i] - '0');
  if (a.text.size() < 2 || at >= operands.size())
    throw ConversionFailure{
        Diagnostic(ErrorCode::kBadArtifact, "a waiting node reads an operand that it does not have")};
  Value v = a.text.starts_with(kNumberMark) ? Value::number(operands[at]) : Value(operands[at]);
  v.complex = a.text.starts_with(kComplexMark);
  return v;
}

// Operators whose result is a Python number.
bool makes_number(std::string_view target, const NamedValues& arguments) {
  // Of sizes that are one tensor.
  if (without_overload(target) == "aten.__getitem__") return !arguments.empty() && !arguments[0].second.list;
  static constexpr std::string_view kTargets[] = {"aten.item",
                                                  "aten._local_scalar_dense",
                                                  "aten.Int",
                                                  "aten.Float",
                                                  "aten.Bool",
                                                  "aten.IntImplicit",
                                                  "aten.FloatImplicit",
                                                  "aten.len",
                                                  "aten.dim",
                                                  "aten.numel",
                                                  "aten.ScalarImplicit",
                                                  "aten.sym_size",
                                                  "aten.sym_numel",
                                                  "aten.__contains__",
                                                  "aten.__range_length",
                                                  "aten.__derive_index",
                                                  "prim.ImplicitTensorToNum"};
  return target.starts_with("operator.") || target.starts_with("math.") || target.starts_with("torch.sym_") ||
         target.starts_with("_operator.") || target.starts_with("prim.max") || target.starts_with("prim.min") ||
         target == "aten.size.int" ||
         std::find(std::begin(kTargets), std::end(kTargets), without_overload(target)) != std::end(kTargets);
}

// What stands in a sample for what only a run has: for sizes, for numbers, and for ranks.
struct Sample {
  int64_t size = 1, number = 1, rank = 2;
};
// The value with the sample's numbers in place; nothing if its dtype is unknown.
std::optional<Value> sample_of(const Value& v, const Sample& s) {
  Value out = v;
  out.view = nullptr;
  if (v.list) {
    Values items;
    for (const Value& item : *v.list) {
      auto sample = sample_of(item, s);
      if (!sample) return std::nullopt;
      items.push_back(std::move(*sample));
    }
    return Value::of_list(std::move(items));
  }
  if (!v.expr || NodeContext::known(v.expr)) return out;
  if (v.kind == Value::kNumber) {
    const auto* t = as_tensor(v.expr->type);
    Tensor one = Tensor::zeros(t ? t->dtype : v.like ? v.like->dtype : kInt64, {});
    one.set_double(0, static_cast<double>(s.number));
    out.expr = relay::make_constant(std::move(one));
    return out;
  }
  const auto like = known_of(v);
  if (!like) return std::nullopt;
  Shape shape;
  const auto* t = as_tensor(v.expr->type);
  for (int64_t i = 0; i < (like->rank < 0 ? s.rank : like->rank); ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t known = t ? t->shape[at].constant().value_or(-1) : at < like->sizes.size() ? like->sizes[at] : -1;
    const bool parts = v.complex && i + 1 == like->rank;
    shape.emplace_back(parts ? 2 : known < 0 ? s.size : known);
  }
  out.expr = relay::make_var("sample", tensor_type(std::move(shape), like->dtype));
  return out;
}

// Converters may make constants as large as what they are given.
constexpr double kMostElementsOfSample = 1 << 22;
double elements_of(const Value& v) {
  double out = 0;
  if (v.list)
    for (const Value& item : *v.list) out += elements_of(item);
  const auto* t = v.expr ? as_tensor(v.expr->type) : nullptr;
  if (!t) return out;
  double elements = 1;
  for (const Dim& d : t->shape) elements *= static_cast<double>(d.constant().value_or(1));
  return out + elements;
}

// The sizes that a list of numbers names: -1 where only a run has one, or a size follows from the others.
std::vector<int64_t> named_sizes(const Value& list) {
  std::vector<int64_t> out;
  for (const Value& item : *list.list) {
    const Tensor* t = item.expr ? NodeContext::known(item.expr) : nullptr;
    out.push_back(t && t->size() == 1 && t->dtype().is_int() ? t->at_int(0) : -1);
  }
  return out;
}
std::vector<int64_t> sizes_of(const Likeness& like) {
  return like.sizes.empty() ? std::vector<int64_t>(static_cast<size_t>(like.rank), -1) : like.sizes;
}
bool has_open_rank(const NamedValues& arguments) {
  std::vector<const Value*> all;
  for (const auto& [name, v] : arguments) {
    all.push_back(&v);
    if (v.list)
      for (const Value& item : *v.list) all.push_back(&item);
  }
  return std::any_of(all.begin(), all.end(), [](const Value* v) {
    const auto known = known_of(*v);
    return known && known->rank < 0;
  });
}

// Of tensors that are joined: they have the same sizes but along one axis.
std::optional<Likeness> joined_likeness(const NamedValues& arguments) {
  const Value& parts = arguments[0].second;
  const Tensor* axis =
      arguments.size() > 1 && arguments[1].second.expr ? NodeContext::known(arguments[1].second.expr) : nullptr;
  if (!parts.list || parts.list->empty() || is_grown(parts) || !axis || axis->size() != 1) return std::nullopt;
  std::optional<Likeness> out;
  for (const Value& part : *parts.list) {
    const auto like = likeness_of(part);
    if (!like || (out && (like->dtype != out->dtype || like->rank != out->rank))) return std::nullopt;
    if (!out) out = Likeness{like->dtype, like->rank, std::vector<int64_t>(static_cast<size_t>(like->rank), -1)};
    for (size_t i = 0; i < like->sizes.size(); ++i)
      if (like->sizes[i] >= 0) out->sizes[i] = like->sizes[i];
  }
  const int64_t at = axis->at_int(0) + (axis->at_int(0) < 0 ? out->rank : 0);
  if (at < 0 || at >= out->rank) return std::nullopt;
  out->sizes[static_cast<size_t>(at)] = -1;
  return out;
}
// Results that the node states, where samples of its operands would not fit together.
std::optional<Likeness> stated_likeness(const Node& node, const NamedValues& arguments) {
  if (without_overload(node.target) == "aten.cat" && !arguments.empty()) return joined_likeness(arguments);
  if (arguments.size() < 2 || !arguments[0].second.expr) return std::nullopt;
  auto like = known_of(arguments[0].second);
  if (!like) return std::nullopt;
  const std::string_view op = without_overload(node.target);
  const Value& second = arguments[1].second;
  if (op == "aten.scatter" || op == "aten.scatter_add" || op == "aten.scatter_reduce" || op == "aten.index_add" ||
      op == "aten.index_copy" || op == "aten.index_put" || op == "aten._unsafe_index_put")
    return like->rank < 0 ? std::nullopt : like;
  if (op == "aten.expand_as" || op == "aten.view_as" || op == "aten.reshape_as") {
    auto shape = known_of(second);
    if (shape) shape->dtype = like->dtype;
    return shape;
  }
  // Rows by a matrix, which unknown sizes of a sample seldom fit.
  if (op == "aten.linear") {
    const auto weight = likeness_of(second);
    if (!weight || weight->rank != 2 || like->rank < 1) return std::nullopt;
    like->sizes = sizes_of(*like);
    like->sizes.back() = sizes_of(*weight)[0];
    return like;
  }
  const bool views = op == "aten.view" || op == "aten.reshape" || op == "aten._unsafe_view";
  if (!views && op != "aten.expand") return std::nullopt;
  if (!second.list || is_grown(second)) return Likeness{like->dtype, -1, {}};
  const std::vector<int64_t> before = like->rank < 0 ? std::vector<int64_t>() : sizes_of(*like);
  like->sizes = named_sizes(second);
  like->rank = static_cast<int64_t>(like->sizes.size());
  for (size_t i = 0; i < like->sizes.size() && !views; ++i) {
    const size_t from_last = like->sizes.size() - i;
    const Tensor* t = NodeContext::known(second.list->at(i).expr);
    if (t && like->sizes[i] < 0 && from_last <= before.size()) like->sizes[i] = before[before.size() - from_last];
  }
  return like;
}

// What a further sample of a result says of it; nothing is known where samples have other dtypes.
bool note_likeness(const Value& sample, bool first, std::optional<Likeness>* like) {
  const auto* t = sample.expr ? as_tensor(sample.expr->type) : nullptr;
  if (!t) return true;
  const auto rank = static_cast<int64_t>(t->shape.size());
  if (first) *like = Likeness{t->dtype, rank, std::vector<int64_t>(t->shape.size(), -1)};
  if (!*like) return true;
  Likeness& known = **like;
  if (known.dtype != t->dtype) return false;
  if (known.rank != rank) {
    known.rank = -1;
    known.sizes.clear();
  }
  for (size_t i = 0; i < known.sizes.size(); ++i) {
    const int64_t size = t->shape[i].constant().value_or(-1);
    known.sizes[i] = first || known.sizes[i] == size ? size : -1;
  }
  return true;
}

}  // namespace

std::optional<Likeness> likeness_of(const Value& v) {
  auto known = known_of(v);
  return known && known->rank < 0 ? std::nullopt : known;
}

std::optional<Likeness> known_of(const Value& v) {
  if (!v.expr) return std::nullopt;
  const auto* t = as_tensor(v.expr->type);
  if (!t) return v.like;
  Likeness out{t->dtype, static_cast<int64_t>(t->shape.size()), {}};
  for (const Dim& d : t->shape) out.sizes.push_back(d.constant().value_or(-1));
  return out;
}

Values Importer::wait(const Node& node, const NamedValues& arguments) {
  Node bare;
  bare.target = node.target;
  bare.name = node.name;
  std::vector<Expr> operands;
  std::vector<size_t> numbers;
  for (const auto& [name, value] : arguments) bare.inputs.push_back({name, argument_of(value, &operands, &numbers)});
  bare.outputs = node.outputs;
  auto* attrs = new relay::OnnxNodeAttrs();
  const AttrsRef owner(attrs);
  size_t outputs = 0;
  for (const Argument& output : node.outputs) outputs += output.kind == Argument::kList ? output.items.size() : 1;
  const std::optional<size_t> length = outputs == 1 ? parts_of(node, arguments) : std::nullopt;
  if (length) outputs = *length;
  attrs->op = node.target;
  attrs->domain = kWaitingDomain;
  attrs->outputs = static_cast<int64_t>(outputs);
  for (size_t i = 0; i < operands.size(); ++i) attrs->operands.push_back(static_cast<int64_t>(i));
  for (size_t i : numbers) attrs->settings.push_back(format("number{}=1", i));
  attrs->node = base64_encode(write_node(bare));
  auto made = relay::try_call("onnx.node", std::move(operands), owner, relay::make_span(node.name));
  if (!made.ok()) throw ConversionFailure{std::move(made).error()};
  Values out;
  if (outputs == 1)  // not a tuple, if it is a list of one
    out = {makes_number(node.target, arguments) ? Value::number(*made) : Value(*made)};
  else
    for (size_t i = 0; i < outputs; ++i)
      out.emplace_back(relay::make_get(*made, static_cast<int64_t>(i), (*made)->span));
  describe(node, arguments, &out);
  if (length) out = {Value::of_list(std::move(out))};
  return out;
}

// How long the list is that a node of TorchScript makes, where it is as long for tensors of any size: coordinates of
// boxes, say. Nothing where it makes no list, or sizes decide.
std::optional<size_t> Importer::parts_of(const Node& node, const NamedValues& arguments) {
  static constexpr std::string_view kTargets[] = {
      "aten.unbind",       "aten.split",    "aten.split_with_sizes", "aten.chunk",
      "aten.tensor_split", "aten.meshgrid", "aten.unsafe_chunk",     "aten.broadcast_tensors"};
  if (std::find(std::begin(kTargets), std::end(kTargets), without_overload(node.target)) == std::end(kTargets) ||
      (node.outputs.size() == 1 && node.outputs[0].kind == Argument::kList))
    return std::nullopt;
  std::optional<size_t> length;
  // Sizes of the parts are named: there are as many.
  if (without_overload(node.target) == "aten.split_with_sizes" || without_overload(node.target) == "aten.split")
    if (arguments.size() > 1 && arguments[1].second.list && !is_grown(arguments[1].second))
      return arguments[1].second.list->size();
  for (const int64_t size : {1, 2, 9}) {
    NamedValues samples;
    for (const auto& [name, v] : arguments) {
      auto sample = sample_of(v, {size, 1});
      if (!sample) return std::nullopt;
      samples.emplace_back(name, std::move(*sample));
    }
    try {
      const Values made = convert_resolved({onnx_, nullptr}, node, std::move(samples));
      if (made.size() != 1 || !made[0].list || (length && *length != made[0].list->size())) return std::nullopt;
      length = made[0].list->size();
    } catch (const ConversionFailure&) {
      return std::nullopt;
    }
  }
  return length && *length > 0 ? length : std::nullopt;
}

// The node's converter is asked with some sizes (and ranks) in place of those that only a run has: dtypes and ranks are
// the same, and so are sizes that do not depend on them.
void Importer::describe(const Node& node, const NamedValues& arguments, Values* made) {
  struct Telling : Sample {
    bool telling;  // a size that follows from these is seldom one that follows from others
  };
  std::vector<Telling> samples_of_sizes;
  for (const int64_t rank : has_open_rank(arguments) ? std::vector<int64_t>{2, 3, 1, 4} : std::vector<int64_t>{2})
    for (const Telling& s : {Telling{{1, 0}, false}, Telling{{1, 1}, false}, Telling{{2, 1}, false},
                             Telling{{8, 1}, false}, Telling{{64, 1}, false}, Telling{{0, 2}, true},
                             Telling{{11, 3}, true}, Telling{{23, 5}, true}, Telling{{1009, 7}, true}})
      samples_of_sizes.push_back({{s.size, s.number, rank}, s.telling});
  const bool complex =
      std::any_of(arguments.begin(), arguments.end(), [](const auto& named) { return named.second.complex; });
  if (const auto stated = stated_likeness(node, arguments); stated && made->size() == 1 && !complex) {
    made->front().like = stated;
    return;
  }
  size_t described = 0, told = 0;
  int64_t rank = 0;
  bool rank_described = false;
  for (const Telling& s : samples_of_sizes) {
    if (s.rank != rank) rank_described = false;
    rank = s.rank;
    if (rank_described && !s.telling) continue;
    NamedValues samples;
    bool large = false;
    for (const auto& [name, v] : arguments) {
      auto sample = sample_of(v, s);
      if (!sample) return;
      large = large || elements_of(*sample) > kMostElementsOfSample;
      samples.emplace_back(name, std::move(*sample));
    }
    if (large) continue;
    Values like;
    try {
      like = convert_resolved({onnx_, nullptr}, node, std::move(samples));
    } catch (const ConversionFailure&) {
      continue;  // nothing is known of its results for these sizes
    }
    if (like.size() == 1 && like[0].list) like = Values(*like[0].list);
    if (like.size() != made->size()) continue;
    for (size_t i = 0; i < like.size(); ++i) {
      (*made)[i].complex = like[i].complex;
      (*made)[i].packed = like[i].packed;
      if (note_likeness(like[i], described == 0, &(*made)[i].like)) continue;
      for (Value& v : *made) v.like.reset();
      return;
    }
    ++described;
    rank_described = true;
    told += s.telling ? 1 : 0;
  }
  if (told >= 2) return;
  for (Value& v : *made)
    if (v.like) v.like->sizes.clear();
}

// Answers queries that need only the dtype and rank of a value without a type.
std::optional<Values> Importer::answered(const Node& node, const NamedValues& arguments) {
  if (arguments.empty() || !arguments[0].second.expr || is_complete(arguments[0].second.expr->type))
    return std::nullopt;
  const auto like = known_of(arguments[0].second);
  if (!like) return std::nullopt;
  const std::string_view op = without_overload(node.target);
  if (op == "prim.ListUnpack" && like->dtype.is_int()) {
    Values sizes;
    for (size_t i = 0; i < node.outputs.size(); ++i)
      sizes.push_back(
          made_by("aten.__getitem__.t", node, {arguments[0], {"idx", torch::whole(static_cast<int64_t>(i))}}));
    return sizes;
  }
  if (op == "prim.dtype") return Values{Value::of_dtype(like->dtype)};
  auto whole = [](int64_t i) { return Value::number(relay::make_constant(Tensor::scalar<int64_t>(kInt64, i))); };
  auto size_at = [&](int64_t axis) -> std::optional<Values> {
    if (like->rank < 0) return std::nullopt;
    const int64_t at = axis + (axis < 0 ? like->rank : 0);
    const bool known =
        at >= 0 && at < static_cast<int64_t>(like->sizes.size()) && like->sizes[static_cast<size_t>(at)] >= 0;
    if (known) return Values{whole(like->sizes[static_cast<size_t>(at)])};
    return std::nullopt;
  };
  if (node.target == "aten.len.Tensor") return size_at(0);
  if (node.target == "aten.size.int" && arguments.size() > 1 && arguments[1].second.expr) {
    const Tensor* axis = NodeContext::known(arguments[1].second.expr);
    return axis && axis->size() == 1 ? size_at(axis->at_int(0)) : std::nullopt;
  }
  if (op == "aten.is_floating_point")
    return Values{Value::number(relay::make_constant(Tensor::scalar<bool>(kBool, like->dtype.is_float())))};
  if (like->rank < 0) {
    // As many sizes as only a run has: one tensor.
    if (node.target == "aten.size.default" || node.target == "aten.size" || op == "prim.shape")
      return Values{made_by("aten._shape_as_tensor.default", node, {arguments[0]})};
    return std::nullopt;
  }
  if (op == "aten.dim") return Values{whole(like->rank - (arguments[0].second.packed ? 1 : 0))};
  if (node.target == "aten.size.default" || node.target == "aten.size" || op == "prim.shape") {
    Values sizes;
    for (int64_t i = 0; i < like->rank; ++i)
      sizes.push_back(made_by("aten.size.int", node, {arguments[0], {"dim", whole(i)}}));
    return Values{Value::of_list(std::move(sizes))};
  }
  return std::nullopt;
}

std::vector<relay::Expr> convert_waiting(const std::string& text, const std::vector<Expr>& operands,
                                         onnx::Importer& importer) {
  auto node = read_node(text);
  if (!node.ok()) throw ConversionFailure{std::move(node).error()};
  NamedValues arguments;
  for (const NamedArgument& input : node->inputs) arguments.emplace_back(input.name, value_of(input.value, operands));
  Values made;
  try {
    made = convert_resolved({importer, nullptr}, *node, std::move(arguments));
  } catch (ConversionFailure& failure) {
    Diagnostic& d = failure.diagnostic;
    if (d.where.empty()) d.where = format("node '{}' ({})", node->name, node->target);
    throw;
  }
  std::vector<Expr> out;
  for (const Value& v : made) {
    if (v.list)
      for (const Value& item : *v.list) out.push_back(item.expr);
    else
      out.push_back(v.expr);
  }
  return out;
}

}  // namespace tilewright::torch
