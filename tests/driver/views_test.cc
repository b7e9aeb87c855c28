// SPDX-License-Identifier: Apache-2.0
// Operators that only say where elements lie compile to no kernel: concatenations, splits and slices of channels.
#include <map>

#include "driver/graphs.h"

namespace tilewright::driver {
namespace {
using namespace relay;
using namespace testing;

Expr concat(std::vector<Expr> parts, int64_t axis = 1) {
  return call("concatenate", {make_tuple(std::move(parts))},
              make_attrs<ConcatenateAttrs>([&](auto& a) { a.axis = axis; }));
}
Expr channels(Expr x, int64_t begin, int64_t end) {
  return call("strided_slice", {x}, make_attrs<StridedSliceAttrs>([&](auto& a) {
                a.begin = {begin}, a.end = {end}, a.strides = {1};
                a.axes = std::vector<int64_t>{1};
              }));
}

// The steps of the compiled graph that hold no convolution, after comparing it with the interpreter. Two always change
// the layout of the model's input and output.
std::vector<std::string> steps_besides_convolutions(Expr x, Expr body) {
  check({x}, body);
  BuildOptions options;
  options.jobs = 1;
  auto built = build(Module().with_main(make_function({x}, body)), options);
  std::vector<std::string> out;
  if (!built.ok()) return {built.error().str()};
  for (const auto& step : built->lowered.plan.steps)
    if (step.name.find("conv2d") == std::string::npos) out.push_back(step.name);
  return out;
}
using Steps = std::vector<std::string>;
const Steps kEnds{"layout_transform", "layout_transform"};

// Every layer reads all results so far, as the file writes it: a concatenation of its own per layer.
TEST(Views, DenseBlockHasOneBuffer) {
  Expr x = input("x", {1, 32, 9, 9});
  std::vector<Expr> results{relu(conv(x, 32, 32, 1, 1, 0))};
  int64_t width = 32;
  for (int i = 0; i < 4; ++i) {
    Expr all = results.size() == 1 ? results[0] : concat(results);
    Expr narrow = relu(bias(conv(all, 32, width, 1, 1, 0), 32));
    results.push_back(conv(narrow, 16, 32, 3, 1, 1));
    width += 16;
  }
  EXPECT_EQ(steps_besides_convolutions(x, conv(concat(results), 16, width, 1, 1, 0)), kEnds);
}

// The other way to write it: each concatenation adds to the one before.
TEST(Views, GrowingConcatenation) {
  Expr x = input("x", {1, 32, 9, 9});
  Expr all = relu(conv(x, 32, 32, 1, 1, 0));
  int64_t width = 32;
  for (int i = 0; i < 3; ++i) {
    all = concat({all, conv(all, 16, width, 3, 1, 1)});
    width += 16;
  }
  EXPECT_EQ(steps_besides_convolutions(x, conv(all, 16, width, 1, 1, 0)), kEnds);
}

// An operand that is a result of the model keeps a place of its own, and what is a run of it then does, too.
TEST(Views, OperandsThatCannotMove) {
  Expr x = input("x", {1, 32, 6, 6});
  Expr a = relu(conv(x, 16, 32, 1, 1, 0)), b = relu(conv(x, 16, 32, 3, 1, 1)),
       c = relu(bias(conv(x, 16, 32, 1, 1, 0), 16));
  Expr first = concat({a, b}), second = concat({a, b, c});
  check({x}, make_tuple({conv(first, 16, 32, 1, 1, 0), conv(second, 16, 48, 1, 1, 0), a}));
  check({x}, make_tuple({first, second}));
  check({x}, make_tuple({conv(first, 16, 32, 1, 1, 0), second}));
  check({x}, make_tuple({conv(concat({b, a}), 16, 32, 3, 1, 1), conv(second, 16, 48, 3, 1, 1),
                         conv(concat({b, c}), 16, 32, 1, 1, 0)}));
  check({x}, make_tuple({conv(concat({a, a}), 16, 32, 3, 1, 1), conv(concat({a, a, b}), 16, 48, 1, 1, 0)}));
}

// What normalisation follows reads the one buffer.
TEST(Views, ElementwiseFollowerReadsTheBuffer) {
  Expr x = input("x", {1, 32, 7, 5});
  Expr a = relu(conv(x, 32, 32, 1, 1, 0)), b = conv(a, 16, 32, 3, 1, 1);
  Expr normalised =
      relu(call("add", {call("multiply", {concat({a, b}), constant({1, 48, 1, 1}, 3)}), constant({1, 48, 1, 1}, 4)}));
  EXPECT_EQ(steps_besides_convolutions(x, conv(normalised, 16, 48, 1, 1, 0)),
            (Steps{"layout_transform", "multiply+add+nn.relu", "layout_transform"}));
}

// Halves of a result, one of them transformed, side by side again (the "C2f" block of detectors).
TEST(Views, HalvesJoinAgain) {
  Expr x = input("x", {1, 32, 8, 8});
  Expr y = relu(conv(x, 64, 32, 1, 1, 0));
  Expr left = channels(y, 0, 32), right = channels(y, 32, 64);
  Expr once = call("add", {right, relu(conv(right, 32, 32, 3, 1, 1))});
  Expr twice = call("add", {once, relu(conv(once, 32, 32, 3, 1, 1))});
  EXPECT_EQ(steps_besides_convolutions(x, conv(concat({left, right, once, twice}), 16, 128, 1, 1, 0)), kEnds);
}

TEST(Views, CutsOfBlockedTensors) {
  Expr x = input("x", {1, 32, 9, 10});
  Expr y = relu(conv(x, 48, 32, 1, 1, 0));
  auto cut = [&](std::vector<int64_t> begin, std::vector<int64_t> end, std::vector<int64_t> strides,
                 std::vector<int64_t> axes) {
    return call("strided_slice", {y}, make_attrs<StridedSliceAttrs>([&](auto& a) {
                  a.begin = begin, a.end = end, a.strides = strides, a.axes = axes;
                }));
  };
  check({x}, conv(cut({2, -7}, {8, -1}, {1, 2}, {2, 3}), 16, 48, 1, 1, 0));
  check({x}, conv(cut({1, 2, -7}, {40, 8, -1}, {1, 1, 3}, {1, 2, -1}), 16, 39, 1, 1, 0));  // starts within a block
  check({x}, conv(cut({16, 0}, {40, 5}, {1, 1}, {-3, 2}), 16, 24, 3, 1, 1));               // ends within one
  check({x}, cut({16}, {40}, {1}, {1}));
  check({x}, conv(cut({8, -3}, {0, -9}, {-1, -1}, {2, 3}), 16, 48, 1, 1, 0));  // backwards
  check({x}, conv(cut({0}, {48}, {2}, {1}), 16, 24, 1, 1, 0));
}

// Changes between plain and blocked channels go through registers, with what follows; also where channels or rows are
// odd.
TEST(Views, LayoutChangesTakeInWhatFollows) {
  for (auto [channels, height, width] : {std::tuple<int64_t, int64_t, int64_t>{32, 7, 9}, {20, 5, 16}, {16, 33, 3}}) {
    Expr x = input("x", {1, 32, height, width}), y = input("y", {1, channels, height, width});
    Expr blocked = conv(x, channels, 32, 1, 1, 0);
    Expr scale = input("s", {1, channels, 1, 1});
    check({x, y, scale}, call("multiply", {call("add", {call("exp", {blocked}), y}), scale}));
    // A grouped convolution that has no blocked kernel gives plain channels; squeeze-and-excite scales them.
    Expr grouped = conv(blocked, channels, 4, 3, 1, 1, channels / 4);
    check({x, scale}, conv(call("multiply", {relu(grouped), scale}), 16, channels, 1, 1, 0));
    auto turn = [](Expr e, std::vector<int64_t> axes) {
      return call("transpose", {e}, make_attrs<TransposeAttrs>([&](auto& a) { a.axes = axes; }));
    };
    check({x, y}, call("add", {call("multiply", {turn(y, {0, 2, 3, 1}), constant({channels}, 5)}),
                               constant({1, height, width, 1}, 6)}));
    check({y}, call("add", {turn(y, {0, 1, 3, 2}), call("exp", {turn(y, {0, 1, 3, 2})})}));
  }
}

// Nearest-neighbour resizing of something computed, back in plain channels.
TEST(Views, ResizedSumBesideOthers) {
  Expr x = input("x", {1, 32, 6, 6});
  Expr a = conv(x, 24, 32, 1, 1, 0), b = conv(x, 24, 32, 3, 1, 1);
  Expr sum = call("add", {a, call("multiply", {a, b})});
  Expr large = call("image.resize2d", {sum}, make_attrs<Resize2DAttrs>([](auto& t) {
                      t.size = {12, 12};
                      t.method = "nearest_neighbor";
                      t.coordinate_transformation_mode = "asymmetric";
                      t.rounding_method = "floor";
                    }));
  check({x}, relu(large));
  Expr z = input("z", {1, 32, 12, 12});
  check({x, z}, conv(concat({large, conv(z, 24, 32, 1, 1, 0)}), 16, 48, 3, 1, 1));
}

TEST(Views, GlobalPoolsOfPlainRows) {
  for (const char* op : {"nn.global_avg_pool2d", "nn.global_max_pool2d"})
    for (int64_t width : {7, 16, 37}) {
      Expr x = input("x", {2, 5, 6, width});
      check({x}, relu(call(op, {x}, make_default_attrs<GlobalPool2DAttrs>())));
    }
}

}  // namespace
}  // namespace tilewright::driver
