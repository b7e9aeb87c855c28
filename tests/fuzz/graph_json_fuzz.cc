// SPDX-License-Identifier: Apache-2.0
// fuzz-room: frontend
// fuzz-seeds: tests/data/classic
// A graph that the reader accepts can be walked by its indices; everything else is a diagnostic.
#include <cstdint>
#include <string>
#include <vector>

#include "frontend/classic/graph_json_reader.h"

using namespace tilewright;

extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  seeds->push_back(R"({"nodes": [{"op": "null", "name": "x", "inputs": []},
 {"op": "tvm_op", "name": "f", "attrs": {"func_name": "f", "num_inputs": "1", "num_outputs": "2", "flatten_data": "0"},
  "inputs": [[0, 0, 0]]}],
 "arg_nodes": [0], "heads": [[1, 1, 0]], "node_row_ptr": [0, 1, 3],
 "attrs": {"shape": ["list_shape", [[1, 3], [2], []]], "dltype": ["list_str", ["float32", "int8", "handle"]],
           "storage_id": ["list_int", [0, 1, 0]], "device_index": ["list_int", [1, 1, 12]]}})");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto graph = frontend::read_graph_json({reinterpret_cast<const char*>(data), size});
  if (!graph.ok()) {
    if (graph.error().str().empty() || graph.error().code == ErrorCode::kInternal) __builtin_trap();
    return 0;
  }
  uint64_t sum = graph->storage_bytes();
  auto look = [&](const frontend::GraphJson::Entry& e) {
    const size_t at = graph->entry(e);
    sum += graph->shapes.at(at).size() + graph->dtypes.at(at).size() + static_cast<uint64_t>(graph->storage.at(at));
    if (!graph->devices.empty()) sum += static_cast<uint64_t>(graph->devices.at(at));
  };
  for (size_t i = 0; i < graph->nodes.size(); ++i)
    for (const auto& e : graph->nodes[i].inputs) {
      if (e.first >= i) __builtin_trap();  // a circle
      look(e);
    }
  for (size_t node : graph->arguments) look({node, 0});
  for (const auto& e : graph->heads) look(e);
  volatile uint64_t used = sum;
  (void)used;
  return 0;
}
