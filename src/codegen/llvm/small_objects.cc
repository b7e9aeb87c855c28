// SPDX-License-Identifier: Apache-2.0
// Auxiliary objects: stubs that a link needs, and a library's imported modules.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include "base/formats/artifact.h"
#include "codegen/codegen.h"
#include "codegen/llvm/machine.h"

namespace tilewright::codegen {

Result<std::string> stub_object(std::span<const std::string> names, const Target& target) {
  TargetMachinePtr machine = make_target_machine(target, Effort::kGlue);
  llvm::LLVMContext context;
  llvm::Module module("stub", context);
  module.setTargetTriple(target.mtriple);
  module.setDataLayout(machine->createDataLayout());
  for (const std::string& name : names) {
    auto* function = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context), false),
                                            llvm::GlobalValue::ExternalLinkage, name, module);
    function->setDoesNotThrow();  // a throwing function would reference the unwinder on ARM
    llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "entry", function));
    b.CreateRetVoid();
  }
  return emit_machine_code(module, *machine, false);
}

Result<std::string> compile_imports(std::string_view tree, const Target& target) {
  TargetMachinePtr machine = make_target_machine(target, Effort::kGlue);
  llvm::LLVMContext context;
  llvm::Module module("tilewright.imports", context);
  module.setTargetTriple(target.mtriple);
  module.setDataLayout(machine->createDataLayout());
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(tree.size() >> (8 * i));
  bytes += tree;
  auto* blob = new llvm::GlobalVariable(module, llvm::ArrayType::get(llvm::Type::getInt8Ty(context), bytes.size()),
                                        true, llvm::GlobalValue::ExternalLinkage,
                                        llvm::ConstantDataArray::getString(context, bytes, false), kImportsSymbol);
  blob->setAlignment(llvm::Align(8));
  // A large blob goes to a section out of the code's reach, so that it does not push the code's data away.
  if (is_x86_64(target) && bytes.size() > (size_t{1} << 30)) blob->setSection(".lrodata");
  return emit_machine_code(module, *machine, false);
}

}  // namespace tilewright::codegen
