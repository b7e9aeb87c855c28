// SPDX-License-Identifier: Apache-2.0
// Times kernel templates on the shapes that decide real networks and prints GFLOP/s and the share of the FMA peak,
// which is measured between the kernels' runs: on a shared machine only numbers of the same moment compare.
//   kernel_bench [filter] [--threads-share N] [--seconds S] [--cold] [--conv IC,OC,HxW,KERNEL,STRIDE,PADDING]
//                [--gemm BATCH,M,N,K,KIND]   KIND: 0 packed, 1 KxN, 2 NxK
//   kernel_bench --sweep conv|gemm|all [--seed N] [--count N] ...   random shapes through the whole compiler (sweep.h)
// --cold: caches are flushed before every run, as if the rest of a large network had run in between.
// TILE=... forces a configuration, ASM=s|ll prints code, TW_TEST_TARGET="llvm -mcpu=..." compiles for another CPU.
#include <cstdio>
#include <cstdlib>

#include "fma_peak.h"
#include "sweep.h"
#include "topi/conv2d_nchwc.h"
#include "topi/depthwise.h"
#include "topi/gemm.h"
#include "topi/injective.h"
#include "topi/pool.h"
#include "topi/reduce.h"
#include "topi/transpose.h"
#include "topi/winograd.h"

namespace tilewright::topi::testing {
namespace {

struct Bench {
  std::string name;
  double flops = 0, bytes = 0, predicted_us = 0;
  std::vector<int64_t> sizes;  // elements of each buffer
  int kernel = 0;
  std::string config;
};

class Suite {
 public:
  explicit Suite(std::string filter) : filter_(std::move(filter)) {}

  bool wanted(const std::string& name) const { return name.find(filter_) != std::string::npos; }

  void add(std::string name, Cost cost, std::string config, const std::vector<tir::Buffer>& buffers,
           const std::function<tir::Stmt(const KernelContext&)>& body) {
    Bench b{std::move(name), cost.flops, cost.bytes, cost.microseconds, {}, 0, std::move(config)};
    for (const auto& buffer : buffers) b.sizes.push_back(buffer->size);
    b.kernel = set_.add(buffers, body);
    benches_.push_back(std::move(b));
  }

  void conv(const char* net, int64_t ic, int64_t oc, int64_t in, int64_t k, int64_t s, int64_t pad, bool plain = false,
            int64_t width = 0) {
    if (width == 0) width = in;
    Conv2dProblem p;
    p.in_channels = ic, p.out_channels = oc, p.in_height = in, p.in_width = width;
    p.kernel_height = p.kernel_width = k, p.stride_height = p.stride_width = s;
    p.pad_top = p.pad_left = p.pad_bottom = p.pad_right = pad;
    p.out_height = (in + 2 * pad - k) / s + 1, p.out_width = (width + 2 * pad - k) / s + 1;
    p.lanes = std::getenv("LANES") ? std::atoi(std::getenv("LANES")) : target().lanes(32), p.plain_data = plain;
    std::string name =
        format("{} conv {}x{} s{} {}->{} @{}", net, k, k, s, ic, oc, in) + (width == in ? "" : format("x{}", width));
    if (!wanted(name)) return;
    const int64_t v = p.lanes;
    HaloNeed need = halo_need(p);
    View data = plain ? view_with_halo("data", {1, ic, in, width}, {0, 0, need.top, need.left},
                                       {0, 0, need.bottom, need.right}, kFloat32, true)
                      : view_with_halo("data", {1, ceil_div(ic, v), in, width, v}, {0, 0, need.top, need.left, 0},
                                       {0, 0, need.bottom, need.right, 0}, kFloat32, true);
    auto shape = packed_weight_shape(p);
    View weights =
        make_view(tir::make_buffer("weights", kFloat32, product(shape), tir::Scope::kGlobal, 64, true), shape);
    View out =
        view_with_halo("out", {1, ceil_div(oc, v), p.out_height, p.out_width, v}, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0});
    Conv2dConfig c = default_config(p, target(), can_flatten(p, data, out));
    if (const char* forced = std::getenv("TILE")) {
      int flat = 0;
      std::sscanf(forced, "%dx%dx%d,%d,%d,%d", &c.tile_height, &c.tile_width, &c.oc_blocks, &c.ic_unroll, &c.tap_unroll,
                  &flat);
      c.flatten = flat && can_flatten(p, data, out);
    }
    add(name, estimate(p, c, target()),
        format("{}x{}x{}u{}{}", c.tile_height, c.tile_width, c.oc_blocks, c.ic_unroll, c.flatten ? "f" : ""),
        {data.buffer, weights.buffer, out.buffer},
        [&](const KernelContext& context) { return conv2d_nchwc(p, c, data, weights, out, relu(), context); });
  }

  void winograd(int tile, int64_t ic, int64_t oc, int64_t in) {
    Conv2dProblem p;
    p.in_channels = ic, p.out_channels = oc, p.in_height = p.in_width = p.out_height = p.out_width = in;
    p.kernel_height = p.kernel_width = 3, p.pad_top = p.pad_left = p.pad_bottom = p.pad_right = 1;
    p.lanes = target().lanes(32);
    std::string name = format("winograd F({},3) {}->{} @{}", tile, ic, oc, in);
    if (!wanted(name)) return;
    const int64_t v = p.lanes;
    WinogradConfig c = winograd_config(p, tile, tile, true, target());
    if (const char* forced = std::getenv("TILE")) {
      int blocks = 0;
      std::sscanf(forced, "%dx%d,%d,%d", &c.rows, &c.oc_blocks, &blocks, &c.ic_unroll);
      c.block_tiles = blocks;
    }
    HaloNeed need = winograd_halo(p, c);
    View data = view_with_halo("data", {1, ceil_div(ic, v), in, in, v}, {0, 0, need.top, need.left, 0},
                               {0, 0, need.bottom, need.right, 0}, kFloat32, true);
    auto shape = winograd_weight_shape(p, c);
    View weights =
        make_view(tir::make_buffer("weights", kFloat32, product(shape), tir::Scope::kGlobal, 64, true), shape);
    View out = view_with_halo("out", {1, ceil_div(oc, v), in, in, v}, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0});
    tir::Buffer scratch =
        tir::make_buffer("scratch", kFloat32, winograd_scratch_bytes(p, c) / 4, tir::Scope::kGlobal, 64);
    add(name, winograd_cost(p, c, true, target()), format("{}x{} b{}", c.rows, c.oc_blocks, c.block_tiles),
        {data.buffer, weights.buffer, out.buffer, scratch}, [&](KernelContext context) {
          context.scratch = scratch;
          return conv2d_winograd(p, c, data, weights, out, relu(), context);
        });
  }

  void product_of(const char* net, int64_t m, int64_t n, int64_t k, MatrixB kind = MatrixB::kPacked,
                  int64_t batch = 1) {
    GemmProblem p;
    p.batch = batch, p.m = m, p.n = n, p.k = k, p.row_stride = k, p.b = kind;
    const char* kinds[] = {"packed", "KxN", "NxK"};
    std::string name = format("{} gemm {}{}x{}x{} {}", net, batch > 1 ? format("{}*", batch) : "", m, n, k,
                              kinds[static_cast<int>(kind)]);
    if (!wanted(name)) return;
    GemmConfig c = default_config(p, target());
    if (const char* forced = std::getenv("TILE")) std::sscanf(forced, "%dx%d,%d", &c.mr, &c.nr, &c.k_unroll);
    auto shape = kind == MatrixB::kPacked     ? packed_b_shape(p, c, target())
                 : kind == MatrixB::kRowMajor ? std::vector<int64_t>{batch, k, n}
                                              : std::vector<int64_t>{batch, n, k};
    View a = make_view(tir::make_buffer("a", kFloat32, batch * m * k, tir::Scope::kGlobal, 64, true), {batch, m, k});
    View b = make_view(tir::make_buffer("b", kFloat32, product(shape), tir::Scope::kGlobal, 64, true), shape);
    View out = make_view(tir::make_buffer("out", kFloat32, batch * m * n, tir::Scope::kGlobal, 64), {batch, m, n});
    add(name, estimate(p, c, target()), format("{}x{}u{}", c.mr, c.nr, c.k_unroll), {a.buffer, b.buffer, out.buffer},
        [&](const KernelContext& context) { return gemm(p, c, a, b, out, relu(), context); });
  }

  void depthwise(const char* net, int64_t channels, int64_t in, int64_t k, int64_t s) {
    DepthwiseProblem p;
    p.channels = channels, p.in_height = p.in_width = in, p.kernel_height = p.kernel_width = k;
    p.stride_height = p.stride_width = s, p.pad_top = p.pad_left = p.pad_bottom = p.pad_right = k / 2;
    p.out_height = p.out_width = (in + 2 * (k / 2) - k) / s + 1;
    p.lanes = target().lanes(32);
    std::string name = format("{} depthwise {}x{} s{} {} @{}", net, k, k, s, channels, in);
    if (!wanted(name)) return;
    const int64_t v = p.lanes, blocks = ceil_div(channels, v), pad = k / 2;
    View data =
        view_with_halo("data", {1, blocks, in, in, v}, {0, 0, pad, pad, 0}, {0, 0, pad, pad, 0}, kFloat32, true);
    View weights = make_view(tir::make_buffer("weights", kFloat32, blocks * k * k * v, tir::Scope::kGlobal, 64, true),
                             {blocks, k, k, v});
    View out =
        make_view(tir::make_buffer("out", kFloat32, blocks * p.out_height * p.out_width * v, tir::Scope::kGlobal, 64),
                  {1, blocks, p.out_height, p.out_width, v});
    DepthwiseConfig c = default_config(p, target());
    if (const char* forced = std::getenv("TILE")) c.tile_width = std::atoi(forced);
    add(name, estimate(p, c, target()), format("1x{}", c.tile_width), {data.buffer, weights.buffer, out.buffer},
        [&](const KernelContext& context) {
          return depthwise_conv2d_nchwc(p, c, data, weights, out, relu(), context);
        });
  }

  void rows(const char* kind, int64_t count, int64_t extent) {
    std::string name = format("{} {}x{}", kind, count, extent);
    if (!wanted(name)) return;
    View in =
        make_view(tir::make_buffer("in", kFloat32, count * extent, tir::Scope::kGlobal, 64, true), {count, extent});
    View out = make_view(tir::make_buffer("out", kFloat32, count * extent, tir::Scope::kGlobal, 64), {count, extent});
    bool soft = std::string_view(kind) == "softmax", norm = std::string_view(kind) == "layer_norm";
    SoftmaxProblem s{{count, extent}};
    LayerNormProblem l{{count, extent}};
    Cost cost = soft   ? estimate(s, target())
                : norm ? estimate(l, target())
                       : injective_cost(out, 4.0 * count * extent, 4, target());
    cost.flops = static_cast<double>(count * extent);
    add(name, cost, "", {in.buffer, out.buffer}, [&](const KernelContext& context) {
      if (soft) return softmax(s, view_operand(in), out, convert_epilogue(kFloat32), context);
      if (norm) return layer_norm(l, view_operand(in), out, convert_epilogue(kFloat32), context);
      return injective(
          flattened(out),
          [&](const Index& index, int lanes, const tir::PrimExpr& mask) {
            tir::PrimExpr x = flattened(in).load(index, lanes, mask);
            return std::string_view(kind) == "silu" ? x * tir::intrinsic(tir::Intrinsic::k_sigmoid, {x})
                                                    : tir::max(x, tir::make_const(x->dtype, 0));
          },
          {}, context);
    });
  }

  void layout(const char* kind, int64_t channels, int64_t in) {
    std::string name = format("{} {} @{}", kind, channels, in);
    if (!wanted(name)) return;
    const int64_t v = target().lanes(32), blocks = ceil_div(channels, v);
    View plain = make_view(tir::make_buffer("plain", kFloat32, channels * in * in, tir::Scope::kGlobal, 64),
                           {1, channels, in, in});
    View blocked = make_view(tir::make_buffer("blocked", kFloat32, blocks * v * in * in, tir::Scope::kGlobal, 64),
                             {1, blocks, in, in, v});
    bool to = std::string_view(kind) == "to_blocked";
    Cost cost = transpose_cost(to ? blocked : plain, target());
    cost.flops = static_cast<double>(channels * in * in);
    add(name, cost, "", {plain.buffer, blocked.buffer}, [&](const KernelContext& context) {
      return to ? to_blocked(plain, blocked, convert_epilogue(kFloat32), context)
                : from_blocked(blocked, plain, convert_epilogue(kFloat32), context);
    });
  }

  void run(double seconds, int threads, bool cold) {
    if (std::getenv("ASM"))
      for (const Bench& b : benches_)
        std::puts(codegen::kernel_text(set_.prim_func(b.kernel), target(), std::getenv("ASM")).value().c_str());
    double begin = now();
    set_.build();
    std::printf("compiled %zu kernels in %.0f ms\n", benches_.size(), (now() - begin) * 1e3);
    std::printf("%-44s %-12s %9s %9s %8s %7s %9s\n", "kernel", "config", "us", "model us", "GFLOP/s", "% peak", "GB/s");
    std::vector<float> flush(cold ? 24 << 20 : 0);
    for (const Bench& b : benches_) {
      std::vector<Memory> memory;
      for (int64_t size : b.sizes) {
        memory.emplace_back(size);
        memory.back().randomize(1);
      }
      std::vector<void*> buffers;
      for (Memory& m : memory) buffers.push_back(m.data());
      auto* f = set_.function(b.kernel);
      double best = 1e30, cold_best = 1e30, peak_rate = 0, until = now() + seconds;
      f(buffers.data(), 0, threads);
      do {
        peak_rate = std::max(peak_rate, peak_.measure());
        if (cold) {
          for (size_t i = 0; i < flush.size(); i += 16) flush[i] += 1;
          best = 1e-3;  // one run per measurement
        }
        double t1 = now();
        int times = std::max(1, std::min(64, static_cast<int>(200e-6 / std::max(1e-6, best))));
        for (int i = 0; i < times; ++i) f(buffers.data(), 0, threads);
        double t2 = now();
        best = cold_best = std::min(cold ? cold_best : best, (t2 - t1) / times);
      } while (now() < until);
      double rate = b.flops / threads / best;
      std::printf("%-44s %-12s %9.1f %9.1f %8.1f %6.1f%% %9.1f\n", b.name.c_str(), b.config.c_str(), best * 1e6,
                  b.predicted_us, rate * 1e-9, 100 * rate / peak_rate, b.bytes / threads / best * 1e-9);
      std::fflush(stdout);
    }
  }

 private:
  const Target& target() const { return set_.target(); }
  static Epilogue relu() {
    return [](tir::PrimExpr value, const Index&, const tir::PrimExpr&) {
      return tir::max(value, tir::make_const(value->dtype, 0));
    };
  }
  KernelSet set_;
  FmaPeak peak_{&set_};
  std::string filter_;
  std::vector<Bench> benches_;
};

int run(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--sweep") return run_sweep(argc, argv);
  std::string filter;
  double seconds = 0.3;
  int threads = 1;
  bool cold = false;
  const char *shape = nullptr, *product = nullptr;
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word == "--seconds" && i + 1 < argc)
      seconds = std::atof(argv[++i]);
    else if (word == "--threads-share" && i + 1 < argc)
      threads = std::atoi(argv[++i]);
    else if (word == "--conv" && i + 1 < argc)
      shape = argv[++i];
    else if (word == "--gemm" && i + 1 < argc)
      product = argv[++i];
    else if (word == "--cold")
      cold = true;
    else
      filter = word;
  }
  Suite s(shape || product ? "" : filter);
  if (product) {
    long batch, m, n, k;
    int kind;
    if (std::sscanf(product, "%ld,%ld,%ld,%ld,%d", &batch, &m, &n, &k, &kind) != 5 || kind < 0 || kind > 2) {
      std::fprintf(stderr, "--gemm BATCH,M,N,K,KIND (0 packed, 1 KxN, 2 NxK)\n");
      return 2;
    }
    s.product_of("", m, n, k, static_cast<MatrixB>(kind), batch);
    s.run(seconds, threads, cold);
    return 0;
  }
  if (shape) {
    long ic, oc, height, width, k, stride, pad;
    if (std::sscanf(shape, "%ld,%ld,%ldx%ld,%ld,%ld,%ld", &ic, &oc, &height, &width, &k, &stride, &pad) != 7) {
      std::fprintf(stderr, "--conv IC,OC,HxW,KERNEL,STRIDE,PADDING\n");
      return 2;
    }
    s.conv("", ic, oc, height, k, stride, pad, ic <= 4, width);
    s.run(seconds, threads, cold);
    return 0;
  }
  s.conv("resnet50", 3, 64, 224, 7, 2, 3, true);
  for (auto [width, in] : {std::pair<int, int>{64, 56}, {128, 28}, {256, 14}, {512, 7}}) {
    s.conv("resnet50", width == 64 ? 256 : width * 4, width, in, 1, 1, 0);
    if (width == 64) s.conv("resnet50", 64, 64, 56, 1, 1, 0);
    s.conv("resnet50", width, width, in, 3, 1, 1);
    s.conv("resnet50", width, width * 4, in, 1, 1, 0);
    if (width == 512) continue;
    s.conv("resnet50", width * 4, width * 2, in, 1, 1, 0);
    s.conv("resnet50", width * 2, width * 2, in, 3, 2, 1);
    s.conv("resnet50", width * 4, width * 8, in, 1, 2, 0);
  }
  s.conv("mobilenetv2", 3, 32, 224, 3, 2, 1, true);
  s.conv("mobilenetv2", 144, 24, 56, 1, 1, 0);
  s.conv("mobilenetv2", 24, 144, 56, 1, 1, 0);
  s.conv("mobilenetv2", 96, 576, 14, 1, 1, 0);
  s.conv("mobilenetv2", 320, 1280, 7, 1, 1, 0);
  s.conv("ppocr_det", 96, 24, 160, 3, 1, 1);
  s.conv("yolov8n", 32, 32, 80, 3, 1, 1);
  s.conv("yolov8n", 64, 64, 40, 3, 1, 1);
  for (auto [channels, in] : {std::pair<int, int>{64, 56},
                              {128, 28},
                              {256, 14},
                              {512, 7},
                              {32, 80},
                              {64, 40},
                              {512, 28},
                              {128, 112},
                              {64, 224},
                              {512, 14}})
    for (int tile : {2, 3, 4}) s.winograd(tile, channels, channels, in);
  s.conv("even", 64, 96, 48, 3, 1, 1);
  s.conv("even", 256, 192, 24, 1, 1, 0);
  s.product_of("minilm", 128, 384, 384);
  s.product_of("minilm", 128, 1536, 384);
  s.product_of("minilm", 128, 384, 1536);
  s.product_of("bert", 128, 768, 3072);
  s.product_of("vit", 197, 768, 768);
  s.product_of("minilm", 16, 1536, 384);
  s.product_of("fc", 1, 1000, 2048);
  s.product_of("fc", 1, 1000, 1280);
  s.product_of("fc", 1, 4096, 4096);
  s.product_of("fc", 4, 1000, 2048);
  s.product_of("attention", 128, 128, 32, MatrixB::kTransposed, 12);
  s.product_of("attention", 128, 32, 128, MatrixB::kRowMajor, 12);
  s.product_of("attention", 197, 197, 64, MatrixB::kTransposed, 12);
  s.product_of("attention", 197, 64, 197, MatrixB::kRowMajor, 12);
  s.depthwise("mobilenetv2", 32, 112, 3, 1);
  s.depthwise("mobilenetv2", 144, 56, 3, 1);
  s.depthwise("mobilenetv2", 192, 28, 3, 1);
  s.depthwise("mobilenetv2", 576, 14, 3, 1);
  s.depthwise("mobilenetv2", 960, 7, 3, 1);
  s.depthwise("mobilenetv2", 144, 56, 3, 2);
  s.depthwise("efficientnet", 240, 28, 5, 1);
  s.depthwise("efficientnet", 672, 14, 5, 2);
  s.rows("softmax", 1536, 128);
  s.rows("softmax", 2364, 197);
  s.rows("layer_norm", 128, 384);
  s.rows("layer_norm", 197, 768);
  s.rows("silu", 64, 4096);
  s.rows("relu", 64, 4096);
  s.layout("to_blocked", 64, 56);
  s.layout("from_blocked", 512, 14);
  s.run(seconds, threads, cold);
  return 0;
}

}  // namespace
}  // namespace tilewright::topi::testing

int main(int argc, char** argv) { return tilewright::topi::testing::run(argc, argv); }
