// SPDX-License-Identifier: Apache-2.0
// tilewright calibrate: measures this machine and saves the rates that kernels are chosen by.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "base/format.h"
#include "codegen/codegen.h"
#include "driver/cli/commands.h"
#include "ir/machine_model.h"
#include "ir/machine_profile.h"
#include "runtime/machine_peak.h"

namespace tilewright::driver {
namespace {

// Interference only ever slows a measurement down, so the best of several passes counts.
MachineProfile measure(const Target& target, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  MachineProfile out;
  out.cpu = target.mcpu, out.vector_bits = target.vector_bits;
  out.threads = std::max(1u, std::thread::hardware_concurrency());
  do {
    const runtime::ComputePeak compute = runtime::measure_compute_peak();
    out.float32_gflops = std::max(out.float32_gflops, compute.float32);
    out.float64_gflops = std::max(out.float64_gflops, compute.float64);
    out.int8_gops = std::max(out.int8_gops, compute.int8);
    out.gigahertz = std::max(out.gigahertz, compute.gigahertz);
    const runtime::MachinePeak peak = runtime::measure_peak(1);
    double* rates[] = {&out.l1_gbps, &out.l2_gbps, &out.l3_gbps, &out.dram_gbps};
    for (size_t i = 0; i < peak.levels.size(); ++i) *rates[i] = std::max(*rates[i], peak.levels[i].gbps);
    out.l1_bytes = static_cast<int64_t>(peak.levels[0].capacity);
    out.l2_bytes = static_cast<int64_t>(peak.levels[1].capacity);
    out.l3_bytes = static_cast<int64_t>(peak.levels[2].capacity);
    if (out.threads > 1) {
      const double us = runtime::measure_thread_us(static_cast<int>(out.threads));
      out.thread_us = out.thread_us == 0 ? us : std::min(out.thread_us, us);
    }
  } while (std::chrono::steady_clock::now() < end);
  // Caches and memory are shared: what is slower than the table of this very processor was other programs' part.
  // Kernels chosen for a busy machine's bandwidths lose up to a sixth.
  const MachineModel table = machine_model_of(target.mcpu);
  if (table.source == MachineModel::Source::kTable) {
    out.l1_gbps = std::max(out.l1_gbps, table.l1_gbps), out.l2_gbps = std::max(out.l2_gbps, table.l2_gbps);
    out.l3_gbps = std::max(out.l3_gbps, table.l3_gbps), out.dram_gbps = std::max(out.dram_gbps, table.dram_gbps);
  }
  return out;
}

struct CalibrateFlags {
  double seconds = 2;
  bool remove = false, quiet = false;
};

Result<int> calibrate(const CalibrateFlags& flags) {
  const Target target = TW_TRY(codegen::resolve_target(TW_TRY(parse_target("llvm"))));
  const std::string path = machine_profile_path(target.mcpu, target.vector_bits);
  if (flags.remove) {
    const bool was = !path.empty() && std::remove(path.c_str()) == 0;
    if (!flags.quiet) std::printf("%s\n", was ? format("{} is removed", path).c_str() : "there is none");
    return kExitOk;
  }
  const MachineProfile profile = measure(target, flags.seconds);
  TW_TRY_STATUS(store_machine_profile(profile));
  if (!flags.quiet) std::printf("%s%s\n", describe(profile).c_str(), format("kept in {}", path).c_str());
  return kExitOk;
}

}  // namespace

Command add_calibrate(CLI::App* app) {
  auto* cmd = app->add_subcommand("calibrate", "Measure this machine, for the cost model that chooses kernels");
  auto flags = std::make_shared<CalibrateFlags>();
  cmd->add_option("--seconds", flags->seconds, "How long to measure; at least one pass is made")
      ->check(CLI::Range(0.0, 60.0))
      ->capture_default_str();
  cmd->add_flag("--remove", flags->remove, "Forget what was measured");
  cmd->add_flag("--quiet,-q", flags->quiet, "Say nothing but errors");
  cmd->footer(
      "What is measured is kept in the user's cache folder (TILEWRIGHT_CACHE_DIR) under the processor's name, and\n"
      "compilations for this machine count with it. `tilewright targets` shows it beside what is in the table.");
  return [flags] {
    auto done = calibrate(*flags);
    return done.ok() ? *done : fail(done.error());
  };
}

}  // namespace tilewright::driver
