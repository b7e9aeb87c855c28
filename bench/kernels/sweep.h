// SPDX-License-Identifier: Apache-2.0
// Random shapes through the whole compiler, each timed together with the FMA peak and compared with the cost model's
// prediction: reveals kernels that are fast only on the shapes of well-known networks.
#pragma once

namespace tilewright::topi::testing {

// kernel_bench --sweep conv|gemm|all [--seed N] [--count N] [--kind KIND] [--threads N] [--target T] [--json FILE]
//   [--first N] [--with FILE] [--expect-rank R] [--expect-median R] [--expect-p05 R]
// The same seed gives the same shapes; --kind keeps one family of them, --first N leaves the first N to an earlier run,
// whose JSON --with joins to this one's summary. Exit code 1 when an expectation fails.
int run_sweep(int argc, char** argv);

}  // namespace tilewright::topi::testing
