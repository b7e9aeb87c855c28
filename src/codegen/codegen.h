// SPDX-License-Identifier: Apache-2.0
// Code generation: loop IR in, bytes out. Nothing here runs what it makes.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/formats/plan.h"
#include "base/result.h"
#include "base/tensor.h"
#include "ir/target.h"
#include "tir/stmt.h"

namespace tilewright::codegen {

class KernelCache;

// "19.1.7": of the LLVM that generates code.
std::string llvm_version();

// Fills in the triple, the CPU (the host's when empty), vector width, registers and features. Errors: UnknownTarget.
Result<Target> resolve_target(Target target);

struct Kernels {
  std::vector<std::string> objects;  // relocatable object files, in a fixed order
};
// Compiles kernels on `jobs` threads; deterministic bytes whatever the number of jobs. `progress(done, total)` may be
// null. `cache` (may be null) is asked first, gets what was compiled, and is trimmed.
Result<Kernels> compile_kernels(std::span<const tir::PrimFunc> functions, const Target& target, int jobs,
                                const std::function<void(int, int)>& progress = {}, KernelCache* cache = nullptr);
// The text of a function's LLVM IR or assembly, for inspection ("ll" or "s").
Result<std::string> kernel_text(const tir::PrimFunc& function, const Target& target, std::string_view form);

// The table, the plan and tw_run for an artifact: one more object file. `system_lib`: the program that it is linked
// into finds the model by name (runtime/system_lib.h).
Result<std::string> compile_glue(const plan::Plan& plan, const Target& target, bool system_lib = false);
// The same for a library with several instruction sets of x86-64, the best first: tw_run chooses one when it is first
// called. All have the same inputs, outputs, variants and weights, and names of their own for their kernels.
struct InstructionSetPlan {
  const plan::Plan* plan;
  const Target* target;
};
Result<std::string> compile_glue(std::span<const InstructionSetPlan> sets, bool system_lib = false);
// For a program without the runtime: `int symbol(inputs, outputs, pools)`, lists of addresses. `pools` says where in
// the arena each begins. Error: UnsupportedModel for what only the runtime can do.
Result<std::string> compile_entry(const plan::Plan& plan, const Target& target, const std::string& symbol,
                                  std::span<const uint64_t> pools);
// An object with the modules that a library imports (runtime/module.h: the import tree) under kImportsSymbol, for a
// library that has none in its plan.
Result<std::string> compile_imports(std::string_view tree, const Target& target);
// A piece of the weights: bytes of the caller's, or what makes them while they are written.
struct WeightPiece {
  uint64_t bytes;
  std::span<const std::byte> known;
  std::function<Tensor()> make;
  explicit WeightPiece(std::span<const std::byte> known) : bytes(known.size()), known(known) {}
  WeightPiece(uint64_t bytes, std::function<Tensor()> make) : bytes(bytes), make(std::move(make)) {}
};
using WeightPieces = std::span<const WeightPiece>;
uint64_t weight_bytes(WeightPieces pieces);
// Calls take(data, bytes) for each piece.
template <class Take>
void for_each_piece(WeightPieces pieces, Take take) {
  for (const WeightPiece& piece : pieces) {
    const Tensor made = piece.make ? piece.make() : Tensor();
    take(piece.make ? made.raw() : piece.known.data(), piece.bytes);
  }
}
// The object that stands for the weights while others are linked: it defines kParamsSymbol. `relocatable`: the result
// is an object that a linker of the user's takes.
std::string weights_stand_in(bool relocatable, const Target& target);
// The weights as an object themselves, in files of 32 bits.
std::string weights_object(WeightPieces pieces, const Target& target);
// Puts the pieces, one after another, behind what was linked with a stand-in (a library or an object), page-aligned,
// and lets everything that points to it point there. Errors: CannotWrite, about `result`.
Status place_weights(const std::string& path, WeightPieces pieces, const std::string& result);

// A whole artifact, weights and all, as LLVM IR ("ll"), bitcode ("bc") or assembly ("s"). `targets[i]` is what
// kernels[i] is compiled for.
Result<std::string> artifact_text(std::span<const tir::PrimFunc> kernels, std::span<const Target* const> targets,
                                  const plan::Plan& plan, const Target& target, WeightPieces params, bool system_lib,
                                  std::string_view form);
// LLVM IR or bitcode as an object file, for the target it names. Errors: ParseError, UnknownTarget, CodegenFailed.
struct IrObject {
  std::string object;
  Target target;
};
Result<IrObject> compile_ir(const std::string& path);
// The text of LLVM IR that functions of a script bring along, as an object for `target`. Errors: ParseError,
// CodegenFailed.
Result<std::string> compile_llvm_text(const std::string& text, const Target& target);

// Links objects into a shared library with the linker built in; `params`, when given, are written behind what was
// linked; `params_written` is called when the pieces are no longer needed. The library is sealed
// (base/formats/seal.h). Works in a folder beside `path` and renames: a failure leaves nothing. Errors: CannotWrite,
// LinkFailed.
Status link_shared(std::span<const std::string> objects, const std::string& path, const Target& target,
                   const WeightPieces* params = nullptr, const std::function<void()>& params_written = {});
// The same as one relocatable object (.o) or as an archive (.a), for a linker of the user's. Symbols as in the library.
Status link_relocatable(std::span<const std::string> objects, const std::string& path, const Target& target,
                        const WeightPieces* params = nullptr, const std::function<void()>& params_written = {});
Status write_archive(std::span<const std::string> objects, const std::string& path, const Target& target,
                     const WeightPieces* params = nullptr, const std::function<void()>& params_written = {});

}  // namespace tilewright::codegen
