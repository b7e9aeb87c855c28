// SPDX-License-Identifier: Apache-2.0
// Decompositions of matrices (topi/matrices.h) against the interpreter: odd sizes, batches, both dtypes, vectors of
// several widths.
#include "driver/graphs.h"

namespace tilewright::driver {
namespace {
using namespace testing;

constexpr const char* kMatrixTargets[] = {"llvm", "llvm -mcpu=x86-64"};
using MatrixShape = std::vector<int64_t>;

Expr turned_matrix(const Expr& e, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  std::swap(axes[static_cast<size_t>(rank - 1)], axes[static_cast<size_t>(rank - 2)]);
  return call("transpose", {e}, make_attrs<relay::TransposeAttrs>([&](auto& a) { a.axes = axes; }));
}
Expr product_of_matrices(const Expr& a, const Expr& b, int64_t rank) {
  if (rank == 2) return call("nn.dense", {a, turned_matrix(b, 2)}, make_attrs<relay::DenseAttrs>([](auto&) {}));
  return call("nn.batch_matmul", {a, b},
              make_attrs<relay::BatchMatmulAttrs>([](auto& attrs) { attrs.transpose_b = false; }));
}
Expr shifted_identity(int64_t n, double by, DataType dtype) {
  Tensor t = Tensor::zeros(dtype, {n, n});
  for (int64_t i = 0; i < n; ++i) t.set_double(i * n + i, by);
  return relay::make_constant(std::move(t));
}
Expr field_of(const Expr& tuple, int64_t i) { return relay::make_get(tuple, i); }

TEST(Matrices, FactorsWithExchangedRows) {
  for (const char* target : kMatrixTargets)
    for (const DataType dtype : {kFloat32, kFloat64})
      for (const MatrixShape& shape :
           {MatrixShape{1, 1}, {7, 7}, {37, 37}, {9, 21}, {21, 9}, {3, 5, 5}, {2, 2, 8, 6}}) {
        SCOPED_TRACE(shape_str(shape));
        const Expr x = input("x", shape, dtype), made = call("linalg.lu", {x});
        const Expr order = call("linalg.row_order", {field_of(made, 1)},
                                make_attrs<relay::RowOrderAttrs>([&](auto& a) { a.rows = shape[shape.size() - 2]; }));
        check({x}, relay::make_tuple({field_of(made, 0), field_of(made, 1), order}), target);
      }
}

TEST(Matrices, SolvesTriangles) {
  for (const char* target : kMatrixTargets)
    for (int way = 0; way < 4; ++way)
      for (const int64_t columns : {1, 18}) {
        const int64_t n = 13;
        const DataType dtype = way % 2 ? kFloat64 : kFloat32;
        const Expr x = input("x", {n, n}, dtype), b = input("b", {n, columns}, dtype);
        const Expr a = call("add", {x, shifted_identity(n, 8, dtype)});
        check({x, b},
              call("linalg.solve_triangular", {way < 2 ? a : call("multiply", {x, shifted_identity(1, 0.1, dtype)}), b},
                   make_attrs<relay::SolveTriangularAttrs>([&](auto& attrs) {
                     attrs.upper = way == 1 || way == 2;
                     attrs.unit = way >= 2;
                   })),
              target);
      }
}

TEST(Matrices, TakesRootsOfPositiveDefiniteOnes) {
  for (const char* target : kMatrixTargets)
    for (const MatrixShape& shape : {MatrixShape{1, 1}, {6, 6}, {29, 29}, {3, 5, 5}}) {
      SCOPED_TRACE(shape_str(shape));
      const auto rank = static_cast<int64_t>(shape.size());
      const Expr x = input("x", shape);
      const Expr square = product_of_matrices(x, turned_matrix(x, rank), rank);
      check({x}, call("linalg.cholesky", {call("add", {square, shifted_identity(shape.back(), 4, kFloat32)})}), target);
    }
}

TEST(Matrices, SplitsIntoOrthogonalOnesAndTriangles) {
  for (const char* target : kMatrixTargets)
    for (const bool complete : {false, true})
      for (const DataType dtype : {complete ? kFloat32 : kFloat64})
        for (const MatrixShape& shape : {MatrixShape{1, 4}, {4, 1}, {8, 8}, {19, 7}, {7, 19}, {2, 6, 5}}) {
          SCOPED_TRACE(shape_str(shape));
          const Expr x = input("x", shape, dtype);
          check({x}, call("linalg.qr", {x}, make_attrs<relay::QrAttrs>([&](auto& a) { a.complete = complete; })),
                target);
        }
}

// Vectors have no sign of their own: what they make is compared.
TEST(Matrices, FindsEigenvalues) {
  for (const char* target : kMatrixTargets)
    for (const MatrixShape& shape : {MatrixShape{1, 1}, {6, 6}, {21, 21}, {3, 5, 5}}) {
      SCOPED_TRACE(shape_str(shape));
      const auto rank = static_cast<int64_t>(shape.size());
      const Expr x = input("x", shape), made = call("linalg.eigh", {x});
      const Expr vectors = field_of(made, 1);
      check({x},
            relay::make_tuple({field_of(made, 0), product_of_matrices(vectors, turned_matrix(vectors, rank), rank)}),
            target);
    }
}

// Of pairs; a v = v w holds for the parts of each.
TEST(Matrices, FindsEigenvaluesOfAnyMatrix) {
  for (const char* target : kMatrixTargets)
    for (const DataType dtype : {kFloat32, kFloat64})
      for (const MatrixShape& shape : {MatrixShape{1, 1, 2}, {6, 6, 2}, {13, 13, 2}, {3, 4, 4, 2}}) {
        SCOPED_TRACE(shape_str(shape));
        const auto rank = static_cast<int64_t>(shape.size());
        const Expr x = input("x", shape, dtype), made = call("linalg.eig", {x});
        auto part = [&](const Expr& e, int64_t axes, int64_t which) {
          return call("take", {e, relay::make_constant(Tensor::scalar<int64_t>(kInt64, which))},
                      make_attrs<relay::TakeAttrs>([&](auto& a) { a.axis = static_cast<int>(axes - 1); }));
        };
        auto product = [&](const Expr& a, const Expr& b) { return product_of_matrices(a, b, rank - 1); };
        const Expr values = field_of(made, 0), vectors = field_of(made, 1);
        const Expr v = part(vectors, rank, 0), u = part(vectors, rank, 1), a = part(x, rank, 0), b = part(x, rank, 1);
        auto row = [&](const Expr& e) {
          return call("expand_dims", {e}, make_attrs<relay::ExpandDimsAttrs>([&](auto& s) { s.axis = rank - 3; }));
        };
        const Expr w = row(part(values, rank - 1, 0)), z = row(part(values, rank - 1, 1));
        const Expr real = call("subtract", {product(a, v), product(b, u)});
        const Expr wanted = call("subtract", {call("multiply", {v, w}), call("multiply", {u, z})});
        const Expr lengths = call("sum", {call("add", {call("multiply", {v, v}), call("multiply", {u, u})})},
                                  make_attrs<relay::ReduceAttrs>([&](auto& s) { s.axis = {rank - 3}; }));
        const Expr sum = call("sum", {values}, make_attrs<relay::ReduceAttrs>([&](auto& s) { s.axis = {rank - 3}; }));
        check({x},
              relay::make_tuple({lengths, sum, call("add", {real, shifted_identity(1, 1, dtype)}),
                                 call("add", {wanted, shifted_identity(1, 1, dtype)})}),
              target);
      }
}

TEST(Matrices, FindsSingularValues) {
  for (const char* target : kMatrixTargets)
    for (const MatrixShape& shape : {MatrixShape{1, 1}, {6, 6}, {21, 9}, {9, 21}, {3, 5, 4}}) {
      SCOPED_TRACE(shape_str(shape));
      const auto rank = static_cast<int64_t>(shape.size());
      const Expr x = input("x", shape), made = call("linalg.svd", {x});
      const Expr u = field_of(made, 0), s = field_of(made, 1), v = field_of(made, 2);
      const Expr scaled =
          call("multiply",
               {u, call("expand_dims", {s}, make_attrs<relay::ExpandDimsAttrs>([&](auto& a) { a.axis = rank - 2; }))});
      check({x}, relay::make_tuple({s, product_of_matrices(scaled, v, rank)}), target);
    }
}

TEST(Matrices, RefusesWhatIsNoMatrix) {
  EXPECT_EQ(error_of("linalg.lu", {input("x", {3})}), "operand 0 (3,) is not a matrix");
  EXPECT_EQ(error_of("linalg.lu", {input("x", {3, 3}, kInt32)}), "operand 0 has int32, not float32 or float64");
  EXPECT_EQ(error_of("linalg.eig", {input("x", {3, 3})}), "operand 0 (3, 3) is not a matrix of pairs");
  EXPECT_EQ(error_of("linalg.cholesky", {input("x", {3, 4})}), "the matrices of operand 0 (3, 4) are not square");
  EXPECT_NE(error_of("linalg.solve_triangular", {input("a", {3, 3}), input("b", {4, 3})},
                     make_attrs<relay::SolveTriangularAttrs>([](auto&) {})),
            "");
  EXPECT_NE(error_of("linalg.row_order", {input("p", {4}, kInt64)},
                     make_attrs<relay::RowOrderAttrs>([](auto& a) { a.rows = 3; })),
            "");
}

}  // namespace
}  // namespace tilewright::driver
