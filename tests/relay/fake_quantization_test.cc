// SPDX-License-Identifier: Apache-2.0
// FakeQuantizationToInteger: each operator that has a rule becomes integer arithmetic whose results are those of the
// real arithmetic within the last step of the output's scale.
#include "relay/passes/quantize/fake_quantization_to_integer.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/format.h"
#include "relay/interpreter.h"
#include "relay/text.h"
#include "relay/verifier.h"

namespace tilewright::relay {
namespace {

struct Case {
  const char* name;
  const char* body;  // over %a, %b: Tensor[(1, 4, 6, 6), uint8], %w: Tensor[(6, 4, 3, 3), int8]; constants 0..2
  int64_t tolerance = 1;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.body; }

constexpr Case kCases[] = {
    {"requantize", "qnn.quantize(qnn.dequantize(%a, 0.5f, 3), 0.7f, 9, out_dtype=\"uint8\")"},
    {"conv2d",
     "qnn.quantize(nn.relu(nn.bias_add(nn.conv2d(qnn.dequantize(%a, 0.05f, 120), qnn.dequantize(%w, "
     "meta[relay.Constant][0], 0, axis=0), padding=[1, 1, 1, 1], channels=6, kernel_size=[3, 3]), "
     "meta[relay.Constant][1])), 0.4f, 10, out_dtype=\"uint8\")"},
    {"conv2d_bias_by_add",
     "qnn.quantize(clip(add(nn.conv2d(qnn.dequantize(%a, 0.05f, 120), qnn.dequantize(%w, meta[relay.Constant][0], 0, "
     "axis=0), channels=6, kernel_size=[3, 3]), meta[relay.Constant][2]), a_min=0f, a_max=6f), 0.03f, 0, "
     "out_dtype=\"uint8\")"},
    {"conv2d_max_pool",
     "qnn.quantize(nn.max_pool2d(nn.conv2d(qnn.dequantize(%a, 0.05f, 120), qnn.dequantize(%w, 0.1f, 4), channels=6, "
     "kernel_size=[3, 3]), pool_size=[2, 2]), 2f, 7, out_dtype=\"int8\")"},
    {"conv2d_transpose",
     "qnn.quantize(nn.conv2d_transpose(qnn.dequantize(%a, 0.05f, 120), qnn.dequantize(strided_slice(%w, begin=[0], "
     "end=[4], axes=[0]), 0.1f, 4), channels=4, kernel_size=[3, 3], strides=[2, 2]), 2f, 7, out_dtype=\"int8\")"},
    {"dense",
     "qnn.quantize(nn.dense(qnn.dequantize(reshape(%a, newshape=[4, 36]), 0.05f, 120), qnn.dequantize(reshape(%w, "
     "newshape=[6, 36]), meta[relay.Constant][0], 0, axis=0)), 0.9f, 10, out_dtype=\"uint8\")"},
    {"matmul",
     "qnn.quantize(nn.matmul(qnn.dequantize(reshape(%a, newshape=[4, 36]), 0.05f, 120), qnn.dequantize(transpose("
     "reshape(%w, newshape=[6, 36])), meta[relay.Constant][0], 0, axis=1)), 0.9f, 10, out_dtype=\"uint8\")"},
    {"matmul_of_a_turned_weight",
     "qnn.quantize(nn.matmul(qnn.dequantize(reshape(%a, newshape=[4, 36]), 0.05f, 120), qnn.dequantize(reshape(%w, "
     "newshape=[6, 36]), 0.1f, 4), transpose_b=True), 0.9f, 10, out_dtype=\"uint8\")"},
    {"batch_matmul",
     "qnn.quantize(nn.batch_matmul(qnn.dequantize(reshape(%a, newshape=[4, 6, 6]), 0.05f, 120), "
     "qnn.dequantize(reshape(%b, newshape=[4, 6, 6]), 0.02f, 100)), 0.1f, 10, out_dtype=\"int8\")"},
    {"add",
     "qnn.quantize(nn.relu(add(qnn.dequantize(%a, 0.5f, 3), qnn.dequantize(%b, 0.25f, 90))), 0.6f, 5, "
     "out_dtype=\"uint8\")"},
    {"subtract",
     "qnn.quantize(subtract(qnn.dequantize(%a, 0.5f, 3), qnn.dequantize(%b, 0.25f, 90)), 0.6f, 120, "
     "out_dtype=\"uint8\")"},
    {"multiply",
     "qnn.quantize(multiply(qnn.dequantize(%a, 0.5f, 100), qnn.dequantize(%b, 0.25f, 90)), 40f, 120, "
     "out_dtype=\"uint8\")"},
    {"multiply_by_a_number",
     "qnn.quantize(divide(multiply(qnn.dequantize(%a, 0.5f, 100), 3f), 1.5f), 0.9f, 120, out_dtype=\"uint8\")"},
    {"clip", "qnn.quantize(clip(qnn.dequantize(%a, 0.1f, 100), a_min=-3f, a_max=6f), 0.1f, 100, out_dtype=\"uint8\")"},
    {"leaky_relu",
     "qnn.quantize(nn.leaky_relu(qnn.dequantize(%a, 0.1f, 100), alpha=0.2f), 0.1f, 20, "
     "out_dtype=\"uint8\")"},
    {"sigmoid", "qnn.quantize(sigmoid(qnn.dequantize(%a, 0.05f, 100)), 0.004f, 0, out_dtype=\"uint8\")"},
    {"tanh", "qnn.quantize(tanh(qnn.dequantize(%a, 0.05f, 100)), 0.008f, 128, out_dtype=\"uint8\")"},
    {"avg_pool2d",
     "qnn.quantize(nn.avg_pool2d(qnn.dequantize(%a, 0.5f, 90), pool_size=[3, 2], strides=[2, 2], "
     "padding=[1, 1, 1, 1]), 0.4f, 80, out_dtype=\"uint8\")"},
    {"avg_pool2d_with_padding",
     "qnn.quantize(nn.avg_pool2d(qnn.dequantize(%a, 0.5f, 90), pool_size=[3, 3], padding=[1, 1, 1, 1], "
     "count_include_pad=True), 0.4f, 80, out_dtype=\"uint8\")"},
    {"global_avg_pool2d",
     "qnn.quantize(nn.global_avg_pool2d(qnn.dequantize(%a, 0.5f, 90)), 0.3f, 80, "
     "out_dtype=\"uint8\")"},
    {"mean", "qnn.quantize(mean(qnn.dequantize(%a, 0.5f, 90), axis=[1, -1]), 0.3f, 80, out_dtype=\"uint8\")"},
    {"moves",
     "qnn.quantize(strided_slice(expand_dims(transpose(reshape(qnn.dequantize(%a, 0.5f, 90), newshape=[4, 36]), "
     "axes=[1, 0]), axis=0), begin=[0, 3], end=[1, 30], axes=[0, 1]), 0.3f, 80, out_dtype=\"uint8\")"},
    {"pad",
     "qnn.quantize(nn.pad(qnn.dequantize(%a, 0.5f, 90), 0f, pad_width=[[0, 0], [0, 0], [1, 2], [0, 1]]), 0.5f, 90, "
     "out_dtype=\"uint8\")",
     0},
    {"concatenate_alike",
     "qnn.quantize(concatenate((qnn.dequantize(%a, 0.5f, 90), qnn.dequantize(%b, 0.5f, 90)), "
     "axis=1), 0.5f, 90, out_dtype=\"uint8\")",
     0},
    {"concatenate",
     "qnn.quantize(nn.relu(concatenate((qnn.dequantize(%a, 0.5f, 90), qnn.dequantize(%b, 0.3f, 9)), "
     "axis=1)), 0.6f, 2, out_dtype=\"uint8\")"},
};

Result<Module> module_of(const Case& c) {
  Tensor scales(kFloat32, {6}), bias(kFloat32, {6}), tall(kFloat32, {6, 1, 1});
  for (int64_t i = 0; i < 6; ++i) {
    scales.set_double(i, 0.01 * static_cast<double>(i + 1));
    bias.set_double(i, static_cast<double>(i) - 2.5);
    tall.set_double(i, static_cast<double>(i) - 1.5);
  }
  return parse_module(format("#[version = \"0.0.5\"]\ndef @main(%a: Tensor[(1, 4, 6, 6), uint8], %b: Tensor[(1, 4, 6, "
                             "6), uint8], %w: Tensor[(6, 4, 3, 3), int8]) {{\n  {}\n}}\n",
                             c.body),
                      std::vector<Tensor>{scales, bias, tall});
}

class FakeQuantization : public testing::TestWithParam<Case> {};

TEST_P(FakeQuantization, BecomesIntegersOfTheSameValues) {
  auto before = module_of(GetParam());
  ASSERT_TRUE(before.ok()) << before.error().str();
  auto after = fake_quantization_to_integer(*before, true);
  ASSERT_TRUE(after.ok()) << after.error().str();
  Status sound = verify_module(*after);
  ASSERT_TRUE(sound.ok()) << sound.error().str();
  for (const Expr& e : post_order(after->main(), true))
    if (as<CallNode>(e)) {
      const auto* t = as_tensor(e->type);
      EXPECT_TRUE(!t || t->dtype.is_integral()) << print_module(*after).text;
    }
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    std::map<std::string, Value> inputs;
    uint64_t state = seed;
    for (const Expr& p : before->main_function()->params) {
      const auto* t = as_tensor(p->type);
      Value v = make_value(t->dtype, *static_shape(t->shape));
      for (int64_t& i : v.i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        i = static_cast<int64_t>(state >> 56) - (t->dtype.is_int() ? 128 : 0);
      }
      inputs[as<VarNode>(p)->name] = std::move(v);
    }
    auto real = interpret(*before, inputs), integer = interpret(*after, inputs);
    ASSERT_TRUE(real.ok()) << real.error().str();
    ASSERT_TRUE(integer.ok()) << integer.error().str();
    ASSERT_EQ((*real)[0].i.size(), (*integer)[0].i.size());
    ASSERT_EQ((*real)[0].dtype, (*integer)[0].dtype);
    int64_t low = 1 << 20, high = -low;
    for (size_t i = 0; i < (*real)[0].i.size(); ++i) {
      const int64_t x = (*real)[0].i[i];
      low = std::min(low, x), high = std::max(high, x);
      ASSERT_LE(std::abs(x - (*integer)[0].i[i]), GetParam().tolerance) << i << "\n" << print_module(*after).text;
    }
    EXPECT_GT(high, low + 3) << "the case says nothing";
  }
}

INSTANTIATE_TEST_SUITE_P(Each, FakeQuantization, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(FakeQuantizationHardFail, NamesTheOperatorWithoutARule) {
  const Case c{"", "qnn.quantize(nn.softmax(nn.relu(qnn.dequantize(%a, 0.5f, 3))), 0.004f, 0, out_dtype=\"uint8\")"};
  auto module = module_of(c);
  ASSERT_TRUE(module.ok()) << module.error().str();
  auto result = fake_quantization_to_integer(*module, true);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kUnsupportedOp);
  EXPECT_NE(result.error().message.find("nn.softmax"), std::string::npos) << result.error().str();
  auto soft = fake_quantization_to_integer(*module, false);
  ASSERT_TRUE(soft.ok());
  EXPECT_TRUE(structural_equal(*soft, *module));
}

// A chain beyond the limit of a region stays real arithmetic, and what is found after it is as it would be without it.
TEST(FakeQuantizationLimit, ALongChainSpoilsNothingBesideIt) {
  std::string body, quantized;
  int named = 0;
  for (int length : {300, 301, 2}) {
    body += format("%{} = qnn.dequantize(%a, 0.5f, 3);\n  ", named++);
    for (int i = 0; i < length; ++i, ++named) body += format("%{} = nn.relu(%{});\n  ", named, named - 1);
    quantized += format("{}qnn.quantize(%{}, 0.7f, 9, out_dtype=\"uint8\")", quantized.empty() ? "" : ", ", named - 1);
  }
  body += "(" + quantized + ")";
  auto module = module_of({"", body.c_str()});
  ASSERT_TRUE(module.ok()) << module.error().str();
  auto after = fake_quantization_to_integer(*module, false);
  ASSERT_TRUE(after.ok()) << after.error().str();
  const auto* results = as<TupleNode>(as<FunctionNode>(after->main())->body);
  ASSERT_TRUE(results);
  EXPECT_TRUE(is_call_to(results->fields[0], "qnn.quantize"));
  EXPECT_TRUE(is_call_to(results->fields[1], "qnn.quantize"));
  EXPECT_TRUE(is_call_to(results->fields[2], "qnn.requantize")) << print_module(*after).text;
}

}  // namespace
}  // namespace tilewright::relay
