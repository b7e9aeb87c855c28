// SPDX-License-Identifier: Apache-2.0
// Random kernels for tests of passes and of code generation. Loops marked vectorized have independent iterations by
// construction: an iteration of a loop of L only touches elements congruent to its number modulo L.
#pragma once
#include <random>
#include <string>
#include <vector>

#include "tir/stmt.h"

namespace tilewright::tir {

class RandomKernel {
 public:
  static constexpr int64_t kSize = 256, kScratch = 8;

  // `whiles`: among them loops that end by a condition.
  explicit RandomKernel(unsigned seed, bool whiles = true) : random_(seed), whiles_(whiles) {}

  PrimFunc function() {
    Stmt body = block(0);
    return {"random", {x_, n_, q_, y_, z_}, tid_, nthreads_, body};
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  int64_t number(int64_t lo, int64_t hi) { return lo + pick(static_cast<int>(hi - lo + 1)); }

  PrimExpr integer(int depth) {
    if (depth <= 0 || pick(5) == 0) {
      if (!vars_.empty() && pick(4) != 0) return vars_[pick(static_cast<int>(vars_.size()))];
      if (pick(6) == 0) return load(n_, floormod(integer(0), 8));
      return make_int(number(-9, 9));
    }
    auto a = [&] { return integer(depth - 1); };
    switch (pick(11)) {
      case 0:
      case 1:
        return a() + a();
      case 2:
        return a() - a();
      case 3:
        return a() * number(-5, 5);
      case 4:
        return a() * number(1, 4) * 4 + a();
      case 5:
        return floordiv(a(), number(1, 3) * number(1, 8));
      case 6:
        return floormod(a(), number(1, 3) * number(1, 8));
      case 7:
        return min(a(), a());
      case 8:
        return max(a(), a());
      case 9:
        return select(condition(depth - 1), a(), a());
      default:
        return div(a(), make_int(number(1, 8)));
    }
  }

  PrimExpr condition(int depth) {
    constexpr ExprKind kComparisons[] = {ExprKind::kEQ, ExprKind::kNE, ExprKind::kLT,
                                         ExprKind::kLE, ExprKind::kGT, ExprKind::kGE};
    switch (pick(depth > 0 ? 6 : 3)) {
      case 3:
        return logical_and(condition(depth - 1), condition(depth - 1));
      case 4:
        return logical_or(condition(depth - 1), condition(depth - 1));
      case 5:
        return logical_not(condition(depth - 1));
      default:
        return binary(kComparisons[pick(6)], integer(depth), integer(1));
    }
  }

  // Elements this iteration may touch in a buffer that is written.
  PrimExpr own_index(int depth) {
    if (!lane_) return floormod(integer(depth), kSize);
    return floormod(integer(depth) * lanes_ + lane_, kSize);
  }

  PrimExpr real(int depth) {
    if (depth <= 0 || pick(5) == 0) {
      switch (pick(5)) {
        case 0:
          return make_float(static_cast<double>(number(-8, 8)) * 0.5);
        case 1:
          return cast(kFloat32, integer(1));
        case 2:
          return load(y_, own_index(2));
        case 3:
          if (registers_) return load(registers_, make_int(pick(2)));
          return scratch_ ? load(scratch_, floormod(integer(1), kScratch)) : load(x_, floormod(integer(1), kSize));
        default:
          return load(x_, floormod(integer(2), kSize));
      }
    }
    auto a = [&] { return real(depth - 1); };
    switch (pick(7)) {
      case 0:
        return a() + a();
      case 1:
        return a() - a();
      case 2:
        return a() * a();
      case 3:
        return max(a(), a());
      case 4:
        return intrinsic(Intrinsic::k_if_then_else, {condition(1), a(), a()});
      case 5: {
        PrimExpr t = make_var("t", kFloat32), value = a();
        return let(t, value, fma(t, a(), t));
      }
      default:
        return select(condition(1), a(), a());
    }
  }

  Stmt write() {
    if (scratch_ && !lane_ && pick(3) == 0) return store(scratch_, floormod(integer(1), kScratch), real(2));
    if (pick(3) == 0) return store(z_, own_index(2), cast(kInt32, integer(3)) + load(q_, floormod(integer(1), 64)));
    return store(y_, own_index(2), real(3));
  }

  Stmt block(int depth) {
    std::vector<Stmt> stmts;
    for (int n = 1 + pick(3); n > 0; --n) stmts.push_back(statement(depth));
    return seq(std::move(stmts));
  }

  Stmt statement(int depth) {
    if (depth >= 4) return write();
    switch (pick(whiles_ ? 9 : 8)) {
      case 8:
        return while_loop(depth);
      case 0:
      case 1:
      case 2:
        return loop(depth);
      case 3: {
        PrimExpr c = condition(2);
        Stmt then_case = block(depth + 1), else_case = pick(2) ? block(depth + 1) : Stmt();
        return make_if(c, then_case, else_case);
      }
      case 4: {
        PrimExpr v = make_var("v"), value = integer(3);
        vars_.push_back(v);
        Stmt body = block(depth + 1);
        vars_.pop_back();
        return let_stmt(v, value, body);
      }
      case 5: {
        if (pick(2)) return scratch(depth);
        if (registers_) return write();
        Buffer r = make_buffer("r", kFloat32, 2, Scope::kRegister);
        Stmt fill = seq({store(r, make_int(0), make_float(1)), store(r, make_int(1), real(0))});
        registers_ = r;  // not before it is filled
        Stmt body = seq({fill, block(depth + 1), store(y_, own_index(1), load(r, make_int(0)) + load(r, make_int(1)))});
        registers_ = {};
        return allocate(r, body);
      }
      default:
        return write();
    }
  }

  // A stack buffer, filled before it is used; the one around is not used in its scope.
  Stmt scratch(int depth) {
    Buffer s = make_buffer("s", kFloat32, kScratch, Scope::kStack);
    PrimExpr i = make_var("i");
    Stmt fill = make_for(i, make_int(0), make_int(kScratch), store(s, i, real(1)));
    Buffer around = scratch_;
    scratch_ = s;
    Stmt body = seq({fill, block(depth + 1), store(y_, own_index(1), load(s, floormod(integer(1), kScratch)))});
    scratch_ = around;
    return allocate(s, body);
  }

  // Counts up to a few in memory of its own; what the condition reads beside may change in the body.
  Stmt while_loop(int depth) {
    const Buffer count = make_buffer("c", kInt64, 1, pick(2) ? Scope::kStack : Scope::kRegister);
    const PrimExpr at = make_int(0), counted = load(count, at);
    PrimExpr goes_on = lt(counted, make_int(number(0, 4)));
    if (pick(2)) goes_on = logical_and(goes_on, lt(load(y_, own_index(1)), make_float(6)));
    Stmt body = seq({block(depth + 1), store(count, at, counted + 1)});
    return allocate(count, seq({store(count, at, at), make_while(goes_on, body)}));
  }

  Stmt loop(int depth) {
    PrimExpr i = make_var("i");
    PrimExpr first = pick(2) ? make_int(number(-3, 3)) : floormod(integer(1), 5);
    ForKind kind = static_cast<ForKind>(pick(3));
    if (lane_ && kind == ForKind::kVectorized) kind = ForKind::kSerial;
    PrimExpr extent;
    if (kind == ForKind::kVectorized)
      extent = make_int(2 << pick(4));
    else if (kind == ForKind::kUnrolled)
      extent = make_int(pick(4));
    else
      extent = pick(2) ? make_int(pick(6)) : min(integer(2), make_int(5));
    vars_.push_back(i);
    Buffer registers = registers_;
    if (kind == ForKind::kVectorized) {
      lane_ = i;
      lanes_ = *as_const_int(extent);
      registers_ = {};  // those of outside are shared by the iterations
    }
    Stmt body = block(depth + 1);
    if (kind == ForKind::kVectorized) {
      lane_ = {};
      registers_ = registers;
    }
    vars_.pop_back();
    return make_for(i, first, extent, body, kind);
  }

  std::mt19937 random_;
  bool whiles_;
  Buffer x_ = make_buffer("x", kFloat32, kSize, Scope::kGlobal, 0, true),
         n_ = make_buffer("n", kInt64, 8, Scope::kGlobal, 0, true);
  Buffer q_ = make_buffer("q", kInt32, 64, Scope::kGlobal, 0, true), y_ = make_buffer("y", kFloat32, kSize);
  Buffer z_ = make_buffer("z", kInt32, kSize);
  PrimExpr tid_ = make_var("tid"), nthreads_ = make_var("nthreads");
  std::vector<PrimExpr> vars_{tid_, nthreads_};
  Buffer registers_, scratch_;
  PrimExpr lane_;  // the variable of the vectorized loop around, if any
  int64_t lanes_ = 1;
};

}  // namespace tilewright::tir
