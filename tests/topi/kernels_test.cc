// SPDX-License-Identifier: Apache-2.0
// Depthwise, transposed and plain-layout convolution, pooling, resizing: each against plain loops.
#include <array>
#include <limits>

#include "harness.h"
#include "topi/conv2d_transpose.h"
#include "topi/conv_direct.h"
#include "topi/depthwise.h"
#include "topi/narrow_groups.h"
#include "topi/pack.h"
#include "topi/pool.h"
#include "topi/resize.h"

namespace tilewright::topi::testing {
namespace {

using Shape = std::vector<int64_t>;

View param(const char* name, const Shape& shape, DataType dtype = kFloat32) {
  return make_view(tir::make_buffer(name, dtype, product(shape), tir::Scope::kGlobal, 64, true), shape);
}
View result(const Shape& shape) {
  return make_view(tir::make_buffer("out", kFloat32, product(shape), tir::Scope::kGlobal, 64), shape);
}

// Doubles the value and adds 1 in the epilogue, so that it shows when one is skipped or applied twice.
Epilogue twice_plus_one() {
  return [](tir::PrimExpr value, const Index&, const tir::PrimExpr&) {
    return value * tir::make_const(value->dtype, 2) + tir::make_const(value->dtype, 1);
  };
}

// A kernel to run on named inputs, and what each element of its output should be.
struct Check {
  std::string name;
  View out;
  std::vector<Memory> inputs;
  int kernel;
  std::function<double(const Shape&)> expected;
  double scale = 1;
};

void run_checks(KernelSet& set, std::vector<Check>& checks) {
  set.build();
  for (Check& c : checks) {
    Memory first(c.out.buffer->size, 99);
    for (int threads : {1, 3}) {
      Memory out(c.out.buffer->size, 99);
      std::vector<void*> buffers{out.data()};
      for (Memory& m : c.inputs) buffers.push_back(m.data());
      set.run(c.kernel, buffers, threads);
      ASSERT_TRUE(out.intact()) << c.name;
      if (threads > 1) {
        ASSERT_EQ(std::memcmp(out.data(), first.data(), out.size() * 4), 0) << "depends on threads: " << c.name;
        continue;
      }
      std::memcpy(first.data(), out.data(), out.size() * 4);
      for_each_index(c.out.shape,
                     [&](const Shape& i) { expect_close(out[flat_at(c.out, i)], c.expected(i), c.scale, c.name); });
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// Fills a view's interior with random numbers; the rest of the buffer stays zero.
Memory filled(const View& view, uint32_t seed, const std::function<bool(const Shape&)>& real = {}) {
  Memory memory(view.buffer->size);
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for_each_index(view.shape, [&](const Shape& i) {
    if (!real || real(i)) memory[flat_at(view, i)] = uniform(random);
  });
  return memory;
}
Memory copy_of(const Tensor& t) {
  Memory memory(static_cast<int64_t>((t.bytes() + 3) / 4));
  std::memcpy(memory.data(), t.raw(), t.bytes());
  return memory;
}
Tensor random_tensor(const Shape& shape, uint32_t seed) {
  Tensor t(kFloat32, shape);
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (float& x : t.as_mutable<float>()) x = uniform(random);
  return t;
}

struct DepthwiseCase {
  int64_t n, c, h, w, k, s, d, pad;
};
DepthwiseProblem problem_of(const DepthwiseCase& q, int64_t v) {
  DepthwiseProblem p;
  p.batch = q.n, p.channels = q.c, p.in_height = q.h, p.in_width = q.w, p.kernel_height = p.kernel_width = q.k;
  p.stride_height = p.stride_width = q.s, p.dilation_height = p.dilation_width = q.d;
  p.pad_top = p.pad_left = p.pad_bottom = p.pad_right = q.pad, p.lanes = static_cast<int>(v);
  p.out_height = (q.h + 2 * q.pad - q.d * (q.k - 1) - 1) / q.s + 1;
  p.out_width = (q.w + 2 * q.pad - q.d * (q.k - 1) - 1) / q.s + 1;
  return p;
}

// Depthwise kernels under the configurations that `configs` gives for each problem.
void check_depthwise(const std::vector<DepthwiseCase>& cases,
                     const std::function<std::vector<DepthwiseConfig>(const DepthwiseProblem&)>& configs) {
  KernelSet set;
  std::vector<Check> checks;
  const int64_t v = set.target().lanes(32);
  for (const DepthwiseCase& q : cases)
    for (const DepthwiseConfig& config : configs(problem_of(q, v))) {
      const DepthwiseProblem p = problem_of(q, v);
      const int64_t blocks = ceil_div(q.c, v);
      View data = view_with_halo("data", {q.n, blocks, q.h, q.w, v}, {0, 0, q.pad, q.pad, 0}, {0, 0, q.pad, q.pad, 0},
                                 kFloat32, true);
      View weights = param("weights", {blocks, q.k, q.k, v}), out = result({q.n, blocks, p.out_height, p.out_width, v});
      int kernel = set.add({out.buffer, data.buffer, weights.buffer}, [&](const KernelContext& context) {
        return depthwise_conv2d_nchwc(p, config, data, weights, out, twice_plus_one(), context);
      });
      Tensor filter = random_tensor({q.c, 1, q.k, q.k}, 5);
      std::vector<Memory> inputs;
      inputs.push_back(filled(data, 1, [=](const Shape& i) { return i[1] * v + i[4] < q.c; }));
      inputs.push_back(copy_of(pack_depthwise_weights(filter, static_cast<int>(v))));
      Memory values = inputs[0];
      checks.push_back({format("c{} {}x{} k{} s{} d{} {}x{} held {}", q.c, q.h, q.w, q.k, q.s, q.d, config.tile_height,
                               config.tile_width, static_cast<int>(config.held)),
                        out, std::move(inputs), kernel,
                        [=](const Shape& i) {
                          double sum = 0;
                          int64_t c = i[1] * v + i[4];
                          for (int64_t y = 0; y < q.k && c < q.c; ++y)
                            for (int64_t x = 0; x < q.k; ++x) {
                              int64_t h = i[2] * q.s - q.pad + y * q.d, w = i[3] * q.s - q.pad + x * q.d;
                              if (h < 0 || w < 0 || h >= q.h || w >= q.w) continue;
                              sum += double{values[flat_at(data, {i[0], i[1], h, w, i[4]})]} *
                                     filter.as<float>()[(c * q.k + y) * q.k + x];
                            }
                          return 2 * sum + 1;
                        },
                        2.0 * q.k});
    }
  run_checks(set, checks);
}

TEST(Depthwise, AgainstLoops) {
  check_depthwise({{1, 32, 14, 14, 3, 1, 1, 1},
                   {2, 20, 9, 11, 3, 2, 1, 1},
                   {1, 16, 7, 7, 5, 1, 1, 2},
                   {1, 40, 13, 15, 5, 2, 1, 2},
                   {1, 16, 10, 10, 3, 1, 2, 2},
                   {1, 17, 12, 20, 7, 1, 1, 3},
                   {1, 16, 3, 3, 1, 1, 1, 0},
                   {1, 16, 6, 40, 3, 3, 1, 0},
                   {2, 160, 47, 51, 3, 2, 1, 1}},  // beyond the second-level cache
                  [](const DepthwiseProblem& p) { return std::vector{default_config(p, host_target())}; });
}

TEST(Depthwise, EveryWayToHoldTaps) {
  check_depthwise({{1, 20, 9, 11, 3, 2, 1, 1}, {1, 17, 8, 13, 5, 1, 2, 4}, {1, 160, 53, 67, 3, 1, 1, 1}},
                  [](const DepthwiseProblem&) {
                    return std::vector<DepthwiseConfig>{
                        {3, HeldTaps::kAll},    {4, HeldTaps::kRow},    {5, HeldTaps::kRow},    {1, HeldTaps::kRow},
                        {4, HeldTaps::kOne},    {2, HeldTaps::kAll, 2}, {3, HeldTaps::kRow, 3}, {4, HeldTaps::kRow, 2},
                        {2, HeldTaps::kOne, 4}, {2, HeldTaps::kRow, 60}};
                  });
}

// Several groups in a block of channels, with every shape of tile: whole ones, tails of both axes, channels held in
// parts.
TEST(NarrowGroups, EveryTile) {
  KernelSet set;
  std::vector<Check> checks;
  const int64_t v = set.target().lanes(32), n = 2, h = 7, w = 11;
  for (const auto& [width, k, s, d] : std::vector<std::array<int64_t, 4>>{{2, 3, 1, 1},
                                                                          {4, 3, 2, 1},
                                                                          {v / 2, 3, 1, 2},
                                                                          {v / 2, 1, 2, 1},
                                                                          {v, 3, 1, 1},
                                                                          {v, 3, 2, 1},
                                                                          {v, 3, 1, 2},
                                                                          {12, 3, 1, 1},
                                                                          {12, 3, 2, 1},
                                                                          {12, 1, 1, 1}}) {
    if (!is_narrow_group(width, width, v)) continue;  // 12 beside blocks of 8, 16 beside blocks of 16
    // Groups of 12: five, so that one begins in the last block and none behind it.
    const int64_t c = width == v       ? 3 * v
                      : v % width == 0 ? 2 * v - width
                                       : 5 * width,
                  pad = d * (k / 2), blocks = ceil_div(c, v);
    Conv2dProblem p;
    p.batch = n, p.in_channels = p.out_channels = c, p.groups = c / width, p.lanes = static_cast<int>(v);
    p.in_height = h, p.in_width = w, p.kernel_height = p.kernel_width = k, p.stride_height = p.stride_width = s;
    p.dilation_height = p.dilation_width = d, p.pad_top = p.pad_left = p.pad_bottom = p.pad_right = pad;
    p.out_height = (h + 2 * pad - d * (k - 1) - 1) / s + 1, p.out_width = (w + 2 * pad - d * (k - 1) - 1) / s + 1;
    const Tensor filter = random_tensor({c, width, k, k}, 5);
    auto tap = [=](int64_t o, int64_t i, int64_t y, int64_t x) {
      return filter.as<float>()[static_cast<size_t>(((o * width + i) * k + y) * k + x)];
    };
    for (const NarrowGroupsConfig config : {NarrowGroupsConfig{1, 3, 1}, {2, 4, 2}, {3, 2, 1}, {1, 40, 2}}) {
      ASSERT_TRUE(fits(p, config));
      View data =
          view_with_halo("data", {n, blocks, h, w, v}, {0, 0, pad, pad, 0}, {0, 0, pad, pad, 0}, kFloat32, true);
      View weights = param("weights", {blocks, 1, k, k, width, v}),
           out = result({n, blocks, p.out_height, p.out_width, v});
      const int kernel = set.add({out.buffer, data.buffer, weights.buffer}, [&](const KernelContext& context) {
        return narrow_groups_conv2d_nchwc(p, config, data, weights, out, twice_plus_one(), context);
      });
      Memory packed(product(weights.shape));
      for_each_index(weights.shape, [&](const Shape& i) {
        const int64_t o = i[0] * v + i[5];
        packed[flat_at(weights, i)] = o < c ? tap(o, i[4], i[2], i[3]) : 0;
      });
      std::vector<Memory> inputs;
      inputs.push_back(filled(data, 1, [=](const Shape& i) { return i[1] * v + i[4] < c; }));
      inputs.push_back(std::move(packed));
      Memory values = inputs[0];
      checks.push_back(
          {format("groups of {} k{} s{} d{}: {}", width, k, s, d, to_text(config)), out, std::move(inputs), kernel,
           [=](const Shape& at) {
             double sum = 0;
             const int64_t o = at[1] * v + at[4];
             for (int64_t i = 0; i < width && o < c; ++i)
               for (int64_t y = 0; y < k; ++y)
                 for (int64_t x = 0; x < k; ++x) {
                   const int64_t from = o / width * width + i, row = at[2] * s - pad + y * d,
                                 column = at[3] * s - pad + x * d;
                   if (row < 0 || column < 0 || row >= h || column >= w) continue;
                   sum += double{values[flat_at(data, {at[0], from / v, row, column, from % v})]} * tap(o, i, y, x);
                 }
             return 2 * sum + 1;
           },
           2.0 * static_cast<double>(k * k * width)});
    }
  }
  run_checks(set, checks);
}

TEST(Depthwise, RowsOfTheWindowStayInRegistersWhereAllDoNotFit) {
  Target narrow = host_target();
  narrow.vector_bits = 256, narrow.vector_registers = 16, narrow.machine = machine_model_of("haswell");
  Target wide = host_target();
  wide.vector_bits = 512, wide.vector_registers = 32, wide.machine = machine_model_of("znver4");
  auto held = [](int64_t kernel, const Target& target) {
    const DepthwiseProblem p = problem_of({1, 64, 28, 60, kernel, 1, 1, kernel / 2}, target.lanes(32));
    const DepthwiseConfig c = default_config(p, target);
    return c.held;
  };
  EXPECT_EQ(held(3, wide), HeldTaps::kAll);
  EXPECT_EQ(held(7, wide), HeldTaps::kRow);
  EXPECT_EQ(held(5, narrow), HeldTaps::kRow);
  EXPECT_EQ(held(7, narrow), HeldTaps::kRow);
  EXPECT_EQ(held(15, narrow), HeldTaps::kOne);
}

// Two multiply-adds a cycle that take four cycles each: fewer than eight sums wait for each other.
TEST(Depthwise, RowsTakeTurnsWhereOneHasTooFewSums) {
  Target target = host_target();
  target.vector_bits = 256, target.vector_registers = 16, target.machine = machine_model_of("znver3");
  for (int64_t width : {6, 11, 12}) {
    const DepthwiseConfig c = default_config(problem_of({1, 64, 24, width, 5, 1, 1, 2}, 8), target);
    EXPECT_GE(c.tile_height * c.tile_width, 8) << width;
    EXPECT_GT(c.tile_height, 1) << width;
  }
  for (int64_t width : {30, 37, 56})  // long rows have enough sums
    EXPECT_EQ(default_config(problem_of({1, 64, 24, width, 3, 1, 1, 1}, 8), target).tile_height, 1) << width;
  target.vector_bits = 512, target.vector_registers = 32, target.machine = machine_model_of("znver4");
  EXPECT_EQ(default_config(problem_of({1, 64, 24, 12, 5, 1, 1, 2}, 16), target).tile_height, 1);
}

TEST(Conv2dTranspose, AgainstLoops) {
  KernelSet set;
  std::vector<Check> checks;
  const int64_t v = set.target().lanes(32);
  struct Case {
    int64_t n, ic, oc, h, w, k, s, pad, out_pad, groups;
  };
  for (Case q : {Case{1, 16, 16, 5, 6, 2, 2, 0, 0, 1},
                 {1, 24, 33, 4, 7, 4, 2, 1, 0, 1},
                 {2, 16, 8, 5, 5, 3, 2, 1, 1, 1},
                 {1, 16, 16, 6, 6, 3, 1, 1, 0, 1},
                 {1, 16, 16, 3, 3, 2, 3, 0, 0, 1},
                 {1, 2 * v, 2 * v, 4, 4, 4, 4, 0, 0, 2},
                 {1, 5, 1, 8, 8, 2, 2, 0, 0, 1},
                 {1, 16, 16, 5, 4, 5, 2, 2, 1, 1}}) {
    Conv2dTransposeProblem p;
    p.batch = q.n, p.in_channels = q.ic, p.out_channels = q.oc, p.in_height = q.h, p.in_width = q.w;
    p.kernel_height = p.kernel_width = q.k, p.stride_height = p.stride_width = q.s, p.pad_top = p.pad_left = q.pad;
    p.groups = q.groups, p.lanes = static_cast<int>(v);
    p.out_height = (q.h - 1) * q.s - 2 * q.pad + q.k + q.out_pad,
    p.out_width = (q.w - 1) * q.s - 2 * q.pad + q.k + q.out_pad;
    HaloNeed need = halo_need(p);
    View data = view_with_halo("data", {q.n, ceil_div(q.ic, v), q.h, q.w, v}, {0, 0, need.top, need.left, 0},
                               {0, 0, need.bottom, need.right, 0}, kFloat32, true);
    Tensor filter = random_tensor({q.ic, q.oc / q.groups, q.k, q.k}, 5);
    Tensor packed = pack_conv2d_transpose_weights(filter, p);
    View weights = param("weights", packed.shape()),
         out = result({q.n, ceil_div(q.oc, v), p.out_height, p.out_width, v});
    int kernel = set.add({out.buffer, data.buffer, weights.buffer}, [&](const KernelContext& context) {
      return conv2d_transpose_nchwc(p, configs(p, set.target(), 1)[0], data, weights, out, twice_plus_one(), context);
    });
    std::vector<Memory> inputs;
    inputs.push_back(filled(data, 1, [=](const Shape& i) { return i[1] * v + i[4] < q.ic; }));
    inputs.push_back(copy_of(packed));
    Memory values = inputs[0];
    checks.push_back({format("ic{} oc{} {}x{} k{} s{} pad{}", q.ic, q.oc, q.h, q.w, q.k, q.s, q.pad), out,
                      std::move(inputs), kernel,
                      [=](const Shape& i) {
                        double sum = 0;
                        int64_t o = i[1] * v + i[4], icg = q.ic / q.groups, ocg = q.oc / q.groups;
                        if (o >= q.oc) return 1.0;
                        for (int64_t y = 0; y < q.k; ++y)
                          for (int64_t x = 0; x < q.k; ++x) {
                            int64_t h = i[2] + q.pad - y, w = i[3] + q.pad - x;
                            if (h < 0 || w < 0 || h % q.s || w % q.s || h / q.s >= q.h || w / q.s >= q.w) continue;
                            for (int64_t c = o / ocg * icg; c < (o / ocg + 1) * icg; ++c)
                              sum += double{values[flat_at(data, {i[0], c / v, h / q.s, w / q.s, c % v})]} *
                                     filter.as<float>()[((c * ocg + o % ocg) * q.k + y) * q.k + x];
                          }
                        return 2 * sum + 1;
                      },
                      2.0 * std::sqrt(double(q.ic)) * q.k});
  }
  run_checks(set, checks);
}

TEST(Conv2dTranspose, PlainRowsOfFewChannels) {
  KernelSet set;
  std::vector<Check> checks;
  const int64_t v = set.target().lanes(32);
  struct Case {
    int64_t n, ic, oc, h, w, kh, kw;
  };
  for (Case q : {Case{1, 24, 1, 5, 37, 2, 2},
                 {2, 16, 1, 3, 16, 2, 2},
                 {1, 5, 1, 4, 9, 1, 3},
                 {1, 20, 2, 3, 5, 1, 2},
                 {1, 33, 1, 2, 50, 1, 1},
                 {1, 16, 3, 4, 20, 2, 2},
                 {1, 16, 1, 4, 21, 4, 4}}) {
    Conv2dTransposeProblem p;
    p.batch = q.n, p.in_channels = q.ic, p.out_channels = q.oc, p.in_height = q.h, p.in_width = q.w;
    p.kernel_height = p.stride_height = q.kh, p.kernel_width = p.stride_width = q.kw, p.lanes = static_cast<int>(v);
    p.out_height = q.h * q.kh, p.out_width = q.w * q.kw;
    if (!paints_plain_rows(p)) {
      EXPECT_GT(q.oc * q.kh * q.kw, v);
      continue;
    }
    View data = param("data", {q.n, ceil_div(q.ic, v), q.h, q.w, v}),
         out = result({q.n, q.oc, p.out_height, p.out_width});
    Tensor filter = random_tensor({q.ic, q.oc, q.kh, q.kw}, 5), packed = pack_plain_rows_weights(filter, p);
    View weights = param("weights", packed.shape());
    int kernel = set.add({out.buffer, data.buffer, weights.buffer}, [&](const KernelContext& context) {
      return conv2d_transpose_plain_rows(p, data, weights, out, twice_plus_one(), context);
    });
    std::vector<Memory> inputs;
    inputs.push_back(filled(data, 1, [=](const Shape& i) { return i[1] * v + i[4] < q.ic; }));
    inputs.push_back(copy_of(packed));
    Memory values = inputs[0];
    checks.push_back({format("ic{} oc{} {}x{} k{}x{}", q.ic, q.oc, q.h, q.w, q.kh, q.kw), out, std::move(inputs),
                      kernel,
                      [=](const Shape& i) {
                        double sum = 0;
                        for (int64_t c = 0; c < q.ic; ++c)
                          sum += double{values[flat_at(data, {i[0], c / v, i[2] / q.kh, i[3] / q.kw, c % v})]} *
                                 filter.as<float>()[((c * q.oc + i[1]) * q.kh + i[2] % q.kh) * q.kw + i[3] % q.kw];
                        return 2 * sum + 1;
                      },
                      2.0 * std::sqrt(double(q.ic))});
  }
  run_checks(set, checks);
}

TEST(ConvDirect, OneToThreeDimensions) {
  KernelSet set;
  std::vector<Check> checks;
  struct Case {
    Shape data, kernel;
    int64_t oc, groups, s, d, pad;
  };
  for (Case q : {Case{{1, 4, 30}, {3}, 6, 1, 1, 1, 1},
                 {{2, 3, 50}, {5}, 4, 1, 2, 1, 2},
                 {{1, 6, 9, 20}, {3, 3}, 9, 3, 1, 1, 1},
                 {{1, 8, 7, 7}, {3, 3}, 8, 4, 2, 1, 1},
                 {{1, 2, 4, 5, 18}, {2, 3, 3}, 3, 1, 1, 1, 1},
                 {{1, 5, 40, 33}, {1, 1}, 1, 1, 1, 1, 0},
                 {{1, 4, 6, 37}, {3, 3}, 4, 4, 1, 2, 2},
                 {{1, 3, 6, 6, 6}, {3, 3, 3}, 5, 1, 2, 1, 1},
                 {{1, 8, 13, 21}, {3, 3}, 8, 2, 1, 1, 1},
                 {{2, 8, 11, 45}, {3, 3}, 8, 2, 2, 1, 1},
                 {{1, 24, 5, 9}, {3, 3}, 24, 2, 1, 1, 1},
                 {{1, 12, 7, 70}, {5, 1}, 12, 1, 1, 1, 2},
                 {{1, 9, 3, 7, 26}, {3, 3, 3}, 13, 1, 1, 1, 1}}) {
    const int spatial = static_cast<int>(q.kernel.size());
    ConvDirectProblem p{q.groups, q.kernel, Shape(spatial, q.s), Shape(spatial, q.d), Shape(spatial, q.pad)};
    Shape out_shape{q.data[0], q.oc}, halo(q.data.size(), 0), filter_shape{q.oc, q.data[1] / q.groups};
    for (int d = 0; d < spatial; ++d) {
      out_shape.push_back((q.data[d + 2] + 2 * q.pad - q.d * (q.kernel[d] - 1) - 1) / q.s + 1);
      halo[d + 2] = q.pad;
      filter_shape.push_back(q.kernel[d]);
    }
    View data = view_with_halo("data", q.data, halo, halo, kFloat32, true), weights = param("weights", filter_shape),
         out = result(out_shape);
    int kernel = set.add({out.buffer, data.buffer, weights.buffer}, [&](const KernelContext& context) {
      return conv_direct(p, default_config(p, data, out, set.target()), data, weights, out, twice_plus_one(), context);
    });
    Tensor filter = random_tensor(filter_shape, 5);
    std::vector<Memory> inputs;
    inputs.push_back(filled(data, 1));
    inputs.push_back(copy_of(filter));
    Memory values = inputs[0];
    checks.push_back({format("{} groups {}", shape_str(q.data), q.groups), out, std::move(inputs), kernel,
                      [=](const Shape& i) {
                        double sum = 0;
                        int64_t icg = q.data[1] / q.groups, ocg = q.oc / q.groups;
                        Shape window{icg};
                        window.insert(window.end(), q.kernel.begin(), q.kernel.end());
                        for_each_index(window, [&](const Shape& t) {
                          Shape at{i[0], i[1] / ocg * icg + t[0]};
                          int64_t tap = i[1] * icg + t[0];
                          for (int d = 0; d < spatial; ++d) {
                            at.push_back(i[d + 2] * q.s - q.pad + t[d + 1] * q.d);
                            tap = tap * q.kernel[d] + t[d + 1];
                            if (at.back() < 0 || at.back() >= q.data[d + 2]) return;
                          }
                          sum += double{values[flat_at(data, at)]} * filter.as<float>()[tap];
                        });
                        return 2 * sum + 1;
                      },
                      10});
  }
  run_checks(set, checks);
}

TEST(Pool, BordersCountsAndLayouts) {
  KernelSet set;
  std::vector<Check> checks;
  const int64_t v = set.target().lanes(32);
  struct Case {
    PoolKind kind;
    int64_t h, w, k, s, d, before, after;
    bool include, ceil;
  };
  for (bool blocked : {true, false})
    for (Case q : {Case{PoolKind::kMax, 12, 14, 3, 2, 1, 1, 1, false, false},
                   {PoolKind::kMax, 9, 40, 5, 1, 1, 2, 2, false, false},
                   {PoolKind::kAverage, 7, 9, 3, 2, 1, 1, 1, true, true},
                   {PoolKind::kAverage, 8, 50, 2, 2, 1, 0, 0, false, false},
                   {PoolKind::kAverage, 6, 33, 3, 1, 1, 1, 1, false, false},
                   {PoolKind::kMax, 10, 36, 2, 1, 2, 1, 0, false, false},
                   {PoolKind::kMax, 14, 300, 5, 1, 1, 2, 2, false, false},
                   {PoolKind::kAverage, 9, 210, 3, 1, 3, 3, 3, false, false},
                   {PoolKind::kMax, 15, 40, 13, 1, 1, 6, 6, false, false},
                   {PoolKind::kAverage, 20, 35, 16, 1, 2, 15, 15, true, false},
                   {PoolKind::kAverage, 4, 4, 7, 1, 1, 3, 3, true, false},
                   {PoolKind::kMax, 5, 5, 2, 3, 1, 0, 0, false, true}}) {
      PoolProblem p;
      p.kind = q.kind, p.in_height = q.h, p.in_width = q.w, p.kernel_height = p.kernel_width = q.k;
      p.stride_height = p.stride_width = q.s, p.dilation_height = p.dilation_width = q.d;
      p.pad_top = p.pad_left = q.before, p.pad_bottom = p.pad_right = q.after, p.count_include_pad = q.include;
      auto extent = [&](int64_t in) {
        int64_t room = in + q.before + q.after - q.d * (q.k - 1) - 1;
        return (q.ceil ? ceil_div(room, q.s) : room / q.s) + 1;
      };
      p.out_height = extent(q.h), p.out_width = extent(q.w);
      Shape in_shape{2, 2, q.h, q.w}, out_shape{2, 2, p.out_height, p.out_width};
      if (blocked) in_shape.push_back(v), out_shape.push_back(v);
      View data = param("data", in_shape), out = result(out_shape);
      int kernel = set.add({out.buffer, data.buffer}, [&](const KernelContext& context) {
        return blocked ? pool_nchwc(p, data, out, twice_plus_one(), context)
                       : pool_nchw(p, data, out, twice_plus_one(), context);
      });
      std::vector<Memory> inputs;
      inputs.push_back(filled(data, 1));
      Memory values = inputs[0];
      checks.push_back({format("blocked{} {}x{} k{} s{} d{} ceil{}", blocked, q.h, q.w, q.k, q.s, q.d, q.ceil), out,
                        std::move(inputs), kernel, [=](const Shape& i) {
                          double sum = 0, largest = -std::numeric_limits<double>::infinity();
                          int count = 0, counted = 0;
                          for (int64_t y = 0; y < q.k; ++y)
                            for (int64_t x = 0; x < q.k; ++x) {
                              int64_t h = i[2] * q.s - q.before + y * q.d, w = i[3] * q.s - q.before + x * q.d;
                              if (h < q.h + q.after && w < q.w + q.after) ++counted;
                              if (h < 0 || w < 0 || h >= q.h || w >= q.w) continue;
                              Shape at = i;
                              at[2] = h, at[3] = w;
                              double value = values[flat_at(data, at)];
                              sum += value, largest = std::max(largest, value), ++count;
                            }
                          return 2 * (q.kind == PoolKind::kMax ? largest : sum / (q.include ? counted : count)) + 1;
                        }});
    }
  for (PoolKind kind : {PoolKind::kAverage, PoolKind::kMax})
    for (int64_t halo : {0, 1}) {
      View data = view_with_halo("data", {2, 3, 7, 9, v}, {0, 0, halo, halo, 0}, {0, 0, halo, halo, 0}, kFloat32, true);
      View out = result({2, 3, 1, 1, v});
      int kernel = set.add({out.buffer, data.buffer}, [&](const KernelContext& context) {
        return global_pool_nchwc(kind, data, out, twice_plus_one(), context);
      });
      std::vector<Memory> inputs;
      inputs.push_back(filled(data, 4));
      Memory values = inputs[0];
      checks.push_back({format("global halo{}", halo), out, std::move(inputs), kernel, [=](const Shape& i) {
                          double sum = 0, largest = -2;
                          for (int64_t h = 0; h < 7; ++h)
                            for (int64_t w = 0; w < 9; ++w) {
                              double value = values[flat_at(data, {i[0], i[1], h, w, i[4]})];
                              sum += value, largest = std::max(largest, value);
                            }
                          return 2 * (kind == PoolKind::kMax ? largest : sum / 63) + 1;
                        }});
    }
  run_checks(set, checks);
}

TEST(Resize, NearestLinearCubic) {
  KernelSet set;
  std::vector<Check> checks;
  const int64_t v = set.target().lanes(32);
  for (bool blocked : {true, false})
    for (ResizeMethod method : {ResizeMethod::kNearest, ResizeMethod::kLinear, ResizeMethod::kCubic})
      for (ResizeCoordinates coordinates :
           {ResizeCoordinates::kHalfPixel, ResizeCoordinates::kAlignCorners, ResizeCoordinates::kAsymmetric}) {
        ResizeAxis rows{5, 13, 0, method, coordinates, ResizeRounding::kFloor},
            columns{8, 6, 0, method, coordinates, ResizeRounding::kFloor};
        Shape in_shape{1, 2, 5, 8}, out_shape{1, 2, 13, 6};
        if (blocked) in_shape.push_back(v), out_shape.push_back(v);
        View data = param("data", in_shape), out = result(out_shape);
        const int taps = resize_taps(method);
        ResizeTables tables{param("rows", {13, taps}, kInt32), param("row_weights", {13, taps}),
                            param("columns", {6, taps}, kInt32), param("column_weights", {6, taps})};
        int kernel = set.add({out.buffer, data.buffer, tables.rows.buffer, tables.row_weights.buffer,
                              tables.columns.buffer, tables.column_weights.buffer},
                             [&](const KernelContext& context) {
                               return resize2d(method, tables, data, out, twice_plus_one(), context);
                             });
        std::vector<Memory> inputs;
        inputs.push_back(filled(data, 1));
        Memory values = inputs[0];
        for (const Tensor& t :
             {resize_indices(rows), resize_weights(rows), resize_indices(columns), resize_weights(columns)})
          inputs.push_back(copy_of(t));
        checks.push_back(
            {format("blocked{} method {}", blocked, static_cast<int>(method)), out, std::move(inputs), kernel,
             [=](const Shape& i) {
               auto kernel_at = [&](double d) {  // interpolation weight at distance d
                 d = std::abs(d);
                 if (method == ResizeMethod::kLinear) return std::max(0.0, 1 - d);
                 return d <= 1 ? (1.25 * d - 2.25) * d * d + 1 : d < 2 ? ((-0.75 * d + 3.75) * d - 6) * d + 3 : 0.0;
               };
               double y = resize_coordinate(rows, i[2]), x = resize_coordinate(columns, i[3]), sum = 0;
               auto at = [&](int64_t h, int64_t w) {
                 Shape place = i;
                 place[2] = std::clamp<int64_t>(h, 0, 4), place[3] = std::clamp<int64_t>(w, 0, 7);
                 return double{values[flat_at(data, place)]};
               };
               if (method == ResizeMethod::kNearest) return 2 * at(std::floor(y), std::floor(x)) + 1;
               for (int64_t h = std::floor(y) - 1; h <= std::floor(y) + 2; ++h)
                 for (int64_t w = std::floor(x) - 1; w <= std::floor(x) + 2; ++w)
                   sum += kernel_at(y - h) * kernel_at(x - w) * at(h, w);
               return 2 * sum + 1;
             },
             5});
      }
  run_checks(set, checks);
}

}  // namespace
}  // namespace tilewright::topi::testing
