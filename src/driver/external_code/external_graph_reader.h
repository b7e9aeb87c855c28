// SPDX-License-Identifier: Apache-2.0
// Reads an external function's graph JSON (docs/external-codegen.md) for built-in generators.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"

namespace tilewright::driver {

struct ExternalEntry {
  size_t node = 0, output = 0;
};
struct ExternalNode {
  std::string op, name;  // op: input, const or kernel
  std::vector<ExternalEntry> inputs;
  std::vector<std::vector<int64_t>> shapes;  // by output
  std::vector<DataType> dtypes;
  nlohmann::json attrs;
};
struct ExternalNodes {
  std::vector<ExternalNode> nodes;
  std::vector<size_t> arguments;  // node indices of inputs and constants
  std::vector<ExternalEntry> heads;
};

// Errors: InvalidArgument (malformed graph).
Result<ExternalNodes> read_external_graph(const std::string& json);

}  // namespace tilewright::driver
