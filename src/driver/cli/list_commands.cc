// SPDX-License-Identifier: Apache-2.0
// What this build knows: operators, passes, targets.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "base/format.h"
#include "codegen/codegen.h"
#include "driver/cli/commands.h"
#include "frontend/onnx/import.h"
#include "lower/compute.h"
#include "lower/strategy.h"
#include "relay/op.h"
#include "relay/passes/table.h"

namespace tilewright::driver {
namespace {

// How an operator is compiled: "computed" (a compute definition), the names of its kernels, or "-" (interpreter only).
std::string lowering_of(const relay::OpDef& op) {
  if (lower::find_compute(op.name)) return "computed";
  std::string out;
  for (const auto* i : lower::implementations_of(op.name)) out += (out.empty() ? "" : ", ") + std::string(i->name);
  return out.empty() ? "-" : out;
}

}  // namespace

Command add_ops(CLI::App* app) {
  auto* cmd = app->add_subcommand("ops", "List the operators: Relay ones with their kernels, or the ONNX ones that import");
  auto onnx = std::make_shared<bool>(false), json = std::make_shared<bool>(false);
  cmd->add_flag("--onnx", *onnx, "The ONNX operators that can be imported");
  cmd->add_flag("--json", *json, "As JSON");
  return [=] {
    auto j = nlohmann::json::array();
    if (*onnx) {
      for (const auto& op : onnx::supported_ops()) {
        if (*json)
          j.push_back({{"domain", op.domain}, {"op", op.op}, {"since", op.since}});
        else
          std::printf("%s%s%s %d\n", op.domain.c_str(), op.domain.empty() ? "" : ".", op.op.c_str(), op.since);
      }
    } else {
      for (const auto& op : relay::all_ops()) {
        if (*json)
          j.push_back({{"name", op.name}, {"inputs", op.num_inputs}, {"lowering", lowering_of(op)}, {"doc", op.doc}});
        else
          std::printf("%-40s %-28s %s\n", op.name, lowering_of(op).c_str(), std::string(op.doc).substr(0, std::string(op.doc).find('\n')).c_str());
      }
    }
    if (*json) std::printf("%s\n", j.dump(2).c_str());
    return static_cast<int>(kExitOk);
  };
}

Command add_passes(CLI::App* app) {
  auto* cmd = app->add_subcommand("passes", "List the passes: name, level from which they run, what they do");
  auto json = std::make_shared<bool>(false);
  cmd->add_flag("--json", *json, "As JSON");
  return [=] {
    auto j = nlohmann::json::array();
    for (const auto& pass : relay::all_passes()) {
      if (*json)
        j.push_back({{"name", pass.info.name}, {"opt_level", pass.info.opt_level}, {"doc", pass.info.doc}});
      else
        std::printf("%-28s %d  %s\n", pass.info.name.c_str(), pass.info.opt_level, pass.info.doc.c_str());
    }
    if (*json) std::printf("%s\n", j.dump(2).c_str());
    return static_cast<int>(kExitOk);
  };
}

Command add_targets(CLI::App* app) {
  auto* cmd = app->add_subcommand("targets", "Show what this machine is, and resolve a target string");
  auto text = std::make_shared<std::string>("llvm");
  cmd->add_option("target", *text, "A target string; default: this machine");
  return [=] {
    auto parsed = parse_target(*text);
    if (!parsed.ok()) return fail(parsed.error());
    auto target = codegen::resolve_target(*parsed);
    if (!target.ok()) return fail(target.error());
    std::printf("%s\nvectors: %d bits, %d registers\nneeds:", target->str().c_str(), target->vector_bits, target->vector_registers);
    for (const auto& f : target->cpu_features) std::printf(" %s", f.c_str());
    std::printf("\nportable choices: \"llvm -mcpu=x86-64-v2\" (SSE4.2), \"llvm -mcpu=x86-64-v3\" (AVX2), \"llvm -mcpu=x86-64-v4\" (AVX-512)\n");
    return static_cast<int>(kExitOk);
  };
}

}  // namespace tilewright::driver
