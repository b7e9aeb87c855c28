// SPDX-License-Identifier: Apache-2.0
// The processors that code is generated for: their names, how their files and registers differ, and the features that
// generated code may come to depend on. Known without LLVM.
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
  const char* triple;         // how one is asked for
  const char* cpus;           // names of some, for hints
  const char* features_form;  // how features are written, for hints
  const char* default_cpu;    // where none is named
  const char* model;          // the machine model of the CPU "generic"
  unsigned elf_machine;       // as in the ELF header
  int pointer_bits;
  // Features code can come to depend on, each checkable at run time. The list is the contract with the loader, so
  // anything else LLVM would use unasked is turned off (`unwanted`).
  std::span<const char* const> features;
  const char* unwanted;
  std::span<const char* const> abis;  // what -mabi= may be
};

std::span<const Processor> processors();
// By the first word of a triple ("aarch64-linux-gnu"); null where there is no code generator.
const Processor* find_processor(std::string_view triple);
// Of a target that resolve_target took.
const Processor& processor_of(const Target& target);
bool is_x86(const Target& target);     // of 64 bits or 32
bool is_x86_64(const Target& target);  // the same registers are twice as many
bool has_feature(const Target& target, std::string_view name);
// Runs without an operating system: there are no shared libraries.
bool is_bare_metal(const Target& target);
// e_flags of its objects: what linkers compare.
uint32_t elf_flags(const Target& target);

}  // namespace tilewright::codegen
