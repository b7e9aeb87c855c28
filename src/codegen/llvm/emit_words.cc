// SPDX-License-Identifier: Apache-2.0
// Operations on words of bytes and halfwords, lane by lane: used by Cortex-M kernels (topi/conv_pairs.h), with the same
// meaning on every target.
#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/emitter.h"

namespace tilewright::codegen {

using llvm::Value;
using tir::Intrinsic;

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
      return b_.CreateAdd(b_.CreateAdd(a, b_.CreateMul(low(b), low(c))), b_.CreateMul(high(b), high(c)));
    }
    default: {
      const uint64_t odd = e->op == Intrinsic::k_odd_bytes ? 8 : 0;
      auto byte = [&](uint64_t at) { return b_.CreateAShr(b_.CreateShl(b, 24 - at - odd), 24); };
      return joined(b_.CreateAdd(a, byte(0)), b_.CreateAdd(high(a), byte(16)));
    }
  }
}

}  // namespace tilewright::codegen
