// SPDX-License-Identifier: Apache-2.0
// The table that a native artifact exports under kArtifactSymbol: written by code generation, read by the loader.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/formats/elf.h"
#include "base/formats/plan.h"
#include "base/result.h"

namespace tilewright {

inline constexpr char kArtifactMagic[8] = {'T', 'I', 'L', 'E', 'W', 'R', 'T', '1'};
inline constexpr uint32_t kArtifactAbi = 1;
inline constexpr const char* kArtifactSymbol = "tw_artifact_v1";
inline constexpr const char* kParamsSymbol = "tw_params";  // start of the read-only, page-aligned weights
inline constexpr const char* kParamsSection = ".tw_params";
inline constexpr const char* kFarParamsSection =
    ".lrodata.tw_params";                                           // its section in x86-64 objects (psABI: large data)
inline constexpr const char* kPlanSymbol = "tw_plan";               // start of the plan's bytes
inline constexpr const char* kArenaBytesSymbol = "tw_arena_bytes";  // uint64_t: size of tw_run's arena
inline constexpr const char* kVariantsSymbol = "tw_num_variants";   // uint64_t
inline constexpr const char* kRunVariantSymbol = "tw_run_variant";  // tw_run after a uint64_t: the shape variant
// The run functions if weights are a separate file: they take its address as last argument.
inline constexpr const char* kRunWithWeightsSymbol = "tw_run_with_weights";
inline constexpr const char* kRunVariantWithWeightsSymbol = "tw_run_variant_with_weights";
inline constexpr const char* kImportsSymbol =
    "__tvm_dev_mblob";  // modules linked in beside the plan: u64 length, import tree
inline constexpr const char* kRunSymbol =
    "tw_run";  // int tw_run(void* const* inputs, void* const* outputs, void* arena)

// A system library's constructor passes these prefixes plus the model's name to tw_system_lib_register
// (tilewright/c_api.h), for the table and for tw_run.
inline constexpr const char* kSystemLibRegister = "tw_system_lib_register";
inline constexpr const char* kSystemLibModel = "tw_artifact_v1/";
inline constexpr const char* kSystemLibRun = "tw_run/";

// Plan metadata on how to run the library: "aot" by its generated entry; absent: step by step.
inline constexpr const char* kExecutorKey = "executor";
inline constexpr const char* kAotExecutor = "aot";

// The signature of all kernels: the arguments' addresses, and the caller's share of the work.
using KernelFunction = void (*)(void* const* buffers, int64_t tid, int64_t nthreads);

using EntryFunction = int (*)(void* const* inputs, void* const* outputs, void* arena);  // tw_run
using EntryWithWeights = int (*)(void* const* inputs, void* const* outputs, void* arena, const void* weights);

// One instruction set of a library with several: its own
// kernels and plan, with the library's common weights.
struct InstructionSet {
  const char* name;      // its name in TILEWRIGHT_ISA: LLVM's name of the processor ("x86-64-v3")
  const char* features;  // required features, comma-separated
  const void* plan;
  uint64_t plan_bytes;
  uint64_t plan_hash;
  const KernelFunction* kernels;
  uint64_t kernel_count;
  void* entry;  // EntryFunction or EntryWithWeights: tw_run for this instruction set
};

// Selects one of a library's instruction sets.
inline constexpr const char* kInstructionSetVariable = "TILEWRIGHT_ISA";

struct ArtifactTable {
  char magic[8];
  uint32_t abi;
  uint32_t table_bytes;  // sizeof(ArtifactTable) of the writer
  const void* plan;
  uint64_t plan_bytes;
  const void* params;  // null if the plan names a weights file
  uint64_t params_bytes;
  const KernelFunction* kernels;
  uint64_t kernel_count;
  uint64_t plan_hash;  // of the plan's bytes (base/hash.h)
  // All instruction sets if there are several, best first; the first is the one above.
  const InstructionSet* sets;
  uint64_t set_count;
};
inline constexpr uint64_t kMostInstructionSets = 16;

// The checks before the dynamic linker sees a library: its seal (including
// weights if `params_too`), its ELF structure, and the table's version. The
// library may be for another machine. Errors: BadArtifact, ArtifactVersion.
Result<ElfImage> check_artifact_file(std::span<const std::byte> file, bool params_too);

// Checks a table's magic number and version. Errors: BadArtifact, ArtifactVersion.
Status check_artifact_table(const ArtifactTable& table);

// Checks that a library contains what its plan needs. Error: BadArtifact.
Status check_artifact_plan(const plan::Plan& plan, uint64_t kernels, uint64_t params_bytes);

// The content of a library's file, read without loading it; views of the file's bytes.
struct ArtifactContents {
  struct Set {
    std::string_view name;
    uint64_t kernels = 0;
    std::span<const std::byte> plan;
  };
  unsigned machine = 0;  // as ElfImage's
  uint64_t kernels = 0;
  std::span<const std::byte> plan, params;
  std::vector<Set> sets;     // with several instruction sets: all, best first
  std::string_view imports;  // modules linked in beside the plan
};
// Errors: those of check_artifact_file with the weights.
Result<ArtifactContents> read_artifact_file(std::span<const std::byte> file);

}  // namespace tilewright
