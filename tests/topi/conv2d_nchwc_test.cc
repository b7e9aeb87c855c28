// SPDX-License-Identifier: Apache-2.0
#include "topi/conv2d_nchwc.h"

#include "harness.h"
#include "tir/text.h"
#include "topi/pack.h"

namespace tilewright::topi::testing {
namespace {

struct Case {
  Conv2dProblem p;
  int halo = 0;      // halo beyond what is needed
  int out_halo = 0;  // the output sits inside a larger buffer
  bool plain = false;
  std::string name() const {
    return format("n{} ic{} oc{} in{}x{} k{}x{} s{}x{} d{} pad{} g{} plain{} halo{}/{}", p.batch, p.in_channels,
                  p.out_channels, p.in_height, p.in_width, p.kernel_height, p.kernel_width, p.stride_height,
                  p.stride_width, p.dilation_height, p.pad_top, p.groups, plain, halo, out_halo);
  }
};

Case make_case(int64_t n, int64_t ic, int64_t oc, int64_t h, int64_t w, int64_t kh, int64_t kw, int64_t s, int64_t d,
               int64_t pad, int64_t groups = 1, bool plain = false, int halo = 0, int out_halo = 0) {
  Conv2dProblem p;
  p.batch = n, p.in_channels = ic, p.out_channels = oc, p.in_height = h, p.in_width = w;
  p.kernel_height = kh, p.kernel_width = kw, p.stride_height = s, p.stride_width = s;
  p.dilation_height = d, p.dilation_width = d;
  p.pad_top = p.pad_left = p.pad_bottom = p.pad_right = pad;
  p.groups = groups, p.lanes = host_target().lanes(32), p.plain_data = plain;
  p.out_height = (h + 2 * pad - d * (kh - 1) - 1) / s + 1;
  p.out_width = (w + 2 * pad - d * (kw - 1) - 1) / s + 1;
  return {p, halo, out_halo, plain};
}

struct ConvRun {
  Case c;
  View data, weights, out, residual;
  int kernel;
  Conv2dConfig config;
};

// Convolution + residual + ReLU against plain loops, with one and three threads.
void check(std::vector<Case> cases, const std::function<void(Conv2dConfig&, const Case&)>& change = {}) {
  KernelSet set;
  std::vector<ConvRun> runs;
  for (Case& c : cases) {
    const Conv2dProblem& p = c.p;
    const int64_t v = p.lanes;
    HaloNeed need = halo_need(p);
    ConvRun r;
    r.c = c;
    auto halo = [&](int64_t n) { return n + c.halo; };
    if (p.plain_data)
      r.data = view_with_halo("data", {p.batch, p.in_channels, p.in_height, p.in_width},
                              {0, 0, halo(need.top), halo(need.left)}, {0, 0, halo(need.bottom), halo(need.right)},
                              kFloat32, true);
    else
      r.data = view_with_halo("data", {p.batch, ceil_div(p.in_channels, v), p.in_height, p.in_width, v},
                              {0, 0, halo(need.top), halo(need.left), 0},
                              {0, 0, halo(need.bottom), halo(need.right), 0}, kFloat32, true);
    r.weights =
        make_view(tir::make_buffer("weights", kFloat32, product(packed_weight_shape(p)), tir::Scope::kGlobal, 64, true),
                  packed_weight_shape(p));
    std::vector<int64_t> out_shape{p.batch, ceil_div(p.out_channels, v), p.out_height, p.out_width, v};
    r.out =
        view_with_halo("out", out_shape, {0, c.out_halo, c.out_halo, c.out_halo, 0}, {0, 0, c.out_halo, c.out_halo, 0});
    r.residual =
        make_view(tir::make_buffer("residual", kFloat32, product(out_shape), tir::Scope::kGlobal, 64, true), out_shape);
    r.config = default_config(p, set.target(), can_flatten(p, r.data, r.out));
    if (change) change(r.config, c);
    r.kernel =
        set.add({r.data.buffer, r.weights.buffer, r.out.buffer, r.residual.buffer}, [&](const KernelContext& context) {
          return conv2d_nchwc(
              p, r.config, r.data, r.weights, r.out,
              [&](tir::PrimExpr value, const Index& index, const tir::PrimExpr& mask) {
                value = value + r.residual.load(index, value->dtype.lanes, mask);
                return tir::max(value, tir::make_const(value->dtype, 0));
              },
              context);
        });
    runs.push_back(std::move(r));
  }
  set.build();
  if (::testing::Test::HasFatalFailure()) return;
  for (const ConvRun& r : runs) {
    const Conv2dProblem& p = r.c.p;
    const int64_t v = p.lanes, icg = p.in_channels / p.groups, ocg = p.out_channels / p.groups;
    Memory data(r.data.buffer->size), residual(r.residual.buffer->size);
    Tensor weights(kFloat32, {p.out_channels, icg, p.kernel_height, p.kernel_width});
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (float& x : weights.as_mutable<float>()) x = uniform(random);
    residual.randomize(3);
    auto data_at = [&](int64_t n, int64_t c, int64_t h, int64_t w) {
      return p.plain_data ? flat_at(r.data, {n, c, h, w}) : flat_at(r.data, {n, c / v, h, w, c % v});
    };
    for_each_index({p.batch, p.in_channels, p.in_height, p.in_width},
                   [&](const auto& i) { data[data_at(i[0], i[1], i[2], i[3])] = uniform(random); });
    Tensor packed = pack_conv2d_weights(weights, static_cast<int>(v), p.plain_data ? icg : v);
    ASSERT_EQ(packed.shape(), packed_weight_shape(p)) << r.c.name();
    auto w = weights.as<float>();
    Memory first(r.out.buffer->size, 99);
    for (int threads : {1, 3}) {
      Memory out(r.out.buffer->size, 99);
      set.run(r.kernel, {data.data(), packed.mutable_raw(), out.data(), residual.data()}, threads);
      ASSERT_TRUE(out.intact()) << r.c.name();
      if (threads > 1) {
        ASSERT_EQ(std::memcmp(out.data(), first.data(), out.size() * 4), 0) << "sums depend on threads: " << r.c.name();
        continue;
      }
      std::memcpy(first.data(), out.data(), out.size() * 4);
      std::vector<bool> written(out.size());
      for_each_index({p.batch, ceil_div(p.out_channels, v) * v, p.out_height, p.out_width}, [&](const auto& i) {
        double sum = 0;
        if (i[1] < p.out_channels)
          for (int64_t c = 0; c < icg; ++c)
            for (int64_t kh = 0; kh < p.kernel_height; ++kh)
              for (int64_t kw = 0; kw < p.kernel_width; ++kw) {
                int64_t h = i[2] * p.stride_height - p.pad_top + kh * p.dilation_height;
                int64_t x = i[3] * p.stride_width - p.pad_left + kw * p.dilation_width;
                if (h < 0 || x < 0 || h >= p.in_height || x >= p.in_width) continue;
                sum += double{data[data_at(i[0], i[1] / ocg * icg + c, h, x)]} *
                       w[((i[1] * icg + c) * p.kernel_height + kh) * p.kernel_width + kw];
              }
        std::vector<int64_t> at{i[0], i[1] / v, i[2], i[3], i[1] % v};
        sum = std::max(0.0, sum + residual[flat_at(r.residual, at)]);
        written[flat_at(r.out, at)] = true;
        expect_close(out[flat_at(r.out, at)], sum, std::sqrt(double(icg * p.kernel_height * p.kernel_width)),
                     r.c.name());
      });
      for (int64_t i = 0; i < out.size(); ++i)
        ASSERT_TRUE(written[i] || out[i] == 99) << "outside the view: " << r.c.name();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Conv2dNchwc, PointwiseWithAndWithoutRowsTogether) {
  check({make_case(1, 32, 32, 7, 7, 1, 1, 1, 1, 0), make_case(1, 48, 80, 14, 14, 1, 1, 1, 1, 0),
         make_case(2, 16, 16, 5, 9, 1, 1, 1, 1, 0), make_case(1, 32, 64, 7, 7, 1, 1, 1, 1, 0, 1, false, 1, 1),
         make_case(1, 64, 32, 9, 11, 1, 1, 2, 1, 0), make_case(1, 24, 40, 13, 13, 1, 1, 1, 1, 0),
         make_case(1, 32, 24, 8, 8, 1, 1, 1, 1, 0), make_case(1, 16, 40, 5, 5, 3, 3, 1, 1, 1),
         make_case(1, 19, 21, 6, 6, 1, 1, 1, 1, 0), make_case(1, 1, 1, 1, 1, 1, 1, 1, 1, 0)});
}

TEST(Conv2dNchwc, WindowsStridesDilationHalo) {
  check({make_case(1, 16, 32, 8, 8, 3, 3, 1, 1, 1), make_case(1, 32, 16, 15, 17, 3, 3, 2, 1, 1),
         make_case(2, 16, 16, 12, 10, 3, 3, 1, 2, 2), make_case(1, 18, 36, 9, 30, 5, 5, 1, 1, 2, 1, false, 1, 0),
         make_case(1, 16, 48, 7, 7, 3, 3, 1, 1, 1, 1, false, 0, 1), make_case(1, 16, 16, 10, 40, 1, 7, 1, 1, 0),
         make_case(1, 33, 17, 11, 11, 3, 3, 2, 1, 0), make_case(1, 16, 96, 4, 4, 4, 4, 1, 1, 0)});
}

TEST(Conv2dNchwc, ChannelsBeyondWholeSteps) {
  check({make_case(1, 9, 17, 7, 9, 1, 1, 1, 1, 0), make_case(1, 33, 24, 6, 8, 3, 3, 1, 1, 1),
         make_case(2, 13, 16, 7, 6, 3, 3, 2, 1, 1), make_case(1, 31, 40, 5, 5, 2, 2, 1, 1, 0),
         make_case(1, 3, 16, 6, 6, 1, 1, 1, 1, 0), make_case(1, 46, 16, 5, 7, 1, 3, 1, 1, 0)});
  const Target target = host_target();
  // The 33rd channel has a step of its own; the others keep theirs, and no channel of padding is summed.
  const Conv2dProblem whole = make_case(1, 32, 64, 20, 20, 3, 3, 1, 1, 1).p;
  const Conv2dProblem more = make_case(1, 33, 64, 20, 20, 3, 3, 1, 1, 1).p;
  const Conv2dConfig config = default_config(whole, target, false);
  EXPECT_EQ(default_config(more, target, false).ic_unroll, config.ic_unroll);
  EXPECT_LT(estimate(more, config, target).microseconds, 1.04 * estimate(whole, config, target).microseconds);
}

TEST(Conv2dNchwc, PixelsAskedForAheadWhereTheInputIsBeyondTheSecondLevel) {
  const Target target = host_target();
  const int64_t v = target.lanes(32),
                size = static_cast<int64_t>(std::sqrt(target.machine.l2_bytes / (4.0 * 8 * v))) + 2;
  auto hints = [&](const Conv2dProblem& p) {
    auto view = [](const char* name, const std::vector<int64_t>& shape) {
      return make_view(tir::make_buffer(name, kFloat32, product(shape)), shape);
    };
    KernelContext context;
    context.target = &target;
    return tir::to_text(conv2d_nchwc(
                            p, default_config(p, target, false),
                            view("data", {p.batch, ceil_div(p.in_channels, v), p.in_height, p.in_width, v}),
                            view("weights", packed_weight_shape(p)),
                            view("out", {p.batch, ceil_div(p.out_channels, v), p.out_height, p.out_width, v}),
                            [](tir::PrimExpr value, const Index&, const tir::PrimExpr&) { return value; }, context))
               .find("prefetch data") != std::string::npos;
  };
  const Case far[] = {make_case(1, 8 * v, v, size, size, 1, 1, 1, 1, 0),
                      make_case(1, 8 * v, v, size, size, 2, 2, 2, 1, 0),
                      make_case(2, 8 * v, v, size, size, 3, 3, 2, 1, 0)};
  for (const Case& c : far) EXPECT_TRUE(hints(c.p)) << c.name();
  EXPECT_FALSE(hints(make_case(1, 8 * v, v, 14, 14, 1, 1, 1, 1, 0).p));
  check({far[0], far[1], far[2]});
}

TEST(Conv2dNchwc, TapsThatMeetOnlyPadding) {
  check({make_case(1, 32, 48, 20, 20, 3, 3, 1, 12, 12), make_case(2, 16, 24, 9, 7, 3, 3, 1, 5, 5),
         make_case(1, 20, 16, 13, 11, 3, 3, 2, 4, 4), make_case(1, 16, 16, 4, 5, 7, 7, 1, 1, 3),
         make_case(1, 16, 16, 3, 3, 3, 3, 1, 3, 3), make_case(1, 16, 32, 6, 6, 2, 2, 1, 6, 6)});
  const Target target = host_target();
  auto time = [&](const Conv2dProblem& p) {
    return estimate(p, default_config(p, target, false), target).microseconds;
  };
  const Conv2dProblem wide = make_case(1, 256, 64, 20, 20, 3, 3, 1, 12, 12).p;
  // Narrow channel blocks unroll their taps, and an unrolled tap is summed whatever it meets.
  if (default_config(wide, target, false).tap_unroll == 0) {
    EXPECT_LT(time(wide), 0.6 * time(make_case(1, 256, 64, 20, 20, 3, 3, 1, 1, 1).p));
  }
}

TEST(Conv2dNchwc, StemsReadPlainData) {
  check({make_case(1, 3, 32, 30, 30, 7, 7, 2, 1, 3, 1, true), make_case(2, 3, 16, 17, 19, 3, 3, 2, 1, 1, 1, true),
         make_case(1, 1, 8, 12, 12, 5, 5, 1, 1, 2, 1, true), make_case(1, 4, 24, 9, 9, 1, 1, 1, 1, 0, 1, true)});
}

TEST(Conv2dNchwc, Groups) {
  int64_t v = host_target().lanes(32);
  check({make_case(1, 2 * v, 2 * v, 8, 8, 3, 3, 1, 1, 1, 2), make_case(1, 4 * v, 8 * v, 7, 7, 1, 1, 1, 1, 0, 2),
         make_case(2, 3 * v, 3 * v, 6, 6, 3, 3, 2, 1, 1, 3)});
}

TEST(Conv2dNchwc, EveryTileGivesTheSame) {
  std::vector<Case> cases(12, make_case(1, 20, 56, 6, 10, 3, 3, 1, 1, 1));
  int turn = 0;
  check(cases, [&](Conv2dConfig& c, const Case&) {
    const int heights[] = {1, 1, 2, 3, 1, 2, 1, 1, 6, 1, 3, 2}, widths[] = {1, 3, 4, 2, 10, 5, 7, 14, 1, 6, 3, 3};
    c.tile_height = heights[turn], c.tile_width = std::min(widths[turn], 10);
    c.oc_blocks = 1 + turn % 3;
    c.ic_unroll = turn % 2 ? 4 : 2;
    c.tap_unroll = turn % 3;
    ++turn;
  });
}

TEST(Conv2dNchwc, BandsAndChunksGiveTheSame) {
  std::vector<Case> cases(10, make_case(2, 20, 56, 11, 37, 3, 3, 2, 1, 1));
  cases.resize(16, make_case(1, 40, 72, 9, 13, 1, 1, 1, 1, 0));
  int turn = 0;
  check(cases, [&](Conv2dConfig& c, const Case&) {
    c.tile_height = 1, c.tile_width = 1 + turn % 3, c.oc_blocks = 1 + turn % 2;
    c.bands = 1 + turn % 5 * (turn % 3), c.chunk = 1 + turn % 4;  // up to more bands than rows
    ++turn;
  });
}

TEST(Conv2dNchwc, BandsWhereTheInputIsBeyondTheSecondLevel) {
  const Target target = host_target();
  const int64_t v = target.lanes(32);
  // 3 MB of input and many tiles of output channels: without bands each tile would read them all again.
  const Conv2dProblem wide = make_case(1, 32 * v, 64 * v, 56, 56, 1, 1, 1, 1, 0).p;
  EXPECT_GT(default_config(wide, target, true).bands, 1);
  const Conv2dProblem small = make_case(1, 4 * v, 64 * v, 14, 14, 1, 1, 1, 1, 0).p;
  EXPECT_EQ(default_config(small, target, true).bands, 1);
}

}  // namespace
}  // namespace tilewright::topi::testing
