// SPDX-License-Identifier: Apache-2.0
#include "topi/winograd.h"

#include <numeric>

#include "harness.h"
#include "topi/pack.h"

namespace tilewright::topi::testing {
namespace {

// Exact fractions, small enough for 64 bits at the sizes here.
struct Fraction {
  int64_t n = 0, d = 1;
  Fraction(int64_t num = 0, int64_t den = 1) {
    const int64_t g = std::gcd(num, den), sign = den < 0 ? -1 : 1;
    n = sign * num / g, d = sign * den / g;
  }
  static Fraction exactly(double x) {  // halves, quarters ... up to 2^-20
    const auto scaled = static_cast<int64_t>(x * (1 << 20));
    TW_ICHECK(static_cast<double>(scaled) == x * (1 << 20), "not a short binary fraction");
    return {scaled, 1 << 20};
  }
  friend Fraction operator+(Fraction a, Fraction b) { return {a.n * b.d + b.n * a.d, a.d * b.d}; }
  friend Fraction operator-(Fraction a, Fraction b) { return {a.n * b.d - b.n * a.d, a.d * b.d}; }
  friend Fraction operator*(Fraction a, Fraction b) { return {a.n * b.n, a.d * b.d}; }
  friend Fraction operator/(Fraction a, Fraction b) { return {a.n * b.d, a.d * b.n}; }
  bool operator==(const Fraction&) const = default;
};

constexpr std::pair<int, int> kSizes[] = {{1, 1}, {2, 3}, {3, 3}, {4, 3}, {6, 3},
                                          {2, 5}, {4, 5}, {2, 7}, {2, 2}, {4, 2}};

// Column `x` of a program's matrix; the programs' factors are exact, so double arithmetic on unit vectors is.
std::vector<double> column(const LinearProgram& program, int x) {
  std::vector<double> unit(static_cast<size_t>(program.inputs), 0);
  unit[static_cast<size_t>(x)] = 1;
  return program.apply(unit);
}

TEST(WinogradTransform, EqualsCorrelationInExactArithmetic) {
  for (auto [outputs, taps] : kSizes) {
    const WinogradTransform w = winograd_transform(outputs, taps);
    const int t = w.products();
    // G again, in fractions; the doubles must be these, rounded once.
    std::vector<std::vector<Fraction>> kernel(t, std::vector<Fraction>(taps));
    for (int j = 0; j < t; ++j) {
      Fraction scale = 1, power = 1;
      const Fraction p = j < t - 1 ? Fraction::exactly(w.points[j]) : Fraction();
      for (int l = 0; l < t - 1; ++l)
        if (j < t - 1 && l != j) scale = scale * (p - Fraction::exactly(w.points[l]));
      for (int k = 0; k < taps; ++k, power = power * p) {
        kernel[j][k] = j == t - 1 ? Fraction(k == taps - 1) : power / scale;
        const double exact = static_cast<double>(kernel[j][k].n) / static_cast<double>(kernel[j][k].d);
        EXPECT_NEAR(w.kernel[j * taps + k], exact, std::abs(exact) * 3e-16) << outputs << " " << taps;
      }
    }
    for (int k = 0; k < taps; ++k)
      for (int x = 0; x < t; ++x) {
        const std::vector<double> data = column(w.data, x);
        for (int y = 0; y < outputs; ++y) {
          Fraction sum;
          for (int j = 0; j < t; ++j)
            sum = sum + Fraction::exactly(column(w.result, j)[y]) * kernel[j][k] * Fraction::exactly(data[j]);
          EXPECT_EQ(sum, Fraction(x == y + k)) << format("F({},{}) output {} tap {} input {}", outputs, taps, y, k, x);
        }
      }
  }
}

TEST(WinogradTransform, SharesSums) {
  // What the factored forms need by hand; more would be a lost factor.
  EXPECT_LE(winograd_transform(2, 3).data.operations(), 4);
  EXPECT_LE(winograd_transform(3, 3).data.operations(), 11);
  EXPECT_LE(winograd_transform(4, 3).data.operations(), 18);
  EXPECT_LE(winograd_transform(2, 3).result.operations(), 4);
  EXPECT_LE(winograd_transform(4, 3).result.operations(), 12);
}

struct Case {
  Conv2dProblem p;
  int tile_height = 4, tile_width = 4;
  int halo = 0, out_halo = 0;  // beyond what is needed
  std::string name() const {
    return format("F({}x{}) n{} ic{} oc{} in{}x{} k{}x{} s{}x{} d{}x{} pad{},{},{},{} halo{}/{}", tile_height,
                  tile_width, p.batch, p.in_channels, p.out_channels, p.in_height, p.in_width, p.kernel_height,
                  p.kernel_width, p.stride_height, p.stride_width, p.dilation_height, p.dilation_width, p.pad_top,
                  p.pad_left, p.pad_bottom, p.pad_right, halo, out_halo);
  }
};

struct Sides {
  int64_t top, left, bottom, right;
};
Case make_case(int tile, int64_t n, int64_t ic, int64_t oc, int64_t h, int64_t w, Sides pad = {1, 1, 1, 1},
               int halo = 0, int out_halo = 0, int64_t kh = 3, int64_t kw = 3, int64_t sh = 1, int64_t sw = 1) {
  Conv2dProblem p;
  p.stride_height = sh, p.stride_width = sw;
  p.batch = n, p.in_channels = ic, p.out_channels = oc, p.in_height = h, p.in_width = w;
  p.kernel_height = kh, p.kernel_width = kw;
  p.pad_top = pad.top, p.pad_left = pad.left, p.pad_bottom = pad.bottom, p.pad_right = pad.right;
  p.lanes = host_target().lanes(32);
  p.out_height = (h + pad.top + pad.bottom - kh) / sh + 1;
  p.out_width = (w + pad.left + pad.right - kw) / sw + 1;
  return {p, kh == 1 ? 1 : tile, kw == 1 ? 1 : tile, halo, out_halo};
}

Case dilated(Case c, int64_t dh, int64_t dw) {
  Conv2dProblem& p = c.p;
  p.dilation_height = dh, p.dilation_width = dw;
  p.out_height = p.in_height + p.pad_top + p.pad_bottom - dh * (p.kernel_height - 1);
  p.out_width = p.in_width + p.pad_left + p.pad_right - dw * (p.kernel_width - 1);
  return c;
}

struct WinogradRun {
  Case c;
  View data, weights, out, residual, scratch;
  int kernel;
  WinogradConfig config;
};

// Convolution + residual + ReLU against plain loops, with one to four threads.
void check(std::vector<Case> cases, const std::function<void(WinogradConfig&)>& change = {}) {
  KernelSet set;
  std::vector<WinogradRun> runs;
  for (Case& c : cases) {
    const Conv2dProblem& p = c.p;
    const int64_t v = p.lanes;
    ASSERT_TRUE(winograd_applies(p, c.tile_height, c.tile_width)) << c.name();
    WinogradRun r;
    r.c = c;
    r.config = winograd_config(p, c.tile_height, c.tile_width, false, set.target());
    if (change) change(r.config);
    const HaloNeed need = winograd_halo(p, r.config);
    r.data = view_with_halo("data", {p.batch, ceil_div(p.in_channels, v), p.in_height, p.in_width, v},
                            {0, 0, need.top + c.halo, need.left + c.halo, 0},
                            {0, 0, need.bottom + c.halo, need.right + c.halo, 0}, kFloat32, true);
    const std::vector<int64_t> weight_shape = winograd_weight_shape(p, r.config);
    r.weights = make_view(tir::make_buffer("weights", kFloat32, product(weight_shape), tir::Scope::kGlobal, 64, true),
                          weight_shape);
    std::vector<int64_t> out_shape{p.batch, ceil_div(p.out_channels, v), p.out_height, p.out_width, v};
    r.out =
        view_with_halo("out", out_shape, {0, c.out_halo, c.out_halo, c.out_halo, 0}, {0, 0, c.out_halo, c.out_halo, 0});
    r.residual =
        make_view(tir::make_buffer("residual", kFloat32, product(out_shape), tir::Scope::kGlobal, 64, true), out_shape);
    const int64_t scratch = winograd_scratch_bytes(p, r.config) / 4;
    r.scratch = make_view(tir::make_buffer("scratch", kFloat32, scratch, tir::Scope::kGlobal, 64), {scratch});
    r.kernel = set.add({r.data.buffer, r.weights.buffer, r.out.buffer, r.residual.buffer, r.scratch.buffer},
                       [&](KernelContext context) {
                         context.scratch = r.scratch.buffer;
                         return conv2d_winograd(
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
  for (const WinogradRun& r : runs) {
    const Conv2dProblem& p = r.c.p;
    const int64_t v = p.lanes;
    Memory data(r.data.buffer->size), residual(r.residual.buffer->size), scratch(r.scratch.buffer->size, 1e30f);
    Tensor weights(kFloat32, {p.out_channels, p.in_channels, p.kernel_height, p.kernel_width});
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (float& x : weights.as_mutable<float>()) x = uniform(random);
    residual.randomize(3);
    auto data_at = [&](int64_t n, int64_t c, int64_t h, int64_t w) { return flat_at(r.data, {n, c / v, h, w, c % v}); };
    for_each_index({p.batch, p.in_channels, p.in_height, p.in_width},
                   [&](const auto& i) { data[data_at(i[0], i[1], i[2], i[3])] = uniform(random); });
    const Tensor blocked = pack_conv2d_weights(weights, static_cast<int>(v), v);
    Tensor packed = winograd_weights(blocked, p, r.config);
    const double estimated = winograd_error(blocked, p, r.c.tile_height, r.c.tile_width);
    ASSERT_EQ(packed.size(), r.weights.buffer->size);
    auto w = weights.as<float>();
    Memory first(r.out.buffer->size, 99);
    for (int threads : {1, 2, 3, 4}) {
      Memory out(r.out.buffer->size, 99);
      set.run(r.kernel, {data.data(), packed.mutable_raw(), out.data(), residual.data(), scratch.data()}, threads);
      ASSERT_TRUE(out.intact() && scratch.intact()) << r.c.name();
      if (threads > 1) {
        ASSERT_EQ(std::memcmp(out.data(), first.data(), out.size() * 4), 0) << "sums depend on threads: " << r.c.name();
        continue;
      }
      std::memcpy(first.data(), out.data(), out.size() * 4);
      std::vector<bool> written(out.size());
      double errors = 0, signal = 0, count = 0;
      for_each_index({p.batch, ceil_div(p.out_channels, v) * v, p.out_height, p.out_width}, [&](const auto& i) {
        double sum = 0;
        if (i[1] < p.out_channels)
          for (int64_t c = 0; c < p.in_channels; ++c)
            for (int64_t kh = 0; kh < p.kernel_height; ++kh)
              for (int64_t kw = 0; kw < p.kernel_width; ++kw) {
                const int64_t h = i[2] * p.stride_height - p.pad_top + kh * p.dilation_height,
                              x = i[3] * p.stride_width - p.pad_left + kw * p.dilation_width;
                if (h < 0 || x < 0 || h >= p.in_height || x >= p.in_width) continue;
                sum += double{data[data_at(i[0], c, h, x)]} *
                       w[((i[1] * p.in_channels + c) * p.kernel_height + kh) * p.kernel_width + kw];
              }
        std::vector<int64_t> at{i[0], i[1] / v, i[2], i[3], i[1] % v};
        if (i[1] < p.out_channels && sum + residual[flat_at(r.residual, at)] > 0) {
          const double error = out[flat_at(r.out, at)] - sum - residual[flat_at(r.residual, at)];
          errors += error * error, signal += sum * sum, count += 1;
        }
        sum = std::max(0.0, sum + residual[flat_at(r.residual, at)]);
        written[flat_at(r.out, at)] = true;
        expect_close(out[flat_at(r.out, at)], sum, std::sqrt(double(p.in_channels * p.kernel_height * p.kernel_width)),
                     r.c.name());
      });
      // What was predicted from the weights bounds what rounding did; the residual adds a step of its own.
      if (count > 100) {
        EXPECT_LE(std::sqrt(errors), 2 * estimated * std::sqrt(signal) + 1e-7 * std::sqrt(count))
            << r.c.name() << " " << count;
      }
      for (int64_t i = 0; i < out.size(); ++i)
        ASSERT_TRUE(written[i] || out[i] == 99) << "outside the view: " << r.c.name();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Winograd, TilesOfEverySize) {
  for (int tile : {2, 3, 4})
    check({make_case(tile, 1, 16, 32, 12, 12), make_case(tile, 1, 48, 64, 14, 14), make_case(tile, 1, 32, 16, 7, 7)});
}

TEST(Winograd, OddSizesChannelsBatchesPadding) {
  for (int tile : {2, 3, 4})
    check({make_case(tile, 2, 19, 21, 9, 13), make_case(tile, 3, 16, 40, 5, 5),
           make_case(tile, 1, 33, 17, 11, 6, {0, 0, 0, 0}), make_case(tile, 1, 24, 24, 8, 9, {0, 1, 1, 0}),
           make_case(tile, 1, 5, 100, 10, 10, {2, 0, 1, 2}, 1, 1), make_case(tile, 1, 16, 16, 3, 3, {0, 0, 0, 0}),
           make_case(tile, 1, 1, 1, 1, 1), make_case(tile, 1, 130, 48, 17, 5)});
}

TEST(Winograd, OneAxis) {
  check({make_case(4, 1, 32, 32, 9, 17, {0, 1, 0, 1}, 0, 0, 1, 3),
         make_case(4, 2, 20, 24, 13, 6, {1, 0, 1, 0}, 0, 0, 3, 1),
         make_case(2, 1, 16, 48, 8, 12, {0, 3, 0, 3}, 0, 0, 1, 7),
         make_case(2, 1, 16, 16, 9, 9, {2, 2, 2, 2}, 0, 0, 5, 5)});
}

TEST(Winograd, StridesOfTwoByPhases) {
  for (int tile : {2, 3, 4})
    check({make_case(tile, 1, 32, 32, 16, 16, {1, 1, 1, 1}, 0, 0, 3, 3, 2, 2),
           make_case(tile, 2, 19, 21, 9, 14, {0, 1, 1, 0}, 1, 1, 3, 3, 2, 2),
           make_case(tile, 1, 40, 24, 13, 7, {0, 0, 0, 0}, 0, 0, 4, 4, 2, 2),
           make_case(tile, 1, 3, 16, 31, 17, {2, 2, 2, 2}, 0, 0, 5, 5, 2, 2),
           make_case(tile, 1, 33, 48, 12, 11, {1, 1, 1, 1}, 0, 0, 3, 3, 2, 1),
           make_case(tile, 2, 16, 16, 10, 10, {1, 2, 1, 2}, 0, 0, 3, 5, 1, 2),
           make_case(tile, 1, 24, 16, 9, 21, {0, 1, 0, 1}, 0, 0, 1, 3, 1, 2)});
}

TEST(Winograd, DilationByCombs) {
  for (int tile : {2, 3, 4})
    check({dilated(make_case(tile, 1, 32, 32, 16, 16, {2, 2, 2, 2}), 2, 2),
           dilated(make_case(tile, 2, 19, 21, 13, 15, {4, 4, 4, 4}, 1, 1), 4, 4),
           dilated(make_case(tile, 1, 24, 40, 9, 17, {0, 0, 0, 0}), 3, 2),
           dilated(make_case(tile, 1, 16, 16, 7, 5, {6, 9, 6, 9}), 6, 9),  // more combs than columns
           dilated(make_case(tile, 1, 16, 24, 11, 12, {1, 5, 2, 4}), 1, 5),
           dilated(make_case(tile, 1, 32, 16, 10, 14, {0, 2, 0, 2}, 0, 0, 1, 3), 3, 2)});
}

TEST(Winograd, EveryBlockAndRegisterTileGivesTheSame) {
  for (int64_t stride : {1, 2}) {
    const std::vector<Case> cases(10, make_case(4, 1, 20, 56, 24 * stride - 1, 24 * stride - 3, {1, 1, 1, 1}, 0, 0, 3,
                                                3, stride, stride));  // 36 tiles
    int turn = 0;
    check(cases, [&](WinogradConfig& c) {
      constexpr int rows[] = {1, 2, 4, 5, 3, 6, 4, 1, 2, 5}, blocks[] = {1, 8, 36, 36, 9, 12, 20, 7, 34, 35},
                    cols[] = {1, 2, 3, 1, 4, 1, 2, 4, 3, 2};
      c.rows = rows[turn], c.block_tiles = blocks[turn], c.oc_blocks = cols[turn];
      c.ic_unroll = turn % 2 ? 4 : 2;
      ++turn;
    });
  }
}

TEST(Winograd, ErrorEstimate) {
  const Conv2dProblem p = make_case(4, 1, 64, 64, 8, 8).p;
  Tensor weights(kFloat32, {64, 64, 3, 3});
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (float& x : weights.as_mutable<float>()) x = normal(random);
  auto error = [&](int tile) { return winograd_error(pack_conv2d_weights(weights, p.lanes, p.lanes), p, tile, tile); };
  EXPECT_LT(error(2), error(3));
  EXPECT_LT(error(3), error(4));
  EXPECT_LT(error(4), 2e-6);
  Conv2dProblem strided = p;
  strided.stride_height = strided.stride_width = 2;  // tiles of two taps: as exact as F(3,3)
  EXPECT_LT(winograd_error(pack_conv2d_weights(weights, p.lanes, p.lanes), strided, 4, 4), 2 * error(3));
  // Scale does not matter; a channel without weights adds nothing.
  const double before = error(4);
  for (float& x : weights.as_mutable<float>()) x *= 1024;
  EXPECT_DOUBLE_EQ(error(4), before);
  for (float& x : weights.as_mutable<float>()) x = 0;
  EXPECT_EQ(error(4), 0);
  weights.as_mutable<float>()[100] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(error(2), std::numeric_limits<double>::infinity());
}

TEST(Winograd, SaysWhatItTakes) {
  const Conv2dProblem p = make_case(4, 1, 16, 16, 8, 8).p;
  EXPECT_TRUE(winograd_applies(p, 4, 4));
  EXPECT_FALSE(winograd_applies(p, 1, 4));
  EXPECT_FALSE(winograd_applies(p, 7, 7));
  for (auto change : std::initializer_list<void (*)(Conv2dProblem&)>{
           [](Conv2dProblem& q) { q.stride_width = 3; },
           [](Conv2dProblem& q) { q.stride_height = q.dilation_height = 2; }, [](Conv2dProblem& q) { q.groups = 2; },
           [](Conv2dProblem& q) { q.plain_data = true; }, [](Conv2dProblem& q) { q.kernel_width = 1; }}) {
    Conv2dProblem q = p;
    change(q);
    EXPECT_FALSE(winograd_applies(q, 4, 4));
  }
}

}  // namespace
}  // namespace tilewright::topi::testing
