// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>
#include <unordered_map>

#include "relay/op.h"
#include "relay/ops/program/attrs_device.h"
#include "relay/passes/fusion/compiler_marks.h"
#include "relay/passes/fusion/compiler_regions.h"

namespace tilewright::relay {

Expr make_mark(const char* mark, Expr value, const std::string& compiler) {
  const Span span = value->span;
  return call(mark, {std::move(value)}, make_attrs<CompilerAttrs>([&](auto& a) { a.compiler = compiler; }), span);
}

const std::string& compiler_of_mark(const Expr& mark) {
  const auto* attrs = attrs_as<CompilerAttrs>(as<CallNode>(mark)->attrs);
  TW_ICHECK(attrs, "a mark without its attributes");
  return attrs->compiler;
}

std::string function_attr(const FunctionNode& function, const std::string& name) {
  auto found = function.attrs.find(name);
  const auto* text = found == function.attrs.end() ? nullptr : std::get_if<std::string>(&found->second);
  return text ? *text : "";
}

namespace {

// Annotates one function's body. Existing marks assign their operator, so the pass can run for one generator after
// another.
class TargetAnnotator {
 public:
  TargetAnnotator(const TargetRules& rules, const Expr& body) : rules_(rules) {
    for (const Expr& e : post_order(body))
      if (is_call_to(e, kCompilerEnd) && compiler_of_mark(e) != kDefaultCompiler)
        taken_[as<CallNode>(e)->args[0].get()] = compiler_of_mark(e);
  }

  Expr run(const Expr& body) {
    return ended(rewrite_graph(body, [&](const Expr& original, const Expr& e) { return visit(original, e); }));
  }

 private:
  Expr visit(const Expr& original, const Expr& e) {
    if (is_call_to(e, kCompilerBegin) || is_call_to(e, kCompilerEnd)) return as<CallNode>(e)->args[0];
    switch (e->kind) {
      case ExprKind::kCall:
        return visit_call(original, e);
      case ExprKind::kTuple:
      case ExprKind::kTupleGetItem: {
        const std::vector<Expr> kids = children(e);
        const std::string target = common_target(original, kids);
        return target.empty() ? e : marked(e, kids, target);
      }
      case ExprKind::kLet:
      case ExprKind::kIf:
      case ExprKind::kMatch:
      case ExprKind::kRefCreate:
      case ExprKind::kRefRead:
      case ExprKind::kRefWrite:
        return with_ends(e);
      case ExprKind::kVar:
      case ExprKind::kGlobalVar:
      case ExprKind::kConstant:
      case ExprKind::kOp:
      case ExprKind::kFunction:
      case ExprKind::kConstructor:
        break;
    }
    return e;
  }

  Expr visit_call(const Expr& original, const Expr& e) {
    const auto* call = as<CallNode>(e);
    const auto* composite = as<FunctionNode>(call->callee);
    if (!called_op(e) && !(composite && composite->attrs.count("Composite"))) return with_ends(e);
    std::string target = kDefaultCompiler;
    if (auto before = taken_.find(original.get()); before != taken_.end())
      target = before->second;
    else
      for (const std::string& name : rules_.targets)
        if (rules_.takes(name, original)) {
          target = name;
          break;
        }
    return marked(e, call->args, target);
  }

  // The generator that all operators in a tuple or field share;
  // "default" where they differ, nothing without operators.
  std::string common_target(const Expr& original, const std::vector<Expr>& kids) const {
    if (auto before = taken_.find(original.get()); before != taken_.end()) return before->second;
    std::string out;
    for (size_t i = 0; i < kids.size(); ++i) {
      auto found = target_.find(kids[i].get());
      const std::string target = found == target_.end() ? kDefaultCompiler : found->second;
      if (i == 0 && found == target_.end()) return "";
      if (i > 0 && target != out) return kDefaultCompiler;
      out = target;
    }
    return rules_.include_non_call_ops || out.empty() ? out : kDefaultCompiler;
  }

  Expr ended(const Expr& e) {
    auto target = target_.find(e.get());
    if (target == target_.end()) return e;
    Expr& end = ends_[e.get()];
    if (!end) end = make_mark(kCompilerEnd, e, target->second);
    return end;
  }

  // Wraps the operator in marks. Each operand gets its own begin: sharing one would merge two operators into one
  // region.
  Expr marked(const Expr& e, const std::vector<Expr>& args, const std::string& target) {
    std::vector<Expr> kids = children(e);
    const size_t callee = kids.size() - args.size();  // 1 when a function precedes the arguments
    for (size_t i = callee; i < kids.size(); ++i) kids[i] = make_mark(kCompilerBegin, ended(kids[i]), target);
    Expr out = with_children(e, kids);
    target_[out.get()] = target;
    alive_.push_back(out);
    return out;
  }

  Expr with_ends(const Expr& e) {
    std::vector<Expr> kids = children(e);
    for (Expr& kid : kids) kid = ended(kid);
    return with_children(e, kids);
  }

  const TargetRules& rules_;
  std::unordered_map<const ExprNode*, std::string> taken_;   // for the original graph
  std::unordered_map<const ExprNode*, std::string> target_;  // for the new graph
  std::unordered_map<const ExprNode*, Expr> ends_;
  std::vector<Expr> alive_;  // keeps the maps' keys alive
};

const ConfigKey<std::vector<std::string>> kTargets{"relay.AnnotateTarget.targets", {}};

}  // namespace

bool takes_composite(const std::string& target, const Expr& call) {
  const auto* node = as<CallNode>(call);
  const auto* composite = node ? as<FunctionNode>(node->callee) : nullptr;
  return composite && function_attr(*composite, "Composite").starts_with(target + ".");
}

Result<Module> annotate_target(const Module& module, PassContext& context) {
  std::map<std::string, std::set<std::string>> operators;
  TargetRules rules;
  for (const std::string& item : context.get(kTargets)) {
    const size_t equals = std::min(item.find('='), item.size());
    rules.targets.push_back(item.substr(0, equals));
    auto& names = operators[rules.targets.back()];
    for (size_t at = equals + 1; at < item.size();) {
      const size_t end = std::min(item.find(',', at), item.size());
      names.insert(item.substr(at, end - at));
      at = end + 1;
    }
  }
  rules.takes = [&](const std::string& target, const Expr& call) {
    const OpDef* op = called_op(call);
    return op ? operators.at(target).count(op->name) > 0 : takes_composite(target, call);
  };
  return annotate_target(module, rules);
}

Result<Module> annotate_target(const Module& module, const TargetRules& rules) {
  Module out = module;
  for (auto& [name, function] : out.functions) {
    const auto* node = as<FunctionNode>(function);
    if (!node || is_closed_function(function)) continue;
    function = with_body(*node, TargetAnnotator(rules, node->body).run(node->body));
  }
  return out;
}

}  // namespace tilewright::relay
