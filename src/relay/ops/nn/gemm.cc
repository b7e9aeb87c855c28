// SPDX-License-Identifier: Apache-2.0
#include "relay/ops/nn/gemm.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace tilewright::relay {
namespace {

constexpr int64_t kRows = 6, kCols = 8, kDepth = 256;
typedef double Lane __attribute__((vector_size(64), aligned(8), may_alias));

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
// The loader resolves target_clones before a sanitizer's runtime has started, so sanitized builds do without.
#define TW_CLONES __attribute__((target_clones("avx512f", "avx2,fma", "default")))
#else
#define TW_CLONES
#endif

// A strip of rows: c (rows x kCols) += a (rows x depth) * panel (depth x kCols).
TW_CLONES void strip(int64_t rows, int64_t depth, const double* a, int64_t a_stride, const double* panel, double* c,
                     int64_t c_stride, int64_t cols) {
  Lane sum[kRows] = {};
  if (rows == kRows) {
    for (int64_t k = 0; k < depth; ++k) {
      Lane b = *reinterpret_cast<const Lane*>(panel + k * kCols);
#pragma GCC unroll 6
      for (int64_t r = 0; r < kRows; ++r) sum[r] += a[r * a_stride + k] * b;
    }
  } else {
    for (int64_t k = 0; k < depth; ++k) {
      Lane b = *reinterpret_cast<const Lane*>(panel + k * kCols);
      for (int64_t r = 0; r < rows; ++r) sum[r] += a[r * a_stride + k] * b;
    }
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < cols; ++j) c[r * c_stride + j] += sum[r][j];
}

}  // namespace

void gemm_double(int64_t m, int64_t n, int64_t k, const double* a, int64_t a_stride, const double* b, int64_t b_stride,
                 double* c, int64_t c_stride) {
  std::vector<double> panel(static_cast<size_t>(kDepth * kCols));
  for (int64_t k0 = 0; k0 < k; k0 += kDepth) {
    const int64_t depth = std::min(kDepth, k - k0);
    for (int64_t n0 = 0; n0 < n; n0 += kCols) {
      const int64_t cols = std::min(kCols, n - n0);
      if (cols < kCols) std::fill(panel.begin(), panel.end(), 0.0);
      for (int64_t i = 0; i < depth; ++i)
        std::memcpy(&panel[static_cast<size_t>(i * kCols)], b + (k0 + i) * b_stride + n0,
                    sizeof(double) * static_cast<size_t>(cols));
      for (int64_t m0 = 0; m0 < m; m0 += kRows)
        strip(std::min(kRows, m - m0), depth, a + m0 * a_stride + k0, a_stride, panel.data(), c + m0 * c_stride + n0,
              c_stride, cols);
    }
  }
}

}  // namespace tilewright::relay
