// SPDX-License-Identifier: Apache-2.0
#include "cli/model_run.h"

#include <dlfcn.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>

#include "base/format.h"
#include "base/plugin.h"
#include "cli/profile_page.h"
#include "cli/verbs.h"
#include "inputs/file.h"
#include "inputs/input_spec.h"
#include "runtime/artifact.h"
#include "tilewright/function.h"

namespace tilewright::cli {

void add_model_options(CLI::App& verb, ModelOptions* o) {
  verb.add_option("MODEL", o->model, "The compiled model: .so; also .o, .a, .tar, .ll and .bc, which are linked first")
      ->required();
  verb.add_option("-i,--input", o->inputs,
                  "[NAME=]VALUE: a file, a picture, random, zeros, ones or numbers (see below)")
      ->allow_extra_args(false);
  verb.add_option("-t,--threads", o->threads, "Threads; 0: one per physical core that may be used")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  verb.add_option("--plugin", o->plugins, "A shared library with modules of your own (docs/external-codegen.md)")
      ->allow_extra_args(false)
      ->type_name("FILE");
  verb.add_option("--seed", o->seed, "Seed of random inputs")->capture_default_str();
  verb.add_option("--trace", o->trace, "Write one profiled run as a Chrome trace (chrome://tracing, Perfetto)")
      ->type_name("FILE");
  verb.add_option("--html", o->html,
                  "Write the profile as a page for a browser: graph, times and rooflines, memory plan")
      ->type_name("FILE");
  verb.add_flag("--json", o->json, "Print the results as one JSON object");
}

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// getrusage would include the process that called exec.
uint64_t peak_rss_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

Timing summarize(std::vector<double> ms) {
  Timing t;
  if (ms.empty()) return t;
  std::sort(ms.begin(), ms.end());
  auto n = static_cast<double>(ms.size());
  t.runs = static_cast<int>(ms.size());
  t.min = ms.front();
  t.median = ms.size() % 2 ? ms[ms.size() / 2] : (ms[ms.size() / 2 - 1] + ms[ms.size() / 2]) / 2;
  t.p90 = ms[std::min(ms.size() - 1, static_cast<size_t>(std::ceil(0.9 * n)) - (n > 1 ? 1 : 0))];
  t.mean = std::accumulate(ms.begin(), ms.end(), 0.0) / n;
  double squares = 0;
  for (double v : ms) squares += (v - t.mean) * (v - t.mean);
  t.deviation = n > 1 ? std::sqrt(squares / (n - 1)) : 0;
  return t;
}

namespace {

// Loads a shared library with the user's modules or functions permanently.
Status load_plugin(const std::string& path) {
  void* library = TW_TRY(open_plugin(path));
  if (auto entry = reinterpret_cast<int32_t (*)()>(dlsym(library, "tw_runtime_plugin"))) detail::check(entry());
  return Ok{};
}

// (IR, library to write): the compiler's function, registered for the runtime's loader of .ll and .bc.
Status register_ir_compiler() {
  void* found = TW_TRY(compiler_symbol("tw_compiler_compile_ir", "run"));
  void* message = TW_TRY(compiler_symbol("tw_compiler_last_error_message", "run"));
  auto compile = reinterpret_cast<int32_t (*)(const char*, const char*)>(found);
  auto said = reinterpret_cast<const char* (*)()>(message);
  register_function(
      "runtime.module.link_ir",
      [=](Args args) -> Value {
        if (int32_t code = compile(args[0].string().c_str(), args[1].string().c_str()))
          throw Error(code, "", "", said());
        return {};
      },
      true);
  return Ok{};
}

}  // namespace

Result<Model> open_model(const ModelOptions& options) {
  for (const std::string& plugin : options.plugins) TW_TRY_STATUS(load_plugin(plugin));
  const std::string& path = options.model;
  const size_t dot = path.rfind('.');
  const std::string ending = dot == std::string::npos ? "" : path.substr(dot + 1);
  for (const char* linked : {"o", "a", "tar", "ll", "bc"}) {
    if (ending != linked) continue;
    if (ending == "ll" || ending == "bc") TW_TRY_STATUS(register_ir_compiler());
    return Model::of(Module::load(path, ending).get());
  }
  return Model(path);
}

Status apply_shapes(const std::vector<std::string>& texts, std::vector<inputs::InputInfo>* inputs) {
  for (const std::string& text : texts) {
    auto bad = [&](const char* why) {
      return Diagnostic(ErrorCode::kInvalidArgument, format("'{}' {}", text, why), "--shape",
                        "write --shape name=1x37");
    };
    size_t equals = text.rfind('=');
    if (equals == std::string::npos) return bad("has no input name");
    std::vector<int64_t> shape;
    for (size_t at = equals + 1; at <= text.size();) {
      size_t end = std::min(text.find('x', at), text.size());
      int64_t v = 0;
      auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, v);
      if (error != std::errc() || stop != text.data() + end || v < 0) return bad("has something that is not a size");
      shape.push_back(v);
      at = end + 1;
    }
    auto input =
        std::find_if(inputs->begin(), inputs->end(), [&](const auto& i) { return i.name == text.substr(0, equals); });
    if (input == inputs->end())
      return Diagnostic(ErrorCode::kUnknownInput, format("no input is named '{}'", text.substr(0, equals)), "--shape");
    bool fits = shape.size() == input->shape.size();
    for (size_t d = 0; fits && d < shape.size(); ++d)
      fits = input->shape[d] == inputs::kFreeSize || input->shape[d] == shape[d];
    if (!fits)
      return Diagnostic(ErrorCode::kShapeMismatch, format("input '{}' does not take {}", input->name, shape_str(shape)),
                        "--shape");
    input->shape = shape;
  }
  return Ok{};
}

Result<std::unique_ptr<ModelRun>> start(const ModelOptions& options) {
  const double begin = now_ms();
  const Model model = TW_TRY(open_model(options));
  return start(options, model, now_ms() - begin);
}

Result<std::unique_ptr<ModelRun>> start(const ModelOptions& options, const Model& model, double load_ms) {
  const double begin = now_ms();
  Executor executor(model, options.threads);
  auto run = std::make_unique<ModelRun>(ModelRun{model, std::move(executor), load_ms + now_ms() - begin});
  // With shape variants, the first whose shapes match all given tensors.
  std::vector<inputs::InputInfo> inputs;
  Result<std::vector<Tensor>> tensors = std::vector<Tensor>();
  std::string shapes;
  // Within bounds the executor accepts or rejects sizes; by default the first ones are used.
  const bool bounded =
      !model.metadata(plan::kBoundsKey).empty() && (!options.shapes.empty() || !options.inputs.empty());
  for (size_t v = 0; v < (bounded ? 1 : model.num_variants()); ++v) {
    inputs.clear();
    for (const TensorInfo& t : model.variant_inputs(v)) {
      DataType dtype = TW_TRY(parse_dtype(t.dtype));
      inputs.push_back({t.name, dtype, t.shape});
      if (bounded) inputs.back().shape.assign(t.shape.size(), inputs::kFreeSize);
    }
    const Status wanted = apply_shapes(options.shapes, &inputs);
    tensors = wanted.ok() ? inputs::make_inputs(inputs, options.inputs, options.seed) : wanted.error();
    for (size_t i = 0; i < inputs.size(); ++i)
      shapes += format("{}{} {}", i ? ", " : v ? "; or " : "", inputs[i].name, shape_str(inputs[i].shape));
    if (tensors.ok() || tensors.error().code != ErrorCode::kShapeMismatch) break;
  }
  if (!tensors.ok()) {
    Diagnostic error = std::move(tensors).error();
    if (error.code == ErrorCode::kShapeMismatch && !bounded && model.num_variants() > 1)
      error.hint = format("the model was compiled for {}", shapes);
    return error;
  }
  for (size_t i = 0; i < tensors->size(); ++i) {
    std::vector<int64_t> shape = (*tensors)[i].shape();
    DLTensor view{(*tensors)[i].mutable_raw(),
                  {kDLCPU, 0},
                  static_cast<int32_t>(shape.size()),
                  model.inputs()[i].dl_dtype,
                  shape.data(),
                  nullptr,
                  0};
    run->executor.set_input(inputs[i].name, view);
  }
  return run;
}

Result<inputs::NamedTensors> outputs_of(const ModelRun& run) {
  inputs::NamedTensors out;
  for (size_t i = 0; i < run.model.outputs().size(); ++i) {
    const TensorInfo& info = run.model.outputs()[i];
    const DLTensor output = run.executor.output(i);  // has the shape of the selected variant
    Tensor t(TW_TRY(parse_dtype(info.dtype)), std::vector<int64_t>(output.shape, output.shape + output.ndim));
    if (t.bytes()) std::memcpy(t.mutable_raw(), output.data, t.bytes());
    out.emplace_back(info.name, std::move(t));
  }
  return out;
}

std::string json_shape(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? "," : "") + std::to_string(shape[i]);
  return out + "]";
}

std::string milliseconds(double ms) {
  if (ms < 0.1) return format("{:.1f} us", ms * 1000);
  return ms < 10 ? format("{:.3f} ms", ms) : format("{:.1f} ms", ms);
}

std::string byte_count(uint64_t bytes) {
  auto b = static_cast<double>(bytes);
  if (bytes >= (1u << 20)) return format("{:.1f} MiB", b / (1 << 20));
  if (bytes >= 1024) return format("{:.1f} KiB", b / 1024);
  return format("{} B", bytes);
}

Status write_profile_page(const ModelOptions& options, const ModelRun& run, const Profile& profile) {
  const auto artifact = TW_TRY(runtime::Artifact::load(options.model));
  const MachinePeak all = measure_peak(run.executor.threads());
  const MachinePeak one = run.executor.threads() == 1 ? all : measure_peak(1);
  // The profiled variant is the one with the same steps.
  const plan::Plan* plan = nullptr;
  for (size_t v = 0; v <= artifact->plan().variants.size() && !plan; ++v) {
    const plan::Plan& candidate = plan::variant_of(artifact->plan(), v);
    bool same = candidate.steps.size() == profile.steps.size();
    for (size_t i = 0; same && i < candidate.steps.size(); ++i)
      same = plan::callee_of(candidate, candidate.steps[i]) == profile.steps[i].kernel &&
             candidate.steps[i].name == profile.steps[i].name;
    for (size_t i = 0; same && i < candidate.inputs.size(); ++i) {
      const DLTensor view = run.executor.input(i);
      same = std::equal(candidate.inputs[i].shape.begin(), candidate.inputs[i].shape.end(), view.shape,
                        view.shape + view.ndim);
    }
    if (same) plan = &candidate;
  }
  if (!plan) return Diagnostic(ErrorCode::kBadArtifact, "the file changed while it was profiled", options.model);
  return write_text(options.html, profile_page(*plan, kernel_rows(profile, run.model.info(), one, all), all));
}

Status write_text(const std::string& path, const std::string& text) {
  return inputs::write_file(path, inputs::bytes_of(text));
}

}  // namespace tilewright::cli
