// SPDX-License-Identifier: Apache-2.0
// Matrix products: rows x column-vectors of C stay in registers while the whole reduction runs (K is never split, so
// sums do not depend on tiles or threads).
#pragma once
#include "topi/config.h"
#include "topi/view.h"

namespace tilewright::topi {

enum class MatrixB {
  kPacked,      // panels (ceil(N / (nr*v)), K, nr*v), zero-padded columns, shared by all batches (pack.h: pack_dense)
  kRowMajor,    // an activation [batch,] K, N
  kTransposed,  // an activation [batch,] N, K: panels are turned by the first tile of rows, or before it
};

struct GemmProblem {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  int64_t row_stride = 0;  // of A, in elements: decides about cache-set aliasing
  MatrixB b = MatrixB::kPacked;
  DataType dtype = kFloat32;
  int64_t bytes = 0;  // > 0: rows of A are so many unsigned bytes, k counts words of four, B is packed words (words.h)
  int panel = 0;      // kPacked: vectors of a panel of B, which others read, too; 0: those of the tile
  bool words() const { return bytes > 0; }
};

struct GemmConfig {
  int mr = 8,
      nr = 2;  // rows and column vectors of a register tile; packed B has panels as wide as it, or several tiles
  int k_unroll = 4;
  bool dots = false;  // kTransposed: B's rows are taken as they lie, by gemm_dot; the tile counts for nothing then
  bool operator==(const GemmConfig&) const = default;
  static constexpr auto fields() {
    return std::tuple{field("mr", &GemmConfig::mr), field("nr", &GemmConfig::nr),
                      field("k_unroll", &GemmConfig::k_unroll), field("dots", &GemmConfig::dots)};
  }
};

// Sums in a vector of the accumulator's dtype.
int lanes_of(const GemmProblem& problem, const Target& target);
// The fastest by the cost model, then the others. At most `most`.
std::vector<GemmConfig> configs(const GemmProblem& problem, const Target& target, size_t most);
GemmConfig default_config(const GemmProblem& problem, const Target& target);
// Whether a kernel of this configuration can be made for the problem.
bool fits(const GemmProblem& problem, const GemmConfig& config, const Target& target);
Cost estimate(const GemmProblem& problem, const GemmConfig& config, const Target& target);
// Vectors of a panel of packed B.
int panel_vectors(const GemmProblem& problem, const GemmConfig& config);
// Shape of packed B: {panels, K, columns of a panel}.
std::vector<int64_t> packed_b_shape(const GemmProblem& problem, const GemmConfig& config, const Target& target);

// a: (batch, M, K) or (M, K), K contiguous. b: see MatrixB, (batch, K, N), (batch, N, K) or without batch; its last
// dimension contiguous. A batch extent of 1 or a missing one is broadcast. out: (batch, M, N) or (M, N), N contiguous;
// the epilogue's index has the rank of out.
tir::Stmt gemm(const GemmProblem& problem, const GemmConfig& config, const View& a, const View& b, const View& out,
               const Epilogue& epilogue, const KernelContext& context);
// kTransposed without scratch: vectors run along K of both operands. For few rows, and where a panel would not fit the
// stack.
double dot_cycles(const GemmProblem& problem, const Target& target);
// Whether a constant B of few columns is better kept as rows along K (kTransposed): panels would leave lanes empty.
bool packed_as_dots(const GemmProblem& problem, const Target& target);
// One batch of few columns, serially; b without batch is shared.
tir::Stmt dots_of_batch(const GemmProblem& problem, const View& a, const View& b, const View& out,
                        const Epilogue& epilogue, const Target& target, const tir::PrimExpr& batch);
tir::Stmt gemm_dot(const GemmProblem& problem, const View& a, const View& b, const View& out, const Epilogue& epilogue,
                   const KernelContext& context);

}  // namespace tilewright::topi
