// SPDX-License-Identifier: Apache-2.0
// Folders in the layout of the ONNX backend tests: model.onnx and test_data_set_*/input_*.pb, output_*.pb.
#pragma once
#include <string>
#include <vector>

#include "driver/verify.h"

namespace tilewright::driver {

struct BackendLimits {
  int seconds = 60;
  int megabytes = 8192;
  std::string target = "llvm";  // the target; only llvm for this machine also covers VM programs
  std::string run_with;         // VerifyOptions::run_with
  int opt_level = 3;
  bool without_compiler = false;  // each case as a program: kernels of fixed regions, the others interpreted
  std::string inputs =
      "given";  // as the model has them; "free": without sizes, as a VM program; "constant": compiled in
};

// Compiles and runs every folder in a separate process under the limits; prints a line each (passed, failed: largest
// error, unsupported: what) and totals. A folder without a model stands for its subfolders. Exit code: 0 if none
// failed, else 3.
int run_backend_cases(const std::vector<std::string>& folders, const BackendLimits& limits, bool json);

// Inputs and expected outputs (input_*.pb, output_*.pb, named inside the files) out of a folder.
Status load_expected(const std::string& folder, VerifyOptions* options);

}  // namespace tilewright::driver
