// SPDX-License-Identifier: Apache-2.0
// A whole artifact in textual forms, LLVM IR, bitcode or assembly, and compilation of such text to an object.
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Support/MemoryBufferRef.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include "base/format.h"
#include "base/formats/artifact.h"
#include "codegen/codegen.h"
#include "codegen/llvm/kernel.h"
#include "codegen/llvm/machine.h"

namespace tilewright::codegen {
namespace {

// Defines the weights as data of the module. Objects get
// them without LLVM (elf_weights.cc); text has no other way.
void define_params(llvm::Module& module, WeightPieces pieces, const Target& target) {
  llvm::GlobalVariable* declared = module.getNamedGlobal(kParamsSymbol);
  if (declared == nullptr) return;  // weights are in a separate file
  std::string bytes;
  for_each_piece(
      pieces, [&](const std::byte* data, uint64_t size) { bytes.append(reinterpret_cast<const char*>(data), size); });
  llvm::Constant* value = llvm::ConstantDataArray::getString(module.getContext(), bytes, false);
  auto* defined = new llvm::GlobalVariable(module, value->getType(), true, llvm::GlobalValue::ExternalLinkage, value);
  defined->setVisibility(llvm::GlobalValue::HiddenVisibility);
  defined->setAlignment(llvm::Align(4096));
  defined->setSection(is_x86_64(target) ? kFarParamsSection : kParamsSection);
  declared->replaceAllUsesWith(defined);
  defined->takeName(declared);
  declared->eraseFromParent();
}

}  // namespace

Result<std::string> artifact_text(std::span<const tir::PrimFunc> kernels, std::span<const Target* const> targets,
                                  const plan::Plan& plan, const Target& target, WeightPieces params, bool system_lib,
                                  std::string_view form) {
  llvm::LLVMContext context;
  TargetMachinePtr machine = make_target_machine(target, Effort::kKernel);
  const InstructionSetPlan only{&plan, &target};
  auto whole = TW_TRY(emit_glue(context, *machine, {&only, 1}, system_lib));
  define_params(*whole, params, target);
  llvm::Linker linker(*whole);
  for (size_t i = 0; i < kernels.size(); ++i) {
    TargetMachinePtr own = make_target_machine(*targets[i], Effort::kKernel);
    auto module = std::make_unique<llvm::Module>(kernels[i].name, context);
    module->setTargetTriple(target.mtriple);
    module->setDataLayout(whole->getDataLayout());
    module->setPICLevel(llvm::PICLevel::BigPIC);
    TW_TRY_STATUS(emit_kernel(*module, kernels[i], *targets[i]));
    optimize_kernels(*module, *own);
    if (linker.linkInModule(std::move(module)))
      return Diagnostic(ErrorCode::kInternal, format("kernel {} cannot be joined with the others", kernels[i].name));
  }
  if (form == "s") return emit_machine_code(*whole, *machine, /*assembly=*/true);
  std::string out;
  llvm::raw_string_ostream stream(out);
  if (form == "bc")
    llvm::WriteBitcodeToFile(*whole, stream);
  else
    whole->print(stream, nullptr);
  stream.flush();
  return out;
}

Result<IrObject> compile_ir(const std::string& path) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic problem;
  std::unique_ptr<llvm::Module> module = llvm::parseIRFile(path, problem, context);
  auto bad = [&](std::string what) {
    return Diagnostic(ErrorCode::kParseError, std::move(what), path,
                      "LLVM IR of the compiler's own LLVM version is read");
  };
  if (!module) return bad(format("line {}: {}", problem.getLineNo(), problem.getMessage().str()));
  std::string why;
  llvm::raw_string_ostream stream(why);
  if (llvm::verifyModule(*module, &stream)) return bad("malformed LLVM IR: " + stream.str());
  Target target;
  target.kind = "llvm";
  target.mtriple = module->getTargetTriple();
  target = TW_TRY(resolve_target(std::move(target)));
  TargetMachinePtr machine = make_target_machine(target, Effort::kKernel);
  if (module->getDataLayout() != machine->createDataLayout()) return bad("its data layout is not this target's");
  std::string object = TW_TRY(emit_machine_code(*module, *machine, /*assembly=*/false));
  return IrObject{std::move(object), std::move(target)};
}

Result<std::string> compile_llvm_text(const std::string& text, const Target& target) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic problem;
  std::unique_ptr<llvm::Module> module =
      llvm::parseIR(llvm::MemoryBufferRef(text, "imported LLVM IR"), problem, context);
  auto bad = [&](std::string what) {
    return Diagnostic(ErrorCode::kParseError, std::move(what), "import_llvm",
                      format("LLVM IR as version {} writes it is read", llvm_version()));
  };
  if (!module) return bad(format("line {}: {}", problem.getLineNo(), problem.getMessage().str()));
  std::string why;
  llvm::raw_string_ostream stream(why);
  if (llvm::verifyModule(*module, &stream)) return bad("malformed LLVM IR: " + stream.str());
  initialize_llvm();
  TargetMachinePtr machine = make_target_machine(target, Effort::kGlue);
  if (module->getDataLayout() != machine->createDataLayout()) return bad("its data layout is not this target's");
  module->setTargetTriple(target.mtriple);
  module->setPICLevel(llvm::PICLevel::BigPIC);
  for (llvm::Function& function : *module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("target-cpu", target.mcpu);
    function.addFnAttr("target-features", feature_string(target));
  }
  return emit_machine_code(*module, *machine, /*assembly=*/false);
}

}  // namespace tilewright::codegen
