// SPDX-License-Identifier: Apache-2.0
#include "relay/bind.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "relay/infer_type.h"
#include "relay/op.h"

namespace tilewright::relay {
namespace {

Result<const FunctionNode*> main_of(const Module& module) {
  if (const FunctionNode* main = module.main_function()) return main;
  return Diagnostic(ErrorCode::kInvalidArgument, "the module has no function main");
}

}  // namespace

Result<Module> bind_params(const Module& module, const std::map<std::string, Tensor>& constants) {
  const FunctionNode* main = TW_TRY(main_of(module));
  std::map<const VarNode*, Expr> values;
  std::vector<Expr> kept;
  for (const Expr& p : main->params) {
    const auto* var = as<VarNode>(p);
    if (auto found = constants.find(var->name); found != constants.end())
      values[var] = make_constant(found->second);
    else
      kept.push_back(p);
  }
  if (values.empty()) return module;
  Expr body = substitute(main->body, values);
  DictAttrs attrs = main->attrs;
  if (auto names = attrs.find("input_names"); names != attrs.end())
    if (auto* list = std::get_if<std::vector<std::string>>(&names->second))
      std::erase_if(*list, [&](const std::string& n) { return constants.count(n) != 0; });
  return module.with_main(make_function(std::move(kept), std::move(body), std::move(attrs), main->span));
}

Module with_distinct_parameters(const Module& module) {
  const FunctionNode* main = module.main_function();
  if (!main) return module;
  std::set<std::string> used_names;
  for (const Expr& p : main->params) used_names.insert(as<VarNode>(p)->name);
  if (used_names.size() == main->params.size()) return module;
  std::set<std::string> seen;
  std::map<const VarNode*, Expr> renamed;
  std::vector<Expr> params;
  for (const Expr& p : main->params) {
    std::string name = as<VarNode>(p)->name;
    if (!seen.insert(name).second) {
      const std::string base = name;
      for (int i = 1; !used_names.insert(name).second; ++i) name = format("{}_{}", base, i);
      params.push_back(renamed[as<VarNode>(p)] = make_var(name, p->type, p->span));
    } else {
      params.push_back(p);
    }
  }
  return module.with_main(with_body(*main, std::move(params), substitute(main->body, renamed)));
}

Result<Module> with_shapes(const Module& module, const std::map<std::string, std::vector<int64_t>>& shapes) {
  const FunctionNode* main = TW_TRY(main_of(module));
  std::map<const VarNode*, Expr> values;
  std::vector<Expr> params;
  std::string names;
  for (const Expr& p : main->params) {
    const auto* var = as<VarNode>(p);
    names += (names.empty() ? "" : ", ") + var->name;
    params.push_back(p);
    auto given = shapes.find(var->name);
    if (given == shapes.end()) continue;
    const std::string where = format("input '{}'", var->name);
    const auto* type = as_tensor(p->type);
    if (!type) return Diagnostic(ErrorCode::kInvalidArgument, "a size is given for what is no tensor", where);
    bool fits = type->shape.size() == given->second.size();
    for (size_t d = 0; fits && d < type->shape.size(); ++d) {
      const auto fixed = type->shape[d].constant();
      fits = !fixed || *fixed == given->second[d];
    }
    if (!fits)
      return Diagnostic(ErrorCode::kShapeMismatch,
                        format("the module has {}, --shape gives {}", type_str(p->type), shape_str(given->second)),
                        where);
    params.back() = make_var(var->name, tensor_type(to_shape(given->second), type->dtype), p->span);
    values[var] = params.back();
  }
  for (const auto& given : shapes)
    if (std::none_of(main->params.begin(), main->params.end(),
                     [&](const Expr& p) { return as<VarNode>(p)->name == given.first; }))
      return Diagnostic(ErrorCode::kUnknownInput, format("main has no parameter '{}' to give a shape for", given.first),
                        {}, "its parameters are " + (names.empty() ? "none" : names));
  if (values.empty()) return module;
  PassContext context;
  return infer_type(
      module.with_main(make_function(std::move(params), substitute(main->body, values), main->attrs, main->span)),
      context);
}

}  // namespace tilewright::relay
