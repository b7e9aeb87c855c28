// SPDX-License-Identifier: Apache-2.0
// Operators on sparse matrices: kernels against the reference, the reference against the dense product.
#include <random>

#include "driver/graphs.h"
#include "relay/interpreter.h"

namespace tilewright::driver {
namespace {
using namespace testing;
using namespace relay;

// A sparse matrix of blocks with about one in `every` blocks, and the same matrix dense.
struct Blocks {
  Tensor data, indices, indptr, dense;
};
Blocks make_blocks(int64_t rows, int64_t columns, int64_t r, int64_t c, unsigned every, bool single = false) {
  std::mt19937 random(rows * 31 + columns);
  std::vector<int64_t> indices, indptr{0};
  for (int64_t i = 0; i < rows / r; ++i) {
    for (int64_t j = 0; j < columns / c; ++j)
      if (random() % every == 0) indices.push_back(j);
    indptr.push_back(static_cast<int64_t>(indices.size()));
  }
  const auto count = static_cast<int64_t>(indices.size());
  Blocks out{random_tensor(kFloat32, single ? std::vector{count} : std::vector{count, r, c}, 5),
             Tensor::zeros(kInt32, {count}), Tensor::zeros(kInt32, {rows / r + 1}),
             Tensor::zeros(kFloat32, {rows, columns})};
  for (int64_t e = 0; e < count; ++e) out.indices.set_int(e, indices[static_cast<size_t>(e)]);
  for (int64_t i = 0; i <= rows / r; ++i) out.indptr.set_int(i, indptr[static_cast<size_t>(i)]);
  for (int64_t i = 0; i < rows / r; ++i)
    for (int64_t e = indptr[static_cast<size_t>(i)]; e < indptr[static_cast<size_t>(i) + 1]; ++e)
      for (int64_t a = 0; a < r; ++a)
        for (int64_t b = 0; b < c; ++b)
          out.dense.set_double((i * r + a) * columns + indices[static_cast<size_t>(e)] * c + b,
                               out.data.at_double((e * r + a) * c + b));
  return out;
}
std::vector<Expr> operands(const Expr& x, const Blocks& b) {
  return {x, make_constant(b.data), make_constant(b.indices), make_constant(b.indptr)};
}

// What two graphs of one input x give for the same values, in the reference.
void expect_equal(const Expr& x, const Expr& a, const Expr& b) {
  const auto& type = *as_tensor(x->type);
  const Environment values{{x.get(), {value_from(random_tensor(type.dtype, *static_shape(type.shape), 3))}}};
  auto p = evaluate(a, values), q = evaluate(b, values);
  ASSERT_TRUE(p.ok()) << p.error().str();
  ASSERT_TRUE(q.ok()) << q.error().str();
  ASSERT_EQ((*p)[0].shape, (*q)[0].shape);
  for (size_t i = 0; i < (*p)[0].f.size(); ++i) ASSERT_NEAR((*p)[0].f[i], (*q)[0].f[i], 1e-9) << i;
}

Expr lhs(const std::vector<Expr>& args) {
  return call("nn.sparse_dense", args, make_attrs<SparseDenseAttrs>([](auto& a) { a.sparse_lhs = true; }));
}

// Rows of data from one to several tiles, blocks of every height a vector has and of none, single elements.
TEST(Sparse, Dense) {
  for (int64_t m : {1, 3, 16, 37})
    for (auto [r, c] : {std::pair{16, 1}, {32, 1}, {8, 2}, {4, 4}, {1, 1}, {3, 2}, {64, 1}}) {
      SCOPED_TRACE(::testing::Message() << m << " rows, blocks " << r << "x" << c);
      Expr x = input("x", {m, 48});
      Blocks b = make_blocks(192, 48, r, c, 5);
      Expr y = call("nn.sparse_dense", operands(x, b));
      expect_equal(x, y, call("nn.dense", {x, make_constant(b.dense)}));
      check({x}, relu(call("add", {y, constant({192}, 11)})));
      if (HasFailure()) return;
    }
}
TEST(Sparse, SingleElements) {
  for (int64_t m : {1, 16, 37}) {
    Expr x = input("x", {m, 50});
    Blocks b = make_blocks(33, 50, 1, 1, 4, true);
    Expr y = call("nn.sparse_dense", operands(x, b));
    expect_equal(x, y, call("nn.dense", {x, make_constant(b.dense)}));
    check({x}, relu(y));
    check({x}, relu(y), "llvm -mcpu=x86-64-v3");
  }
}
TEST(Sparse, NarrowVectors) {
  for (int64_t m : {1, 5, 24}) {
    Expr x = input("x", {m, 48});
    for (int64_t r : {16, 8, 4})
      check({x}, call("nn.sparse_dense", operands(x, make_blocks(64, 48, r, 1, 5))), "llvm -mcpu=x86-64-v3");
  }
}
TEST(Sparse, LeftSideAndPadded) {
  Expr x = input("x", {7, 48});
  Blocks b = make_blocks(32, 48, 16, 1, 5);
  check({x}, lhs(operands(x, b)));
  expect_equal(x, lhs(operands(x, b)), call("transpose", {call("nn.dense", {x, make_constant(b.dense)})}));
  check({x}, call("nn.internal.sparse_dense_padded", operands(x, b)));
}
TEST(Sparse, OtherTypes) {
  for (DataType dtype : {kFloat16, kFloat64, kInt32, kInt8}) {
    Expr x = input("x", {17, 6}, dtype), w = input("w", {5, 4, 1}, dtype);
    Expr at = ints({5, 0, 2, 2, 1});
    check({x, w}, call("nn.sparse_dense", {x, w, at, ints({0, 2, 2, 5})}));
  }
}
Tensor numbers(DataType dtype, const std::vector<int64_t>& values) {
  Tensor out = Tensor::zeros(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) out.set_int(static_cast<int64_t>(i), values[i]);
  return out;
}
// Structure that is only known at run time, and is wrong: everything stays inside.
TEST(Sparse, StructureAtRunTime) {
  Expr x = input("x", {16, 6}), w = input("w", {5, 16, 1}), at = input("at", {5}, kInt32),
       from = input("from", {4}, kInt64);
  VerifyOptions options;
  options.build.jobs = 1;
  for (auto [columns, begins] : {std::pair<std::vector<int64_t>, std::vector<int64_t>>{{5, 0, 2, 2, 1}, {0, 2, 2, 5}},
                                 {{-7, 100, 2, 6, 1}, {-3, 9, 1, 1 << 30}}}) {
    options.inputs = {{"at", numbers(kInt32, columns)}, {"from", numbers(kInt64, begins)}};
    Expr y = call("nn.sparse_dense", {x, w, at, from});
    auto report = verify_module(relay::Module().with_main(make_function({x, w, at, from}, y)), options);
    ASSERT_TRUE(report.ok()) << report.error().str();
    EXPECT_TRUE(report->mismatches.empty());
    EXPECT_LE(report->largest_output_error, 1);
  }
}
TEST(Sparse, Nothing) {
  Expr x = input("x", {3, 8});
  check({x}, call("nn.sparse_dense", operands(x, make_blocks(32, 8, 16, 1, 1u << 31))));
}

TEST(Sparse, Add) {
  Expr x = input("x", {9, 20});
  Blocks b = make_blocks(9, 20, 1, 1, 3, true);
  Expr y = call("nn.sparse_add", operands(x, b));
  expect_equal(x, y, call("add", {x, make_constant(b.dense)}));
  check({x}, y);
}

// Transposed twice a matrix is itself, elements in the order of their columns.
TEST(Sparse, Transpose) {
  Blocks b = make_blocks(23, 23, 1, 1, 4, true);
  Expr v = make_var("v", tensor_type(to_shape(b.data.shape()), kFloat32));
  Expr once = call("nn.sparse_transpose", {v, make_constant(b.indices), make_constant(b.indptr)});
  check({v}, once);
  Expr again = call("nn.sparse_transpose", {make_get(once, 0), make_get(once, 1), make_get(once, 2)});
  const Environment values{{v.get(), {value_from(b.data)}}};
  auto out = evaluate(again, values);
  ASSERT_TRUE(out.ok()) << out.error().str();
  EXPECT_EQ((*out)[0].f, value_from(b.data).f);
  EXPECT_EQ((*out)[1].i, value_from(b.indices).i);
  EXPECT_EQ((*out)[2].i, value_from(b.indptr).i);
  Expr x = input("x", {5, 23});
  Expr turned = call("nn.sparse_transpose", {make_constant(b.data), make_constant(b.indices), make_constant(b.indptr)});
  expect_equal(x, call("nn.sparse_dense", {x, make_get(turned, 0), make_get(turned, 1), make_get(turned, 2)}),
               call("nn.dense", {x, call("transpose", {make_constant(b.dense)})}));
}

// The dense convolution with the same weight.
TEST(Sparse, Conv2D) {
  for (bool last : {true, false})
    for (int64_t kernel : {1, 3}) {
      SCOPED_TRACE(::testing::Message() << (last ? "NHWC " : "NCHW ") << kernel);
      Expr x = input("x", last ? std::vector<int64_t>{2, 5, 6, 8} : std::vector<int64_t>{2, 8, 5, 6});
      Blocks b = make_blocks(32, 8 * kernel * kernel, 16, 1, 4);
      auto attrs = make_attrs<SparseConv2DAttrs>([&](auto& a) {
        a.layout = last ? "NHWC" : "NCHW";
        a.kernel_size = {kernel, kernel};
      });
      Expr y = call("nn.sparse_conv2d", operands(x, b), attrs);
      // The matrix as a kernel: columns count height, width and channels, or channels first.
      const int64_t in = 8 * kernel * kernel;
      Tensor weight(kFloat32, last ? std::vector{kernel, kernel, int64_t{8}, int64_t{32}}
                                   : std::vector{int64_t{32}, int64_t{8}, kernel, kernel});
      for (int64_t o = 0; o < 32; ++o)
        for (int64_t i = 0; i < in; ++i)
          weight.set_double(last ? i * 32 + o : o * in + i, b.dense.at_double(o * in + i));
      Expr dense = call("nn.conv2d", {x, make_constant(weight)}, make_attrs<Conv2DAttrs>([&](auto& a) {
                          const int64_t pad = kernel / 2;
                          a.padding = {pad, pad, pad, pad};
                          a.data_layout = last ? "NHWC" : "NCHW";
                          a.kernel_layout = last ? "HWIO" : "OIHW";
                        }));
      expect_equal(x, y, dense);
      check({x}, relu(y));
      Expr flat = make_constant(b.data.reshaped({b.data.shape()[0], 16}));
      if (kernel == 1)
        check({x}, call("nn.sparse_conv2d", {x, flat, make_constant(b.indices), make_constant(b.indptr)}, attrs));
      if (HasFailure()) return;
    }
}

TEST(Sparse, Refusals) {
  Expr x = input("x", {3, 8}), w = input("w", {2, 16, 1}), at = ints({0, 7}), from = ints({0, 1, 2});
  EXPECT_EQ(error_of("nn.sparse_dense", {x, w, at, from}), "");
  EXPECT_EQ(error_of("nn.sparse_dense", {x, w, ints({0, 8}), from}), "column 8 is outside of 8");
  EXPECT_EQ(error_of("nn.sparse_dense", {x, w, at, ints({0, 3})}), "indptr goes from 0 to 3 among 2 values");
  EXPECT_EQ(error_of("nn.sparse_dense", {x, w, at, ints({2, 1})}), "indptr goes from 2 to 1 among 2 values");
  EXPECT_EQ(error_of("nn.sparse_dense", {x, w, ints({0}), from}), "there are 2 values and 1 columns");
  EXPECT_EQ(error_of("nn.sparse_dense", {x, input("w", {2, 16}), at, from}),
            "the sparse matrix has values (2, 16); values are (elements) of single numbers or (blocks, rows, columns)");
  EXPECT_EQ(error_of("nn.sparse_dense", {x, input("w", {2, 16, 3}), at, from}), "blocks of 3 columns do not divide 8");
  EXPECT_EQ(error_of("nn.sparse_dense", {input("x", {8}), w, at, from}), "the dense operand (8,) is no matrix");
  EXPECT_EQ(error_of("nn.sparse_dense", {x, w, input("i", {2}), from}),
            "Tensor[(2), float32] is not a vector of integers");
  EXPECT_EQ(error_of("nn.sparse_add", {x, input("w", {2}), at, from}),
            "indptr has 3 values for 3 rows; one more is needed");
  EXPECT_EQ(error_of("nn.sparse_transpose", {input("v", {3}), at, from}), "there are 3 values and 2 columns");
  EXPECT_EQ(
      error_of("nn.sparse_conv2d", {input("x", {1, 4, 4, 8}), w, at, from}, make_attrs<SparseConv2DAttrs>([](auto& a) {
                 a.kernel_size = {5, 5};
               })),
      "kernel_size is not [1, 1] or [3, 3]");
}

}  // namespace
}  // namespace tilewright::driver
