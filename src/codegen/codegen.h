// SPDX-License-Identifier: Apache-2.0
// Code generation: loop IR in, bytes out. Nothing here runs what it produces.
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

// The version of the LLVM that generates code, as "19.1.7".
std::string llvm_version();

// Completes triple, CPU (default: the host's), vector width, registers and features. Errors: UnknownTarget.
Result<Target> resolve_target(Target target);

struct Kernels {
  std::vector<std::string> objects;  // relocatable object files, in a fixed order
};
// Compiles kernels on `jobs` threads; the bytes do not depend on their number. `progress(done, total)` may be null.
// `cache` (may be null) is looked up first, receives new objects, and is trimmed.
Result<Kernels> compile_kernels(std::span<const tir::PrimFunc> functions, const Target& target, int jobs,
                                const std::function<void(int, int)>& progress = {}, KernelCache* cache = nullptr);
// The text of a function's LLVM IR or assembly, for inspection ("ll" or "s").
Result<std::string> kernel_text(const tir::PrimFunc& function, const Target& target, std::string_view form);

// One more object file with the artifact's table, plan and tw_run. `system_lib`: the program it is linked into finds
// the model by name (runtime/system_lib.h).
Result<std::string> compile_glue(const plan::Plan& plan, const Target& target, bool system_lib = false);
// The same for a library with several x86-64 instruction sets, best first: tw_run selects one on its first call. All
// share inputs, outputs, variants and weights; kernels have distinct names.
struct InstructionSetPlan {
  const plan::Plan* plan;
  const Target* target;
};
Result<std::string> compile_glue(std::span<const InstructionSetPlan> sets, bool system_lib = false);
// For a program without the runtime: `int symbol(inputs, outputs, pools)`, taking lists of addresses. `pools` gives
// each pool's begin in the arena. Error: UnsupportedModel for features that need the runtime.
Result<std::string> compile_entry(const plan::Plan& plan, const Target& target, const std::string& symbol,
                                  std::span<const uint64_t> pools);
// An object with a library's imported modules (the import tree, runtime/module.h) under kImportsSymbol, if they are not
// in the plan.
Result<std::string> compile_imports(std::string_view tree, const Target& target);
// A piece of the weights: the caller's bytes, or a function that produces them when they are written.
struct WeightPiece {
  uint64_t bytes;
  std::span<const std::byte> known;
  std::function<Tensor()> make;
  explicit WeightPiece(std::span<const std::byte> known) : bytes(known.size()), known(known) {}
  WeightPiece(uint64_t bytes, std::function<Tensor()> make) : bytes(bytes), make(std::move(make)) {}
};
using WeightPieces = std::span<const WeightPiece>;
uint64_t weight_bytes(WeightPieces pieces);
// Calls take(data, bytes) for each piece in turn.
template <class Take>
void for_each_piece(WeightPieces pieces, Take take) {
  for (const WeightPiece& piece : pieces) {
    const Tensor made = piece.make ? piece.make() : Tensor();
    take(piece.make ? made.raw() : piece.known.data(), piece.bytes);
  }
}
// A placeholder object for the weights while others are linked: it defines kParamsSymbol. `relocatable`: the result is
// an object for the user's linker.
std::string weights_stand_in(bool relocatable, const Target& target);
// The weights as an object, for 32-bit files.
std::string weights_object(WeightPieces pieces, const Target& target);
// Appends the pieces, page-aligned, to a library or object that was linked with a placeholder, and redirects all
// references to it. Errors: CannotWrite, naming `result`.
Status place_weights(const std::string& path, WeightPieces pieces, const std::string& result);

// A whole artifact, including weights, as LLVM IR ("ll"), bitcode ("bc") or assembly ("s"). `targets[i]` is the target
// of kernels[i].
Result<std::string> artifact_text(std::span<const tir::PrimFunc> kernels, std::span<const Target* const> targets,
                                  const plan::Plan& plan, const Target& target, WeightPieces params, bool system_lib,
                                  std::string_view form);
// Compiles LLVM IR or bitcode to an object file, for the target it names. Errors: ParseError, UnknownTarget,
// CodegenFailed.
struct IrObject {
  std::string object;
  Target target;
};
Result<IrObject> compile_ir(const std::string& path);
// Compiles LLVM IR text that a script's functions import to
// an object for `target`. Errors: ParseError, CodegenFailed.
Result<std::string> compile_llvm_text(const std::string& text, const Target& target);

// Links objects into a shared library with the built-in linker, appends `params` if given (calling `params_written`
// once the pieces are no longer needed), and seals the library (base/formats/seal.h). Works in a folder beside `path`
// and renames, so that a failure leaves nothing behind. `libraries`: files of shared libraries that it needs when it is
// loaded; they and it are never unloaded. Errors: CannotWrite, LinkFailed.
Status link_shared(std::span<const std::string> objects, const std::string& path, const Target& target,
                   const WeightPieces* params = nullptr, const std::function<void()>& params_written = {},
                   std::span<const std::string> libraries = {});
// The same as one relocatable object (.o) or an archive (.a), for the user's linker. Symbols are those of the library.
Status link_relocatable(std::span<const std::string> objects, const std::string& path, const Target& target,
                        const WeightPieces* params = nullptr, const std::function<void()>& params_written = {});
// One object of kernels whose functions other objects of a program call.
Status join_kernels(std::span<const std::string> objects, const std::string& path, const Target& target);
Status write_archive(std::span<const std::string> objects, const std::string& path, const Target& target,
                     const WeightPieces* params = nullptr, const std::function<void()>& params_written = {});

}  // namespace tilewright::codegen
