// SPDX-License-Identifier: Apache-2.0
#include "topi/sparse.h"

#include <algorithm>
#include <utility>

#include "topi/injective.h"
#include "topi/register_tile.h"
#include "topi/transpose.h"

namespace tilewright::topi {

using namespace tir;

namespace {

// Larger transposed rows would evict the weights from the L2 cache.
constexpr int64_t kMostTurnedBytes = 512 << 10;
// Fewer rows than this are read in place.
constexpr int64_t kFewRows = 4;

PrimExpr clamped(const PrimExpr& value, int64_t last) {
  return max(min(value->dtype == kInt64 ? value : cast(kInt64, value), make_int(last)), make_int(0));
}

// for e in the elements of a row: body(begin, end)
Stmt with_row(const Operand& starts, const PrimExpr& row, int64_t count,
              const std::function<Stmt(PrimExpr, PrimExpr)>& body) {
  return bind("begin", clamped(starts({row}, 1, {}), count), [&](PrimExpr begin) {
    return bind("end", clamped(starts({row + 1}, 1, {}), count),
                [&](PrimExpr end) { return body(begin, std::move(end)); });
  });
}
Stmt each_of_row(const Operand& starts, const PrimExpr& row, int64_t count, const std::function<Stmt(PrimExpr)>& body) {
  return with_row(starts, row, count,
                  [&](PrimExpr begin, PrimExpr end) { return loop("e", std::move(begin), std::move(end), body); });
}

class Product {
 public:
  Product(const SparseProblem& problem, const SparseConfig& config, const View& data, const View& values,
          const Operand& indices, const Operand& starts, const View& out, const Epilogue& epilogue,
          const KernelContext& context)
      : p_(problem),
        c_(config),
        data_(data),
        values_(values),
        indices_(indices),
        starts_(starts),
        out_(out),
        epilogue_(epilogue),
        context_(context) {}

  // Whole groups of rows, then the remainder. Threads divide the groups if there are enough, else the block rows within
  // each.
  Stmt stmt() const {
    const int64_t groups = p_.m / c_.rows, left = p_.m % c_.rows;
    auto group = [&](const PrimExpr& first, int64_t rows, bool divided) {
      std::vector<Stmt> body;
      if (c_.turned) body.push_back(turn(first, rows));
      auto under = [&](const PrimExpr& row) { return row_of_blocks(first, rows, row); };
      body.push_back(divided ? parallel_for(context_, "row", p_.down, under) : loop("row", p_.down, under));
      return seq(std::move(body));
    };
    constexpr int64_t kEnough = 16;
    std::vector<Stmt> body;
    const bool by_group = groups >= kEnough;
    auto whole = [&](const PrimExpr& i) { return group(i * c_.rows, c_.rows, !by_group); };
    if (groups > 0)
      body.push_back(by_group ? parallel_for(context_, "group", groups, whole) : loop("group", groups, whole));
    if (left > 0) body.push_back(group(make_int(groups * c_.rows), left, true));
    return seq(std::move(body));
  }

 private:
  PrimExpr element(const PrimExpr& first, int64_t r, const PrimExpr& column) const {
    if (c_.turned) return load(context_.scratch, column * c_.rows + r);
    return converted(data_.load({first + r, column}));
  }
  PrimExpr converted(const PrimExpr& value) const {
    return value->dtype.element() == p_.dtype ? value : cast(p_.dtype.with_lanes(value->dtype.lanes), value);
  }

  // Transposes: scratch[column * rows + r] = data[first + r, column].
  Stmt turn(const PrimExpr& first, int64_t rows) const {
    std::vector<Stmt> body;
    const int64_t v = c_.rows, whole = rows == v ? p_.k / v * v : 0;
    if (whole > 0)
      body.push_back(loop("block", whole / v, [&](PrimExpr block) {
        return transpose_tile(
            p_.dtype, static_cast<int>(v),
            [&](int r) {
              return data_.load({first + r, block * v}, static_cast<int>(v));
            },
            [&](int column, PrimExpr value) {
              return store(context_.scratch, ramp((block * v + column) * v, 1, static_cast<int>(v)), std::move(value));
            });
      }));
    if (whole < p_.k)
      body.push_back(loop("column", make_int(whole), make_int(p_.k), [&](const PrimExpr& column) {
        std::vector<Stmt> copies;
        for (int64_t r = 0; r < rows; ++r)
          copies.push_back(store(context_.scratch, column * v + r, data_.load({first + r, column})));
        return seq(std::move(copies));
      }));
    return seq(std::move(body));
  }

  Stmt row_of_blocks(const PrimExpr& first, int64_t rows, const PrimExpr& row) const {
    if (c_.form == SparseForm::kAlongBlocks) {
      std::vector<Stmt> body;
      const int64_t vectors = p_.block_rows / c_.lanes;
      for (int64_t v = 0; v < vectors; v += c_.columns)
        body.push_back(along_blocks(first, rows, row, v, static_cast<int>(std::min<int64_t>(c_.columns, vectors - v))));
      return seq(std::move(body));
    }
    if (c_.form == SparseForm::kAlongData && rows == c_.rows) return along_data(first, row);
    return one_by_one(first, rows, row);
  }

  // The blocks of a row: `chains` at a time with separate sums, then the remainder in the first chain.
  Stmt blocks_of(const PrimExpr& row, int chains, const std::function<Stmt(PrimExpr, int)>& block) const {
    return with_row(starts_, row, p_.blocks, [&](PrimExpr begin, PrimExpr end) {
      if (chains == 1) return loop("e", begin, end, [&](PrimExpr e) { return block(std::move(e), 0); });
      return bind("turns", floordiv(max(end - begin, make_int(0)), chains), [&](const PrimExpr& turns) {
        std::vector<Stmt> body{loop("turn", make_int(0), turns, [&](const PrimExpr& turn) {
          std::vector<Stmt> several;
          for (int i = 0; i < chains; ++i)
            several.push_back(bind("e", min(begin + turn * chains + i, make_int(p_.blocks - 1)),
                                   [&](const PrimExpr& e) { return block(e, i); }));
          return seq(std::move(several));
        })};
        body.push_back(bind("rest", min(begin + turns * chains, make_int(p_.blocks)), [&](PrimExpr rest) {
          return loop("e", std::move(rest), end, [&](PrimExpr e) { return block(std::move(e), 0); });
        }));
        return seq(std::move(body));
      });
    });
  }

  PrimExpr column_of(const PrimExpr& e) const {
    PrimExpr at = clamped(indices_({e}, 1, {}), p_.k / p_.block_columns - 1);
    return p_.block_columns == 1 ? at : at * p_.block_columns;
  }

  Stmt along_blocks(const PrimExpr& first, int64_t rows, const PrimExpr& row, int64_t vector, int columns) const {
    const int chains = c_.chains;
    RegisterTile tile(static_cast<int>(rows), columns * chains, p_.dtype.with_lanes(c_.lanes));
    std::vector<Stmt> body{tile.clear()};
    body.push_back(blocks_of(row, chains, [&](PrimExpr e, int chain) {
      return bind("column", column_of(e), [&](PrimExpr column) {
        std::vector<Stmt> steps;
        for (int64_t i = 0; i < p_.block_columns; ++i)
          for (int c = 0; c < columns; ++c)
            steps.push_back(bind("w", values_.load({e, make_int(i), make_int((vector + c) * c_.lanes)}, c_.lanes),
                                 [&](const PrimExpr& w) {
                                   return tile.update(
                                       chain * columns + c, [&](int r) { return element(first, r, column + i); }, w);
                                 }));
        return seq(std::move(steps));
      });
    }));
    // Adds the chains' sums in order.
    std::vector<std::vector<PrimExpr>> sums(static_cast<size_t>(rows), std::vector<PrimExpr>(columns));
    tile.drain([&](int r, int c, const PrimExpr& value) {
      PrimExpr& sum = sums[static_cast<size_t>(r)][static_cast<size_t>(c % columns)];
      sum = sum ? sum + value : value;
      return seq({});
    });
    for (int64_t r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) {
        const Index at{first + r, row * p_.block_rows + (vector + c) * c_.lanes};
        body.push_back(out_.store(at, epilogue_(sums[static_cast<size_t>(r)][static_cast<size_t>(c)], at, {})));
      }
    return tile.scope(seq(std::move(body)));
  }

  Stmt along_data(const PrimExpr& first, const PrimExpr& row) const {
    const DataType vector = p_.dtype.with_lanes(c_.lanes);
    const int chains = c_.chains;
    std::vector<Stmt> body;
    for (int64_t j = 0; j < p_.block_rows; ++j) {
      Buffer acc = make_buffer("acc", vector, chains, Scope::kRegister);
      std::vector<Stmt> one;
      for (int i = 0; i < chains; ++i) one.push_back(store(acc, make_int(i), make_const(vector, 0)));
      one.push_back(blocks_of(row, chains, [&](PrimExpr e, int chain) {
        return bind("column", column_of(e), [&](const PrimExpr& column) {
          std::vector<Stmt> steps;
          for (int64_t i = 0; i < p_.block_columns; ++i) {
            PrimExpr w = broadcast(values_.load({e, make_int(i), make_int(j)}), c_.lanes);
            PrimExpr x = load(context_.scratch, ramp((column + i) * c_.rows, 1, c_.lanes));
            steps.push_back(store(acc, make_int(chain), multiply_add(x, w, load(acc, make_int(chain)))));
          }
          return seq(std::move(steps));
        });
      }));
      PrimExpr sum = load(acc, make_int(0));
      for (int i = 1; i < chains; ++i) sum = sum + load(acc, make_int(i));
      // The sums run down the rows of the result, so they are stored one by one.
      const PrimExpr named = make_var("sums", vector);
      std::vector<Stmt> stores;
      for (int r = 0; r < c_.lanes; ++r) {
        const Index at{first + r, row * p_.block_rows + j};
        stores.push_back(out_.store(at, epilogue_(shuffle({named}, {r}), at, {})));
      }
      one.push_back(let_stmt(named, sum, seq(std::move(stores))));
      body.push_back(allocate(acc, seq(std::move(one))));
    }
    return seq(std::move(body));
  }

  Stmt one_by_one(const PrimExpr& first, int64_t rows, const PrimExpr& row) const {
    const int chains = c_.chains;
    auto element_of = [&](const PrimExpr& r, const PrimExpr& j) {
      Buffer acc = make_buffer("acc", p_.dtype, chains, Scope::kRegister);
      std::vector<Stmt> body;
      for (int i = 0; i < chains; ++i) body.push_back(store(acc, make_int(i), make_const(p_.dtype, 0)));
      body.push_back(blocks_of(row, chains, [&](PrimExpr e, int chain) {
        return bind("column", column_of(e), [&](PrimExpr column) {
          return loop("i", p_.block_columns, [&](const PrimExpr& i) {
            PrimExpr x = c_.turned ? load(context_.scratch, (column + i) * c_.rows + r)
                                   : converted(data_.load({first + r, column + i}));
            return store(acc, make_int(chain),
                         multiply_add(x, converted(values_.load({e, i, j})), load(acc, make_int(chain))));
          });
        });
      }));
      PrimExpr sum = load(acc, make_int(0));
      for (int i = 1; i < chains; ++i) sum = sum + load(acc, make_int(i));
      const Index at{first + r, row * p_.block_rows + j};
      body.push_back(out_.store(at, epilogue_(sum, at, {})));
      return allocate(acc, seq(std::move(body)));
    };
    return loop("r", rows, [&](PrimExpr r) {
      return loop("j", p_.block_rows, [&](const PrimExpr& j) { return element_of(r, j); });
    });
  }

  const SparseProblem& p_;
  const SparseConfig& c_;
  const View &data_, &values_;
  const Operand &indices_, &starts_;
  const View& out_;
  const Epilogue& epilogue_;
  const KernelContext& context_;
};

bool is_empty(const SparseProblem& p) { return p.blocks == 0 || p.k < p.block_columns; }

}  // namespace

SparseConfig sparse_config(const SparseProblem& p, const Target& target) {
  SparseConfig scalar;
  scalar.chains = 4;
  if (p.dtype != kFloat32 || is_empty(p)) return scalar;
  SparseConfig c;
  const int widest = target.lanes(32);
  c.rows = static_cast<int>(std::min<int64_t>(p.m, widest));
  c.turned = c.rows == widest && c.rows * p.k * 4 <= kMostTurnedBytes;
  for (int lanes = widest; lanes >= 4; lanes /= 2)
    if (p.block_rows % lanes == 0) {
      c.form = SparseForm::kAlongBlocks;
      c.lanes = lanes;
      if (!c.turned) c.rows = static_cast<int>(std::min<int64_t>(p.m, 2 * kFewRows));
      const int64_t vectors = p.block_rows / lanes;
      while (c.columns * 2 <= vectors && tile_fits(c.rows, c.columns * 2, target)) c.columns *= 2;
      while (c.rows * c.columns * c.chains < 4 && tile_fits(c.rows, c.columns * c.chains * 2, target)) c.chains *= 2;
      return c;
    }
  if (!c.turned) return scalar;
  c.form = SparseForm::kAlongData;
  c.lanes = widest;
  c.chains = 4;
  return c;
}

Cost estimate(const SparseProblem& p, const SparseConfig& c, const Target& target) {
  Cost cost;
  const double elements = static_cast<double>(p.blocks * p.block_rows * p.block_columns);
  cost.flops = 2.0 * static_cast<double>(p.m) * elements;
  cost.bytes = 4.0 * (elements + static_cast<double>(p.m * (p.k + p.n())));
  // A step is bound by its multiply-adds, which wait for each other if there are few.
  const double per_cycle = target.machine.fmas_per_cycle(target.vector_bits);
  double cycles = cost.flops / 2 * 1.3;  // scalar: per element its loads and the clamping of its column
  if (c.form != SparseForm::kScalar) {
    const double at_once = c.form == SparseForm::kAlongBlocks ? c.rows * c.columns * c.chains : c.chains;
    cycles = cost.flops / 2 / c.lanes / std::min(per_cycle, at_once / 4);
    if (c.turned) cycles += 0.3 * static_cast<double>(p.m * p.k);
  }
  cost.microseconds = overlapped_microseconds(cycles, cost.bytes, target.machine.l2_gbps, target.machine);
  return cost;
}

int64_t sparse_scratch_bytes(const SparseProblem& p, const SparseConfig& c) { return c.turned ? c.rows * p.k * 4 : 0; }

Stmt sparse_product(const SparseProblem& problem, const SparseConfig& config, const View& data, const View& values,
                    const Operand& indices, const Operand& starts, const View& out, const Epilogue& epilogue,
                    const KernelContext& context) {
  if (problem.m == 0 || problem.n() == 0) return seq({});
  if (is_empty(problem))
    return injective(
        out,
        [&](const Index& at, int lanes, const PrimExpr& mask) {
          return epilogue(make_const(problem.dtype.with_lanes(lanes), 0), at, mask);
        },
        {}, context);
  return Product(problem, config, data, values, indices, starts, out, epilogue, context).stmt();
}

Stmt sparse_add(const View& out, int64_t count, const Operand& data, const Operand& values, const Operand& indices,
                const Operand& starts, const KernelContext& context) {
  const int64_t m = out.shape[0], n = out.shape[1];
  if (m == 0 || n == 0) return seq({});
  return parallel_for(context, "row", m, [&](PrimExpr row) {
    std::vector<Stmt> body{loop("column", n, [&](const PrimExpr& column) {
      return out.store({row, column}, data({row, column}, 1, {}));
    })};
    if (count > 0)
      body.push_back(each_of_row(starts, row, count, [&](PrimExpr e) {
        return bind("column", clamped(indices({e}, 1, {}), n - 1), [&](const PrimExpr& column) {
          return out.store({row, column}, out.load({row, column}) + values({e}, 1, {}));
        });
      }));
    return seq(std::move(body));
  });
}

Stmt sparse_transpose(int64_t rows, int64_t count, const Operand& values, const Operand& indices, const Operand& starts,
                      const View& out_values, const View& out_rows, const View& out_starts) {
  const DataType index = out_starts.dtype();
  auto number = [&](int64_t v) { return make_int(v, index); };
  auto zero_fill = [&](const View& view, int64_t n) {
    return loop("i", n, [&](PrimExpr i) { return view.store({std::move(i)}, make_const(view.dtype(), 0)); });
  };
  auto place = [&](const PrimExpr& column) { return out_starts.load({column}); };
  auto each = [&](const std::function<Stmt(PrimExpr row, PrimExpr e, PrimExpr column)>& use) {
    return loop("row", rows, [&](PrimExpr row) {
      return each_of_row(starts, row, count, [&](PrimExpr e) {
        return bind("column", clamped(indices({e}, 1, {}), rows - 1),
                    [&](PrimExpr column) { return use(row, e, std::move(column)); });
      });
    });
  };
  std::vector<Stmt> body{zero_fill(out_values, count), zero_fill(out_rows, count), zero_fill(out_starts, rows + 1)};
  if (rows > 0 && count > 0) {
    // Counts the elements of each column, one place further; prefix sums then give the columns' starts.
    body.push_back(each([&](const PrimExpr&, const PrimExpr&, const PrimExpr& column) {
      return out_starts.store({column}, place(column) + number(1));
    }));
    Buffer sum = make_buffer("sum", index, 1, Scope::kRegister);
    body.push_back(allocate(sum, seq({store(sum, make_int(0), number(0)), loop("column", rows, [&](PrimExpr column) {
                                        return bind("own", place(column), [&](const PrimExpr& own) {
                                          return seq({out_starts.store({column}, load(sum, make_int(0))),
                                                      store(sum, make_int(0), load(sum, make_int(0)) + own)});
                                        });
                                      })})));
    body.push_back(each([&](const PrimExpr& row, const PrimExpr& e, const PrimExpr& column) {
      return bind("to", clamped(place(column), count - 1), [&](const PrimExpr& to) {
        return seq({out_values.store({to}, values({e}, 1, {})),
                    out_rows.store({to}, out_rows.dtype() == kInt64 ? row : cast(out_rows.dtype(), row)),
                    out_starts.store({column}, place(column) + number(1))});
      });
    }));
    // Each entry now holds the start of the next column: shift back.
    body.push_back(loop("i", rows, [&](const PrimExpr& i) {
      PrimExpr column = make_int(rows - 1) - i;
      return out_starts.store({column},
                              intrinsic(Intrinsic::k_if_then_else,
                                        {lt(make_int(0), column), place(max(column - 1, make_int(0))), number(0)}));
    }));
  }
  body.push_back(out_starts.store({make_int(rows)}, number(count)));
  return seq(std::move(body));
}

}  // namespace tilewright::topi
