// SPDX-License-Identifier: Apache-2.0
// Compiles a build of the target c with the system's C compiler, as documented, and runs it.
#pragma once
#include <vector>

#include "driver/build.h"

namespace tilewright::driver {

// The outputs for these inputs, in the plan's order. Errors: those of source_of; LinkFailed, with the compiler's output
// (warnings are errors); AccuracyExceeded if memory behind the workspace was written.
Result<std::vector<Tensor>> run_source(const Built& built, const std::vector<Tensor>& inputs);

}  // namespace tilewright::driver
