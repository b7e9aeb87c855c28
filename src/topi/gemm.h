// SPDX-License-Identifier: Apache-2.0
// Matrix products: a register tile of C (rows x vectors of columns) accumulates over the whole reduction. K is never
// split, so sums do not depend on tiles or threads.
#pragma once
#include "topi/config.h"
#include "topi/view.h"

namespace tilewright::topi {

enum class MatrixB {
  kPacked,      // panels (ceil(N / (nr*v)), K, nr*v), zero-padded columns, shared by all batches (pack.h: pack_dense)
  kRowMajor,    // an activation [batch,] K, N
  kTransposed,  // an activation [batch,] N, K: panels are transposed with the first row tile, or before it
};

struct GemmProblem {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  int64_t row_stride = 0;  // of A, in elements; matters for cache set aliasing
  MatrixB b = MatrixB::kPacked;
  DataType dtype = kFloat32;
  // > 0: A has rows of this many uint8, int16 or bfloat16 (dtype), k counts words of them, and B is packed in words
  // (words.h)
  int64_t in_words = 0;
  int panel = 0;  // kPacked: panel width of B in vectors, if shared with other kernels; 0: the tile's
  bool words() const { return in_words > 0; }
};

struct GemmConfig {
  int mr = 8,
      nr = 2;  // rows and column vectors of a register tile; a panel of packed B is one or several tiles wide
  int k_unroll = 4;
  // kTransposed: reads B's rows in place by dot products (gemm_dot); the tile size is then irrelevant
  bool dots = false;
  bool operator==(const GemmConfig&) const = default;
  static constexpr auto fields() {
    return std::tuple{field("mr", &GemmConfig::mr), field("nr", &GemmConfig::nr),
                      field("k_unroll", &GemmConfig::k_unroll), field("dots", &GemmConfig::dots)};
  }
};

// Lanes of an accumulator vector.
int lanes_of(const GemmProblem& problem, const Target& target);
// Fastest first by the cost model; at most `most`.
std::vector<GemmConfig> configs(const GemmProblem& problem, const Target& target, size_t most);
GemmConfig default_config(const GemmProblem& problem, const Target& target);
// Whether a kernel exists for this problem and configuration.
bool fits(const GemmProblem& problem, const GemmConfig& config, const Target& target);
Cost estimate(const GemmProblem& problem, const GemmConfig& config, const Target& target);
// Panel width of packed B, in vectors.
int panel_vectors(const GemmProblem& problem, const GemmConfig& config);
// Shape of packed B: {panels, K, columns of a panel}.
std::vector<int64_t> packed_b_shape(const GemmProblem& problem, const GemmConfig& config, const Target& target);

// a: (batch, M, K) or (M, K), K contiguous. b: as MatrixB says, (batch, K, N), (batch, N, K) or without batch; last
// dimension contiguous. A batch of 1, or a missing one, broadcasts. out: (batch, M, N) or (M, N), N contiguous; the
// epilogue's index has out's rank.
tir::Stmt gemm(const GemmProblem& problem, const GemmConfig& config, const View& a, const View& b, const View& out,
               const Epilogue& epilogue, const KernelContext& context);
// kTransposed by dot products, without scratch: vectors run along K of both operands. For few rows, and for panels that
// would not fit the stack.
double dot_cycles(const GemmProblem& problem, const Target& target);
// Whether a constant B is better stored as rows along K (kTransposed): with few columns panels would leave lanes empty,
// and a large one for one row of A is then what else reads it takes, too, if its rows are also looked up.
bool packed_as_dots(const GemmProblem& problem, const Target& target, bool looked_up);
// One batch with few columns, on one thread; a b without batch is shared.
tir::Stmt dots_of_batch(const GemmProblem& problem, const View& a, const View& b, const View& out,
                        const Epilogue& epilogue, const Target& target, const tir::PrimExpr& batch);
tir::Stmt gemm_dot(const GemmProblem& problem, const View& a, const View& b, const View& out, const Epilogue& epilogue,
                   const KernelContext& context);

}  // namespace tilewright::topi
