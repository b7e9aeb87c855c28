// SPDX-License-Identifier: Apache-2.0
// What was built, loaded into this process: for work that runs a model on the way.
#pragma once
#include <memory>
#include <vector>

#include "base/tensor.h"
#include "driver/build.h"
#include "runtime/executor.h"

namespace tilewright::driver {

// The library of a build; the mapping outlives its file.
Result<std::shared_ptr<const runtime::Artifact>> load_build(const Built& built);
// One run on tensors of the plan's inputs, in its order; copies of the outputs.
Result<std::vector<Tensor>> run_once(runtime::Executor& executor, const std::vector<Tensor>& inputs);

}  // namespace tilewright::driver
