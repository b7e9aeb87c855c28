// SPDX-License-Identifier: Apache-2.0
// What an artifact has besides kernels and weights: the table the loader reads, the plan's bytes, and tw_run and
// tw_run_variant, which run the plan of one shape variant on one thread with no runtime library (tw_run_with_weights
// and tw_run_variant_with_weights where the weights are a file of their own). For a system library also a constructor
// that tells the runtime of the table: a program holds several such models, so that the names they share are weak, and
// what the constructor hands over are names of the object's own.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include <algorithm>
#include <unordered_map>

#include "base/format.h"
#include "base/formats/artifact.h"
#include "base/hash.h"
#include "codegen/codegen.h"
#include "codegen/llvm/ffi_entry.h"
#include "codegen/llvm/kernel.h"
#include "codegen/llvm/machine.h"

namespace tilewright::codegen {
namespace {

using llvm::Value;
constexpr size_t kStepsPerFunction = 200;  // one huge function would make code generation superlinear

struct Glue {
  llvm::LLVMContext& context;
  llvm::Module* module;
  llvm::IRBuilder<> b{context};
  const plan::Plan& plan;
  const Target& target;
  bool system_lib = false;
  std::vector<uint64_t> pools = {};  // where each begins in the arena: the arena argument is a list of them; else empty
  std::vector<llvm::Function*> kernels = {};

  llvm::GlobalVariable* constant(llvm::Constant* value, const char* name, bool exported) {
    auto* global = llvm::cast<llvm::GlobalVariable>(module->getOrInsertGlobal(name, value->getType()));
    global->setConstant(true);
    global->setInitializer(value);
    if (!exported)
      global->setVisibility(llvm::GlobalValue::HiddenVisibility);
    else
      share(global);
    return global;
  }
  // In a system library the name becomes a weak one for what stays the object's own.
  void share(llvm::GlobalValue* value) {
    if (!system_lib) return;
    const std::string name = value->getName().str();
    value->setName(name + ".own");
    value->setLinkage(llvm::GlobalValue::InternalLinkage);
    llvm::GlobalAlias::create(value->getValueType(), 0, llvm::GlobalValue::WeakAnyLinkage, name, value, module);
  }

  void declare_kernels() {
    auto* type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getInt64Ty(), b.getInt64Ty()}, false);
    for (const std::string& name : plan.kernels) {
      llvm::FunctionCallee callee = module->getOrInsertFunction(name, type);
      auto* function = llvm::cast<llvm::Function>(callee.getCallee());
      function->setVisibility(llvm::GlobalValue::HiddenVisibility);
      function->setDoesNotThrow();
      kernels.push_back(function);
    }
  }

  llvm::Constant* emit_table(const std::string& bytes, llvm::Constant* params) {
    uint64_t arena_bytes = 0;
    for (size_t v = 0; v <= plan.variants.size(); ++v)
      arena_bytes = std::max(arena_bytes, plan::variant_of(plan, v).arena_bytes);
    constant(b.getInt64(arena_bytes), kArenaBytesSymbol, true);
    constant(b.getInt64(plan.variants.size() + 1), kVariantsSymbol, true);
    llvm::Type *i32 = b.getInt32Ty(), *i64 = b.getInt64Ty();
    llvm::Constant* plan_bytes =
        constant(llvm::ConstantDataArray::getString(context, bytes, false), kPlanSymbol, false);
    llvm::cast<llvm::GlobalVariable>(plan_bytes)->setAlignment(llvm::Align(64));
    std::vector<llvm::Constant*> pointers(kernels.begin(), kernels.end());
    auto* array = llvm::ArrayType::get(b.getPtrTy(), pointers.size());
    llvm::Constant* functions = constant(llvm::ConstantArray::get(array, pointers), "tw_kernels", false);
    auto u64 = [&](uint64_t v) { return llvm::ConstantInt::get(i64, v); };
    // The fields of ArtifactTable in order; both are made of aligned 4- and 8-byte members, so no padding differs.
    static_assert(sizeof(ArtifactTable) == 16 + 7 * 8);
    llvm::Constant* fields[] = {llvm::ConstantDataArray::getString(context, llvm::StringRef(kArtifactMagic, 8), false),
                                llvm::ConstantInt::get(i32, kArtifactAbi),
                                llvm::ConstantInt::get(i32, sizeof(ArtifactTable)),
                                plan_bytes,
                                u64(bytes.size()),
                                params,
                                u64(plan.weights_file.empty() ? plan.params_bytes : 0),
                                functions,
                                u64(kernels.size()),
                                u64(hash_bytes(bytes.data(), bytes.size()))};
    llvm::GlobalVariable* table = constant(llvm::ConstantStruct::getAnon(fields), kArtifactSymbol, true);
    table->setAlignment(llvm::Align(8));
    return table;
  }

  // Before main: tw_system_lib_register(name, address), of the table and of what runs the plan. When the program, or a
  // library that is opened and closed, goes: the same with null.
  void emit_constructor(llvm::Constant* table, llvm::Constant* run) {
    auto registrar = module->getOrInsertFunction(
        kSystemLibRegister, llvm::FunctionType::get(b.getInt32Ty(), {b.getPtrTy(), b.getPtrTy()}, false));
    auto* null = llvm::ConstantPointerNull::get(b.getPtrTy());
    auto emit = [&](const char* name, llvm::Constant* first, llvm::Constant* second) {
      auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), false),
                                       llvm::GlobalValue::InternalLinkage, name, *module);
      set_function_attributes(f, target);
      b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
      b.CreateCall(registrar, {b.CreateGlobalString(std::string(kSystemLibRun) + plan.model_name), first});
      b.CreateCall(registrar, {b.CreateGlobalString(std::string(kSystemLibModel) + plan.model_name), second});
      b.CreateRetVoid();
      return f;
    };
    llvm::appendToGlobalCtors(*module, emit("tw_register_model", run, table), 65535);
    llvm::appendToGlobalDtors(*module, emit("tw_remove_model", null, null), 65535);
  }

  // A byte of the arena, or of the pool that has it.
  Value* in_arena(Value* base, uint64_t offset) {
    if (!pools.empty()) {
      size_t i = pools.size() - 1;
      while (i > 0 && pools[i] > offset) --i;
      base = b.CreateLoad(b.getPtrTy(), b.CreateConstInBoundsGEP1_64(b.getPtrTy(), base, i));
      offset -= pools[i];
    }
    return offset == 0 ? base : b.CreateConstGEP1_64(b.getInt8Ty(), base, offset);
  }

  // void part(inputs, outputs, arena, params): some steps of one variant, one after another.
  llvm::Function* emit_part(const plan::Plan& plan, const std::string& name, size_t first, size_t last) {
    llvm::Type* ptr = b.getPtrTy();
    auto* type = llvm::FunctionType::get(b.getVoidTy(), {ptr, ptr, ptr, ptr}, false);
    auto* function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, *module);
    set_function_attributes(function, target);
    function->addFnAttr(llvm::Attribute::NoInline);
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
    size_t widest = 1;
    for (size_t i = first; i < last; ++i) widest = std::max(widest, plan.steps[i].buffers.size());
    Value* slots = b.CreateAlloca(llvm::ArrayType::get(ptr, widest));
    for (size_t i = first; i < last; ++i) {
      const plan::Step& step = plan.steps[i];
      for (size_t k = 0; k < step.buffers.size(); ++k) {
        const plan::Buffer& buffer = plan.buffers[step.buffers[k]];
        Value* base = nullptr;
        uint64_t further = buffer.offset;
        switch (buffer.space) {
          case plan::Space::kInput:
          case plan::Space::kOutput: {
            Value* list = function->getArg(buffer.space == plan::Space::kInput ? 0 : 1);
            base = b.CreateLoad(ptr, b.CreateConstInBoundsGEP1_64(ptr, list, buffer.index));
            break;
          }
          case plan::Space::kArena:
            base = in_arena(function->getArg(2), buffer.offset);
            further = 0;
            break;
          case plan::Space::kParams:
            base = function->getArg(3);
            break;
          case plan::Space::kScratch:
            base = in_arena(function->getArg(2), plan.arena_bytes - plan.scratch_bytes + buffer.offset);
            further = 0;
            break;
        }
        if (further != 0) base = b.CreateConstGEP1_64(b.getInt8Ty(), base, further);
        b.CreateStore(base, b.CreateConstInBoundsGEP1_64(ptr, slots, k));
      }
      b.CreateCall(kernels[step.kernel], {slots, b.getInt64(0), b.getInt64(1)});
    }
    b.CreateRetVoid();
    return function;
  }

  // Denormals are flushed while kernels run: decaying activations would otherwise cost up to a hundred times as much.
  Value* enter_flush_mode(Value* slot) {
    if (is_x86(target)) {
      b.CreateIntrinsic(llvm::Intrinsic::x86_sse_stmxcsr, {}, {slot});
      Value* saved = b.CreateLoad(b.getInt32Ty(), slot);
      b.CreateStore(b.CreateOr(saved, b.getInt32(0x8040)), slot);  // FTZ, DAZ
      b.CreateIntrinsic(llvm::Intrinsic::x86_sse_ldmxcsr, {}, {slot});
      return saved;
    }
    Value* saved = b.CreateIntrinsic(llvm::Intrinsic::aarch64_get_fpcr, {}, {});
    b.CreateIntrinsic(llvm::Intrinsic::aarch64_set_fpcr, {}, {b.CreateOr(saved, b.getInt64(1 << 24))});
    return saved;
  }
  void leave_flush_mode(Value* slot, Value* saved) {
    if (is_x86(target)) {
      b.CreateStore(saved, slot);
      b.CreateIntrinsic(llvm::Intrinsic::x86_sse_ldmxcsr, {}, {slot});
    } else {
      b.CreateIntrinsic(llvm::Intrinsic::aarch64_set_fpcr, {}, {saved});
    }
  }

  // Without the runtime there are no modules to call and no devices to copy between: such a model's entry reports that.
  static bool stands_alone(const plan::Plan& plan) {
    return plan.devices.size() == 1 &&
           std::all_of(plan.steps.begin(), plan.steps.end(),
                       [](const plan::Step& s) { return s.kind == plan::StepKind::kKernel; }) &&
           std::all_of(plan.variants.begin(), plan.variants.end(), stands_alone);
  }

  // The weights may be farther than 2 GB from the code: their address is read from data, which holds all 64 bits.
  Value* address_in_data(llvm::Constant* params) {
    auto* where = llvm::cast<llvm::GlobalVariable>(module->getOrInsertGlobal("tw_params_address", b.getPtrTy()));
    where->setInitializer(params);
    where->setLinkage(llvm::GlobalValue::InternalLinkage);
    where->setSection(".data.rel.ro");
    where->setExternallyInitialized(true);
    return where;
  }

  std::vector<llvm::Function*> emit_parts(const plan::Plan& variant, size_t v) {
    std::vector<llvm::Function*> list;
    for (size_t i = 0; i < variant.steps.size(); i += kStepsPerFunction)
      list.push_back(emit_part(variant, format("tw_run.{}.{}", v, list.size()), i,
                               std::min(variant.steps.size(), i + kStepsPerFunction)));
    return list;
  }

  // int symbol(inputs, outputs, pools): the plan without the table that the runtime reads.
  void emit_entry(const std::string& symbol, llvm::Constant* params) {
    const std::vector<llvm::Function*> parts = emit_parts(plan, 0);
    llvm::Type *ptr = b.getPtrTy(), *i32 = b.getInt32Ty();
    auto* f = llvm::Function::Create(llvm::FunctionType::get(i32, {ptr, ptr, ptr}, false),
                                     llvm::GlobalValue::ExternalLinkage, symbol, *module);
    set_function_attributes(f, target);
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
    Value* slot = b.CreateAlloca(i32);
    Value* weights = b.CreateLoad(ptr, address_in_data(params));
    Value* saved = enter_flush_mode(slot);
    for (llvm::Function* part : parts) b.CreateCall(part, {f->getArg(0), f->getArg(1), f->getArg(2), weights});
    leave_flush_mode(slot, saved);
    b.CreateRet(b.getInt32(0));
  }

  llvm::Constant* emit_run(llvm::Constant* params) {
    std::vector<std::vector<llvm::Function*>> parts;  // by variant
    for (size_t v = 0; v <= plan.variants.size(); ++v) {
      const plan::Plan& variant = plan::variant_of(plan, v);
      auto& list = parts.emplace_back();
      if (stands_alone(plan)) list = emit_parts(variant, v);
    }
    const bool apart = !plan.weights_file.empty();
    llvm::Type *ptr = b.getPtrTy(), *i32 = b.getInt32Ty(), *i64 = b.getInt64Ty();
    auto define = [&](const char* name, std::vector<llvm::Type*> arguments) {
      if (apart) arguments.push_back(ptr);
      auto* f = llvm::Function::Create(llvm::FunctionType::get(i32, arguments, false),
                                       llvm::GlobalValue::ExternalLinkage, name, *module);
      set_function_attributes(f, target);
      share(f);
      b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
      return f;
    };
    auto* chosen = define(apart ? kRunVariantWithWeightsSymbol : kRunVariantSymbol, {i64, ptr, ptr, ptr});
    Value* slot = b.CreateAlloca(i32);
    Value* weights = apart ? static_cast<Value*>(chosen->getArg(4)) : b.CreateLoad(ptr, address_in_data(params));
    auto* unknown = llvm::BasicBlock::Create(context, "unknown", chosen);
    auto* choice = b.CreateSwitch(chosen->getArg(0), unknown, static_cast<unsigned>(parts.size()));
    for (size_t v = 0; v < parts.size(); ++v) {
      auto* block = llvm::BasicBlock::Create(context, "variant", chosen);
      choice->addCase(b.getInt64(v), block);
      b.SetInsertPoint(block);
      Value* saved = enter_flush_mode(slot);
      for (llvm::Function* part : parts[v])
        b.CreateCall(part, {chosen->getArg(1), chosen->getArg(2), chosen->getArg(3), weights});
      leave_flush_mode(slot, saved);
      b.CreateRet(b.getInt32(stands_alone(plan) ? 0 : static_cast<uint32_t>(ErrorCode::kUnsupportedModel)));
    }
    b.SetInsertPoint(unknown);
    b.CreateRet(b.getInt32(static_cast<uint32_t>(ErrorCode::kInvalidArgument)));
    auto* first = define(apart ? kRunWithWeightsSymbol : kRunSymbol, {ptr, ptr, ptr});
    std::vector<Value*> arguments = {b.getInt64(0)};
    for (llvm::Argument& a : first->args()) arguments.push_back(&a);
    b.CreateRet(b.CreateCall(chosen, arguments));
    if (stands_alone(plan) && !system_lib && !apart) emit_ffi_entry(*module, plan, target, first);
    return first;
  }
};

Status check_plan(const plan::Plan& plan, size_t kernels) {
  auto bug = [](std::string message) { return Diagnostic(ErrorCode::kInternal, std::move(message)); };
  for (const plan::Plan& variant : plan.variants) TW_TRY_STATUS(check_plan(variant, kernels));
  for (const plan::Step& step : plan.steps) {
    if (step.kind == plan::StepKind::kKernel && step.kernel >= kernels)
      return bug(format("step '{}' names kernel {} of {}", step.name, step.kernel, kernels));
    for (uint32_t buffer : step.buffers)
      if (buffer >= plan.buffers.size())
        return bug(format("step '{}' names buffer {} of {}", step.name, buffer, plan.buffers.size()));
  }
  return Ok{};
}

}  // namespace

Result<std::string> stub_object(std::span<const std::string> names, const Target& target) {
  TargetMachinePtr machine = make_target_machine(target, Effort::kGlue);
  llvm::LLVMContext context;
  llvm::Module module("stub", context);
  module.setTargetTriple(target.mtriple);
  module.setDataLayout(machine->createDataLayout());
  for (const std::string& name : names) {
    auto* function = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context), false),
                                            llvm::GlobalValue::ExternalLinkage, name, module);
    llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "entry", function));
    b.CreateRetVoid();
  }
  return emit_machine_code(module, *machine, false);
}

Result<std::unique_ptr<llvm::Module>> emit_glue(llvm::LLVMContext& context, llvm::TargetMachine& machine,
                                                const plan::Plan& plan, const Target& target, bool system_lib) {
  TW_TRY_STATUS(check_plan(plan, plan.kernels.size()));
  auto module = std::make_unique<llvm::Module>("tilewright.glue", context);
  module->setTargetTriple(target.mtriple);
  module->setDataLayout(machine.createDataLayout());
  module->setPICLevel(llvm::PICLevel::BigPIC);
  Glue glue{.context = context, .module = module.get(), .plan = plan, .target = target, .system_lib = system_lib};
  llvm::Constant* params = llvm::ConstantPointerNull::get(glue.b.getPtrTy());
  if (plan.weights_file.empty()) {
    auto* here = llvm::cast<llvm::GlobalVariable>(module->getOrInsertGlobal(kParamsSymbol, glue.b.getInt8Ty()));
    here->setVisibility(llvm::GlobalValue::HiddenVisibility);
    params = here;
  }
  glue.declare_kernels();
  llvm::Constant* table = glue.emit_table(plan::write_plan(plan), params);
  llvm::Constant* run = glue.emit_run(params);
  if (system_lib) glue.emit_constructor(table, run);
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(*module, &stream))
    return Diagnostic(ErrorCode::kInternal, "malformed LLVM IR: " + stream.str());
  return module;
}

Result<std::string> compile_glue(const plan::Plan& plan, const Target& target, bool system_lib) {
  TargetMachinePtr machine = make_target_machine(target, Effort::kGlue);
  llvm::LLVMContext context;
  auto module = TW_TRY(emit_glue(context, *machine, plan, target, system_lib));
  return emit_machine_code(*module, *machine, false);
}

Result<std::string> compile_entry(const plan::Plan& plan, const Target& target, const std::string& symbol,
                                  std::span<const uint64_t> pools) {
  TW_TRY_STATUS(check_plan(plan, plan.kernels.size()));
  if (!Glue::stands_alone(plan))
    return Diagnostic(ErrorCode::kUnsupportedModel,
                      "the model calls an external code generator or another device, for which a program without the "
                      "runtime has nothing",
                      {}, "compile without the external code generator, or a library for the runtime");
  TargetMachinePtr machine = make_target_machine(target, Effort::kGlue);
  llvm::LLVMContext context;
  llvm::Module module("tilewright.entry", context);
  module.setTargetTriple(target.mtriple);
  module.setDataLayout(machine->createDataLayout());
  module.setPICLevel(llvm::PICLevel::BigPIC);
  Glue glue{.context = context, .module = &module, .plan = plan, .target = target};
  glue.pools.assign(pools.begin(), pools.end());
  auto* params = llvm::cast<llvm::GlobalVariable>(module.getOrInsertGlobal(kParamsSymbol, glue.b.getInt8Ty()));
  params->setVisibility(llvm::GlobalValue::HiddenVisibility);
  glue.declare_kernels();
  glue.emit_entry(symbol, params);
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream))
    return Diagnostic(ErrorCode::kInternal, "malformed LLVM IR: " + stream.str());
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
  // As far from the code as it likes, where it would push the code's data out of reach.
  if (is_x86(target) && bytes.size() > (size_t{1} << 30)) blob->setSection(".lrodata");
  return emit_machine_code(module, *machine, false);
}

}  // namespace tilewright::codegen
