// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/channel_blocks.h"

#include <gtest/gtest.h>

#include "frontend/onnx/import.h"

namespace tilewright::onnx {
namespace {

Node blocked(const char* op, std::vector<std::string> in, std::string out, std::vector<Attribute> attributes = {}) {
  Node n;
  n.op_type = op;
  n.domain = kBlockedDomain;
  n.inputs = std::move(in);
  n.outputs = {std::move(out)};
  n.attributes = std::move(attributes);
  return n;
}

// A picture through convolutions with weights of these sizes; `channels` of the last one's outputs are real.
Model chain(const std::vector<std::vector<int64_t>>& weights, int64_t channels) {
  Model m;
  m.opsets[""] = 13;
  m.opsets[kBlockedDomain] = 1;
  std::string from = "x";
  for (size_t i = 0; i < weights.size(); ++i) {
    const std::string w = "w" + std::to_string(i), to = "y" + std::to_string(i);
    m.graph.initializers.push_back({w, Tensor::zeros(kFloat32, weights[i])});
    m.graph.nodes.push_back(blocked("Conv", {from, w}, to));
    from = to;
  }
  m.graph.nodes.push_back(blocked("ReorderOutput", {from}, "y", {int_attribute("channels", channels)}));
  auto info = [](const char* name, int64_t c) {
    ValueInfo v;
    v.name = name;
    v.type.kind = ValueType::kTensor;
    v.type.elem = kFloat32;
    v.type.shape = std::vector<ValueType::DimInfo>{{1, ""}, {c, ""}, {5, ""}, {5, ""}};
    return v;
  };
  m.graph.inputs.push_back(info("x", weights[0][1]));
  m.graph.outputs.push_back(info("y", channels));
  return m;
}
int64_t block_of(const Model& m, int64_t otherwise) {
  const Model marked = with_channel_blocks(m, otherwise);
  const Attribute* a = marked.graph.nodes[0].find(kChannelBlock);
  return a ? a->i : 0;
}

TEST(ChannelBlocks, SizesTell) {
  EXPECT_EQ(block_of(chain({{8, 3, 3, 3}, {24, 8, 1, 1}}, 24), 0), 8);    // 8 and 24 are no multiples of 16
  EXPECT_EQ(block_of(chain({{16, 3, 3, 3}, {16, 16, 1, 1}}, 3), 0), 16);  // 3 would be rounded up to 8
  EXPECT_EQ(block_of(chain({{16, 12, 3, 3}}, 16), 0), 16);                // 12 inputs are fewer than a block
}

TEST(ChannelBlocks, WhereBothFitTheCallerDecides) {
  const Model m = chain({{32, 3, 3, 3}, {64, 32, 1, 1}}, 64);
  EXPECT_EQ(block_of(m, 8), 8);
  EXPECT_EQ(block_of(m, 16), 16);
  EXPECT_EQ(block_of(m, 0), 0);
  auto refused = import_onnx(m);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupportedOp);
  ImportOptions options;
  options.channel_block = 16;
  auto imported = import_onnx(m, options);
  ASSERT_TRUE(imported.ok()) << imported.error().str();
  EXPECT_EQ(type_str(imported->main_function()->body->type), "Tensor[(1, 64, 3, 3), float32]");
}

TEST(ChannelBlocks, WeightsThatDoNotFit) {
  Model m = chain({{16, 3, 3, 3}, {16, 16, 1, 1}}, 3);
  m.graph.nodes[0].attributes.push_back(int_attribute(kChannelBlock, 24));
  auto failed = import_onnx(m);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kMalformedModel);
}

}  // namespace
}  // namespace tilewright::onnx
