// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/defer.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/base64.h"
#include "base/format.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/node_bytes.h"
#include "relay/ops/program/attrs_program.h"
#include "relay/ops/tensor/dynamic.h"

namespace tilewright::onnx {
namespace {

constexpr size_t kLongestSetting = 64;

std::string setting(const Attribute& a) {
  if (a.kind == AttributeKind::kInt) return format("{}={}", a.name, a.i);
  const bool plain = std::all_of(a.s.begin(), a.s.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (a.kind == AttributeKind::kString && plain && a.s.size() <= kLongestSetting) return format("{}={}", a.name, a.s);
  if (a.kind == AttributeKind::kTensor && !a.tensors.empty())
    return format("{}={}", a.name, a.tensors[0].dtype().str());
  return a.name + "=";
}

bool is_static(const Type& type) {
  if (const auto* tensor = as_tensor(type)) return static_shape(tensor->shape).has_value();
  const auto* tuple = as_tuple(type);
  return tuple && std::all_of(tuple->fields.begin(), tuple->fields.end(), is_static);
}

}  // namespace

bool Importer::is_static_value(const Value& v) {
  if (v.expr) return is_static(v.expr->type);
  return !v.sequence || std::all_of(v.sequence->begin(), v.sequence->end(), is_static_value);
}

// A sequence becomes a tuple; an empty optional becomes a call of Optional without operands.
Expr Importer::one_value(const Value& v) {
  if (v.expr) return v.expr;
  if (v.sequence) {
    std::vector<Expr> fields;
    for (const Value& element : *v.sequence) fields.push_back(one_value(element));
    return relay::make_tuple(std::move(fields));
  }
  Node nothing;
  nothing.op_type = "Optional";
  nothing.outputs = {""};
  return defer(nothing, {}, 15, {}).at(0).expr;
}

Values Importer::defer(const Node& given, const std::map<std::string, const Attribute*>& function_attributes,
                       int64_t version, const std::vector<Value>& inputs) {
  Node node = given;
  std::vector<Attribute> attributes;
  for (const Attribute& a : given.attributes) {
    const Attribute* value = &a;
    if (!a.reference.empty()) {
      auto it = function_attributes.find(a.reference);
      if (it == function_attributes.end()) continue;
      value = it->second;
    }
    attributes.push_back(*value);
    attributes.back().name = a.name;
    attributes.back().reference.clear();
  }
  node.attributes = std::move(attributes);
  std::vector<Expr> operands;
  auto* attrs = new relay::OnnxNodeAttrs();
  const AttrsRef owner(attrs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    // An operand is omitted only where the node omits it; an empty optional is still an operand.
    if (!inputs[i].present() && (i >= node.inputs.size() || node.inputs[i].empty())) continue;
    attrs->operands.push_back(static_cast<int64_t>(i));
    operands.push_back(one_value(inputs[i]));
  }
  attrs->op = node.op_type;
  attrs->domain = node.domain;
  attrs->version = version;
  attrs->outputs = static_cast<int64_t>(node.outputs.size());
  for (const Attribute& a : node.attributes) attrs->settings.push_back(setting(a));
  // The value that the runtime's function fills its tensor with.
  if (node.op_type == "ConstantOfShape") {
    const Attribute* value = node.find("value");
    operands.push_back(relay::make_constant(value && !value->tensors.empty() ? value->tensors[0]
                                                                             : Tensor::scalar<float>(kFloat32, 0)));
  }
  attrs->node = base64_encode(write_node(node, version));
  is_program = true;
  const std::string name = !node.name.empty() ? node.name : !node.outputs.empty() ? node.outputs[0] : node.op_type;
  auto made = relay::try_call("onnx.node", std::move(operands), owner, relay::make_span(name));
  if (!made.ok()) throw ConversionFailure{std::move(made).error()};
  if (node.outputs.size() == 1) return {*made};
  Values out;
  for (size_t i = 0; i < node.outputs.size(); ++i)
    out.emplace_back(relay::make_get(*made, static_cast<int64_t>(i), (*made)->span));
  return out;
}

namespace {

// The conversion of one region for given arguments.
class Conversion {
 public:
  Conversion(const relay::FunctionNode& main, const std::map<std::string, Tensor>& arguments,
             const ImportOptions& options, const OtherNodes& others)
      : main_(main), arguments_(arguments), options_(options), others_(others), importer_(nothing_, options) {}

  Result<relay::Module> run() try {
    std::vector<Expr> params;
    for (const Expr& p : main_.params) {
      const std::string& name = relay::as<relay::VarNode>(p)->name;
      const Tensor& t = arguments_.at(name);
      auto known = options_.constants.find(name);
      if (known != options_.constants.end()) {
        made_[p.get()] = relay::make_constant(known->second);
        continue;
      }
      params.push_back(relay::make_var(name, tensor_type(to_shape(t.shape()), t.dtype())));
      made_[p.get()] = params.back();
      importer_.add_input(name, params.back());
    }
    convert(main_.body);
    return relay::Module().with_main(relay::make_function(std::move(params), made_.at(main_.body.get())));
  } catch (ConversionFailure& failure) {
    return std::move(failure.diagnostic);
  } catch (const std::bad_alloc&) {
    return Diagnostic(ErrorCode::kLimitExceeded, "not enough memory to convert a region");
  }

 private:
  // Converts operands before their users; of an If only the branch that its condition selects.
  void convert(const Expr& root) {
    std::vector<Expr> stack = {root};
    auto wait_for = [&](const Expr& e) {
      if (made_.count(e.get())) return false;
      stack.push_back(e);
      return true;
    };
    while (!stack.empty()) {
      const Expr e = stack.back();
      if (made_.count(e.get())) {
        stack.pop_back();
        continue;
      }
      if (const auto* branch = relay::as<relay::IfNode>(e)) {
        if (wait_for(branch->condition)) continue;
        const Expr& taken = is_true(made_.at(branch->condition.get()), e) ? branch->then_branch : branch->else_branch;
        if (!wait_for(taken)) made_[e.get()] = made_.at(taken.get());
      } else if (const auto* let = relay::as<relay::LetNode>(e)) {
        if (wait_for(let->value)) continue;
        made_[let->var.get()] = made_.at(let->value.get());
        if (!wait_for(let->body)) made_[e.get()] = made_.at(let->body.get());
      } else {
        bool waits = false;
        for (const Expr& kid : relay::children(e)) waits = wait_for(kid) || waits;
        if (!waits) made_[e.get()] = converted(e);
      }
    }
  }

  bool is_true(const Expr& condition, const Expr& branch) {
    const Tensor* known = NodeContext::known(condition);
    if (known && known->size() == 1) return known->at_int(0) != 0;
    importer_.inputs_of(condition);
    throw ConversionFailure{Diagnostic(ErrorCode::kFreeDimension, "a branch of a region is decided by values",
                                       branch->span ? *branch->span : "")};
  }

  Expr converted(const Expr& e) {
    if (const auto* var = relay::as<relay::VarNode>(e))
      throw ConversionFailure{
          Diagnostic(ErrorCode::kBadArtifact, format("the region's variable '{}' is not bound", var->name))};
    std::vector<Expr> kids;
    for (const Expr& kid : relay::children(e)) kids.push_back(made_.at(kid.get()));
    const auto* call = relay::as<relay::CallNode>(e);
    const relay::OpDef* op = relay::called_op(e);
    if (!op) {
      if (const auto* get = relay::as<relay::TupleGetItemNode>(e)) return field(kids.at(0), get->index);
      return relay::with_children(e, kids);
    }
    if (const auto* node = attrs_as<relay::OnnxNodeAttrs>(call->attrs)) return node_result(*node, kids, e);
    Expr now = frontend::folded_call(op->name, kids, call->attrs, e->span);
    if (auto form = relay::static_form(now))
      now = frontend::folded_call(form->op->name, form->operands, form->attrs, e->span);
    if (relay::is_call_to(now, "shape_of") || relay::is_call_to(now, "ndarray_size")) now = of_type(now);
    if (is_static(now->type)) return now;
    for (const Expr& kid : kids) importer_.inputs_of(kid);
    throw ConversionFailure{Diagnostic(ErrorCode::kFreeDimension,
                                       format("the sizes of {}'s result are decided by values", op->name),
                                       e->span ? *e->span : "")};
  }

  static Expr field(const Expr& tuple, int64_t index) {
    if (const auto* written = relay::as<relay::TupleNode>(tuple)) return written->fields.at(static_cast<size_t>(index));
    return relay::make_get(tuple, index);
  }

  // The shape of an operand as a constant, from its type.
  static Expr of_type(const Expr& e) {
    const auto& arg = relay::as<relay::CallNode>(e)->args.at(0);
    const auto* type = as_tensor(arg->type);
    const auto dims = type ? static_shape(type->shape) : std::nullopt;
    if (!dims) return e;
    const auto* made = as_tensor(e->type);
    const bool count = relay::is_call_to(e, "ndarray_size");
    Tensor t(made->dtype, count ? std::vector<int64_t>{} : std::vector<int64_t>{static_cast<int64_t>(dims->size())});
    int64_t product = 1;
    for (size_t i = 0; i < dims->size(); ++i) {
      product *= (*dims)[i];
      if (!count) t.set_int(static_cast<int64_t>(i), (*dims)[i]);
    }
    if (count) t.set_int(0, product);
    return relay::make_constant(std::move(t), e->span);
  }

  Expr node_result(const relay::OnnxNodeAttrs& attrs, const std::vector<Expr>& kids, const Expr& e) {
    const auto bytes = base64_decode(attrs.node);
    if (!bytes) throw ConversionFailure{Diagnostic(ErrorCode::kBadArtifact, "an onnx.node holds no bytes")};
    if (auto other = others_.find(attrs.domain); other != others_.end())
      return other_result(attrs, other->second(*bytes, kids, importer_));
    auto model = read_node(*bytes);
    if (!model.ok()) throw ConversionFailure{std::move(model).error()};
    const Node& node = model->graph.nodes[0];
    Values inputs(node.inputs.size());
    for (size_t i = 0; i < attrs.operands.size() && i < kids.size(); ++i) {
      const auto at = static_cast<size_t>(attrs.operands[i]);
      if (attrs.operands[i] < 0 || at >= inputs.size())
        throw ConversionFailure{Diagnostic(ErrorCode::kBadArtifact, "an onnx.node has an operand too many")};
      inputs[at] = operand(kids[i]);
    }
    const Values made = importer_.converted(node, model->opsets, std::move(inputs));
    std::vector<Expr> results;
    for (int64_t i = 0; i < attrs.outputs; ++i) {
      const auto at = static_cast<size_t>(i);
      const bool wanted = at < node.outputs.size() && !node.outputs[at].empty();
      if (at < made.size() && made[at].expr)
        results.push_back(made[at].expr);
      else if (wanted || attrs.outputs == 1)
        throw ConversionFailure{Diagnostic(ErrorCode::kUnsupportedModel,
                                           format("the output {} of {} is not a tensor here", i, attrs.op),
                                           e->span ? *e->span : "")};
      else
        results.push_back(relay::make_tuple({}));  // an output that nothing reads
    }
    return attrs.outputs == 1 ? results[0] : relay::make_tuple(std::move(results));
  }

  // The parts of a map or a sequence of known length are operands of their own.
  static Value operand(const Expr& e) {
    const auto* tuple = relay::as<relay::TupleNode>(e);
    if (!tuple || tuple->fields.empty()) return e;
    Value out;
    out.sequence = std::make_shared<const std::vector<Value>>(tuple->fields.begin(), tuple->fields.end());
    return out;
  }

  static Expr other_result(const relay::OnnxNodeAttrs& attrs, std::vector<Expr> made) {
    if (made.size() < static_cast<size_t>(attrs.outputs) || attrs.outputs < 1)
      throw ConversionFailure{Diagnostic(ErrorCode::kUnsupportedModel, format("{} has fewer results here", attrs.op))};
    made.resize(static_cast<size_t>(attrs.outputs));
    return attrs.outputs == 1 ? made[0] : relay::make_tuple(std::move(made));
  }

  const relay::FunctionNode& main_;
  const std::map<std::string, Tensor>& arguments_;
  const ImportOptions& options_;
  const OtherNodes& others_;
  Model nothing_;
  Importer importer_;
  std::unordered_map<const relay::ExprNode*, Expr> made_;
};

Tensor copied(const Tensor& t) {
  if (t.dtype().is_string()) return t;
  Tensor copy(t.dtype(), t.shape());
  if (t.bytes()) std::memcpy(copy.mutable_raw(), t.raw(), t.bytes());
  return copy;
}

}  // namespace

Result<relay::Module> convert_deferred(const relay::Module& module, const std::map<std::string, Tensor>& arguments,
                                       uint64_t largest, std::vector<std::string>* by_value, const OtherNodes& others) {
  const relay::FunctionNode* main = module.main_function();
  if (!main) return Diagnostic(ErrorCode::kBadArtifact, "a region has no main function");
  ImportOptions options;
  for (const Expr& p : main->params) {
    const std::string& name = relay::as<relay::VarNode>(p)->name;
    auto given = arguments.find(name);
    if (given == arguments.end())
      return Diagnostic(ErrorCode::kUnknownInput, format("the region's parameter '{}' is not given", name));
    if (given->second.dtype().is_string()) options.constants[name] = given->second;
  }
  while (true) {
    std::vector<std::string> needed;
    options.needed_constants = &needed;
    auto converted = Conversion(*main, arguments, options, others).run();
    if (converted.ok()) {
      for (const auto& [name, value] : options.constants) by_value->push_back(name);
      return converted;
    }
    bool more = false;
    for (const auto& name : needed) {
      const Tensor& value = arguments.at(name);
      if (value.bytes() > largest || options.constants.count(name)) continue;
      options.constants[name] = copied(value);
      more = true;
    }
    if (!more) return converted;
  }
}

}  // namespace tilewright::onnx
