// SPDX-License-Identifier: Apache-2.0
// Quotients and rests of whole numbers.
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/IRBuilder.h>

#include <bit>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/machine.h"
#include "codegen/processor.h"

namespace tilewright::codegen {

using namespace tir;
using llvm::Value;

// Processors divide vectors of whole numbers element by element, and vectors of floating ones at once.
bool KernelEmitter::divides_by_floats(DataType dtype, const Value* a, const Value* b) const {
  const Architecture architecture = processor_of(target_).architecture;
  return a->getType()->isVectorTy() && !llvm::isa<llvm::Constant>(b) && dtype.bits <= 64 &&
         (architecture == Architecture::kX86_64 || architecture == Architecture::kAArch64);
}

// The quotient of 64-bit numbers: as doubles where those of all lanes are below 2^51, otherwise lane by lane. Adding
// 1.5 * 2^52 converts such numbers exactly, in both directions, for which AVX2 has no instruction.
Value* KernelEmitter::emit_wide_quotient(bool is_signed, Value* a, Value* b) {
  auto* type = llvm::cast<llvm::FixedVectorType>(a->getType());
  auto* wide = llvm::FixedVectorType::get(b_.getDoubleTy(), type->getNumElements());
  auto number = [&](uint64_t v) { return llvm::ConstantInt::get(type, v); };
  auto beyond = [&](Value* x) {
    return is_signed ? b_.CreateLShr(b_.CreateAdd(x, number(uint64_t{1} << 51)), number(52))
                     : b_.CreateLShr(x, number(51));
  };
  Value* large = b_.CreateICmpNE(b_.CreateOr(beyond(a), beyond(b)), number(0));
  large = b_.CreateICmpNE(b_.CreateBitCast(large, b_.getIntNTy(type->getNumElements())),
                          llvm::ConstantInt::get(b_.getIntNTy(type->getNumElements()), 0));
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  auto* slow = llvm::BasicBlock::Create(b_.getContext(), "quotient.wide", function);
  auto* fast = llvm::BasicBlock::Create(b_.getContext(), "quotient.floats", function);
  auto* done = llvm::BasicBlock::Create(b_.getContext(), "quotient.done", function);
  b_.CreateCondBr(large, slow, fast);
  b_.SetInsertPoint(slow);
  Value* exact = is_signed ? b_.CreateSDiv(a, b) : b_.CreateUDiv(a, b);
  b_.CreateBr(done);
  b_.SetInsertPoint(fast);
  constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52
  Value* shift = llvm::ConstantFP::get(wide, kShift);
  Value* shift_bits = number(std::bit_cast<uint64_t>(kShift));
  auto real = [&](Value* x) { return b_.CreateFSub(b_.CreateBitCast(b_.CreateAdd(x, shift_bits), wide), shift); };
  Value* whole = b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, b_.CreateFDiv(real(a), real(b)));
  Value* quotient = b_.CreateSub(b_.CreateBitCast(b_.CreateFAdd(whole, shift), type), shift_bits);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  llvm::PHINode* result = b_.CreatePHI(type, 2);
  result->addIncoming(exact, slow);
  result->addIncoming(quotient, fast);
  return result;
}

// a / b towards zero, for a divisor that is not zero. In floats whose numbers hold more than the operands' bits the
// quotient's rounding is smaller than 1 / b, so that it never reaches the next whole number.
Value* KernelEmitter::emit_truncated_quotient(DataType dtype, bool is_signed, Value* a, Value* b) {
  if (!divides_by_floats(dtype, a, b)) return is_signed ? b_.CreateSDiv(a, b) : b_.CreateUDiv(a, b);
  if (dtype.bits > 32) return emit_wide_quotient(is_signed, a, b);
  llvm::Type* wide = llvm::VectorType::get(dtype.bits > 16 ? b_.getDoubleTy() : b_.getFloatTy(),
                                           llvm::cast<llvm::VectorType>(a->getType())->getElementCount());
  auto widened = [&](Value* x) { return is_signed ? b_.CreateSIToFP(x, wide) : b_.CreateUIToFP(x, wide); };
  Value* quotient = b_.CreateFDiv(widened(a), widened(b));
  return is_signed ? b_.CreateFPToSI(quotient, a->getType()) : b_.CreateFPToUI(quotient, a->getType());
}

// Div, Mod, FloorDiv, FloorMod. Division by zero, or of the smallest integer by -1, gives an arbitrary value but never
// traps.
Value* KernelEmitter::emit_quotient(ExprKind kind, DataType dtype, Value* a, Value* b) {
  const bool is_signed = dtype.is_int() && !(is_non_negative(a) && is_non_negative(b));
  auto constant = [&](int64_t v) { return llvm::ConstantInt::getSigned(a->getType(), v); };
  const llvm::ConstantInt* divisor = llvm::dyn_cast<llvm::ConstantInt>(b);
  if (auto* c = llvm::dyn_cast<llvm::Constant>(b); c && c->getType()->isVectorTy())
    divisor = llvm::dyn_cast_or_null<llvm::ConstantInt>(c->getSplatValue());
  const bool safe = divisor && !divisor->isZero() && !divisor->isMinusOne();
  if (!safe) {
    Value* bad = b_.CreateICmpEQ(b, constant(0));
    if (is_signed)
      bad = b_.CreateOr(
          bad,
          b_.CreateAnd(b_.CreateICmpEQ(b, constant(-1)),
                       b_.CreateICmpEQ(a, constant(dtype.bits == 64 ? INT64_MIN : -(int64_t{1} << (dtype.bits - 1))))));
    b = b_.CreateSelect(bad, constant(1), b);
  }
  const bool towards_zero = kind == ExprKind::kDiv || kind == ExprKind::kMod;
  if (is_signed && !towards_zero && divisor && divisor->getValue().isPowerOf2()) {
    const int shift = divisor->getValue().exactLogBase2();
    return kind == ExprKind::kFloorDiv ? b_.CreateAShr(a, constant(shift))
                                       : b_.CreateAnd(a, constant((int64_t{1} << shift) - 1));
  }
  if (kind == ExprKind::kDiv || (!is_signed && kind == ExprKind::kFloorDiv))
    return emit_truncated_quotient(dtype, is_signed, a, b);
  const bool by_product = divides_by_floats(dtype, a, b);
  Value* quotient = by_product ? emit_truncated_quotient(dtype, is_signed, a, b) : nullptr;
  Value* rest = by_product  ? b_.CreateSub(a, b_.CreateMul(quotient, b))
                : is_signed ? b_.CreateSRem(a, b)
                            : b_.CreateURem(a, b);
  if (!is_signed || towards_zero) return rest;
  Value* wrong = b_.CreateAnd(b_.CreateICmpNE(rest, constant(0)), b_.CreateICmpSLT(b_.CreateXor(rest, b), constant(0)));
  if (kind == ExprKind::kFloorMod) return b_.CreateSelect(wrong, b_.CreateAdd(rest, b), rest);
  return b_.CreateAdd(by_product ? quotient : b_.CreateSDiv(a, b), b_.CreateSExt(wrong, a->getType()));
}

}  // namespace tilewright::codegen
