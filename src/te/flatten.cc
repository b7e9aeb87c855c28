// SPDX-License-Identifier: Apache-2.0
#include "te/flatten.h"

#include "base/format.h"
#include "te/lower.h"
#include "tir/walk.h"

namespace tilewright::te {

using tir::PrimExpr;
using tir::Stmt;

std::vector<PrimExpr> compact_strides(const std::vector<PrimExpr>& dims, const Scopes& scopes, PrimExpr* elements) {
  std::vector<PrimExpr> strides(dims.size());
  PrimExpr stride = tir::make_int(1);
  for (size_t d = dims.size(); d-- > 0;) {
    strides[d] = stride;
    stride = scopes.simplify(stride * dims[d]);
  }
  if (elements) *elements = stride;
  return strides;
}

std::vector<PrimExpr> bound_variables(const Stmt& s) {
  std::vector<PrimExpr> out;
  tir::for_each_stmt(s, [&](const Stmt& part) {
    if (const auto* n = tir::as<tir::ForNode>(part)) out.push_back(n->var);
    if (const auto* n = tir::as<tir::LetStmtNode>(part)) out.push_back(n->var);
    if (const auto* n = tir::as<tir::BlockNode>(part))
      for (const tir::BlockAxis& a : n->axes) out.push_back(a.var);
  });
  tir::for_each_expr(s, [&](const PrimExpr& e) {
    if (const auto* n = tir::as<tir::LetNode>(e)) out.push_back(n->var);
  });
  return out;
}

namespace {

// An element of a view, from its bytes: the first has the lowest bits.
PrimExpr from_bytes(const tir::Buffer& buffer, const PrimExpr& at, DataType type) {
  if (type == kUInt8) return tir::load(buffer, at);
  if (type.is_bool()) return tir::cast(type, tir::load(buffer, at));
  const DataType word{TypeCode::kUInt, type.bits, 1};
  PrimExpr out = tir::cast(word, tir::load(buffer, at));
  for (int i = 1; i < type.bits / 8; ++i)
    out = tir::binary(
        tir::ExprKind::kBitOr, out,
        tir::binary(tir::ExprKind::kShiftLeft, tir::cast(word, tir::load(buffer, at + i)), tir::make_int(8 * i, word)));
  return type == word ? out : tir::reinterpret(type, out);
}

Stmt to_bytes(const tir::Buffer& buffer, const PrimExpr& at, const PrimExpr& value) {
  const DataType type = value->dtype;
  if (type.is_bool()) return tir::store(buffer, at, tir::cast(kUInt8, value));
  const DataType word{TypeCode::kUInt, type.bits, 1};
  const PrimExpr bits = tir::make_var("bits", word);
  std::vector<Stmt> parts;
  for (int i = 0; i < type.bits / 8; ++i) {
    const PrimExpr shifted = i == 0 ? bits : tir::binary(tir::ExprKind::kShiftRight, bits, tir::make_int(8 * i, word));
    parts.push_back(tir::store(buffer, at + i, tir::cast(kUInt8, shifted)));
  }
  return tir::let_stmt(bits, type == word ? value : tir::reinterpret(word, value), tir::seq(std::move(parts)));
}

}  // namespace

Flatten::Flatten(Scopes& scopes, const std::vector<std::pair<PrimExpr, PrimExpr>>& sizes, std::string where,
                 Workspace workspace)
    : scopes_(scopes),
      widening_([this](const tir::ReadNode& read, const std::vector<PrimExpr>&) { return load(read); }),
      where_(std::move(where)),
      workspace_(std::move(workspace)) {
  for (const auto& [var, value] : sizes) widening_.bind(var, value);
}

void Flatten::place(const tir::Array& array, Placed placed) {
  kept_.push_back(array);
  places_[array.get()] = std::move(placed);
}
const Placed* Flatten::placed(const tir::ArrayNode* array) const {
  auto found = places_.find(array);
  return found == places_.end() ? nullptr : &found->second;
}

Stmt Flatten::wrong(std::string what, std::string hint) {
  if (!problem_) problem_ = Diagnostic(ErrorCode::kInvalidArgument, std::move(what), where_, std::move(hint));
  return tir::seq({});
}

Result<Stmt> Flatten::run(const Stmt& s) {
  Stmt out = stmt(s);
  if (problem_) return std::move(*problem_);
  return out;
}

// For scalar and vector indices.
PrimExpr Flatten::index_of(const PrimExpr& e) {
  if (const auto* r = tir::as<tir::RampNode>(e)) return tir::ramp(index(r->base), r->stride, e->dtype.lanes);
  if (e->dtype.lanes > 1) return tir::cast(kInt64, widening_.value(e));
  return index(e);
}

PrimExpr Flatten::address(const Ref<Node>& source, const std::string& name, const std::vector<PrimExpr>& indices,
                          tir::Buffer* buffer) {
  const Placed* at = placed(tir::array_of(source));
  if (!at) {
    wrong(format("'{}' is used where it has no memory", name), "use the buffers that are given, or allocate it");
    return {};
  }
  // A single index into multi-dimensional memory is a linear element index.
  const bool flat = indices.size() == 1 && at->strides.size() != 1;
  if (!flat && indices.size() != at->strides.size()) {
    wrong(format("{} indices for '{}', which has {} dimensions", indices.size(), name, at->strides.size()));
    return {};
  }
  PrimExpr sum = at->offset;
  for (size_t d = 0; d < indices.size(); ++d) {
    const PrimExpr i = index_of(indices[d]);
    if (at->element_bytes != 0 && i->dtype.lanes > 1) {  // an element is put together of its bytes
      wrong(format("'{}', a view of '{}', is read or written by vectors", name, at->buffer->name),
            "lower loops over views without vectorizing them");
      return {};
    }
    const PrimExpr elements = flat ? i : i * at->strides[d];
    sum = sum + (at->element_bytes > 1 ? elements * at->element_bytes : elements);
  }
  *buffer = at->buffer;
  return sum;
}

PrimExpr Flatten::load(const tir::ReadNode& n) {
  tir::Buffer buffer;
  PrimExpr at = address(n.source, n.name, n.indices, &buffer);
  if (!at) return tir::make_const(n.dtype, 0);
  if (placed(tir::array_of(n.source))->element_bytes != 0 && n.dtype.lanes == 1) return from_bytes(buffer, at, n.dtype);
  if (n.dtype.lanes > 1 && at->dtype.lanes == 1) at = tir::ramp(at, 1, n.dtype.lanes);
  return tir::load(buffer, at);
}

// A variable that is an address, and the array of its name.
Stmt Flatten::view(const tir::LetStmtNode& n) {
  const std::string& name = static_cast<const tir::VarNode&>(*n.var).name;
  const View view = view_of(n);
  if (view.element == nullptr)
    return wrong(format("the variable '{}' is no address of memory that is known here", name));
  tir::Buffer buffer;
  const PrimExpr at = address(view.element->source, view.element->name, view.element->indices, &buffer);
  if (!at) return tir::seq({});
  addresses_[n.var.get()] = {at, buffer};
  if (view.array == nullptr) return stmt(n.body);
  const DataType type = view.array->dtype;
  if (type != buffer->dtype && (buffer->dtype != kUInt8 || (type.bits % 8 != 0 && !type.is_bool())))
    return wrong(
        format("'{}' of {} is a view of '{}', which holds {}", name, type.str(), buffer->name, buffer->dtype.str()),
        "views of another type are of memory of uint8");
  std::vector<PrimExpr> dims;
  for (const PrimExpr& d : view.array->shape) dims.push_back(index(d));
  std::vector<PrimExpr> strides = compact_strides(dims, scopes_, nullptr);
  place(tir::Array(view.array),
        {buffer, std::move(strides), at, type == buffer->dtype ? 0 : static_cast<int>(type.bytes())});
  return stmt(n.body);
}

Stmt Flatten::stmt(const Stmt& s) {
  switch (s->kind) {
    case tir::StmtKind::kFor:
      return loop(static_cast<const tir::ForNode&>(*s));
    case tir::StmtKind::kWrite:
      return write_stmt(static_cast<const tir::WriteNode&>(*s));
    case tir::StmtKind::kBlock:
      return block(static_cast<const tir::BlockNode&>(*s));
    case tir::StmtKind::kCallExtern:
      return call(static_cast<const tir::CallExternNode&>(*s));
    case tir::StmtKind::kLetStmt: {
      const auto& n = static_cast<const tir::LetStmtNode&>(*s);
      const DataType t = n.var->dtype;
      if (t.code == TypeCode::kHandle) return view(n);
      if (!t.is_int() || t.lanes != 1 || t.bits < 32) {
        PrimExpr value = widening_.value(n.value);
        return tir::let_stmt(n.var, std::move(value), stmt(n.body));
      }
      const PrimExpr var = tir::make_var(static_cast<const tir::VarNode&>(*n.var).name), value = index(n.value);
      bind(n.var, var);
      return tir::let_stmt(var, value, stmt(n.body));
    }
    case tir::StmtKind::kIf: {
      const auto& n = static_cast<const tir::IfNode&>(*s);
      PrimExpr condition = scopes_.simplify(widening_.value(n.condition));
      Stmt then_case = stmt(n.then_case);
      return tir::make_if(std::move(condition), std::move(then_case), n.else_case ? stmt(n.else_case) : Stmt());
    }
    case tir::StmtKind::kWhile: {
      const auto& n = static_cast<const tir::WhileNode&>(*s);
      PrimExpr condition = scopes_.simplify(widening_.value(n.condition));
      return tir::make_while(std::move(condition), stmt(n.body));
    }
    case tir::StmtKind::kSeq: {
      std::vector<Stmt> parts;
      for (const Stmt& part : static_cast<const tir::SeqNode&>(*s).stmts) parts.push_back(stmt(part));
      return tir::seq(std::move(parts));
    }
    case tir::StmtKind::kStore:
    case tir::StmtKind::kPrefetch:
    case tir::StmtKind::kAllocate:
      break;
  }
  return s;  // already lowered
}

Stmt Flatten::loop(const tir::ForNode& n) {
  const PrimExpr var = tir::make_var(static_cast<const tir::VarNode&>(*n.var).name);
  PrimExpr min = index(n.min), extent = index(n.extent);
  const auto first = tir::as_const_int(min), count = tir::as_const_int(extent);
  scopes_.add(var, {first ? *first : -(int64_t{1} << 40), first && count ? *first + *count - 1 : int64_t{1} << 40});
  bind(n.var, var);
  return tir::make_for(var, std::move(min), std::move(extent), stmt(n.body), n.for_kind);
}

Stmt Flatten::block(const tir::BlockNode& n) {
  std::vector<tir::Buffer> stack;
  for (const Ref<Node>& m : n.memory) {
    const tir::Array array(static_cast<const tir::ArrayNode*>(m.get()));
    if (placed(array.get())) continue;  // the function's own array
    std::vector<PrimExpr> dims;
    for (const PrimExpr& d : array->shape) dims.push_back(index(d));
    Placed at;
    PrimExpr elements;
    at.strides = compact_strides(dims, scopes_, &elements);
    at.offset = tir::make_int(0);
    const auto known = tir::as_const_int(elements);
    if (known && *known <= kMaxStackBytes && *known * static_cast<int64_t>(array->dtype.bytes()) <= kMaxStackBytes) {
      at.buffer =
          tir::make_buffer(array->name, array->dtype.element(), std::max<int64_t>(*known, 1), tir::Scope::kStack);
      stack.push_back(at.buffer);
    } else {
      at.buffer = workspace_(*array, elements);
    }
    place(array, std::move(at));
  }
  PrimExpr starting;
  for (const tir::BlockAxis& a : n.axes) {
    const PrimExpr value = index(a.value);
    bind(a.var, value);
    if (!a.reduces) continue;
    const PrimExpr here = tir::eq(value, index(a.min));
    starting = starting ? tir::logical_and(starting, here) : here;
  }
  Stmt body = stmt(n.body);
  if (n.init) {
    Stmt init = stmt(n.init);
    if (starting) init = tir::make_if(scopes_.simplify(starting), std::move(init));
    body = tir::seq({std::move(init), std::move(body)});
  }
  if (n.predicate) body = tir::make_if(scopes_.simplify(widening_.value(n.predicate)), std::move(body));
  for (const tir::Buffer& b : stack) body = tir::allocate(b, std::move(body));
  return body;
}

Stmt Flatten::write_stmt(const tir::WriteNode& n) {
  tir::Buffer buffer;
  PrimExpr value = widening_.value(n.value);
  PrimExpr at = address(n.target, n.name, n.indices, &buffer);
  if (!at) return tir::seq({});
  const auto& array = static_cast<const tir::ArrayNode&>(*n.target);
  if (placed(&array)->element_bytes != 0 && value->dtype == array.dtype) return to_bytes(buffer, at, value);
  if (value->dtype.element() != buffer->dtype.element())
    return wrong(format("{} is stored in '{}', which holds {}", value->dtype.str(), n.name, buffer->dtype.str()),
                 "cast the value with astype");
  if (value->dtype.lanes > 1 && at->dtype.lanes == 1) at = tir::ramp(at, 1, value->dtype.lanes);
  if (at->dtype.lanes > 1 && value->dtype.lanes == 1) value = tir::broadcast(value, at->dtype.lanes);
  return tir::store(buffer, at, value);
}

Stmt Flatten::call(const tir::CallExternNode& n) {
  if (n.name == tir::kEvaluate) return tir::seq({});
  if (n.packed)
    return wrong(format("the runtime's function '{}' is called inside a loop or a condition", n.name),
                 "call it as a statement of its own, or call a C function with call_extern");
  std::vector<tir::ExternArgument> args;
  for (const tir::ExternArgument& a : n.args) {
    if (const auto known = addresses_.find(a.value.get()); known != addresses_.end()) {
      args.push_back(known->second);
      continue;
    }
    if (!a.address) {
      args.push_back({widening_.value(a.value), {}});
      continue;
    }
    const auto& read = static_cast<const tir::ReadNode&>(*a.value);
    tir::Buffer buffer;
    PrimExpr at = address(read.source, read.name, read.indices, &buffer);
    if (!at) return tir::seq({});
    args.push_back({std::move(at), std::move(buffer)});
  }
  return tir::call_extern(n.name, std::move(args));
}

}  // namespace tilewright::te
