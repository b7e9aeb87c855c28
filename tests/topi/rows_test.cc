// SPDX-License-Identifier: Apache-2.0
// Element-wise maps, reductions, softmax and layer normalisation against plain loops.
#include <limits>
#include <map>
#include <memory>

#include "base/tensor.h"
#include "harness.h"
#include "topi/injective.h"
#include "topi/reduce.h"
#include "topi/transpose.h"

namespace tilewright::topi::testing {
namespace {

using Shape = std::vector<int64_t>;

View input_view(const Shape& shape) {
  return make_view(tir::make_buffer("in", kFloat32, product(shape), tir::Scope::kGlobal, 4, true), shape);
}
View output_view(const Shape& shape, DataType dtype = kFloat32) {
  return make_view(tir::make_buffer("out", dtype, product(shape), tir::Scope::kGlobal, 4), shape);
}

struct Check {
  std::string name;
  View in, out;
  int kernel;
  std::function<double(const Memory&, const Shape&)> expected;
};

void run_checks(KernelSet& set, std::vector<Check>& checks) {
  set.build();
  for (Check& c : checks) {
    Memory in(c.in.buffer->size), first(c.out.buffer->size * 2, 99);
    in.randomize(11);
    for (int threads : {1, 3}) {
      Memory out(c.out.buffer->size * 2, 99);  // room for 8-byte elements
      set.run(c.kernel, {in.data(), out.data()}, threads);
      ASSERT_TRUE(out.intact()) << c.name;
      if (threads > 1) {
        ASSERT_EQ(std::memcmp(out.data(), first.data(), out.size() * 4), 0) << "depends on threads: " << c.name;
        continue;
      }
      std::memcpy(first.data(), out.data(), out.size() * 4);
      for_each_index(c.out.shape, [&](const Shape& i) {
        int64_t at = flat_at(c.out, i);
        double actual =
            c.out.dtype() == kInt64 ? static_cast<double>(reinterpret_cast<const int64_t*>(out.data())[at]) : out[at];
        expect_close(actual, c.expected(in, i), 10, c.name);
      });
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Injective, MapsBroadcastsTransposes) {
  KernelSet set;
  std::vector<Check> checks;
  for (Shape shape : {Shape{1000},
                      {7, 33},
                      {70, 197},
                      {3, 4, 5},
                      {2, 64},
                      {1},
                      {100, 3},
                      {5, 1},
                      {1, 1, 4000},
                      {20000},
                      {131080},
                      {2, 3, 4, 17},
                      {2, 3, 7, 5, 16},
                      {50, 16},
                      {1, 1, 37, 8},
                      {2, 3, 1, 16},
                      {1, 70, 24},
                      {4, 3, 2},
                      {1000, 1, 12}}) {
    View in = input_view(shape), out = output_view(shape);
    int kernel = set.add({in.buffer, out.buffer}, [&](const KernelContext& context) {
      return injective(
          out,
          [&](const Index& index, int lanes, const tir::PrimExpr& mask) {
            tir::PrimExpr x = in.load(index, lanes, mask);
            return x * x;
          },
          {}, context);
    });
    auto square = [=](const Memory& m, const Shape& i) {
      double x = m[flat_at(in, i)];
      return x * x;
    };
    checks.push_back({shape_str(shape), in, out, kernel, square});
    // Several vectors side by side: rows that they fill, that leave single vectors over, and that are divided among
    // threads, in parts that hold fewer too. So where each is stored behind the loads of the next one.
    for (bool late : {false, true}) {
      kernel = set.add({in.buffer, out.buffer}, [&](const KernelContext& context) {
        InjectiveConfig config;
        config.together = 4;
        config.stores_late = late;
        return injective(
            out,
            [&](const Index& index, int lanes, const tir::PrimExpr& mask) {
              tir::PrimExpr x = in.load(index, lanes, mask);
              return x * x;
            },
            config, context);
      });
      checks.push_back({(late ? "late " : "together ") + shape_str(shape), in, out, kernel, square});
    }
    if (shape.size() != 2) continue;
    View row = in;  // the first column, broadcast along the rows
    row.strides[1] = 0;
    View across = output_view({shape[1], shape[0]}), turned = in;
    std::swap(turned.shape[0], turned.shape[1]), std::swap(turned.strides[0], turned.strides[1]);
    kernel = set.add({in.buffer, out.buffer}, [&](const KernelContext& context) {
      return injective(
          out,
          [&](const Index& index, int lanes, const tir::PrimExpr& mask) {
            return in.load(index, lanes, mask) + row.load(index, lanes, mask);
          },
          {}, context);
    });
    checks.push_back({"broadcast " + shape_str(shape), in, out, kernel, [=](const Memory& m, const Shape& i) {
                        return double{m[flat_at(in, i)]} + m[flat_at(in, {i[0], 0})];
                      }});
    kernel = set.add({in.buffer, across.buffer}, [&](const KernelContext& context) {
      return injective(across, view_operand(turned), {}, context);
    });
    checks.push_back({"transpose " + shape_str(shape), in, across, kernel, [=](const Memory& m, const Shape& i) {
                        return double{m[flat_at(in, {i[1], i[0]})]};
                      }});
  }
  run_checks(set, checks);
}

TEST(Transpose, PermutationsAndBlocks) {
  KernelSet set;
  std::vector<Check> checks;
  struct Case {
    Shape shape;
    std::vector<int> order;
  };
  for (Case q : {Case{{33, 50}, {1, 0}},
                 {{16, 32}, {1, 0}},
                 {{2, 40, 3, 17}, {0, 2, 1, 3}},
                 {{2, 5, 3, 64}, {0, 2, 3, 1}},
                 {{3, 20, 19}, {2, 0, 1}},
                 {{1, 7, 100}, {0, 2, 1}},
                 {{2, 3, 4, 5, 6}, {4, 3, 2, 1, 0}}}) {
    View in = input_view(q.shape), turned = in;
    for (size_t d = 0; d < q.order.size(); ++d)
      turned.shape[d] = in.shape[q.order[d]], turned.strides[d] = in.strides[q.order[d]];
    View out = output_view(turned.shape);
    const Permutation permuted = permutation(turned, out);
    if (!is_transposing(permuted)) continue;
    int kernel = set.add({in.buffer, out.buffer}, [&](const KernelContext& context) {
      return transpose_copy(
          permuted, [](tir::PrimExpr value, const Index&, const tir::PrimExpr&) { return value * 2; }, context);
    });
    checks.push_back({"permuted " + shape_str(q.shape), in, out, kernel,
                      [=](const Memory& m, const Shape& i) { return 2.0 * m[flat_at(turned, i)]; }});
  }
  // Phases of a stride as channels: (rows, s, columns * s) -> (s, s, rows, columns), with and without a rest of
  // columns.
  for (int64_t s : {2, 3, 4})
    for (int64_t columns : {16, 8, 37, 67}) {
      View in = input_view({5, s, columns, s}), turned = in, out = output_view({s, s, 5, columns});
      turned.shape = out.shape;
      turned.strides = {in.strides[1], in.strides[3], in.strides[0], in.strides[2]};
      ASSERT_TRUE(is_deinterleaving(turned, out));
      int kernel = set.add({in.buffer, out.buffer}, [&](const KernelContext& context) {
        return deinterleave_copy(
            turned, out, [](tir::PrimExpr value, const Index&, const tir::PrimExpr&) { return value * 2; }, context);
      });
      checks.push_back({"phases " + shape_str(in.shape), in, out, kernel,
                        [=](const Memory& m, const Shape& i) { return 2.0 * m[flat_at(turned, i)]; }});
    }
  const int64_t v = set.target().lanes(32);
  for (Shape shape : {Shape{1, 32, 5, 7}, {2, 20, 4, 33}, {1, 3, 9, 9}, {1, 1, 1, 1}, {2, 16, 16, 16}}) {
    Shape blocked{shape[0], ceil_div(shape[1], v), shape[2], shape[3], v};
    View in = input_view(shape), out = output_view(blocked);
    int kernel = set.add({in.buffer, out.buffer}, [&](const KernelContext& context) {
      return to_blocked(in, out, convert_epilogue(kFloat32), context);
    });
    checks.push_back({"to blocks " + shape_str(shape), in, out, kernel, [=](const Memory& m, const Shape& i) {
                        int64_t c = i[1] * v + i[4];
                        return c < shape[1] ? double{m[flat_at(in, {i[0], c, i[2], i[3]})]} : 0.0;
                      }});
    View from = input_view(blocked), plain = output_view(shape);
    kernel = set.add({from.buffer, plain.buffer}, [&](const KernelContext& context) {
      return from_blocked(from, plain, convert_epilogue(kFloat32), context);
    });
    checks.push_back({"from blocks " + shape_str(shape), from, plain, kernel, [=](const Memory& m, const Shape& i) {
                        return double{m[flat_at(from, {i[0], i[1] / v, i[2], i[3], i[1] % v})]};
                      }});
  }
  run_checks(set, checks);
}

TEST(Reduce, EveryKindAndAxes) {
  KernelSet set;
  std::vector<Check> checks;
  struct Case {
    Shape shape;
    std::vector<int> axes;
  };
  for (Case q : {Case{{5, 100}, {1}},
                 {{5, 100}, {0}},
                 {{3, 4, 37}, {1, 2}},
                 {{3, 4, 37}, {0, 2}},
                 {{3, 4, 37}, {1}},
                 {{2, 3, 4, 5}, {0, 1, 2, 3}},
                 {{6, 200}, {0}},
                 {{1000}, {0}},
                 {{4, 3}, {1}},
                 {{2, 7, 64}, {0, 1}},
                 {{3, 1}, {1}}})
    for (ReduceKind kind : {ReduceKind::kSum, ReduceKind::kMean, ReduceKind::kMax, ReduceKind::kMin, ReduceKind::kProd})
      for (bool keep : {true, false}) {
        Shape out_shape;
        for (int d = 0; d < static_cast<int>(q.shape.size()); ++d) {
          bool gone = std::find(q.axes.begin(), q.axes.end(), d) != q.axes.end();
          if (!gone)
            out_shape.push_back(q.shape[d]);
          else if (keep)
            out_shape.push_back(1);
        }
        View in = input_view(q.shape), out = output_view(out_shape);
        ReduceProblem p{kind, q.shape, q.axes, kFloat32};
        int kernel = set.add({in.buffer, out.buffer}, [&](const KernelContext& context) {
          return reduce(
              p, view_operand(in), out,
              [](tir::PrimExpr value, const Index&, const tir::PrimExpr&) { return value * 2; }, context);
        });
        checks.push_back({format("{} kind {} keep {}", shape_str(q.shape), static_cast<int>(kind), keep), in, out,
                          kernel, [=](const Memory& m, const Shape& i) {
                            Shape at(q.shape.size()), extents;
                            for (int d = 0, j = 0; d < static_cast<int>(q.shape.size()); ++d) {
                              bool gone = std::find(q.axes.begin(), q.axes.end(), d) != q.axes.end();
                              if (gone && keep) ++j;
                              if (!gone) at[d] = i[j++];
                            }
                            for (int axis : q.axes) extents.push_back(q.shape[axis]);
                            double sum = 0, largest = -9, smallest = 9, product_of = 1, count = 0;
                            for_each_index(extents, [&](const Shape& r) {
                              for (size_t k = 0; k < r.size(); ++k) at[q.axes[k]] = r[k];
                              double x = m[flat_at(in, at)];
                              sum += x, largest = std::max(largest, x), smallest = std::min(smallest, x),
                                        product_of *= x, ++count;
                            });
                            const double results[] = {sum, sum / count, product_of, largest, smallest};
                            return 2 * results[static_cast<int>(kind)];
                          }});
      }
  run_checks(set, checks);
}

TEST(Reduce, ArgMaximumAndMinimum) {
  KernelSet set;
  std::vector<Check> checks;
  for (bool largest : {true, false})
    for (bool last : {true, false})
      for (int axis : {0, 1, 2}) {
        Shape shape{3, 5, 7}, out_shape = shape;
        out_shape[axis] = 1;
        View in = input_view(shape), out = output_view(out_shape, kInt64);
        // Rounded to whole numbers, so that there are ties.
        Operand coarse = [in](const Index& index, int lanes, const tir::PrimExpr& mask) {
          tir::PrimExpr x = in.load(index, lanes, mask);
          return tir::intrinsic(tir::Intrinsic::k_floor, {x * 2});
        };
        int kernel = set.add({in.buffer, out.buffer}, [&](const KernelContext& context) {
          return arg_reduce({largest, last, shape, axis, kFloat32}, coarse, out, context);
        });
        checks.push_back(
            {format("arg {} {} axis {}", largest, last, axis), in, out, kernel, [=](const Memory& m, const Shape& i) {
               Shape at = i;
               int64_t best = 0;
               auto value = [&](int64_t k) {
                 at[axis] = k;
                 return std::floor(m[flat_at(in, at)] * 2);
               };
               for (int64_t k = 1; k < shape[axis]; ++k) {
                 double x = value(k), held = value(best);
                 if (largest ? x > held : x < held)
                   best = k;
                 else if (last && x == held)
                   best = k;
               }
               return static_cast<double>(best);
             }});
      }
  run_checks(set, checks);
}

TEST(Softmax, EveryAxisAndLongRows) {
  KernelSet set;
  std::vector<Check> checks;
  struct Case {
    Shape shape;
    int axis;
  };
  for (bool logarithm : {false, true})
    for (Case q : {Case{{4, 100}, 1},
                   {{3, 16}, -1},
                   {{2, 5}, 1},
                   {{3, 4, 37}, 1},
                   {{6, 20}, 0},
                   {{2, 20000}, 1},
                   {{1, 1000}, 1},
                   {{3, 1}, 1},
                   {{5, 3, 2}, 1}}) {
      View in = input_view(q.shape), out = output_view(q.shape);
      int kernel = set.add({in.buffer, out.buffer}, [&](const KernelContext& context) {
        return softmax(
            {q.shape, q.axis, logarithm},
            [in](const Index& index, int lanes, const tir::PrimExpr& mask) { return in.load(index, lanes, mask) * 8; },
            out, convert_epilogue(kFloat32), context);
      });
      // One row is computed once: the expected values are looked up by index many times.
      auto cache = std::make_shared<std::map<Shape, std::pair<double, double>>>();
      checks.push_back({format("softmax {} axis {} log {}", shape_str(q.shape), q.axis, logarithm), in, out, kernel,
                        [=](const Memory& m, const Shape& i) {
                          int axis = q.axis < 0 ? q.axis + static_cast<int>(q.shape.size()) : q.axis;
                          Shape at = i;
                          at[axis] = 0;
                          auto [found, fresh] = cache->try_emplace(at);
                          if (fresh) {
                            double top = -1e30, sum = 0;
                            for (int64_t k = 0; k < q.shape[axis]; ++k)
                              at[axis] = k, top = std::max<double>(top, 8 * m[flat_at(in, at)]);
                            for (int64_t k = 0; k < q.shape[axis]; ++k)
                              at[axis] = k, sum += std::exp(8 * m[flat_at(in, at)] - top);
                            found->second = {top, sum};
                          }
                          double x = 8 * m[flat_at(in, i)] - found->second.first;
                          return logarithm ? x - std::log(found->second.second) : std::exp(x) / found->second.second;
                        }});
    }
  run_checks(set, checks);
}

TEST(LayerNorm, MeanAndRootMeanSquare) {
  KernelSet set;
  std::vector<Check> checks;
  for (bool rms : {false, true})
    for (Shape shape : {Shape{3, 384}, {2, 5, 100}, {1, 7}, {2, 20000}, {4, 1}}) {
      View in = input_view(shape), out = output_view(shape);
      // A large mean, which sums of squares would not survive.
      const int64_t shift = rms ? 0 : 1000;
      LayerNormProblem p{shape, 1e-3, rms};
      int kernel = set.add({in.buffer, out.buffer}, [&](const KernelContext& context) {
        return layer_norm(
            p,
            [in, shift](const Index& index, int lanes, const tir::PrimExpr& mask) {
              return in.load(index, lanes, mask) * 1024 + shift;
            },
            out, convert_epilogue(kFloat32), context);
      });
      auto cache = std::make_shared<std::map<Shape, std::pair<double, double>>>();
      checks.push_back({format("layer_norm {} rms {}", shape_str(shape), rms), in, out, kernel,
                        [=](const Memory& m, const Shape& i) {
                          Shape at = i;
                          at.back() = 0;
                          auto [found, fresh] = cache->try_emplace(at);
                          auto x_at = [&](int64_t k) {
                            at.back() = k;
                            return double{m[flat_at(in, at)]} * 1024 + shift;
                          };
                          if (fresh) {
                            double sum = 0, squares = 0;
                            const int64_t n = shape.back();
                            for (int64_t k = 0; k < n; ++k) sum += x_at(k);
                            double mean = rms ? 0 : sum / n;
                            for (int64_t k = 0; k < n; ++k) squares += (x_at(k) - mean) * (x_at(k) - mean);
                            found->second = {mean, std::sqrt(squares / n + 1e-3)};
                          }
                          return (x_at(i.back()) - found->second.first) / found->second.second;
                        }});
    }
  run_checks(set, checks);
}

}  // namespace
}  // namespace tilewright::topi::testing
