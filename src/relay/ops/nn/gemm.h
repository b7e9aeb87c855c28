// SPDX-License-Identifier: Apache-2.0
// The reference interpreter's matrix product in double, blocked and vectorised by hand, because verifying a ResNet-50
// runs through it. Shares no code with compiled kernels.
#pragma once
#include <cstdint>

namespace tilewright::relay {

// c[m][n] += sum over k of a[m][k] * b[k][n]; row-major with the given row strides.
void gemm_double(int64_t m, int64_t n, int64_t k, const double* a, int64_t a_stride, const double* b, int64_t b_stride,
                 double* c, int64_t c_stride);

}  // namespace tilewright::relay
