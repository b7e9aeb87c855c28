// SPDX-License-Identifier: Apache-2.0
// Relay functions as VM bytecode. Within one body (of a function, a branch, a clause) operators are gathered into
// regions: an operator's level is one above that of the control flow it waits for, and the operators of one level that
// are reached without control flow in between become one packed function. Control flow runs in its order. One file,
// because scopes, regions and control flow refer to each other throughout.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/format.h"
#include "driver/vm.h"
#include "relay/bind.h"
#include "relay/op.h"
#include "relay/ops/attrs.h"
#include "relay/passes/expand_composed.h"
#include "relay/text.h"

namespace tilewright::driver {
namespace {

using namespace relay;
using runtime::vm::Opcode;
using runtime::vm::Program;
using Registers = std::unordered_map<const ExprNode*, int64_t>;

Diagnostic unsupported(const Expr& e, std::string what) {
  return Diagnostic(ErrorCode::kUnsupportedModel, std::move(what), e->span ? *e->span : "");
}

// What let-bound variables stand for, over the whole module: variables are unique.
class Aliases {
 public:
  Expr resolve(Expr e) {
    while (true) {
      if (const auto* let = as<LetNode>(e)) {
        values_.emplace(let->var.get(), let->value);
        e = let->body;
      } else if (auto it = values_.find(e.get()); it != values_.end()) {
        e = it->second;
      } else {
        return e;
      }
    }
  }
  void bind(const Expr& var, const Expr& value) { values_.emplace(var.get(), value); }
  bool bound(const Expr& var) const { return values_.count(var.get()) != 0; }

 private:
  std::unordered_map<const ExprNode*, Expr> values_;
};

// Whether evaluating it may read or write references: it does, or calls a function, which may. A function written out
// does nothing before it is called.
bool has_effect(const Expr& value) {
  if (value->kind == ExprKind::kFunction) return false;
  const auto all = post_order(value, true);
  return std::any_of(all.begin(), all.end(), [](const Expr& e) {
    if (e->kind == ExprKind::kRefCreate || e->kind == ExprKind::kRefRead || e->kind == ExprKind::kRefWrite) return true;
    const auto* call = as<CallNode>(e);
    return call && call->callee->kind != ExprKind::kOp && call->callee->kind != ExprKind::kConstructor;
  });
}

class ProgramCompiler;

class FunctionCompiler {
 public:
  FunctionCompiler(ProgramCompiler& program, std::string name) : program_(program) { f_.name = std::move(name); }
  int64_t parameter(const std::string& name) {
    f_.params.push_back(name);
    f_.param_devices.push_back(0);
    return fresh();
  }
  int64_t fresh() { return f_.registers++; }
  size_t emit(Opcode op, std::vector<int64_t> fields) {
    f_.code.push_back({op, std::move(fields)});
    return f_.code.size() - 1;
  }
  Result<int64_t> body(const Expr& root, Registers known);
  runtime::vm::Function take() { return std::move(f_); }

 private:
  struct Scope;  // one body being compiled
  std::vector<Expr> operands(const Expr& e);
  std::vector<Expr> outside_values(const std::vector<Expr>& bodies, const std::vector<Expr>& bound);
  bool is_operator(const Expr& e);
  Status region(Scope& s, int level);
  Result<int64_t> control(Scope& s, const Expr& e);
  Result<int64_t> host_call(Scope& s, const Expr& e);
  Result<int64_t> closure(Scope& s, const Expr& e);
  Result<int64_t> match(Scope& s, const MatchNode& m);
  void test_pattern(const Pattern& p, int64_t value, Registers* known, std::vector<size_t>* misses);
  Result<int64_t> value_of(Scope& s, Expr e);
  void patch(size_t at, size_t field) { f_.code[at].fields[field] = static_cast<int64_t>(f_.code.size() - at); }

  ProgramCompiler& program_;
  runtime::vm::Function f_;
};

class ProgramCompiler {
 public:
  explicit ProgramCompiler(const Module& module) : module_(module) {}

  Result<Program> run(const BuildOptions& options) {
    const FunctionNode* main = module_.main_function();
    if (!main) return Diagnostic(ErrorCode::kUnsupportedModel, "the module has no main function");
    program_.target = options.target;
    for (const Expr& p : main->params) {
      const auto* t = as_tensor(p->type);
      if (!t)
        return unsupported(
            p, format("main's parameter '{}' is {}, not a tensor", as<VarNode>(p)->name, type_str(p->type)));
      runtime::vm::TensorSpec spec{as<VarNode>(p)->name, t->dtype, {}};
      for (const Dim& d : t->shape) spec.shape.push_back(d.constant().value_or(-1));
      program_.inputs.push_back(std::move(spec));
    }
    const auto* tuple = as_tuple(main->body->type);
    for (size_t i = 0; i < (tuple ? tuple->fields.size() : 1); ++i) program_.outputs.push_back(format("output_{}", i));
    for (const auto& [name, function] : module_.functions) {
      if (!as<FunctionNode>(function))
        return Diagnostic(ErrorCode::kUnsupportedModel, format("global '{}' is not a function", name));
      index_[name] = static_cast<int64_t>(program_.executable.functions.size());
      program_.executable.functions.push_back({});
    }
    for (const auto& [name, function] : module_.functions)
      TW_TRY_STATUS(compile(static_cast<size_t>(index_[name]), name, *as<FunctionNode>(function), {}, nullptr));
    TW_TRY_STATUS(runtime::vm::verify_executable(program_.executable));
    return std::move(program_);
  }

  // A function's code. `captured` values come before its parameters; `self` is the closure itself inside its own body.
  Status compile(size_t index, const std::string& name, const FunctionNode& function, const std::vector<Expr>& captured,
                 const ExprNode* self) {
    FunctionCompiler compiler(*this, name);
    Registers known;
    std::vector<int64_t> own;
    for (size_t i = 0; i < captured.size(); ++i)
      own.push_back(known[captured[i].get()] = compiler.parameter(format("captured_{}", i)));
    for (const Expr& p : function.params) known[p.get()] = compiler.parameter(as<VarNode>(p)->name);
    if (self) {
      std::vector<int64_t> fields{static_cast<int64_t>(index), static_cast<int64_t>(own.size()),
                                  known[self] = compiler.fresh()};
      fields.insert(fields.end(), own.begin(), own.end());
      compiler.emit(Opcode::kAllocClosure, std::move(fields));
    }
    compiler.emit(Opcode::kRet, {TW_TRY(compiler.body(function.body, std::move(known)))});
    program_.executable.functions[index] = compiler.take();
    return Ok{};
  }
  Result<int64_t> add_closure(const FunctionNode& function, const std::vector<Expr>& captured, const ExprNode* self) {
    if (++depth_ > 200) return Diagnostic(ErrorCode::kLimitExceeded, "functions nest deeper than 200");
    const size_t index = program_.executable.functions.size();
    program_.executable.functions.push_back({});
    program_.executable.functions.back().name = format("lambda_{}", index);
    TW_TRY_STATUS(compile(index, format("lambda_{}", index), function, captured, self));
    --depth_;
    return static_cast<int64_t>(index);
  }
  Result<int64_t> function_index(const Expr& global) {
    auto it = index_.find(as<GlobalVarNode>(global)->name);
    if (it == index_.end())
      return Diagnostic(ErrorCode::kUnsupportedModel,
                        format("the module has no function '{}'", as<GlobalVarNode>(global)->name));
    return it->second;
  }
  int64_t add_constant(const Tensor& t) {
    program_.executable.constants.push_back({t, "", 0});
    return static_cast<int64_t>(program_.executable.constants.size()) - 1;
  }
  int64_t add_region(const Expr& function) {
    TextOptions text;
    text.types = false;
    text.metadata = true;
    runtime::vm::Region region{"relay", {}, print_module(Module().with_main(function), text).text};
    for (const Expr& p : as<FunctionNode>(function)->params) region.inputs.push_back(as<VarNode>(p)->name);
    program_.executable.primitives.push_back(format("region_{}", program_.regions.size()));
    program_.regions.push_back(std::move(region));
    return static_cast<int64_t>(program_.regions.size()) - 1;
  }
  // `function` may be followed by lines of attributes.
  int64_t add_host(const std::string& function, size_t arguments) {
    runtime::vm::Region region{"host", {}, function, {}};
    for (size_t i = 0; i < arguments; ++i) region.inputs.push_back(format("a{}", i));
    program_.executable.primitives.push_back(format("host_{}", function.substr(0, function.find('\n'))));
    program_.regions.push_back(std::move(region));
    return static_cast<int64_t>(program_.regions.size()) - 1;
  }
  Aliases& aliases() { return aliases_; }

 private:
  const Module& module_;
  Program program_;
  Aliases aliases_;
  std::map<std::string, int64_t> index_;
  int depth_ = 0;
};

struct FunctionCompiler::Scope {
  Registers known;          // values that lie in a register
  std::vector<Expr> order;  // operands first; without constants and what was known before
  std::unordered_map<const ExprNode*, int> level;
  std::unordered_set<const ExprNode*> kept;  // operators whose value leaves their region
};

// An operator whose result is as large as the values say, as the runtime's function and its attributes; else empty.
std::string host_source(const Expr& e) {
  if (is_call_to(e, "argwhere")) return "argwhere";
  if (!is_call_to(e, "unique")) return "";
  const auto& a = *attrs_as<UniqueAttrs>(as<CallNode>(e)->attrs);
  return format("Unique\nsorted={}{}", a.sorted ? 1 : 0, a.axis ? format("\naxis={}", *a.axis) : "");
}

bool FunctionCompiler::is_operator(const Expr& e) {
  if (called_op(e)) return host_source(e).empty();
  const auto* get = as<TupleGetItemNode>(e);
  return get && is_operator(program_.aliases().resolve(get->tuple));
}

// Values from outside that some bodies read through variables: let-bound ones, and variables not bound in between.
std::vector<Expr> FunctionCompiler::outside_values(const std::vector<Expr>& bodies, const std::vector<Expr>& bound) {
  std::unordered_set<const ExprNode*> inside, seen;
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
  for (const Expr& v : variables) {
    if (inside.count(v.get())) continue;
    Expr value = program_.aliases().resolve(v);
    if (seen.insert(value.get()).second) out.push_back(value);
  }
  return out;
}

// What must be there before the node itself; branches, clauses and function bodies are compiled later, as scopes.
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
        if (v != e) out.push_back(std::move(v));  // itself, when it recurs
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

Result<int64_t> FunctionCompiler::body(const Expr& root, Registers known) {
  Scope s;
  s.known = std::move(known);
  auto& aliases = program_.aliases();
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
  // What reads or writes references runs where it is bound, in that order, used or not.
  for (Expr e = root; e->kind == ExprKind::kLet; e = as<LetNode>(e)->body) {
    const auto* let = as<LetNode>(e);
    aliases.bind(let->var, let->value);
    if (has_effect(let->value)) visit(let->value);
  }
  visit(root);
  // Levels. A tuple written out is no value of its own for the operator that takes it.
  int last_control = 0, deepest = 0;
  std::function<int(const Expr&, bool)> ready = [&](const Expr& operand, bool for_operator) -> int {
    Expr e = aliases.resolve(operand);
    if (e->kind == ExprKind::kTuple && !s.known.count(e.get())) {
      int n = 0;
      for (const Expr& f : as<TupleNode>(e)->fields) n = std::max(n, ready(f, for_operator));
      return n;
    }
    auto it = s.level.find(e.get());
    if (it == s.level.end()) return 0;
    return it->second + (for_operator && !is_operator(e) ? 1 : 0);
  };
  for (const Expr& e : s.order) {
    if (e->kind == ExprKind::kTuple) continue;
    const bool op = is_operator(e);
    int level = op ? 0 : last_control;
    for (const Expr& kid : operands(e)) level = std::max(level, ready(kid, op));
    s.level[e.get()] = level;
    deepest = std::max(deepest, level);
    if (!op) last_control = level;
  }
  // Operators that something outside their region reads.
  std::function<void(const Expr&, int)> keep = [&](const Expr& operand, int reader) {
    Expr e = aliases.resolve(operand);
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
  for (int level = 0; level <= deepest; ++level) {
    TW_TRY_STATUS(region(s, level));
    for (const Expr& e : s.order)
      if (e->kind != ExprKind::kTuple && !is_operator(e) && s.level[e.get()] == level) {
        const int64_t r = TW_TRY(control(s, e));
        s.known[e.get()] = r;
      }
  }
  return value_of(s, root);
}

Status FunctionCompiler::region(Scope& s, int level) {
  auto& aliases = program_.aliases();
  std::vector<Expr> params, outputs;
  std::vector<int64_t> arguments, results;
  Registers number;  // of the parameter that stands for a register
  std::unordered_map<const ExprNode*, Expr> made;
  auto param = [&](const Type& type, int64_t reg) {
    params.push_back(make_var(format("p{}", params.size()), type));
    arguments.push_back(reg);
    return params.back();
  };
  std::function<Result<Expr>(const Expr&)> mapped = [&](const Expr& operand) -> Result<Expr> {
    Expr e = aliases.resolve(operand);
    if (auto it = made.find(e.get()); it != made.end()) return it->second;
    if (e->kind == ExprKind::kConstant) return e;
    if (e->kind == ExprKind::kTuple && !s.known.count(e.get())) {
      std::vector<Expr> fields;
      for (const Expr& f : as<TupleNode>(e)->fields) fields.push_back(TW_TRY(mapped(f)));
      return make_tuple(std::move(fields));
    }
    const int64_t reg = TW_TRY(value_of(s, e));
    Expr out;
    if (const auto* tuple = as_tuple(e->type)) {
      std::vector<Expr> fields;
      for (size_t i = 0; i < tuple->fields.size(); ++i) {
        const int64_t field = fresh();
        emit(Opcode::kGetField, {reg, static_cast<int64_t>(i), field});
        fields.push_back(param(tuple->fields[i], field));
      }
      out = make_tuple(std::move(fields));
    } else if (as_tensor(e->type)) {
      out = param(e->type, reg);
    } else {
      return unsupported(e, format("an operator takes {}, not a tensor", type_str(e->type)));
    }
    return made[e.get()] = out;
  };
  bool any = false;
  std::vector<Expr> kept;
  for (const Expr& e : s.order) {
    if (e->kind == ExprKind::kTuple || !is_operator(e) || s.level[e.get()] != level) continue;
    any = true;
    std::vector<Expr> kids;
    for (const Expr& kid : operands(e)) kids.push_back(TW_TRY(mapped(kid)));
    made[e.get()] = with_children(e, kids);
    if (s.kept.count(e.get())) kept.push_back(e);
  }
  if (!any) return Ok{};
  std::vector<std::vector<int64_t>> of_kept;
  for (const Expr& e : kept) {
    of_kept.emplace_back();
    const auto* tuple = as_tuple(e->type);
    for (size_t i = 0; i < (tuple ? tuple->fields.size() : 1); ++i) {
      outputs.push_back(tuple ? make_get(made[e.get()], static_cast<int64_t>(i)) : made[e.get()]);
      of_kept.back().push_back(fresh());
      results.push_back(of_kept.back().back());
    }
  }
  if (outputs.empty()) return Ok{};
  const auto count = static_cast<int64_t>(arguments.size() + results.size());
  std::vector<int64_t> fields{
      program_.add_region(make_function(params, outputs.size() == 1 ? outputs[0] : make_tuple(outputs))), count,
      static_cast<int64_t>(results.size())};
  fields.insert(fields.end(), arguments.begin(), arguments.end());
  fields.insert(fields.end(), results.begin(), results.end());
  emit(Opcode::kInvokePacked, std::move(fields));
  for (size_t i = 0; i < kept.size(); ++i) {
    int64_t r = of_kept[i][0];
    if (as_tuple(kept[i]->type)) {
      std::vector<int64_t> adt{0, static_cast<int64_t>(of_kept[i].size()), r = fresh()};
      adt.insert(adt.end(), of_kept[i].begin(), of_kept[i].end());
      emit(Opcode::kAllocADT, std::move(adt));
    }
    s.known[kept[i].get()] = r;
  }
  return Ok{};
}

// The register of a value: constants and written-out tuples are made here.
Result<int64_t> FunctionCompiler::value_of(Scope& s, Expr e) {
  e = program_.aliases().resolve(e);
  if (auto it = s.known.find(e.get()); it != s.known.end()) return it->second;
  int64_t r = -1;
  if (const auto* constant = as<ConstantNode>(e)) {
    r = fresh();
    emit(Opcode::kLoadConst, {program_.add_constant(constant->data), r});
  } else if (const auto* tuple = as<TupleNode>(e)) {
    std::vector<int64_t> fields{0, static_cast<int64_t>(tuple->fields.size()), 0};
    for (const Expr& f : tuple->fields) fields.push_back(TW_TRY(value_of(s, f)));
    fields[2] = r = fresh();
    emit(Opcode::kAllocADT, std::move(fields));
  } else if (const auto* var = as<VarNode>(e)) {
    return unsupported(e, format("variable '{}' is not bound", var->name));
  } else {
    return Diagnostic(ErrorCode::kInternal, "a value of the program has no register");
  }
  return s.known[e.get()] = r;
}

Result<int64_t> FunctionCompiler::control(Scope& s, const Expr& e) {
  switch (e->kind) {
    case ExprKind::kIf: {
      const auto* n = as<IfNode>(e);
      const int64_t test = TW_TRY(value_of(s, n->condition)), one = fresh(), out = fresh();
      emit(Opcode::kLoadConsti, {1, one});
      const size_t branch = emit(Opcode::kIf, {test, one, 1, 0});
      emit(Opcode::kMove, {TW_TRY(body(n->then_branch, s.known)), out});
      const size_t leave = emit(Opcode::kGoto, {0});
      patch(branch, 3);
      emit(Opcode::kMove, {TW_TRY(body(n->else_branch, s.known)), out});
      patch(leave, 0);
      return out;
    }
    case ExprKind::kMatch:
      return match(s, *as<MatchNode>(e));
    case ExprKind::kFunction:
      return closure(s, e);
    case ExprKind::kGlobalVar: {
      const int64_t out = fresh();
      emit(Opcode::kAllocClosure, {TW_TRY(program_.function_index(e)), 0, out});
      return out;
    }
    case ExprKind::kTupleGetItem: {
      const auto* get = as<TupleGetItemNode>(e);
      Expr tuple = program_.aliases().resolve(get->tuple);
      if (const auto* written = as<TupleNode>(tuple))
        return value_of(s, written->fields[static_cast<size_t>(get->index)]);
      const int64_t from = TW_TRY(value_of(s, tuple)), out = fresh();
      emit(Opcode::kGetField, {from, get->index, out});
      return out;
    }
    case ExprKind::kCall: {
      if (called_op(e)) return host_call(s, e);
      const auto* c = as<CallNode>(e);
      std::vector<int64_t> arguments;
      for (const Expr& a : c->args) arguments.push_back(TW_TRY(value_of(s, a)));
      const auto n = static_cast<int64_t>(arguments.size());
      std::vector<int64_t> fields;
      Opcode op = Opcode::kInvokeClosure;
      if (const auto* constructor = as<ConstructorNode>(c->callee)) {
        op = Opcode::kAllocADT;
        fields = {constructor->tag, n, 0};
      } else if (c->callee->kind == ExprKind::kGlobalVar) {
        op = Opcode::kInvoke;
        fields = {TW_TRY(program_.function_index(c->callee)), n, 0};
      } else {
        fields = {TW_TRY(value_of(s, c->callee)), n, 0};
      }
      const int64_t out = fields[2] = fresh();
      fields.insert(fields.end(), arguments.begin(), arguments.end());
      emit(op, std::move(fields));
      return out;
    }
    case ExprKind::kConstructor:
      return unsupported(e, format("the constructor {} is used as a value", as<ConstructorNode>(e)->name));
    case ExprKind::kRefCreate:
    case ExprKind::kRefRead:
    case ExprKind::kRefWrite: {
      const char* name = e->kind == ExprKind::kRefCreate ? "ref_create"
                         : e->kind == ExprKind::kRefRead ? "ref_read"
                                                         : "ref_write";
      std::vector<int64_t> arguments;
      for (const Expr& kid : children(e)) arguments.push_back(TW_TRY(value_of(s, kid)));
      const auto n = static_cast<int64_t>(arguments.size());
      const int64_t out = fresh();
      std::vector<int64_t> fields{program_.add_host(name, arguments.size()), n + 1, 1};
      fields.insert(fields.end(), arguments.begin(), arguments.end());
      fields.push_back(out);
      emit(Opcode::kInvokePacked, std::move(fields));
      return out;
    }
    case ExprKind::kVar:
    case ExprKind::kConstant:
    case ExprKind::kTuple:
    case ExprKind::kOp:
    case ExprKind::kLet:
      return value_of(s, e);
  }
  return Diagnostic(ErrorCode::kInternal, "an expression of no kind");
}

Result<int64_t> FunctionCompiler::host_call(Scope& s, const Expr& e) {
  std::vector<int64_t> arguments, results;
  for (const Expr& a : as<CallNode>(e)->args) arguments.push_back(TW_TRY(value_of(s, a)));
  const auto* tuple = as_tuple(e->type);
  for (size_t i = 0; i < (tuple ? tuple->fields.size() : 1); ++i) results.push_back(fresh());
  std::vector<int64_t> fields{program_.add_host(host_source(e), arguments.size()),
                              static_cast<int64_t>(arguments.size() + results.size()),
                              static_cast<int64_t>(results.size())};
  fields.insert(fields.end(), arguments.begin(), arguments.end());
  fields.insert(fields.end(), results.begin(), results.end());
  emit(Opcode::kInvokePacked, std::move(fields));
  if (!tuple) return results[0];
  const int64_t out = fresh();
  fields = {0, static_cast<int64_t>(results.size()), out};
  fields.insert(fields.end(), results.begin(), results.end());
  emit(Opcode::kAllocADT, std::move(fields));
  return out;
}

Result<int64_t> FunctionCompiler::closure(Scope& s, const Expr& e) {
  const auto* f = as<FunctionNode>(e);
  const std::vector<Expr> captured = operands(e);
  std::vector<int64_t> registers;
  for (const Expr& v : captured) registers.push_back(TW_TRY(value_of(s, v)));
  std::vector<int64_t> fields{TW_TRY(program_.add_closure(*f, captured, e.get())),
                              static_cast<int64_t>(registers.size()), 0};
  const int64_t out = fields[2] = fresh();
  fields.insert(fields.end(), registers.begin(), registers.end());
  emit(Opcode::kAllocClosure, std::move(fields));
  return out;
}

// Jumps in `misses` leave when the value does not fit.
void FunctionCompiler::test_pattern(const Pattern& p, int64_t value, Registers* known, std::vector<size_t>* misses) {
  if (p->kind == PatternKind::kVar) (*known)[p->expr.get()] = value;
  if (p->kind == PatternKind::kConstructor) {
    const int64_t tag = fresh(), wanted = fresh();
    emit(Opcode::kGetTag, {value, tag});
    emit(Opcode::kLoadConsti, {as<ConstructorNode>(p->expr)->tag, wanted});
    misses->push_back(emit(Opcode::kIf, {tag, wanted, 1, 0}));
  }
  for (size_t i = 0; i < p->fields.size(); ++i) {
    if (p->fields[i]->kind == PatternKind::kWildcard) continue;
    const int64_t field = fresh();
    emit(Opcode::kGetField, {value, static_cast<int64_t>(i), field});
    test_pattern(p->fields[i], field, known, misses);
  }
}

Result<int64_t> FunctionCompiler::match(Scope& s, const MatchNode& m) {
  const int64_t value = TW_TRY(value_of(s, m.data)), out = fresh();
  std::vector<size_t> leaves;
  for (const Clause& clause : m.clauses) {
    Registers known = s.known;
    std::vector<size_t> misses;
    test_pattern(clause.pattern, value, &known, &misses);
    emit(Opcode::kMove, {TW_TRY(body(clause.body, std::move(known))), out});
    leaves.push_back(emit(Opcode::kGoto, {0}));
    for (size_t at : misses) patch(at, 3);
  }
  emit(Opcode::kFatal, {});
  for (size_t at : leaves) patch(at, 0);
  return out;
}

}  // namespace

Result<Program> vm_program(const Module& module, const BuildOptions& options) {
  // What composed operators are made of may be functions of the runtime.
  PassContext context;
  const Module expanded = TW_TRY(relay::expand_composed(relay::with_distinct_parameters(module), context));
  return ProgramCompiler(expanded).run(options);
}

}  // namespace tilewright::driver
