// SPDX-License-Identifier: Apache-2.0
// Quotients and rests of whole numbers.
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/machine.h"
#include "codegen/processor.h"

namespace tilewright::codegen {

using namespace tir;
using llvm::Value;

// Processors divide vectors of whole numbers element by element, and vectors of floating ones at once.
bool KernelEmitter::divides_by_floats(DataType dtype, const Value* a, const Value* b) const {
  const Architecture architecture = processor_of(target_).architecture;
  return a->getType()->isVectorTy() && !llvm::isa<llvm::Constant>(b) && dtype.bits <= 32 &&
         (architecture == Architecture::kX86_64 || architecture == Architecture::kAArch64);
}

// a / b towards zero, for a divisor that is not zero. In floats whose numbers hold more than the operands' bits the
// quotient's rounding is smaller than 1 / b, so that it never reaches the next whole number.
Value* KernelEmitter::emit_truncated_quotient(DataType dtype, bool is_signed, Value* a, Value* b) {
  if (!divides_by_floats(dtype, a, b)) return is_signed ? b_.CreateSDiv(a, b) : b_.CreateUDiv(a, b);
  llvm::Type* wide = llvm::VectorType::get(dtype.bits > 16 ? b_.getDoubleTy() : b_.getFloatTy(),
                                           llvm::cast<llvm::VectorType>(a->getType())->getElementCount());
  auto widened = [&](Value* x) { return is_signed ? b_.CreateSIToFP(x, wide) : b_.CreateUIToFP(x, wide); };
  Value* quotient = b_.CreateFDiv(widened(a), widened(b));
  return is_signed ? b_.CreateFPToSI(quotient, a->getType()) : b_.CreateFPToUI(quotient, a->getType());
}

// Div, FloorDiv, FloorMod. Division by zero, or of the smallest integer by -1, gives an arbitrary value but never
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
  if (is_signed && kind != ExprKind::kDiv && divisor && divisor->getValue().isPowerOf2()) {
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
  if (!is_signed) return rest;
  Value* wrong = b_.CreateAnd(b_.CreateICmpNE(rest, constant(0)), b_.CreateICmpSLT(b_.CreateXor(rest, b), constant(0)));
  if (kind == ExprKind::kFloorMod) return b_.CreateSelect(wrong, b_.CreateAdd(rest, b), rest);
  return b_.CreateAdd(by_product ? quotient : b_.CreateSDiv(a, b), b_.CreateSExt(wrong, a->getType()));
}

}  // namespace tilewright::codegen
