// SPDX-License-Identifier: Apache-2.0
// The loop IR's functions as byte code.
#include <optional>
#include <string_view>

#include "base/format.h"
#include "codegen/stackvm/assembler.h"

namespace tilewright::codegen::bytecode {

using stackvm::Op;
using tir::Intrinsic;

namespace {

// The byte code's function of the same name; its exponential is right below zero, too.
template <class F>
std::optional<int64_t> numbered(Intrinsic op, int count) {
  const std::string_view name = tir::intrinsic_name(op == Intrinsic::k_exp_nonpositive ? Intrinsic::k_exp : op);
  for (int i = 0; i < count; ++i)
    if (name == stackvm::name_of(static_cast<F>(i))) return i;
  return std::nullopt;
}

}  // namespace

const tir::BroadcastNode* Assembler::broadcast_of(const tir::PrimExpr& e) const {
  if (const auto* n = tir::as<tir::BroadcastNode>(e)) return n;
  auto found = late_.find(e.get());
  return found == late_.end() ? nullptr : found->second;
}

Value Assembler::number_of(const tir::PrimExpr& e) {
  const tir::BroadcastNode* n = broadcast_of(e);
  return n ? value(n->value) : numbers_.at(e.get());
}

Value Assembler::multiply_add(const tir::CallNode& n) {
  const DataType type = n.dtype;
  const bool first = is_number(n.args[0]);
  if (lane_bytes(type) == 4 && type.lanes > 1 && (first || is_number(n.args[1]))) {
    const Value many = value(n.args[first ? 1 : 0]), sum = value(n.args[2]);
    const Value one = number_of(n.args[first ? 0 : 1]);  // last, for join_load
    return pure({Op::kFmaSplatF, type.lanes, 4, one, many, sum});
  }
  const Value a = value(n.args[0]), b = value(n.args[1]), c = value(n.args[2]);
  return pure({type.bits == 64 ? Op::kFmaD : Op::kFmaF, type.lanes, lane_bytes(type), a, b, c});
}

Value Assembler::reduction(const tir::CallNode& n) {
  const DataType type = n.args[0]->dtype;
  const bool wide = type.is_uint() && type.bits == 64;
  const int which = n.op == Intrinsic::k_reduce_add ? 0 : n.op == Intrinsic::k_reduce_min ? 1 : 2;
  static constexpr Op kFloats[] = {Op::kReduceAddF, Op::kReduceMinF, Op::kReduceMaxF};
  static constexpr Op kDoubles[] = {Op::kReduceAddD, Op::kReduceMinD, Op::kReduceMaxD};
  static constexpr Op kIntegers[] = {Op::kReduceAddI, Op::kReduceMinI, Op::kReduceMaxI};
  static constexpr Op kUnsigned[] = {Op::kReduceAddI, Op::kReduceMinU, Op::kReduceMaxU};
  const auto& ops = !type.is_float() ? (wide ? kUnsigned : kIntegers) : type.bits == 64 ? kDoubles : kFloats;
  Wanted w{ops[which], type.lanes, lane_bytes(type), value(n.args[0])};
  w.result_lanes = 1;
  const Value out = pure(w);
  return type.is_float() ? out : wrapped(out, type.element());
}

Value Assembler::choice(const tir::CallNode& n) {
  const Value condition = value(n.args[0]);
  const DataType type = n.dtype;
  const uint32_t bytes = lane_bytes(type), otherwise = labels_++, behind = labels_++;
  const Value to = new_register(uint64_t{bytes} * type.lanes, here());
  std::vector<Draft> sides[2];
  for (int side = 0; side < 2; ++side) {
    open_scope();
    scoped([&] {
      const Value v = value(n.args[static_cast<size_t>(side) + 1]);
      append({bytes == 4 ? Op::kMoveF : Op::kMoveQ, type.lanes, bytes, v}, to, here());
    });
    sides[side] = close_scope();
  }
  jump(Op::kJumpIfZero, condition, otherwise);
  extend(std::move(sides[0]));
  jump(Op::kJump, kNothing, behind);
  place_label(otherwise);
  extend(std::move(sides[1]));
  place_label(behind);
  return to;
}

Value Assembler::call(const tir::CallNode& n) {
  const DataType type = n.args[0]->dtype;
  const bool wide = type.bits == 64;
  switch (n.op) {
    case Intrinsic::k_if_then_else:
      return choice(n);
    case Intrinsic::k_fma:
      return multiply_add(n);
    case Intrinsic::k_reduce_add:
    case Intrinsic::k_reduce_min:
    case Intrinsic::k_reduce_max:
      return reduction(n);
    case Intrinsic::k_isnan:
    case Intrinsic::k_isinf:
    case Intrinsic::k_isfinite: {
      const int64_t which = n.op == Intrinsic::k_isnan ? 0 : n.op == Intrinsic::k_isinf ? 1 : 2;
      return pure({wide ? Op::kClassD : Op::kClassF, type.lanes, 8, value(n.args[0]), kNothing, kNothing, which});
    }
    case Intrinsic::k_popcount:
    case Intrinsic::k_clz:
      return pure({n.op == Intrinsic::k_clz ? Op::kClz : Op::kPopcount, type.lanes, 8, value(n.args[0]), kNothing,
                   kNothing, type.bits});
    case Intrinsic::k_ldexp_int: {
      const Value a = value(n.args[0]), b = value(n.args[1]);
      return pure({wide ? Op::kLdexpD : Op::kLdexpF, type.lanes, lane_bytes(type), a, b});
    }
    default:
      break;
  }
  const Value a = value(n.args[0]), b = n.args.size() > 1 ? value(n.args[1]) : a;
  const Value c = n.args.size() > 2 ? value(n.args[2]) : a;
  if (const auto word = numbered<stackvm::WordOp>(n.op, stackvm::kWordCount))
    return pure({Op::kWord, type.lanes, 8, a, b, c, *word});
  if (const auto math = numbered<stackvm::Math>(n.op, stackvm::kMathCount))
    return pure({wide ? Op::kMathD : Op::kMathF, type.lanes, lane_bytes(type), a, b, kNothing, *math});
  fail(format("function {}", tir::intrinsic_name(n.op)));
  return a;
}

}  // namespace tilewright::codegen::bytecode
