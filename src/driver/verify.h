// SPDX-License-Identifier: Apache-2.0
// Checks compiled code against the reference interpreter, kernel by kernel on the compiled run's own values, so that
// the first kernel that is wrong is named rather than the last output.
#pragma once
#include <string>
#include <vector>

#include "driver/build.h"

namespace tilewright::driver {

struct Mismatch {
  std::string step;    // "nn.conv2d+nn.relu"
  std::string source;  // the model's nodes
  std::string kernel;
  double largest = 0;  // |ours - reference| over (atol scale + rtol |reference|) of the worst element, above 1
  double ours = 0, reference = 0;
  std::vector<int64_t> at;  // the element
};

struct VerifyReport {
  std::vector<std::string> outputs;  // "name: max |error| 1.2e-6 of 3.4 (ok)"
  double largest_output_error = 0;   // relative to the output's largest magnitude
  std::vector<Mismatch> mismatches;  // kernels outside the budget, in execution order
  std::string pass_to_blame;         // found by bisection when the optimised graph itself differs
  size_t steps = 0;
  std::vector<std::string> taken_apart;  // lower::Lowered::taken_apart
  bool ok() const { return mismatches.empty() && largest_output_error <= 1; }
};

struct VerifyOptions {
  BuildOptions build;
  std::map<std::string, Tensor> inputs;    // by name; the rest is random (seeded)
  std::map<std::string, Tensor> expected;  // outputs by name to compare with instead of the interpreter's
  double rtol = 1e-3, atol = 1e-4;         // atol is times the tensor's largest magnitude
  double absolute_atol = 0;                // added to it as it is: what the ONNX test runner means by atol
  uint64_t seed = 0;
  bool layers = true;  // check every kernel, not the outputs alone
  std::string
      run_with;  // a command for libraries of another processor (run_elsewhere.h): the outputs alone are checked
};

Result<VerifyReport> verify_onnx(const std::string& path, const VerifyOptions& options);
Result<VerifyReport> verify_module(const relay::Module& module, const VerifyOptions& options);

// Seeded input data for a tensor: floats in [-1, 1), integers small and non-negative, booleans.
Tensor random_tensor(DataType dtype, const std::vector<int64_t>& shape, uint64_t seed);

}  // namespace tilewright::driver
