// SPDX-License-Identifier: Apache-2.0
// The supported processors: names, ELF properties, registers, and features that generated code may depend on.
// Independent of LLVM.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ir/target.h"

namespace tilewright::codegen {

enum class Architecture { kX86_64, kX86, kAArch64, kArm, kRiscv64, kRiscv32 };

struct Processor {
  Architecture architecture;
  const char* name;           // "x86-64"
  const char* triple;         // form of its triples
  const char* cpus;           // examples, for hints
  const char* features_form;  // how features are written, for hints
  const char* default_cpu;    // if none is given
  const char* model;          // machine model for the CPU "generic"
  unsigned elf_machine;       // as in the ELF header
  int pointer_bits;
  // Features that code may depend on, each of which can be checked at run time. The list is the contract with the
  // loader, so everything else that LLVM might use is disabled (`unwanted`).
  std::span<const char* const> features;
  const char* unwanted;
  std::span<const char* const> abis;  // accepted values of -mabi=
};

std::span<const Processor> processors();
// By the first component of a triple ("aarch64-linux-gnu"); null if unsupported.
const Processor* find_processor(std::string_view triple);
// For a target that resolve_target accepted.
const Processor& processor_of(const Target& target);
bool is_x86(const Target& target);     // 64 or 32 bits
bool is_x86_64(const Target& target);  // has twice as many registers
bool has_feature(const Target& target, std::string_view name);
// Without an operating system: there are no shared libraries.
bool is_bare_metal(const Target& target);
// The e_flags of its objects, which linkers compare.
uint32_t elf_flags(const Target& target);

}  // namespace tilewright::codegen
