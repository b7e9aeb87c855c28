// SPDX-License-Identifier: Apache-2.0
// tilewright run: runs a compiled model on given inputs; prints, writes or times its outputs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>

#include "base/format.h"
#include "base/read_whole.h"
#include "cli/model_run.h"
#include "cli/program_support.h"
#include "cli/verbs.h"
#include "inputs/file.h"
#include "inputs/input_spec.h"
#include "runtime/cpu.h"
#include "runtime/profile.h"

namespace tilewright::cli {
namespace {

struct RunOptions {
  ModelOptions model;
  std::string output, labels;
  int top = 0, repeat = 1, warmup = 0;
  bool profile = false;
};

struct ElementValue {
  int64_t index;
  double value;
};

// The largest elements of a tensor, NaN last.
std::vector<ElementValue> largest(const Tensor& t, int count) {
  std::vector<ElementValue> all;
  for (int64_t i = 0; i < t.size(); ++i) all.push_back({i, t.at_double(i)});
  auto n = std::min<size_t>(static_cast<size_t>(count), all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n), all.end(),
                    [](const ElementValue& a, const ElementValue& b) {
                      if (std::isnan(a.value) || std::isnan(b.value))
                        return !std::isnan(a.value) && std::isnan(b.value);
                      return a.value != b.value ? a.value > b.value : a.index < b.index;
                    });
  all.resize(n);
  return all;
}

bool has_values(const Tensor& t) { return t.dtype().code != TypeCode::kComplex && !t.dtype().is_string(); }

struct Summary {
  double min = 0, max = 0, mean = 0;
  int64_t not_finite = 0;
};
Summary summarize_values(const Tensor& t) {
  Summary s;
  int64_t n = 0;
  for (int64_t i = 0; i < t.size(); ++i) {
    double v = t.at_double(i);
    if (!std::isfinite(v)) {
      ++s.not_finite;
      continue;
    }
    s.min = n ? std::min(s.min, v) : v;
    s.max = n ? std::max(s.max, v) : v;
    s.mean += v;
    ++n;
  }
  if (n) s.mean /= static_cast<double>(n);
  return s;
}

Result<std::vector<std::string>> read_labels(const RunOptions& o, const Model& model) {
  std::string text = o.labels.empty() ? model.metadata("labels") : TW_TRY(read_whole(o.labels));
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    if (!lines.back().empty() && lines.back().back() == '\r') lines.back().pop_back();
    at = end + 1;
  }
  return lines;
}

// The loading time and the number of threads.
struct LoadReport {
  double load_ms = 0;
  int threads = 0;
};

std::string json_number(double v) { return std::isfinite(v) ? format("{}", v) : "null"; }

void print_json(const RunOptions& o, const LoadReport& run, double first_ms, const Timing& t,
                const inputs::NamedTensors& outputs, const std::vector<std::string>& labels, const Profile* profile) {
  std::string out = format(
      "{{\"model\":{},\"threads\":{},\"load_ms\":{:.4f},\"first_ms\":{:.4f},\"runs\":{},\"min_ms\":{:.4f},\"median_"
      "ms\":{:.4f},"
      "\"p90_ms\":{:.4f},\"mean_ms\":{:.4f},\"peak_rss_bytes\":{},\"outputs\":[",
      runtime::json_string(o.model.model), run.threads, run.load_ms, first_ms, t.runs, t.min, t.median, t.p90, t.mean,
      peak_rss_bytes());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& [name, tensor] = outputs[i];
    out += format("{}{{\"name\":{},\"dtype\":\"{}\",\"shape\":{}", i ? "," : "", runtime::json_string(name),
                  tensor.dtype().str(), json_shape(tensor.shape()));
    if (has_values(tensor)) {
      Summary s = summarize_values(tensor);
      out += format(",\"min\":{},\"max\":{},\"mean\":{},\"not_finite\":{}", json_number(s.min), json_number(s.max),
                    json_number(s.mean), s.not_finite);
      if (o.top > 0) {
        out += ",\"top\":[";
        auto top = largest(tensor, o.top);
        for (size_t k = 0; k < top.size(); ++k) {
          out += format("{}{{\"index\":{},\"value\":{}", k ? "," : "", top[k].index, json_number(top[k].value));
          if (static_cast<size_t>(top[k].index) < labels.size())
            out += ",\"label\":" + runtime::json_string(labels[static_cast<size_t>(top[k].index)]);
          out += "}";
        }
        out += "]";
      }
    }
    out += "}";
  }
  out += "]";
  if (profile) out += ",\"profile\":" + profile->json.substr(0, profile->json.find_last_not_of('\n') + 1);
  std::printf("%s}\n", out.c_str());
}

void print_text(const RunOptions& o, const LoadReport& run, double first_ms, const Timing& t,
                const inputs::NamedTensors& outputs, const std::vector<std::string>& labels) {
  std::printf("%s: loaded in %s, first run %s on %d thread%s\n", o.model.model.c_str(),
              milliseconds(run.load_ms).c_str(), milliseconds(first_ms).c_str(), run.threads,
              run.threads == 1 ? "" : "s");
  if (t.runs > 1)
    std::printf("%d runs: min %s, median %s, p90 %s\n", t.runs, milliseconds(t.min).c_str(),
                milliseconds(t.median).c_str(), milliseconds(t.p90).c_str());
  for (const auto& [name, tensor] : outputs) {
    std::string line = format("{}  {} {}", name, tensor.dtype().str(), shape_str(tensor.shape()));
    if (has_values(tensor) && tensor.size() > 0) {
      Summary s = summarize_values(tensor);
      line += format("  min {:.6g}  max {:.6g}  mean {:.6g}", s.min, s.max, s.mean);
      if (s.not_finite) line += format("  {} not finite", s.not_finite);
    }
    std::printf("%s\n", line.c_str());
    if (o.top <= 0 || !has_values(tensor)) continue;
    for (const ElementValue& r : largest(tensor, o.top)) {
      auto i = static_cast<size_t>(r.index);
      std::printf("  %6lld  %12.6g  %s\n", static_cast<long long>(r.index), r.value,
                  i < labels.size() ? labels[i].c_str() : "");
    }
  }
}

struct Times {
  double first_ms = 0;
  Timing timing;
};
// The first run includes page faults (and a VM program's compilation); it only counts if it is the only one.
Result<Times> time_runs(const RunOptions& o, const std::function<Status()>& once) {
  auto timed = [&]() -> Result<double> {
    double begin = now_ms();
    TW_TRY_STATUS(once());
    return now_ms() - begin;
  };
  Times out;
  out.first_ms = TW_TRY(timed());
  for (int i = 0; i < o.warmup; ++i) TW_TRY(timed());
  std::vector<double> times;
  if (o.repeat == 1 && o.warmup == 0)
    times = {out.first_ms};
  else
    for (int i = 0; i < o.repeat; ++i) times.push_back(TW_TRY(timed()));
  out.timing = summarize(times);
  return out;
}

Status show(const RunOptions& o, const LoadReport& start, const Times& times, const Model& model,
            const inputs::NamedTensors& outputs, const Profile* profile) {
  auto labels = TW_TRY(read_labels(o, model));
  if (!o.output.empty())
    TW_TRY_STATUS(inputs::write_tensor_file(o.output[0] == '@' ? o.output.substr(1) : o.output, outputs));
  if (profile && !o.model.trace.empty()) TW_TRY_STATUS(write_text(o.model.trace, profile->trace));
  if (o.model.json) {
    print_json(o, start, times.first_ms, times.timing, outputs, labels, o.profile ? profile : nullptr);
  } else {
    print_text(o, start, times.first_ms, times.timing, outputs, labels);
    if (o.profile && profile) std::printf("\n%s", profile->table.c_str());
  }
  return Ok{};
}

Result<int> run_program(const RunOptions& o, const Model& model) {
  if (!o.model.html.empty())
    return Diagnostic(ErrorCode::kInvalidArgument, "a VM program has no one list of steps to draw", o.model.model,
                      "compile the model for fixed sizes with --shape");
  const double begin = now_ms();
  auto artifact = TW_TRY(runtime::Artifact::load(o.model.model));
  auto program = TW_TRY(runtime::vm::program_of(artifact));
  const ProgramSupport support = TW_TRY(support_for(*program));
  runtime::vm::Specialize specialize;
  if (support.specialize) specialize = runtime::vm::specialize_with(program, support.specialize, support.message);
  runtime::vm::SpecializedOptions options;
  options.threads = o.model.threads;
  if (support.evaluate) options.evaluate = runtime::vm::evaluate_with(program, support.evaluate, support.message);
  if (support.evaluate && !support.specialize && program->open_regions() > 0)
    std::fprintf(stderr,
                 "note: the compiler is not installed here: what waits for sizes is interpreted, which is slow\n");
  auto runner = TW_TRY(runtime::vm::ProgramRunner::create(program, specialize, options));
  const LoadReport start{now_ms() - begin, o.model.threads > 0 ? o.model.threads : runtime::default_thread_count()};
  std::vector<inputs::InputInfo> infos;
  for (const auto& t : program->inputs) infos.push_back({t.name, t.dtype, t.shape});
  TW_TRY_STATUS(apply_shapes(o.model.shapes, &infos));
  std::vector<Tensor> inputs = TW_TRY(inputs::make_inputs(infos, o.model.inputs, o.model.seed)), results;
  Times times = TW_TRY(time_runs(o, [&]() -> Status {
    results = TW_TRY(runner->run(inputs));
    return Ok{};
  }));
  inputs::NamedTensors outputs;
  for (size_t i = 0; i < results.size(); ++i)
    outputs.emplace_back(i < program->outputs.size() ? program->outputs[i] : format("output_{}", i), results[i]);
  std::unique_ptr<Profile> profile;
  if (o.profile || !o.model.trace.empty()) {
    std::vector<runtime::vm::TraceEvent> events;
    runner->set_trace(&events);
    TW_TRY(runner->run(inputs));
    runner->set_trace(nullptr);
    profile = std::make_unique<Profile>();
    profile->table = runtime::vm::trace_table(events);
    profile->json = runtime::vm::trace_json(events);
    profile->trace = runtime::vm::trace_chrome(events);
  }
  TW_TRY_STATUS(show(o, start, times, model, outputs, profile.get()));
  return 0;
}

Result<int> run_model(const RunOptions& o) {
  const double begin = now_ms();
  const Model model = TW_TRY(open_model(o.model));
  const double load_ms = now_ms() - begin;
  if (model.metadata("kind") == runtime::vm::kProgramKind) return run_program(o, model);
  if (!o.model.shapes.empty() && model.num_variants() == 1 && model.metadata(plan::kBoundsKey).empty())
    return Diagnostic(ErrorCode::kInvalidArgument, "--shape is for models of several sizes; this one's are fixed",
                      o.model.model, "compile it again for other sizes");
  auto run = TW_TRY(start(o.model, model, load_ms));
  Times times = TW_TRY(time_runs(o, [&]() -> Status {
    run->executor.run();
    return Ok{};
  }));
  inputs::NamedTensors outputs = TW_TRY(outputs_of(*run));
  std::unique_ptr<Profile> profile;
  if (o.profile || !o.model.trace.empty() || !o.model.html.empty())
    profile = std::make_unique<Profile>(run->executor.profile(static_cast<uint64_t>(std::clamp(o.repeat, 10, 1000))));
  if (!o.model.html.empty()) TW_TRY_STATUS(write_profile_page(o.model, *run, *profile));
  TW_TRY_STATUS(show(o, {run->load_ms, run->executor.threads()}, times, run->model, outputs, profile.get()));
  return 0;
}

}  // namespace

void add_run_verb(CLI::App& app, Action* action) {
  auto o = std::make_shared<RunOptions>();
  CLI::App* verb = app.add_subcommand("run", "Run a compiled model");
  add_model_options(*verb, &o->model);
  verb->add_option("-o,--output", o->output, "Write the outputs to a .npz file (.npy or .pb for a single one)")
      ->type_name("FILE");
  verb->add_option("--shape", o->model.shapes,
                   "Size of an input where the model has several, NAME=1x37 (not needed with a file)")
      ->allow_extra_args(false);
  verb->add_option("--top", o->top, "Show the N largest elements of each output")
      ->check(CLI::Range(0, 1000000))
      ->type_name("N");
  verb->add_option("--labels", o->labels, "Names for --top, one per line (default: the model's own)")
      ->type_name("FILE");
  verb->add_option("--repeat", o->repeat, "Timed runs")->check(CLI::Range(1, 100000000))->capture_default_str();
  verb->add_option("--warmup", o->warmup, "Runs before the timed ones")
      ->check(CLI::Range(0, 100000000))
      ->capture_default_str();
  verb->add_flag("--profile", o->profile,
                 "Show where the time goes, step by step (of a VM program: of the run after the timed ones)");
  verb->footer(std::string(inputs::kInputHelp) + R"(

Examples:
  tilewright run resnet18.so
  tilewright run resnet18.so --input @cat.jpg,preset=imagenet --top 5 --labels imagenet.txt
  tilewright run bert.so --input ids=@ids.npy --input mask=ones --output @out.npz
  tilewright run model.so --input @inputs.npz --threads 1 --repeat 100 --warmup 10 --json)");
  verb->callback([o, action] { *action = [o] { return run_model(*o); }; });
}

}  // namespace tilewright::cli
