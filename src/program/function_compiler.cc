// SPDX-License-Identifier: Apache-2.0
#include "program/function_compiler.h"

#include <algorithm>
#include <functional>

#include "base/format.h"
#include "relay/op.h"

namespace tilewright::program {

using namespace relay;
using runtime::vm::Opcode;

namespace {

// Whether evaluation may access references, directly or through a called function. A function literal has no effect
// until it is called.
bool has_effect(const Expr& value) {
  if (value->kind == ExprKind::kFunction) return false;
  const auto all = post_order(value, true);
  return std::any_of(all.begin(), all.end(), [](const Expr& e) {
    if (e->kind == ExprKind::kRefCreate || e->kind == ExprKind::kRefRead || e->kind == ExprKind::kRefWrite) return true;
    const auto* call = as<CallNode>(e);
    return call && call->callee->kind != ExprKind::kOp && call->callee->kind != ExprKind::kConstructor;
  });
}

}  // namespace

int64_t FunctionCompiler::parameter(const std::string& name) {
  f_.params.push_back(name);
  f_.param_devices.push_back(0);
  return fresh();
}

size_t FunctionCompiler::emit(Opcode op, std::vector<int64_t> fields) {
  f_.code.push_back({op, std::move(fields)});
  return f_.code.size() - 1;
}

Status FunctionCompiler::whole(const Expr& root, Registers known, size_t captured) {
  for (size_t i = captured; i < f_.params.size(); ++i) own_parameters_.push_back(static_cast<int64_t>(i));
  begin_ = f_.code.size();
  jumps_ = self_ != nullptr;
  const int64_t result = TW_TRY(body(root, std::move(known), true));
  if (result != kReturned) emit(Opcode::kRet, {result});
  return Ok{};
}

bool FunctionCompiler::is_operator(const Expr& e) {
  if (e->kind == ExprKind::kIf) return program_.facts.settled(e);
  if (called_op(e)) return program_.facts.treatment(e).kind == Treatment::kRegion;
  const auto* get = as<TupleGetItemNode>(e);
  return get && is_operator(program_.facts.aliases.resolve(get->tuple));
}

bool FunctionCompiler::is_self_call(const Expr& e) {
  const auto* c = as<CallNode>(e);
  return self_ && c && program_.facts.aliases.resolve(c->callee).get() == self_;
}

// The free variables of some bodies.
std::vector<Expr> FunctionCompiler::outside_variables(const std::vector<Expr>& bodies, const std::vector<Expr>& bound) {
  std::unordered_set<const ExprNode*> inside;
  for (const Expr& b : bound) inside.insert(b.get());
  std::vector<Expr> variables, out;
  for (const Expr& body : bodies)
    for (const Expr& e : post_order(body, true)) {
      if (const auto* let = as<LetNode>(e)) inside.insert(let->var.get());
      if (const auto* f = as<FunctionNode>(e))
        for (const Expr& p : f->params) inside.insert(p.get());
      if (const auto* m = as<MatchNode>(e))
        for (const Clause& c : m->clauses)
          for (const Expr& v : pattern_vars(c.pattern)) inside.insert(v.get());
      if (e->kind == ExprKind::kVar) variables.push_back(e);
    }
  for (const Expr& v : variables)
    if (inside.insert(v.get()).second) out.push_back(v);
  return out;
}

// The values of those variables.
std::vector<Expr> FunctionCompiler::outside_values(const std::vector<Expr>& bodies, const std::vector<Expr>& bound) {
  std::unordered_set<const ExprNode*> seen;
  std::vector<Expr> out;
  for (const Expr& v : outside_variables(bodies, bound)) {
    Expr value = program_.facts.aliases.resolve(v);
    if (seen.insert(value.get()).second) out.push_back(value);
  }
  return out;
}

// What must be evaluated before the node; branches, clauses and function bodies are compiled later as scopes of their
// own.
std::vector<Expr> FunctionCompiler::operands(const Expr& e) {
  switch (e->kind) {
    case ExprKind::kIf: {
      const auto* n = as<IfNode>(e);
      std::vector<Expr> out{n->condition};
      for (Expr& v : outside_values({n->then_branch, n->else_branch}, {})) out.push_back(std::move(v));
      return out;
    }
    case ExprKind::kMatch: {
      const auto* m = as<MatchNode>(e);
      std::vector<Expr> out{m->data}, bodies, bound;
      for (const Clause& c : m->clauses) {
        bodies.push_back(c.body);
        for (Expr& v : pattern_vars(c.pattern)) bound.push_back(std::move(v));
      }
      for (Expr& v : outside_values(bodies, bound)) out.push_back(std::move(v));
      return out;
    }
    case ExprKind::kFunction: {
      const auto* f = as<FunctionNode>(e);
      std::vector<Expr> out;
      for (Expr& v : outside_values({f->body}, f->params))
        if (v != e) out.push_back(std::move(v));  // the function itself, if it is recursive
      return out;
    }
    case ExprKind::kCall: {
      const auto* c = as<CallNode>(e);
      std::vector<Expr> out = c->args;
      if (c->callee->kind != ExprKind::kOp && c->callee->kind != ExprKind::kGlobalVar &&
          c->callee->kind != ExprKind::kConstructor)
        out.insert(out.begin(), c->callee);
      return out;
    }
    case ExprKind::kTuple:
    case ExprKind::kTupleGetItem:
    case ExprKind::kVar:
    case ExprKind::kGlobalVar:
    case ExprKind::kConstant:
    case ExprKind::kOp:
    case ExprKind::kLet:
    case ExprKind::kConstructor:
    case ExprKind::kRefCreate:
    case ExprKind::kRefRead:
    case ExprKind::kRefWrite:
      return children(e);
  }
  return {};
}

// Determines what to compute, in post order.
void FunctionCompiler::find_order(Scope& s, const Expr& root) {
  auto& aliases = program_.facts.aliases;
  struct Frame {
    Expr expr;
    std::vector<Expr> kids;
    size_t next = 0;
  };
  std::vector<Frame> stack;
  std::unordered_set<const ExprNode*> seen;
  auto push = [&](const Expr& e) {
    Expr value = aliases.resolve(e);
    if (s.known.count(value.get()) || value->kind == ExprKind::kConstant || !seen.insert(value.get()).second) return;
    stack.push_back({value, operands(value)});
  };
  auto visit = [&](const Expr& e) {
    push(e);
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next == top.kids.size()) {
        s.order.push_back(top.expr);
        stack.pop_back();
      } else {
        Expr kid = top.kids[top.next++];
        push(kid);
      }
    }
  };
  // Bindings with effects on references are executed in order, used or not.
  for (Expr e = root; e->kind == ExprKind::kLet; e = as<LetNode>(e)->body) {
    const auto* let = as<LetNode>(e);
    aliases.bind(let->var, let->value);
    if (program_.has_references && has_effect(let->value)) visit(let->value);
  }
  visit(root);
}

// Assigns levels; returns the highest.
int FunctionCompiler::find_levels(Scope& s) {
  auto& facts = program_.facts;
  int last_control = 0, deepest = 0;
  // A literal tuple is not a value of its own for the operator that takes it.
  std::function<int(const Expr&, bool, bool)> ready = [&](const Expr& operand, bool for_operator,
                                                          bool as_value) -> int {
    Expr e = facts.aliases.resolve(operand);
    if (e->kind == ExprKind::kTuple && !s.known.count(e.get())) {
      int n = 0;
      for (const Expr& f : as<TupleNode>(e)->fields) n = std::max(n, ready(f, for_operator, as_value));
      return n;
    }
    auto it = s.level.find(e.get());
    if (it == s.level.end()) return 0;
    // An operator that determines another's sizes must have run before that one is compiled.
    const bool waits = for_operator && (!is_operator(e) || (as_value && facts.known(e) == Known::kNo));
    return it->second + (waits ? 1 : 0);
  };
  for (const Expr& e : s.order) {
    if (e->kind == ExprKind::kTuple) continue;
    const bool op = is_operator(e), ordered = !op && program_.has_references;
    const std::vector<Expr> kids = operands(e);
    const Treatment* treatment = op && called_op(e) ? &facts.treatment(e) : nullptr;
    int level = ordered ? last_control : 0;
    for (size_t i = 0; i < kids.size(); ++i) {
      const bool as_value =
          treatment && std::find(treatment->values.begin(), treatment->values.end(), i) != treatment->values.end();
      level = std::max(level, ready(kids[i], op, as_value));
    }
    facts.known(e);
    facts.text(e);
    s.level[e.get()] = level;
    deepest = std::max(deepest, level);
    if (ordered) last_control = level;
  }
  return deepest;
}

// Finds operators that are used outside of their region.
void FunctionCompiler::find_kept(Scope& s, const Expr& root) {
  std::function<void(const Expr&, int)> keep = [&](const Expr& operand, int reader) {
    Expr e = program_.facts.aliases.resolve(operand);
    if (s.known.count(e.get())) return;
    if (e->kind == ExprKind::kTuple)
      for (const Expr& f : as<TupleNode>(e)->fields) keep(f, reader);
    else if (is_operator(e) && s.level[e.get()] != reader)
      s.kept.insert(e.get());
  };
  for (const Expr& e : s.order)
    if (e->kind != ExprKind::kTuple)
      for (const Expr& kid : operands(e)) keep(kid, is_operator(e) ? s.level[e.get()] : -1);
  keep(root, -1);
}

Result<int64_t> FunctionCompiler::body(const Expr& root, Registers known, bool tail) {
  Scope s;
  s.known = std::move(known);
  find_order(s, root);
  if (tail) s.tail = program_.facts.aliases.resolve(root).get();
  const int deepest = find_levels(s);
  find_kept(s, root);
  for (int level = 0; level <= deepest; ++level) {
    TW_TRY_STATUS(region(s, level));
    for (const Expr& e : s.order)
      if (e->kind != ExprKind::kTuple && !is_operator(e) && s.level[e.get()] == level &&
          !(e.get() == s.tail && is_self_call(e)))
        TW_TRY_STATUS(control(s, e));
  }
  const Expr result = program_.facts.aliases.resolve(root);
  if (tail && is_self_call(result)) {
    TW_TRY_STATUS(jump_to_self(s, *as<CallNode>(result)));
    return kReturned;
  }
  return value_of(s, root);
}

// Builds a region's function: values from registers become its parameters.
struct FunctionCompiler::RegionBuilder {
  FunctionCompiler& of;
  Scope& s;
  std::vector<Expr> params = {};
  std::vector<int64_t> arguments = {};
  std::unordered_map<const ExprNode*, Expr> made = {};

  Expr param(const Type& type, int64_t reg) {
    params.push_back(make_var(format("p{}", params.size()), type));
    arguments.push_back(reg);
    return params.back();
  }
  Result<Expr> mapped(const Expr& operand) {
    Expr e = of.program_.facts.aliases.resolve(operand);
    if (auto it = made.find(e.get()); it != made.end()) return it->second;
    if (e->kind == ExprKind::kConstant) return e;
    if (e->kind == ExprKind::kTuple && !s.known.count(e.get())) {
      std::vector<Expr> fields;
      for (const Expr& f : as<TupleNode>(e)->fields) fields.push_back(TW_TRY(mapped(f)));
      return make_tuple(std::move(fields));
    }
    const int64_t reg = TW_TRY(of.value_of(s, e));
    Expr out;
    if (const auto* tuple = as_tuple(e->type)) {
      std::vector<Expr> fields;
      for (size_t i = 0; i < tuple->fields.size(); ++i) {
        const int64_t field = of.fresh();
        of.emit(Opcode::kGetField, {reg, static_cast<int64_t>(i), field});
        fields.push_back(param(tuple->fields[i], field));
      }
      out = make_tuple(std::move(fields));
    } else if (as_tensor(e->type) || e->type->kind == TypeKind::kIncomplete) {
      out = param(e->type, reg);
    } else {
      return unsupported(e, format("an operator takes {}, not a tensor", type_str(e->type)));
    }
    return made[e.get()] = out;
  }
  Status add(const Expr& e) {
    if (const auto* branch = as<IfNode>(e)) {
      std::map<const VarNode*, Expr> values;
      for (const Expr& v : outside_variables({branch->then_branch, branch->else_branch}, {}))
        values[as<VarNode>(v)] = TW_TRY(mapped(v));
      made[e.get()] = make_node<IfNode>(TW_TRY(mapped(branch->condition)), substitute(branch->then_branch, values),
                                        substitute(branch->else_branch, values), branch->span);
      return Ok{};
    }
    std::vector<Expr> kids;
    for (const Expr& kid : of.operands(e)) kids.push_back(TW_TRY(mapped(kid)));
    made[e.get()] = with_children(e, kids);
    return Ok{};
  }
};

std::vector<int64_t> FunctionCompiler::invoke(const char* format_name, const std::vector<Expr>& params,
                                              const std::vector<int64_t>& arguments, const std::vector<Expr>& outputs) {
  std::vector<int64_t> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    results.push_back(fresh());
    // A register that still holds the previous iteration's tensor would be overwritten: clear it.
    if (jumps_) emit(Opcode::kKillRegister, {results.back()});
  }
  const Expr function = make_function(params, outputs.size() == 1 ? outputs[0] : make_tuple(outputs));
  std::vector<int64_t> fields{program_.add_region(format_name, function),
                              static_cast<int64_t>(arguments.size() + results.size()),
                              static_cast<int64_t>(results.size())};
  fields.insert(fields.end(), arguments.begin(), arguments.end());
  fields.insert(fields.end(), results.begin(), results.end());
  emit(Opcode::kInvokePacked, std::move(fields));
  return results;
}

Status FunctionCompiler::region(Scope& s, int level) {
  RegionBuilder builder{*this, s};
  std::vector<Expr> kept, outputs;
  for (const Expr& e : s.order) {
    if (e->kind == ExprKind::kTuple || !is_operator(e) || s.level[e.get()] != level) continue;
    TW_TRY_STATUS(builder.add(e));
    if (s.kept.count(e.get())) kept.push_back(e);
  }
  auto fields_of = [](const Expr& e) {
    const auto* tuple = as_tuple(e->type);
    return tuple ? tuple->fields.size() : 0;
  };
  for (const Expr& e : kept) {
    const Expr& made = builder.made[e.get()];
    if (!as_tuple(e->type)) outputs.push_back(made);
    for (size_t i = 0; i < fields_of(e); ++i) outputs.push_back(make_get(made, static_cast<int64_t>(i)));
  }
  if (outputs.empty()) return Ok{};
  const std::vector<int64_t> results = invoke("relay", builder.params, builder.arguments, outputs);
  auto next = results.begin();
  for (const Expr& e : kept) {
    if (!as_tuple(e->type)) {
      s.known[e.get()] = *next++;
      continue;
    }
    const auto count = static_cast<std::ptrdiff_t>(fields_of(e));
    s.known[e.get()] = tuple_of({next, next + count});
    next += count;
  }
  return Ok{};
}

// A region of one operator that the reference interpreter evaluates: operators on strings.
Status FunctionCompiler::evaluate(Scope& s, const Expr& e) {
  RegionBuilder builder{*this, s};
  TW_TRY_STATUS(builder.add(e));
  const Expr& made = builder.made[e.get()];
  const auto* node = attrs_as<OnnxNodeAttrs>(as<CallNode>(e)->attrs);
  if (!node || node->outputs == 1) {
    s.known[e.get()] = invoke("evaluate", builder.params, builder.arguments, {made})[0];
    return Ok{};
  }
  std::vector<Expr> outputs;
  std::vector<size_t> places;
  for (const Expr& user : s.order) {
    const auto* get = as<TupleGetItemNode>(user);
    if (!get || program_.facts.aliases.resolve(get->tuple) != e) continue;
    const auto place = static_cast<size_t>(get->index);
    if (std::find(places.begin(), places.end(), place) != places.end()) continue;
    places.push_back(place);
    outputs.push_back(make_get(made, get->index));
  }
  if (outputs.empty()) return Ok{};
  const std::vector<int64_t> results = invoke("evaluate", builder.params, builder.arguments, outputs);
  std::vector<int64_t>& all = s.results[e.get()];
  all.assign(static_cast<size_t>(node->outputs), -1);
  for (size_t i = 0; i < places.size(); ++i) all.at(places[i]) = results[i];
  return Ok{};
}

}  // namespace tilewright::program
