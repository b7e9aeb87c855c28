// SPDX-License-Identifier: Apache-2.0
// Checks compiled code against the reference interpreter, kernel by kernel on the compiled run's own values, so that
// the first wrong kernel is named rather than the last output.
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
  std::vector<int64_t> at;  // index of that element
};

struct VerifyReport {
  std::vector<std::string> outputs;  // "name: max |error| 1.2e-6 of 3.4 (ok)"
  double largest_output_error = 0;   // relative to the output's largest magnitude
  std::vector<Mismatch> mismatches;  // kernels beyond the tolerance, in execution order
  std::string pass_to_blame;         // found by bisection if the optimised graph itself differs
  size_t steps = 0;
  bool passes_tie = false;    // the optimised graph differs, by no more than its own ties reach
  size_t ties = 0;            // elements of kernels' results that the reference rounds to the other side of a tie
  bool steps_add_up = false;  // the outputs differ by what such elements add up to: every kernel and pass agrees
  std::vector<std::string> taken_apart;  // lower::Lowered::taken_apart
  bool ok() const { return mismatches.empty() && (largest_output_error <= 1 || steps_add_up); }
};

struct VerifyOptions {
  BuildOptions build;
  std::map<std::string, Tensor> inputs;    // by name; missing ones are random with a fixed seed
  std::map<std::string, Tensor> expected;  // outputs by name, compared instead of the interpreter's
  double rtol = 1e-3, atol = 1e-4;         // atol is relative to the tensor's largest magnitude
  double absolute_atol = 0;                // added to atol: the ONNX test runner's atol
  uint64_t seed = 0;
  bool layers = true;    // checks every kernel, not only outputs
  std::string run_with;  // command for libraries of another processor (run_elsewhere.h): only outputs are checked
};

Result<VerifyReport> verify_onnx(const std::string& path, const VerifyOptions& options);
Result<VerifyReport> verify_module(const relay::Module& module, const VerifyOptions& options);

// Random data with a fixed seed: floats in [-1, 1), small non-negative integers, booleans.
Tensor random_tensor(DataType dtype, const std::vector<int64_t>& shape, uint64_t seed);

}  // namespace tilewright::driver
