// SPDX-License-Identifier: Apache-2.0
// Runs a library for another processor by a command that accepts the arguments of `tilewright run`: an emulator with
// that program, or a remote shell.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "driver/build.h"

namespace tilewright::driver {

// The outputs of a library for inputs by name, as many as `outputs`. Errors: LinkFailed, with the command's output;
// BadArtifact for another number of outputs.
Result<std::vector<Tensor>> run_elsewhere(const std::string& library,
                                          const std::vector<std::pair<std::string, Tensor>>& inputs, size_t outputs,
                                          const std::string& command);
// The outputs for these inputs, in the plan's order. `command` is split at spaces. Errors: those of export_library;
// LinkFailed, with the command's output; BadArtifact if its outputs do not match the plan.
Result<std::vector<Tensor>> run_elsewhere(const Built& built, const std::vector<Tensor>& inputs,
                                          const std::string& command);

}  // namespace tilewright::driver
