// SPDX-License-Identifier: Apache-2.0
// Stores a model's weights in a separate file (base/formats/weights_file.h) that other models can share.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "base/formats/plan.h"
#include "base/result.h"
#include "lower/weight.h"

namespace tilewright::driver {

// Moves the weights of `plans` (equal for all: driver/target_list.h) to `file`, a path relative to the folder of
// `artifact`. The file is created, or extended by weights that it does not contain yet, byte by byte; existing content
// does not move, since other artifacts use it. One process at a time modifies a file. `written(bytes)` reports
// progress. Errors: CannotWrite, InvalidArgument (another kind of file), BadArtifact (damaged).
Status put_weights_apart(std::span<plan::Plan> plans, std::span<const lower::Weight> weights, const std::string& file,
                         const std::string& artifact, const std::function<void(uint64_t bytes)>& written = {});

}  // namespace tilewright::driver
