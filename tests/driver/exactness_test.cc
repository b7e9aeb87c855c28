// SPDX-License-Identifier: Apache-2.0
// Keys that tell kernels, weights and expressions apart keep every bit: what differs in one constant, attribute or type
// is another kernel, or computes the same.
#include <bit>
#include <cstring>
#include <random>
#include <set>

#include "base/format.h"
#include "driver/build.h"
#include "driver/graphs.h"
#include "lower/strategy.h"
#include "relay/interpreter.h"

namespace tilewright::driver {
namespace {
using namespace relay;
using namespace testing;

Expr of_bits(uint64_t bits, DataType dtype) {
  Tensor t = Tensor::zeros(dtype, {});
  std::memcpy(t.mutable_raw(), &bits, t.bytes());
  return make_constant(std::move(t));
}

// The plan of two graphs side by side, which share nothing but what the compiler finds equal.
lower::Lowered lowered(const Expr& first, const Expr& second, const std::vector<Expr>& inputs) {
  BuildOptions options;
  auto built = optimize(Module().with_main(make_function(inputs, make_tuple({first, second}))), options);
  EXPECT_TRUE(built.ok()) << built.error().str();
  auto out = lower::lower_module(built->optimized, built->target);
  EXPECT_TRUE(out.ok()) << out.error().str();
  return std::move(*out);
}

TEST(Exactness, NeighbouringInt64ConstantsAreTwoKernels) {
  constexpr int64_t kLarge = int64_t{1} << 53;
  std::vector<Expr> inputs{input("a", {4}, kInt64), input("b", {4}, kInt64)};
  auto plus = [&](size_t i, int64_t v) {
    return call("add", {inputs[i], make_constant(Tensor::scalar<int64_t>(kInt64, v))});
  };
  EXPECT_EQ(lowered(plus(0, kLarge), plus(1, kLarge + 1), inputs).kernels.size(), 2u);
  EXPECT_EQ(lowered(plus(0, kLarge), plus(1, kLarge), inputs).kernels.size(), 1u) << "equal ones share theirs";
  check(inputs, make_tuple({plus(0, kLarge), plus(1, kLarge + 1)}));
}

TEST(Exactness, PayloadsOfNotANumberAreTold) {
  std::vector<Expr> inputs{input("a", {4}, kInt32), input("b", {4}, kInt32)};
  auto bits = [&](size_t i, uint64_t v) {
    Expr data = call("reinterpret", {of_bits(v, kFloat32)}, make_attrs<CastAttrs>([](auto& a) { a.dtype = kInt32; }));
    return call("add", {inputs[i], data});
  };
  EXPECT_EQ(lowered(bits(0, 0x7fc00001), bits(1, 0x7fc00002), inputs).kernels.size(), 2u);
}

// Bounds beyond 2^53 stay exact: a clip holds them as doubles, so extremes of 64-bit integers must not become one.
TEST(Exactness, ExtremesOfLargeIntegersStayExact) {
  Expr x = input("x", {8}, kInt64);
  auto at = [](int64_t v) { return make_constant(Tensor::scalar<int64_t>(kInt64, v)); };
  constexpr int64_t kLarge = (int64_t{1} << 53) + 1;
  check({x}, call("minimum", {call("maximum", {call("add", {x, at(kLarge + 3)}), at(kLarge)}), at(kLarge + 4)}));
}

// 6^22 has 57 bits.
TEST(Exactness, PowersOfWholeNumbersAreExact) {
  Expr x = input("x", {64}, kInt64), y = input("y", {64}, kInt64);
  auto at = [](int64_t v) { return make_constant(Tensor::scalar<int64_t>(kInt64, v)); };
  Expr base = call("subtract", {call("floor_mod", {x, at(13)}), at(6)});
  check({x, y}, call("power", {base, call("floor_mod", {y, at(23)})}));
  Expr unit = call("subtract", {call("bitwise_and", {x, at(2)}), at(1)});  // -1 or 1
  check({x, y}, call("power", {unit, y}));
}

// A random call on `x` from a number: neighbouring numbers give graphs that differ in one place.
Expr variant(const Expr& x, DataType dtype, int kind, uint64_t v) {
  const auto small = static_cast<int64_t>(v % 3);
  switch (kind) {
    case 0:
      return call("add", {x, of_bits(v, dtype)});
    case 1:
      return call("multiply", {x, of_bits(v, dtype)});
    case 2:
      return call("maximum", {x, of_bits(v, dtype)});
    case 3:
      return call("clip", {x}, make_attrs<ClipAttrs>([&](auto& a) {
                    a.a_min = -std::nextafter(1.0, 2.0 + static_cast<double>(small));
                    a.a_max = 1 + static_cast<double>(small) * 0x1p-40;
                  }));
    case 4:
      return call("strided_slice", {x}, make_attrs<StridedSliceAttrs>([&](auto& a) {
                    a.begin = {small}, a.end = {small + 2}, a.strides = {1};
                    a.axes = std::vector<int64_t>{0};
                  }));
    case 5:
      return call("cast", {x}, make_attrs<CastAttrs>([&](auto& a) {
                    a.dtype = small == 0 ? kInt32 : small == 1 ? kUInt32 : kFloat32;
                  }));
    case 6:
      return call("transpose", {call("reshape", {x}, make_attrs<ReshapeAttrs>([&](auto& a) {
                                       a.newshape = {2, 2, 2};
                                     }))},
                  make_attrs<TransposeAttrs>([&](auto& a) {
                    a.axes = small == 0 ? std::vector<int64_t>{1, 0, 2} : std::vector<int64_t>{0, 2, 1};
                  }));
    default:
      return call("sum", {x}, make_attrs<ReduceAttrs>([&](auto& a) {
                    a.axis = std::vector<int64_t>{0};
                    a.keepdims = small != 0;
                  }));
  }
}

// What a graph of one input gives, as bytes.
std::string result(const Expr& x, const Expr& e, const Tensor& value) {
  auto out = interpret(Module().with_main(make_function({x}, e)), {{as<VarNode>(x)->name, value_from(value)}});
  EXPECT_TRUE(out.ok()) << out.error().str();
  const Tensor t = to_tensor(out->at(0));
  return t.dtype().str() + shape_str(t.shape()) + std::string(reinterpret_cast<const char*>(t.raw()), t.bytes());
}

TEST(Exactness, GraphsThatDifferInOnePlaceGetTheirKernels) {
  std::mt19937_64 random(20);
  const DataType dtypes[] = {kInt64, kFloat64, kUInt64, kFloat32, kInt32};
  int shared = 0;
  for (int round = 0; round < 240; ++round) {
    const DataType dtype = dtypes[random() % std::size(dtypes)];
    const int kind = static_cast<int>(random() % 8);
    // Numbers whose neighbours a double, or fewer digits of one, cannot tell: large integers, doubles an ulp apart.
    uint64_t v = dtype == kFloat64   ? std::bit_cast<uint64_t>(1.0 + static_cast<double>(random() % 100) / 7)
                 : dtype == kFloat32 ? std::bit_cast<uint32_t>(1.0f + static_cast<float>(random() % 100) / 7)
                 : dtype.bits == 32  ? random() % (1u << 31)
                                     : (uint64_t{1} << 53) + random() % 64;
    const uint64_t w = random() % 4 == 0 ? v : v + 1 + random() % 2;
    Expr a = input("a", {8}, dtype), b = input("b", {8}, dtype);
    Expr first = variant(a, dtype, kind, v), second = variant(b, dtype, kind, w);
    const lower::Lowered out = lowered(first, second, {a, b});
    // What a step does: its kernel and the constants that it reads.
    std::set<std::pair<uint32_t, std::vector<uint64_t>>> distinct;
    for (const plan::Step& s : out.plan.steps) {
      std::vector<uint64_t> constants;
      for (uint32_t id : s.buffers)
        if (const plan::Buffer& b = out.plan.buffers[id]; b.space == plan::Space::kParams)
          constants.push_back(b.offset);
      distinct.emplace(s.kernel, std::move(constants));
    }
    if (distinct.size() == out.plan.steps.size()) continue;
    ++shared;
    const Tensor value = random_tensor(dtype, {8}, static_cast<uint64_t>(round));
    EXPECT_EQ(result(a, first, value), result(b, second, value))
        << "kind " << kind << " of " << dtype.str() << ", " << v << " and " << w;
  }
  EXPECT_GT(shared, 10) << "equal graphs share their kernels, so this test would see one shared wrongly";
}

TEST(Exactness, NamesOfImplementationsTellThemApart) {
  for (const char* op :
       {"nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.contrib_conv2d_NCHWc", "nn.dense", "nn.batch_matmul", "nn.matmul",
        "nn.conv2d_transpose", "nn.conv1d_transpose", "nn.conv3d_transpose", "nn.max_pool2d", "nn.avg_pool2d",
        "nn.softmax", "sum", "max", "argmax", "topk"}) {
    std::set<std::string> names;
    for (const lower::Implementation* i : lower::implementations_of(op))
      EXPECT_TRUE(names.insert(i->name).second) << op << " has two implementations called " << i->name;
  }
}

TEST(Exactness, OnlyBlockedChannelsAreLabelledSo) {
  auto layouts = [](const Module& module) {
    BuildOptions options;
    options.target = "llvm -mcpu=x86-64-v4";
    auto built = optimize(module, options);
    EXPECT_TRUE(built.ok()) << built.error().str();
    std::set<std::string> out;
    const lower::Lowered made = *lower::lower_module(built->optimized, built->target);
    for (const plan::Buffer& b : made.plan.buffers)
      if (!b.layout.empty()) out.insert(b.layout);
    return out;
  };
  Expr video = input("x", {1, 4, 6, 8, 8});
  Expr three = call("nn.conv3d", {relu(video), constant({8, 4, 3, 3, 3})}, make_attrs<Conv3DAttrs>([](auto& a) {
                      a.kernel_size = std::vector<int64_t>{3, 3, 3};
                      a.channels = 8;
                      a.padding = {1, 1, 1, 1, 1, 1};
                    }));
  EXPECT_EQ(layouts(Module().with_main(make_function({video}, relu(video)))), std::set<std::string>());
  EXPECT_EQ(layouts(Module().with_main(make_function({video}, relu(three)))), std::set<std::string>{"NCDHW16c"});
  Expr picture = input("x", {1, 32, 8, 8});
  Expr two = relu(conv(bias(conv(picture, 32, 32, 3, 1, 1), 32), 32, 32, 3, 1, 1));
  const auto blocked = layouts(Module().with_main(make_function({picture}, two)));
  ASSERT_EQ(blocked.size(), 1u);
  EXPECT_EQ(blocked.begin()->substr(0, 4), "NCHW");
  EXPECT_EQ(blocked.begin()->back(), 'c');
}

// Back in plain layout, a vector of pixels may go over the ends of rows: operands that differ from row to row, or
// within one, must follow. (They were read as if they lay one after the other; with one column the compiler stopped.)
TEST(Exactness, OperandsOfLayoutChangesFollowTheRows) {
  for (const char* target : {"llvm", "llvm -mcpu=haswell"})
    for (std::vector<int64_t> size : {std::vector<int64_t>{5, 6}, {5, 1}, {1, 1}, {1, 5}})
      for (std::vector<int64_t> other : {std::vector<int64_t>{size[1]},
                                         {size[0], 1},
                                         {17, 1, 1},
                                         {17, size[0], 1},
                                         {17, 1, size[1]},
                                         {17, size[0], size[1]},
                                         {1, 1, 1}}) {
        Expr x = input("x", {1, 8, size[0], size[1]});
        check({x}, call("add", {call("exp", {conv(x, 17, 8, 1, 1, 0)}), constant(other)}), target);
      }
}

// A group that no kernel can be made of is taken apart: the model compiles, and the count says it.
TEST(Exactness, GroupsWithoutAKernelAreTakenApart) {
  Expr x = input("x", {1, 8, 6, 6});
  BuildOptions options;
  struct Broken : lower::KernelChooser {
    lower::Decision choose(const lower::Problem& p, std::span<const lower::Candidate> candidates) const override {
      if (p.group.name.find('+') != std::string::npos) internal_error("a", 1, "template is broken");
      return KernelChooser::choose(p, candidates);
    }
  };
  options.chooser = std::make_shared<Broken>();
  auto built = build(Module().with_main(make_function({x}, relu(bias(conv(x, 16, 8, 3, 1, 1), 16)))), options);
  ASSERT_TRUE(built.ok()) << built.error().str();
  ASSERT_EQ(built->lowered.taken_apart.size(), 1u);
  EXPECT_NE(built->lowered.taken_apart[0].find("template is broken"), std::string::npos);
  EXPECT_NE(built->lowered.taken_apart[0].find("+"), std::string::npos) << "the group is named";
}

// Rounding up, the classic formula keeps a window that begins in the padding behind the data.
TEST(Exactness, PoolsWhoseLastWindowIsAllPadding) {
  for (int64_t channels : {3, 32}) {
    Expr x = input("x", {1, channels, 5, 6});
    auto pool = [&](auto tag, const char* op, bool include) {
      using A = decltype(tag);
      return call(op, {relu(x)}, make_attrs<A>([&](auto& a) {
                    a.pool_size = {2, 3};
                    a.strides = {3, 3};
                    a.padding = {1, 1, 1, 2};
                    a.ceil_mode = true;
                    if constexpr (requires { a.count_include_pad; }) a.count_include_pad = include;
                  }));
    };
    // Rows: 5 + 1 + 1 - 2 = 5 rounds up to 2 steps of 3 (row 6 is the padding behind the data).
    Expr most = pool(MaxPool2DAttrs(), "nn.max_pool2d", false);
    EXPECT_EQ(type_str(most->type), format("Tensor[(1, {}, 3, 3), float32]", channels));
    check({x}, pool(AvgPool2DAttrs(), "nn.avg_pool2d", false));
    check({x}, pool(AvgPool2DAttrs(), "nn.avg_pool2d", true));
  }
}

}  // namespace
}  // namespace tilewright::driver
