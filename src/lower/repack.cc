// SPDX-License-Identifier: Apache-2.0
// The step that packs constants into the layouts that kernels read.
#include <algorithm>
#include <map>

#include "lower/steps.h"

namespace tilewright::lower {
namespace {

void add_table(Graph* graph, Group* group, const Tensor& table) {
  GraphTensor t;
  t.name = "table";
  t.dtype = table.dtype();
  t.shape = table.shape();
  t.kind = GraphTensor::Kind::kParam;
  t.data = table;
  t.weight = Weight(table);
  group->inputs.push_back(static_cast<int>(graph->tensors.size()));
  graph->tensors.push_back(std::move(t));
}

GraphTensor packed_tensor(const GraphTensor& from, const Pack& pack, const Tensor& packed) {
  GraphTensor t = from;
  t.consumers.clear();
  t.shape = packed.shape();
  t.dtype = packed.dtype();
  t.weight = Weight(t.data, pack, packed);
  return t;
}

}  // namespace

Result<bool> repack_weights(LoweringSetting*, LoweringState* state) {
  Graph& graph = state->graph;
  bool any = false;
  // Packed weights, by constant, implementation and configuration.
  std::map<std::tuple<int, std::string, std::vector<int64_t>>, int> done;
  for (size_t g = 0; g < graph.groups.size(); ++g) {
    Group& group = graph.groups[g];
    for (const Tensor& table : group.choice->tables) add_table(&graph, &group, table);
    for (const auto& [input, pack] : group.choice->repacks) {
      any = true;
      const int id = group.inputs[static_cast<size_t>(input)];
      const Tensor packed = pack(graph.tensors[id].data);
      auto [it, fresh] =
          done.try_emplace({id, group.choice->implementation + " " + group.choice->configuration, packed.shape()},
                           static_cast<int>(graph.tensors.size()));
      if (fresh) graph.tensors.push_back(packed_tensor(graph.tensors[id], pack, packed));
      group.inputs[static_cast<size_t>(input)] = it->second;
      const int user = static_cast<int>(g);
      graph.tensors[it->second].consumers.push_back(user);
      auto& users = graph.tensors[id].consumers;
      users.erase(std::remove(users.begin(), users.end(), user), users.end());
    }
    any = any || !group.choice->tables.empty();
  }
  return any;
}

}  // namespace tilewright::lower
