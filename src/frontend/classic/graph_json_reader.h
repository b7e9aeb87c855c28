// SPDX-License-Identifier: Apache-2.0
// The classic stack's graph JSON, and ours (runtime/classic/graph_json.h), as a graph whose every index has been
// checked.
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
    bool is_call = false;                      // else an input or a parameter
    std::vector<Entry> inputs;                 // of earlier nodes
    std::map<std::string, std::string> attrs;  // of a call: func_name, num_inputs, num_outputs and whatever else
    size_t outputs = 1;
  };
  std::vector<Node> nodes;
  std::vector<size_t> arguments;  // nodes
  std::vector<Entry> heads;
  std::vector<size_t> rows;  // of each node, and of the end: its first entry below
  // One for each output of each node:
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::string> dtypes;
  std::vector<int64_t> storage;  // values of one number share memory
  std::vector<int64_t> devices;  // types; empty: the processor

  size_t entry(const Entry& e) const { return rows[e.first] + e.second; }
  // Bytes that all storage takes, each as large as its largest value.
  uint64_t storage_bytes() const;
};

// Errors: ParseError (no JSON), BadArtifact (a key is missing, an index out of range, a node before its input).
Result<GraphJson> read_graph_json(std::string_view text);

}  // namespace tilewright::frontend
