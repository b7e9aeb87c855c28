// SPDX-License-Identifier: Apache-2.0
// tilewright tune: measures candidate kernels for a model's layers and records the results.
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/format.h"
#include "codegen/codegen.h"
#include "driver/cli/commands.h"
#include "driver/cli/tune_page.h"
#include "driver/model_file.h"
#include "driver/trial_server.h"
#include "tune/database.h"
#include "tune/measurer.h"
#include "tune/session.h"

namespace tilewright::driver {
namespace {

std::atomic<bool> stopped{false};
void stop(int) { stopped = true; }

struct TuneFlags {
  CompileFlags compile;
  std::string log, html;
  double minutes = 1, batch_seconds = 0.2;
  int threads = 0;
  tune::TuneOptions tuning;
  bool resume = false, json = false;
};

double elapsed_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string microseconds(double seconds) { return seconds > 0 ? format("{:.1f}", seconds * 1e6) : "-"; }

std::string shapes_of(const tune::Workload& workload) {
  std::string out;
  for (const auto& arg : workload.args)
    if (arg.is_array() && arg.size() == 3 && arg[0] == "TENSOR")
      out += (out.empty() ? "" : " ") + shape_str(arg[1].get<std::vector<int64_t>>());
  return out;
}

std::string summary(const tune::Tuning& tuning) {
  const double before = tuning.total_seconds(false), after = tuning.total_seconds(true);
  return format("{:.0f} s, {} trials, {:.1f} a second; kernels {:.3f} ms -> {:.3f} ms ({:.2f}x)", tuning.seconds(),
                tuning.trials(), static_cast<double>(tuning.trials()) / std::max(tuning.seconds(), 1e-3), before * 1e3,
                after * 1e3, after > 0 ? before / after : 1.0);
}

std::string row(const tune::TaskState& state) {
  return format("{:<32} {:<34} {:>4}x {:>6} {:>4} {:>10} {:>10} {:>6.2f}", state.task->workload.name,
                shapes_of(state.task->workload), state.task->calls, state.trials, state.failed,
                microseconds(state.default_seconds), microseconds(state.best_seconds), state.gain());
}

// On a terminal a table that is updated in place; otherwise one line per batch.
class Display {
 public:
  explicit Display(bool quiet) : quiet_(quiet), terminal_(!quiet && isatty(1)) {}
  void show(const tune::Tuning& tuning) {
    if (quiet_) return;
    if (!terminal_) {
      std::printf("%s\n", row(tuning.states()[tuning.current()]).c_str());
      std::fflush(stdout);
      return;
    }
    if (drawn_ > 0) std::printf("\033[%zuA", drawn_);
    table(tuning, "\033[K");
    drawn_ = tuning.states().size() + 2;
    std::fflush(stdout);
  }
  void end(const tune::Tuning& tuning) {
    if (quiet_) return;
    if (terminal_ && drawn_ > 0) return;
    table(tuning, "");
  }

 private:
  static void table(const tune::Tuning& tuning, const char* clear) {
    std::printf("%s%-32s %-34s %5s %6s %4s %10s %10s %6s\n", clear, "task", "shapes", "calls", "trials", "bad",
                "default us", "best us", "gain");
    for (const tune::TaskState& state : tuning.states()) std::printf("%s%s\n", clear, row(state).c_str());
    std::printf("%s%s\n", clear, summary(tuning).c_str());
  }
  bool quiet_, terminal_;
  size_t drawn_ = 0;
};

Status write_page(const TuneFlags& flags, const std::string& target, const nlohmann::json& report) {
  const std::string page = tuning_page(std::filesystem::path(flags.compile.model).filename().string(), target, report);
  std::ofstream out(flags.html, std::ios::binary);
  out << page;
  out.close();
  if (!out) return Diagnostic(ErrorCode::kCannotWrite, "the page cannot be written", flags.html);
  return Ok{};
}

Result<int> tune_model(TuneFlags flags) {
  BuildOptions options = TW_TRY(flags.compile.options());
  TW_TRY_STATUS(check_options(options));
  if (!options.more_shapes.empty())
    return Diagnostic(ErrorCode::kInvalidArgument, "tuning takes one shape at a time", {},
                      "give each its own run and the same log; records of all of them are used together");
  const std::string log =
      flags.log.empty() ? std::filesystem::path(flags.compile.model).stem().string() + ".log.json" : flags.log;
  flags.tuning.log = log, flags.tuning.seconds = flags.minutes * 60;
  if (flags.resume && std::filesystem::exists(log)) flags.tuning.known = TW_TRY(tune::read_log(log)).records;
  const Built optimized =
      TW_TRY(optimize(TW_TRY(read_model_file(flags.compile.model, options, onnx::Programs::kRefused)), options));
  const std::vector<tune::Task> tasks = TW_TRY(tune::extract_tasks(optimized.optimized, optimized.target));
  const bool quiet = flags.compile.quiet || flags.json;
  if (!quiet) std::printf("%zu tasks; records go to %s\n", tasks.size(), log.c_str());

  const auto start = std::chrono::steady_clock::now();
  tune::Measurer measurer({"/proc/self/exe", kServeTrialsVerb}, {}, [] { return stopped.load(); });
  auto measure = [&](const tune::Task& task, const std::vector<tune::Trial>& trials) {
    tune::Batch batch{task.target, task.module, trials, {}, ""};
    batch.timing.threads = flags.threads, batch.timing.seconds = flags.batch_seconds;
    return measurer.measure(batch);
  };
  auto tuning = TW_TRY(tune::Tuning::make(tasks, flags.tuning, measure, [start] { return elapsed_since(start); }));
  Display display(quiet);
  const Status done = tuning.run([&](const tune::Tuning& now) { display.show(now); });
  const bool interrupted = !done.ok() && done.error().code == ErrorCode::kInterrupted;
  if (!done.ok() && !interrupted) return done.error();
  display.end(tuning);
  if (!flags.html.empty())
    TW_TRY_STATUS(write_page(flags, optimized.target.str(), tuning_report(tuning, log, interrupted, /*curves=*/true)));
  if (flags.json) {
    std::printf("%s\n", tuning_report(tuning, log, interrupted, /*curves=*/false).dump(2).c_str());
  } else if (!quiet) {
    if (interrupted) std::printf("interrupted: what was found so far is kept\n");
    std::printf("tilewright compile %s --records %s\n", flags.compile.model.c_str(), log.c_str());
  }
  return kExitOk;
}

}  // namespace

Command add_tune(CLI::App* app) {
  auto* cmd = app->add_subcommand("tune", "Measure the kernels a model's layers could have, for `compile --records`");
  auto flags = std::make_shared<TuneFlags>();
  CompileFlags& compile = flags->compile;
  cmd->add_option("model", compile.model, "An ONNX model, a .pt2 file, or a Relay module as text or JSON")->required();
  cmd->add_option("-j,-o,--log", flags->log,
                  "The file that records are appended to, in the classic stack's format; default: the model's name "
                  "with .log.json");
  cmd->add_option("--minutes", flags->minutes, "How long to measure")
      ->check(CLI::Range(0.0, 1e5))
      ->capture_default_str();
  cmd->add_option("--trials", flags->tuning.trials, "At most so many of each task; default: as time allows");
  cmd->add_flag("--resume", flags->resume, "Learn from the records that the log has, and repeat none of them");
  cmd->add_option("--threads", flags->threads, "That kernels run with; default: as `run`")->check(CLI::Range(0, 1024));
  cmd->add_option("--search", flags->tuning.search, "guided, genetic, random or grid")
      ->check(CLI::IsMember({"guided", "genetic", "random", "grid"}))
      ->capture_default_str();
  cmd->add_option("--seed", flags->tuning.seed, "Of what is left to chance");
  cmd->add_option("--batch", flags->tuning.batch, "Kernels that are built and measured together")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  cmd->add_option("--batch-seconds", flags->batch_seconds, "How long those are measured, in turns")
      ->check(CLI::Range(0.0, 60.0))
      ->capture_default_str();
  cmd->add_option("--html", flags->html, "Write a page with the curve of each task");
  cmd->add_flag("--json", flags->json, "Print the result as JSON");
  compile.add_model_to(cmd);
  cmd->footer(
      "Examples:\n"
      "  tilewright tune resnet18.onnx --minutes 5 -j resnet18.log.json\n"
      "  tilewright compile resnet18.onnx --records resnet18.log.json -o resnet18.so\n"
      "Kernels run in a process of their own. Ctrl-C ends the session and keeps what was found.");
  return [flags] {
    std::signal(SIGINT, stop);
    auto done = tune_model(*flags);
    return done.ok() ? *done : fail(done.error());
  };
}

Command add_serve_trials(CLI::App* app) {
  app->add_subcommand(kServeTrialsVerb, "")->group("");  // hidden: started by `tune`
  return [] { return serve_trials(0); };
}

}  // namespace tilewright::driver
