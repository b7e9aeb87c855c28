// SPDX-License-Identifier: Apache-2.0
// The table a native artifact exports under kArtifactSymbol. Code generation writes it, the loader reads it.
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
    ".lrodata.tw_params";                                           // the same in x86-64 objects (psABI: large data)
inline constexpr const char* kPlanSymbol = "tw_plan";               // start of the plan's bytes
inline constexpr const char* kArenaBytesSymbol = "tw_arena_bytes";  // uint64_t: what tw_run needs as its arena
inline constexpr const char* kVariantsSymbol = "tw_num_variants";   // uint64_t
inline constexpr const char* kRunVariantSymbol = "tw_run_variant";  // as tw_run, after a uint64_t: which shape variant
// In place of those two where the weights are a file of their own: they take its address as a last argument.
inline constexpr const char* kRunWithWeightsSymbol = "tw_run_with_weights";
inline constexpr const char* kRunVariantWithWeightsSymbol = "tw_run_variant_with_weights";
inline constexpr const char* kImportsSymbol =
    "__tvm_dev_mblob";  // modules linked in beside the plan: u64 length, import tree
inline constexpr const char* kRunSymbol =
    "tw_run";  // int tw_run(void* const* inputs, void* const* outputs, void* arena)

// A system library's constructor calls tw_system_lib_register (tilewright/c_api.h) with these prefixes before the
// model's name: the table, and tw_run.
inline constexpr const char* kSystemLibRegister = "tw_system_lib_register";
inline constexpr const char* kSystemLibModel = "tw_artifact_v1/";
inline constexpr const char* kSystemLibRun = "tw_run/";

// Metadata of the plan that says how the library wants to be run: "aot" by its generated entry; absent: step by step.
inline constexpr const char* kExecutorKey = "executor";
inline constexpr const char* kAotExecutor = "aot";

// Every kernel has this signature: its arguments' addresses, and which share of the work is the caller's.
using KernelFunction = void (*)(void* const* buffers, int64_t tid, int64_t nthreads);

using EntryFunction = int (*)(void* const* inputs, void* const* outputs, void* arena);  // tw_run
using EntryWithWeights = int (*)(void* const* inputs, void* const* outputs, void* arena, const void* weights);

// The model for one instruction set, of a library that has several: kernels and a plan of its own; the weights are the
// library's.
struct InstructionSet {
  const char* name;      // what TILEWRIGHT_ISA calls it: LLVM's name of the processor ("x86-64-v3")
  const char* features;  // what the kernels need, separated by commas
  const void* plan;
  uint64_t plan_bytes;
  uint64_t plan_hash;
  const KernelFunction* kernels;
  uint64_t kernel_count;
  void* entry;  // EntryFunction or EntryWithWeights: tw_run for this one
};

// Forces one of a library's instruction sets.
inline constexpr const char* kInstructionSetVariable = "TILEWRIGHT_ISA";

struct ArtifactTable {
  char magic[8];
  uint32_t abi;
  uint32_t table_bytes;  // sizeof(ArtifactTable) of the writer
  const void* plan;
  uint64_t plan_bytes;
  const void* params;  // null, and no bytes, where the plan names a file of weights
  uint64_t params_bytes;
  const KernelFunction* kernels;
  uint64_t kernel_count;
  uint64_t plan_hash;  // of the plan's bytes (base/hash.h)
  // Where the library has several instruction sets: all of them, the best first, which is also the one above.
  const InstructionSet* sets;
  uint64_t set_count;
};
inline constexpr uint64_t kMostInstructionSets = 16;

// The checks before the dynamic linker sees a library: its seal (with the weights when `params_too`), its ELF
// structure, and that its table is one this version reads. The library may be for another machine. Errors: BadArtifact,
// ArtifactVersion.
Result<ElfImage> check_artifact_file(std::span<const std::byte> file, bool params_too);

// The mark and the version of a table. Errors: BadArtifact, ArtifactVersion.
Status check_artifact_table(const ArtifactTable& table);

// Whether a library holds what its plan wants. Error: BadArtifact.
Status check_artifact_plan(const plan::Plan& plan, uint64_t kernels, uint64_t params_bytes);

// What a library's file holds, read without loading it; views into the file's bytes.
struct ArtifactContents {
  struct Set {
    std::string_view name;
    uint64_t kernels = 0;
    std::span<const std::byte> plan;
  };
  unsigned machine = 0;  // as ElfImage's
  uint64_t kernels = 0;
  std::span<const std::byte> plan, params;
  std::vector<Set> sets;     // of a library with several instruction sets, the best first
  std::string_view imports;  // modules linked in beside the plan
};
// Errors: those of check_artifact_file with the weights.
Result<ArtifactContents> read_artifact_file(std::span<const std::byte> file);

}  // namespace tilewright
