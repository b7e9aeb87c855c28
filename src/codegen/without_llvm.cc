// SPDX-License-Identifier: Apache-2.0
// What stands in the place of src/codegen/llvm where the compiler is built without LLVM (TILEWRIGHT_LLVM=OFF): the
// target llvm is known, and says why it is not there.
#include "base/format.h"
#include "codegen/codegen.h"
#include "codegen/llvm/backend.h"

namespace tilewright::codegen {
namespace {

Diagnostic no_llvm(const char* what) {
  return Diagnostic(ErrorCode::kUnknownTarget,
                    format("this compiler was built without LLVM (TILEWRIGHT_LLVM=OFF), and {} needs it", what), {},
                    "use the target stackvm for a file that the runtime loads, or the target c and an output .c");
}
constexpr const char* kTarget = "the target llvm";
constexpr const char* kLibraries = "writing libraries and objects";

Result<Target> resolve_nothing(Target) { return no_llvm(kTarget); }
Result<Kernels> compile_nothing(std::span<const tir::PrimFunc>, const Target&, int,
                                const std::function<void(int, int)>&, KernelCache*) {
  return no_llvm(kTarget);
}
Result<std::string> no_text(const tir::PrimFunc&, const Target&, std::string_view) { return no_llvm(kTarget); }

}  // namespace

Backend llvm_backend() {
  return {"llvm", "nothing: built without LLVM", resolve_nothing, {}, compile_nothing, no_text,
          {},     Product::kMachineCode};
}

std::string llvm_version() { return "none"; }

Result<std::string> compile_glue(const plan::Plan&, const Target&, bool) { return no_llvm(kLibraries); }
Result<std::string> compile_glue(std::span<const InstructionSetPlan>, bool) { return no_llvm(kLibraries); }
Result<std::string> compile_entry(const plan::Plan&, const Target&, const std::string&, std::span<const uint64_t>) {
  return no_llvm(kLibraries);
}
Result<std::string> compile_imports(std::string_view, const Target&) { return no_llvm(kLibraries); }
Result<std::string> artifact_text(std::span<const tir::PrimFunc>, std::span<const Target* const>, const plan::Plan&,
                                  const Target&, WeightPieces, bool, std::string_view) {
  return no_llvm("LLVM IR");
}
Result<IrObject> compile_ir(const std::string& path) { return no_llvm("LLVM IR").at(path); }
Result<std::string> compile_llvm_text(const std::string&, const Target&) { return no_llvm("LLVM IR"); }
Status link_shared(std::span<const std::string>, const std::string& path, const Target&, const WeightPieces*,
                   const std::function<void()>&, std::span<const std::string>) {
  return no_llvm(kLibraries).at(path);
}
Status link_relocatable(std::span<const std::string>, const std::string& path, const Target&, const WeightPieces*,
                        const std::function<void()>&) {
  return no_llvm(kLibraries).at(path);
}
Status join_kernels(std::span<const std::string>, const std::string& path, const Target&) {
  return no_llvm(kLibraries).at(path);
}
Status write_archive(std::span<const std::string>, const std::string& path, const Target&, const WeightPieces*,
                     const std::function<void()>&) {
  return no_llvm(kLibraries).at(path);
}

}  // namespace tilewright::codegen
