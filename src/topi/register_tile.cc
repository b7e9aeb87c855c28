// SPDX-License-Identifier: Apache-2.0
#include "topi/register_tile.h"

#include <algorithm>

namespace tilewright::topi {

using namespace tir;

RegisterTile::RegisterTile(int rows, int cols, DataType vector)
    : rows_(rows),
      cols_(cols),
      vector_(vector),
      acc_(make_buffer("acc", vector, int64_t{rows} * cols, Scope::kRegister)),
      a_(make_buffer("a_row", vector, 1, Scope::kRegister)),
      b_(make_buffer("b_cols", vector, cols, Scope::kRegister)) {}

Stmt RegisterTile::clear() const {
  std::vector<Stmt> body;
  for (int i = 0; i < rows_ * cols_; ++i)
    body.push_back(store(acc_, make_int(i), make_const(vector_, 0)));
  return seq(std::move(body));
}

Stmt RegisterTile::step(const std::function<PrimExpr(int)>& a, const std::function<PrimExpr(int)>& b) const {
  auto convert = [&](PrimExpr value) {
    return value->dtype.element() == vector_.element() ? value : cast(vector_.with_lanes(value->dtype.lanes), value);
  };
  std::vector<Stmt> body;
  for (int c = 0; c < cols_; ++c) body.push_back(store(b_, make_int(c), convert(b(c))));
  for (int r = 0; r < rows_; ++r) {
    body.push_back(store(a_, make_int(0), broadcast(convert(a(r)), vector_.lanes)));
    for (int c = 0; c < cols_; ++c) {
      PrimExpr at = make_int(int64_t{r} * cols_ + c);
      body.push_back(store(acc_, at,
                           multiply_add(load(a_, make_int(0)), load(b_, make_int(c)), load(acc_, at))));
    }
  }
  return seq(std::move(body));
}

Stmt RegisterTile::drain(const std::function<Stmt(int, int, PrimExpr)>& store) const {
  std::vector<Stmt> body;
  for (int r = 0; r < rows_; ++r)
    for (int c = 0; c < cols_; ++c) body.push_back(store(r, c, load(acc_, make_int(int64_t{r} * cols_ + c))));
  return seq(std::move(body));
}

Stmt RegisterTile::scope(Stmt body) const { return allocate(acc_, allocate(b_, allocate(a_, std::move(body)))); }

bool tile_fits(int rows, int cols, const Target& target) {
  return rows * cols + cols + 1 <= target.vector_registers;
}

double tile_cycles(int rows, int cols, double steps, double panel_bytes, const Target& target) {
  // 512-bit: one FMA and one vector load a cycle; narrower: two. Element broadcasts go two a cycle. An accumulator
  // can be updated every 4 cycles. Bytes a cycle from where the panel lives: about 54, 25, 14 for L1, L2, L3.
  double per_cycle = target.vector_bits >= 512 ? 1 : 2;
  double column_bytes = cols * target.vector_bits / 8.0;
  double rate = panel_bytes <= target.l1_bytes * 0.6 ? 54 : panel_bytes <= target.l2_bytes * 0.45 ? 25 : 12;
  double step = std::max({rows * cols / per_cycle, cols / per_cycle + rows * 0.5, 4.2, column_bytes / rate});
  return steps * (step + 0.15) + 30 + 2.0 * rows * cols / per_cycle;
}

double cycles_per_microsecond(const Target& target) {
  return target.gflops * 1e3 / 32;  // 32 flop a cycle at every vector width of the machines this was measured on
}

}  // namespace tilewright::topi
