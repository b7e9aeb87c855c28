// SPDX-License-Identifier: Apache-2.0
// tilewright bench: the time of a compiled model and of its steps.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/format.h"
#include "cli/kernel_table.h"
#include "cli/model_run.h"
#include "cli/verbs.h"
#include "inputs/input_spec.h"
#include "runtime/profile.h"

namespace tilewright::cli {
namespace {

struct BenchOptions {
  ModelOptions model;
  double seconds = 2, warmup_seconds = 0.3;
  int min_runs = 10;
  bool no_steps = false, kernels = false;
};

// Each kernel's time compared with its roofline and prediction.
Result<int> bench_kernels(const BenchOptions& o) {
  auto run = TW_TRY(start(o.model));
  Executor& executor = run->executor;
  const double begin = now_ms();
  executor.run();
  double last_ms = now_ms() - begin;
  while (now_ms() - begin < o.warmup_seconds * 1000) {
    const double run_begin = now_ms();
    executor.run();
    last_ms = now_ms() - run_begin;
  }
  const MachinePeak all = measure_peak(executor.threads());
  const MachinePeak one = executor.threads() == 1 ? all : measure_peak(1);
  // A step's minimum settles within some hundred runs; timing each step slows small models down.
  const auto repeats = static_cast<uint64_t>(std::clamp(o.seconds * 1000 / std::max(last_ms, 1e-3), 10.0, 2000.0));
  const Profile profile = executor.profile(repeats);
  if (!o.model.trace.empty()) TW_TRY_STATUS(write_text(o.model.trace, profile.trace));
  if (!o.model.html.empty()) TW_TRY_STATUS(write_profile_page(o.model, *run, profile));
  const std::vector<KernelRow> rows = kernel_rows(profile, run->model.info(), one, all);
  std::printf("%s", (o.model.json ? kernel_json(rows, all) : kernel_table(rows, all)).c_str());
  return 0;
}

Result<int> bench_model(const BenchOptions& o) {
  if (o.kernels) return bench_kernels(o);
  auto run = TW_TRY(start(o.model));
  Executor& executor = run->executor;
  double begin = now_ms();
  executor.run();
  double first_ms = now_ms() - begin;
  while (now_ms() - begin < o.warmup_seconds * 1000) executor.run();
  std::vector<double> times;
  for (begin = now_ms(); times.size() < static_cast<size_t>(o.min_runs) || now_ms() - begin < o.seconds * 1000;) {
    double start_ms = now_ms();
    executor.run();
    times.push_back(now_ms() - start_ms);
    if (times.size() >= 10'000'000) break;
  }
  Timing t = summarize(times);
  ModelInfo info = run->model.info();
  bool steps = !o.no_steps || !o.model.trace.empty() || !o.model.html.empty();
  auto repeats = static_cast<uint64_t>(std::clamp(o.seconds * 250 / std::max(t.median, 1e-3), 5.0, 200.0));
  std::unique_ptr<Profile> profile = steps ? std::make_unique<Profile>(executor.profile(repeats)) : nullptr;
  if (!o.model.trace.empty()) TW_TRY_STATUS(write_text(o.model.trace, profile->trace));
  if (!o.model.html.empty()) TW_TRY_STATUS(write_profile_page(o.model, *run, *profile));
  double gflops = t.min > 0 ? info.flops / t.min * 1e-6 : 0;
  if (o.model.json) {
    std::string out = format(
        "{{\"model\":{},\"name\":{},\"target\":{},\"threads\":{},\"load_ms\":{:.4f},\"first_ms\":{:.4f},"
        "\"runs\":{},\"min_ms\":{:.4f},"
        "\"median_ms\":{:.4f},\"p90_ms\":{:.4f},\"mean_ms\":{:.4f},\"stdev_ms\":{:.4f},\"gflops_per_s\":{:."
        "3f},\"flops\":{:.0f},"
        "\"params_bytes\":{},\"arena_bytes\":{},\"peak_rss_bytes\":{}",
        runtime::json_string(o.model.model), runtime::json_string(info.name), runtime::json_string(info.target),
        executor.threads(), run->load_ms, first_ms, t.runs, t.min, t.median, t.p90, t.mean, t.deviation, gflops,
        info.flops, info.params_bytes, info.arena_bytes, peak_rss_bytes());
    if (!o.no_steps) out += ",\"profile\":" + profile->json.substr(0, profile->json.find_last_not_of('\n') + 1);
    std::printf("%s}\n", out.c_str());
    return 0;
  }
  std::printf("%s  (%s; %s)\n", o.model.model.c_str(), info.name.c_str(), info.target.c_str());
  std::printf("threads %d   load %s   first run %s\n", executor.threads(), milliseconds(run->load_ms).c_str(),
              milliseconds(first_ms).c_str());
  std::printf("min %s   median %s   p90 %s   mean %s ± %s   %d runs\n", milliseconds(t.min).c_str(),
              milliseconds(t.median).c_str(), milliseconds(t.p90).c_str(), milliseconds(t.mean).c_str(),
              milliseconds(t.deviation).c_str(), t.runs);
  std::printf("%.1f runs/s   %.1f GFLOP/s   weights %s   working memory %s   peak RSS %s\n",
              t.median > 0 ? 1000 / t.median : 0, gflops, byte_count(info.params_bytes).c_str(),
              byte_count(info.arena_bytes).c_str(), byte_count(peak_rss_bytes()).c_str());
  if (!o.no_steps) std::printf("\n%s", profile->table.c_str());
  return 0;
}

}  // namespace

void add_bench_verb(CLI::App& app, Action* action) {
  auto o = std::make_shared<BenchOptions>();
  CLI::App* verb = app.add_subcommand("bench", "Time a compiled model and its steps");
  add_model_options(*verb, &o->model);
  verb->add_option("--time", o->seconds, "Seconds of timed runs")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  verb->add_option("--warmup-time", o->warmup_seconds, "Seconds of runs before them")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  verb->add_option("--min-runs", o->min_runs, "At least so many timed runs")
      ->check(CLI::Range(1, 10000000))
      ->capture_default_str();
  verb->add_flag("--no-steps", o->no_steps, "Leave out the table of steps");
  verb->add_flag("--kernels", o->kernels,
                 "Every kernel beside its roofline, which is measured first, and its predicted time");
  verb->footer(
      R"(The table of steps is sorted by time. "busy" is the share of the step's time that threads spent in the kernel (low: the
threads wait for each other); "model" is how much of the speed that the cost model predicted was reached; GFLOP/s and
GB/s count the work and the traffic that the step cannot avoid.

With --kernels, "roofline" is the share of the attainable speed: the larger of the work at the machine's multiply-add peak
and the traffic at the bandwidth of the level it lives in ("bound" says which), both measured before the run; "predicted"
is the compiler's cost model, "ratio" predicted by measured. Kernels that save arithmetic may exceed 100%.

)" + std::string(inputs::kInputHelp) +
      R"(

Examples:
  tilewright bench resnet50.so --threads 1
  tilewright bench resnet50.so --time 10 --json
  tilewright bench resnet50.so --kernels --threads 1
  tilewright bench resnet50.so --trace trace.json
  tilewright bench resnet50.so --html profile.html)");
  verb->callback([o, action] { *action = [o] { return bench_model(*o); }; });
}

}  // namespace tilewright::cli
