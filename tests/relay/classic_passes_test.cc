// SPDX-License-Identifier: Apache-2.0
// Passes beside those of the classic stack (version 0.9.0): the same module in, its output out, or a reason why not.
// Its passes ran on a small convolutional network whose constants are weights; where its graph form stands for the
// result, the pass left it alone.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "relay/passes/default_pipeline.h"
#include "relay/text.h"
#include "test_folders.h"

namespace tilewright::relay {
namespace {

struct Case {
  const char* pass;
  const char* input;  // files of tests/data/classic/passes
  const char* output;
  const char* differs = "";  // the reason
};

// The classic ToANormalForm had changed the module in place when the last ones ran: their input is in that form.
constexpr Case kCases[] = {
    {"CanonicalizeOps", "ToGraphNormalForm", "CanonicalizeOps"},
    {"CombineParallelConv2D", "ToGraphNormalForm", "ToGraphNormalForm"},
    {"EliminateCommonSubexpr", "ToGraphNormalForm", "ToGraphNormalForm"},
    {"FoldConstant", "ToGraphNormalForm", "ToGraphNormalForm"},
    {"FoldScaleAxis", "ToGraphNormalForm", "ToGraphNormalForm"},
    {"SimplifyInference", "ToGraphNormalForm", "SimplifyInference"},
    {"ToANormalForm", "ToGraphNormalForm", "ToANormalForm"},
    {"ToANormalForm", "ToANormalForm", "ToANormalForm"},
    {"ToGraphNormalForm", "ToANormalForm", "ToGraphNormalForm"},
    {"ToBasicBlockNormalForm", "ToANormalForm", "ToANormalForm"},
    {"DefuseOps", "ToANormalForm", "ToANormalForm"},
    {"LambdaLift", "ToANormalForm", "ToANormalForm"},
    {"SplitArgs", "ToANormalForm", "ToANormalForm"},
    {"AlterOpLayout", "ToANormalForm", "AlterOpLayout",
     "blocks are as wide as the target's vectors, and only where they pay: each convolution and dense layer of the "
     "classic result has a block of its own, "
     "chosen by its schedule"},
};

// The network's weights, in the order of its text.
std::vector<Tensor> weights() {
  std::vector<Tensor> out;
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{8, 3, 3, 3}, {8}, {8}, {8}, {8}, {16, 8, 3, 3}, {16}, {10, 16}, {10}}) {
    Tensor t = Tensor::zeros(kFloat32, shape);
    for (int64_t i = 0; i < t.size(); ++i) t.set_double(i, 1 + static_cast<double>(out.size()));
    out.push_back(std::move(t));
  }
  return out;
}

Module read_case(const std::string& name) {
  std::stringstream text;
  text << std::ifstream(std::string(TW_TEST_DATA) + "/classic/passes/" + name + ".txt").rdbuf();
  std::vector<Tensor> constants = weights();
  // Constants count in the order of the text: the arithmetic of batch_norm names the variance first.
  if (name == "SimplifyInference")
    constants = {constants[0], constants[4], constants[1], constants[3], constants[2],
                 constants[5], constants[6], constants[7], constants[8]};
  auto module = parse_module(text.str(), constants);
  EXPECT_TRUE(module.ok()) << name << ": " << module.error().str();
  return module.ok() ? *module : Module();
}

class ClassicPass : public testing::TestWithParam<Case> {};

TEST_P(ClassicPass, GivesTheSame) {
  const Case& c = GetParam();
  PassContext context;
  context.opt_level = 4;
  auto result = run_passes(read_case(c.input), {c.pass}, context);
  ASSERT_TRUE(result.ok()) << result.error().str();
  EXPECT_EQ(structural_equal(*result, read_case(c.output)), !*c.differs) << c.differs << "\n"
                                                                         << print_module(*result).text;
}

INSTANTIATE_TEST_SUITE_P(Each, ClassicPass, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.pass) + "_on_" + info.param.input; });

}  // namespace
}  // namespace tilewright::relay
