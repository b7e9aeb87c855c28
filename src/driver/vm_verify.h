// SPDX-License-Identifier: Apache-2.0
// Checks a model that runs as a VM program: every region it compiles, kernel by kernel, on the values the run gives it.
#pragma once
#include "driver/verify.h"
#include "runtime/vm/program.h"

namespace tilewright::driver {

// Runs the program of the model at `path` once on options.inputs (the rest is random; free sizes must be given by
// options.build.shapes). Outputs are compared with options.expected, where that has them. Errors: FreeDimension, those
// of compiling and running.
Result<VerifyReport> verify_program(runtime::vm::Program program, const std::string& path,
                                    const VerifyOptions& options);

}  // namespace tilewright::driver
