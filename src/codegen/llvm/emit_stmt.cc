// SPDX-License-Identifier: Apache-2.0
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Metadata.h>

#include "base/format.h"
#include "codegen/llvm/emitter.h"
#include "codegen/llvm/types.h"

namespace tilewright::codegen {

using namespace tir;
using llvm::Value;

namespace {

// Keeps loops as they are: the loop IR has already decided on unrolling and vectorisation.
llvm::MDNode* loop_metadata(llvm::LLVMContext& c) {
  auto flag = [&](const char* name, std::optional<bool> value = {}) -> llvm::Metadata* {
    llvm::SmallVector<llvm::Metadata*, 2> parts{llvm::MDString::get(c, name)};
    if (value) parts.push_back(llvm::ConstantAsMetadata::get(llvm::ConstantInt::getBool(c, *value)));
    return llvm::MDNode::get(c, parts);
  };
  llvm::Metadata* parts[] = {nullptr, flag("llvm.loop.mustprogress"), flag("llvm.loop.unroll.disable"),
                             flag("llvm.loop.vectorize.enable", false)};
  llvm::MDNode* node = llvm::MDNode::getDistinct(c, parts);
  node->replaceOperandWith(0, node);
  return node;
}

constexpr int64_t kMaxUnroll = 4096;

}  // namespace

void KernelEmitter::emit_for(const ForNode* s) {
  const size_t before = mark();
  Value *min = emit(s->min), *extent = emit(s->extent);
  forget(before);
  const ExprNode* var = s->var.get();
  auto* fixed = llvm::dyn_cast<llvm::ConstantInt>(extent);
  if (fixed && fixed->getSExtValue() <= 0) return;
  if (s->for_kind == ForKind::kVectorized) {
    fail(
        format("loop '{}' is still marked vectorized; run the vectorize pass", static_cast<const VarNode*>(var)->name));
    return;
  }
  auto constant = [&](int64_t v) { return llvm::ConstantInt::getSigned(min->getType(), v); };
  const bool index = is_index(min), non_negative = is_non_negative(min);
  if (s->for_kind == ForKind::kUnrolled && fixed && fixed->getSExtValue() > kMaxUnroll) {
    fail(format("loop '{}' is to be unrolled {} times; at most {} make sense", static_cast<const VarNode*>(var)->name,
                fixed->getSExtValue(), kMaxUnroll));
    return;
  }
  if (fixed && (s->for_kind == ForKind::kUnrolled || fixed->isOne())) {
    for (int64_t i = 0; i < fixed->getSExtValue() && !error_; ++i) {
      vars_[var] = i == 0 ? min : note(b_.CreateAdd(min, constant(i), "", false, index), index, non_negative);
      var_depth_[var] = loop_depth_;
      emit(s->body);
    }
    return;
  }
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  const std::string& name = static_cast<const VarNode*>(var)->name;
  auto* body = llvm::BasicBlock::Create(b_.getContext(), name + ".body", function);
  auto* done = llvm::BasicBlock::Create(b_.getContext(), name + ".done", function);
  Value* end = b_.CreateAdd(min, extent, "", false, true);
  if (fixed == nullptr) {
    auto* preheader = llvm::BasicBlock::Create(b_.getContext(), name + ".enter", function, body);
    b_.CreateCondBr(b_.CreateICmpSGT(extent, constant(0)), preheader, done);
    b_.SetInsertPoint(preheader);
  }
  llvm::BasicBlock* enter = b_.GetInsertBlock();
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
  llvm::PHINode* counter = b_.CreatePHI(min->getType(), 2, name);
  counter->addIncoming(min, enter);
  vars_[var] = note(counter, true, non_negative);
  var_depth_[var] = ++loop_depth_;
  emit(s->body);
  --loop_depth_;
  Value* next = b_.CreateAdd(counter, constant(1), "", non_negative, true);
  llvm::BranchInst* branch = b_.CreateCondBr(b_.CreateICmpEQ(next, end), done, body);
  branch->setMetadata(llvm::LLVMContext::MD_loop, loop_metadata(b_.getContext()));
  counter->addIncoming(next, b_.GetInsertBlock());
  b_.SetInsertPoint(done);
}

void KernelEmitter::emit_if(const IfNode* s) {
  const size_t before = mark();
  Value* condition = emit(s->condition);
  forget(before);
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  auto* then_block = llvm::BasicBlock::Create(b_.getContext(), "if.then", function);
  auto* else_block = s->else_case ? llvm::BasicBlock::Create(b_.getContext(), "if.else", function) : nullptr;
  auto* done = llvm::BasicBlock::Create(b_.getContext(), "if.done", function);
  b_.CreateCondBr(condition, then_block, else_block ? else_block : done);
  b_.SetInsertPoint(then_block);
  emit(s->then_case);
  b_.CreateBr(done);
  if (else_block) {
    b_.SetInsertPoint(else_block);
    emit(s->else_case);
    b_.CreateBr(done);
  }
  b_.SetInsertPoint(done);
}

void KernelEmitter::emit_while(const WhileNode* s) {
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  auto* test = llvm::BasicBlock::Create(b_.getContext(), "while.test", function);
  auto* body = llvm::BasicBlock::Create(b_.getContext(), "while.body", function);
  auto* done = llvm::BasicBlock::Create(b_.getContext(), "while.done", function);
  b_.CreateBr(test);
  b_.SetInsertPoint(test);
  ++loop_depth_;
  const size_t before = mark();
  Value* condition = emit(s->condition);
  forget(before);
  b_.CreateCondBr(condition, body, done);
  b_.SetInsertPoint(body);
  emit(s->body);
  --loop_depth_;
  b_.CreateBr(test);
  b_.SetInsertPoint(done);
}

void KernelEmitter::emit_call_extern(const CallExternNode* s) {
  std::vector<Value*> args;
  for (const ExternArgument& a : s->args)
    args.push_back(a.buffer ? address(a.buffer.get(), a.value.get(), /*inside=*/false) : emit(a.value));
  // An int result is ignored: the return register of a void function is not read either.
  emit_extern(s->name, b_.getVoidTy(), args);
}

// Chains of lets and allocations grow with tile size: they are iterated, not recursed into.
void KernelEmitter::emit(const Stmt& stmt) {
  const StmtNode* s = stmt.get();
  while (s != nullptr && !error_) {
    switch (s->kind) {
      case StmtKind::kFor:
        emit_for(static_cast<const ForNode*>(s));
        return;
      case StmtKind::kStore: {
        const size_t before = mark();
        emit_store(static_cast<const StoreNode*>(s));
        forget(before);
        return;
      }
      case StmtKind::kPrefetch: {
        const size_t before = mark();
        emit_prefetch(static_cast<const PrefetchNode*>(s));
        forget(before);
        return;
      }
      case StmtKind::kCallExtern: {
        const size_t before = mark();
        emit_call_extern(static_cast<const CallExternNode*>(s));
        forget(before);
        return;
      }
      case StmtKind::kWrite:
      case StmtKind::kBlock:
        fail("loops over memory without a place are left in a kernel");
        return;
      case StmtKind::kWhile:
        emit_while(static_cast<const WhileNode*>(s));
        return;
      case StmtKind::kIf:
        emit_if(static_cast<const IfNode*>(s));
        return;
      case StmtKind::kSeq:
        for (const Stmt& part : static_cast<const SeqNode*>(s)->stmts) emit(part);
        return;
      case StmtKind::kLetStmt: {
        auto* let = static_cast<const LetStmtNode*>(s);
        const size_t before = mark();
        Value* value = emit(let->value);
        forget(before);
        vars_[let->var.get()] = value;
        int budget = 32;
        var_depth_[let->var.get()] = is_index(value) ? depth_of(let->value.get(), &budget) : loop_depth_;
        if (is_index(value) && let->value->dtype == kInt64)
          lets_[let->var.get()] = let->value.get();
        else
          lets_.erase(let->var.get());
        s = let->body.get();
        break;
      }
      case StmtKind::kAllocate: {
        auto* allocate = static_cast<const AllocateNode*>(s);
        emit_allocate(allocate->buffer.get());
        s = allocate->body.get();
        break;
      }
    }
  }
}

}  // namespace tilewright::codegen
