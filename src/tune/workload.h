// SPDX-License-Identifier: Apache-2.0
// The workload of a tuning record: a kernel template's classic name and arguments, in the classic encoding. Layers with
// equal workloads have the same possible kernels, whatever their epilogues.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "lower/strategy.h"

namespace tilewright::tune {

struct Workload {
  std::string name;     // "conv2d_NCHWc.x86"
  nlohmann::json args;  // [["TENSOR", [1, 64, 56, 56], "float32"], ...]
  std::string key() const { return name + args.dump(); }
};

// Implementations with the same classic name are branches of one task (direct convolution and Winograd).
Workload workload_of(const lower::Problem& problem, const lower::Implementation& implementation);

// The suffix of an implementation's name: "direct" of "conv2d_nchwc.direct".
std::string algorithm_of(const lower::Implementation& implementation);

}  // namespace tilewright::tune
