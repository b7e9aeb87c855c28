// SPDX-License-Identifier: Apache-2.0
// What a tuning record is about: a kernel template's classic name and its arguments, as the classic stack writes them.
// Two layers of one workload have the same kernels to choose from, whatever follows them.
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

// Implementations with one classic name are branches of one task (the direct convolution and Winograd's).
Workload workload_of(const lower::Problem& problem, const lower::Implementation& implementation);

// "direct" of "conv2d_nchwc.direct".
std::string algorithm_of(const lower::Implementation& implementation);

}  // namespace tilewright::tune
