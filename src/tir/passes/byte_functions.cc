// SPDX-License-Identifier: Apache-2.0
#include "tir/passes/byte_functions.h"

#include <functional>
#include <string>
#include <unordered_set>

#include "tir/interpret.h"
#include "tir/text.h"
#include "tir/walk.h"

namespace tilewright::tir {
namespace {

bool is_bytes(DataType t) { return t.element() == kUInt8 || t.element() == kInt8; }

bool has_lanes(DataType t) { return t.lanes == 4 || t.lanes == 8 || t.lanes == 16; }

// Functions that compute each lane by itself from floats or integers of it.
bool is_lanewise(Intrinsic op) {
  switch (op) {
    case Intrinsic::k_reduce_add:
    case Intrinsic::k_reduce_max:
    case Intrinsic::k_reduce_min:
    case Intrinsic::k_if_then_else:
      return false;
    default:
      return true;
  }
}

// Whether the expression computes lane i of its value from lane i of its children alone.
bool is_lanewise(const PrimExpr& e) {
  switch (e->kind) {
    case ExprKind::kNot:
    case ExprKind::kSelect:
    case ExprKind::kCast:
      return true;
    case ExprKind::kReinterpret:
      return static_cast<const ReinterpretNode&>(*e).value->dtype.lanes == e->dtype.lanes;
    case ExprKind::kCall:
      return is_lanewise(static_cast<const CallNode&>(*e).op);
    default:
      return is_binary(e->kind);
  }
}

// Operations, roughly; of float64 each is two.
int weight(const PrimExpr& e) {
  const int one = e->dtype.bits > 32 ? 2 : 1;
  if (e->kind == ExprKind::kDiv) return 6 * one;
  const auto* call = as<CallNode>(e);
  if (!call) return one;
  switch (call->op) {
    case Intrinsic::k_fma:
    case Intrinsic::k_round:
    case Intrinsic::k_floor:
    case Intrinsic::k_ceil:
    case Intrinsic::k_trunc:
    case Intrinsic::k_fabs:
      return one;
    case Intrinsic::k_sqrt:
    case Intrinsic::k_rsqrt:
      return 6 * one;
    default:
      return 15 * one;
  }
}

class Finder {
 public:
  explicit Finder(int least) : least_(least) {}

  void visit(const PrimExpr& e) {
    Origin origin = combined(e);
    if (origin.kind == Origin::kByte && is_bytes(e->dtype)) add(e, origin.source);
    if (origin.kind == Origin::kOther && is_bytes(e->dtype) && has_lanes(e->dtype)) origin = {Origin::kByte, e};
    origins_[e.get()] = origin;
  }
  std::unordered_map<const ExprNode*, ByteFunction> found;

 private:
  // What a value depends on: nothing, one vector of bytes (itself, where those are not made of one), anything else.
  struct Origin {
    enum Kind { kConstant, kByte, kOther } kind = kOther;
    PrimExpr source;
  };

  Origin combined(const PrimExpr& e) const {
    if (e->kind == ExprKind::kIntImm || e->kind == ExprKind::kFloatImm) return {Origin::kConstant, {}};
    Origin out{Origin::kConstant, {}};
    for_each_child(e, [&](const PrimExpr& child) {
      const auto known = origins_.find(child.get());
      const Origin of = known == origins_.end() ? Origin{} : known->second;
      if (of.kind == Origin::kConstant || out.kind == Origin::kOther) return;
      if (out.kind == Origin::kConstant)
        out = of;
      else if (of.kind != Origin::kByte || of.source != out.source)
        out = {};
    });
    if (e->kind == ExprKind::kBroadcast && out.kind == Origin::kConstant) return out;
    return is_lanewise(e) && (out.kind != Origin::kByte || out.source->dtype.lanes == e->dtype.lanes) ? out : Origin{};
  }

  int operations(const PrimExpr& e, const PrimExpr& source, std::unordered_set<const ExprNode*>* seen) const {
    if (e == source || !seen->insert(e.get()).second || e->kind == ExprKind::kBroadcast) return 0;
    int sum = weight(e);
    for_each_child(e, [&](const PrimExpr& child) { sum += operations(child, source, seen); });
    return sum;
  }

  // The expression as a function of its own over all bytes.
  void add(const PrimExpr& e, const PrimExpr& source) {
    std::unordered_set<const ExprNode*> seen;
    if (operations(e, source, &seen) < least_) return;
    const int lanes = e->dtype.lanes;
    PrimFunc f;
    f.name = "of_bytes";
    const Buffer in = make_buffer("x", source->dtype.element(), 256, Scope::kGlobal, 0, true),
                 out = make_buffer("y", e->dtype.element(), 256);
    f.params = {in, out};
    const PrimExpr i = make_var("i"), at = ramp(i * int64_t{lanes}, 1, lanes), read = load(in, at);
    std::unordered_map<const ExprNode*, PrimExpr> done{{source.get(), read}};
    const std::function<PrimExpr(const PrimExpr&)> replaced = [&](const PrimExpr& of) {
      auto& known = done[of.get()];
      if (!known) {
        const PrimExpr made = map_children(of, replaced);
        done[of.get()] = made;
        return made;
      }
      return known;
    };
    f.body = make_for(i, make_int(0), make_int(256 / lanes), store(out, at, replaced(e)));
    auto [table, fresh] = tables_.try_emplace(to_text(f));
    if (fresh) {
      std::array<uint8_t, 256> bytes{};
      for (size_t b = 0; b < bytes.size(); ++b) bytes[b] = static_cast<uint8_t>(b);
      void* buffers[] = {bytes.data(), table->second.bytes.data()};
      table->second.defined = interpret(f, buffers).ok();
    }
    if (table->second.defined) found[e.get()] = {source, table->second.bytes};
  }

  struct Table {
    std::array<uint8_t, 256> bytes{};
    bool defined = false;  // for every byte
  };
  int least_;
  std::unordered_map<const ExprNode*, Origin> origins_;
  std::unordered_map<std::string, Table> tables_;
};

}  // namespace

std::unordered_map<const ExprNode*, ByteFunction> byte_functions(const PrimFunc& function, int least) {
  bool any = false;
  for_each_expr(function.body, [&](const PrimExpr& e) { any = any || (is_bytes(e->dtype) && has_lanes(e->dtype)); });
  if (!any) return {};
  Finder finder(least);
  for_each_expr(function.body, [&](const PrimExpr& e) { finder.visit(e); });
  return std::move(finder.found);
}

}  // namespace tilewright::tir
