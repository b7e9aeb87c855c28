// SPDX-License-Identifier: Apache-2.0
// What a quantised network does with a sum of products: in the scale of the next layer, rounded, within a byte's
// bounds. Models define it in float64, which takes twice the instructions of float32, and behind a short reduction more
// of them than the products. Both round alike except next to the middle of two integers: there alone float64 is
// computed.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>

#include <cmath>
#include <utility>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/types.h"

namespace tilewright::codegen {

using namespace tir;
using llvm::Value;

namespace {

// Of results that a byte's bounds keep, |sum * scale| is below 512: three roundings to float32 (of the sum, the scale
// and the product) move it by less than 3 * 2^-24 * 512 < 2^-13.
constexpr double kLargest = 256, kMargin = 0x1p-13;
constexpr int kLeastLanes = 4;

std::optional<double> constant_of(const PrimExpr& e) {
  if (const auto* b = as<BroadcastNode>(e)) return constant_of(b->value);
  return as_const_float(e);
}

// The other operand of a binary node with a constant one, which goes to `constant`; null for other nodes.
PrimExpr beside_constant(const PrimExpr& e, ExprKind kind, double* constant) {
  if (e->kind != kind) return nullptr;
  const auto* n = static_cast<const BinaryNode*>(e.get());
  for (const auto& [number, other] : {std::pair{n->a, n->b}, std::pair{n->b, n->a}})
    if (auto value = constant_of(number)) {
      *constant = *value;
      return other;
    }
  return nullptr;
}

// cast(byte, min(high, max(low, round(cast(float64, sum) * scale) + zero)))
struct RoundedProduct {
  PrimExpr sum, scale;
  double zero = 0, low = 0, high = 0;
};

std::optional<RoundedProduct> rounded_product(const CastNode& e) {
  const DataType byte = e.dtype.element();
  if ((byte != kUInt8 && byte != kInt8) || e.dtype.lanes < kLeastLanes || e.value->dtype.element() != kFloat64)
    return std::nullopt;
  RoundedProduct out;
  PrimExpr inner = beside_constant(e.value, ExprKind::kMin, &out.high);
  if (inner) inner = beside_constant(inner, ExprKind::kMax, &out.low);
  if (!inner) return std::nullopt;
  if (PrimExpr rounded = beside_constant(inner, ExprKind::kAdd, &out.zero)) inner = rounded;
  for (double number : {out.zero, out.low, out.high})
    if (!(std::fabs(number) < kLargest) || number != std::nearbyint(number)) return std::nullopt;
  const auto* round = as<CallNode>(inner);
  if (!round || round->op != Intrinsic::k_round || round->args[0]->kind != ExprKind::kMul) return std::nullopt;
  const auto* product = static_cast<const BinaryNode*>(round->args[0].get());
  for (const auto& [wide, scale] : {std::pair{product->a, product->b}, std::pair{product->b, product->a}}) {
    const auto* cast = as<CastNode>(wide);
    if (!cast) continue;
    const DataType from = cast->value->dtype.element();
    if (from != kInt32 && from != kFloat32) continue;
    out.sum = cast->value, out.scale = scale;
    return out;
  }
  return std::nullopt;
}

}  // namespace

Value* KernelEmitter::emit_rounded_product(const CastNode* e) {
  const auto found = rounded_product(*e);
  if (!found) return nullptr;
  Value *sum = emit(found->sum), *scale = emit(found->scale);
  const DataType from = found->sum->dtype, single = kFloat32.with_lanes(e->dtype.lanes),
                 wide = kFloat64.with_lanes(e->dtype.lanes);
  auto rounded = [&](Value* product) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::rint, product); };
  auto byte_of = [&](Value* integer, DataType dtype) {
    auto number = [&](double value) { return llvm::ConstantFP::get(integer->getType(), value); };
    Value* all = emit_float_binary(ExprKind::kAdd, integer, number(found->zero));
    Value* above = emit_float_binary(ExprKind::kMax, number(found->low), all);
    return convert(b_, emit_float_binary(ExprKind::kMin, number(found->high), above), dtype, e->dtype, target_);
  };
  llvm::Type* floats = with_lanes(b_.getFloatTy(), e->dtype.lanes);
  Value* product = b_.CreateFMul(convert(b_, sum, from, single, target_), b_.CreateFPCast(scale, floats));
  Value* integer = rounded(product);
  Value* distance = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, b_.CreateFSub(product, integer));
  Value* close = b_.CreateOrReduce(b_.CreateFCmpUGE(distance, llvm::ConstantFP::get(floats, 0.5 - kMargin)));
  Value* fast = byte_of(integer, single);

  llvm::BasicBlock* from_block = b_.GetInsertBlock();
  llvm::Function* function = from_block->getParent();
  auto* exact = llvm::BasicBlock::Create(b_.getContext(), "round.exact", function);
  auto* done = llvm::BasicBlock::Create(b_.getContext(), "round.done", function);
  b_.CreateCondBr(close, exact, done, llvm::MDBuilder(b_.getContext()).createBranchWeights(1, 1 << 10));
  b_.SetInsertPoint(exact);
  Value* slow = byte_of(rounded(b_.CreateFMul(convert(b_, sum, from, wide, target_), scale)), wide);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
  llvm::PHINode* out = b_.CreatePHI(fast->getType(), 2);
  out->addIncoming(fast, from_block);
  out->addIncoming(slow, exact);
  return out;
}

}  // namespace tilewright::codegen
