// SPDX-License-Identifier: Apache-2.0
// Recurrent layers, compiled step by step, against the reference interpreter's whole layers.
#include <gtest/gtest.h>

#include "driver/verify.h"
#include "relay/op.h"
#include "relay/ops/attrs.h"

namespace tilewright::driver {
namespace {
using namespace relay;

void check(const char* op, int64_t gates, const char* direction, bool linear_before_reset = false) {
  const int64_t steps = 5, batch = 2, inputs = 7, hidden = 12, directions = std::string(direction) == "bidirectional" ? 2 : 1;
  auto constant = [](std::vector<int64_t> shape, uint64_t seed) { return make_constant(random_tensor(kFloat32, shape, seed)); };
  Expr x = make_var("x", tensor_type(to_shape({steps, batch, inputs}), kFloat32));
  std::vector<Expr> args{x, constant({directions, gates * hidden, inputs}, 1), constant({directions, gates * hidden, hidden}, 2),
                         constant({directions, 2 * gates * hidden}, 3), constant({directions, batch, hidden}, 4)};
  bool lstm = std::string(op) == "nn.lstm";
  if (lstm) args.push_back(constant({directions, batch, hidden}, 5));
  Expr layer = call(op, args, make_attrs<RecurrentAttrs>([&](auto& a) {
                      a.hidden_size = hidden;
                      a.direction = direction;
                      a.linear_before_reset = linear_before_reset;
                    }));
  std::vector<Expr> outputs{make_get(layer, 0), make_get(layer, 1)};
  if (lstm) outputs.push_back(make_get(layer, 2));
  VerifyOptions options;
  options.build.jobs = 1;
  auto report = verify_module(Module().with_main(make_function({x}, make_tuple(outputs))), options);
  ASSERT_TRUE(report.ok()) << report.error().str();
  EXPECT_TRUE(report->ok()) << op << " " << direction << ": " << report->outputs[0];
}

TEST(Recurrent, EveryCellInEveryDirection) {
  for (const char* direction : {"forward", "reverse", "bidirectional"}) {
    check("nn.lstm", 4, direction);
    check("nn.gru", 3, direction);
    check("nn.gru", 3, direction, true);
    check("nn.rnn", 1, direction);
  }
}

}  // namespace
}  // namespace tilewright::driver
