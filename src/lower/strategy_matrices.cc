// SPDX-License-Identifier: Apache-2.0
// Decompositions of matrices and triangular systems.
#include "lower/implementation.h"
#include "relay/ops/attrs.h"
#include "topi/matrices.h"

namespace tilewright::lower {
namespace {
using namespace relay;

// The matrix of an argument.
topi::MatrixProblem matrix_problem(const Problem& p, size_t i) {
  topi::MatrixProblem out;
  out.batch = p.arg_shape(i);
  out.columns = out.batch.back();
  out.rows = out.batch[out.batch.size() - 2];
  out.batch.resize(out.batch.size() - 2);
  out.dtype = p.arg_dtype(i);
  return out;
}
using MatrixKernel =
    std::function<tir::Stmt(const topi::MatrixProblem&, const GroupScope&, const Anchor&, const topi::KernelContext&)>;
// `flops`: of one matrix.
std::shared_ptr<Choice> matrix_choice(const Problem& p, const topi::MatrixProblem& problem, double flops,
                                      int64_t scratch, const MatrixKernel& kernel) {
  if (!whole_group(p)) return nullptr;
  auto choice = std::make_shared<Choice>();
  const int64_t count = topi::product(problem.batch);
  choice->cost.flops = flops * static_cast<double>(count);
  choice->cost.microseconds = choice->cost.flops / (p.target.machine.gflops / 4 * 1e3);
  choice->parallel = count > 1;
  choice->scratch_bytes = scratch * problem.dtype.bits / 8;
  choice->scratch_dtype = problem.dtype;
  choice->emit = [=, anchor = p.anchor](const GroupScope& scope, const topi::KernelContext& context) {
    return kernel(problem, scope, anchor, context);
  };
  return choice;
}
double cube(const topi::MatrixProblem& m) {
  const auto rows = static_cast<double>(m.rows), columns = static_cast<double>(m.columns);
  return rows * columns * std::min(rows, columns);
}

std::shared_ptr<Choice> lu_choice(const Problem& p) {
  const topi::MatrixProblem m = matrix_problem(p, 0);
  return matrix_choice(p, m, cube(m), topi::lu_scratch(m, p.target),
                       [](const topi::MatrixProblem& problem, const GroupScope& scope, const Anchor& anchor,
                          const topi::KernelContext& context) {
                         return topi::lu(problem, scope.anchor_operand(anchor, 0), scope.output(0), scope.output(1),
                                         context);
                       });
}
std::shared_ptr<Choice> row_order_choice(const Problem& p) {
  topi::MatrixProblem m;
  m.batch = p.arg_shape(0);
  m.columns = m.batch.back();
  m.batch.pop_back();
  m.rows = p.attrs<RowOrderAttrs>().rows;
  return matrix_choice(p, m, static_cast<double>(m.rows), 0,
                       [](const topi::MatrixProblem& problem, const GroupScope& scope, const Anchor& anchor,
                          const topi::KernelContext& context) {
                         return topi::row_order(problem, scope.anchor_operand(anchor, 0), scope.output(), context);
                       });
}
std::shared_ptr<Choice> cholesky_choice(const Problem& p) {
  const topi::MatrixProblem m = matrix_problem(p, 0);
  return matrix_choice(p, m, cube(m) / 3, topi::cholesky_scratch(m, p.target),
                       [](const topi::MatrixProblem& problem, const GroupScope& scope, const Anchor& anchor,
                          const topi::KernelContext& context) {
                         return topi::cholesky(problem, scope.anchor_operand(anchor, 0), scope.output(), context);
                       });
}
std::shared_ptr<Choice> triangle_choice(const Problem& p) {
  topi::MatrixProblem m = matrix_problem(p, 1);
  m.upper = p.attrs<SolveTriangularAttrs>().upper;
  m.unit = p.attrs<SolveTriangularAttrs>().unit;
  const double flops = static_cast<double>(m.rows) * static_cast<double>(m.rows) * static_cast<double>(m.columns);
  return matrix_choice(p, m, flops, topi::triangle_scratch(m, p.target),
                       [](const topi::MatrixProblem& problem, const GroupScope& scope, const Anchor& anchor,
                          const topi::KernelContext& context) {
                         return topi::solve_triangular(problem, scope.anchor_operand(anchor, 0),
                                                       scope.anchor_operand(anchor, 1), scope.output(), context);
                       });
}
std::shared_ptr<Choice> qr_choice(const Problem& p) {
  topi::MatrixProblem m = matrix_problem(p, 0);
  m.complete = p.attrs<QrAttrs>().complete;
  return matrix_choice(p, m, 4 * cube(m), topi::qr_scratch(m, p.target),
                       [](const topi::MatrixProblem& problem, const GroupScope& scope, const Anchor& anchor,
                          const topi::KernelContext& context) {
                         return topi::qr(problem, scope.anchor_operand(anchor, 0), scope.output(0), scope.output(1),
                                         context);
                       });
}
// About eight sweeps.
std::shared_ptr<Choice> eigh_choice(const Problem& p) {
  const topi::MatrixProblem m = matrix_problem(p, 0);
  return matrix_choice(p, m, 48 * cube(m), topi::eigh_scratch(m, p.target),
                       [](const topi::MatrixProblem& problem, const GroupScope& scope, const Anchor& anchor,
                          const topi::KernelContext& context) {
                         return topi::eigh(problem, scope.anchor_operand(anchor, 0), scope.output(0), scope.output(1),
                                           context);
                       });
}
// Pairs of numbers; about three steps a row, each of them rotations of all rows.
std::shared_ptr<Choice> eig_choice(const Problem& p) {
  topi::MatrixProblem m;
  m.batch = p.arg_shape(0);
  m.rows = m.columns = m.batch[m.batch.size() - 2];
  m.batch.resize(m.batch.size() - 3);
  m.dtype = p.arg_dtype(0);
  return matrix_choice(p, m, 200 * cube(m), topi::eig_scratch(m, p.target),
                       [](const topi::MatrixProblem& problem, const GroupScope& scope, const Anchor& anchor,
                          const topi::KernelContext& context) {
                         return topi::eig(problem, scope.anchor_operand(anchor, 0), scope.output(0), scope.output(1),
                                          context);
                       });
}
std::shared_ptr<Choice> svd_choice(const Problem& p) {
  const topi::MatrixProblem m = matrix_problem(p, 0);
  return matrix_choice(p, m, 48 * cube(m), topi::svd_scratch(m, p.target),
                       [](const topi::MatrixProblem& problem, const GroupScope& scope, const Anchor& anchor,
                          const topi::KernelContext& context) {
                         return topi::svd(problem, scope.anchor_operand(anchor, 0), scope.output(0), scope.output(1),
                                          scope.output(2), context);
                       });
}

constexpr int kMatrixPlevel = 1;
constexpr Implementation kMatrixImplementations[] = {
    fixed<cholesky_choice>("linalg.cholesky", "cholesky.rows", kMatrixPlevel),
    fixed<eig_choice>("linalg.eig", "eig.rotations", kMatrixPlevel),
    fixed<eigh_choice>("linalg.eigh", "eigh.rotations", kMatrixPlevel),
    fixed<lu_choice>("linalg.lu", "lu.rows", kMatrixPlevel),
    fixed<qr_choice>("linalg.qr", "qr.rows", kMatrixPlevel),
    fixed<row_order_choice>("linalg.row_order", "row_order", kMatrixPlevel),
    fixed<triangle_choice>("linalg.solve_triangular", "solve_triangular.rows", kMatrixPlevel),
    fixed<svd_choice>("linalg.svd", "svd.rotations", kMatrixPlevel),
};

}  // namespace

std::span<const Implementation> matrix_implementations() { return kMatrixImplementations; }

}  // namespace tilewright::lower
