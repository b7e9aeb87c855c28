// SPDX-License-Identifier: Apache-2.0
#include "te/loop_features.h"

#include <cmath>

#include "tir/walk.h"

namespace tilewright::te {
namespace {

// The change of an index when the variable goes from 0 to 1 with the others 0; nothing if it is not constant.
std::optional<int64_t> step_of(const PrimExpr& index, const tir::ForNode& loop) {
  const PrimExpr scalar = [&] {
    const auto* ramp = tir::as<tir::RampNode>(index);
    return ramp ? ramp->base : index;
  }();
  if (scalar->dtype.lanes != 1) return std::nullopt;
  std::optional<int64_t> at[2];
  for (int64_t value : {0, 1}) {
    const PrimExpr placed = tir::mutate(scalar, [&](PrimExpr e) {
      if (e->kind != tir::ExprKind::kVar) return e;
      return tir::make_int(e == loop.var ? value : 0, e->dtype);
    });
    at[value] = tir::as_const_int(placed);
  }
  if (!at[0] || !at[1]) return std::nullopt;
  return *at[1] - *at[0];
}

class Features {
 public:
  explicit Features(std::vector<LoopFeatures>* out) : out_(*out) {}

  void visit(const tir::Stmt& s, double around, int depth) {
    const auto* loop = tir::as<tir::ForNode>(s);
    if (!loop) {
      tir::for_each_child(s, [&](const tir::Stmt& inner) { visit(inner, around, depth); });
      return;
    }
    LoopFeatures f;
    f.extent = std::log2(static_cast<double>(std::max<int64_t>(1, tir::as_const_int(loop->extent).value_or(1))));
    f.around = around, f.depth = depth;
    const auto is = [&](tir::ForKind kind) { return loop->for_kind == kind ? 1.0 : 0.0; };
    f.serial = is(tir::ForKind::kSerial), f.vectorized = is(tir::ForKind::kVectorized);
    f.unrolled = is(tir::ForKind::kUnrolled), f.parallel = is(tir::ForKind::kParallel);
    f.inside = inside(loop->body);
    count(*loop, &f);
    out_.push_back(f);
    visit(loop->body, around + f.extent, depth + 1);
  }

 private:
  // The maximum number of iterations of the loops inside, combined.
  static double inside(const tir::Stmt& s) {
    double most = 0;
    tir::for_each_child(s, [&](const tir::Stmt& inner) { most = std::max(most, inside(inner)); });
    const auto* loop = tir::as<tir::ForNode>(s);
    if (!loop) return most;
    return most + std::log2(static_cast<double>(std::max<int64_t>(1, tir::as_const_int(loop->extent).value_or(1))));
  }
  static void touch(const PrimExpr& index, const tir::ForNode& loop, LoopFeatures* f) {
    const auto step = step_of(index, loop);
    if (step) (*step == 0 ? f->still : *step == 1 ? f->next : f->far) += 1;
  }
  static void count(const tir::ForNode& loop, LoopFeatures* f) {
    tir::for_each_stmt(loop.body, [&](const tir::Stmt& s) {
      if (const auto* store = tir::as<tir::StoreNode>(s)) f->stores += 1, touch(store->index, loop, f);
      tir::for_each_own_expr(s, [&](const PrimExpr& own) {
        tir::for_each_expr(own, [&](const PrimExpr& e) {
          if (const auto* load = tir::as<tir::LoadNode>(e)) f->loads += 1, touch(load->index, loop, f);
          if (!e->dtype.is_float()) return;
          const auto is = [&](tir::ExprKind a, tir::ExprKind b) { return e->kind == a || e->kind == b ? 1.0 : 0.0; };
          f->sums += is(tir::ExprKind::kAdd, tir::ExprKind::kSub);
          f->products += is(tir::ExprKind::kMul, tir::ExprKind::kMul);
          f->quotients += is(tir::ExprKind::kDiv, tir::ExprKind::kCall);
        });
      });
    });
  }
  std::vector<LoopFeatures>& out_;
};

}  // namespace

std::array<double, LoopFeatures::kCount> LoopFeatures::row() const {
  return {extent, around,   inside,    depth, serial, vectorized, unrolled, parallel,
          sums,   products, quotients, loads, stores, still,      next,     far};
}

std::vector<LoopFeatures> loop_features(const Lowered& lowered) {
  std::vector<LoopFeatures> out;
  for (const tir::PrimFunc& kernel : lowered.kernels) Features(&out).visit(kernel.body, 0, 0);
  return out;
}

}  // namespace tilewright::te
