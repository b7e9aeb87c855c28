// SPDX-License-Identifier: Apache-2.0
#include "tir/passes/scalarize.h"

#include <unordered_map>
#include <unordered_set>

#include "base/format.h"
#include "tir/walk.h"

namespace tilewright::tir {
namespace {

using LaneList = std::vector<PrimExpr>;

class LaneByLane {
 public:
  explicit LaneByLane(bool loops = false) : loops_(loops) {}

  Stmt stmt(const Stmt& s) {
    switch (s->kind) {
      case StmtKind::kStore:
        return store_stmt(static_cast<const StoreNode&>(*s));
      case StmtKind::kPrefetch:
        return static_cast<const PrefetchNode&>(*s).index->dtype.lanes > 1 ? seq({}) : with_children(s);
      case StmtKind::kLetStmt: {
        const auto& n = static_cast<const LetStmtNode&>(*s);
        if (n.var->dtype.lanes == 1) return with_children(s);
        const LaneList values = lanes(n.value), vars = bind(n.var);
        Stmt body = stmt(n.body);
        for (size_t i = vars.size(); i-- > 0;) body = let_stmt(vars[i], values[i], body);
        return body;
      }
      case StmtKind::kAllocate: {
        const auto& n = static_cast<const AllocateNode&>(*s);
        if (n.buffer->dtype.lanes == 1) return with_children(s);
        return allocate(flat(n.buffer), stmt(n.body));
      }
      case StmtKind::kSeq: {
        std::vector<Stmt> parts;
        for (const Stmt& part : static_cast<const SeqNode&>(*s).stmts) append(stmt(part), &parts);
        return seq(std::move(parts));
      }
      case StmtKind::kFor:
      case StmtKind::kIf:
      case StmtKind::kWhile:
      case StmtKind::kCallExtern:
        return with_children(s);
      case StmtKind::kWrite:
      case StmtKind::kBlock:
        break;  // not in kernels
    }
    return s;
  }

 private:
  Stmt with_children(const Stmt& s) {
    return map_children(
        s, [&](const PrimExpr& e) { return scalar(e); }, [&](const Stmt& child) { return stmt(child); });
  }

  const LaneList& bind(const PrimExpr& var) {
    LaneList& vars = vars_[var.get()];
    for (int i = static_cast<int>(vars.size()); i < var->dtype.lanes; ++i)
      vars.push_back(make_var(format("{}_{}", static_cast<const VarNode&>(*var).name, i), var->dtype.element()));
    return vars;
  }

  // A register's lanes become consecutive elements.
  Buffer flat(const Buffer& b) {
    if (b->dtype.lanes == 1) return b;
    Buffer& out = flat_[b.get()];
    if (out) return out;
    // Only constants index registers.
    const Scope scope = loops_ && b->scope == Scope::kRegister ? Scope::kStack : b->scope;
    out = make_buffer(b->name, b->dtype.element(), b->size * b->dtype.lanes, scope, b->alignment, b->read_only,
                      b->streamed);
    return out;
  }

  static bool reads(const PrimExpr& e, const BufferNode* buffer, const PrimExpr& but) {
    bool found = false;
    for_each_expr(e, [&](const PrimExpr& part) {
      const auto* n = as<LoadNode>(part);
      if (!n || n->buffer.get() != buffer) return;
      const auto at = as_const_int(n->index), same = as_const_int(but);
      found = found || !(n->index == but || (at && same && *at == *same));
    });
    return found;
  }

  Stmt store_stmt(const StoreNode& n) {
    const int count = n.value->dtype.lanes;
    if (count == 1 && n.index->dtype.lanes == 1) {
      Stmt out = store(n.buffer, scalar(n.index), scalar(n.value));
      return n.mask ? make_if(scalar(n.mask), out) : out;
    }
    if (Stmt loop = loops_ ? lane_loop(n, count) : Stmt()) return loop;
    const Buffer buffer = flat(n.buffer);
    const LaneList values = lanes(n.value), masks = n.mask ? lanes(n.mask) : LaneList();
    LaneList places;
    if (n.buffer->scope == Scope::kRegister) {
      for (int i = 0; i < count; ++i) places.push_back(scalar(n.index) * count + i);
    } else {
      places = lanes(n.index);
    }
    bool disturbs = false;
    for (size_t i = 0; i < values.size(); ++i)
      for (const LaneList* list : std::initializer_list<const LaneList*>{&values, &places, &masks})
        disturbs = disturbs || (i < list->size() && reads((*list)[i], buffer.get(), places[i]));
    LaneList taken, held = values;
    if (disturbs)
      for (PrimExpr& v : held) taken.push_back(v = make_var("lane", v->dtype));
    std::vector<Stmt> stores;
    for (size_t i = 0; i < values.size(); ++i) {
      Stmt one = store(buffer, places[i], held[i]);
      stores.push_back(n.mask ? make_if(masks[i], one) : one);
    }
    Stmt out = seq(std::move(stores));
    for (size_t i = taken.size(); i-- > 0;) out = let_stmt(taken[i], values[i], out);
    return out;
  }

  // Joins loops over the lanes of registers: each lane uses its own elements of those.
  void append(Stmt part, std::vector<Stmt>* parts) {
    const auto* loop = as<ForNode>(part);
    const auto* before = parts->empty() ? nullptr : as<ForNode>(parts->back());
    if (!loop || !before || lane_loops_.count(loop) == 0 || lane_loops_.count(before) == 0 ||
        as_const_int(loop->extent) != as_const_int(before->extent)) {
      parts->push_back(std::move(part));
      return;
    }
    const Stmt body = substitute(loop->body, {{loop->var.get(), before->var}});
    parts->back() = make_for(before->var, before->min, before->extent, seq({before->body, body}), ForKind::kSerial,
                             before->annotations);
    lane_loops_.insert(as<ForNode>(parts->back()));
    loops_kept_.push_back(parts->back());
  }

  // A loop over the lanes of a store, if each lane of the value is computed alike from lanes or scalars; else null.
  Stmt lane_loop(const StoreNode& n, int count) {
    const auto* place = as<RampNode>(n.index);
    const bool in_register = n.buffer->scope == Scope::kRegister;
    if (count < kLoopLanes || n.mask || !(in_register || (place && place->stride == 1))) return {};
    bool disturbs = false;
    for_each_expr(n.value, [&](const PrimExpr& part) {
      const auto* load = as<LoadNode>(part);
      if (!load || load->buffer != n.buffer) return;
      const auto at = as_const_int(load->index), same = as_const_int(n.index);
      disturbs = disturbs || !(load->index == n.index || (at && same && *at == *same));
    });
    const PrimExpr lane = make_var("l");
    const PrimExpr value = disturbs ? PrimExpr() : at_lane(n.value, lane);
    if (!value) return {};
    const PrimExpr at = in_register ? scalar(n.index) * count + lane : scalar(place->base) + lane;
    Stmt out = make_for(lane, make_int(0), make_int(count), store(flat(n.buffer), at, value), ForKind::kSerial,
                        {{kLanes, "1"}});
    if (in_register) lane_loops_.insert(as<ForNode>(out)), loops_kept_.push_back(out);
    return out;
  }

  // The lane of an expression whose number is a variable; null if that takes more than the same operation on lanes.
  PrimExpr at_lane(const PrimExpr& e, const PrimExpr& lane) {
    if (e->dtype.lanes == 1) return scalar(e);
    if (is_binary(e->kind)) {
      const auto& n = static_cast<const BinaryNode&>(*e);
      const PrimExpr a = at_lane(n.a, lane), b = a ? at_lane(n.b, lane) : PrimExpr();
      return b ? binary(n.kind, a, b) : PrimExpr();
    }
    if (const auto* n = as<BroadcastNode>(e)) return scalar(n->value);
    if (const auto* n = as<CastNode>(e)) {
      const PrimExpr value = at_lane(n->value, lane);
      return value ? cast(e->dtype.element(), value) : PrimExpr();
    }
    if (const auto* n = as<SelectNode>(e)) {
      const PrimExpr c = at_lane(n->condition, lane), t = c ? at_lane(n->on_true, lane) : PrimExpr();
      const PrimExpr f = t ? at_lane(n->on_false, lane) : PrimExpr();
      return f ? select(c, t, f) : PrimExpr();
    }
    if (const auto* n = as<LoadNode>(e)) {
      if (n->mask) return {};
      if (n->buffer->scope == Scope::kRegister) return load(flat(n->buffer), scalar(n->index) * e->dtype.lanes + lane);
      const auto* place = as<RampNode>(n->index);
      return place && place->stride == 1 ? load(n->buffer, scalar(place->base) + lane) : PrimExpr();
    }
    if (const auto* n = as<CallNode>(e)) {
      std::vector<PrimExpr> args;
      for (const PrimExpr& a : n->args) {
        args.push_back(at_lane(a, lane));
        if (!args.back()) return {};
      }
      return intrinsic(n->op, std::move(args));
    }
    return {};
  }

  // Substitutes a let's value for its variable. Adjacent lets may share variable and body, so results memoised for one
  // value must not be reused for another.
  void substitute_var(const PrimExpr& var, LaneList values) {
    auto [slot, fresh] = lets_.try_emplace(var.get(), values);
    if (fresh || slot->second == values) return;
    slot->second = std::move(values);
    vectors_.clear(), scalars_.clear();
  }

  PrimExpr scalar(const PrimExpr& e) {
    if (e->kind == ExprKind::kVar) {
      auto let = lets_.find(e.get());
      return let == lets_.end() ? e : let->second[0];
    }
    if (auto found = scalars_.find(e.get()); found != scalars_.end()) return found->second;
    PrimExpr out = scalar_uncached(e);
    kept_.push_back(e);
    return scalars_[e.get()] = out;
  }

  PrimExpr scalar_uncached(const PrimExpr& e) {
    if (e->kind == ExprKind::kShuffle) return shuffled(static_cast<const ShuffleNode&>(*e))[0];
    if (const auto* n = as<ReinterpretNode>(e); n && n->value->dtype.lanes > 1) return reinterpreted(*n)[0];
    if (const auto* n = as<CallNode>(e); n && n->args[0]->dtype.lanes > 1) return reduced_lanes(*n);
    if (const auto* n = as<LetNode>(e); n && n->var->dtype.lanes > 1) {
      substitute_var(n->var, lanes(n->value));
      return scalar(n->body);
    }
    if (const auto* n = as<LoadNode>(e); n && n->mask) {
      PrimExpr value = load(n->buffer, scalar(n->index));
      return intrinsic(Intrinsic::k_if_then_else, {scalar(n->mask), value, make_const(value->dtype, 0)});
    }
    return map_children(e, [&](const PrimExpr& child) { return scalar(child); });
  }

  PrimExpr reduced_lanes(const CallNode& n) {
    LaneList v = lanes(n.args[0]);
    auto step = [&](const PrimExpr& a, const PrimExpr& b) {
      return n.op == Intrinsic::k_reduce_add ? a + b : n.op == Intrinsic::k_reduce_max ? max(a, b) : min(a, b);
    };
    while (v.size() > 1 && v.size() % 2 == 0) {
      const size_t half = v.size() / 2;
      for (size_t i = 0; i < half; ++i) v[i] = step(v[i], v[i + half]);
      v.resize(half);
    }
    for (size_t i = 1; i < v.size(); ++i) v[0] = step(v[0], v[i]);
    return v[0];
  }

  LaneList shuffled(const ShuffleNode& n) {
    LaneList all, out;
    for (const PrimExpr& v : n.vectors) {
      const LaneList own = lanes(v);
      all.insert(all.end(), own.begin(), own.end());
    }
    for (int i : n.indices) out.push_back(all[static_cast<size_t>(i)]);
    return out;
  }

  LaneList lanes(const PrimExpr& e) {
    if (e->dtype.lanes == 1) return {scalar(e)};
    if (e->kind == ExprKind::kVar) {
      auto let = lets_.find(e.get());
      return let == lets_.end() ? bind(e) : let->second;
    }
    if (auto found = vectors_.find(e.get()); found != vectors_.end()) return found->second;
    LaneList out = lanes_uncached(e);
    kept_.push_back(e);
    return vectors_[e.get()] = out;
  }

  LaneList lanes_uncached(const PrimExpr& e) {
    const auto count = static_cast<size_t>(e->dtype.lanes);
    LaneList out;
    if (is_binary(e->kind)) {
      const auto& n = static_cast<const BinaryNode&>(*e);
      const LaneList a = lanes(n.a), b = lanes(n.b);
      for (size_t i = 0; i < count; ++i) out.push_back(binary(n.kind, a[i], b[i]));
      return out;
    }
    switch (e->kind) {
      case ExprKind::kNot:
        for (const PrimExpr& v : lanes(static_cast<const NotNode&>(*e).a)) out.push_back(logical_not(v));
        return out;
      case ExprKind::kSelect: {
        const auto& n = static_cast<const SelectNode&>(*e);
        const LaneList c = lanes(n.condition), t = lanes(n.on_true), f = lanes(n.on_false);
        for (size_t i = 0; i < count; ++i) out.push_back(select(c[c.size() == 1 ? 0 : i], t[i], f[i]));
        return out;
      }
      case ExprKind::kCast:
        for (const PrimExpr& v : lanes(static_cast<const CastNode&>(*e).value))
          out.push_back(cast(e->dtype.element(), v));
        return out;
      case ExprKind::kReinterpret:
        return reinterpreted(static_cast<const ReinterpretNode&>(*e));
      case ExprKind::kLoad:
        return loaded(static_cast<const LoadNode&>(*e));
      case ExprKind::kRamp: {
        const auto& n = static_cast<const RampNode&>(*e);
        const PrimExpr base = scalar(n.base);
        for (size_t i = 0; i < count; ++i)
          out.push_back(base + make_int(static_cast<int64_t>(i) * n.stride, base->dtype));
        return out;
      }
      case ExprKind::kBroadcast:
        return LaneList(count, scalar(static_cast<const BroadcastNode&>(*e).value));
      case ExprKind::kShuffle:
        return shuffled(static_cast<const ShuffleNode&>(*e));
      case ExprKind::kCall:
        return called(static_cast<const CallNode&>(*e));
      case ExprKind::kLet: {
        const auto& n = static_cast<const LetNode&>(*e);
        substitute_var(n.var, lanes(n.value));  // otherwise each lane would need its own let
        return lanes(n.body);
      }
      default:
        TW_ICHECK(false, format("{} has no lanes", kind_name(e->kind)));
        return out;
    }
  }

  // Adjacent bytes as one word: printers have a load for that.
  PrimExpr word_of_bytes(const ReinterpretNode& n) {
    const auto* bytes = as<LoadNode>(n.value);
    const auto* place = bytes != nullptr && !bytes->mask ? as<RampNode>(bytes->index) : nullptr;
    if (place == nullptr || place->stride != 1 || bytes->buffer->scope != Scope::kGlobal || n.dtype.lanes != 1 ||
        !n.dtype.is_integral() || (n.dtype.bits != 16 && n.dtype.bits != 32))
      return nullptr;
    return reinterpret(n.dtype, load(bytes->buffer, ramp(scalar(place->base), 1, n.value->dtype.lanes)));
  }

  LaneList reinterpreted(const ReinterpretNode& n) {
    if (PrimExpr word = word_of_bytes(n)) return {word};
    const LaneList from = lanes(n.value);
    LaneList out;
    if (from.size() == static_cast<size_t>(n.dtype.lanes)) {
      for (const PrimExpr& v : from) out.push_back(reinterpret(n.dtype.element(), v));
      return out;
    }
    // Assembles a word from bytes, lowest first.
    const size_t bytes = static_cast<size_t>(n.dtype.bits / 8);
    TW_ICHECK(n.value->dtype.bits == 8 && from.size() == bytes * static_cast<size_t>(n.dtype.lanes),
              "reinterpret keeps the number of lanes, or makes words of bytes");
    const DataType bits{TypeCode::kUInt, n.dtype.bits, 1};
    for (size_t i = 0; i < from.size(); i += bytes) {
      PrimExpr word = make_int(0, bits);
      for (size_t k = 0; k < bytes; ++k)
        word = binary(ExprKind::kBitOr, word,
                      binary(ExprKind::kShiftLeft, cast(bits, reinterpret(kUInt8, from[i + k])),
                             make_int(static_cast<int64_t>(8 * k), bits)));
      out.push_back(reinterpret(n.dtype.element(), word));
    }
    return out;
  }

  LaneList loaded(const LoadNode& n) {
    LaneList out;
    if (n.buffer->scope == Scope::kRegister) {
      for (int i = 0; i < n.dtype.lanes; ++i) out.push_back(load(flat(n.buffer), scalar(n.index) * n.dtype.lanes + i));
      return out;
    }
    const LaneList places = lanes(n.index), masks = n.mask ? lanes(n.mask) : LaneList();
    for (size_t i = 0; i < places.size(); ++i) {
      PrimExpr value = load(n.buffer, places[i]);
      if (n.mask) value = intrinsic(Intrinsic::k_if_then_else, {masks[i], value, make_const(value->dtype, 0)});
      out.push_back(value);
    }
    return out;
  }

  LaneList called(const CallNode& n) {
    std::vector<LaneList> args;
    for (const PrimExpr& a : n.args) args.push_back(lanes(a));
    LaneList out;
    for (size_t i = 0; i < static_cast<size_t>(n.dtype.lanes); ++i) {
      std::vector<PrimExpr> one;
      for (const LaneList& a : args) one.push_back(a[a.size() == 1 ? 0 : i]);
      out.push_back(intrinsic(n.op, std::move(one)));
    }
    return out;
  }

  static constexpr int kLoopLanes = 4;  // fewer are no vector of any processor
  const bool loops_;
  std::unordered_set<const ForNode*> lane_loops_;  // those that store to registers
  std::vector<Stmt> loops_kept_;                   // keeps the set's members alive
  std::unordered_map<const ExprNode*, LaneList> vectors_, vars_, lets_;
  std::unordered_map<const ExprNode*, PrimExpr> scalars_;
  std::vector<PrimExpr> kept_;  // keeps the maps' keys alive
  std::unordered_map<const BufferNode*, Buffer> flat_;
};

}  // namespace

PrimFunc scalarize(PrimFunc function) {
  function.body = LaneByLane().stmt(function.body);
  return function;
}

PrimFunc scalarize_by_loops(PrimFunc function) {
  function.body = LaneByLane(true).stmt(function.body);
  return function;
}

}  // namespace tilewright::tir
