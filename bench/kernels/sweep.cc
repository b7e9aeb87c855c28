// SPDX-License-Identifier: Apache-2.0
#include "sweep.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "driver/build.h"
#include "fma_peak.h"
#include "runtime/artifact.h"
#include "runtime/executor.h"
#include "runtime/profile.h"
#include "sweep_shapes.h"

namespace tilewright::topi::testing {
namespace {

struct Options {
  std::string set = "all", kind, target = "llvm", json;
  uint64_t seed = 1;
  int count = 100, threads = 1;
  double expect_rank = -1, expect_median = 0, expect_p05 = 0;
};

struct Measured {
  SweepShape shape;
  std::string step;                           // the step's name: which operators the kernel holds and in which layout
  bool saves_arithmetic = false;              // Winograd: beyond the roofline of the direct algorithm
  double predicted_us = 0, us = 0, peak = 0;  // peak: flops a second
  double roofline_us = 0;
  double roofline() const { return roofline_us / us; }
};

// The shortest time that work and compulsory traffic allow at the level that holds the traffic.
double roofline_us(const SweepShape& s, double peak, const Target& target, int threads) {
  const double gbps = s.bytes <= static_cast<double>(target.l2_bytes) ? target.l2_gbps
                      : s.bytes <= 16 << 20                           ? target.l3_gbps
                                                                      : target.dram_gbps;
  return std::max(s.flops / peak / threads * 1e6, s.bytes / (gbps * (s.bytes > 16 << 20 ? 1 : threads) * 1e3));
}

Result<Measured> measure(const SweepShape& shape, const Options& o, const FmaPeak& peak) {
  driver::BuildOptions options;
  options.target = o.target;
  relay::Module module = relay::Module().with_main(relay::make_function(shape.inputs, shape.body));
  auto built = TW_TRY(driver::build(module, options));
  const std::string path =
      (std::filesystem::temp_directory_path() / format("tilewright-sweep-{}.so", getpid())).string();
  TW_TRY_STATUS(driver::export_library(built, path));
  auto artifact = runtime::Artifact::load(path);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  runtime::ExecutorOptions run;
  run.threads = o.threads;
  auto executor = TW_TRY(runtime::Executor::create(TW_TRY(std::move(artifact)), run));
  for (size_t i = 0; i < shape.inputs.size(); ++i) TW_TRY(executor->input(i));
  Measured m;
  m.shape = shape;
  double total = 0;
  {
    auto profile = TW_TRY(executor->profile(3));
    for (const auto& step : profile->steps()) total += step.min_us;
  }
  const auto repeats = static_cast<uint64_t>(std::clamp(4e4 / total, 5.0, 400.0));
  m.us = 1e30;
  for (int round = 0; round < 3; ++round) {
    m.peak = std::max(m.peak, peak.measure());
    auto profile = TW_TRY(executor->profile(repeats));
    m.peak = std::max(m.peak, peak.measure());
    double us = 0, predicted = 0;
    m.step.clear();
    // The operator's own steps; around them the input is brought into its layout and the result out of it.
    for (const auto& step : profile->steps()) {
      bool ours = step.name.find("conv") != std::string::npos || step.name.find("dense") != std::string::npos ||
                  step.name.find("matmul") != std::string::npos;
      if (!ours) continue;
      us += step.min_us, predicted += step.predicted_us;
      m.saves_arithmetic |= step.implementation.find("winograd") != std::string::npos;
      m.step += (m.step.empty() ? "" : " ; ") + step.name;
    }
    m.us = std::min(m.us, us), m.predicted_us = predicted;
  }
  m.roofline_us = roofline_us(shape, m.peak, built.target, o.threads);
  return m;
}

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> rank(values.size());
  for (size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<double>(i);
  return rank;
}

// Spearman's: how well one order predicts the other.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> x = ranks(a), y = ranks(b);
  double n = static_cast<double>(x.size()), sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return x.size() < 2 ? 1 : 1 - 6 * sum / (n * (n * n - 1));
}

double percentile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(p * static_cast<double>(values.size() - 1))];
}

bool parse(int argc, char** argv, Options* o) {
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string_view word = argv[i];
    const char* value = argv[i + 1];
    if (word == "--sweep")
      o->set = value;
    else if (word == "--kind")
      o->kind = value;
    else if (word == "--seed")
      o->seed = std::strtoull(value, nullptr, 10);
    else if (word == "--count")
      o->count = std::atoi(value);
    else if (word == "--threads")
      o->threads = std::atoi(value);
    else if (word == "--target")
      o->target = value;
    else if (word == "--json")
      o->json = value;
    else if (word == "--expect-rank")
      o->expect_rank = std::atof(value);
    else if (word == "--expect-median")
      o->expect_median = std::atof(value);
    else if (word == "--expect-p05")
      o->expect_p05 = std::atof(value);
    else
      return false;
  }
  return argc % 2 == 1 && (o->set == "conv" || o->set == "gemm" || o->set == "all") && o->count > 0 && o->threads > 0;
}

}  // namespace

int run_sweep(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, &o)) {
    std::fprintf(
        stderr,
        "usage: kernel_bench --sweep conv|gemm|all [--seed N] [--count N] [--kind KIND] [--threads N] [--target T] "
        "[--json FILE] [--expect-rank R] [--expect-median R] [--expect-p05 R]\n");
    return 2;
  }
  KernelSet set;
  FmaPeak peak(&set);
  set.build();
  std::vector<SweepShape> shapes = sweep_shapes(o.set, o.kind, o.seed, o.count);
  if (shapes.empty()) {
    std::fprintf(stderr, "no shape of kind '%s' in the set '%s'\n", o.kind.c_str(), o.set.c_str());
    return 2;
  }
  std::vector<Measured> all;
  int failures = 0;
  std::printf("%-50s %9s %9s %8s %7s %8s  %s\n", "shape", "us", "model us", "GFLOP/s", "% peak", "% roof", "kernel");
  for (const SweepShape& shape : shapes) {
    auto m = measure(shape, o, peak);
    if (!m.ok()) {
      std::printf("%-50s %s\n", shape.name.c_str(), m.error().str().c_str());
      ++failures;
      continue;
    }
    std::printf("%-50s %9.1f %9.1f %8.1f %6.1f%% %7.1f%%  %s\n", m->shape.name.c_str(), m->us, m->predicted_us,
                m->shape.flops / m->us * 1e-3, 100 * m->shape.flops / (m->us * 1e-6) / m->peak / o.threads,
                100 * m->roofline(), m->step.c_str());
    std::fflush(stdout);
    all.push_back(std::move(*m));
  }
  std::vector<double> predicted, measured, fractions, saving;
  nlohmann::json out = {{"set", o.set},         {"seed", o.seed},     {"count", o.count},
                        {"threads", o.threads}, {"target", o.target}, {"shapes", nlohmann::json::array()}};
  for (const Measured& m : all) {
    predicted.push_back(m.predicted_us), measured.push_back(m.us),
        (m.saves_arithmetic ? saving : fractions).push_back(m.roofline());
    out["shapes"].push_back({{"kind", m.shape.kind},
                             {"name", m.shape.name},
                             {"step", m.step},
                             {"flops", m.shape.flops},
                             {"bytes", m.shape.bytes},
                             {"predicted_us", m.predicted_us},
                             {"us", m.us},
                             {"peak_gflops", m.peak * 1e-9},
                             {"roofline_us", m.roofline_us},
                             {"roofline", m.roofline()},
                             {"saves_arithmetic", m.saves_arithmetic}});
  }
  const double rank = rank_correlation(predicted, measured), median = percentile(fractions, 0.5),
               p05 = percentile(fractions, 0.05);
  out["rank_correlation"] = rank, out["median"] = median, out["p05"] = p05, out["failures"] = failures;
  out["winograd_median"] = percentile(saving, 0.5);
  std::printf("\n%zu shapes, %d failed; rank correlation of prediction and time %.3f\n", all.size(), failures, rank);
  std::printf("%zu direct kernels, of their roofline: median %.1f%%, 5th percentile %.1f%%\n", fractions.size(),
              100 * median, 100 * p05);
  if (!saving.empty())
    std::printf("%zu Winograd kernels, of the direct roofline: median %.1f%%, 5th percentile %.1f%%\n", saving.size(),
                100 * percentile(saving, 0.5), 100 * percentile(saving, 0.05));
  if (!o.json.empty()) {
    std::FILE* file = std::fopen(o.json.c_str(), "w");
    if (!file) {
      std::fprintf(stderr, "%s cannot be written\n", o.json.c_str());
      return 2;
    }
    std::fprintf(file, "%s\n", out.dump(1).c_str());
    std::fclose(file);
  }
  return failures > 0 || rank < o.expect_rank || median < o.expect_median || p05 < o.expect_p05 ? 1 : 0;
}

}  // namespace tilewright::topi::testing
