// SPDX-License-Identifier: Apache-2.0
// The target of code generation: the classic target string ("llvm -mcpu=znver4 -mattr=+avx2") and what kernels need to
// know.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/machine_model.h"

namespace tilewright {

struct Target {
  std::string kind = "llvm";
  std::string mtriple;             // empty: the host's
  std::string mcpu;                // empty: the host's
  std::vector<std::string> mattr;  // "+avx512f", "-avx512f"
  std::string mabi;                // "lp64d"; empty: the processor's usual one
  std::string mfloat_abi;          // for ARM: "hard", "soft" or "softfp"; empty: by the triple
  int num_cores = 0;               // of the machine, for scheduling; 0: unknown. Code does not depend on it
  int vector_width = 0;  // -vector-width=: bits of the vectors kernels are made of; 0: as the processor has them. Wider
                         // ones are taken in pieces: kernels of several processors then read weights packed alike
  // -math=bf16: constant weights and what they are multiplied by may be rounded to bfloat16
  bool bfloat16_products = false;
  bool strict_math = false;  // -math=strict: algorithms that sum the products of the definition only, no Winograd
  // Set by code generation's resolve_target from the CPU: the widest vector for kernels, in bits, and the number of
  // vector registers. 512/32 for AVX-512, 256/16 for AVX2, 128/16 for SSE.
  int vector_bits = 0;
  int vector_registers = 0;
  std::vector<std::string> cpu_features;  // required at run time ("avx512f", "avx2", "fma", ...)
  MachineModel machine;                   // for the cost model

  // C that is to be read, compiled by any compiler, and small.
  bool is_portable_c() const { return kind == "c" && mcpu.empty(); }
  int lanes(int bits) const { return vector_bits / bits; }  // lanes per vector register
  std::string str() const;                                  // canonical target string
};

// Parses a target string. Errors: UnknownTarget (kind or option), with the valid ones as hint.
Result<Target> parse_target(std::string_view text);

// Splits a list, "llvm -mcpu=a,b,c" (one library with kernels for each processor), into targets; a single target is
// returned as it is. "portable" is kPortableTargets.
std::vector<std::string> split_targets(std::string_view text);
inline constexpr const char* kPortableTargets = "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v2,x86-64-v3,x86-64-v4";

}  // namespace tilewright
