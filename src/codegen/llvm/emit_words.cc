// SPDX-License-Identifier: Apache-2.0
// Operations on words of bytes and halfwords, lane by lane: used by Cortex-M kernels (topi/conv_pairs.h) and products
// of words (topi/words.h), with the same meaning on every target.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <numeric>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/types.h"
#include "codegen/processor.h"

namespace tilewright::codegen {

using llvm::Value;
using tir::Intrinsic;

Value* KernelEmitter::emit_x86_pairs(Value* a, Value* b) {
  namespace in = llvm::Intrinsic;
  if (!is_x86(target_) || target_.vector_bits < 128) return nullptr;
  const int count = lanes_of(a) * static_cast<int>(a->getType()->getScalarSizeInBits()) / 16, lanes = count / 2;
  auto counted = [](int first, int length) {
    std::vector<int> order(static_cast<size_t>(length));
    std::iota(order.begin(), order.end(), first);
    return order;
  };
  in::ID pairs = in::not_intrinsic;
  if (lanes == 16 && has_feature(target_, "avx512bw")) pairs = in::x86_avx512_pmaddw_d_512;
  if (lanes == 8 && has_feature(target_, "avx2")) pairs = in::x86_avx2_pmadd_wd;
  if (lanes == 4) pairs = in::x86_sse2_pmadd_wd;
  if (pairs == in::not_intrinsic && (lanes < 8 || lanes % 8 != 0)) return nullptr;
  llvm::Type* halves = llvm::FixedVectorType::get(b_.getInt16Ty(), static_cast<unsigned>(count));
  a = b_.CreateBitCast(a, halves), b = b_.CreateBitCast(b, halves);
  if (pairs != in::not_intrinsic) return b_.CreateIntrinsic(pairs, {}, {a, b});
  // Wider than the machine's vectors: by halves (-vector-width=).
  auto half = [&](int first) {
    const std::vector<int> order = counted(first, lanes);
    return emit_x86_pairs(b_.CreateShuffleVector(a, order), b_.CreateShuffleVector(b, order));
  };
  return b_.CreateShuffleVector(half(0), half(lanes), counted(0, lanes));
}

Value* KernelEmitter::emit_word_of_halves(const tir::CallNode* e) {
  Value *a = emit(e->args[0]), *b = emit(e->args[1]);
  auto low = [&](Value* word) { return b_.CreateAShr(b_.CreateShl(word, 16), 16); };
  auto high = [&](Value* word) { return b_.CreateAShr(word, 16); };
  auto joined = [&](Value* below, Value* above) {
    return b_.CreateOr(b_.CreateAnd(below, 0xffff), b_.CreateShl(above, 16));
  };
  switch (e->op) {
    case Intrinsic::k_low_halves:
      return joined(a, b);
    case Intrinsic::k_high_halves:
      return joined(high(a), high(b));
    case Intrinsic::k_dot2: {
      Value* c = emit(e->args[2]);
      if (Value* products = emit_x86_pairs(b, c)) return b_.CreateAdd(a, products);
      return b_.CreateAdd(b_.CreateAdd(a, b_.CreateMul(low(b), low(c))), b_.CreateMul(high(b), high(c)));
    }
    default: {
      const uint64_t odd = e->op == Intrinsic::k_odd_bytes ? 8 : 0;
      auto byte = [&](uint64_t at) { return b_.CreateAShr(b_.CreateShl(b, 24 - at - odd), 24); };
      return joined(b_.CreateAdd(a, byte(0)), b_.CreateAdd(high(a), byte(16)));
    }
  }
}

// One instruction where there is one, which reads denormals as zero; else two multiply-adds of widened halves.
Value* KernelEmitter::emit_dot2_bfloat16(Value* sum, Value* a, Value* b) {
  namespace in = llvm::Intrinsic;
  const int lanes = lanes_of(sum);
  auto halves = [&](Value* words) {
    return b_.CreateBitCast(words, llvm::FixedVectorType::get(b_.getBFloatTy(), static_cast<unsigned>(2 * lanes)));
  };
  if (is_x86(target_) && has_feature(target_, "avx512bf16") &&
      (lanes == 16 || ((lanes == 8 || lanes == 4) && has_feature(target_, "avx512vl"))))
    return b_.CreateIntrinsic(lanes == 16  ? in::x86_avx512bf16_dpbf16ps_512
                              : lanes == 8 ? in::x86_avx512bf16_dpbf16ps_256
                                           : in::x86_avx512bf16_dpbf16ps_128,
                              {}, {sum, halves(a), halves(b)});
  if (processor_of(target_).architecture == Architecture::kAArch64 && has_feature(target_, "bf16") && lanes == 4)
    return b_.CreateIntrinsic(in::aarch64_neon_bfdot, {sum->getType(), halves(a)->getType()},
                              {sum, halves(a), halves(b)});
  auto low = [&](Value* words) { return b_.CreateBitCast(b_.CreateShl(words, 16), sum->getType()); };
  auto high = [&](Value* words) { return b_.CreateBitCast(b_.CreateAnd(words, 0xffff0000), sum->getType()); };
  sum = b_.CreateIntrinsic(in::fma, {sum->getType()}, {high(a), high(b), sum});
  return b_.CreateIntrinsic(in::fma, {sum->getType()}, {low(a), low(b), sum});
}

// Up to 16 bytes looked up among 256: in either half by seven bits, then by the eighth.
Value* KernelEmitter::emit_table(Value* source, const std::array<uint8_t, 256>& table) {
  constexpr int kLanes = 16;
  const int lanes = lanes_of(source);
  auto with_first = [&](Value* x, int count) {
    std::vector<int> order(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) order[static_cast<size_t>(i)] = i < lanes ? i : 0;
    return b_.CreateShuffleVector(x, order);
  };
  Value* wide = b_.CreateZExt(lanes == kLanes ? source : with_first(source, kLanes),
                              llvm::FixedVectorType::get(b_.getInt32Ty(), kLanes));
  llvm::Type* bytes = llvm::FixedVectorType::get(b_.getInt8Ty(), 64);
  Value* index = b_.CreateBitCast(wide, bytes);
  auto half = [&](size_t first) {
    auto part = [&](size_t at) {
      return llvm::ConstantDataVector::get(b_.getContext(), llvm::ArrayRef<uint8_t>(table.data() + at, 64));
    };
    Value* found =
        b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_qi_512, {}, {part(first), index, part(first + 64)});
    return b_.CreateBitCast(found, wide->getType());
  };
  Value* upper = b_.CreateICmpUGT(wide, llvm::ConstantInt::get(wide->getType(), 127));
  Value* out =
      b_.CreateTrunc(b_.CreateSelect(upper, half(128), half(0)), llvm::FixedVectorType::get(b_.getInt8Ty(), kLanes));
  return lanes == kLanes ? out : with_first(out, lanes);
}

}  // namespace tilewright::codegen
