// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/fusion/compiler_functions.h"

#include <set>

#include "base/format.h"
#include "relay/bind.h"
#include "relay/passes/fusion/compiler_regions.h"

namespace tilewright::relay {
namespace {

const ConfigKey<std::vector<std::string>> kInlined{"relay.InlineCompilerFunctionsBoundTo.global_vars", {}};
const ConfigKey<std::string> kOutlined{"relay.OutlineCompilerFunctions.compiler_filter", ""};
const ConfigKey<std::string> kExtern{"relay.MarkCompilerFunctionsAsExtern.compiler_filter", ""};

bool is_compilers(const FunctionNode& function, const std::string& filter) {
  const std::string compiler = function_attr(function, "Compiler");
  return !compiler.empty() && (filter.empty() || compiler == filter);
}

// Inlines the function's body and the composites in it.
Expr opened(const FunctionNode& function, const std::vector<Expr>& args) {
  std::map<const VarNode*, Expr> values;
  for (size_t i = 0; i < args.size(); ++i) values[as<VarNode>(function.params[i])] = args[i];
  const Expr body = rewrite_graph(function.body, [](const Expr&, const Expr& e) -> Expr {
    const auto* call = as<CallNode>(e);
    const auto* composite = call ? as<FunctionNode>(call->callee) : nullptr;
    return composite && composite->attrs.count("Composite") ? opened(*composite, call->args) : e;
  });
  return substitute(body, values);
}

}  // namespace

Result<Module> inline_compiler_functions(const Module& module, PassContext& context) {
  const std::vector<std::string> list = context.get(kInlined);
  Module out = module;
  std::set<std::string> names;
  for (const std::string& name : list) {
    auto found = module.functions.find(name);
    const auto* function = found == module.functions.end() ? nullptr : as<FunctionNode>(found->second);
    if (!function || !function->attrs.count("Compiler")) continue;
    names.insert(name);
    out.functions.erase(name);
  }
  for (auto& [name, function] : out.functions) {
    const auto* node = as<FunctionNode>(function);
    if (!node || is_closed_function(function)) continue;
    const Expr body = rewrite_graph(
        node->body,
        [&](const Expr&, const Expr& e) -> Expr {
          const auto* call = as<CallNode>(e);
          const auto* global = call ? as<GlobalVarNode>(call->callee) : nullptr;
          if (!global || !names.count(global->name)) return e;
          return opened(*as<FunctionNode>(module.functions.at(global->name)), call->args);
        },
        true);
    if (body != node->body) function = with_body(*node, body);
  }
  return out;
}

Result<Module> outline_compiler_functions(const Module& module, PassContext& context) {
  const std::string filter = context.get(kOutlined);
  Module out = module;
  std::string clash;
  for (const auto& [name, function] : module.functions) {
    const auto* node = as<FunctionNode>(function);
    if (!node || is_closed_function(function)) continue;
    const Expr body = rewrite_graph(
        node->body,
        [&](const Expr& original, const Expr& e) -> Expr {
          const auto* literal = as<FunctionNode>(original);
          if (!literal || !is_compilers(*literal, filter)) return e;
          const std::string symbol = function_attr(*literal, "global_symbol");
          if (symbol.empty()) return e;
          auto [it, fresh] = out.functions.try_emplace(symbol, e);
          if (!fresh && !structural_equal(it->second, e)) clash = symbol;
          return make_global_var(symbol, e->type);
        },
        false);
    if (body != node->body) out.functions[name] = with_body(*node, body);
  }
  if (!clash.empty())
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("two functions for external code generators are named '{}' and differ", clash), {},
                      "give each a global_symbol of its own");
  return out;
}

Result<Module> mark_compiler_functions_extern(const Module& module, PassContext& context) {
  const std::string filter = context.get(kExtern);
  Module out = module;
  for (auto& [name, function] : out.functions)
    if (const auto* node = as<FunctionNode>(function); node && is_compilers(*node, filter))
      function = make_function(node->params, node->body, {{"Extern", int64_t{1}}}, node->span, node->type_variables);
  return out;
}

}  // namespace tilewright::relay
