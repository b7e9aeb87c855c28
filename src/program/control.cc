// SPDX-License-Identifier: Apache-2.0
// Everything outside of regions: branches, calls, closures, data types, references, host functions.
#include "base/format.h"
#include "program/function_compiler.h"
#include "relay/op.h"
#include "runtime/vm/host_functions.h"

namespace tilewright::program {

using namespace relay;
using runtime::vm::Opcode;

int64_t FunctionCompiler::tuple_of(const std::vector<int64_t>& fields, int64_t tag) {
  std::vector<int64_t> all{tag, static_cast<int64_t>(fields.size()), fresh()};
  const int64_t out = all[2];
  all.insert(all.end(), fields.begin(), fields.end());
  emit(Opcode::kAllocADT, std::move(all));
  return out;
}

// The register of a value; creates constants and literal tuples.
Result<int64_t> FunctionCompiler::value_of(Scope& s, Expr e) {
  e = program_.facts.aliases.resolve(e);
  if (auto it = s.known.find(e.get()); it != s.known.end()) return it->second;
  int64_t r = -1;
  if (auto it = s.results.find(e.get()); it != s.results.end()) {
    r = tuple_of(it->second);
  } else if (const auto* constant = as<ConstantNode>(e)) {
    if (constant->data.dtype().is_string())  // bytecode constants cannot hold strings
      return invoke("evaluate", {}, {}, {e})[0];
    r = fresh();
    emit(Opcode::kLoadConst, {program_.add_constant(constant->data), r});
  } else if (const auto* tuple = as<TupleNode>(e)) {
    std::vector<int64_t> fields;
    for (const Expr& f : tuple->fields) fields.push_back(TW_TRY(value_of(s, f)));
    r = tuple_of(fields);
  } else if (const auto* var = as<VarNode>(e)) {
    return unsupported(e, format("variable '{}' is not bound", var->name));
  } else {
    return Diagnostic(ErrorCode::kInternal, "a value of the program has no register");
  }
  return s.known[e.get()] = r;
}

Status FunctionCompiler::control(Scope& s, const Expr& e) {
  int64_t made = -1;
  switch (e->kind) {
    case ExprKind::kIf:
      made = TW_TRY(branch(s, e));
      break;
    case ExprKind::kMatch:
      made = TW_TRY(match(s, *as<MatchNode>(e), e.get() == s.tail));
      break;
    case ExprKind::kFunction:
      made = TW_TRY(closure(s, e));
      break;
    case ExprKind::kGlobalVar:
      made = fresh();
      emit(Opcode::kAllocClosure, {TW_TRY(program_.function_index(e)), 0, made});
      break;
    case ExprKind::kTupleGetItem: {
      const auto* get = as<TupleGetItemNode>(e);
      Expr tuple = program_.facts.aliases.resolve(get->tuple);
      const auto several = s.results.find(tuple.get());
      if (several != s.results.end()) {
        made = several->second.at(static_cast<size_t>(get->index));
      } else if (const auto* written = as<TupleNode>(tuple)) {
        made = TW_TRY(value_of(s, written->fields[static_cast<size_t>(get->index)]));
      } else {
        const int64_t from = TW_TRY(value_of(s, tuple));
        made = fresh();
        emit(Opcode::kGetField, {from, get->index, made});
      }
      break;
    }
    case ExprKind::kCall:
      if (!called_op(e)) {
        made = TW_TRY(call(s, *as<CallNode>(e)));
        break;
      }
      return program_.facts.treatment(e).kind == Treatment::kHost ? host_call(s, e) : evaluate(s, e);
    case ExprKind::kConstructor:
      return unsupported(e, format("the constructor {} is used as a value", as<ConstructorNode>(e)->name));
    case ExprKind::kRefCreate:
    case ExprKind::kRefRead:
    case ExprKind::kRefWrite:
      made = TW_TRY(reference(s, e));
      break;
    case ExprKind::kVar:
    case ExprKind::kConstant:
    case ExprKind::kTuple:
    case ExprKind::kOp:
    case ExprKind::kLet:
      made = TW_TRY(value_of(s, e));
      break;
  }
  s.known[e.get()] = made;
  return Ok{};
}

Result<int64_t> FunctionCompiler::branch(Scope& s, const Expr& e) {
  const auto* n = as<IfNode>(e);
  const bool tail = e.get() == s.tail;
  const int64_t test = TW_TRY(value_of(s, n->condition)), one = fresh(), out = fresh();
  emit(Opcode::kLoadConsti, {1, one});
  const size_t at = emit(Opcode::kIf, {test, one, 1, 0});
  const int64_t first = TW_TRY(body(n->then_branch, s.known, tail));
  size_t leave = 0;
  if (first != kReturned) {
    emit(Opcode::kMove, {first, out});
    leave = emit(Opcode::kGoto, {0});
  }
  patch(at, 3);
  const int64_t second = TW_TRY(body(n->else_branch, s.known, tail));
  if (second != kReturned) emit(Opcode::kMove, {second, out});
  if (first != kReturned) patch(leave, 0);
  return out;
}

Result<int64_t> FunctionCompiler::call(Scope& s, const CallNode& c) {
  std::vector<int64_t> arguments;
  for (const Expr& a : c.args) arguments.push_back(TW_TRY(value_of(s, a)));
  const auto n = static_cast<int64_t>(arguments.size());
  if (const auto* constructor = as<ConstructorNode>(c.callee)) return tuple_of(arguments, constructor->tag);
  const bool global = c.callee->kind == ExprKind::kGlobalVar;
  std::vector<int64_t> fields{global ? TW_TRY(program_.function_index(c.callee)) : TW_TRY(value_of(s, c.callee)), n, 0};
  const int64_t out = fields[2] = fresh();
  fields.insert(fields.end(), arguments.begin(), arguments.end());
  emit(global ? Opcode::kInvoke : Opcode::kInvokeClosure, std::move(fields));
  return out;
}

// A tail call of itself becomes a jump to the start: the call stack does not grow.
Status FunctionCompiler::jump_to_self(Scope& s, const CallNode& c) {
  std::vector<int64_t> kept;
  for (const Expr& a : c.args) {
    const int64_t value = TW_TRY(value_of(s, a));
    kept.push_back(fresh());
    emit(Opcode::kMove, {value, kept.back()});
  }
  for (size_t i = 0; i < kept.size(); ++i) emit(Opcode::kMove, {kept[i], own_parameters_.at(i)});
  emit(Opcode::kGoto, {static_cast<int64_t>(begin_) - static_cast<int64_t>(f_.code.size())});
  return Ok{};
}

// Registers of a host function's operands; one never written stands for an omitted operand.
Result<std::vector<int64_t>> FunctionCompiler::host_operands(Scope& s, const Expr& e) {
  const auto& c = *as<CallNode>(e);
  const auto* node = attrs_as<OnnxNodeAttrs>(c.attrs);
  std::vector<int64_t> out;
  for (size_t i = 0; i < c.args.size(); ++i) {
    if (node && i < node->operands.size()) {
      const int64_t place = node->operands[i];
      if (place < 0 || place > 64) return unsupported(e, format("{} has an operand {}", node->op, place));
      while (static_cast<int64_t>(out.size()) < place) out.push_back(fresh());
    }
    out.push_back(TW_TRY(value_of(s, c.args[i])));
  }
  return out;
}

Status FunctionCompiler::host_call(Scope& s, const Expr& e) {
  const std::vector<int64_t> arguments = TW_TRY(host_operands(s, e));
  const auto* node = attrs_as<OnnxNodeAttrs>(as<CallNode>(e)->attrs);
  const auto* tuple = as_tuple(e->type);
  if (node && (node->op == "SequenceConstruct" || node->op == "SequenceEmpty")) {
    s.known[e.get()] = tuple_of(arguments);
    return Ok{};
  }
  if (node && node->op == "Optional") {
    s.known[e.get()] = arguments.empty() ? tuple_of({}, runtime::vm::kNoneTag) : arguments[0];
    return Ok{};
  }
  std::vector<int64_t> results;
  const size_t count = node ? static_cast<size_t>(node->outputs) : tuple ? tuple->fields.size() : 1;
  for (size_t i = 0; i < count; ++i) results.push_back(fresh());
  std::vector<int64_t> fields{program_.add_host(host_source(e), arguments.size()),
                              static_cast<int64_t>(arguments.size() + results.size()),
                              static_cast<int64_t>(results.size())};
  fields.insert(fields.end(), arguments.begin(), arguments.end());
  fields.insert(fields.end(), results.begin(), results.end());
  emit(Opcode::kInvokePacked, std::move(fields));
  if (count == 1 && !tuple)
    s.known[e.get()] = results[0];
  else
    s.results[e.get()] = std::move(results);
  return Ok{};
}

Result<int64_t> FunctionCompiler::reference(Scope& s, const Expr& e) {
  const char* name = e->kind == ExprKind::kRefCreate ? "ref_create"
                     : e->kind == ExprKind::kRefRead ? "ref_read"
                                                     : "ref_write";
  std::vector<int64_t> arguments;
  for (const Expr& kid : children(e)) arguments.push_back(TW_TRY(value_of(s, kid)));
  const int64_t out = fresh();
  std::vector<int64_t> fields{program_.add_host(name, arguments.size()), static_cast<int64_t>(arguments.size()) + 1, 1};
  fields.insert(fields.end(), arguments.begin(), arguments.end());
  fields.push_back(out);
  emit(Opcode::kInvokePacked, std::move(fields));
  return out;
}

Result<int64_t> FunctionCompiler::closure(Scope& s, const Expr& e) {
  const std::vector<Expr> captured = operands(e);
  std::vector<int64_t> registers;
  for (const Expr& v : captured) registers.push_back(TW_TRY(value_of(s, v)));
  std::vector<int64_t> fields{TW_TRY(program_.add_closure(*as<FunctionNode>(e), captured, e.get())),
                              static_cast<int64_t>(registers.size()), 0};
  const int64_t out = fields[2] = fresh();
  fields.insert(fields.end(), registers.begin(), registers.end());
  emit(Opcode::kAllocClosure, std::move(fields));
  return out;
}

// Emits tests of a pattern; `misses` collects the jumps taken if the value does not match.
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

Result<int64_t> FunctionCompiler::match(Scope& s, const MatchNode& m, bool tail) {
  const int64_t value = TW_TRY(value_of(s, m.data)), out = fresh();
  std::vector<size_t> leaves;
  for (const Clause& clause : m.clauses) {
    Registers known = s.known;
    std::vector<size_t> misses;
    test_pattern(clause.pattern, value, &known, &misses);
    const int64_t made = TW_TRY(body(clause.body, std::move(known), tail));
    if (made != kReturned) {
      emit(Opcode::kMove, {made, out});
      leaves.push_back(emit(Opcode::kGoto, {0}));
    }
    for (size_t at : misses) patch(at, 3);
  }
  emit(Opcode::kFatal, {});
  for (size_t at : leaves) patch(at, 0);
  return out;
}

}  // namespace tilewright::program
