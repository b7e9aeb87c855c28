// SPDX-License-Identifier: Apache-2.0
// A library for another processor, run by a command that takes the arguments of `tilewright run`: an emulator with the
// program built for that processor, or a shell on a machine that has it.
#pragma once
#include <string>
#include <vector>

#include "driver/build.h"

namespace tilewright::driver {

// The outputs for these inputs (in the order of the plan). `command` is words between spaces. Errors: those of
// export_library; LinkFailed, with what the command said; BadArtifact where its outputs are not the plan's.
Result<std::vector<Tensor>> run_elsewhere(const Built& built, const std::vector<Tensor>& inputs,
                                          const std::string& command);

}  // namespace tilewright::driver
