// SPDX-License-Identifier: Apache-2.0
// Decompositions of matrices, and triangular systems: loops over the rows of a copy in scratch memory, where a step
// takes multiples of one row from others, vector by vector. Threads divide the batch.
#pragma once
#include "topi/view.h"

namespace tilewright::topi {

struct MatrixProblem {
  std::vector<int64_t> batch;
  int64_t rows = 0, columns = 0;     // of the operand; of the right-hand side in a triangular system
  DataType dtype = kFloat32;         // of operands, results and the computation
  bool upper = false, unit = false;  // of a triangle
  bool complete = false;             // a square Q
};
// In elements of the problem's dtype, per thread.
int64_t lu_scratch(const MatrixProblem& problem, const Target& target);
int64_t cholesky_scratch(const MatrixProblem& problem, const Target& target);
int64_t triangle_scratch(const MatrixProblem& problem, const Target& target);
int64_t qr_scratch(const MatrixProblem& problem, const Target& target);
int64_t eigh_scratch(const MatrixProblem& problem, const Target& target);
int64_t eig_scratch(const MatrixProblem& problem, const Target& target);
int64_t svd_scratch(const MatrixProblem& problem, const Target& target);

// The results of the operators linalg.* (relay/ops/tensor/matrices.cc says what they are).
tir::Stmt lu(const MatrixProblem& problem, const Operand& a, const View& factors, const View& pivots,
             const KernelContext& context);
// `rows` is the order's length, `columns` the number of pivots.
tir::Stmt row_order(const MatrixProblem& problem, const Operand& pivots, const View& order,
                    const KernelContext& context);
tir::Stmt cholesky(const MatrixProblem& problem, const Operand& a, const View& lower, const KernelContext& context);
tir::Stmt solve_triangular(const MatrixProblem& problem, const Operand& a, const Operand& b, const View& out,
                           const KernelContext& context);
tir::Stmt qr(const MatrixProblem& problem, const Operand& a, const View& q, const View& r,
             const KernelContext& context);
tir::Stmt eigh(const MatrixProblem& problem, const Operand& a, const View& values, const View& vectors,
               const KernelContext& context);
// Operand and results have pairs, the parts of complex numbers, as their last axis.
tir::Stmt eig(const MatrixProblem& problem, const Operand& a, const View& values, const View& vectors,
              const KernelContext& context);
tir::Stmt svd(const MatrixProblem& problem, const Operand& a, const View& u, const View& s, const View& v,
              const KernelContext& context);

}  // namespace tilewright::topi
