// SPDX-License-Identifier: Apache-2.0
// Lists what this build supports: operators, passes, targets.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/format.h"
#include "base/work_folder.h"
#include "codegen/backend.h"
#include "driver/cli/commands.h"
#include "driver/target_list.h"
#include "frontend/onnx/file_map.h"
#include "frontend/onnx/import.h"
#include "frontend/torch/import.h"
#include "ir/machine_profile.h"
#include "lower/compute.h"
#include "lower/strategy.h"
#include "relay/op.h"
#include "relay/passes/table.h"
#include "relay/text.h"
#include "relay/verifier.h"

namespace tilewright::driver {
namespace {

// How an operator is lowered: "computed" (a compute definition), the names of its kernels, or "-" (interpreter only).
std::string lowering_of(const relay::OpDef& op) {
  if (lower::find_compute(op.name)) return "computed";
  if (op.expand) return "composed";
  std::string out;
  for (const auto* i : lower::implementations_of(op.name)) out += (out.empty() ? "" : ", ") + std::string(i->name);
  return out.empty() ? "-" : out;
}

// Data of tests/conformance/write_operators.py about an ONNX operator.
struct OnnxOperator {
  std::string_view domain, op, dtypes, tested;
};
constexpr OnnxOperator kOnnxOperators[] = {
#include "driver/cli/onnx_operators.inc"
};
OnnxOperator tested_operator(const onnx::SupportedOp& op) {
  for (const OnnxOperator& known : kOnnxOperators)
    if (known.domain == op.domain && known.op == op.op) return known;
  return {op.domain, op.op, "", ""};
}

void print_onnx_operators() {
  std::printf("%-40s %-6s %-12s %s\n", "operator", "opset", "tested", "dtypes");
  for (const auto& op : onnx::supported_ops()) {
    const OnnxOperator known = tested_operator(op);
    const std::string name = (op.domain.empty() ? "" : op.domain + ".") + op.op, tested(known.tested),
                      dtypes(known.dtypes);
    std::printf("%-40s %-6d %-12s %s\n", name.c_str(), op.since, tested.empty() ? "-" : tested.c_str(),
                dtypes.empty() ? "-" : dtypes.c_str());
  }
}

// Runs passes on a module in a file, such as one from a failed compilation's --dump-ir folder.
Status run_on_text(const Pipeline& passes, const std::string& path, const std::string& target,
                   const std::string& output) {
  PassContext context;
  context.opt_level = 9;  // requested explicitly, so run at any level
  context.target = TW_TRY(codegen::resolve_target(TW_TRY(parse_target(target))));
  const onnx::SharedBytes file = TW_TRY(onnx::map_file(path));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  relay::Module module = TW_TRY(relay::parse_module(text, {}, {.origin = path, .zero_missing_constants = true}));
  TW_TRY_STATUS(relay::verify_module(module));
  const std::string made =
      relay::print_module(TW_TRY(relay::run_passes(module, passes, context)), {.metadata = !output.empty()}).text;
  if (output.empty()) {
    std::fputs(made.c_str(), stdout);
    return Ok{};
  }
  return write_whole(output, made);
}

}  // namespace

Command add_ops(CLI::App* app) {
  auto* cmd = app->add_subcommand(
      "ops", "List the operators: Relay ones with their kernels, or the ONNX or PyTorch ones that import");
  auto onnx = std::make_shared<bool>(false), json = std::make_shared<bool>(false), aten = std::make_shared<bool>(false);
  cmd->add_flag("--onnx", *onnx, "The ONNX operators that can be imported");
  cmd->add_flag("--torch", *aten, "The operators of PyTorch that can be imported")->excludes("--onnx");
  cmd->add_flag("--json", *json, "As JSON");
  return [=] {
    auto j = nlohmann::json::array();
    if (*onnx) {
      if (!*json) print_onnx_operators();
      for (const auto& op : onnx::supported_ops()) {
        const OnnxOperator known = tested_operator(op);
        j.push_back({{"domain", op.domain},
                     {"op", op.op},
                     {"since", op.since},
                     {"dtypes", std::string(known.dtypes)},
                     {"tested", std::string(known.tested)}});
      }
    } else if (*aten) {
      for (const std::string& op : torch::supported_ops()) {
        if (*json)
          j.push_back({{"op", op}});
        else
          std::printf("%s\n", op.c_str());
      }
    } else {
      for (const auto& op : relay::all_ops()) {
        if (*json)
          j.push_back({{"name", op.name}, {"inputs", op.num_inputs}, {"lowering", lowering_of(op)}, {"doc", op.doc}});
        else
          std::printf("%-40s %-28s %s\n", op.name, lowering_of(op).c_str(),
                      std::string(op.doc).substr(0, std::string(op.doc).find('\n')).c_str());
      }
    }
    if (*json) std::printf("%s\n", j.dump(2).c_str());
    return static_cast<int>(kExitOk);
  };
}

Command add_passes(CLI::App* app) {
  auto* cmd = app->add_subcommand(
      "passes", "List the passes: name, level from which they run, what they do; or run some on a module's text");
  struct Options {
    bool json = false;
    std::string run, file, output, target = "llvm";
  };
  auto o = std::make_shared<Options>();
  cmd->add_flag("--json", o->json, "As JSON");
  cmd->add_option("--run", o->run,
                  "Run these passes, in this order, on the module in FILE and print what they make of it")
      ->type_name("PASS,...");
  cmd->add_option("file", o->file,
                  "A module as text: what compile --dump-ir wrote. Constants that it leaves out are zeros")
      ->type_name("FILE");
  cmd->add_option("-o,--output", o->output, "Write the module there")->type_name("FILE");
  cmd->add_option("--target", o->target, "What is compiled for");
  return [=] {
    if (o->run.empty() != o->file.empty())
      return fail(Diagnostic(ErrorCode::kInvalidArgument, "--run and a file belong together", "passes",
                             "tilewright passes --run FuseOps module.txt"));
    if (!o->run.empty()) {
      Pipeline passes;
      std::stringstream names(o->run);
      for (std::string name; std::getline(names, name, ',');) passes.push_back(name);
      Status done = run_on_text(passes, o->file, o->target, o->output);
      return done.ok() ? static_cast<int>(kExitOk) : fail(done.error());
    }
    auto j = nlohmann::json::array();
    for (const auto& pass : relay::all_passes()) {
      if (o->json)
        j.push_back({{"name", pass.info.name}, {"opt_level", pass.info.opt_level}, {"doc", pass.info.doc}});
      else
        std::printf("%-28s %d  %s\n", pass.info.name.c_str(), pass.info.opt_level, pass.info.doc.c_str());
    }
    if (o->json) std::printf("%s\n", j.dump(2).c_str());
    return static_cast<int>(kExitOk);
  };
}

namespace {

// The rates that kernels are chosen by, each with its source.
std::string rates_text(const Target& target) {
  const MachineModel &used = target.machine, table = machine_model_of(target.mcpu);
  const char* before = table.source == MachineModel::Source::kTable ? "table" : "assumed";
  const bool measured = used.source == MachineModel::Source::kMeasured;
  std::string out = format("{:<22} {:>10} {:>10}", "one core", measured ? "measured" : before, measured ? before : "");
  auto row = [&](const char* name, double now, double then) {
    out += format("\n  {:<20} {:>10.0f}", name, now);
    if (measured) out += format(" {:>10.0f}", then);
  };
  row("float32 GFLOP/s", used.gflops, table.gflops);
  row("L1 GB/s", used.l1_gbps, table.l1_gbps), row("L2 GB/s", used.l2_gbps, table.l2_gbps);
  row("L3 GB/s", used.l3_gbps, table.l3_gbps), row("memory GB/s", used.dram_gbps, table.dram_gbps);
  row("L1 KiB", static_cast<double>(used.l1_bytes >> 10), static_cast<double>(table.l1_bytes >> 10));
  row("L2 KiB", static_cast<double>(used.l2_bytes >> 10), static_cast<double>(table.l2_bytes >> 10));
  row("L3 KiB", static_cast<double>(used.l3_bytes >> 10), static_cast<double>(table.l3_bytes >> 10));
  auto profile = stored_machine_profile(target.mcpu, target.vector_bits);
  if (!profile.ok()) out += format("\nnot used: {}", profile.error().str());
  if (measured && profile.ok() && *profile) out += "\n" + describe(**profile);
  return out;
}

}  // namespace

Command add_targets(CLI::App* app) {
  auto* cmd = app->add_subcommand("targets", "Show what this machine is, and resolve a target string");
  auto text = std::make_shared<std::string>("llvm");
  cmd->add_option("target", *text, "A target string; default: this machine");
  return [=] {
    auto list = targets_of(*text);
    if (!list.ok()) return fail(list.error());
    for (const auto& [one, target] : *list) {
      std::printf("%s\nvectors: %d bits, %d registers\n%s\nneeds:", target.str().c_str(), target.vector_bits,
                  target.vector_registers, describe(target.machine).c_str());
      for (const auto& f : target.cpu_features) std::printf(" %s", f.c_str());
      std::printf("\n%s%s", rates_text(target).c_str(), list->size() > 1 ? "\n" : "");
    }
    for (const auto& b : codegen::backends()) std::printf("\nkind %s: %s", b.kind, b.makes);
    std::printf(
        "\nportable choices: \"llvm -mcpu=x86-64-v2\" (SSE4.2), \"llvm -mcpu=x86-64-v3\" (AVX2), \"llvm "
        "-mcpu=x86-64-v4\" (AVX-512), \"portable\" (all three in one library)\n");
    return static_cast<int>(kExitOk);
  };
}

}  // namespace tilewright::driver
