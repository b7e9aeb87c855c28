// SPDX-License-Identifier: Apache-2.0
// Products with a sparse right operand, and other operators on sparse matrices (CSR or BSR).
#pragma once
#include "topi/config.h"
#include "topi/view.h"

namespace tilewright::topi {

// (m, k) times the transpose of a sparse matrix with `down` rows of blocks, each block_rows x block_columns.
struct SparseProblem {
  int64_t m = 0, k = 0, down = 0, blocks = 0, block_rows = 1, block_columns = 1;
  DataType dtype = kFloat32;
  int64_t n() const { return down * block_rows; }
};

enum class SparseForm {
  kAlongBlocks,  // vectors run along a block's rows: a block's column times one element of each data row
  kAlongData,    // vectors run along the rows of the data
  kScalar,
};
inline std::span<const char* const> config_names(SparseForm) {
  static constexpr const char* kNames[] = {"along_blocks", "along_data", "scalar"};
  return kNames;
}
struct SparseConfig {
  SparseForm form = SparseForm::kScalar;
  int lanes = 1;
  int rows = 1;         // data rows per tile
  int columns = 1;      // kAlongBlocks: vectors of block rows per tile
  int chains = 1;       // blocks accumulated in independent sums
  bool turned = false;  // transposes rows of data into scratch, so that elements of one column are contiguous
  bool operator==(const SparseConfig&) const = default;
  static constexpr auto fields() {
    using C = SparseConfig;
    return std::tuple{field("form", &C::form),       field("lanes", &C::lanes),   field("rows", &C::rows),
                      field("columns", &C::columns), field("chains", &C::chains), field("turned", &C::turned)};
  }
};
SparseConfig sparse_config(const SparseProblem& problem, const Target& target);
Cost estimate(const SparseProblem& problem, const SparseConfig& config, const Target& target);
int64_t sparse_scratch_bytes(const SparseProblem& problem, const SparseConfig& config);

// data (m, k); values (blocks, block_columns, block_rows) with any strides, contiguous for kAlongBlocks; `indices`: the
// column of each block; `starts`: where each row of blocks begins, and the end. Both are clamped to valid ranges.
tir::Stmt sparse_product(const SparseProblem& problem, const SparseConfig& config, const View& data, const View& values,
                         const Operand& indices, const Operand& starts, const View& out, const Epilogue& epilogue,
                         const KernelContext& context);

// out (m, n) = data + the sparse matrix (CSR).
tir::Stmt sparse_add(const View& out, int64_t count, const Operand& data, const Operand& values, const Operand& indices,
                     const Operand& starts, const KernelContext& context);
// The transpose of a square CSR matrix, on one thread.
tir::Stmt sparse_transpose(int64_t rows, int64_t count, const Operand& values, const Operand& indices,
                           const Operand& starts, const View& out_values, const View& out_rows, const View& out_starts);

}  // namespace tilewright::topi
