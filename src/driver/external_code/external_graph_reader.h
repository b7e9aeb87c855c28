// SPDX-License-Identifier: Apache-2.0
// The graph JSON of an external function (docs/external-codegen.md), read for a generator of our own.
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
  std::vector<std::vector<int64_t>> shapes;  // of each output
  std::vector<DataType> dtypes;
  nlohmann::json attrs;
};
struct ExternalNodes {
  std::vector<ExternalNode> nodes;
  std::vector<size_t> arguments;  // nodes: inputs and constants
  std::vector<ExternalEntry> heads;
};

// Errors: InvalidArgument (no such graph).
Result<ExternalNodes> read_external_graph(const std::string& json);

}  // namespace tilewright::driver
