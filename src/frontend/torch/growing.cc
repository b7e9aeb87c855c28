// SPDX-License-Identifier: Apache-2.0
#include "frontend/torch/growing.h"

#include <algorithm>

#include "base/format.h"

namespace tilewright::torch {

using onnx::refuse;

namespace {

// A sequence operator, executed at run time.
Expr sequence_op(Importer& importer, const std::string& op, const std::vector<Expr>& inputs,
                 const std::vector<std::pair<std::string, int64_t>>& settings = {}) {
  onnx::Node node;
  node.op_type = op;
  node.name = op;
  std::vector<onnx::Value> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    node.inputs.push_back(format("input{}", i));
    values.emplace_back(inputs[i]);
  }
  node.outputs = {"output"};
  for (const auto& [name, value] : settings) node.attributes.push_back(onnx::int_attribute(name, value));
  return importer.place().onnx.defer(node, {}, 13, values).at(0).expr;
}

Expr item_of(const Value& item) {
  if (!item.expr)
    refuse(ErrorCode::kUnsupportedOp,
           "an item that is no tensor and no number, in a list whose length only a run knows");
  return item.expr;
}

Value& grown_item(const Value& list) { return list.list->front(); }

Value as_item(const Value& list, Expr e) {
  return grown_item(list).option != 0 ? Value::number(std::move(e)) : Value(std::move(e));
}

void append_to(Importer& importer, const Value& list, const Value& item) {
  grown_item(list).option = item.kind == Value::kNumber ? 1 : 0;
  set_sequence(list, sequence_op(importer, "SequenceInsert", {sequence_of(list), item_of(item)}));
}

int64_t known_axis(const NamedValues& arguments, std::string_view name) {
  for (const auto& [given, v] : arguments)
    if (given == name && v.expr)
      if (const Tensor* t = NodeContext::known(v.expr); t && t->size() == 1) return t->at_int(0);
  return 0;
}

}  // namespace

bool is_grown(const Value& v) { return v.list && v.list->size() == 1 && v.list->front().kind == Value::kGrown; }
Expr sequence_of(const Value& list) { return grown_item(list).expr; }
void set_sequence(const Value& list, Expr sequence) { grown_item(list).expr = std::move(sequence); }

void grow(Importer& importer, const Value& list) {
  if (is_grown(list)) return;
  const bool pairs = std::any_of(list.list->begin(), list.list->end(), [](const Value& item) { return item.list; });
  if (pairs) refuse(ErrorCode::kUnsupportedOp, "a dictionary or a list of lists that only a run changes");
  onnx::Value items;
  std::vector<onnx::Value> elements;
  bool numbers = !list.list->empty();
  for (const Value& item : *list.list) {
    elements.emplace_back(item_of(item));
    numbers = numbers && item.kind == Value::kNumber;
  }
  items.sequence = std::make_shared<const std::vector<onnx::Value>>(std::move(elements));
  Value grown;
  grown.kind = Value::kGrown;
  grown.option = numbers ? 1 : 0;
  grown.expr = importer.place().onnx.one_value(items);
  *list.list = {grown};
}

bool changes_list(std::string_view target) {
  static constexpr std::string_view kChanging[] = {
      "aten.append.t",   "aten.extend.t",        "aten.insert.t",       "aten.pop.t",         "aten._set_item.t",
      "aten.clear.t",    "aten.add_.t",          "aten.reverse.t",      "aten._set_item.str", "aten._set_item.int",
      "aten.update.str", "aten.update.int",      "aten.pop.Dict_str",   "aten.pop.Dict_int",  "aten.clear.str",
      "aten.clear.int",  "aten.Delete.Dict_str", "aten.Delete.Dict_int"};
  return std::find(std::begin(kChanging), std::end(kChanging), target) != std::end(kChanging);
}

Values convert_grown(Importer& importer, const Node& node, const NamedValues& arguments) {
  const std::string_view op = without_overload(node.target);
  const Value& list = arguments.at(0).second;
  auto unsupported = [&]() -> Values { refuse(ErrorCode::kUnsupportedOp, "a list whose length only a run knows"); };
  if (op == "prim.ListConstruct" || op == "prim.TupleConstruct" || !is_grown(list)) {
    if (op != "prim.ListConstruct" && op != "prim.TupleConstruct") return unsupported();
    Values items;
    for (const auto& [name, v] : arguments) items.push_back(v);
    return {Value::of_list(std::move(items))};
  }
  const auto argument = [&](size_t i) -> const Value& { return arguments.at(i).second; };
  if (op == "aten.len") return {Value::number(sequence_op(importer, "SequenceLength", {sequence_of(list)}))};
  if (op == "aten.append") {
    append_to(importer, list, argument(1));
    return {list};
  }
  if (op == "aten.extend" || node.target == "aten.add_.t") {
    if (!argument(1).list || is_grown(argument(1))) return unsupported();
    for (const Value& item : *argument(1).list) append_to(importer, list, item);
    return {list};
  }
  if (op == "aten.__getitem__")
    return {as_item(list, sequence_op(importer, "SequenceAt", {sequence_of(list), item_of(argument(1))}))};
  if (op == "aten.pop") {
    std::vector<Expr> at = {sequence_of(list)};
    at.push_back(arguments.size() > 1 ? item_of(argument(1))
                                      : relay::make_constant(Tensor::scalar<int64_t>(kInt64, -1)));
    Value out = as_item(list, sequence_op(importer, "SequenceAt", at));
    set_sequence(list, sequence_op(importer, "SequenceErase", at));
    return {out};
  }
  if (op == "aten.clear") {
    list.list->clear();
    grow(importer, list);
    return {list};
  }
  if (op == "aten.list" || op == "aten.copy") {
    Value copy = Value::of_list({grown_item(list)});
    return {copy};
  }
  const bool stacks = op == "aten.stack", makes_tensor = op == "aten.tensor" || op == "aten.as_tensor";
  if (stacks || makes_tensor || op == "aten.cat" || op == "aten.concat" || op == "aten.concatenate") {
    const bool fresh = stacks || makes_tensor;
    const int64_t axis = makes_tensor ? 0 : known_axis(arguments, "dim");
    Expr e = sequence_op(importer, "ConcatFromSequence", {sequence_of(list)}, {{"axis", axis}, {"new_axis", fresh}});
    return {Value(std::move(e))};
  }
  if (op == "prim.annotate" || op == "prim.unchecked_cast" || op == "aten._unwrap_optional" ||
      op == "prim.unchecked_unwrap_optional")
    return {list};
  if (op == "aten.__is__" || op == "aten.__isnot__")
    return {literal_value([&] {
      Argument a;
      a.kind = Argument::kBool;
      a.integer = op == "aten.__isnot__" ? 1 : 0;
      return a;
    }())};
  return unsupported();
}

}  // namespace tilewright::torch
