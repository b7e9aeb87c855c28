// SPDX-License-Identifier: Apache-2.0
#include "topi/gemm.h"

#include "harness.h"
#include "topi/pack.h"

namespace tilewright::topi::testing {
namespace {

struct GemmRun {
  GemmProblem p;
  GemmConfig config;
  View a, b, out, bias;
  int kernel;
  int64_t a_pad, out_pad;
  std::string name() const {
    return format("batch{} m{} n{} k{} b{} mr{} nr{} pads {} {}", p.batch, p.m, p.n, p.k, static_cast<int>(p.b),
                  config.mr, config.nr, a_pad, out_pad);
  }
};

View matrix(const char* name, int64_t batch, int64_t rows, int64_t columns, int64_t pad, bool read_only) {
  View view =
      make_view(tir::make_buffer(name, kFloat32, batch * rows * (columns + pad), tir::Scope::kGlobal, 64, read_only),
                {batch, rows, columns});
  view.strides = {rows * (columns + pad), columns + pad, 1};
  return view;
}

struct GemmShape {
  int64_t batch, m, n, k;
  MatrixB b = MatrixB::kPacked;
  int64_t a_pad = 0, out_pad = 0;
  GemmConfig config = {0, 0, 0};
  int panel = 0;
};

void check(const std::vector<GemmShape>& shapes) {
  KernelSet set;
  std::vector<GemmRun> runs;
  for (const GemmShape& s : shapes) {
    GemmRun r;
    r.p.batch = s.batch, r.p.m = s.m, r.p.n = s.n, r.p.k = s.k, r.p.b = s.b, r.p.row_stride = s.k + s.a_pad;
    r.p.panel = s.panel;
    r.a_pad = s.a_pad, r.out_pad = s.out_pad;
    r.config = s.config.mr ? s.config : default_config(r.p, set.target());
    r.a = matrix("a", s.batch, s.m, s.k, s.a_pad, true);
    r.out = matrix("out", s.batch, s.m, s.n, s.out_pad, false);
    if (s.b == MatrixB::kPacked) {
      auto shape = packed_b_shape(r.p, r.config, set.target());
      r.b = make_view(tir::make_buffer("b", kFloat32, product(shape), tir::Scope::kGlobal, 64, true), shape);
    } else {
      bool transposed = s.b == MatrixB::kTransposed;
      r.b = matrix("b", s.batch, transposed ? s.n : s.k, transposed ? s.k : s.n, 0, true);
    }
    r.bias = make_view(tir::make_buffer("bias", kFloat32, s.n, tir::Scope::kGlobal, 4, true), {s.n});
    r.kernel = set.add({r.a.buffer, r.b.buffer, r.out.buffer, r.bias.buffer}, [&](const KernelContext& context) {
      return gemm(
          r.p, r.config, r.a, r.b, r.out,
          [&](tir::PrimExpr value, const Index& index, const tir::PrimExpr& mask) {
            return value + r.bias.load({index[2]}, value->dtype.lanes, mask);
          },
          context);
    });
    runs.push_back(std::move(r));
  }
  set.build();
  if (::testing::Test::HasFatalFailure()) return;
  for (const GemmRun& r : runs) {
    const GemmProblem& p = r.p;
    Memory a(r.a.buffer->size), bias(p.n);
    a.randomize(1), bias.randomize(2);
    Tensor b(kFloat32, {p.batch, p.k, p.n});  // logical; one matrix shared by the batch when packed
    std::mt19937 random(3);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (float& x : b.as_mutable<float>()) x = uniform(random);
    auto b_at = [&](int64_t batch, int64_t k, int64_t n) {
      return b.as<float>()[((p.b == MatrixB::kPacked ? 0 : batch) * p.k + k) * p.n + n];
    };
    Memory physical(r.b.buffer->size);
    if (p.b == MatrixB::kPacked) {
      Tensor one(kFloat32, {p.k, p.n}), turned(kFloat32, {p.n, p.k});
      for (int64_t k = 0; k < p.k; ++k)
        for (int64_t n = 0; n < p.n; ++n)
          one.as_mutable<float>()[k * p.n + n] = turned.as_mutable<float>()[n * p.k + k] = b_at(0, k, n);
      int64_t width = r.b.shape[2];
      Tensor packed = pack_dense(one, false, width), again = pack_dense(turned, true, width);
      ASSERT_EQ(packed.shape(), r.b.shape);
      ASSERT_EQ(std::memcmp(packed.raw(), again.raw(), packed.bytes()), 0);
      std::memcpy(physical.data(), packed.raw(), packed.bytes());
    } else {
      for_each_index({p.batch, p.k, p.n}, [&](const auto& i) {
        bool transposed = p.b == MatrixB::kTransposed;
        physical[transposed ? flat_at(r.b, {i[0], i[2], i[1]}) : flat_at(r.b, {i[0], i[1], i[2]})] =
            b_at(i[0], i[1], i[2]);
      });
    }
    Memory first(r.out.buffer->size, 99);
    for (int threads : {1, 3}) {
      Memory out(r.out.buffer->size, 99);
      set.run(r.kernel, {a.data(), physical.data(), out.data(), bias.data()}, threads);
      ASSERT_TRUE(out.intact()) << r.name();
      if (threads > 1) {
        ASSERT_EQ(std::memcmp(out.data(), first.data(), out.size() * 4), 0) << r.name();
        continue;
      }
      std::memcpy(first.data(), out.data(), out.size() * 4);
      for_each_index({p.batch, p.m, p.n + r.out_pad}, [&](const auto& i) {
        float actual = out[flat_at(r.out, i)];
        if (i[2] >= p.n) {
          ASSERT_EQ(actual, 99) << "outside the view: " << r.name();
          return;
        }
        double sum = bias[i[2]];
        for (int64_t k = 0; k < p.k; ++k) sum += double{a[flat_at(r.a, {i[0], i[1], k})]} * b_at(i[0], k, i[2]);
        expect_close(actual, sum, std::sqrt(double(p.k)), r.name());
      });
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Gemm, PackedShapes) {
  check({{1, 8, 32, 16},
         {1, 49, 64, 20},
         {1, 1, 128, 64},
         {1, 1, 1000, 33},
         {1, 3, 10, 7},
         {1, 16, 48, 100},
         {2, 5, 33, 9},
         {1, 17, 31, 1},
         {1, 100, 5, 3},
         {1, 2, 200, 50},
         {1, 12, 12, 12, MatrixB::kPacked, 3, 5},
         {3, 7, 64, 8},
         {1, 1, 1, 1}});
}

TEST(Gemm, RowsFourKibApart) { check({{1, 20, 40, 1024}, {1, 9, 33, 30, MatrixB::kPacked, 2018, 0}}); }

TEST(Gemm, ActivationsAsB) {
  check({{2, 20, 33, 17, MatrixB::kRowMajor},
         {3, 7, 64, 32, MatrixB::kRowMajor},
         {1, 9, 5, 4, MatrixB::kRowMajor},
         {2, 20, 33, 17, MatrixB::kTransposed},
         {4, 128, 128, 64, MatrixB::kTransposed},
         {1, 3, 5, 30, MatrixB::kTransposed},
         {2, 1, 50, 64, MatrixB::kTransposed},
         {1, 6, 40, 5000, MatrixB::kTransposed},
         {2, 1, 50, 64, MatrixB::kRowMajor}});
}

// Few rows of dot products (1, 2, 3, 4 and one more), columns that end within a tile, reductions that end within a
// vector.
TEST(Gemm, FewRowsOfDots) {
  check({{3, 1, 37, 130, MatrixB::kTransposed},
         {2, 2, 19, 64, MatrixB::kTransposed},
         {2, 3, 21, 100, MatrixB::kTransposed},
         {2, 4, 6, 128, MatrixB::kTransposed},
         {1, 5, 33, 257, MatrixB::kTransposed},
         {1, 1, 3, 5, MatrixB::kTransposed},
         {1, 1, 300, 16, MatrixB::kTransposed}});
}

// Few columns over many rows; tiles of dot products whose rows and columns leave rests.
TEST(Gemm, FewColumnsOfDots) {
  check({{1, 61, 10, 300, MatrixB::kTransposed},
         {2, 50, 4, 90, MatrixB::kTransposed},
         {1, 47, 9, 515, MatrixB::kTransposed},
         {1, 38, 13, 170, MatrixB::kTransposed},
         {1, 20, 2, 129, MatrixB::kTransposed},
         {1, 29, 1, 64, MatrixB::kTransposed},
         {1, 19, 5, 1000, MatrixB::kTransposed}});
  Target wide = host_target();
  wide.vector_bits = 512, wide.vector_registers = 32;
  auto dots = [&](int64_t m, int64_t n, int64_t k) {
    GemmProblem p;
    p.m = m, p.n = n, p.k = p.row_stride = k;
    return packed_as_dots(p, wide, false);
  };
  EXPECT_TRUE(dots(1415, 10, 805));
  EXPECT_TRUE(dots(1698, 4, 90));
  EXPECT_FALSE(dots(1415, 16, 805));  // panels without empty lanes
  EXPECT_FALSE(dots(1415, 10, 20));   // more of the sums' tree than of sums
  EXPECT_FALSE(dots(2, 10, 805));
  // One row by a large table: panels are read faster, but a table that is also looked up is stored once.
  GemmProblem words;
  words.m = 1, words.n = 50257, words.k = words.row_stride = 768;
  EXPECT_FALSE(packed_as_dots(words, wide, false));
  EXPECT_TRUE(packed_as_dots(words, wide, true));
}

// A panel of B's rows is turned by the first tile of rows or before it; reductions of fewer than four steps and ones
// that end within four; columns in quarters of a vector; a few columns left over as dot products; a panel too large to
// keep.
TEST(Gemm, TurnedOnTheWay) {
  check({{2, 7, 44, 67, MatrixB::kTransposed},
         {1, 22, 35, 40, MatrixB::kTransposed},
         {2, 61, 93, 38, MatrixB::kTransposed},
         {1, 30, 40, 3, MatrixB::kTransposed},
         {2, 9, 18, 1, MatrixB::kTransposed},
         {1, 100, 41, 39, MatrixB::kTransposed, 3, 5},
         {2, 40, 25, 66, MatrixB::kTransposed},
         {1, 50, 18, 200, MatrixB::kTransposed},
         {1, 33, 51, 130, MatrixB::kTransposed},
         {1, 12, 50, 1100, MatrixB::kTransposed}});
}

// The last few columns of an activation as dot products, B as it lies or turned, beside one panel or several.
TEST(Gemm, FewColumnsBesideWholeVectors) {
  check({{9, 42, 17, 65, MatrixB::kRowMajor},
         {8, 150, 41, 33, MatrixB::kRowMajor, 3, 5},
         {1, 100, 18, 200, MatrixB::kRowMajor},
         {3, 60, 81, 48, MatrixB::kTransposed},
         {2, 154, 9, 80, MatrixB::kTransposed}});
}

// Operands and results beyond the second level of cache, which are asked for ahead of time: the last batch has no next.
TEST(Gemm, BatchesFromMemory) {
  check({{6, 20, 150, 400, MatrixB::kRowMajor},
         {5, 300, 33, 200, MatrixB::kRowMajor},
         {8, 130, 310, 10, MatrixB::kRowMajor},
         {6, 20, 150, 400, MatrixB::kTransposed}});
}

// The last column vector at most half full: alone, behind whole ones, over activations.
TEST(Gemm, ColumnsThatEndInHalfAVector) {
  check({{1, 50, 6, 23},
         {1, 33, 20, 67},
         {1, 16, 24, 9},
         {1, 40, 40, 16, MatrixB::kPacked, 0, 0, {8, 3, 4}},
         {2, 12, 4, 30, MatrixB::kRowMajor},
         {2, 25, 21, 40, MatrixB::kRowMajor},
         {1, 60, 7, 50, MatrixB::kTransposed},
         {1, 1, 5, 40},
         {1, 2, 22, 31}});
}

TEST(Gemm, EveryTileGivesTheSame) {
  std::vector<GemmShape> shapes;
  for (GemmConfig c : {GemmConfig{1, 1, 1}, {2, 3, 2}, {14, 2, 4}, {7, 3, 3}, {28, 1, 4}, {4, 6, 8}})
    if (c.mr * c.nr + c.nr + 1 <= host_target().vector_registers)
      shapes.push_back({1, 30, 70, 13, MatrixB::kPacked, 0, 0, c});
  check(shapes);
}

// Panels that are wider than the tile, as another processor or another shape wanted them.
TEST(Gemm, NarrowTilesUnderWidePanels) {
  std::vector<GemmShape> shapes;
  for (int panel : {2, 3, 4})
    for (GemmConfig c : {GemmConfig{1, 1, 1}, {2, 3, 2}, {6, 1, 4}, {5, 2, 3}})
      if (c.nr <= panel) {
        shapes.push_back({1, 30, 70, 13, MatrixB::kPacked, 0, 0, c, panel});
        shapes.push_back({2, 9, 161, 40, MatrixB::kPacked, 0, 0, c, panel});
      }
  for (int64_t m : {1, 2, 3, 40}) shapes.push_back({1, m, 200, 31, MatrixB::kPacked, 0, 0, {0, 0, 0}, 3});
  check(shapes);
}

}  // namespace
}  // namespace tilewright::topi::testing
