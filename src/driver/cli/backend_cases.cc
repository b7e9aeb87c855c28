// SPDX-License-Identifier: Apache-2.0
#include "driver/cli/backend_cases.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/read_whole.h"
#include "base/work_folder.h"
#include "codegen/backend.h"
#include "driver/cli/backend_program.h"
#include "driver/cli/commands.h"
#include "frontend/onnx/backend_case.h"
#include "frontend/onnx/proto.h"

namespace tilewright::driver {
namespace {
namespace fs = std::filesystem;

struct Outcome {
  std::string verdict;  // "passed", "failed", "unsupported"
  std::string detail;
};

Outcome from_diagnostic(const Diagnostic& d) {
  bool unsupported = d.code == ErrorCode::kUnsupportedOp || d.code == ErrorCode::kUnsupportedModel ||
                     d.code == ErrorCode::kFreeDimension;
  std::string text = (d.where.empty() ? "" : d.where + ": ") + d.message;
  std::replace(text.begin(), text.end(), '\n', ' ');
  return {unsupported ? "unsupported" : "failed", format("{} {}", error_name(d.code), text)};
}

// In the child process: compiles, runs each data set, and compares with the ONNX test runner's tolerances.
Outcome run_as_graph(const onnx::BackendCase& test, const BackendLimits& limits) {
  double worst = 0;
  std::vector<std::string> constants;  // inputs that are compiled in: shapes, axes, pads
  for (const auto& set : test.sets) {
    VerifyOptions options;
    options.layers = false;
    options.rtol = 1e-3;
    options.atol = 0;
    options.absolute_atol = 1e-7;
    for (const auto& input : set.inputs)
      if (!input.is_sequence && !input.absent) options.inputs[input.name] = input.tensor;
    for (const auto& output : set.outputs) {
      if (output.is_sequence || output.absent) return {"unsupported", "sequence or optional outputs"};
      options.expected[output.name] = output.tensor;
    }
    options.build.jobs = 1;
    options.build.target = limits.target;
    options.build.opt_level = limits.opt_level;
    options.run_with = limits.run_with;
    constants.clear();
    auto module = onnx::import_backend_case(test, set, &constants, limits.inputs == "constant");
    if (!module.ok()) return from_diagnostic(module.error());
    auto report = verify_module(*module, options);
    if (!report.ok()) return from_diagnostic(report.error());
    worst = std::max(worst, report->largest_output_error);
    if (report->largest_output_error > 1) return {"failed", report->outputs.empty() ? "" : report->outputs[0]};
  }
  std::string detail = format("{:.2g} of the tolerance", worst);
  for (size_t i = 0; i < constants.size(); ++i)
    detail += format("{}'{}'", i == 0 ? ", compiled in: " : ", ", constants[i]);
  return {"passed", detail};
}

// Leaves every size of the inputs, and what the model says about other values' types, to the run.
void free_sizes(onnx::Graph* graph) {
  for (auto& input : graph->inputs)
    if (input.type.shape)
      for (auto& size : *input.type.shape) size = {};
  for (auto& output : graph->outputs) output.type.shape.reset();
  graph->value_info.clear();
}

Outcome run_case(const fs::path& folder, const BackendLimits& limits) {
  auto loaded = onnx::load_backend_case(folder.string());
  if (!loaded.ok()) return from_diagnostic(loaded.error());
  // Strings are run-time values; they cannot be compiled in.
  const auto& graph_inputs = loaded->model.graph.inputs;
  const bool texts = std::any_of(graph_inputs.begin(), graph_inputs.end(),
                                 [](const auto& i) { return i.type.elem && i.type.elem->is_string(); });
  Outcome graph{"unsupported", "inputs are texts"};
  if (limits.inputs == "free") free_sizes(&loaded->model.graph);
  if (limits.without_compiler) {
    graph.detail = "without the compiler";
  } else if (limits.inputs == "free") {
    graph.detail = "sizes are free";
  } else if (!texts) {
    graph = run_as_graph(*loaded, limits);
  }
  auto target = parse_target(limits.target);
  const bool source = target.ok() && codegen::backend_of(*target).makes_source();
  if (graph.verdict == "passed" || source || !limits.run_with.empty()) return graph;
  double worst = 0;
  for (const auto& set : loaded->sets) {
    auto error = run_as_program(*loaded, set, limits.target, limits.opt_level, limits.without_compiler);
    if (!error.ok()) {
      Outcome program = from_diagnostic(error.error());
      // Report the graph's verdict unless only a program can run the model.
      return {program.verdict == "failed" || graph.verdict == "failed" ? "failed" : "unsupported",
              format("{}; as a VM program: {}", graph.detail, program.detail)};
    }
    worst = std::max(worst, *error);
  }
  if (worst > 1) return {"failed", format("as a VM program: {:.3g} of the tolerance", worst)};
  return {"passed", format("as a VM program, {:.2g} of the tolerance", worst)};
}

Outcome run_guarded(const fs::path& folder, const BackendLimits& limits) {
  // The child's files go here, and are removed even if the process is killed.
  auto place = WorkFolder::temporary("tilewright-case");
  if (!place.ok()) return from_diagnostic(place.error());
  int channel[2];
  if (pipe(channel) != 0) return {"failed", "no pipe"};
  std::fflush(stdout);
  pid_t child = fork();
  if (child < 0) return {"failed", "no process"};
  if (child == 0) {
    close(channel[0]);
    setenv("TMPDIR", place->path().c_str(), 1);
    rlimit memory{static_cast<rlim_t>(limits.megabytes) << 20, static_cast<rlim_t>(limits.megabytes) << 20};
    setrlimit(RLIMIT_AS, &memory);
    rlimit core{0, 0};
    setrlimit(RLIMIT_CORE, &core);
    Outcome o;
    try {
      o = run_case(folder, limits);
    } catch (const std::exception& e) {
      o = {"failed", format("error inside: {}", e.what())};
    }
    std::string line = o.verdict + "\n" + o.detail;
    ssize_t ignored = write(channel[1], line.data(), line.size());
    (void)ignored;
    _exit(0);
  }
  close(channel[1]);
  std::string text;
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(limits.seconds);
  bool late = false;
  for (char buffer[4096];;) {
    auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd waiting{channel[0], POLLIN, 0};
    if (left <= 0 || poll(&waiting, 1, static_cast<int>(left)) == 0) {
      kill(child, SIGKILL);
      late = true;
      break;
    }
    ssize_t n = ::read(channel[0], buffer, sizeof buffer);
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  close(channel[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (late)
    return from_diagnostic(Diagnostic(ErrorCode::kTimeLimit, format("the case took more than {} s", limits.seconds)));
  if (WIFSIGNALED(status)) return {"failed", format("ended by signal {}", strsignal(WTERMSIG(status)))};
  size_t newline = text.find('\n');
  if (newline == std::string::npos) return {"failed", "no result"};
  return {text.substr(0, newline), text.substr(newline + 1)};
}

// Folders with a model.onnx, in order.
Result<std::vector<fs::path>> find_cases(const std::vector<std::string>& folders) {
  std::vector<fs::path> out;
  for (const auto& folder : folders) {
    const size_t before = out.size();
    if (fs::exists(fs::path(folder) / "model.onnx")) {
      out.push_back(folder);
      continue;
    }
    std::vector<fs::path> inner;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored))
      if (fs::exists(entry.path() / "model.onnx")) inner.push_back(entry.path());
    std::sort(inner.begin(), inner.end());
    out.insert(out.end(), inner.begin(), inner.end());
    if (out.size() == before)
      return Diagnostic(
          ErrorCode::kFileNotFound, "there is no test case here", folder,
          "a case is a folder with a model.onnx and test_data_set_0/input_0.pb, output_0.pb, ...; name it "
          "or the folder it is in");
  }
  return out;
}

}  // namespace

int run_backend_cases(const std::vector<std::string>& folders, const BackendLimits& limits, bool json) {
  int passed = 0, failed = 0, unsupported = 0;
  auto j = nlohmann::json::array();
  auto cases = find_cases(folders);
  if (!cases.ok()) return fail(cases.error());
  for (const auto& folder : *cases) {
    Outcome o = run_guarded(folder, limits);
    (o.verdict == "passed" ? passed : o.verdict == "failed" ? failed : unsupported)++;
    if (json)
      j.push_back({{"case", folder.filename().string()}, {"verdict", o.verdict}, {"detail", o.detail}});
    else
      std::printf("%s: %s%s%s\n", folder.filename().c_str(), o.verdict.c_str(), o.detail.empty() ? "" : ": ",
                  o.detail.c_str());
  }
  if (json)
    std::printf("%s\n",
                nlohmann::json{{"cases", j}, {"passed", passed}, {"failed", failed}, {"unsupported", unsupported}}
                    .dump(2)
                    .c_str());
  else
    std::printf("%d passed, %d failed, %d unsupported\n", passed, failed, unsupported);
  return failed == 0 ? kExitOk : kExitMismatch;
}

Status load_expected(const std::string& folder, VerifyOptions* options) {
  std::error_code ignored;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".pb") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  if (files.empty())
    return Diagnostic(ErrorCode::kFileNotFound, format("'{}' has no input_*.pb or output_*.pb", folder));
  for (const auto& path : files) {
    auto text = std::make_shared<const std::string>(TW_TRY(read_whole(path.string())));
    auto tensor = onnx::read_tensor({std::as_bytes(std::span(*text)), text});
    if (!tensor.ok()) return std::move(tensor).error().at(path.string());
    (path.filename().string().rfind("input", 0) == 0 ? options->inputs : options->expected)[tensor->name] =
        tensor->data;
  }
  return Ok{};
}

}  // namespace tilewright::driver
