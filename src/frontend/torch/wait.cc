// SPDX-License-Identifier: Apache-2.0
#include "frontend/torch/wait.h"

#include "base/base64.h"
#include "base/format.h"
#include "frontend/torch/importer.h"
#include "frontend/torch/read_json.h"
#include "relay/op.h"
#include "relay/ops/program/attrs_program.h"

namespace tilewright::torch {
namespace {

constexpr const char* kTensorMark = "%";
constexpr const char* kNumberMark = "#";  // a number of Python's, which gives way in type promotion

// The argument again; what is no literal becomes an operand.
Argument argument_of(const Value& v, std::vector<Expr>* operands, std::vector<size_t>* numbers) {
  Argument a;
  switch (v.kind) {
    case Value::kNothing:
    case Value::kGraph:
      return a;
    case Value::kTensor:
    case Value::kNumber: {
      const Tensor* t = NodeContext::known(v.expr);
      if (v.kind == Value::kNumber && t && t->size() == 1) {
        a.kind = t->dtype().is_float() ? Argument::kFloat : t->dtype().is_bool() ? Argument::kBool : Argument::kInt;
        a.number = t->at_double(0);
        a.integer = t->dtype().is_float() ? 0 : t->at_int(0);
        return a;
      }
      a.kind = Argument::kValue;
      a.text = format("{}{}", v.kind == Value::kNumber ? kNumberMark : kTensorMark, operands->size());
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
  return a.text.starts_with(kNumberMark) ? Value::number(operands[at]) : Value(operands[at]);
}

}  // namespace

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
  attrs->op = node.target;
  attrs->domain = kWaitingDomain;
  attrs->outputs = static_cast<int64_t>(outputs);
  for (size_t i = 0; i < operands.size(); ++i) attrs->operands.push_back(static_cast<int64_t>(i));
  for (size_t i : numbers) attrs->settings.push_back(format("number{}=1", i));
  attrs->node = base64_encode(write_node(bare));
  auto made = relay::try_call("onnx.node", std::move(operands), owner, relay::make_span(node.name));
  if (!made.ok()) throw ConversionFailure{std::move(made).error()};
  if (outputs == 1) return {Value(*made)};
  Values out;
  for (size_t i = 0; i < outputs; ++i) out.emplace_back(relay::make_get(*made, static_cast<int64_t>(i), (*made)->span));
  return out;
}

std::vector<relay::Expr> convert_waiting(const std::string& text, const std::vector<Expr>& operands,
                                         onnx::Importer& importer) {
  auto node = read_node(text);
  if (!node.ok()) throw ConversionFailure{std::move(node).error()};
  NamedValues arguments;
  for (const NamedArgument& input : node->inputs) arguments.emplace_back(input.name, value_of(input.value, operands));
  const Values made = convert_resolved({importer, nullptr}, *node, std::move(arguments));
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
