// SPDX-License-Identifier: Apache-2.0
// Restricts a parallel loop to the share of thread `tid`.
//
// Requires: iterations of a parallel loop do not depend on each other (the request is that promise). Ensures: no
// parallel loop is left. Where the whole body is one parallel loop (below lets and branches at most, which every thread
// evaluates alike), its iterations are divided among the threads in contiguous pieces and the function takes tid and
// nthreads; any other parallel loop becomes serial. Runs before unroll. Test: tests/tir/divide_parallel.tir
#pragma once
#include "tir/stmt.h"

namespace tilewright::tir {
PrimFunc divide_parallel(PrimFunc function);
}  // namespace tilewright::tir
