// SPDX-License-Identifier: Apache-2.0
// Verifies a VM program: every compiled region, kernel by kernel, on the values of a run.
#pragma once
#include "driver/verify.h"
#include "runtime/vm/program.h"

namespace tilewright::driver {

// Runs the program of the model at `path` once on options.inputs (missing ones are random; options.build.shapes must
// give free sizes). Outputs are compared with options.expected where given. Errors: FreeDimension, those of compiling
// and running.
Result<VerifyReport> verify_program(runtime::vm::Program program, const std::string& path,
                                    const VerifyOptions& options);

}  // namespace tilewright::driver
