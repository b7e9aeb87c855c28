// SPDX-License-Identifier: Apache-2.0
// Recurrent layers, compiled as one product and one scan, against the reference interpreter's whole layers.
#include <gtest/gtest.h>

#include "driver/verify.h"
#include "relay/op.h"
#include "relay/ops/attrs.h"

namespace tilewright::driver {
namespace {
using namespace relay;

struct Layer {
  const char* op;
  const char* direction = "forward";
  int64_t steps = 5, batch = 2, inputs = 7, hidden = 12;
  bool linear_before_reset = false, input_forget = false, peephole = false;
  double clip = 0;
  std::vector<int64_t> lengths;
  std::vector<std::string> activations;
  const char* target = "llvm";
  bool constant_weights = true;
};

void check_recurrent(const Layer& l) {
  const std::string op = l.op;
  const bool lstm = op == "nn.lstm";
  const int64_t gates = lstm             ? 4
                        : op == "nn.gru" ? 3
                                         : 1,
                directions = std::string(l.direction) == "bidirectional" ? 2 : 1;
  auto constant = [](std::vector<int64_t> shape, uint64_t seed) {
    return make_constant(random_tensor(kFloat32, shape, seed));
  };
  Expr x = make_var("x", tensor_type(to_shape({l.steps, l.batch, l.inputs}), kFloat32));
  Expr h0 = make_var("h0", tensor_type(to_shape({directions, l.batch, l.hidden}), kFloat32));
  std::vector<Expr> args{x, constant({directions, gates * l.hidden, l.inputs}, 1),
                         constant({directions, gates * l.hidden, l.hidden}, 2),
                         constant({directions, 2 * gates * l.hidden}, 3), h0};
  if (lstm) args.push_back(constant({directions, l.batch, l.hidden}, 5));
  if (l.peephole) args.push_back(constant({directions, 3 * l.hidden}, 6));
  if (!l.lengths.empty()) args.push_back(make_constant(Tensor::from<int64_t>(kInt64, {l.batch}, l.lengths)));
  std::vector<Expr> inputs{x, h0};
  if (!l.constant_weights) args[2] = make_var("r", args[2]->type), inputs.push_back(args[2]);
  Expr layer = call(op, args, make_attrs<RecurrentAttrs>([&](auto& a) {
                      a.hidden_size = l.hidden;
                      a.direction = l.direction;
                      a.linear_before_reset = l.linear_before_reset;
                      a.input_forget = l.input_forget;
                      a.has_peephole = l.peephole;
                      a.has_lengths = !l.lengths.empty();
                      a.clip = l.clip;
                      a.activations = l.activations;
                    }));
  std::vector<Expr> outputs{make_get(layer, 0), make_get(layer, 1)};
  if (lstm) outputs.push_back(make_get(layer, 2));
  VerifyOptions options;
  options.build.target = l.target;
  options.build.jobs = 1;
  auto report = verify_module(Module().with_main(make_function(inputs, make_tuple(outputs))), options);
  ASSERT_TRUE(report.ok()) << report.error().str();
  EXPECT_TRUE(report->ok()) << op << " " << l.direction << ": " << report->outputs[0];
}

TEST(Recurrent, EveryCellInEveryDirection) {
  for (const char* direction : {"forward", "reverse", "bidirectional"}) {
    check_recurrent({.op = "nn.lstm", .direction = direction});
    check_recurrent({.op = "nn.gru", .direction = direction});
    check_recurrent({.op = "nn.gru", .direction = direction, .linear_before_reset = true});
    check_recurrent({.op = "nn.rnn", .direction = direction});
  }
}
TEST(Recurrent, SizesAndBatches) {
  for (int64_t hidden : {3, 16, 40})
    for (int64_t batch : {1, 5})
      for (const char* op : {"nn.lstm", "nn.gru", "nn.rnn"})
        check_recurrent({.op = op, .batch = batch, .hidden = hidden});
}
TEST(Recurrent, OneStep) {
  for (const char* op : {"nn.lstm", "nn.gru", "nn.rnn"})
    check_recurrent({.op = op, .direction = "bidirectional", .steps = 1, .batch = 3, .hidden = 40});
  check_recurrent({.op = "nn.gru", .steps = 1, .hidden = 35, .linear_before_reset = true});
}
// Steps that read many weights are calls of their own, which threads share.
TEST(Recurrent, StepsApart) {
  for (const char* direction : {"forward", "reverse"}) {
    check_recurrent({.op = "nn.lstm", .direction = direction, .steps = 4, .batch = 1, .hidden = 260, .peephole = true});
    check_recurrent({.op = "nn.gru", .direction = direction, .batch = 1, .hidden = 300, .linear_before_reset = true});
    check_recurrent({.op = "nn.rnn", .direction = direction, .steps = 2, .batch = 1, .hidden = 520});
  }
  check_recurrent({.op = "nn.gru", .batch = 1, .hidden = 300});  // two passes: one call
}
TEST(Recurrent, LongSequences) {
  check_recurrent({.op = "nn.lstm", .direction = "bidirectional", .steps = 300, .batch = 1, .inputs = 4, .hidden = 16});
  check_recurrent({.op = "nn.gru", .steps = 257, .batch = 1, .inputs = 4, .hidden = 16});
}
TEST(Recurrent, LengthsOfSamples) {
  for (const char* direction : {"forward", "bidirectional"})
    for (const char* op : {"nn.lstm", "nn.gru", "nn.rnn"})
      check_recurrent({.op = op, .direction = direction, .batch = 4, .lengths = {5, 0, 3, 1}});
}
TEST(Recurrent, VariantsOfTheCells) {
  check_recurrent({.op = "nn.lstm", .peephole = true, .clip = 0.5});
  check_recurrent({.op = "nn.lstm",
                   .direction = "bidirectional",
                   .input_forget = true,
                   .activations = {"HardSigmoid", "Relu", "Softsign", "Sigmoid", "ScaledTanh", "Elu"}});
  check_recurrent({.op = "nn.gru", .activations = {"HardSigmoid", "LeakyRelu"}});
  check_recurrent({.op = "nn.rnn", .activations = {"Softplus"}});
}
TEST(Recurrent, WeightsThatAreInputs) {
  for (const char* op : {"nn.lstm", "nn.gru", "nn.rnn"})
    for (int64_t hidden : {5, 32})
      check_recurrent({.op = op, .direction = "bidirectional", .hidden = hidden, .constant_weights = false});
}
TEST(Recurrent, NarrowerVectors) {
  for (const char* target : {"llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v2"})
    for (const char* op : {"nn.lstm", "nn.gru"})
      check_recurrent({.op = op, .batch = 3, .hidden = 20, .target = target});
}

}  // namespace
}  // namespace tilewright::driver
