// SPDX-License-Identifier: Apache-2.0
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsARM.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include <cmath>
#include <numeric>

#include "base/format.h"
#include "codegen/llvm/emitter.h"
#include "codegen/llvm/machine.h"
#include "codegen/llvm/types.h"

namespace tilewright::codegen {

using namespace tir;
using llvm::Value;

KernelEmitter::KernelEmitter(llvm::IRBuilderBase& builder, llvm::BasicBlock* entry, const Target& target)
    : b_(builder), entry_(entry), target_(target), math_(builder, target) {}

Value* KernelEmitter::fail(std::string message) {
  if (!error_) error_ = Diagnostic(ErrorCode::kCodegenFailed, std::move(message));
  return nullptr;
}

Value* KernelEmitter::undefined(DataType dtype) {
  llvm::Type* type = value_type(b_.getContext(), dtype);
  if (type == nullptr) {
    fail(format("code generation has no {} values", dtype.str()));
    type = with_lanes(b_.getFloatTy(), dtype.lanes);
  }
  return llvm::PoisonValue::get(type);
}

void KernelEmitter::forget(size_t mark) {
  while (memo_order_.size() > mark) {
    memo_.erase(memo_order_.back());
    memo_order_.pop_back();
  }
}

bool KernelEmitter::is_index(Value* v) const { return llvm::isa<llvm::ConstantInt>(v) || index_values_.count(v) != 0; }
bool KernelEmitter::is_non_negative(Value* v) const {
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(v)) return !c->isNegative();
  return non_negative_.count(v) != 0;
}
Value* KernelEmitter::note(Value* v, bool index, bool non_negative) {
  if (!llvm::isa<llvm::Constant>(v)) {
    if (index) index_values_.insert(v);
    if (non_negative) non_negative_.insert(v);
  }
  return v;
}

Value* KernelEmitter::splat(Value* value, int lanes) {
  return lanes == 1 ? value : b_.CreateVectorSplat(static_cast<unsigned>(lanes), value);
}
Value* KernelEmitter::lane(Value* vector, int i) {
  return lanes_of(vector) == 1 ? vector : b_.CreateExtractElement(vector, static_cast<uint64_t>(i));
}

// Concatenates the lanes of a and b, whose lengths may differ.
Value* KernelEmitter::concat(Value* a, Value* b) {
  const int na = lanes_of(a), nb = lanes_of(b), wide = std::max(na, nb);
  auto as_vector = [&](Value* v) {
    const int n = lanes_of(v);
    if (n == 1) {
      auto* type = llvm::FixedVectorType::get(v->getType(), static_cast<unsigned>(wide));
      return b_.CreateInsertElement(llvm::PoisonValue::get(type), v, uint64_t{0});
    }
    if (n == wide) return v;
    std::vector<int> pick(static_cast<size_t>(wide), -1);
    std::iota(pick.begin(), pick.begin() + n, 0);
    return b_.CreateShuffleVector(v, pick);
  };
  std::vector<int> pick;
  for (int i = 0; i < na; ++i) pick.push_back(i);
  for (int i = 0; i < nb; ++i) pick.push_back(wide + i);
  if (wide == 1) {
    Value* pair = llvm::PoisonValue::get(llvm::FixedVectorType::get(a->getType(), 2));
    return b_.CreateInsertElement(b_.CreateInsertElement(pair, a, uint64_t{0}), b, uint64_t{1});
  }
  return b_.CreateShuffleVector(as_vector(a), as_vector(b), pick);
}

Value* KernelEmitter::emit_constant(DataType dtype, double number) {
  llvm::Type* type = value_type(b_.getContext(), dtype);
  if (is_small_float(dtype)) return llvm::ConstantInt::get(type, small_float_bits(dtype, number));
  return llvm::ConstantFP::get(type, number);
}

Value* KernelEmitter::emit(const ExprNode* e) {
  if (e->kind == ExprKind::kVar) {
    auto found = vars_.find(e);
    if (found != vars_.end()) return found->second;
    fail(format("variable '{}' is used where it has no value", static_cast<const VarNode*>(e)->name));
    return undefined(e->dtype);
  }
  if (auto found = memo_.find(e); found != memo_.end()) return found->second;
  Value* value = error_ ? nullptr : emit_uncached(e);
  if (value == nullptr) value = undefined(e->dtype);
  memo_.emplace(e, value);
  memo_order_.push_back(e);
  return value;
}

Value* KernelEmitter::emit_uncached(const ExprNode* e) {
  llvm::Type* type = value_type(b_.getContext(), e->dtype);
  if (type == nullptr) return undefined(e->dtype);
  if (const auto known = byte_functions_.find(e); known != byte_functions_.end())
    return emit_table(emit(known->second.source), known->second.table);
  if (is_binary(e->kind)) return emit_binary(static_cast<const BinaryNode*>(e));
  switch (e->kind) {
    case ExprKind::kIntImm:
      return llvm::ConstantInt::get(type, static_cast<uint64_t>(static_cast<const IntImmNode*>(e)->value), true);
    case ExprKind::kFloatImm:
      return emit_constant(e->dtype, static_cast<const FloatImmNode*>(e)->value);
    case ExprKind::kNot:
      return b_.CreateNot(emit(static_cast<const NotNode*>(e)->a));
    case ExprKind::kSelect: {
      auto* n = static_cast<const SelectNode*>(e);
      Value *c = emit(n->condition), *t = emit(n->on_true), *f = emit(n->on_false);
      return note(b_.CreateSelect(c, t, f), is_index(t) && is_index(f) && is_index(c),
                  is_non_negative(t) && is_non_negative(f));
    }
    case ExprKind::kCast: {
      auto* n = static_cast<const CastNode*>(e);
      if (Value* bytes = emit_rounded_product(n)) return bytes;
      Value* v = emit(n->value);
      const DataType from = n->value->dtype;
      Value* out = convert(b_, v, from, e->dtype, target_);
      const bool widens = from.is_integral() && e->dtype.is_int() && e->dtype.bits >= from.bits;
      return widens ? note(out, is_index(v), is_non_negative(v) && from.is_int()) : out;
    }
    case ExprKind::kReinterpret: {
      auto* n = static_cast<const ReinterpretNode*>(e);
      Value* raw = to_storage(b_, emit(n->value), n->value->dtype);
      return from_storage(b_, b_.CreateBitCast(raw, storage_type(b_.getContext(), e->dtype)), e->dtype);
    }
    case ExprKind::kLoad:
      return emit_load(static_cast<const LoadNode*>(e));
    case ExprKind::kRamp: {
      auto* n = static_cast<const RampNode*>(e);
      std::vector<llvm::Constant*> steps;
      for (int i = 0; i < e->dtype.lanes; ++i)
        steps.push_back(llvm::ConstantInt::get(type->getScalarType(), static_cast<uint64_t>(n->stride * i), true));
      Value* base = emit(n->base);
      return b_.CreateAdd(splat(base, e->dtype.lanes), llvm::ConstantVector::get(steps), "", false, is_index(base));
    }
    case ExprKind::kBroadcast:
      return splat(emit(static_cast<const BroadcastNode*>(e)->value), e->dtype.lanes);
    case ExprKind::kShuffle:
      return emit_shuffle(static_cast<const ShuffleNode*>(e));
    case ExprKind::kCall:
      return emit_call(static_cast<const CallNode*>(e));
    case ExprKind::kExtern: {
      auto* n = static_cast<const ExternNode*>(e);
      std::vector<V> args;
      for (const PrimExpr& a : n->args) args.push_back(emit(a));
      return emit_extern(n->name, type, args);
    }
    case ExprKind::kLet: {
      auto* n = static_cast<const LetNode*>(e);
      vars_[n->var.get()] = emit(n->value);
      return emit(n->body);
    }
    default:
      return nullptr;  // Var and binary kinds were handled above
  }
}

// The C function of this name. It has one type per module; calls with another type go through a pointer.
Value* KernelEmitter::emit_extern(const std::string& name, llvm::Type* result, const std::vector<Value*>& args) {
  std::vector<llvm::Type*> types;
  for (Value* a : args) {
    if (a->getType()->isIntegerTy(1)) return fail(format("{} takes a bool; cast it to int32", name));
    types.push_back(a->getType());
  }
  auto* signature = llvm::FunctionType::get(result, types, false);
  llvm::Module* module = b_.GetInsertBlock()->getModule();
  llvm::CallInst* call = b_.CreateCall(signature, module->getOrInsertFunction(name, signature).getCallee(), args);
  call->setDoesNotThrow();
  return result->isVoidTy() ? nullptr : call;
}

Value* KernelEmitter::emit_binary(const BinaryNode* e) {
  if (e->kind == ExprKind::kMul && e->dtype.element() == kFloat32)
    for (const auto& [x, gate] : {std::pair{e->a, e->b}, std::pair{e->b, e->a}})
      if (gate->kind == ExprKind::kCall && as<CallNode>(gate)->op == Intrinsic::k_sigmoid &&
          as<CallNode>(gate)->args[0].get() == x.get())
        return math_.silu(emit(x));
  Value *a = emit(e->a), *b = emit(e->b);
  const DataType operands = e->a->dtype;
  if (!operands.is_float()) return emit_integer_binary(e, a, b);
  return emit_float_binary(e->kind, a, b);
}

Value* KernelEmitter::emit_float_binary(ExprKind kind, Value* a, Value* b) {
  llvm::IRBuilderBase::FastMathFlagGuard guard(b_);
  switch (kind) {
    case ExprKind::kAdd:
    case ExprKind::kSub:
    case ExprKind::kMul: {
      llvm::FastMathFlags flags;
      flags.setAllowContract(true);
      b_.setFastMathFlags(flags);
      return kind == ExprKind::kAdd   ? b_.CreateFAdd(a, b)
             : kind == ExprKind::kSub ? b_.CreateFSub(a, b)
                                      : b_.CreateFMul(a, b);
    }
    case ExprKind::kDiv:
      return b_.CreateFDiv(a, b);
    case ExprKind::kMin:
      return b_.CreateSelect(b_.CreateFCmpOLT(a, b), a, b);
    case ExprKind::kMax:
      return b_.CreateSelect(b_.CreateFCmpOGT(a, b), a, b);
    case ExprKind::kEQ:
      return b_.CreateFCmpOEQ(a, b);
    case ExprKind::kNE:
      return b_.CreateFCmpUNE(a, b);
    case ExprKind::kLT:
      return b_.CreateFCmpOLT(a, b);
    case ExprKind::kLE:
      return b_.CreateFCmpOLE(a, b);
    case ExprKind::kGT:
      return b_.CreateFCmpOGT(a, b);
    case ExprKind::kGE:
      return b_.CreateFCmpOGE(a, b);
    default:
      return fail(format("{} is not defined for floats", kind_name(kind)));
  }
}

Value* KernelEmitter::emit_integer_binary(const BinaryNode* e, Value* a, Value* b) {
  const DataType type = e->a->dtype;
  const bool is_signed = type.is_int();
  const bool index = is_signed && is_index(a) && is_index(b);
  const bool positive = is_non_negative(a) && is_non_negative(b);
  auto compare = [&](llvm::CmpInst::Predicate s, llvm::CmpInst::Predicate u) {
    return b_.CreateICmp(is_signed ? s : u, a, b);
  };
  switch (e->kind) {
    case ExprKind::kAdd:
      return note(b_.CreateAdd(a, b, "", false, index), index, index && positive);
    case ExprKind::kSub:
      return note(b_.CreateSub(a, b, "", false, index), index, false);
    case ExprKind::kMul:
      return note(b_.CreateMul(a, b, "", false, index), index, index && positive);
    case ExprKind::kDiv:
    case ExprKind::kMod:
    case ExprKind::kFloorDiv:
    case ExprKind::kFloorMod:
      return note(emit_quotient(e->kind, type, a, b), index, positive);
    case ExprKind::kMin:
    case ExprKind::kMax: {
      const bool is_min = e->kind == ExprKind::kMin;
      auto id = is_signed ? (is_min ? llvm::Intrinsic::smin : llvm::Intrinsic::smax)
                          : (is_min ? llvm::Intrinsic::umin : llvm::Intrinsic::umax);
      return note(b_.CreateBinaryIntrinsic(id, a, b), index,
                  is_min ? positive : is_signed && (is_non_negative(a) || is_non_negative(b)));
    }
    case ExprKind::kEQ:
      return b_.CreateICmpEQ(a, b);
    case ExprKind::kNE:
      return b_.CreateICmpNE(a, b);
    case ExprKind::kLT:
      return compare(llvm::CmpInst::ICMP_SLT, llvm::CmpInst::ICMP_ULT);
    case ExprKind::kLE:
      return compare(llvm::CmpInst::ICMP_SLE, llvm::CmpInst::ICMP_ULE);
    case ExprKind::kGT:
      return compare(llvm::CmpInst::ICMP_SGT, llvm::CmpInst::ICMP_UGT);
    case ExprKind::kGE:
      return compare(llvm::CmpInst::ICMP_SGE, llvm::CmpInst::ICMP_UGE);
    case ExprKind::kAnd:
    case ExprKind::kBitAnd:
      return b_.CreateAnd(a, b);
    case ExprKind::kOr:
    case ExprKind::kBitOr:
      return b_.CreateOr(a, b);
    case ExprKind::kBitXor:
      return b_.CreateXor(a, b);
    case ExprKind::kShiftLeft:
    case ExprKind::kShiftRight: {
      // A shift by the width or more is undefined in the loop IR; freeze keeps LLVM from exploiting that in surrounding
      // code.
      Value* out = e->kind == ExprKind::kShiftLeft ? b_.CreateShl(a, b)
                   : is_signed                     ? b_.CreateAShr(a, b)
                                                   : b_.CreateLShr(a, b);
      return llvm::isa<llvm::Constant>(b) ? out : b_.CreateFreeze(out);
    }
    default:
      return nullptr;
  }
}

Value* KernelEmitter::emit_shuffle(const ShuffleNode* e) {
  std::vector<Value*> inputs;
  bool scalars = true;
  for (const PrimExpr& v : e->vectors) {
    inputs.push_back(emit(v));
    scalars &= v->dtype.lanes == 1;
  }
  const int n = static_cast<int>(e->indices.size());
  if (n == 1) {
    int i = e->indices[0];
    for (Value* v : inputs) {
      if (i < lanes_of(v)) return lane(v, i);
      i -= lanes_of(v);
    }
    return fail("a shuffle takes a lane that does not exist");
  }
  if (scalars) {
    Value* out = llvm::PoisonValue::get(with_lanes(inputs[0]->getType(), n));
    for (int i = 0; i < n; ++i)
      out = b_.CreateInsertElement(out, inputs[static_cast<size_t>(e->indices[static_cast<size_t>(i)])],
                                   static_cast<uint64_t>(i));
    return out;
  }
  if (inputs.size() == 2 && lanes_of(inputs[0]) == lanes_of(inputs[1]))
    return b_.CreateShuffleVector(inputs[0], inputs[1], e->indices);
  Value* all = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) all = concat(all, inputs[i]);
  return b_.CreateShuffleVector(all, e->indices);
}

Value* KernelEmitter::emit_reduce(const CallNode* e) {
  const DataType type = e->args[0]->dtype.element();
  Value* v = emit(e->args[0]);
  auto combine = [&](Value* a, Value* b) -> Value* {
    if (e->op == Intrinsic::k_reduce_add) return type.is_float() ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
    const bool is_min = e->op == Intrinsic::k_reduce_min;
    Value* first = type.is_float() ? (is_min ? b_.CreateFCmpOLT(a, b) : b_.CreateFCmpOGT(a, b))
                   : type.is_int() ? (is_min ? b_.CreateICmpSLT(a, b) : b_.CreateICmpSGT(a, b))
                                   : (is_min ? b_.CreateICmpULT(a, b) : b_.CreateICmpUGT(a, b));
    return b_.CreateSelect(first, a, b);
  };
  int n = lanes_of(v);
  while (n > 1 && n % 2 == 0) {
    std::vector<int> low, high;
    for (int i = 0; i < n / 2; ++i) low.push_back(i), high.push_back(i + n / 2);
    if (n == 2) return combine(lane(v, 0), lane(v, 1));
    v = combine(b_.CreateShuffleVector(v, low), b_.CreateShuffleVector(v, high));
    n /= 2;
  }
  Value* out = lane(v, 0);
  for (int i = 1; i < n; ++i) out = combine(out, lane(v, i));
  return out;
}

// if_then_else: evaluates only the selected side.
Value* KernelEmitter::emit_choice(const CallNode* e) {
  Value* condition = emit(e->args[0]);
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  auto block = [&](const char* name) { return llvm::BasicBlock::Create(b_.getContext(), name, function); };
  llvm::BasicBlock *then_block = block("choice.then"), *else_block = block("choice.else"), *done = block("choice.done");
  b_.CreateCondBr(condition, then_block, else_block);
  Value* values[2];
  llvm::BasicBlock* ends[2];
  for (int side = 0; side < 2; ++side) {
    b_.SetInsertPoint(side == 0 ? then_block : else_block);
    const size_t before = mark();
    values[side] = emit(e->args[static_cast<size_t>(side + 1)]);
    forget(before);  // values of one branch do not dominate what follows
    ends[side] = b_.GetInsertBlock();
    b_.CreateBr(done);
  }
  b_.SetInsertPoint(done);
  llvm::PHINode* out = b_.CreatePHI(values[0]->getType(), 2);
  for (int side = 0; side < 2; ++side) out->addIncoming(values[side], ends[side]);
  return out;
}

// dot4 for four lanes of ARM vectors; null without such vectors. Without an instruction for unsigned by signed bytes,
// the signed one takes the bytes minus 128; the difference, 128 times the sum of the other operand's bytes, is shared
// by the rows of a tile. Without either, products of two bytes fit 16 bits.
Value* KernelEmitter::emit_arm_dot4(Value* sum, Value* a, Value* b) {
  const Architecture architecture = processor_of(target_).architecture;
  const bool wide = architecture == Architecture::kAArch64;
  if (lanes_of(sum) != 4 || !(wide || (architecture == Architecture::kArm && has_feature(target_, "neon"))))
    return nullptr;
  namespace in = llvm::Intrinsic;
  llvm::Type* words = sum->getType();
  llvm::Type* bytes = llvm::FixedVectorType::get(b_.getInt8Ty(), 16);
  auto dot = [&](in::ID id, Value* s, Value* x, Value* y) { return b_.CreateIntrinsic(id, {words, bytes}, {s, x, y}); };
  Value *x = b_.CreateBitCast(a, bytes), *y = b_.CreateBitCast(b, bytes);
  if (has_feature(target_, "i8mm"))
    return dot(wide ? in::ID{in::aarch64_neon_usdot} : in::ID{in::arm_neon_usdot}, sum, x, y);
  if (has_feature(target_, "dotprod")) {
    const in::ID signed_dot = wide ? in::ID{in::aarch64_neon_sdot} : in::ID{in::arm_neon_sdot};
    auto number = [&](uint64_t value) { return llvm::ConstantInt::get(bytes, value); };
    Value* half = dot(signed_dot, llvm::Constant::getNullValue(words), y, number(64));
    Value* rest = b_.CreateShl(half, 1);
    return b_.CreateAdd(dot(signed_dot, sum, b_.CreateXor(x, number(0x80)), y), rest);
  }
  llvm::Type* halves = llvm::FixedVectorType::get(b_.getInt16Ty(), 8);
  Value *u = b_.CreateBitCast(a, halves), *v = b_.CreateBitCast(b, halves);
  Value* products[] = {b_.CreateMul(b_.CreateAnd(u, 255), b_.CreateAShr(b_.CreateShl(v, 8), 8)),
                       b_.CreateMul(b_.CreateLShr(u, 8), b_.CreateAShr(v, 8))};
  for (Value* product : products)
    sum = wide ? b_.CreateAdd(sum, b_.CreateIntrinsic(in::aarch64_neon_saddlp, {words, halves}, {product}))
               : b_.CreateIntrinsic(in::arm_neon_vpadals, {words, halves}, {sum, product});
  return sum;
}

// sum + the four products of each lane's bytes, exactly: one instruction if the machine has it for unsigned by signed
// bytes; otherwise pairs in 16 bits whose products fit 32 bits (byte pairs, vpmaddubsw, would saturate at 16 bits).
Value* KernelEmitter::emit_dot4(Value* sum, Value* a, Value* b) {
  if (Value* made = emit_arm_dot4(sum, a, b)) return made;
  const int lanes = lanes_of(sum);
  const bool x86 = is_x86(target_) && target_.vector_bits >= 128;
  auto has = [&](const char* feature) { return has_feature(target_, feature); };
  namespace in = llvm::Intrinsic;
  const bool dots = x86 && ((has("avx512vnni") && (lanes == 16 || has("avx512vl"))) || (has("avxvnni") && lanes <= 8));
  if (dots && (lanes == 4 || lanes == 8 || lanes == 16))
    return b_.CreateIntrinsic(lanes == 16  ? in::x86_avx512_vpdpbusd_512
                              : lanes == 8 ? in::x86_avx512_vpdpbusd_256
                                           : in::x86_avx512_vpdpbusd_128,
                              {}, {sum, a, b});
  if (lanes > 1) {
    llvm::Type* halves = llvm::FixedVectorType::get(b_.getInt16Ty(), static_cast<unsigned>(2 * lanes));
    Value *x = b_.CreateBitCast(a, halves), *y = b_.CreateBitCast(b, halves);
    if (Value* low = emit_x86_pairs(b_.CreateAnd(x, 255), b_.CreateAShr(b_.CreateShl(y, 8), 8)))
      return b_.CreateAdd(b_.CreateAdd(sum, low), emit_x86_pairs(b_.CreateLShr(x, 8), b_.CreateAShr(y, 8)));
  }
  for (int shift = 0; shift < 32; shift += 8) {
    Value* x = b_.CreateAnd(b_.CreateLShr(a, static_cast<uint64_t>(shift)), 255);
    Value* y = b_.CreateAShr(b_.CreateShl(b, static_cast<uint64_t>(24 - shift)), 24);
    sum = b_.CreateAdd(sum, b_.CreateMul(x, y));
  }
  return sum;
}

Value* KernelEmitter::emit_call(const CallNode* e) {
  switch (e->op) {
    case Intrinsic::k_dot4:
      return emit_dot4(emit(e->args[0]), emit(e->args[1]), emit(e->args[2]));
    case Intrinsic::k_dot2_bfloat16:
      return emit_dot2_bfloat16(emit(e->args[0]), emit(e->args[1]), emit(e->args[2]));
    case Intrinsic::k_dot2:
    case Intrinsic::k_even_bytes:
    case Intrinsic::k_odd_bytes:
    case Intrinsic::k_low_halves:
    case Intrinsic::k_high_halves:
      return emit_word_of_halves(e);
    case Intrinsic::k_if_then_else:
      return emit_choice(e);
    case Intrinsic::k_reduce_add:
    case Intrinsic::k_reduce_max:
    case Intrinsic::k_reduce_min:
      return emit_reduce(e);
    case Intrinsic::k_popcount:
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, emit(e->args[0]));
    case Intrinsic::k_clz:
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, emit(e->args[0]), b_.getFalse());
    default:
      break;
  }
  const DataType type = e->args[0]->dtype;
  if (!type.is_float()) return fail(format("{} is not defined for {}", intrinsic_name(e->op), type.str()));
  std::vector<Value*> args;
  for (const PrimExpr& a : e->args) args.push_back(emit(a));
  Value* out = math_.emit(e->op, args.data());
  return out ? out : fail(format("there is no code for {}", intrinsic_name(e->op)));
}

}  // namespace tilewright::codegen
