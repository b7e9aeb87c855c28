// SPDX-License-Identifier: Apache-2.0
#include "topi/injective.h"

#include <algorithm>

namespace tilewright::topi {

using namespace tir;

Stmt injective(const View& out, const Operand& value, const InjectiveConfig& config, const KernelContext& context) {
  if (product(out.shape) == 0) return seq({});
  if (out.rank() == 0)
    return parallel_for(context, "unit", 1, [&](PrimExpr) { return out.store({}, value({}, 1, {})); });
  int v = config.lanes > 0 ? config.lanes : context.target->lanes(std::max<int>(32, out.dtype().bits));
  const int64_t inner = out.shape.back();
  if (inner == 1) v = 1;
  std::vector<int64_t> outer(out.shape.begin(), out.shape.end() - 1);

  const int64_t vectors = inner / v, tail = inner % v;
  auto span = [&](const Index& at, PrimExpr from, int lanes, PrimExpr mask) {
    Index index = at;
    index.push_back(std::move(from));
    return out.store(index, value(index, lanes, mask), mask);
  };
  // `count` vectors from vector `first` on, `unroll` at a time.
  auto body = [&](const Index& at, PrimExpr first, PrimExpr end, int64_t constant_count) {
    int unroll = std::max(1, config.unroll);
    if (constant_count > 0 && constant_count % unroll != 0)
      for (unroll = std::min<int64_t>(unroll, constant_count); constant_count % unroll != 0;) --unroll;
    if (constant_count <= 0) unroll = 1;
    PrimExpr groups = unroll == 1 ? end : make_int(constant_count / unroll);
    return loop("vector", unroll == 1 ? first : make_int(0), groups, [&](PrimExpr i) {
      std::vector<Stmt> stores;
      for (int u = 0; u < unroll; ++u) stores.push_back(span(at, i * (int64_t{v} * unroll) + int64_t{u} * v, v, {}));
      return seq(std::move(stores));
    });
  };
  auto finish = [&](const Index& at) { return span(at, make_int(vectors * v), v, tail_mask(v, tail)); };

  // A short last dimension (blocks of channels): the one before it runs inside a unit as well, so that a unit's place,
  // and whatever operands do not change along it, are found once for many vectors.
  const bool paired = outer.size() >= 1 && vectors + (tail > 0 ? 1 : 0) <= 2 && outer.back() > 1;
  const int64_t columns = paired ? outer.back() : 0;
  if (paired) outer.pop_back();

  // Little outside the innermost loop: cut that one into runs of some vectors.
  const int64_t rows = product(outer), length = paired ? columns : vectors;
  const int64_t run =
      rows >= 64 || length < 16 ? std::max<int64_t>(1, length) : std::max<int64_t>(8, length / 64 / 8 * 8);
  const int64_t runs = std::max<int64_t>(1, ceil_div(length, run));
  std::vector<int64_t> units = outer;
  units.push_back(runs);
  auto cell = [&](Index at, PrimExpr column) {
    at.push_back(std::move(column));
    std::vector<Stmt> stores;
    for (int64_t i = 0; i < vectors; ++i) stores.push_back(span(at, make_int(i * v), v, {}));
    if (tail > 0) stores.push_back(finish(at));
    return seq(std::move(stores));
  };
  auto cells = [&](const Index& at, const PrimExpr& part) {
    if (runs > 1) {
      PrimExpr first = part * run;
      return loop("column", first, columns % run == 0 ? first + run : min(first + run, make_int(columns)),
                  [&](PrimExpr w) { return cell(at, w); });
    }
    const int64_t unroll = std::min<int64_t>(columns, std::max(1, config.unroll)), whole = columns / unroll;
    std::vector<Stmt> stmts;
    stmts.push_back(loop("columns", whole, [&](PrimExpr group) {
      std::vector<Stmt> some;
      for (int64_t u = 0; u < unroll; ++u) some.push_back(cell(at, group * unroll + u));
      return seq(std::move(some));
    }));
    for (int64_t w = whole * unroll; w < columns; ++w) stmts.push_back(cell(at, make_int(w)));
    return seq(std::move(stmts));
  };
  return parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
    Index at = unravel(unit, units);
    // Named once: operands use each of them several times.
    std::function<Stmt(size_t)> named = [&](size_t i) -> Stmt {
      if (i < at.size())
        return bind("i", at[i], [&](PrimExpr var) {
          at[i] = std::move(var);
          return named(i + 1);
        });
      Index place(at.begin(), at.end() - 1);
      PrimExpr part = at.back();
      if (paired) return cells(place, part);
      std::vector<Stmt> stmts;
      if (runs == 1) {
        if (vectors > 0) stmts.push_back(body(place, make_int(0), make_int(vectors), vectors));
        if (tail > 0) stmts.push_back(finish(place));
      } else {
        PrimExpr first = part * run;
        stmts.push_back(body(place, first, min(first + run, make_int(vectors)), 0));
        if (tail > 0) stmts.push_back(make_if(eq(part, make_int(runs - 1)), finish(place)));
      }
      return seq(std::move(stmts));
    };
    return named(0);
  });
}

Cost injective_cost(const View& out, double operand_bytes, double flops_per_element, const Target& target) {
  double elements = static_cast<double>(product(out.shape));
  Cost cost;
  cost.flops = elements * flops_per_element;
  cost.bytes = operand_bytes + elements * out.dtype().bits / 8.0;
  double rate = cost.bytes <= target.l2_bytes ? target.l2_gbps / 2 : target.l3_gbps / 2;
  cost.microseconds = std::max(cost.bytes / (rate * 1e3), cost.flops / (target.gflops * 0.4e3));
  return cost;
}

}  // namespace tilewright::topi
