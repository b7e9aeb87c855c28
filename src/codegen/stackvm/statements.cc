// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <utility>

#include "base/format.h"
#include "codegen/stackvm/assembler.h"
#include "tir/walk.h"

namespace tilewright::codegen {
namespace bytecode {

using stackvm::Element;
using stackvm::Op;
using tir::StmtKind;

uint32_t lane_bytes(DataType type) { return type.is_float() && type.bits <= 32 ? 4 : 8; }

Assembler::Assembler(const tir::PrimFunc& function) : function_(function) {
  program_.name = function.name;
  program_.parameters = static_cast<uint32_t>(function.params.size());
  program_.shared = static_cast<bool>(function.tid);
  open_scope();
  listing_.tid = new_register(8, 0), listing_.nthreads = new_register(8, 0);
  if (function.tid) variables_[function.tid.get()] = listing_.tid;
  if (function.nthreads) variables_[function.nthreads.get()] = listing_.nthreads;
  for (const tir::Buffer& b : function.params) {
    memories_[b.get()] = static_cast<uint32_t>(program_.memories.size());
    const bool unknown = b->size == tir::kUnknownSize;
    program_.memories.push_back(
        {unknown ? 0 : b->dtype.element().bytes_for(static_cast<uint64_t>(b->size)), unknown, false});
  }
}

Result<stackvm::Program> Assembler::run() {
  count_uses();
  statement(function_.body);
  listing_.code = close_scope();
  Draft end;
  end.n.op = Op::kEnd;
  listing_.code.push_back(end);
  if (error_.empty()) {
    TW_TRY_STATUS(allocate_registers(listing_, &program_));
    return std::move(program_);
  }
  return Diagnostic(ErrorCode::kUnsupportedModel, format("the target stackvm has no {}", error_),
                    format("kernel {}", function_.name), "compile for the target llvm or c");
}

void Assembler::fail(std::string what) {
  if (error_.empty()) error_ = std::move(what);
}

Value Assembler::new_register(uint64_t bytes, uint32_t depth) {
  if (bytes > stackvm::kMostFrameBytes) fail("room for a value of so many lanes"), bytes = 8;
  listing_.registers.push_back({static_cast<uint32_t>(bytes), depth, false});
  return {static_cast<uint32_t>(listing_.registers.size()) - 1, 0};
}

std::vector<Draft> Assembler::close_scope() {
  std::vector<Draft> code = std::move(scopes_.back().code);
  scopes_.pop_back();
  return code;
}

void Assembler::extend(std::vector<Draft> code) {
  auto& into = scopes_.back().code;
  into.insert(into.end(), std::make_move_iterator(code.begin()), std::make_move_iterator(code.end()));
}

void Assembler::place_label(uint32_t label) {
  Draft mark;
  mark.mark = Draft::kLabel, mark.label = label;
  scopes_.back().code.push_back(mark);
}

void Assembler::jump(Op op, Value condition, uint32_t label) {
  Draft d;
  d.n.op = op, d.a = condition, d.label = label;
  scopes_.back().code.push_back(d);
}

void Assembler::append(const Wanted& w, Value to, uint32_t scope) {
  Draft d;
  d.n.op = w.op, d.n.lanes = static_cast<uint16_t>(w.lanes), d.n.value = w.value;
  d.n.element = w.element, d.n.other = w.other;
  d.to = to, d.a = w.a, d.b = w.b, d.c = w.c;
  if (w.lanes > static_cast<int>(stackvm::kMostLanes)) fail(format("vectors of {} lanes", w.lanes));
  scopes_[scope].code.push_back(d);
}

Value Assembler::pure(const Wanted& w) {
  uint32_t depth = 0;
  bool changing = false;
  for (const Value& v : {w.a, w.b, w.c}) {
    if (v == kNothing) continue;
    depth = std::max(depth, listing_.registers[v.reg].depth);
    changing = changing || changes(v);
  }
  if (changing) depth = here();
  const uint32_t types = static_cast<uint32_t>(w.element) * 256 + static_cast<uint32_t>(w.other);
  const Key key{w.op, static_cast<uint32_t>(w.lanes), types, w.a, w.b, w.c, w.value};
  if (!changing)
    if (auto found = scopes_[depth].known.find(key); found != scopes_[depth].known.end()) return found->second;
  const Value to =
      new_register(uint64_t{w.bytes} * static_cast<uint64_t>(w.result_lanes ? w.result_lanes : w.lanes), depth);
  append(w, to, depth);
  if (!changing) scopes_[depth].known[key] = to, last_known_ = {key, to};
  return to;
}

Value Assembler::kept(Value v, DataType type) {
  if (!changes(v)) return v;
  const uint32_t bytes = lane_bytes(type);
  const Value to = new_register(uint64_t{bytes} * type.lanes, here());
  append({bytes == 4 ? Op::kMoveF : Op::kMoveQ, type.lanes, bytes, v}, to, here());
  return to;
}

void Assembler::statement(const tir::Stmt& s) {
  done_.clear(), order_.clear();
  if (!error_.empty()) return;
  switch (s->kind) {
    case StmtKind::kFor:
      return loop(static_cast<const tir::ForNode&>(*s));
    case StmtKind::kStore:
      return store(static_cast<const tir::StoreNode&>(*s));
    case StmtKind::kPrefetch:
      return;
    case StmtKind::kLetStmt:
      return let(static_cast<const tir::LetStmtNode&>(*s));
    case StmtKind::kWhile:
      return fail("loops that end by a condition");
    case StmtKind::kIf:
      return branch(static_cast<const tir::IfNode&>(*s));
    case StmtKind::kSeq:
      for (const tir::Stmt& part : static_cast<const tir::SeqNode&>(*s).stmts) statement(part);
      return;
    case StmtKind::kAllocate:
      return allocation(static_cast<const tir::AllocateNode&>(*s));
    case StmtKind::kCallExtern:
      return fail(format("C functions, and the kernel calls '{}'", static_cast<const tir::CallExternNode&>(*s).name));
    case StmtKind::kWrite:
    case StmtKind::kBlock:
      return fail("blocks, and one is left in the kernel");  // never verified
  }
}

void Assembler::loop(const tir::ForNode& n) {
  const Value first = value(n.min), count = value(n.extent);
  const uint32_t label = labels_++;
  open_scope();
  const Value var = new_register(8, here()), limit = new_register(8, here());
  variables_[n.var.get()] = var;
  statement(n.body);
  std::vector<Draft> body = close_scope();
  Draft begin, end;
  begin.n.op = Op::kLoop, begin.to = var, begin.a = first, begin.b = count, begin.c = limit, begin.label = label;
  end.n.op = Op::kEndLoop, end.to = var, end.c = limit, end.label = label;
  scopes_.back().code.push_back(begin);
  extend(std::move(body));
  scopes_.back().code.push_back(end);
}

Value Assembler::element_of_array(const tir::BufferNode& buffer, const tir::PrimExpr& index) {
  const Value array = arrays_.at(&buffer);
  const auto at = tir::as_const_int(index);
  TW_ICHECK(at, "a register array is indexed by constants");
  return {array.reg, static_cast<uint32_t>(*at) * lane_bytes(buffer.dtype) * buffer.dtype.lanes};
}

// An element that is loaded to be multiplied and added once: one instruction does it all.
void Assembler::join_load(Value into, uint32_t first_register) {
  auto& code = scopes_.back().code;
  if (code.size() < 2) return;
  Draft &sum = code.back(), &load = code[code.size() - 2];
  if (sum.n.op != Op::kFmaSplatF || sum.c != into || load.mark != Draft::kNone || load.n.op != Op::kLoad ||
      load.n.element != Element::kF32 || load.n.lanes != 1 || load.to != sum.a || load.to.reg < first_register ||
      load.to == sum.b)
    return;
  load.n.op = Op::kFmaLoadF, load.n.lanes = sum.n.lanes;
  load.to = into, load.b = sum.b;
  code.pop_back();
}

void Assembler::store_in_register(const tir::StoreNode& n) {
  const Value into = element_of_array(*n.buffer, n.index);
  const size_t before = listing_.registers.size();
  const Value v = value(n.value);
  // What was just computed for nothing else is computed in its place.
  auto& code = scopes_.back().code;
  if (v.reg >= before && v.offset == 0 && !code.empty() && code.back().mark == Draft::kNone && code.back().to == v &&
      listing_.registers[v.reg].depth == here()) {
    code.back().to = into;
    join_load(into, static_cast<uint32_t>(before));
    if (last_known_.second == v) scopes_.back().known.erase(last_known_.first);
    return;
  }
  const DataType type = n.value->dtype;
  append({lane_bytes(type) == 4 ? Op::kMoveF : Op::kMoveQ, type.lanes, lane_bytes(type), v}, into, here());
}

void Assembler::store(const tir::StoreNode& n) {
  if (n.buffer->scope == tir::Scope::kRegister) return store_in_register(n);
  const Value v = value(n.value);
  const Wanted w = access(n.buffer, n.index, n.mask, n.value->dtype.lanes, true);
  append(w, v, here());
}

// Whether nothing is written to memory, so that what is read there is the same at the end.
static bool writes_registers_only(const tir::Stmt& s) {
  if (const auto* n = tir::as<tir::StoreNode>(s)) return n->buffer->scope == tir::Scope::kRegister;
  if (const auto* n = tir::as<tir::LetStmtNode>(s)) return writes_registers_only(n->body);
  return false;
}

void Assembler::count_uses() {
  auto count = [&](const tir::PrimExpr& e) {
    if (e->kind == tir::ExprKind::kVar) ++uses_[e.get()];
  };
  tir::for_each_expr(function_.body, [&](const tir::PrimExpr& e) { tir::for_each_child(e, count); });
  tir::for_each_stmt(function_.body, [&](const tir::Stmt& s) { tir::for_each_own_expr(s, count); });
}

void Assembler::let(const tir::LetStmtNode& n) {
  if (const auto* one = tir::as<tir::BroadcastNode>(n.value); one && one->value->dtype.is_float()) {
    const tir::ExprNode* var = n.var.get();
    variables_.erase(var), late_.erase(var), numbers_.erase(var);
    if (tir::as<tir::LoadNode>(one->value) && uses_[var] == 1 && writes_registers_only(n.body))
      late_[var] = one;
    else
      numbers_[var] = kept(value(one->value), one->value->dtype);
    return statement(n.body);
  }
  variables_[n.var.get()] = kept(value(n.value), n.value->dtype);
  statement(n.body);
}

void Assembler::branch(const tir::IfNode& n) {
  const Value condition = value(n.condition);
  const uint32_t otherwise = labels_++, behind = labels_++;
  open_scope();
  statement(n.then_case);
  std::vector<Draft> body = close_scope(), other;
  if (n.else_case) {
    open_scope();
    statement(n.else_case);
    other = close_scope();
  }
  // Only now: what either of them hoisted out of itself lies before the jump.
  jump(Op::kJumpIfZero, condition, otherwise);
  extend(std::move(body));
  if (!n.else_case) return place_label(otherwise);
  jump(Op::kJump, kNothing, behind);
  place_label(otherwise);
  extend(std::move(other));
  place_label(behind);
}

void Assembler::allocation(const tir::AllocateNode& n) {
  const tir::BufferNode& b = *n.buffer;
  if (b.scope != tir::Scope::kRegister) {
    memories_[&b] = static_cast<uint32_t>(program_.memories.size());
    program_.memories.push_back({b.dtype.element().bytes_for(static_cast<uint64_t>(b.size)), false, true});
    return statement(n.body);
  }
  const Value array =
      new_register(uint64_t{lane_bytes(b.dtype)} * b.dtype.lanes * static_cast<uint64_t>(b.size), here());
  listing_.registers[array.reg].changing = true;
  arrays_[&b] = array;
  Draft use;
  use.mark = Draft::kUse, use.to = array;
  scopes_.back().code.push_back(use);
  statement(n.body);
  scopes_.back().code.push_back(use);
}

}  // namespace bytecode

Result<stackvm::Program> assemble(const tir::PrimFunc& function) { return bytecode::Assembler(function).run(); }

}  // namespace tilewright::codegen
