// SPDX-License-Identifier: Apache-2.0
// Groups that end in half a block of channels: two of them side by side, and one that is left over.
#include "topi/paired_groups.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <limits>
#include <random>

#include "harness.h"
#include "topi/pack.h"

namespace tilewright::topi::testing {
namespace {

struct PairedCase {
  Conv2dProblem p;
  PairedGroupsConfig config;
  View data, weights, out;
  Memory input, packed;
  std::vector<float> filter;  // (OC, channels of a group, kh, kw)
  int kernel = 0;
};

Conv2dProblem random_problem(std::mt19937& random, int v) {
  auto pick = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  Conv2dProblem p;
  p.lanes = v / 2, p.split = 2;
  p.batch = pick(1, 2), p.groups = pick(2, 5);
  p.out_channels = p.groups * (2 * pick(0, 2) + 1) * p.lanes;
  p.in_channels = p.groups * pick(1, 4) * p.lanes;
  p.in_height = pick(3, 9), p.in_width = pick(3, 20);
  p.kernel_height = pick(1, 3), p.kernel_width = pick(1, 3);
  p.stride_height = pick(1, 2), p.stride_width = pick(1, 2);
  p.dilation_height = pick(1, 2), p.dilation_width = p.kernel_width < 3 ? pick(1, 2) : 1;
  p.pad_top = p.pad_bottom = pick(0, 1) * p.dilation_height, p.pad_left = p.pad_right = pick(0, 2);
  auto out = [](int64_t in, int64_t pad, int64_t kernel, int64_t dilation, int64_t stride) {
    return (in + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
  };
  p.out_height = out(p.in_height, p.pad_top, p.kernel_height, p.dilation_height, p.stride_height);
  p.out_width = out(p.in_width, p.pad_left, p.kernel_width, p.dilation_width, p.stride_width);
  return p;
}

PairedCase make_case(const Conv2dProblem& p, const PairedGroupsConfig& config, uint32_t seed) {
  const int64_t v = int64_t{2} * p.lanes, per_group = p.in_channels / p.groups;
  const HaloNeed need = halo_need(p);
  View data = view_with_halo("data", {p.batch, ceil_div(p.in_channels, v), p.in_height, p.in_width, v},
                             {0, 0, need.top, need.left, 0}, {0, 0, need.bottom, need.right, 0}, kFloat32, true);
  const auto shape = paired_weight_shape(p);
  View weights = make_view(tir::make_buffer("weights", kFloat32, product(shape), tir::Scope::kGlobal, 64, true), shape);
  const std::vector<int64_t> out_shape{p.batch, ceil_div(p.out_channels, v), p.out_height, p.out_width, v};
  View out = make_view(tir::make_buffer("out", kFloat32, product(out_shape), tir::Scope::kGlobal, 64), out_shape);
  Memory input(data.buffer->size), packed(product(shape));
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for_each_index(data.shape, [&](const std::vector<int64_t>& i) {
    if (i[1] * v + i[4] < p.in_channels) input[flat_at(data, i)] = uniform(random);
  });
  Tensor filter(kFloat32, {p.out_channels, per_group, p.kernel_height, p.kernel_width});
  for (float& x : filter.as_mutable<float>()) x = uniform(random);
  const Tensor made = pack_paired_weights(pack_conv2d_weights(filter, p.lanes, p.lanes), p);
  EXPECT_EQ(made.shape(), shape);
  std::memcpy(packed.data(), made.raw(), made.bytes());
  const auto values = filter.as<float>();
  return {p, config, data, weights, out, std::move(input), std::move(packed), {values.begin(), values.end()}};
}

double expected_at(const PairedCase& c, const std::vector<int64_t>& at) {
  const Conv2dProblem& p = c.p;
  const int64_t v = int64_t{2} * p.lanes, o = at[1] * v + at[4], per_group = p.in_channels / p.groups;
  if (o >= p.out_channels) return 1;
  double sum = 0;
  for (int64_t i = 0; i < per_group; ++i)
    for (int64_t y = 0; y < p.kernel_height; ++y)
      for (int64_t x = 0; x < p.kernel_width; ++x) {
        const int64_t from = o / (p.out_channels / p.groups) * per_group + i,
                      row = at[2] * p.stride_height - p.pad_top + y * p.dilation_height,
                      column = at[3] * p.stride_width - p.pad_left + x * p.dilation_width;
        if (row < 0 || column < 0 || row >= p.in_height || column >= p.in_width) continue;
        const int64_t tap = ((o * per_group + i) * p.kernel_height + y) * p.kernel_width + x;
        sum += double{c.input[flat_at(c.data, {at[0], from / v, row, column, from % v})]} *
               c.filter[static_cast<size_t>(tap)];
      }
  return 2 * sum + 1;
}

TEST(PairedGroups, RandomShapesAgainstLoops) {
  KernelSet set;
  const int v = set.target().lanes(32);
  if (v < 16) GTEST_SKIP() << "blocks of " << v << " channels are not cut in halves";
  std::deque<PairedCase> cases;
  std::mt19937 random(20);
  for (int round = 0; round < 12; ++round) {
    const Conv2dProblem p = random_problem(random, v);
    if (p.out_height < 1 || p.out_width < 1) continue;
    ASSERT_TRUE(has_paired_groups(p));
    const int most = static_cast<int>(2 * p.out_channels / p.groups / v);
    PairedGroupsConfig any{1 + static_cast<int>(random() % 6),
                           1 + static_cast<int>(random() % static_cast<unsigned>(most))};
    for (const PairedGroupsConfig& config : {paired_groups_configs(p, set.target(), 1)[0], any}) {
      ASSERT_TRUE(fits(p, config));
      PairedCase& c = cases.emplace_back(make_case(p, config, static_cast<uint32_t>(round)));
      auto twice_and_one = [](tir::PrimExpr value, const Index&, const tir::PrimExpr&) {
        return value * tir::make_const(value->dtype, 2) + tir::make_const(value->dtype, 1);
      };
      c.kernel = set.add({c.out.buffer, c.data.buffer, c.weights.buffer}, [&](const KernelContext& context) {
        return paired_groups_conv2d_nchwc(c.p, c.config, c.data, c.weights, c.out, twice_and_one, context);
      });
    }
  }
  set.build();
  for (PairedCase& c : cases) {
    const std::string name = format("groups {} of {} to {}, {}x{}: {}", c.p.groups, c.p.in_channels, c.p.out_channels,
                                    c.p.out_height, c.p.out_width, to_text(c.config));
    Memory first(c.out.buffer->size, 99);
    for (int threads : {1, 3}) {
      Memory out(c.out.buffer->size, 99);
      set.run(c.kernel, {out.data(), c.input.data(), c.packed.data()}, threads);
      ASSERT_TRUE(out.intact()) << name;
      if (threads > 1) {
        ASSERT_EQ(std::memcmp(out.data(), first.data(), static_cast<size_t>(out.size()) * 4), 0) << name;
      }
      std::memcpy(first.data(), out.data(), static_cast<size_t>(out.size()) * 4);
    }
    for_each_index(c.out.shape, [&](const std::vector<int64_t>& at) {
      ASSERT_NEAR(first[flat_at(c.out, at)], expected_at(c, at), 1e-3) << name;
    });
  }
}

// What lies beside a group that is left over is never multiplied, not even by zero.
TEST(PairedGroups, NothingOfNoGroupReachesTheLastBlock) {
  KernelSet set;
  const int v = set.target().lanes(32);
  if (v < 16) GTEST_SKIP() << "blocks of " << v << " channels are not cut in halves";
  Conv2dProblem p;
  p.lanes = v / 2, p.split = 2, p.groups = 3;
  p.in_channels = p.out_channels = 3 * 3 * p.lanes;
  p.in_height = p.out_height = 2, p.in_width = p.out_width = 5;
  PairedCase c = make_case(p, {2, 3}, 1);
  const int64_t inside = (p.in_channels - 3 * p.lanes) / v, lane = 0;
  c.input[flat_at(c.data, {0, inside, 0, 0, lane})] = std::numeric_limits<float>::infinity();
  c.kernel = set.add({c.out.buffer, c.data.buffer, c.weights.buffer}, [&](const KernelContext& context) {
    return paired_groups_conv2d_nchwc(
        c.p, c.config, c.data, c.weights, c.out,
        [](tir::PrimExpr value, const Index&, const tir::PrimExpr&) { return value; }, context);
  });
  set.build();
  Memory out(c.out.buffer->size, 99);
  set.run(c.kernel, {out.data(), c.input.data(), c.packed.data()}, 1);
  for_each_index(c.out.shape, [&](const std::vector<int64_t>& at) {
    if (at[1] * v + at[4] >= p.out_channels) {
      EXPECT_EQ(out[flat_at(c.out, at)], 0.0f);
    }
  });
}

}  // namespace
}  // namespace tilewright::topi::testing
