// SPDX-License-Identifier: Apache-2.0
#include "sweep.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "driver/build.h"
#include "fma_peak.h"
#include "runtime/artifact.h"
#include "runtime/executor.h"
#include "runtime/profile.h"
#include "stream_time.h"
#include "sweep_shapes.h"

namespace tilewright::topi::testing {
namespace {

struct Options {
  std::string set = "all", kind, target = "llvm", json, with;
  uint64_t seed = 1;
  int count = 100, first = 0, threads = 1;
  double expect_rank = -1, expect_median = 0, expect_p05 = 0;
};

struct Measured {
  SweepShape shape;
  std::string step;                           // the step's name: operators and layout of the kernel
  bool saves_arithmetic = false;              // Winograd: may exceed the roofline of the direct algorithm
  double predicted_us = 0, us = 0, peak = 0;  // peak: flops a second
  double roofline_us = 0;
  double roofline() const { return roofline_us / us; }
  bool memory_bound() const { return roofline_us > shape.flops / peak * 1.001e6; }
};

// The shortest time that arithmetic and compulsory traffic allow. Data in a core's own caches arrive at cache speed;
// the rest is measured, on one thread.
double roofline_us(const SweepShape& s, double peak, const Target& target, int threads, StreamTime& stream) {
  const double traffic = s.bytes <= static_cast<double>(target.machine.l2_bytes)
                             ? s.bytes / (target.machine.l2_gbps * threads * 1e3)
                             : stream.measure(s.bytes - s.written, s.written) * 1e6;
  return std::max(s.flops / peak / threads * 1e6, traffic);
}

Result<Measured> measure(const SweepShape& shape, const Options& o, const FmaPeak& peak, StreamTime& stream) {
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
    // Only the operator's own steps, not the layout transforms around them.
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
  m.roofline_us = roofline_us(shape, m.peak, built.target, o.threads, stream);
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

// Spearman's rank correlation.
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

struct Summary {
  double rank, median, p05;
};

// Prints a summary and adds it to `out`: direct kernels by
// kind, Winograd separately, since it can exceed the roofline.
Summary summarize(nlohmann::json* out, int failures) {
  struct Group {
    std::vector<double> rooflines;
    double least = 1e30;
    std::string worst;
  };
  std::map<std::string, Group> kinds;
  std::vector<double> predicted, measured, direct, saving;
  for (const auto& s : (*out)["shapes"]) {
    const double roofline = s["roofline"];
    predicted.push_back(s["predicted_us"]), measured.push_back(s["us"]);
    const bool saves = s["saves_arithmetic"];
    (saves ? saving : direct).push_back(roofline);
    if (saves) continue;
    Group& group = kinds[s["kind"]];
    group.rooflines.push_back(roofline);
    if (roofline < group.least) group.least = roofline, group.worst = s["name"];
  }
  const Summary all{rank_correlation(predicted, measured), percentile(direct, 0.5), percentile(direct, 0.05)};
  std::printf("\n%-12s %6s %8s %14s %7s  %s\n", "kind", "shapes", "median", "5th percentile", "worst", "");
  for (const auto& [kind, group] : kinds)
    std::printf("%-12s %6zu %7.1f%% %13.1f%% %6.1f%%  %s\n", kind.c_str(), group.rooflines.size(),
                100 * percentile(group.rooflines, 0.5), 100 * percentile(group.rooflines, 0.05), 100 * group.least,
                group.worst.c_str());
  std::printf("\n%zu shapes, %d failed; rank correlation of prediction and time %.3f\n", predicted.size(), failures,
              all.rank);
  std::printf("%zu direct kernels, of their roofline: median %.1f%%, 5th percentile %.1f%%\n", direct.size(),
              100 * all.median, 100 * all.p05);
  if (!saving.empty())
    std::printf("%zu Winograd kernels, of the direct roofline: median %.1f%%, 5th percentile %.1f%%\n", saving.size(),
                100 * percentile(saving, 0.5), 100 * percentile(saving, 0.05));
  (*out)["rank_correlation"] = all.rank, (*out)["median"] = all.median, (*out)["p05"] = all.p05;
  (*out)["failures"] = failures, (*out)["winograd_median"] = percentile(saving, 0.5);
  return all;
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
    else if (word == "--first")
      o->first = std::atoi(value);
    else if (word == "--with")
      o->with = value;
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
  return argc % 2 == 1 && (o->set == "conv" || o->set == "gemm" || o->set == "all") && o->count > 0 && o->first >= 0 &&
         o->threads > 0;
}

}  // namespace

int run_sweep(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, &o)) {
    std::fprintf(
        stderr,
        "usage: kernel_bench --sweep conv|gemm|all [--seed N] [--count N] [--first N] [--kind KIND] [--threads N] "
        "[--target T] [--json FILE] [--with FILE] [--expect-rank R] [--expect-median R] [--expect-p05 R]\n");
    return 2;
  }
  KernelSet set;
  FmaPeak peak(&set);
  StreamTime stream;
  set.build();
  std::vector<SweepShape> shapes = sweep_shapes(o.set, o.kind, o.seed, o.count);
  if (shapes.empty()) {
    std::fprintf(stderr, "no shape of kind '%s' in the set '%s'\n", o.kind.c_str(), o.set.c_str());
    return 2;
  }
  nlohmann::json out = {{"set", o.set},         {"seed", o.seed},     {"count", o.count},
                        {"threads", o.threads}, {"target", o.target}, {"shapes", nlohmann::json::array()}};
  int failures = 0;
  if (!o.with.empty()) {
    std::ifstream file(o.with);
    const nlohmann::json earlier = nlohmann::json::parse(file, nullptr, false);
    if (earlier.is_discarded() || !earlier.contains("shapes")) {
      std::fprintf(stderr, "%s is no sweep's JSON\n", o.with.c_str());
      return 2;
    }
    out["shapes"] = earlier["shapes"];
    failures = earlier.value("failures", 0);
  }
  std::printf("%-50s %9s %9s %8s %7s %8s  %s\n", "shape", "us", "model us", "GFLOP/s", "% peak", "% roof", "kernel");
  for (size_t i = static_cast<size_t>(o.first); i < shapes.size(); ++i) {
    const SweepShape& shape = shapes[i];
    auto m = measure(shape, o, peak, stream);
    if (!m.ok()) {
      std::printf("%-50s %s\n", shape.name.c_str(), m.error().str().c_str());
      ++failures;
      continue;
    }
    std::printf("%-50s %9.1f %9.1f %8.1f %6.1f%% %7.1f%%%s %s\n", m->shape.name.c_str(), m->us, m->predicted_us,
                m->shape.flops / m->us * 1e-3, 100 * m->shape.flops / (m->us * 1e-6) / m->peak / o.threads,
                100 * m->roofline(), m->memory_bound() ? "m" : " ", m->step.c_str());
    std::fflush(stdout);
    out["shapes"].push_back({{"kind", m->shape.kind},
                             {"name", m->shape.name},
                             {"step", m->step},
                             {"flops", m->shape.flops},
                             {"bytes", m->shape.bytes},
                             {"predicted_us", m->predicted_us},
                             {"us", m->us},
                             {"peak_gflops", m->peak * 1e-9},
                             {"roofline_us", m->roofline_us},
                             {"roofline", m->roofline()},
                             {"memory_bound", m->memory_bound()},
                             {"saves_arithmetic", m->saves_arithmetic}});
  }
  const Summary summary = summarize(&out, failures);
  if (!o.json.empty()) {
    std::FILE* file = std::fopen(o.json.c_str(), "w");
    if (!file) {
      std::fprintf(stderr, "%s cannot be written\n", o.json.c_str());
      return 2;
    }
    std::fprintf(file, "%s\n", out.dump(1).c_str());
    std::fclose(file);
  }
  return failures > 0 || summary.rank < o.expect_rank || summary.median < o.expect_median || summary.p05 < o.expect_p05
             ? 1
             : 0;
}

}  // namespace tilewright::topi::testing
