// SPDX-License-Identifier: Apache-2.0
// Everything in an artifact besides kernels and weights: the loader's table, the plan's bytes, and tw_run and
// tw_run_variant, which run the plan of one shape variant on one thread without a runtime library (tw_run_with_weights
// and tw_run_variant_with_weights if weights are a separate file). System libraries also get a constructor that
// registers the table with the runtime; since a program may contain several such models, their common names are weak,
// and the constructor passes names private to the object.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsARM.h>
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
#include "codegen/llvm/choose_set.h"
#include "codegen/llvm/ffi_entry.h"
#include "codegen/llvm/kernel.h"
#include "codegen/llvm/machine.h"

namespace tilewright::codegen {
namespace {

using llvm::Value;
constexpr size_t kStepsPerFunction = 200;  // code generation is superlinear in function size

// The glue for one instruction set.
struct SetGlue {
  const plan::Plan& plan;
  const Target& target;
  std::string suffix;  // of its symbols, if there are several
  std::vector<llvm::Function*> kernels = {};
  llvm::Function *run_variant = nullptr, *run = nullptr;
  llvm::Constant *plan_bytes = nullptr, *functions = nullptr;
  uint64_t plan_size = 0, plan_hash = 0;
};

struct Glue {
  llvm::LLVMContext& context;
  llvm::Module* module;
  llvm::IRBuilder<> b{context};
  std::vector<SetGlue> sets;  // best first
  const Target& any;          // features of every processor that can load the library
  bool system_lib = false;
  // each pool's begin in the arena, if the arena argument is a list of pools; else empty
  std::vector<uint64_t> pools = {};

  const plan::Plan& plan() const { return sets[0].plan; }
  uint64_t arena_bytes() const {
    uint64_t bytes = 0;
    for (const SetGlue& set : sets)
      for (size_t v = 0; v <= set.plan.variants.size(); ++v)
        bytes = std::max(bytes, plan::variant_of(set.plan, v).arena_bytes);
    return bytes;
  }

  llvm::GlobalVariable* constant(llvm::Constant* value, const std::string& name, bool exported) {
    auto* global = llvm::cast<llvm::GlobalVariable>(module->getOrInsertGlobal(name, value->getType()));
    global->setConstant(true);
    global->setInitializer(value);
    if (!exported)
      global->setVisibility(llvm::GlobalValue::HiddenVisibility);
    else
      share(global);
    return global;
  }
  // In a system library the name becomes a weak alias of the object's private symbol.
  void share(llvm::GlobalValue* value) {
    if (!system_lib) return;
    const std::string name = value->getName().str();
    value->setName(name + ".own");
    value->setLinkage(llvm::GlobalValue::InternalLinkage);
    llvm::GlobalAlias::create(value->getValueType(), 0, llvm::GlobalValue::WeakAnyLinkage, name, value, module);
  }

  void declare_kernels(SetGlue* set) {
    auto* type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getInt64Ty(), b.getInt64Ty()}, false);
    for (const std::string& name : set->plan.kernels) {
      llvm::FunctionCallee callee = module->getOrInsertFunction(name, type);
      auto* function = llvm::cast<llvm::Function>(callee.getCallee());
      function->setVisibility(llvm::GlobalValue::HiddenVisibility);
      function->setDoesNotThrow();
      set->kernels.push_back(function);
    }
  }

  llvm::Constant* u64(uint64_t v) { return b.getInt64(v); }
  void emit_plan(SetGlue* set) {
    const std::string bytes = plan::write_plan(set->plan);
    set->plan_bytes =
        constant(llvm::ConstantDataArray::getString(context, bytes, false), kPlanSymbol + set->suffix, false);
    llvm::cast<llvm::GlobalVariable>(set->plan_bytes)->setAlignment(llvm::Align(64));
    set->plan_size = bytes.size(), set->plan_hash = hash_bytes(bytes.data(), bytes.size());
    std::vector<llvm::Constant*> pointers(set->kernels.begin(), set->kernels.end());
    auto* array = llvm::ArrayType::get(b.getPtrTy(), pointers.size());
    set->functions = constant(llvm::ConstantArray::get(array, pointers), "tw_kernels" + set->suffix, false);
  }

  // The list of InstructionSets; null if there is only one.
  llvm::Constant* emit_sets() {
    if (sets.size() == 1) return llvm::ConstantPointerNull::get(b.getPtrTy());
    std::vector<llvm::Constant*> entries;
    auto text = [&](const std::string& value) -> llvm::Constant* { return b.CreateGlobalString(value, "", 0, module); };
    for (const SetGlue& set : sets) {
      std::string features;
      for (const std::string& f : set.plan.cpu_features) features += (features.empty() ? "" : ",") + f;
      static_assert(sizeof(InstructionSet) == 8 * 8);
      llvm::Constant* fields[] = {text(set.target.mcpu), text(features), set.plan_bytes,          u64(set.plan_size),
                                  u64(set.plan_hash),    set.functions,  u64(set.kernels.size()), set.run};
      entries.push_back(llvm::ConstantStruct::getAnon(fields));
    }
    auto* array = llvm::ArrayType::get(entries[0]->getType(), entries.size());
    llvm::GlobalVariable* list = constant(llvm::ConstantArray::get(array, entries), "tw_instruction_sets", false);
    list->setAlignment(llvm::Align(8));
    return list;
  }

  llvm::Constant* emit_table(llvm::Constant* params) {
    constant(u64(arena_bytes()), kArenaBytesSymbol, true);
    constant(u64(plan().variants.size() + 1), kVariantsSymbol, true);
    llvm::Type* i32 = b.getInt32Ty();
    for (SetGlue& set : sets) emit_plan(&set);
    const SetGlue& best = sets[0];
    // The fields of ArtifactTable in order; its members are aligned 4- and 8-byte values, so there is no padding to
    // differ.
    static_assert(sizeof(ArtifactTable) == 16 + 9 * 8);
    llvm::Constant* fields[] = {llvm::ConstantDataArray::getString(context, llvm::StringRef(kArtifactMagic, 8), false),
                                llvm::ConstantInt::get(i32, kArtifactAbi),
                                // below: the size of the table in this processor's layout
                                llvm::ConstantInt::get(i32, 0), best.plan_bytes, u64(best.plan_size), params,
                                u64(plan().weights_file.empty() ? plan().params_bytes : 0), best.functions,
                                u64(best.kernels.size()), u64(best.plan_hash), emit_sets(),
                                u64(sets.size() == 1 ? 0 : sets.size())};
    const uint64_t table_bytes =
        module->getDataLayout().getTypeAllocSize(llvm::ConstantStruct::getAnon(fields)->getType());
    fields[2] = llvm::ConstantInt::get(i32, table_bytes);
    llvm::GlobalVariable* table = constant(llvm::ConstantStruct::getAnon(fields), kArtifactSymbol, true);
    table->setAlignment(llvm::Align(8));
    return table;
  }

  // Before main, calls tw_system_lib_register(name, address) for the table and the run functions; on exit, or when the
  // containing library is closed, the same with null.
  void emit_constructor(llvm::Constant* table, llvm::Constant* run) {
    auto registrar = module->getOrInsertFunction(
        kSystemLibRegister, llvm::FunctionType::get(b.getInt32Ty(), {b.getPtrTy(), b.getPtrTy()}, false));
    auto* null = llvm::ConstantPointerNull::get(b.getPtrTy());
    auto emit = [&](const char* name, llvm::Constant* first, llvm::Constant* second) {
      auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), false),
                                       llvm::GlobalValue::InternalLinkage, name, *module);
      set_function_attributes(f, any);
      b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
      b.CreateCall(registrar, {b.CreateGlobalString(std::string(kSystemLibRun) + plan().model_name), first});
      b.CreateCall(registrar, {b.CreateGlobalString(std::string(kSystemLibModel) + plan().model_name), second});
      b.CreateRetVoid();
      return f;
    };
    llvm::appendToGlobalCtors(*module, emit("tw_register_model", run, table), 65535);
    llvm::appendToGlobalDtors(*module, emit("tw_remove_model", null, null), 65535);
  }

  // Address of a byte in the arena, or in the pool that contains it.
  Value* in_arena(Value* base, uint64_t offset) {
    if (!pools.empty()) {
      size_t i = pools.size() - 1;
      while (i > 0 && pools[i] > offset) --i;
      base = b.CreateLoad(b.getPtrTy(), b.CreateConstInBoundsGEP1_64(b.getPtrTy(), base, i));
      offset -= pools[i];
    }
    return offset == 0 ? base : b.CreateConstGEP1_64(b.getInt8Ty(), base, offset);
  }

  // void part(inputs, outputs, arena, params): some consecutive steps of one variant.
  llvm::Function* emit_part(const SetGlue& set, const plan::Plan& plan, const std::string& name, size_t first,
                            size_t last) {
    llvm::Type* ptr = b.getPtrTy();
    auto* type = llvm::FunctionType::get(b.getVoidTy(), {ptr, ptr, ptr, ptr}, false);
    auto* function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, *module);
    set_function_attributes(function, set.target);
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
      b.CreateCall(set.kernels[step.kernel], {slots, b.getInt64(0), b.getInt64(1)});
    }
    b.CreateRetVoid();
    return function;
  }

  // Flushes denormals while kernels run: decaying activations could otherwise be up to a hundred times slower. Null if
  // there is nothing to set: RISC-V handles them at full speed.
  Value* enter_flush_mode(Value* slot) {
    if (is_x86(any) && any.vector_bits >= 128) {
      b.CreateIntrinsic(llvm::Intrinsic::x86_sse_stmxcsr, {}, {slot});
      Value* saved = b.CreateLoad(b.getInt32Ty(), slot);
      b.CreateStore(b.CreateOr(saved, b.getInt32(0x8040)), slot);  // FTZ, DAZ
      b.CreateIntrinsic(llvm::Intrinsic::x86_sse_ldmxcsr, {}, {slot});
      return saved;
    }
    if (processor_of(any).architecture == Architecture::kAArch64) {
      Value* saved = b.CreateIntrinsic(llvm::Intrinsic::aarch64_get_fpcr, {}, {});
      b.CreateIntrinsic(llvm::Intrinsic::aarch64_set_fpcr, {}, {b.CreateOr(saved, b.getInt64(1 << 24))});
      return saved;
    }
    if (processor_of(any).architecture == Architecture::kArm && has_feature(any, "vfp3")) {
      Value* saved = b.CreateIntrinsic(llvm::Intrinsic::arm_get_fpscr, {}, {});
      b.CreateIntrinsic(llvm::Intrinsic::arm_set_fpscr, {}, {b.CreateOr(saved, b.getInt32(1 << 24))});
      return saved;
    }
    return nullptr;
  }
  void leave_flush_mode(Value* slot, Value* saved) {
    if (saved == nullptr) return;
    if (is_x86(any)) {
      b.CreateStore(saved, slot);
      b.CreateIntrinsic(llvm::Intrinsic::x86_sse_ldmxcsr, {}, {slot});
    } else {
      const llvm::Intrinsic::ID wide = llvm::Intrinsic::aarch64_set_fpcr, narrow = llvm::Intrinsic::arm_set_fpscr;
      b.CreateIntrinsic(processor_of(any).architecture == Architecture::kAArch64 ? wide : narrow, {}, {saved});
    }
  }

  // Whether the plan can run without the runtime: it calls no modules and copies nothing between devices. Otherwise its
  // entry reports an error.
  static bool stands_alone(const plan::Plan& plan) {
    return plan.devices.size() == 1 &&
           std::all_of(plan.steps.begin(), plan.steps.end(),
                       [](const plan::Step& s) { return s.kind == plan::StepKind::kKernel; }) &&
           std::all_of(plan.variants.begin(), plan.variants.end(), stands_alone);
  }

  // The weights may be farther than 2 GB from the code: their address is loaded from data, with all 64 bits.
  llvm::Constant* address_in_data(llvm::Constant* params) {
    auto* where = llvm::cast<llvm::GlobalVariable>(module->getOrInsertGlobal("tw_params_address", b.getPtrTy()));
    where->setInitializer(params);
    where->setLinkage(llvm::GlobalValue::InternalLinkage);
    where->setSection(".data.rel.ro");
    where->setExternallyInitialized(true);
    return where;
  }

  std::vector<llvm::Function*> emit_parts(const SetGlue& set, const plan::Plan& variant, size_t v) {
    std::vector<llvm::Function*> list;
    for (size_t i = 0; i < variant.steps.size(); i += kStepsPerFunction)
      list.push_back(emit_part(set, variant, format("tw_run{}.{}.{}", set.suffix, v, list.size()), i,
                               std::min(variant.steps.size(), i + kStepsPerFunction)));
    return list;
  }

  // int symbol(inputs, outputs, pools): runs the plan, without the table for the runtime.
  void emit_entry(const std::string& symbol, llvm::Constant* params) {
    const std::vector<llvm::Function*> parts = emit_parts(sets[0], plan(), 0);
    llvm::Type *ptr = b.getPtrTy(), *i32 = b.getInt32Ty();
    auto* f = llvm::Function::Create(llvm::FunctionType::get(i32, {ptr, ptr, ptr}, false),
                                     llvm::GlobalValue::ExternalLinkage, symbol, *module);
    set_function_attributes(f, any);
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
    Value* slot = b.CreateAlloca(i32);
    Value* weights = b.CreateLoad(ptr, address_in_data(params));
    Value* saved = enter_flush_mode(slot);
    for (llvm::Function* part : parts) b.CreateCall(part, {f->getArg(0), f->getArg(1), f->getArg(2), weights});
    leave_flush_mode(slot, saved);
    b.CreateRet(b.getInt32(0));
  }

  // A function with these arguments, plus the weights' address if they are a separate file.
  llvm::Function* define(const std::string& name, std::vector<llvm::Type*> arguments, const Target& target,
                         bool exported) {
    if (!plan().weights_file.empty()) arguments.push_back(b.getPtrTy());
    auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getInt32Ty(), arguments, false),
                                     exported ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage,
                                     name, *module);
    set_function_attributes(f, target);
    if (exported) share(f);
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
    return f;
  }
  std::string run_name() const { return plan().weights_file.empty() ? kRunSymbol : kRunWithWeightsSymbol; }
  std::string variant_name() const {
    return plan().weights_file.empty() ? kRunVariantSymbol : kRunVariantWithWeightsSymbol;
  }
  static std::vector<Value*> arguments_of(llvm::Function* f) {
    std::vector<Value*> out;
    for (llvm::Argument& a : f->args()) out.push_back(&a);
    return out;
  }

  // run_variant of one instruction set.
  llvm::Function* emit_run_variant(const SetGlue& set, llvm::Constant* where, bool exported) {
    const plan::Plan& plan = set.plan;
    std::vector<std::vector<llvm::Function*>> parts;  // by variant
    for (size_t v = 0; v <= plan.variants.size(); ++v) {
      const plan::Plan& variant = plan::variant_of(plan, v);
      auto& list = parts.emplace_back();
      if (stands_alone(plan)) list = emit_parts(set, variant, v);
    }
    llvm::Type* ptr = b.getPtrTy();
    auto* chosen = define(variant_name() + set.suffix, {b.getInt64Ty(), ptr, ptr, ptr}, set.target, exported);
    Value* slot = b.CreateAlloca(b.getInt32Ty());
    Value* weights = where ? b.CreateLoad(ptr, where) : static_cast<Value*>(chosen->getArg(4));
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
    return chosen;
  }
  // run: calls run_variant for the first variant.
  llvm::Function* emit_run_first(const std::string& name, llvm::Function* run_variant, bool exported) {
    llvm::Type* ptr = b.getPtrTy();
    auto* first = define(name, {ptr, ptr, ptr}, any, exported);
    std::vector<Value*> arguments = arguments_of(first);
    arguments.insert(arguments.begin(), b.getInt64(0));
    b.CreateRet(b.CreateCall(run_variant, arguments));
    return first;
  }
  // run_variant of the selected instruction set.
  llvm::Function* emit_run_chosen() {
    std::vector<InstructionSetPlan> plans;
    for (const SetGlue& set : sets) plans.push_back({&set.plan, &set.target});
    llvm::Function* choose = emit_choose_set(*module, plans, any);
    llvm::Type* ptr = b.getPtrTy();
    auto* f = define(variant_name(), {b.getInt64Ty(), ptr, ptr, ptr}, any, true);
    Value* which = b.CreateCall(choose, {});
    auto* none = llvm::BasicBlock::Create(context, "none", f);
    auto* choice = b.CreateSwitch(which, none, static_cast<unsigned>(sets.size()));
    for (size_t i = 0; i < sets.size(); ++i) {
      auto* block = llvm::BasicBlock::Create(context, "set", f);
      choice->addCase(b.getInt32(static_cast<uint32_t>(i)), block);
      b.SetInsertPoint(block);
      b.CreateRet(b.CreateCall(sets[i].run_variant, arguments_of(f)));
    }
    b.SetInsertPoint(none);
    b.CreateRet(b.CreateNeg(which));
    return f;
  }

  llvm::Constant* emit_run(llvm::Constant* params) {
    const bool apart = !plan().weights_file.empty(), several = sets.size() > 1;
    llvm::Constant* where = apart ? nullptr : address_in_data(params);
    for (SetGlue& set : sets) {
      set.run_variant = emit_run_variant(set, where, !several);
      set.run = emit_run_first(run_name() + set.suffix, set.run_variant, !several);
    }
    llvm::Function* first = several ? emit_run_first(run_name(), emit_run_chosen(), true) : sets[0].run;
    // tvm-ffi requires a 64-bit processor.
    if (stands_alone(plan()) && !system_lib && !apart && processor_of(any).pointer_bits == 64) {
      plan::Plan head;
      head.inputs = plan().inputs, head.outputs = plan().outputs, head.arena_bytes = arena_bytes();
      emit_ffi_entry(*module, head, any, first);
    }
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

// A target that every processor of the list supports; for a single target, itself.
Target any_of(std::span<const InstructionSetPlan> sets) {
  if (sets.size() == 1) return *sets[0].target;
  Target any;
  any.mtriple = sets[0].target->mtriple;
  any.mcpu = "x86-64";
  auto resolved = resolve_target(std::move(any));
  TW_ICHECK(resolved.ok(), "every processor has a generic model");
  return std::move(resolved).value();
}

}  // namespace

Result<std::unique_ptr<llvm::Module>> emit_glue(llvm::LLVMContext& context, llvm::TargetMachine& machine,
                                                std::span<const InstructionSetPlan> sets, bool system_lib) {
  const Target any = any_of(sets);
  auto module = std::make_unique<llvm::Module>("tilewright.glue", context);
  module->setTargetTriple(any.mtriple);
  module->setDataLayout(machine.createDataLayout());
  module->setPICLevel(llvm::PICLevel::BigPIC);
  Glue glue{.context = context, .module = module.get(), .any = any, .system_lib = system_lib};
  for (size_t i = 0; i < sets.size(); ++i) {
    TW_TRY_STATUS(check_plan(*sets[i].plan, sets[i].plan->kernels.size()));
    glue.sets.push_back({*sets[i].plan, *sets[i].target, sets.size() == 1 ? "" : format(".{}", sets[i].target->mcpu)});
  }
  llvm::Constant* params = llvm::ConstantPointerNull::get(glue.b.getPtrTy());
  if (glue.plan().weights_file.empty()) {
    auto* here = llvm::cast<llvm::GlobalVariable>(module->getOrInsertGlobal(kParamsSymbol, glue.b.getInt8Ty()));
    here->setVisibility(llvm::GlobalValue::HiddenVisibility);
    params = here;
  }
  for (SetGlue& set : glue.sets) glue.declare_kernels(&set);
  llvm::Constant* run = glue.emit_run(params);
  llvm::Constant* table = glue.emit_table(params);
  if (system_lib) glue.emit_constructor(table, run);
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(*module, &stream))
    return Diagnostic(ErrorCode::kInternal, "malformed LLVM IR: " + stream.str());
  return module;
}

Result<std::string> compile_glue(std::span<const InstructionSetPlan> sets, bool system_lib) {
  TargetMachinePtr machine = make_target_machine(any_of(sets), Effort::kGlue);
  llvm::LLVMContext context;
  auto module = TW_TRY(emit_glue(context, *machine, sets, system_lib));
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
  Glue glue{.context = context, .module = &module, .any = target};
  glue.sets.push_back({plan, target, ""});
  glue.pools.assign(pools.begin(), pools.end());
  auto* params = llvm::cast<llvm::GlobalVariable>(module.getOrInsertGlobal(kParamsSymbol, glue.b.getInt8Ty()));
  params->setVisibility(llvm::GlobalValue::HiddenVisibility);
  glue.declare_kernels(&glue.sets[0]);
  glue.emit_entry(symbol, params);
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream))
    return Diagnostic(ErrorCode::kInternal, "malformed LLVM IR: " + stream.str());
  return emit_machine_code(module, *machine, false);
}

Result<std::string> compile_glue(const plan::Plan& plan, const Target& target, bool system_lib) {
  const InstructionSetPlan only{&plan, &target};
  return compile_glue({&only, 1}, system_lib);
}

}  // namespace tilewright::codegen
