// SPDX-License-Identifier: Apache-2.0
#include "sweep_shapes.h"

#include <cmath>
#include <functional>
#include <random>

#include "base/format.h"
#include "driver/verify.h"
#include "relay/op.h"
#include "relay/ops/attrs.h"

namespace tilewright::topi::testing {
namespace {

using namespace relay;

double count_of(const std::vector<int64_t>& shape) {
  double n = 1;
  for (int64_t d : shape) n *= static_cast<double>(d);
  return n;
}

class Draw {
 public:
  explicit Draw(uint64_t seed) : engine_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  int64_t one_of(std::initializer_list<int64_t> values) {
    return values.begin()[below(static_cast<int64_t>(values.size()))];
  }
  // Log-uniform: small values as likely as large ones.
  int64_t logarithmic(int64_t low, int64_t high) {
    double t = static_cast<double>(engine_() >> 11) * 0x1p-53;
    return static_cast<int64_t>(std::lround(std::exp(std::log(low) + t * (std::log(high) - std::log(low)))));
  }
  // Half are multiples of 16, a third multiples of 8, the rest arbitrary.
  int64_t channels(int64_t high) {
    int64_t c = logarithmic(8, high), way = below(6);
    return way < 3 ? (c + 15) / 16 * 16 : way < 5 ? (c + 7) / 8 * 8 : c;
  }
  int64_t batch() { return one_of({1, 1, 1, 1, 2, 3, 4, 8}); }

 private:
  std::mt19937_64 engine_;
};

Expr constant(const std::vector<int64_t>& shape, uint64_t seed) {
  return make_constant(driver::random_tensor(kFloat32, shape, seed));
}

struct ConvShape {
  int64_t n = 1, ic = 1, oc = 1, groups = 1;
  std::vector<int64_t> in, kernel, strides, dilation, pads;  // pads on both sides of each axis
};

std::string dims(const std::vector<int64_t>& d) {
  std::string out;
  for (int64_t x : d) out += (out.empty() ? "" : "x") + std::to_string(x);
  return out;
}

template <class A>
SweepShape conv(const char* kind, const char* op, const ConvShape& c) {
  SweepShape s;
  s.kind = kind;
  const size_t spatial = c.in.size();
  // A window that does not fit makes no work, so the shape is drawn again.
  for (size_t i = 0; i < spatial; ++i)
    if (c.dilation[i] * (c.kernel[i] - 1) + 1 > c.in[i] + 2 * c.pads[i]) return s;
  std::vector<int64_t> data{c.n, c.ic}, kernel{c.oc, c.ic / c.groups}, bias{c.oc}, padding;
  for (size_t i = 0; i < spatial; ++i) data.push_back(c.in[i]), kernel.push_back(c.kernel[i]), bias.push_back(1);
  for (int side = 0; side < 2; ++side) padding.insert(padding.end(), c.pads.begin(), c.pads.end());
  Expr x = make_var("x", tensor_type(to_shape(data), kFloat32));
  s.inputs = {x};
  Expr y = call(op, {call("nn.relu", {x}), constant(kernel, 7)}, make_attrs<A>([&](auto& a) {
                  a.strides = c.strides, a.padding = padding, a.dilation = c.dilation, a.groups = c.groups;
                  a.channels = c.oc;
                  a.kernel_size = c.kernel;
                }));
  const std::vector<int64_t> out = static_shape(as_tensor(y->type)->shape).value();
  s.body = call("nn.relu", {call("add", {y, constant(bias, 11)})});
  s.flops = 2 * count_of(out) * count_of(kernel) / static_cast<double>(c.oc);
  s.bytes = 4 * (count_of(data) + count_of(out) + count_of(kernel));
  s.written = 4 * count_of(out);
  s.name = format("{} k{} s{} {}->{} @{}", kind, dims(c.kernel), dims(c.strides), c.ic, c.oc, dims(c.in));
  if (c.groups > 1) s.name += format(" g{}", c.groups);
  if (c.dilation[0] > 1) s.name += format(" d{}", c.dilation[0]);
  if (c.n > 1) s.name += format(" n{}", c.n);
  return s;
}

SweepShape transposed(const ConvShape& c) {
  SweepShape s;
  s.kind = "transposed";
  std::vector<int64_t> data{c.n, c.ic, c.in[0], c.in[1]}, kernel{c.ic, c.oc, c.kernel[0], c.kernel[1]};
  Expr x = make_var("x", tensor_type(to_shape(data), kFloat32));
  s.inputs = {x};
  Expr y = call("nn.conv2d_transpose", {call("nn.relu", {x}), constant(kernel, 7)},
                make_attrs<Conv2DTransposeAttrs>([&](auto& a) {
                  a.strides = c.strides, a.padding = {c.pads[0], c.pads[1], c.pads[0], c.pads[1]};
                  a.channels = c.oc, a.kernel_size = c.kernel, a.kernel_layout = "IOHW";
                }));
  const std::vector<int64_t> out = static_shape(as_tensor(y->type)->shape).value();
  s.body = call("nn.relu", {call("add", {y, constant({c.oc, 1, 1}, 11)})});
  s.flops = 2 * count_of(data) * count_of(kernel) / static_cast<double>(c.ic);
  s.bytes = 4 * (count_of(data) + count_of(out) + count_of(kernel));
  s.written = 4 * count_of(out);
  s.name = format("transposed k{} s{} {}->{} @{}", dims(c.kernel), dims(c.strides), c.ic, c.oc, dims(c.in));
  if (c.n > 1) s.name += format(" n{}", c.n);
  return s;
}

SweepShape conv2d(const char* kind, ConvShape c, int64_t kernel_height, int64_t kernel_width, int64_t stride,
                  int64_t dilation, bool padded) {
  c.kernel = {kernel_height, kernel_width};
  c.strides = {stride, stride}, c.dilation = {dilation, dilation};
  c.pads = {padded ? dilation * (kernel_height - 1) / 2 : 0, padded ? dilation * (kernel_width - 1) / 2 : 0};
  return conv<Conv2DAttrs>(kind, "nn.conv2d", c);
}

SweepShape dense(int64_t m, int64_t n, int64_t k) {
  SweepShape s;
  s.kind = "gemm";
  Expr x = make_var("x", tensor_type(to_shape({m, k}), kFloat32));
  s.inputs = {x};
  Expr y = call("nn.dense", {call("nn.relu", {x}), constant({n, k}, 7)});
  s.body = call("nn.relu", {call("add", {y, constant({n}, 11)})});
  s.flops = 2.0 * static_cast<double>(m * n * k);
  s.bytes = 4.0 * static_cast<double>(m * k + n * k + m * n);
  s.written = 4.0 * static_cast<double>(m * n);
  s.name = format("gemm {}x{}x{}", m, n, k);
  return s;
}

// Both operands are activations; the right one is (N, K) when transposed.
SweepShape matmul(int64_t batch, int64_t m, int64_t n, int64_t k, bool transposed) {
  SweepShape s;
  s.kind = "matmul";
  Expr x = make_var("x", tensor_type(to_shape({batch, m, k}), kFloat32));
  Expr y = make_var(
      "y", tensor_type(to_shape(transposed ? std::vector<int64_t>{batch, n, k} : std::vector<int64_t>{batch, k, n}),
                       kFloat32));
  s.inputs = {x, y};
  s.body =
      call("nn.relu",
           {call("nn.batch_matmul", {call("nn.relu", {x}), call("nn.relu", {y})},
                 make_attrs<BatchMatmulAttrs>([&](auto& a) { a.transpose_a = false, a.transpose_b = transposed; }))});
  s.flops = 2.0 * static_cast<double>(batch * m * n * k);
  s.bytes = 4.0 * static_cast<double>(batch * (m * k + n * k + m * n));
  s.written = 4.0 * static_cast<double>(batch * m * n);
  s.name = format("matmul {}x {}x{}x{}{}", batch, m, n, k, transposed ? " transposed" : "");
  return s;
}

struct Kind {
  const char* name;
  bool gemm;
  int share;  // of 100
  SweepShape (*draw)(Draw&);
};
const Kind kKinds[] = {
    {"pointwise", false, 25,
     [](Draw& d) {
       ConvShape c{
           d.batch(), d.channels(768), d.channels(768), 1, {d.logarithmic(5, 96), d.logarithmic(5, 96)}, {}, {}, {},
           {}};
       return conv2d("pointwise", c, 1, 1, d.one_of({1, 1, 1, 2}), 1, true);
     }},
    {"window", false, 25,
     [](Draw& d) {
       ConvShape c{
           d.batch(), d.channels(512), d.channels(512), 1, {d.logarithmic(6, 128), d.logarithmic(6, 128)}, {}, {}, {},
           {}};
       int64_t k = d.one_of({2, 3, 3, 3, 3, 4, 5, 7}), shape = d.below(8);
       int64_t kh = shape == 0 ? 1 : k, kw = shape == 1 ? 1 : k;
       return conv2d("window", c, kh, kw, d.one_of({1, 1, 2}), d.one_of({1, 1, 1, 1, 1, 2}), d.below(4) != 0);
     }},
    {"stem", false, 5,
     [](Draw& d) {
       ConvShape c{d.one_of({1, 1, 2}),
                   d.one_of({1, 3, 3, 3, 4}),
                   d.channels(96),
                   1,
                   {d.logarithmic(64, 320), d.logarithmic(64, 320)},
                   {},
                   {},
                   {},
                   {}};
       int64_t k = d.one_of({3, 3, 4, 5, 7});
       return conv2d("stem", c, k, k, k == 4 ? 4 : d.one_of({1, 2, 2}), 1, k != 4);
     }},
    {"depthwise", false, 12,
     [](Draw& d) {
       int64_t channels = d.channels(1024), k = d.one_of({3, 3, 5, 7});
       ConvShape c{d.batch(), channels, channels, channels, {d.logarithmic(7, 128), d.logarithmic(7, 128)},
                   {},        {},       {},       {}};
       return conv2d("depthwise", c, k, k, d.one_of({1, 1, 2}), d.one_of({1, 1, 1, 1, 1, 2}), true);
     }},
    {"grouped", false, 8,
     [](Draw& d) {
       int64_t width = d.one_of({4, 8, 8, 12, 16, 16, 24, 32, 40}), groups = d.logarithmic(2, 40);
       ConvShape c{
           d.batch(), width * groups, width * groups, groups, {d.logarithmic(7, 80), d.logarithmic(7, 80)}, {}, {}, {},
           {}};
       return conv2d("grouped", c, 3, 3, d.one_of({1, 1, 2}), 1, true);
     }},
    {"transposed", false, 5,
     [](Draw& d) {
       ConvShape c{d.one_of({1, 1, 2}),
                   d.channels(256),
                   d.channels(256),
                   1,
                   {d.logarithmic(6, 96), d.logarithmic(6, 96)},
                   {},
                   {2, 2},
                   {1, 1},
                   {0, 0}};
       int64_t k = d.one_of({2, 2, 3, 4});
       c.kernel = {k, k};
       if (k > 2) c.pads = {1, 1};
       return transposed(c);
     }},
    {"conv1d", false, 4,
     [](Draw& d) {
       // Few columns (steps of a stream), long ones, groups, and depthwise.
       const int64_t few = d.below(4), way = d.below(6);
       ConvShape c{d.batch(),
                   d.channels(512),
                   d.channels(512),
                   1,
                   {few == 0 ? d.logarithmic(1, 24) : d.logarithmic(40, 3000)},
                   {d.one_of({1, 3, 3, 5, 7, 9})},
                   {d.one_of({1, 1, 2})},
                   {d.one_of({1, 1, 2})},
                   {}};
       if (way == 0) c.oc = c.ic, c.groups = c.ic, c.kernel = {d.one_of({3, 7, 15, 31})};
       if (way == 1) c.groups = d.one_of({2, 4, 8}), c.ic = (c.ic + 127) / 128 * 128, c.oc = (c.oc + 127) / 128 * 128;
       c.pads = {c.dilation[0] * (c.kernel[0] - 1) / 2};
       return conv<Conv1DAttrs>("conv1d", "nn.conv1d", c);
     }},
    {"conv3d", false, 1,
     [](Draw& d) {
       ConvShape c{1,
                   d.channels(64),
                   d.channels(64),
                   1,
                   {d.logarithmic(4, 16), d.logarithmic(8, 40), d.logarithmic(8, 40)},
                   {3, 3, 3},
                   {1, 1, 1},
                   {1, 1, 1},
                   {1, 1, 1}};
       return conv<Conv3DAttrs>("conv3d", "nn.conv3d", c);
     }},
    {"gemm", true, 15,
     [](Draw& d) {
       // Nearly square, tall, flat, and few rows.
       switch (d.below(4)) {
         case 0:
           return dense(d.logarithmic(1, 16), d.logarithmic(64, 4096), d.logarithmic(64, 4096));
         case 1:
           return dense(d.logarithmic(512, 8192), d.logarithmic(4, 128), d.logarithmic(16, 1024));
         case 2:
           return dense(d.logarithmic(16, 128), d.logarithmic(512, 4096), d.logarithmic(64, 2048));
         default:
           return dense(d.logarithmic(48, 1024), d.logarithmic(48, 1024), d.logarithmic(48, 1024));
       }
     }},
    {"matmul", true, 6,
     [](Draw& d) {
       // Attention heads over few queries or many.
       return matmul(d.logarithmic(1, 64), d.below(2) == 0 ? d.logarithmic(1, 12) : d.logarithmic(16, 400),
                     d.logarithmic(8, 600), d.logarithmic(16, 400), d.below(2) == 0);
     }},
};

}  // namespace

std::vector<SweepShape> sweep_shapes(const std::string& set, const std::string& kind, uint64_t seed, int count) {
  Draw draw(seed);
  std::vector<const Kind*> wheel;
  for (const Kind& k : kKinds)
    if ((set == "all" || (set == "gemm") == k.gemm) && (kind.empty() || kind == k.name))
      wheel.insert(wheel.end(), static_cast<size_t>(k.share), &k);
  std::vector<SweepShape> shapes;
  while (!wheel.empty() && static_cast<int>(shapes.size()) < count) {
    SweepShape s = wheel[static_cast<size_t>(draw.below(static_cast<int64_t>(wheel.size())))]->draw(draw);
    // Excludes shapes dominated by overhead, and those longer than a second.
    if (s.flops >= 1e6 && s.flops <= 1.5e9 && s.bytes <= 64e6) shapes.push_back(std::move(s));
  }
  return shapes;
}

}  // namespace tilewright::topi::testing
