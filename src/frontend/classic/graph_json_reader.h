// SPDX-License-Identifier: Apache-2.0
// Graph JSON, the classic stack's or ours
// (runtime/classic/graph_json.h), as a graph with all indices checked.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tilewright::frontend {

struct GraphJson {
  using Entry = std::pair<size_t, size_t>;  // (node, output)
  struct Node {
    std::string name;
    bool is_call = false;                      // otherwise an input or a parameter
    std::vector<Entry> inputs;                 // from earlier nodes
    std::map<std::string, std::string> attrs;  // of a call: func_name, num_inputs, num_outputs and whatever else
    size_t outputs = 1;
  };
  std::vector<Node> nodes;
  std::vector<size_t> arguments;  // indices of input nodes
  std::vector<Entry> heads;
  std::vector<size_t> rows;  // for each node, and the end: index of its first entry in the tables below
  // One element for each output of each node:
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::string> dtypes;
  std::vector<int64_t> storage;  // storage id: values with the same one share memory
  std::vector<int64_t> devices;  // device types; empty: the CPU

  size_t entry(const Entry& e) const { return rows[e.first] + e.second; }
  // Total bytes of storage; each is as large as its largest value.
  uint64_t storage_bytes() const;
};

// Errors: ParseError (no JSON), BadArtifact (a key is missing, an index out of range, a node before its input).
Result<GraphJson> read_graph_json(std::string_view text);

}  // namespace tilewright::frontend
