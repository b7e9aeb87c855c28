// SPDX-License-Identifier: Apache-2.0
// Loads a build into this process, for tasks that run a model on the way.
#pragma once
#include <memory>
#include <vector>

#include "base/tensor.h"
#include "driver/build.h"
#include "runtime/executor.h"

namespace tilewright::driver {

// The build's library; the mapping outlives its file.
Result<std::shared_ptr<const runtime::Artifact>> load_build(const Built& built);
// Runs once on tensors in the plan's input order; returns copies of the outputs.
Result<std::vector<Tensor>> run_once(runtime::Executor& executor, const std::vector<Tensor>& inputs);

}  // namespace tilewright::driver
