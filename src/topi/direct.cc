// SPDX-License-Identifier: Apache-2.0
#include "topi/direct.h"

#include <algorithm>

#include "tir/schedule.h"
#include "tir/walk.h"
#include "topi/injective.h"
#include "topi/reduce_steps.h"

namespace tilewright::topi {

using namespace tir;

namespace {

Stmt nest(const std::vector<int64_t>& extents, const std::function<Stmt(const Index&)>& body) {
  Index index;
  std::function<Stmt(size_t)> level = [&](size_t d) -> Stmt {
    if (d == extents.size()) return body(index);
    return loop("r", extents[d], [&](PrimExpr i) {
      index.push_back(i);
      Stmt inner = level(d + 1);
      index.pop_back();
      return inner;
    });
  };
  return level(0);
}

// Whether everything that the statement loads and stores has a native vector form.
bool has_vectors(const Stmt& body) {
  bool good = true;
  auto check = [&](DataType t) { good = good && t.bits >= 8 && (t.bits >= 16 || !t.is_float()); };
  for_each_stmt(body, [&](const Stmt& s) {
    if (const auto* store = as<StoreNode>(s)) check(store->buffer->dtype);
  });
  for_each_expr(body, [&](const PrimExpr& e) {
    if (e->kind == ExprKind::kLoad) check(as<LoadNode>(e)->buffer->dtype);
  });
  return good;
}

// Calls element(index) for every index of `shape`; each call stores its own elements. If the last dimension is a
// multiple of the vector length it is vectorised; the outer loops are divided among threads.
Stmt each_element(const std::vector<int64_t>& shape, int bits, const KernelContext& context,
                  const std::function<Stmt(const Index&)>& element) {
  Index at;
  std::vector<PrimExpr> loops;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool needed = shape[d] != 1 || d + 1 == shape.size();
    at.push_back(needed ? make_var("i" + std::to_string(d)) : make_int(0));
    if (needed) loops.push_back(at.back());
  }
  if (shape.empty()) loops.push_back(make_var("unit"));
  Stmt nest = element(at);
  for (size_t i = loops.size(), d = shape.size(); i-- > 0;) {
    while (d > 0 && at[d - 1] != loops[i]) --d;
    nest = make_for(loops[i], make_int(0), make_int(shape.empty() ? 1 : shape[d - 1]), nest);
  }
  Schedule schedule(nest);
  const int64_t last = shape.empty() ? 1 : shape.back();
  int lanes = context.target->lanes(std::max(32, bits));
  while (lanes > 4 && last % lanes != 0) lanes /= 2;
  if (last % lanes == 0 && has_vectors(nest) && schedule.independent(loops.back()).ok()) {
    auto halves = schedule.split(loops.back(), lanes);
    TW_ICHECK(halves.ok() && schedule.vectorize(halves->inner).ok(), "a loop over elements splits");
    loops.back() = halves->outer;
  }
  if (context.tid)
    TW_ICHECK(schedule.parallelize(loops, context.tid, context.nthreads).ok(),
              "elements of a result are stored once each");
  return schedule.stmt();
}

}  // namespace

Stmt direct_reduction(const DirectProblem& problem, const DirectTerm& term, const View& out, const Epilogue& epilogue,
                      const KernelContext& context) {
  if (product(problem.shape) == 0) return seq({});
  Combine combine{problem.largest ? ReduceKind::kMax : ReduceKind::kSum, problem.dtype};
  return each_element(problem.shape, problem.dtype.bits, context, [&](const Index& at) {
    Buffer acc = make_buffer("acc", problem.dtype, 1, Scope::kRegister);
    std::vector<Stmt> body{store(acc, make_int(0), combine.neutral(problem.dtype))};
    if (product(problem.reduction) > 0)
      body.push_back(nest(problem.reduction, [&](const Index& r) {
        PrimExpr value = term(at, r);
        if (value->dtype != problem.dtype) value = cast(problem.dtype, value);
        return store(acc, make_int(0), combine(load(acc, make_int(0)), value));
      }));
    body.push_back(out.store(at, epilogue(load(acc, make_int(0)), at, {})));
    return allocate(acc, seq(std::move(body)));
  });
}

Cost estimate(const DirectProblem& problem, const Target& target) {
  Cost cost;
  cost.flops = 2.0 * static_cast<double>(product(problem.shape)) * static_cast<double>(product(problem.reduction));
  cost.bytes = static_cast<double>(product(problem.shape)) * problem.dtype.bits / 8.0;
  cost.microseconds = cost.flops / (target.machine.gflops / 16 * 1e3);  // scalar
  return cost;
}

namespace {

// A scan along another axis than the last one: a few rows at a time, each from the one before it, which is still in the
// first cache; one line of elements after the other would touch a page for each of them.
Stmt scan_rows(const ScanProblem& problem, const Operand& input, const View& out, const KernelContext& context) {
  constexpr int64_t kBytesTogether = 16384;
  const size_t axis = problem.axis;
  const int64_t n = problem.shape[axis], width = problem.shape.back();
  const int lanes = context.target->lanes(out.dtype().bits);
  // The axes between are walked as one number.
  const std::vector<int64_t> between(problem.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1,
                                     problem.shape.end() - 1);
  const int64_t rows = product(between);
  const int64_t together =
      std::clamp<int64_t>(kBytesTogether / (width * static_cast<int64_t>(out.dtype().bytes())), 1, rows);
  std::vector<int64_t> units(problem.shape.begin(), problem.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  units.push_back(ceil_div(rows, together));
  return parallel_for(context, "unit", product(units), [&](const PrimExpr& unit) {
    return bind_all(unravel(unit, units), [&](const Index& at) {
      const PrimExpr first = at.back() * together, end = min(first + together, make_int(rows));
      auto row = [&](const PrimExpr& i, bool begins) {
        return loop("row", first, end, [&](const PrimExpr& number) {
          return bind_all(unravel(number, between), [&](const Index& middle) {
            return along_row(lanes, width, 4, [&](const PrimExpr& w, int some, const PrimExpr& mask) {
              auto index = [&](const PrimExpr& step) {
                Index place(at.begin(), at.end() - 1);
                place.push_back(problem.reverse ? make_int(n - 1) - step : step);
                place.insert(place.end(), middle.begin(), middle.end());
                place.push_back(w);
                return place;
              };
              auto value_at = [&](const Index& place) {
                const PrimExpr value = input(place, some, mask);
                return value->dtype.element() == out.dtype() ? value : cast(out.dtype().with_lanes(some), value);
              };
              const Index here = index(i);
              if (begins && problem.exclusive)
                return out.store(here, make_const(out.dtype().with_lanes(some), problem.product ? 1 : 0), mask);
              if (begins) return out.store(here, value_at(here), mask);
              const Index before = index(i - 1);
              const PrimExpr old = out.load(before, some, mask), value = value_at(problem.exclusive ? before : here);
              return out.store(here, problem.product ? old * value : old + value, mask);
            });
          });
        });
      };
      return seq({row(make_int(0), true),
                  loop("i", make_int(1), make_int(n), [&](const PrimExpr& i) { return row(i, false); })});
    });
  });
}

}  // namespace

Stmt scan(const ScanProblem& problem, const Operand& input, const View& out, const KernelContext& context) {
  if (product(problem.shape) == 0) return seq({});
  const DataType dtype = accumulator_dtype(out.dtype());
  const int64_t n = problem.shape[problem.axis];
  if (problem.axis + 1 < problem.shape.size() && dtype == out.dtype() && out.strides.back() == 1 &&
      problem.shape.back() >= context.target->lanes(dtype.bits) / 2)
    return scan_rows(problem, input, out, context);
  std::vector<int64_t> lines = problem.shape;
  lines[problem.axis] = 1;
  return each_element(lines, dtype.bits, context, [&](const Index& line) {
    Buffer acc = make_buffer("acc", dtype, 1, Scope::kRegister);
    auto step = [&](PrimExpr i) {
      Index at = line;
      at[problem.axis] = problem.reverse ? make_int(n - 1) - i : i;
      PrimExpr value = input(at, 1, {}), old = load(acc, make_int(0));
      if (value->dtype != dtype) value = cast(dtype, value);
      Stmt advance = store(acc, make_int(0), problem.product ? old * value : old + value);
      PrimExpr now = load(acc, make_int(0));
      Stmt put = out.store(at, now->dtype == out.dtype() ? now : cast(out.dtype(), now));
      return problem.exclusive ? seq({put, advance}) : seq({advance, put});
    };
    return allocate(acc,
                    seq({store(acc, make_int(0), make_const(dtype, problem.product ? 1 : 0)), loop("i", n, step)}));
  });
}

Stmt scatter(Combination how, const std::vector<int64_t>& updates_shape, const Operand& data, const Operand& updates,
             const Place& place, const View& out, const KernelContext& context, bool rows) {
  auto put = [&](const Index& at, const PrimExpr& value, const PrimExpr& mask) {
    // Masked-off lanes of the old value must not be read; they are not stored either.
    auto old = [&] { return value->dtype.lanes == 1 ? out.load(at) : out.load(at, value->dtype.lanes, mask); };
    auto extreme = [&](bool least) {
      PrimExpr held = old(), better = least ? lt(value, held) : lt(held, value);
      if (value->dtype.is_float()) better = logical_or(intrinsic(Intrinsic::k_isnan, {value}), better);
      return out.store(at, select(better, value, held), mask);
    };
    switch (how) {
      case Combination::kUpdate:
        return out.store(at, value, mask);
      case Combination::kAdd:
        return out.store(at, old() + value, mask);
      case Combination::kMul:
        return out.store(at, old() * value, mask);
      case Combination::kMin:
        return extreme(true);
      case Combination::kMax:
        return extreme(false);
    }
    return Stmt();
  };
  const int lanes = context.target->lanes(std::max<int>(how == Combination::kUpdate ? 8 : 32, out.dtype().bits));
  if (!rows) {
    Stmt copy = injective(out, data, {}, context);
    if (product(updates_shape) == 0) return copy;
    return seq({copy, nest(updates_shape, [&](const Index& u) {
                  return bind("value", updates(u, 1, {}), [&](PrimExpr value) {
                    return bind_all(place(u), [&](Index at) { return put(at, value, {}); });
                  });
                })});
  }
  // The updates' last dimension is the result's: whole vectors, row by row. Threads divide the columns, so that updates
  // of one element stay in order.
  const int64_t width = out.shape.back();
  std::vector<Stmt> body;
  body.push_back(nest({out.shape.begin(), out.shape.end() - 1}, [&](const Index& row) {
    return along_row_share(context, lanes, width, 4, [&](const PrimExpr& i, int n, const PrimExpr& mask) {
      Index at = row;
      at.push_back(i);
      return out.store(at, data(at, n, mask), mask);
    });
  }));
  if (product(updates_shape) > 0)
    body.push_back(nest({updates_shape.begin(), updates_shape.end() - 1}, [&](const Index& u) {
      Index first = u;
      first.push_back(make_int(0));
      return bind_all(place(first), [&](const Index& row) {
        return along_row_share(context, lanes, width, 4, [&](const PrimExpr& i, int n, const PrimExpr& mask) {
          Index from = u, to = row;
          from.push_back(i), to.back() = i;
          return put(to, updates(from, n, mask), mask);
        });
      });
    }));
  return seq(std::move(body));
}

}  // namespace tilewright::topi
