// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "driver/cli/backend_cases.h"
#include "driver/cli/commands.h"
#include "driver/verify.h"
#include "driver/vm.h"
#include "driver/vm_verify.h"

namespace tilewright::driver {
namespace {

struct VerifyFlags : CompileFlags {
  std::vector<std::string> paths;
  std::string against = "reference";
  double rtol = 1e-3, atol = 1e-4;
  uint64_t seed = 0;
  bool outputs_only = false, json = false;
  BackendLimits limits;
};

void print(const VerifyReport& report, const std::string& model) {
  for (const auto& line : report.outputs) std::printf("%s\n", line.c_str());
  size_t shown = 0;
  for (const auto& m : report.mismatches) {
    if (shown++ == 10) {
      std::printf("... and %zu more kernels\n", report.mismatches.size() - 10);
      break;
    }
    std::printf("%s kernel %s (%s)%s%s: element (%s) is %.9g, the reference says %.9g: %.3g of the budget\n",
                shown == 1 ? "first wrong:" : "then:", m.kernel.c_str(), m.step.c_str(),
                m.source.empty() ? "" : " of node ", m.source.c_str(), shape_str(m.at).c_str(), m.ours, m.reference,
                m.largest);
  }
  if (report.ties > 0)
    std::printf("%zu elements of kernels' results are whole numbers on the other side of a tie%s\n", report.ties,
                report.steps_add_up ? ", which is all that the outputs differ by: every kernel and pass agrees" : "");
  if (report.passes_tie)
    std::printf(
        "the optimised graph's outputs are as far from the model's as its own ties reach: no pass is at fault\n");
  if (!report.pass_to_blame.empty())
    std::printf("the optimised graph already differs: pass %s\n", report.pass_to_blame.c_str());
  std::printf("%s: %s (%zu kernels checked)\n", model.c_str(), report.ok() ? "ok" : "MISMATCH", report.steps);
}

int verify_model(const VerifyFlags& flags) {
  auto build = flags.options();
  if (!build.ok()) return fail(build.error());
  VerifyOptions options;
  options.build = *build;
  options.rtol = flags.rtol;
  options.atol = flags.atol;
  options.seed = flags.seed;
  options.layers = !flags.outputs_only;
  options.run_with = flags.limits.run_with;
  if (flags.against != "reference") {
    auto loaded = load_expected(flags.against, &options);
    if (!loaded.ok()) return fail(loaded.error());
  }
  ProgressLine line(flags.quiet || flags.json);
  options.build.progress = line.callback();
  auto report = verify_onnx(flags.paths[0], options);
  // Models that cannot be a graph run as a VM program.
  if (!report.ok())
    if (auto program = program_if_needed(flags.paths[0], options.build); program.ok() && *program)
      report = verify_program(std::move(**program), flags.paths[0], options);
  line.clear();
  if (!report.ok()) return fail(std::move(report).error().at(flags.paths[0]));
  if (flags.json) {
    nlohmann::json j{{"model", flags.paths[0]},
                     {"ok", report->ok()},
                     {"kernels", report->steps},
                     {"outputs", report->outputs},
                     {"pass_to_blame", report->pass_to_blame},
                     {"ties", report->ties},
                     {"passes_tie", report->passes_tie},
                     {"steps_add_up", report->steps_add_up}};
    j["mismatches"] = nlohmann::json::array();
    for (const auto& m : report->mismatches)
      j["mismatches"].push_back({{"kernel", m.kernel},
                                 {"step", m.step},
                                 {"source", m.source},
                                 {"ours", m.ours},
                                 {"reference", m.reference},
                                 {"at", m.at}});
    std::printf("%s\n", j.dump(2).c_str());
  } else {
    print(*report, flags.paths[0]);
  }
  return report->ok() ? kExitOk : kExitMismatch;
}

}  // namespace

Command add_verify(CLI::App* app) {
  auto* cmd = app->add_subcommand(
      "verify", "Check compiled code against the reference interpreter, or run ONNX backend-test folders");
  auto flags = std::make_shared<VerifyFlags>();
  cmd->add_option("paths", flags->paths,
                  "A model (ONNX, or a Relay module), or folders in the ONNX backend-test layout")
      ->required();
  cmd->add_option("--against", flags->against,
                  "'reference' (the interpreter), or a folder with input_*.pb and output_*.pb");
  flags->add_to(cmd);
  cmd->add_option("--rtol", flags->rtol, "Relative tolerance; default 1e-3");
  cmd->add_option("--atol", flags->atol, "Absolute tolerance over each tensor's largest magnitude; default 1e-4");
  cmd->add_option("--seed", flags->seed, "Of the random inputs");
  cmd->add_flag("--outputs-only", flags->outputs_only, "Compare the outputs, not every kernel");
  cmd->add_option("--run-with", flags->limits.run_with,
                  "Command that runs libraries of another processor as `tilewright run` does, such as 'qemu-aarch64 -L "
                  "/usr/aarch64-linux-gnu build-aarch64/tilewright'; the outputs are compared");
  cmd->add_option("--case-inputs", flags->limits.inputs,
                  "Of folders: inputs as the model 'given's them, with 'free' sizes, or 'constant', compiled in")
      ->check(CLI::IsMember({"given", "free", "constant"}));
  cmd->add_flag("--without-compiler", flags->limits.without_compiler,
                "Of folders: as programs on a machine without the compiler, where what has no kernels is interpreted");
  cmd->add_option("--time-limit", flags->limits.seconds, "Seconds each folder's process may take; default 60");
  cmd->add_option("--memory-limit", flags->limits.megabytes,
                  "MiB of address space each folder's process may take; default 8192");
  cmd->add_flag("--json", flags->json, "Print the result as JSON");
  return [flags] {
    flags->limits.target = flags->target;
    flags->limits.opt_level = flags->opt_level;
    if (std::filesystem::is_directory(flags->paths[0]))
      return run_backend_cases(flags->paths, flags->limits, flags->json);
    if (flags->paths.size() > 1)
      return fail(
          Diagnostic(ErrorCode::kInvalidArgument, "several paths must be folders", {}, "verify one model at a time"));
    return verify_model(*flags);
  };
}

}  // namespace tilewright::driver
