// SPDX-License-Identifier: Apache-2.0
// The table of backends, one row per kind of target. A backend states which tir passes legalise what it does not
// support (run by the common runner of kernel passes), and what it produces.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "codegen/codegen.h"
#include "tir/passes/lower_kernel.h"

namespace tilewright::codegen {

// What kernels become (Kernels::objects): object files, source text, or programs of byte code.
enum class Product : uint8_t { kMachineCode, kSource, kByteCode };

struct Backend {
  const char* kind;   // Target::kind
  const char* makes;  // short description for lists
  // Completes what the target string leaves open. Errors: UnknownTarget.
  Result<Target> (*resolve)(Target target);
  // The passes, in order, that remove what the backend does not support before its other functions see a kernel.
  std::span<const tir::KernelPass> legalize;
  // Compiles kernels one by one to machine code, or source (Kernels::objects).
  Result<Kernels> (*compile)(std::span<const tir::PrimFunc> functions, const Target& target, int jobs,
                             const std::function<void(int, int)>& progress, KernelCache* cache);
  // One kernel as readable text, in one of `text_forms`.
  Result<std::string> (*text)(const tir::PrimFunc& function, const Target& target, std::string_view form);
  std::span<const char* const> text_forms;
  Product product;
  bool makes_source() const { return product == Product::kSource; }
  bool makes_byte_code() const { return product == Product::kByteCode; }
};

std::span<const Backend> backends();
// The target's backend; parse_target guarantees that its kind is in the table.
const Backend& backend_of(const Target& target);

}  // namespace tilewright::codegen
