// SPDX-License-Identifier: Apache-2.0
// The backends: one row per kind of target. A backend says what of the loop IR it takes (what it does not is legalised
// away by passes of tir, run by the runner of all kernel passes) and what it makes of it.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "codegen/codegen.h"
#include "tir/passes/lower_kernel.h"

namespace tilewright::codegen {

struct Backend {
  const char* kind;   // Target::kind
  const char* makes;  // in a few words, for lists
  // Fills in what the target string leaves open. Errors: UnknownTarget.
  Result<Target> (*resolve)(Target target);
  // What it cannot take goes, in this order, before its other functions see a kernel.
  std::span<const tir::KernelPass> legalize;
  // Kernels one by one as machine code, or as source (Kernels::objects).
  Result<Kernels> (*compile)(std::span<const tir::PrimFunc> functions, const Target& target, int jobs,
                             const std::function<void(int, int)>& progress, KernelCache* cache);
  // One kernel for a reader, in one of `text_forms`.
  Result<std::string> (*text)(const tir::PrimFunc& function, const Target& target, std::string_view form);
  std::span<const char* const> text_forms;
  bool makes_source;  // Kernels::objects are source text, and what is written is a source file
};

std::span<const Backend> backends();
// The target's. Its kind is in the table: parse_target has seen to it.
const Backend& backend_of(const Target& target);

}  // namespace tilewright::codegen
