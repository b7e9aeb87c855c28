// SPDX-License-Identifier: Apache-2.0
// One data set of an ONNX backend test through a VM program: values of every kind go in and come out.
#pragma once
#include "frontend/onnx/backend_case.h"

namespace tilewright::driver {

// The largest error as a part of the tolerance (1e-3 relative and 1e-7 absolute, as the ONNX test runner has it);
// texts, lengths and absences must be equal. Errors: those of compiling and running, AccuracyExceeded where something
// else than a number differs.
Result<double> run_as_program(const onnx::BackendCase& test, const onnx::BackendCase::DataSet& data);

}  // namespace tilewright::driver
