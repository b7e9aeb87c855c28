// SPDX-License-Identifier: Apache-2.0
// Runs one data set of an ONNX backend test as a VM program, with inputs and outputs of any kind.
#pragma once
#include "frontend/onnx/backend_case.h"

namespace tilewright::driver {

// The largest error relative to the tolerance (1e-3 relative, 1e-7 absolute, as in the ONNX test runner); strings,
// lengths and absence must be equal. Errors: those of compiling and running, AccuracyExceeded for differences other
// than in numbers. `without_compiler`: regions of fixed sizes are compiled before the run, the others interpreted.
Result<double> run_as_program(const onnx::BackendCase& test, const onnx::BackendCase::DataSet& data,
                              const std::string& target, int opt_level, bool without_compiler);

}  // namespace tilewright::driver
