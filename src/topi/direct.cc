// SPDX-License-Identifier: Apache-2.0
#include "topi/direct.h"

#include <algorithm>
#include <cmath>

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
    return loop("r", extents[d], [&](const PrimExpr& i) {
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

// The elements of a tile by their indices: rows of vectors, as seen by one lane.
using Tile = std::vector<Index>;

// A part of the index space, in whole tiles or less than one.
struct Span {
  int64_t begin, end;
  int step;
};
// [0, extent) in whole steps, and the rest.
std::vector<Span> spans(int64_t extent, int64_t step, int rest) {
  const int64_t whole = extent / step * step;
  std::vector<Span> out;
  if (whole > 0) out.push_back({0, whole, static_cast<int>(step)});
  if (whole < extent) out.push_back({whole, extent, rest});
  return out;
}

// Loops over an index space, divided among threads: a row at a time if there are enough rows for all.
Stmt each_step(const std::vector<int64_t>& extents, const KernelContext& context,
               const std::function<Stmt(const Index&)>& step) {
  constexpr int64_t kEnoughRows = 64;
  std::vector<int64_t> rows(extents.begin(), extents.end() - 1);
  const bool by_row = product(rows) >= kEnoughRows;
  if (!by_row) rows = extents;
  return parallel_for(context, "tile", product(rows), [&](const PrimExpr& unit) {
    return bind_all(unravel(unit, rows), [&](const Index& at) {
      if (!by_row) return step(at);
      return loop("i", extents.back(), [&](const PrimExpr& i) {
        Index whole = at;
        whole.push_back(i);
        return step(whole);
      });
    });
  });
}

// Makes a statement run for those lanes only that a tile has.
using Within = std::function<Stmt(Stmt)>;

// Calls tile(elements, within) for tiles that cover `shape`, each result being stored by the tile that has it; the
// loops over tiles are divided among threads.
Stmt each_tile(const std::vector<int64_t>& shape, const DirectConfig& config, const KernelContext& context,
               const std::function<Stmt(const Tile&, const Within&)>& tile) {
  if (shape.empty())
    return parallel_for(context, "unit", 1, [&](const PrimExpr&) { return tile({Index()}, [](Stmt s) { return s; }); });
  const size_t last = shape.size() - 1, axis = static_cast<size_t>(config.axis);
  const auto along_rows = axis == last ? std::vector<Span>{{0, 1, 1}} : spans(shape[axis], config.rows, 1);
  const auto along_columns = spans(shape[last], int64_t{config.lanes} * config.columns, config.lanes);
  std::vector<Stmt> parts;
  for (const Span& r : along_rows)
    for (const Span& c : along_columns) {
      std::vector<Span> all;
      std::vector<int64_t> steps;
      for (size_t d = 0; d <= last; ++d) {
        all.push_back(d == last ? c : d == axis ? r : Span{0, shape[d], 1});
        steps.push_back(ceil_div(all[d].end - all[d].begin, all[d].step));
      }
      parts.push_back(each_step(steps, context, [&](Index at) {
        for (size_t d = 0; d <= last; ++d) at[d] = at[d] * all[d].step + all[d].begin;
        const PrimExpr lane = make_var("lane");
        Tile elements;
        for (int row = 0; row < r.step; ++row)
          for (int column = 0; column < c.step / config.lanes; ++column) {
            elements.push_back(at);
            if (axis != last) elements.back()[axis] = at[axis] + row;
            elements.back()[last] = at[last] + column * config.lanes + lane;
          }
        const bool whole = (c.end - c.begin) % c.step == 0;
        const Stmt body = tile(elements, [&](Stmt inner) {
          return whole ? inner : make_if(lt(elements[0][last], make_int(c.end)), std::move(inner), {});
        });
        const bool vectors = config.lanes > 1 && has_vectors(body);
        return make_for(lane, make_int(0), make_int(config.lanes), body,
                        vectors ? ForKind::kVectorized : ForKind::kSerial);
      }));
    }
  return seq(std::move(parts));
}

// One vector at a time, where rows are whole vectors.
DirectConfig element_by_element(const std::vector<int64_t>& shape, int bits, const Target& target) {
  const int64_t last = shape.empty() ? 1 : shape.back();
  int lanes = target.lanes(std::max(32, bits));
  while (lanes > 4 && last % lanes != 0) lanes /= 2;
  DirectConfig config;
  config.lanes = last % lanes == 0 ? lanes : 1;
  return config;
}

// The body of a reduction: loops around, its last ones unrolled.
Stmt reduction_nest(const std::vector<int64_t>& extents, int unrolled,
                    const std::function<std::vector<Stmt>(const Index&)>& body) {
  const size_t rolled = extents.size() - static_cast<size_t>(unrolled);
  return nest({extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(rolled)}, [&](const Index& outer) {
    std::vector<Stmt> steps;
    const std::vector<int64_t> inner(extents.begin() + static_cast<std::ptrdiff_t>(rolled), extents.end());
    for (int64_t n = 0; n < product(inner); ++n) {
      Index r = outer;
      int64_t rest = n, size = product(inner);
      for (const int64_t extent : inner) size /= extent, r.push_back(make_int(rest / size)), rest %= size;
      for (Stmt& step : body(r)) steps.push_back(std::move(step));
    }
    return seq(std::move(steps));
  });
}

constexpr int64_t kMostUnrolled = 32;  // statements of a tile's element

}  // namespace

Stmt direct_reduction(const DirectProblem& problem, const DirectConfig& config, const DirectTerm& term, const View& out,
                      const Epilogue& epilogue, const KernelContext& context) {
  if (product(problem.shape) == 0) return seq({});
  Combine combine{problem.largest ? ReduceKind::kMax : ReduceKind::kSum, problem.dtype};
  return each_tile(problem.shape, config, context, [&](const Tile& tile, const Within& within) {
    Buffer acc = make_buffer("acc", problem.dtype, static_cast<int64_t>(tile.size()), Scope::kRegister);
    std::vector<Stmt> clear, body;
    for (size_t i = 0; i < tile.size(); ++i)
      clear.push_back(store(acc, make_int(static_cast<int64_t>(i)), combine.neutral(problem.dtype)));
    if (product(problem.reduction) > 0)
      body.push_back(reduction_nest(problem.reduction, config.unroll, [&](const Index& r) {
        std::vector<Stmt> steps;
        for (size_t i = 0; i < tile.size(); ++i) {
          PrimExpr value = term(tile[i], r);
          if (value->dtype != problem.dtype) value = cast(problem.dtype, value);
          const PrimExpr slot = make_int(static_cast<int64_t>(i));
          steps.push_back(store(acc, slot, combine(load(acc, slot), value)));
        }
        return steps;
      }));
    for (size_t i = 0; i < tile.size(); ++i)
      body.push_back(out.store(tile[i], epilogue(load(acc, make_int(static_cast<int64_t>(i))), tile[i], {})));
    clear.push_back(within(seq(std::move(body))));
    return allocate(acc, seq(std::move(clear)));
  });
}

bool fits(const DirectProblem& problem, const DirectConfig& c, const Target& target) {
  const auto rank = static_cast<int>(problem.shape.size());
  if (c.lanes < 1 || c.columns < 1 || c.rows < 1 || c.axis < 0 || c.axis >= std::max(1, rank) || c.unroll < 0 ||
      c.unroll > static_cast<int>(problem.reduction.size()))
    return false;
  if (rank == 0) return c == DirectConfig{} || c.lanes * c.columns * c.rows == 1;
  if ((c.lanes & (c.lanes - 1)) != 0 || c.lanes > 2 * target.lanes(32)) return false;
  if (c.rows > 1 && (c.axis == rank - 1 || problem.shape[static_cast<size_t>(c.axis)] < c.rows)) return false;
  if (c.lanes > 1 && c.lanes / 2 >= problem.shape.back()) return false;
  if (c.columns > 1 && int64_t{c.lanes} * c.columns > problem.shape.back()) return false;
  const std::vector<int64_t> inner(problem.reduction.end() - c.unroll, problem.reduction.end());
  return product(inner) <= kMostUnrolled && product(inner) * c.columns * c.rows <= 4 * kMostUnrolled &&
         c.columns * c.rows + c.columns + 1 <= target.vector_registers;
}

Cost estimate(const DirectProblem& problem, const DirectConfig& config, const Target& target) {
  Cost cost;
  cost.flops = 2.0 * static_cast<double>(product(problem.shape)) * static_cast<double>(product(problem.reduction));
  cost.bytes = static_cast<double>(product(problem.shape)) * problem.dtype.bits / 8.0;
  // A step of a tile: each element's arithmetic and tests, and a load for each row and column; sums wait for the ones
  // before them.
  constexpr double kLatency = 4, kOperations = 4, kLoopOperations = 6;
  const double sums = static_cast<double>(config.columns) * config.rows;
  const double whole = std::max(1, target.lanes(std::max(8, static_cast<int>(problem.dtype.bits))));
  const double vectors = std::max(1.0, config.lanes / whole);
  const double loads = (config.columns + config.rows) * vectors;
  const double step =
      std::max(kLatency, (sums * kOperations * vectors + loads + (config.unroll ? 1 : kLoopOperations)) / 2);
  const auto rank = problem.shape.size();
  double tiles = 1;
  for (size_t d = 0; d + 1 < rank; ++d) tiles *= static_cast<double>(problem.shape[d]);
  double steps = 0;
  if (rank > 0) {
    const double wide = static_cast<double>(config.lanes) * config.columns;
    const auto last = static_cast<double>(problem.shape.back());
    const double wholes = std::floor(last / wide), rest = std::ceil((last - wholes * wide) / config.lanes);
    steps = wholes * step + rest * std::max(kLatency, step / config.columns * 1.5);
  } else {
    steps = step;
  }
  cost.microseconds = tiles / config.rows * steps * static_cast<double>(product(problem.reduction)) /
                      (target.machine.gflops / (2 * whole * 2) * 1e3);
  return cost;
}

namespace {

// Rows of channels share what they read of the data, and hide that each sum waits for the one before it. Masks are
// cheap where vectors are long.
DirectConfig usual_tile(const DirectProblem& problem, const Target& target) {
  constexpr int kRows = 4, kMasked = 256, kUnrolled = 7;
  DirectConfig c = element_by_element(problem.shape, problem.dtype.bits, target);
  const auto rank = static_cast<int>(problem.shape.size());
  const int whole = target.lanes(std::max<int>(32, problem.dtype.bits));
  if (rank == 0) return c;
  if (target.vector_bits >= kMasked)
    for (c.lanes = whole; c.lanes > 1 && c.lanes / 2 >= problem.shape.back();) c.lanes /= 2;
  c.axis = 1;
  for (c.rows = rank >= 3 ? kRows : 1; c.rows > 1 && problem.shape[static_cast<size_t>(c.axis)] % c.rows != 0;)
    c.rows /= 2;
  if (c.rows == 1) c.axis = 0;
  c.unroll = !problem.reduction.empty() && problem.reduction.back() <= kUnrolled ? 1 : 0;
  return fits(problem, c, target) ? c : element_by_element(problem.shape, problem.dtype.bits, target);
}

}  // namespace

std::vector<DirectConfig> configs(const DirectProblem& problem, const Target& target, size_t most) {
  std::vector<Weighed<DirectConfig>> all;
  const int rank = static_cast<int>(problem.shape.size());
  const DirectConfig guess = usual_tile(problem, target);
  for (int unroll = 0; unroll <= std::min<int>(3, static_cast<int>(problem.reduction.size())); ++unroll)
    for (int lanes = 1; lanes <= 2 * target.lanes(32); lanes *= 2)
      for (int columns = 1; columns <= 4; columns *= 2)
        for (int axis = std::max(0, rank - 4); axis < std::max(1, rank); ++axis)
          for (int rows = 1; rows <= 8; rows *= 2) {
            DirectConfig c{lanes, columns, axis, rows, unroll};
            if (rows == 1 && axis != std::max(0, rank - 4)) continue;
            if (rows == 1) c.axis = 0;
            if (fits(problem, c, target)) all.emplace_back(estimate(problem, c, target).microseconds, c);
          }
  return best_of(guess, std::move(all), most);
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

// A scan along the last axis but one of short rows: the sums so far stay in registers. Read back from the row before,
// they would wait for its stores, longer where vectors do not begin on cache lines.
constexpr int64_t kVectorsInRegisters = 8;

Stmt scan_short_rows(const ScanProblem& problem, const Operand& input, const View& out, const KernelContext& context) {
  const int64_t n = problem.shape[problem.axis], width = problem.shape.back();
  const DataType dtype = out.dtype();
  const int lanes = context.target->lanes(dtype.bits);
  const std::vector<int64_t> units(problem.shape.begin(), problem.shape.end() - 2);
  const DataType vector = dtype.with_lanes(lanes);
  return parallel_for(context, "unit", product(units), [&](const PrimExpr& unit) {
    return bind_all(unravel(unit, units), [&](const Index& at) {
      Buffer acc = make_buffer("acc", vector, ceil_div(width, lanes), Scope::kRegister);
      auto row = [&](const PrimExpr& i, bool begins) {
        std::vector<Stmt> stmts;
        for (int64_t w = 0; w < width; w += lanes) {
          const PrimExpr slot = make_int(w / lanes),
                         mask = width - w < lanes ? tail_mask(lanes, width - w) : PrimExpr();
          Index here = at;
          here.push_back(problem.reverse ? make_int(n - 1) - i : i);
          here.push_back(make_int(w));
          PrimExpr value = input(here, lanes, mask);
          if (value->dtype != vector) value = cast(vector, value);
          const PrimExpr old = begins ? make_const(vector, problem.product ? 1 : 0) : load(acc, slot);
          if (problem.exclusive) stmts.push_back(out.store(here, old, mask));
          const PrimExpr sum = problem.product ? old * value : old + value;
          stmts.push_back(store(acc, slot, begins && !problem.exclusive ? value : sum));
          if (!problem.exclusive) stmts.push_back(out.store(here, load(acc, slot), mask));
        }
        return seq(std::move(stmts));
      };
      return allocate(acc, seq({row(make_int(0), true), loop("i", make_int(1), make_int(n),
                                                             [&](const PrimExpr& i) { return row(i, false); })}));
    });
  });
}

}  // namespace

Stmt scan(const ScanProblem& problem, const Operand& input, const View& out, const KernelContext& context) {
  if (product(problem.shape) == 0) return seq({});
  const DataType dtype = accumulator_dtype(out.dtype());
  const int64_t n = problem.shape[problem.axis];
  if (problem.axis + 1 < problem.shape.size() && dtype == out.dtype() && out.strides.back() == 1 &&
      problem.shape.back() >= context.target->lanes(dtype.bits) / 2) {
    const bool short_rows = problem.shape.back() <= kVectorsInRegisters * context.target->lanes(dtype.bits);
    return problem.axis + 2 == problem.shape.size() && short_rows ? scan_short_rows(problem, input, out, context)
                                                                  : scan_rows(problem, input, out, context);
  }
  std::vector<int64_t> lines = problem.shape;
  lines[problem.axis] = 1;
  return each_tile(
      lines, element_by_element(lines, dtype.bits, *context.target), context, [&](const Tile& tile, const Within&) {
        const Index& line = tile.front();
        Buffer acc = make_buffer("acc", dtype, 1, Scope::kRegister);
        auto step = [&](const PrimExpr& i) {
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
                    return bind_all(place(u), [&](const Index& at) { return put(at, value, {}); });
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
