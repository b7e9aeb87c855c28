// SPDX-License-Identifier: Apache-2.0
#include "lower/graph.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "base/format.h"
#include "ir/string_fields.h"
#include "relay/op.h"
#include "relay/ops/program/attrs_device.h"

namespace tilewright::lower {
namespace {
using namespace relay;

class Layouts : public StringFields {
 public:
  std::string own, result;
  void field(const char* name, std::string* value) override {
    const std::string_view which(name);
    if (which == "layout" || which == "data_layout") own = *value;
    if (which == "dst_layout" || (which == "out_layout" && !value->empty())) result = *value;
  }
};

// The layout of a call's result, "NCHW16c" for blocked channels; empty for plain results. Operators without layout
// attributes keep their operand's layout if the block remains the last dimension.
std::string result_layout(const Expr& e, const std::unordered_map<const ExprNode*, std::string>& of) {
  const auto* call = as<CallNode>(e);
  const Type first = as_tuple(e->type) ? as_tuple(e->type)->fields.at(0) : e->type;
  const auto* type = as_tensor(first);
  Layouts said;
  if (call->attrs) const_cast<AttrsNode*>(call->attrs.get())->visit(said);  // the visitor only reads
  std::string layout = said.result.empty() ? said.own : said.result;
  const std::string_view name = called_op(e)->name;
  if (layout.empty() && name != "reshape" && name != "transpose" && name != "reverse_reshape")
    for (const Expr& arg : call->args) {
      auto found = of.find(arg.get());
      if (found != of.end() && layout.empty()) layout = found->second;
    }
  auto letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  const bool blocked = std::any_of(layout.begin(), layout.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  const bool fits =
      type && static_cast<size_t>(std::count_if(layout.begin(), layout.end(), letter)) == type->shape.size();
  return blocked && fits ? layout : "";
}

class Extractor {
 public:
  Result<Graph> run(const Module& module) {
    module_ = &module;
    const FunctionNode* main = module.main_function();
    if (!main) return Diagnostic(ErrorCode::kUnsupportedModel, "the module has no main function");
    for (const Expr& param : main->params) {
      const auto* var = as<VarNode>(param);
      auto ids = TW_TRY(new_tensors(var->type, var->name, GraphTensor::Kind::kInput));
      if (ids.size() != 1) return Diagnostic(ErrorCode::kUnsupportedModel, format("input '{}' is a tuple", var->name));
      graph_.inputs.push_back(ids[0]);
      values_[param.get()] = ids;
    }
    for (const Expr& e : post_order(main->body)) TW_TRY_STATUS(visit(e));
    for (int id : values_.at(main->body.get())) TW_TRY_STATUS(add_output(id));
    TW_TRY_STATUS(place_on_devices(*main));
    auto names = main->attrs.find("output_names");
    if (names == main->attrs.end()) names = main->attrs.find("output_tensor_names");  // as the classic importers say
    if (names != main->attrs.end())
      if (const auto* list = std::get_if<std::vector<std::string>>(&names->second)) graph_.output_names = *list;
    for (size_t i = graph_.output_names.size(); i < graph_.outputs.size(); ++i)
      graph_.output_names.push_back(format("output_{}", i));
    return std::move(graph_);
  }

 private:
  Result<std::vector<int>> new_tensors(const Type& type, const std::string& name, GraphTensor::Kind kind) {
    std::vector<int> ids;
    if (const auto* tuple = as_tuple(type)) {
      for (size_t i = 0; i < tuple->fields.size(); ++i) {
        auto inner = TW_TRY(new_tensors(tuple->fields[i], format("{}.{}", name, i), kind));
        ids.insert(ids.end(), inner.begin(), inner.end());
      }
      return ids;
    }
    const auto* tensor = as_tensor(type);
    if (!tensor) return Diagnostic(ErrorCode::kUnsupportedModel, format("'{}' has type {}", name, type_str(type)));
    auto shape = static_shape(tensor->shape);
    if (!shape)
      return Diagnostic(ErrorCode::kFreeDimension,
                        format("'{}' has the free shape {}", name, tilewright::shape_str(tensor->shape)), {},
                        "give the input sizes with --shape name=1x3x224x224");
    GraphTensor t;
    t.name = name;
    t.dtype = tensor->dtype;
    t.shape = *shape;
    t.kind = kind;
    graph_.tensors.push_back(std::move(t));
    ids.push_back(static_cast<int>(graph_.tensors.size()) - 1);
    return ids;
  }

  int param_tensor(const ConstantNode* constant, const std::string& name) {
    auto it = params_.find(constant);
    if (it != params_.end()) return it->second;
    GraphTensor t;
    t.name = constant->span ? *constant->span : name;
    t.dtype = constant->data.dtype();
    t.shape = constant->data.shape();
    t.kind = GraphTensor::Kind::kParam;
    t.data = constant->data;
    t.weight = Weight(t.data);
    graph_.tensors.push_back(std::move(t));
    int id = static_cast<int>(graph_.tensors.size()) - 1;
    params_[constant] = id;
    return id;
  }

  Status visit(const Expr& e) {
    switch (e->kind) {
      case ExprKind::kVar:
        if (!values_.count(e.get())) return Diagnostic(ErrorCode::kVerifyFailed, "main uses an unbound variable");
        return Ok{};
      case ExprKind::kConstant:
        values_[e.get()] = {param_tensor(as<ConstantNode>(e), format("const_{}", params_.size()))};
        return Ok{};
      case ExprKind::kTuple: {
        std::vector<int> ids;
        for (const Expr& f : as<TupleNode>(e)->fields) {
          const auto& inner = values_.at(f.get());
          ids.insert(ids.end(), inner.begin(), inner.end());
        }
        values_[e.get()] = std::move(ids);
        return Ok{};
      }
      case ExprKind::kTupleGetItem: {
        const auto* get = as<TupleGetItemNode>(e);
        values_[e.get()] = {values_.at(get->tuple.get()).at(static_cast<size_t>(get->index))};
        return Ok{};
      }
      case ExprKind::kCall:
        return visit_call(e);
      case ExprKind::kOp:
      case ExprKind::kFunction:
      case ExprKind::kGlobalVar:  // as a callee; other uses are rejected where they occur
        return Ok{};
      case ExprKind::kLet:
      case ExprKind::kIf:
      case ExprKind::kConstructor:
      case ExprKind::kMatch:
      case ExprKind::kRefCreate:
      case ExprKind::kRefRead:
      case ExprKind::kRefWrite:
        break;
    }
    return Diagnostic(ErrorCode::kUnsupportedModel, "control flow cannot be compiled for the graph executor");
  }

  Status visit_call(const Expr& e) {
    const auto* call = as<CallNode>(e);
    const auto* global = as<GlobalVarNode>(call->callee);
    if (global && !module_->functions.count(global->name))
      return Diagnostic(ErrorCode::kVerifyFailed, format("main calls '{}', which the module lacks", global->name));
    const auto* function = as<FunctionNode>(global ? module_->functions.at(global->name) : call->callee);
    const bool linked = function && function->attrs.count("Extern");  // its code comes with an imported module
    const bool external = linked || (function && function->attrs.count("Compiler"));
    if (global && !external)
      return Diagnostic(ErrorCode::kUnsupportedModel,
                        format("the call of the function '{}' cannot be compiled for the graph executor", global->name),
                        {}, "compile it as a VM program, or inline the function");
    if (!function || (!function->primitive() && !external))
      return Diagnostic(ErrorCode::kVerifyFailed, "main calls something that is not a fusion group");
    Group group;
    group.function = function;
    if (external) {
      group.kind = plan::StepKind::kExternal;
      group.external = text_attr(*function, "global_symbol");
      if (group.external.empty() && global) group.external = global->name;
      group.compiler = text_attr(*function, "Compiler");
      if (group.external.empty() || (group.compiler.empty() && !linked))
        return Diagnostic(ErrorCode::kUnsupportedModel,
                          "a function of an external compiler lacks the name of its code (global_symbol) or of its "
                          "compiler (Compiler)");
    } else if (is_call_to(function->body, "device_copy")) {
      group.kind = plan::StepKind::kCopy;
    }
    for (const Expr& arg : call->args) {
      const auto& ids = values_.at(arg.get());
      group.inputs.insert(group.inputs.end(), ids.begin(), ids.end());
    }
    std::vector<std::string> sources;
    for (const Expr& inner : post_order(function->body, external)) {
      if (const auto* constant = as<ConstantNode>(inner); constant && constant->data.size() != 1 && !external) {
        group.lifted.push_back(constant);
        group.inputs.push_back(param_tensor(constant, format("const_{}", params_.size())));
      }
      if (const OpDef* op = called_op(inner)) {
        group.name += (group.name.empty() ? "" : "+") + std::string(op->name);
        if (inner->span && !inner->span->empty() &&
            std::find(sources.begin(), sources.end(), *inner->span) == sources.end())
          sources.push_back(*inner->span);
      }
    }
    for (const auto& s : sources) group.source += (group.source.empty() ? "" : "+") + s;
    std::string name = sources.empty() ? format("t{}", graph_.tensors.size()) : sources.back();
    group.outputs = TW_TRY(new_tensors(e->type, name, GraphTensor::Kind::kComputed));
    values_[e.get()] = group.outputs;
    name_layouts(group);
    add_group(std::move(group));
    return Ok{};
  }

  // Derives the layouts of a group's results from those of its operands and from its operators' attributes.
  void name_layouts(const Group& group) {
    std::unordered_map<const ExprNode*, std::string> layouts;
    size_t next = 0;
    for (const Expr& param : group.function->params) {
      layouts[param.get()] = graph_.tensors[group.inputs[next]].layout;
      next += as_tuple(param->type) ? as_tuple(param->type)->fields.size() : 1;
    }
    const Expr& body = group.function->body;
    for (const Expr& e : post_order(body)) {
      if (const auto* get = as<TupleGetItemNode>(e)) layouts[e.get()] = layouts[get->tuple.get()];
      if (const auto* tuple = as<TupleNode>(e); tuple && !tuple->fields.empty())
        layouts[e.get()] = layouts[tuple->fields[0].get()];
      if (called_op(e)) layouts[e.get()] = result_layout(e, layouts);
    }
    const auto* fields = as<TupleNode>(body);
    for (size_t i = 0; i < group.outputs.size(); ++i)
      graph_.tensors[group.outputs[i]].layout = layouts[(fields ? fields->fields[i] : body).get()];
  }

  void add_group(Group group) {
    int index = static_cast<int>(graph_.groups.size());
    for (int id : group.inputs) {
      auto& users = graph_.tensors[id].consumers;
      if (users.empty() || users.back() != index) users.push_back(index);
    }
    for (size_t i = 0; i < group.outputs.size(); ++i) {
      graph_.tensors[group.outputs[i]].producer = index;
      graph_.tensors[group.outputs[i]].producer_output = static_cast<int>(i);
    }
    graph_.groups.push_back(std::move(group));
  }

  static std::string text_attr(const FunctionNode& function, const char* name) {
    auto found = function.attrs.find(name);
    const auto* text = found == function.attrs.end() ? nullptr : std::get_if<std::string>(&found->second);
    return text ? *text : "";
  }

  uint32_t device_index(int64_t type) {
    auto at = std::find(graph_.devices.begin(), graph_.devices.end(), static_cast<int32_t>(type));
    if (at == graph_.devices.end()) at = graph_.devices.insert(at, static_cast<int32_t>(type));
    return static_cast<uint32_t>(at - graph_.devices.begin());
  }

  // The tensors of a step are on one device; copies say which (PlanDevices), and main's result_device_type for
  // everything not separated from the result by a copy. Constants and inputs used by several devices are read where
  // they are.
  Status place_on_devices(const FunctionNode& main) {
    auto result = main.attrs.find("result_device_type");
    const auto* type = result == main.attrs.end() ? nullptr : std::get_if<int64_t>(&result->second);
    const bool copies = std::any_of(graph_.groups.begin(), graph_.groups.end(),
                                    [](const Group& g) { return g.kind == plan::StepKind::kCopy; });
    if (!copies && (!type || *type == 1)) return Ok{};
    std::vector<int> parent(graph_.tensors.size());
    for (size_t i = 0; i < parent.size(); ++i) parent[i] = static_cast<int>(i);
    auto root = [&](int id) {
      while (parent[id] != id) id = parent[id] = parent[parent[id]];
      return id;
    };
    for (const Group& g : graph_.groups) {
      if (g.kind == plan::StepKind::kCopy) continue;
      for (const auto* list : {&g.inputs, &g.outputs})
        for (int id : *list)
          if (graph_.tensors[id].kind == GraphTensor::Kind::kComputed) parent[root(id)] = root(g.outputs[0]);
    }
    std::vector<int64_t> device(graph_.tensors.size(), -1);
    auto fix = [&](int id, int64_t wanted) -> Status {
      int64_t& known = device[root(id)];
      if (known >= 0 && known != wanted)
        return Diagnostic(ErrorCode::kInvalidArgument,
                          format("'{}' is to be on device type {} and on {}", graph_.tensors[id].name, known, wanted),
                          {}, "run PlanDevices, which puts copies between");
      known = wanted;
      return Ok{};
    };
    for (const Group& g : graph_.groups) {
      if (g.kind != plan::StepKind::kCopy) continue;
      const auto& attrs = *attrs_as<DeviceCopyAttrs>(as<CallNode>(g.function->body)->attrs);
      if (graph_.tensors[g.inputs[0]].kind == GraphTensor::Kind::kComputed)
        TW_TRY_STATUS(fix(g.inputs[0], attrs.src_dev_type));
      TW_TRY_STATUS(fix(g.outputs[0], attrs.dst_dev_type));
    }
    for (int id : graph_.outputs)
      if (type && device[root(id)] < 0) device[root(id)] = *type;
    for (size_t id = 0; id < graph_.tensors.size(); ++id)
      if (int64_t known = device[root(static_cast<int>(id))]; known >= 0)
        graph_.tensors[id].device = device_index(known);
    // Inputs and constants belong to the device of their first reader.
    for (const Group& g : graph_.groups)
      for (int id : g.inputs)
        if (auto& t = graph_.tensors[id];
            t.kind != GraphTensor::Kind::kComputed && t.consumers.front() == &g - graph_.groups.data())
          t.device = g.kind == plan::StepKind::kCopy
                         ? device_index(attrs_as<DeviceCopyAttrs>(as<CallNode>(g.function->body)->attrs)->src_dev_type)
                         : graph_.tensors[g.outputs[0]].device;
    return Ok{};
  }

  Status add_output(int id) {
    if (graph_.tensors[id].kind != GraphTensor::Kind::kComputed || graph_.tensors[id].is_output) {
      Group group = copy_group(&graph_, id);
      group.outputs = TW_TRY(
          new_tensors(group.function->body->type, graph_.tensors[id].name + ".out", GraphTensor::Kind::kComputed));
      id = group.outputs[0];
      add_group(std::move(group));
    }
    graph_.tensors[id].is_output = true;
    graph_.outputs.push_back(id);
    return Ok{};
  }

  const Module* module_ = nullptr;
  Graph graph_;
  std::unordered_map<const ExprNode*, std::vector<int>> values_;
  std::unordered_map<const ConstantNode*, int> params_;
};

}  // namespace

Group copy_group(Graph* graph, int id) {
  const GraphTensor& source = graph->tensors[id];
  Expr x = make_var("x", tensor_type(to_shape(source.shape), source.dtype));
  Expr function = make_function({x}, call("copy", {x}), {{"Primitive", int64_t{1}}});
  graph->keep.push_back(function);
  Group group;
  group.function = as<FunctionNode>(function);
  group.name = "copy";
  group.inputs = {id};
  return group;
}

Result<Graph> extract_graph(const relay::Module& fused) { return Extractor().run(fused); }

}  // namespace tilewright::lower
