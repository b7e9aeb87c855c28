// SPDX-License-Identifier: Apache-2.0
#include "codegen/source/c_processors.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "base/format.h"

namespace tilewright::codegen {
namespace {

constexpr const char* kSmallCpus[] = {"cortex-m0",  "cortex-m0plus", "cortex-m3",  "cortex-m4", "cortex-m7",
                                      "cortex-m23", "cortex-m33",    "cortex-m55", "cortex-m85"};

// Levels are the coarse ones that every C compiler knows by name.
struct VectorLevel {
  const char* option;
  int bits, registers;
  std::span<const char* const> features;
  std::span<const char* const> cpus;
};
constexpr const char* kFeatures2[] = {"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt"};
constexpr const char* kFeatures3[] = {"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "movbe", "avx",
                                      "f16c", "fma",   "avx2",   "bmi",    "bmi2",   "lzcnt"};
constexpr const char* kFeatures4[] = {"sse3",  "ssse3",   "sse4.1",   "sse4.2",   "popcnt",   "movbe",
                                      "avx",   "f16c",    "fma",      "avx2",     "bmi",      "bmi2",
                                      "lzcnt", "avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"};
constexpr const char* kNeon[] = {"neon"};
constexpr const char* kCpus2[] = {"x86-64-v2", "nehalem", "westmere", "sandybridge"};
constexpr const char* kCpus3[] = {"x86-64-v3", "haswell", "broadwell", "skylake",
                                  "alderlake", "znver1",  "znver2",    "znver3"};
constexpr const char* kCpus4[] = {"x86-64-v4",      "skylake-avx512", "cascadelake", "icelake-server",
                                  "sapphirerapids", "emeraldrapids",  "znver4",      "znver5"};
constexpr const char* kCpusNeon[] = {"cortex-a53", "cortex-a55",  "cortex-a57", "cortex-a72",
                                     "cortex-a73", "cortex-a75",  "cortex-a76", "cortex-a77",
                                     "cortex-a78", "neoverse-n1", "neoverse-n2"};
constexpr VectorLevel kLevels[] = {{"-march=x86-64-v2", 128, 16, kFeatures2, kCpus2},
                                   {"-march=x86-64-v3", 256, 16, kFeatures3, kCpus3},
                                   {"-march=x86-64-v4", 512, 32, kFeatures4, kCpus4},
                                   {"-march=armv8-a", 128, 32, kNeon, kCpusNeon}};

const VectorLevel* level_of(const std::string& mcpu) {
  for (const VectorLevel& level : kLevels)
    if (std::find(level.cpus.begin(), level.cpus.end(), mcpu) != level.cpus.end()) return &level;
  return nullptr;
}

}  // namespace

bool is_small_c(const Target& target) {
  return std::find(std::begin(kSmallCpus), std::end(kSmallCpus), target.mcpu) != std::end(kSmallCpus);
}

bool is_vector_c(const Target& target) { return target.kind == "c" && level_of(target.mcpu) != nullptr; }

Result<Target> resolve_c_processor(Target target) {
  if (is_small_c(target)) {
    target.vector_bits = 32, target.vector_registers = 13;
    target.machine.source = MachineModel::Source::kTable, target.machine.family = "a microcontroller";
    target.machine.gflops = 0.1, target.machine.l1_gbps = 0.3, target.machine.l2_gbps = 0.3;
    target.machine.l3_gbps = 0.3, target.machine.dram_gbps = 0.3;
    target.machine.fma_units = 1, target.machine.unit_bits = 32;
    return target;
  }
  if (const VectorLevel* level = level_of(target.mcpu)) {
    target.vector_bits = level->bits, target.vector_registers = level->registers;
    target.cpu_features.assign(level->features.begin(), level->features.end());
    target.machine = machine_model_of(target.mcpu);
    return target;
  }
  std::string known;
  for (const VectorLevel& level : kLevels)
    for (const char* cpu : level.cpus) known += format("{}, ", cpu);
  return Diagnostic(ErrorCode::kUnknownTarget, format("the target c knows no processor '{}'", target.mcpu), {},
                    format("leave -mcpu out for C that runs anywhere; with vectors it knows {}and without cortex-m0, "
                           "m0plus, m3, m4, m7, m23, m33, m55, m85",
                           known));
}

std::string c_machine_option(const std::string& mcpu) {
  const VectorLevel* level = level_of(mcpu);
  return level == nullptr ? "" : level->option;
}

std::vector<std::string> c_compiler_options(const Target& target) {
  if (!is_vector_c(target)) return {"-std=c99"};
  // GCC notes that passing vectors wider than the processor's has changed since version 4.5.
  return {"-std=gnu99", c_machine_option(target.mcpu), "-Wno-psabi"};
}

}  // namespace tilewright::codegen
