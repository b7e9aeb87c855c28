// SPDX-License-Identifier: Apache-2.0
#include "codegen/llvm/choose_set.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Module.h>

#include <array>
#include <map>
#include <memory>
#include <utility>

#include "base/formats/artifact.h"
#include "base/result.h"
#include "base/x86_features.h"
#include "codegen/llvm/kernel.h"

namespace tilewright::codegen {
namespace {

using llvm::Value;

class Chooser {
 public:
  Chooser(llvm::Module& module, std::span<const InstructionSetPlan> sets, const Target& any)
      : module_(module), sets_(sets), any_(any), b_(module.getContext()) {}

  llvm::Function* emit() {
    llvm::Function* equal = emit_equal();
    function_ = define("tw_choose_set", b_.getInt32Ty(), {});
    auto *ask = block("ask"), *known = block("known");
    // Zero until the choice is known, then the result plus one.
    auto* kept = new llvm::GlobalVariable(module_, b_.getInt32Ty(), false, llvm::GlobalValue::InternalLinkage,
                                          b_.getInt32(0), "tw_chosen_set");
    auto* before = b_.CreateLoad(b_.getInt32Ty(), kept);
    before->setAtomic(llvm::AtomicOrdering::Monotonic);
    before->setAlignment(llvm::Align(4));
    b_.CreateCondBr(b_.CreateICmpNE(before, b_.getInt32(0)), known, ask);
    b_.SetInsertPoint(known);
    b_.CreateRet(b_.CreateSub(before, b_.getInt32(1)));
    b_.SetInsertPoint(ask);
    Value* forced = forced_name();
    Value* any_named = b_.getFalse();
    Value* result = error(ErrorCode::kCpuMismatch);
    std::vector<Value*> runs, named;
    for (const InstructionSetPlan& set : sets_) {
      runs.push_back(runnable(*set.plan));
      named.push_back(b_.CreateCall(equal, {forced, b_.CreateGlobalString(set.target->mcpu)}));
      any_named = b_.CreateOr(any_named, named.back());
    }
    Value* none_forced = b_.CreateICmpEQ(b_.CreateLoad(b_.getInt8Ty(), forced), b_.getInt8(0));
    for (size_t i = sets_.size(); i-- > 0;)
      result = b_.CreateSelect(b_.CreateAnd(runs[i], b_.CreateOr(none_forced, named[i])),
                               b_.getInt32(static_cast<uint32_t>(i)), result);
    result = b_.CreateSelect(b_.CreateOr(none_forced, any_named), result, error(ErrorCode::kInvalidArgument));
    auto* store = b_.CreateStore(b_.CreateAdd(result, b_.getInt32(1)), kept);
    store->setAtomic(llvm::AtomicOrdering::Monotonic);
    store->setAlignment(llvm::Align(4));
    b_.CreateRet(result);
    return function_;
  }

 private:
  Value* error(ErrorCode code) { return b_.getInt32(static_cast<uint32_t>(-static_cast<int32_t>(code))); }
  llvm::BasicBlock* block(const char* name) { return llvm::BasicBlock::Create(module_.getContext(), name, function_); }
  llvm::Function* define(const char* name, llvm::Type* result, const std::vector<llvm::Type*>& arguments) {
    function_ = llvm::Function::Create(llvm::FunctionType::get(result, arguments, false),
                                       llvm::GlobalValue::InternalLinkage, name, module_);
    set_function_attributes(function_, any_);
    function_->addFnAttr(llvm::Attribute::NoInline);
    b_.SetInsertPoint(block("entry"));
    return function_;
  }

  // bool equal(const char*, const char*)
  llvm::Function* emit_equal() {
    llvm::Type* ptr = b_.getPtrTy();
    llvm::Function* f = define("tw_same_text", b_.getInt1Ty(), {ptr, ptr});
    auto *head = block("head"), *more = block("more"), *out = block("out");
    auto* entry = b_.GetInsertBlock();
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    auto* i = b_.CreatePHI(b_.getInt64Ty(), 2);
    i->addIncoming(b_.getInt64(0), entry);
    auto byte = [&](unsigned k) {
      return b_.CreateLoad(b_.getInt8Ty(), b_.CreateGEP(b_.getInt8Ty(), f->getArg(k), i));
    };
    Value *x = byte(0), *y = byte(1);
    Value *same = b_.CreateICmpEQ(x, y), *ends = b_.CreateICmpEQ(x, b_.getInt8(0));
    b_.CreateCondBr(b_.CreateAnd(same, b_.CreateNot(ends)), more, out);
    b_.SetInsertPoint(more);
    i->addIncoming(b_.CreateAdd(i, b_.getInt64(1)), more);
    b_.CreateBr(head);
    b_.SetInsertPoint(out);
    b_.CreateRet(same);
    return f;
  }

  // The value of TILEWRIGHT_ISA; an empty text if it, or getenv, is missing.
  Value* forced_name() {
    llvm::Type* ptr = b_.getPtrTy();
    auto* getenv = llvm::cast<llvm::Function>(
        module_.getOrInsertFunction("getenv", llvm::FunctionType::get(ptr, {ptr}, false)).getCallee());
    getenv->setLinkage(llvm::GlobalValue::ExternalWeakLinkage);
    auto* null = llvm::ConstantPointerNull::get(b_.getPtrTy());
    auto *call = block("call"), *got = block("got"), *from = b_.GetInsertBlock();
    b_.CreateCondBr(b_.CreateICmpNE(getenv, null), call, got);
    b_.SetInsertPoint(call);
    Value* value = b_.CreateCall(getenv, {b_.CreateGlobalString(kInstructionSetVariable)});
    b_.CreateBr(got);
    b_.SetInsertPoint(got);
    auto* either = b_.CreatePHI(ptr, 2);
    either->addIncoming(null, from);
    either->addIncoming(value, call);
    return b_.CreateSelect(b_.CreateICmpNE(either, null), either, b_.CreateGlobalString(""));
  }

  // A CPUID register; zero if the processor lacks the leaf.
  Value* answer(const X86Feature& f) {
    auto [found, fresh] = leaves_.try_emplace({f.leaf, f.subleaf}, nullptr);
    if (fresh) {
      Value* most = cpuid(f.leaf & 0x80000000u, 0)[kEax];
      Value* has = b_.CreateICmpUGE(most, b_.getInt32(f.leaf));
      auto registers = cpuid(f.leaf, f.subleaf);
      for (Value*& r : registers) r = b_.CreateSelect(has, r, b_.getInt32(0));
      found->second = std::make_unique<Registers>(registers);
    }
    return (*found->second)[f.reg];
  }
  using Registers = std::array<Value*, 4>;
  Registers cpuid(uint32_t leaf, uint32_t subleaf) {
    llvm::Type* i32 = b_.getInt32Ty();
    auto* type =
        llvm::FunctionType::get(llvm::StructType::get(module_.getContext(), {i32, i32, i32, i32}), {i32, i32}, false);
    Value* all = b_.CreateCall(
        llvm::InlineAsm::get(type, "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}", true),
        {b_.getInt32(leaf), b_.getInt32(subleaf)});
    return {b_.CreateExtractValue(all, 0), b_.CreateExtractValue(all, 1), b_.CreateExtractValue(all, 2),
            b_.CreateExtractValue(all, 3)};
  }
  // The register state saved by the operating system; without OSXSAVE it cannot be queried and counts as none.
  Value* saved_state() {
    if (saved_) return saved_;
    X86Feature osxsave{"", 1, 0, kEcx, kOsxsaveBit, kNoState};
    Value* can = b_.CreateICmpNE(b_.CreateAnd(answer(osxsave), b_.getInt32(1u << kOsxsaveBit)), b_.getInt32(0));
    auto *read = block("read"), *done = block("done"), *from = b_.GetInsertBlock();
    b_.CreateCondBr(can, read, done);
    b_.SetInsertPoint(read);
    llvm::Type* i32 = b_.getInt32Ty();
    auto* type = llvm::FunctionType::get(llvm::StructType::get(module_.getContext(), {i32, i32}), {i32}, false);
    Value* all = b_.CreateCall(
        llvm::InlineAsm::get(type, "xgetbv", "={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}", true), {b_.getInt32(0)});
    Value* low = b_.CreateExtractValue(all, 0);
    b_.CreateBr(done);
    b_.SetInsertPoint(done);
    auto* state = b_.CreatePHI(i32, 2);
    state->addIncoming(b_.getInt32(0), from);
    state->addIncoming(low, read);
    return saved_ = state;
  }

  Value* runnable(const plan::Plan& plan) {
    std::map<std::pair<std::pair<uint32_t, uint32_t>, uint8_t>, std::pair<X86Feature, uint32_t>> bits;
    uint32_t states = 0;
    for (const std::string& name : plan.cpu_features) {
      const X86Feature* f = find_x86_feature(name);
      if (!f) return b_.getFalse();
      auto& [feature, mask] = bits.try_emplace({{f->leaf, f->subleaf}, f->reg}, *f, 0u).first->second;
      mask |= 1u << f->bit;
      states |= f->state;
    }
    Value* all = b_.getTrue();
    auto require = [&](Value* value, uint32_t mask) {
      all = b_.CreateAnd(all, b_.CreateICmpEQ(b_.CreateAnd(value, b_.getInt32(mask)), b_.getInt32(mask)));
    };
    for (const auto& [where, wanted] : bits) require(answer(wanted.first), wanted.second);
    if (states != 0) require(saved_state(), states);
    return all;
  }

  llvm::Module& module_;
  std::span<const InstructionSetPlan> sets_;
  const Target& any_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  std::map<std::pair<uint32_t, uint32_t>, std::unique_ptr<Registers>> leaves_;
  Value* saved_ = nullptr;
};

}  // namespace

llvm::Function* emit_choose_set(llvm::Module& module, std::span<const InstructionSetPlan> sets, const Target& any) {
  return Chooser(module, sets, any).emit();
}

}  // namespace tilewright::codegen
