// SPDX-License-Identifier: Apache-2.0
#include "topi/register_tile.h"

#include <algorithm>
#include <cmath>

namespace tilewright::topi {

using namespace tir;

RegisterTile::RegisterTile(int rows, int cols, DataType vector, int last_lanes, int period)
    : rows_(rows),
      cols_(cols),
      period_(period > 0 ? period : cols),
      vector_(vector),
      last_(last_lanes > 0 ? vector.with_lanes(last_lanes) : vector),
      acc_(make_buffer("acc", vector, int64_t{rows} * cols, Scope::kRegister)),
      a_(make_buffer("a_row", vector, 1, Scope::kRegister)),
      b_(make_buffer("b_cols", vector, cols, Scope::kRegister)),
      narrow_acc_(make_buffer("narrow_acc", last_, int64_t{rows} * (cols / period_), Scope::kRegister)),
      narrow_a_(make_buffer("narrow_a", last_, 1, Scope::kRegister)),
      narrow_b_(make_buffer("narrow_b", last_, cols / period_, Scope::kRegister)) {}

RegisterTile& RegisterTile::of_words(int elements) {
  words_ = elements;
  auto of_operands = [&](Buffer* buffer) {
    const DataType dtype = operand().with_lanes((*buffer)->dtype.lanes);
    *buffer = make_buffer((*buffer)->name, dtype, (*buffer)->size, Scope::kRegister);
  };
  for (Buffer* buffer : {&a_, &b_, &narrow_a_, &narrow_b_}) of_operands(buffer);
  return *this;
}

DataType RegisterTile::operand() const { return words_ ? kInt32 : vector_.element(); }

PrimExpr RegisterTile::acc(int row, int col) const {
  return narrow(col) ? load(narrow_acc_, narrow_at(row, col)) : load(acc_, make_int(int64_t{row} * cols_ + col));
}

Stmt RegisterTile::set(int row, int col, PrimExpr value) const {
  return narrow(col) ? store(narrow_acc_, narrow_at(row, col), std::move(value))
                     : store(acc_, make_int(int64_t{row} * cols_ + col), std::move(value));
}

PrimExpr RegisterTile::sum_of(const PrimExpr& a, const PrimExpr& b, const PrimExpr& sum) const {
  if (!words_) return multiply_add(a, b, sum);
  const Intrinsic of = vector_.is_float() ? Intrinsic::k_dot2_bfloat16
                       : words_ == 2      ? Intrinsic::k_dot2
                                          : Intrinsic::k_dot4;
  return intrinsic(of, {sum, a, b});
}

Stmt RegisterTile::clear() const {
  std::vector<Stmt> body;
  for (int r = 0; r < rows_; ++r)
    for (int c = 0; c < cols_; ++c) body.push_back(set(r, c, make_const(narrow(c) ? last_ : vector_, 0)));
  return seq(std::move(body));
}

Stmt RegisterTile::step(const std::function<PrimExpr(int)>& a, const std::function<PrimExpr(int)>& b) const {
  auto convert = [&](PrimExpr value) {
    return value->dtype.element() == operand() ? value : cast(operand().with_lanes(value->dtype.lanes), value);
  };
  const PrimExpr zero = make_int(0);
  std::vector<Stmt> body;
  for (int c = 0; c < cols_; ++c)
    body.push_back(narrow(c) ? store(narrow_b_, narrow_at(0, c), convert(b(c)))
                             : store(b_, make_int(c), convert(b(c))));
  for (int r = 0; r < rows_; ++r) {
    PrimExpr element = convert(a(r));
    if (!narrow(0)) body.push_back(store(a_, zero, broadcast(element, vector_.lanes)));
    if (narrow(cols_ - 1)) body.push_back(store(narrow_a_, zero, broadcast(element, last_.lanes)));
    for (int c = 0; c < cols_; ++c) {
      PrimExpr x = narrow(c) ? load(narrow_a_, zero) : load(a_, zero),
               y = narrow(c) ? load(narrow_b_, narrow_at(0, c)) : load(b_, make_int(c));
      body.push_back(set(r, c, sum_of(x, y, acc(r, c))));
    }
  }
  return seq(std::move(body));
}

Stmt RegisterTile::update(int col, const std::function<PrimExpr(int)>& a, PrimExpr b) const {
  const DataType vector = narrow(col) ? last_ : vector_;
  std::vector<Stmt> body;
  if (b->dtype.element() != operand()) b = cast(operand().with_lanes(vector.lanes), b);
  for (int r = 0; r < rows_; ++r) {
    PrimExpr element = a(r);
    if (element->dtype.element() != operand()) element = cast(operand(), element);
    body.push_back(set(r, col, sum_of(broadcast(element, vector.lanes), b, acc(r, col))));
  }
  return seq(std::move(body));
}

Stmt RegisterTile::drain(const std::function<Stmt(int, int, PrimExpr)>& store) const {
  std::vector<Stmt> body;
  std::vector<int> widen;
  for (int i = 0; i < vector_.lanes; ++i) widen.push_back(i < last_.lanes ? i : last_.lanes);
  for (int r = 0; r < rows_; ++r)
    for (int c = 0; c < cols_; ++c) {
      PrimExpr value = acc(r, c);
      if (narrow(c)) value = shuffle({value, make_const(last_, 0)}, widen);
      body.push_back(store(r, c, value));
    }
  return seq(std::move(body));
}

Stmt RegisterTile::scope(Stmt body) const {
  for (const Buffer& buffer : {acc_, a_, b_}) body = allocate(buffer, std::move(body));
  if (narrow(cols_ - 1))
    for (const Buffer& buffer : {narrow_acc_, narrow_a_, narrow_b_}) body = allocate(buffer, std::move(body));
  return body;
}

void prefetch_ahead(std::vector<Stmt>* body, const Buffer& buffer, const PrimExpr& at, int64_t first, int64_t count,
                    int64_t bytes) {
  const int64_t element = static_cast<int64_t>(buffer->dtype.bytes());
  for (int64_t byte = round_up(first * element, 64); byte < (first + count) * element; byte += 64)
    body->push_back(prefetch(buffer, at + (byte + bytes) / element));
}

bool tile_fits(int rows, int cols, const Target& target) { return rows * cols + cols + 1 <= target.vector_registers; }

double tile_cycles(int rows, double cols, double steps, double panel_bytes, const Target& target, int words) {
  const MachineModel& machine = target.machine;
  const int bits = target.vector_bits;
  const double fmas = machine.fmas_per_cycle(bits), loads = machine.loads_per_cycle(bits);
  const double column_bytes = cols * bits / 8.0;
  if (!machine.halves_pay(bits)) cols = std::ceil(cols);
  const double rate = panel_bytes <= static_cast<double>(machine.l1_bytes) * 0.6    ? machine.l1_rate
                      : panel_bytes <= static_cast<double>(machine.l2_bytes) * 0.45 ? machine.l2_rate
                                                                                    : machine.l3_rate;
  // Two broadcasts from memory per cycle, slightly fewer in parallel to vector loads; where they cannot be operands of
  // a multiply-add, a row costs one more instruction.
  const double row_cost = bits < 512 ? 0.7 : loads > 1 ? 0.57 : 0.5;
  // An accumulator can be updated every 4 cycles; the excess models contention between units.
  const double latency = bits >= 512 && fmas > 1 ? 4.6 : 4.2;
  double step =
      std::max({rows * cols * std::max(words, 1) / fmas, cols / loads + rows * row_cost, latency, column_bytes / rate});
  if (words) step += 0.15 * (rows + cols) / (bits >= 512 ? fmas : 1);
  return steps * (step + 0.15) + 30 + 2.0 * rows * cols / fmas;
}

}  // namespace tilewright::topi
