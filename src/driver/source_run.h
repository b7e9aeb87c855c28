// SPDX-License-Identifier: Apache-2.0
// A build for the target c, compiled by the system's C compiler as its documentation promises and run.
#pragma once
#include <vector>

#include "driver/build.h"

namespace tilewright::driver {

// The outputs for these inputs (in the order of the plan). Errors: those of source_of; LinkFailed, with what the
// compiler said: a warning is an error; AccuracyExceeded when memory behind the workspace was written.
Result<std::vector<Tensor>> run_source(const Built& built, const std::vector<Tensor>& inputs);

}  // namespace tilewright::driver
