// SPDX-License-Identifier: Apache-2.0
#include "runtime/classic/graph_json.h"

#include <gtest/gtest.h>

namespace tilewright::runtime {
namespace {

// Memory that is used again belongs to its last writer: a view of it has no part in what lay there before, however much
// longer that was.
TEST(GraphJson, AViewReadsTheLastWriterOnly) {
  plan::Plan p;
  p.inputs = {{"x", kFloat32, {128}}};
  p.outputs = {{"y", kFloat32, {16}}};
  p.kernels = {"k"};
  p.arena_bytes = 1024;
  p.buffers = {{plan::Space::kInput, 0, 0, 512, kFloat32, {128}, "", "x"},
               {plan::Space::kArena, 0, 0, 512, kFloat32, {128}, "", "a"},
               {plan::Space::kArena, 0, 512, 512, kFloat32, {128}, "", "b"},
               {plan::Space::kArena, 0, 0, 64, kFloat32, {4, 4}, "", "c"},
               {plan::Space::kArena, 0, 0, 64, kFloat32, {16}, "", "c.view"},
               {plan::Space::kOutput, 0, 0, 64, kFloat32, {16}, "", "y"}};
  p.steps = {{0, {0, 1}, false, "first"},
             {0, {1, 2}, false, "second"},
             {0, {2, 3}, false, "third"},
             {0, {4, 5}, false, "fourth"}};
  const Graph g = graph_of(p);
  ASSERT_EQ(g.nodes.size(), 5u);
  EXPECT_EQ(g.nodes[4].inputs, (std::vector<std::pair<size_t, size_t>>{{3, 0}}));
  EXPECT_EQ(g.nodes[2].inputs, (std::vector<std::pair<size_t, size_t>>{{1, 0}}));
  EXPECT_EQ(g.heads, (std::vector<std::pair<size_t, size_t>>{{4, 0}}));
}

}  // namespace
}  // namespace tilewright::runtime
