// SPDX-License-Identifier: Apache-2.0
// A model's weights in a file of their own (base/formats/weights_file.h), which other models share.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "base/formats/plan.h"
#include "base/result.h"
#include "lower/weight.h"

namespace tilewright::driver {

// Puts the weights of `plans` (which are the same for all: driver/target_list.h) into `file`, as an artifact in the
// folder of `artifact` has it. The file is made, or gets those of the weights that it does not hold yet, byte for byte:
// what other artifacts use stays as it is and where it is. One compilation at a time changes a file. `written(bytes)`
// is called as weights are done. Errors: CannotWrite, InvalidArgument (the file is something else), BadArtifact (it is
// damaged).
Status put_weights_apart(std::span<plan::Plan> plans, std::span<const lower::Weight> weights, const std::string& file,
                         const std::string& artifact, const std::function<void(uint64_t bytes)>& written = {});

}  // namespace tilewright::driver
