// SPDX-License-Identifier: Apache-2.0
// Softmax and layer normalisation.
#include <algorithm>
#include <limits>

#include "topi/reduce.h"
#include "topi/reduce_steps.h"
#include "topi/register_tile.h"

namespace tilewright::topi {

using namespace tir;

namespace {

// Rows up to this size are kept on the stack between passes, those of softmax up to about half a second cache in
// scratch memory; longer ones are recomputed.
constexpr int64_t kMaxRowBytes = 64 << 10, kMaxScratchRowBytes = 512 << 10;

PrimExpr as_float32(PrimExpr value) { return cast(kFloat32, std::move(value)); }

// Of what lies below the largest.
PrimExpr exp_of(PrimExpr x) { return intrinsic(Intrinsic::k_exp_nonpositive, {std::move(x)}); }

// The load of which an operand's value consists, if it is one.
const LoadNode* plain_load(const PrimExpr& value) {
  return value->kind == ExprKind::kLoad && as<LoadNode>(value)->buffer->scope == Scope::kGlobal ? as<LoadNode>(value)
                                                                                                : nullptr;
}

// Softmax along an axis that is not the last: each lane has its own maximum and sum.
Stmt softmax_inner(const SoftmaxProblem& p, int axis, const Operand& input, const View& out, const Epilogue& epilogue,
                   const KernelContext& context) {
  const int rank = static_cast<int>(p.shape.size());
  int lanes = context.target->lanes(p.dtype.bits);
  if (p.shape.back() < lanes / 2) lanes = 1;
  const int64_t vectors = ceil_div(p.shape.back(), lanes), rest = p.shape.back() - (vectors - 1) * lanes;
  std::vector<int64_t> units = p.shape;
  units[axis] = 1;
  units.back() = vectors;
  const DataType vector = p.dtype.with_lanes(lanes);
  Buffer top = make_buffer("top", vector, 1, Scope::kRegister), sum = make_buffer("sum", vector, 1, Scope::kRegister);
  const PrimExpr zero = make_int(0);
  auto columns = [&](Index index, const PrimExpr& mask) {
    auto value = [&](const PrimExpr& i) {
      index[axis] = i;
      return cast(p.dtype, input(index, lanes, mask));
    };
    auto each = [&](const std::function<Stmt(PrimExpr)>& body) { return loop("i", p.shape[axis], body); };
    return allocate(
        top, allocate(sum, seq({store(top, zero, make_const(vector, -std::numeric_limits<double>::infinity())),
                                each([&](PrimExpr i) { return store(top, zero, max(load(top, zero), value(i))); }),
                                store(sum, zero, make_const(vector, 0)), each([&](PrimExpr i) {
                                  return store(sum, zero, load(sum, zero) + exp_of(value(i) - load(top, zero)));
                                }),
                                store(sum, zero,
                                      p.logarithm ? load(top, zero) + intrinsic(Intrinsic::k_log, {load(sum, zero)})
                                                  : div(make_const(vector, 1), load(sum, zero))),
                                each([&](PrimExpr i) {
                                  PrimExpr x = value(i);
                                  PrimExpr y =
                                      p.logarithm ? x - load(sum, zero) : exp_of(x - load(top, zero)) * load(sum, zero);
                                  return out.store(index, epilogue(y, index, mask), mask);
                                })})));
  };
  return parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
    return bind_all(unravel(unit, units), [&](Index index) {
      PrimExpr number = index[rank - 1];
      index[rank - 1] = number * int64_t{lanes};
      PrimExpr mask = tail_mask(lanes, rest);
      if (!mask) return columns(index, {});
      if (vectors == 1) return columns(index, mask);
      return make_if(eq(number, make_int(vectors - 1)), columns(index, mask), columns(index, {}));
    });
  });
}

}  // namespace

int64_t softmax_scratch_bytes(const SoftmaxProblem& p) {
  const int rank = static_cast<int>(p.shape.size());
  if ((p.axis < 0 ? p.axis + rank : p.axis) != rank - 1) return 0;
  const int64_t bytes = p.shape.back() * static_cast<int64_t>(p.dtype.bytes());
  return bytes > kMaxRowBytes && bytes <= kMaxScratchRowBytes ? bytes : 0;
}

Stmt softmax(const SoftmaxProblem& p, const Operand& input, const View& out, const Epilogue& epilogue,
             const KernelContext& context) {
  const int rank = static_cast<int>(p.shape.size()), axis = p.axis < 0 ? p.axis + rank : p.axis;
  if (axis != rank - 1) return softmax_inner(p, axis, input, out, epilogue, context);
  const int64_t extent = p.shape.back();
  const int lanes = context.target->lanes(p.dtype.bits);
  const bool on_stack = extent * static_cast<int64_t>(p.dtype.bytes()) <= kMaxRowBytes;
  const bool keeps_row = on_stack || context.scratch;
  const bool far = product(p.shape) * static_cast<int64_t>(p.dtype.bytes()) > context.target->machine.l2_bytes;
  const Buffer row = on_stack ? make_buffer("row", p.dtype, extent, Scope::kStack, 64) : context.scratch;
  auto in_row = [&](const PrimExpr& i, int n) { return n == 1 ? i : ramp(i, 1, n); };
  std::vector<int64_t> units(p.shape.begin(), p.shape.end() - 1);
  Stmt rows = parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
    return bind_all(unravel(unit, units), [&](Index outer) {
      auto value = [&](const PrimExpr& i, int n, const PrimExpr& mask) {
        Index index = outer;
        index.push_back(i);
        return cast(p.dtype, input(index, n, mask));
      };
      RowReduction largest({ReduceKind::kMax, p.dtype}, lanes, extent),
          total({ReduceKind::kSum, p.dtype}, lanes, extent, context.target->vector_bits == 256);
      // Pass 1 stores the operand's values where they are computed, pass 2 their exponentials.
      const bool computed = keeps_row && !plain_load(value(make_int(0), 1, {}));
      auto keep = [&](PrimExpr i, PrimExpr x, const PrimExpr& mask) {
        return keeps_row ? store(row, in_row(i, x->dtype.lanes), x, mask) : seq({});
      };
      auto kept = [&](const PrimExpr& i, int n, const PrimExpr& mask) {
        return computed ? load(row, in_row(i, n), mask) : value(i, n, mask);
      };
      // Where rows come from memory, pass 2, which otherwise only computes, asks for the next one.
      auto keep_and_fetch = [&](const PrimExpr& i, const PrimExpr& x, const PrimExpr& mask) {
        const PrimExpr first = value(i, 1, {});
        const LoadNode* from = far ? plain_load(first) : nullptr;
        Stmt put = p.logarithm ? seq({}) : keep(i, x, mask);
        if (!from) return put;
        std::vector<Stmt> all{put};
        const int bytes = x->dtype.lanes * p.dtype.bytes(), line = 64;
        for (int at = 0; at < bytes; at += line)
          all.push_back(prefetch(from->buffer, from->index + (extent + at / p.dtype.bytes())));
        return seq(std::move(all));
      };
      Stmt pass1 = seq({largest.clear(), computed ? largest.accumulate(value, keep) : largest.accumulate(value)});
      return largest.scope(
          seq({pass1, bind("top", largest.result(), [&](PrimExpr top) {
                 auto shifted = [&](const PrimExpr& i, int n, const PrimExpr& mask) {
                   return exp_of(kept(i, n, mask) - broadcast(top, n));
                 };
                 Stmt pass2 = seq({total.clear(), total.accumulate(shifted, keep_and_fetch)});
                 return total.scope(
                     seq({pass2, bind("sum", total.result(), [&](PrimExpr sum) {
                            PrimExpr scale = p.logarithm ? top + intrinsic(Intrinsic::k_log, {sum})
                                                         : div(make_const(p.dtype, 1), sum);
                            return bind("scale", scale, [&](PrimExpr scale) {
                              return along_row(lanes, extent, 4, [&](PrimExpr i, int n, const PrimExpr& mask) {
                                Index index = outer;
                                index.push_back(i);
                                PrimExpr y = p.logarithm ? kept(i, n, mask) - broadcast(scale, n)
                                             : keeps_row ? load(row, in_row(i, n), mask) * broadcast(scale, n)
                                                         : shifted(i, n, mask) * broadcast(scale, n);
                                return out.store(index, epilogue(y, index, mask), mask);
                              });
                            });
                          })}));
               })}));
    });
  });
  return on_stack ? allocate(row, rows) : rows;
}

Stmt layer_norm(const LayerNormProblem& p, const Operand& input, const View& out, const Epilogue& epilogue,
                const KernelContext& context) {
  const auto row_begins = p.shape.end() - p.row_rank;
  const int64_t width = p.shape.back(), extent = product({row_begins, p.shape.end()});
  const int lanes = context.target->lanes(32);
  // What can be read again as it is needs no copy.
  const bool computed = !plain_load(as_float32(input(Index(p.shape.size(), make_int(0)), 1, {})));
  const bool keeps_row = computed && extent * 4 <= kMaxRowBytes;
  Buffer row = keeps_row ? make_buffer("row", kFloat32, extent, Scope::kStack, 64) : Buffer();
  std::vector<int64_t> units(p.shape.begin(), row_begins);
  const PrimExpr count = make_float(static_cast<double>(extent));
  Stmt rows = parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
    return bind_all(unravel(unit, units), [&](Index outer) {
      // A line of the row: its index but for the last dimension, and how many elements of the row precede it.
      using OfLine = std::function<Stmt(const Index& line, const PrimExpr& first)>;
      std::function<Stmt(const Index&, const PrimExpr&, const OfLine&)> each_line =
          [&](const Index& line, const PrimExpr& number, const OfLine& body) -> Stmt {
        const size_t d = line.size();
        if (d + 1 == p.shape.size()) return body(line, number * width);
        return loop("line", p.shape[d], [&](const PrimExpr& i) {
          Index next = line;
          next.push_back(i);
          return each_line(next, number * p.shape[d] + i, body);
        });
      };
      auto lines = [&](const OfLine& body) { return each_line(outer, make_int(0), body); };
      auto value = [&](const Index& line, const PrimExpr& i, int n, const PrimExpr& mask) {
        Index index = line;
        index.push_back(i);
        return as_float32(input(index, n, mask));
      };
      auto place = [&](const PrimExpr& i, int n) { return n == 1 ? i : ramp(i, 1, n); };
      auto kept = [&](const Index& line, const PrimExpr& first, const PrimExpr& i, int n, const PrimExpr& mask) {
        return keeps_row ? load(row, place(first + i, n), mask) : value(line, i, n, mask);
      };
      // Adds up f of the row's elements, read for the first time or again.
      auto add_up = [&](const RowReduction& sum, bool first_time, const std::function<PrimExpr(PrimExpr)>& f) {
        return lines([&](const Index& line, const PrimExpr& first) {
          auto keep = [&](const PrimExpr& i, const PrimExpr& x, const PrimExpr& mask) {
            return keeps_row && first_time ? store(row, place(first + i, x->dtype.lanes), x, mask) : seq({});
          };
          return sum.accumulate(
              [&](const PrimExpr& i, int n, const PrimExpr& mask) {
                return f(first_time ? value(line, i, n, mask) : kept(line, first, i, n, mask));
              },
              keep);
        });
      };
      // The variance is summed around the mean: a sum of squares would cancel when the mean is large.
      auto normalise = [&](const PrimExpr& mean, const PrimExpr& mean_square) {
        PrimExpr scale = div(make_float(1), intrinsic(Intrinsic::k_sqrt, {mean_square + make_float(p.epsilon)}));
        return bind("scale", scale, [&](PrimExpr scale) {
          return lines([&](const Index& line, const PrimExpr& first) {
            return along_row(lanes, width, 4, [&](PrimExpr i, int n, const PrimExpr& mask) {
              PrimExpr x = kept(line, first, i, n, mask);
              if (mean) x = x - broadcast(mean, n);
              Index index = line;
              index.push_back(i);
              return out.store(index, epilogue(x * broadcast(scale, n), index, mask), mask);
            });
          });
        });
      };
      RowReduction sum({ReduceKind::kSum, kFloat32}, lanes, width), squares({ReduceKind::kSum, kFloat32}, lanes, width);
      if (p.rms) {
        Stmt fill = keeps_row ? lines([&](const Index& line, const PrimExpr& first) {
          return along_row(lanes, width, 4, [&](const PrimExpr& i, int n, const PrimExpr& mask) {
            return store(row, place(first + i, n), value(line, i, n, mask), mask);
          });
        })
                              : seq({});
        Stmt pass = seq({squares.clear(), add_up(squares, false, [](const PrimExpr& x) { return x * x; })});
        return squares.scope(seq({fill, pass, bind("mean_square", div(squares.result(), count), [&](PrimExpr m) {
                                    return normalise({}, m);
                                  })}));
      }
      Stmt pass1 = seq({sum.clear(), add_up(sum, true, [](const PrimExpr& x) { return x; })});
      return sum.scope(seq({pass1, bind("mean", div(sum.result(), count), [&](PrimExpr mean) {
                              auto square = [&](const PrimExpr& x) {
                                const PrimExpr centred = x - broadcast(mean, x->dtype.lanes);
                                return centred * centred;
                              };
                              Stmt pass2 = seq({squares.clear(), add_up(squares, false, square)});
                              return squares.scope(
                                  seq({pass2, bind("variance", div(squares.result(), count),
                                                   [&](PrimExpr variance) { return normalise(mean, variance); })}));
                            })}));
    });
  });
  return keeps_row ? allocate(row, rows) : rows;
}

Cost estimate(const SoftmaxProblem& p, const Target& target) {
  Cost cost;
  double elements = static_cast<double>(product(p.shape));
  cost.flops = elements * 12;
  cost.bytes = elements * 8;
  cost.microseconds = elements * 0.35e-3 * 512 / std::max(128, target.vector_bits);
  return cost;
}

Cost estimate(const LayerNormProblem& p, const Target& target) {
  Cost cost;
  double elements = static_cast<double>(product(p.shape));
  cost.flops = elements * 8;
  cost.bytes = elements * 8;
  cost.microseconds = elements * 0.2e-3 * 512 / std::max(128, target.vector_bits);
  return cost;
}

}  // namespace tilewright::topi
