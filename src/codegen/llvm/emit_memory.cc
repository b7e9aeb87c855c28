// SPDX-License-Identifier: Apache-2.0
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <numeric>

#include "base/format.h"
#include "codegen/llvm/emitter.h"
#include "codegen/llvm/types.h"
#include "codegen/processor.h"

namespace tilewright::codegen {

using namespace tir;
using llvm::Value;

namespace {

int element_bytes(const BufferNode* buffer) { return static_cast<int>(buffer->dtype.element().bytes()); }

// The alignment of any element: a buffer's own alignment may be less than an element's (user memory). LLVM's
// InferAlignment increases it where base and index allow.
llvm::Align element_alignment(const BufferNode* buffer) {
  int bytes = std::min(element_bytes(buffer), std::max(1, buffer->alignment));
  while (bytes & (bytes - 1)) --bytes;
  return llvm::Align(static_cast<uint64_t>(bytes));
}

const RampNode* as_ramp(const ExprNode* e) {
  return e->kind == ExprKind::kRamp ? static_cast<const RampNode*>(e) : nullptr;
}

// The runs of a constant mask's lanes, in pieces of powers of two: (first lane, count).
std::vector<std::pair<int, int>> pieces_of(const llvm::Constant* mask, int lanes) {
  auto on = [&](int lane) {
    const llvm::Constant* bit = mask->getAggregateElement(static_cast<unsigned>(lane));
    return bit != nullptr && bit->isOneValue();
  };
  std::vector<std::pair<int, int>> out;
  for (int first = 0; first < lanes;) {
    int run = 0;
    while (first + run < lanes && on(first + run)) ++run;
    int count = 1;
    while (count * 2 <= run) count *= 2;
    if (run > 0) out.emplace_back(first, count);
    first += count;
  }
  return out;
}

}  // namespace

KernelEmitter::Slots* KernelEmitter::slots_of(const BufferNode* buffer) {
  auto found = buffers_.find(buffer);
  if (found != buffers_.end()) return &found->second;
  fail(format("buffer '{}' is neither a parameter nor allocated here", buffer->name));
  return nullptr;
}

void KernelEmitter::bind_parameter(const Buffer& buffer, Value* pointer) { buffers_[buffer.get()].memory = pointer; }

void KernelEmitter::bind_index(const PrimExpr& var, Value* value) {
  vars_[var.get()] = note(value, true, true);
  var_depth_[var.get()] = 0;
}

llvm::AllocaInst* KernelEmitter::allocate_slot(llvm::Type* type, int alignment, const std::string& name) {
  llvm::IRBuilder<> front(entry_, entry_->begin());
  llvm::AllocaInst* slot = front.CreateAlloca(type, nullptr, name);
  if (alignment > 0) slot->setAlignment(llvm::Align(static_cast<uint64_t>(alignment)));
  return slot;
}

void KernelEmitter::emit_allocate(const BufferNode* buffer) {
  constexpr int64_t kMaxRegisters = 4096, kMaxStack = 256 << 10;
  Slots slots;
  llvm::Type* type = buffer->scope == Scope::kRegister ? value_type(b_.getContext(), buffer->dtype)
                                                       : storage_type(b_.getContext(), buffer->dtype.element());
  if (type == nullptr) {
    fail(format("buffer '{}': code generation has no {} elements", buffer->name, buffer->dtype.str()));
    return;
  }
  if (buffer->scope == Scope::kRegister) {
    if (buffer->size > kMaxRegisters) {
      fail(format("register buffer '{}' has {} elements; at most {} make sense", buffer->name, buffer->size,
                  kMaxRegisters));
      return;
    }
    for (int64_t i = 0; i < buffer->size; ++i) slots.elements.push_back(allocate_slot(type, 0, buffer->name));
  } else if (buffer->scope == Scope::kStack) {
    const int64_t bytes = buffer->size <= kMaxStack ? buffer->size * element_bytes(buffer) : buffer->size;
    if ((stack_bytes_ += bytes) > kMaxStack) {
      fail(format("stack buffers up to '{}' take more than {} bytes", buffer->name, kMaxStack));
      return;
    }
    slots.memory = allocate_slot(llvm::ArrayType::get(type, static_cast<uint64_t>(std::max<int64_t>(1, buffer->size))),
                                 std::max(buffer->alignment, 64), buffer->name);
  } else {
    fail(format("buffer '{}' is a parameter, not an allocation", buffer->name));
    return;
  }
  buffers_[buffer] = std::move(slots);
}

llvm::AllocaInst* KernelEmitter::register_slot(const BufferNode* buffer, const PrimExpr& index) {
  Slots* slots = slots_of(buffer);
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(emit(index));
  if (slots == nullptr) return nullptr;
  if (constant == nullptr) {
    fail(format("register buffer '{}' is indexed by a variable; unroll the loop around it", buffer->name));
    return nullptr;
  }
  const int64_t i = constant->getSExtValue();
  if (i < 0 || i >= static_cast<int64_t>(slots->elements.size())) {
    fail(format("element {} of register buffer '{}', which has {}", i, buffer->name, slots->elements.size()));
    return nullptr;
  }
  return slots->elements[static_cast<size_t>(i)];
}

// The depth of the innermost loop whose variable occurs in `e`; loads count as innermost.
int KernelEmitter::depth_of(const ExprNode* e, int* budget) {
  if (--*budget < 0) return loop_depth_;
  switch (e->kind) {
    case ExprKind::kIntImm:
      return 0;
    case ExprKind::kVar: {
      auto found = var_depth_.find(e);
      return found == var_depth_.end() ? loop_depth_ : found->second;
    }
    case ExprKind::kCast:
      return depth_of(static_cast<const CastNode*>(e)->value.get(), budget);
    default:
      break;
  }
  if (!is_binary(e->kind)) return loop_depth_;
  auto* n = static_cast<const BinaryNode*>(e);
  return std::max(depth_of(n->a.get(), budget), depth_of(n->b.get(), budget));
}

void KernelEmitter::linearize(const ExprNode* e, int64_t scale, Linear* out, int* budget) {
  if (--*budget > 0) {
    if (e->kind == ExprKind::kIntImm) {
      out->offset += scale * static_cast<const IntImmNode*>(e)->value;
      return;
    }
    if (e->kind == ExprKind::kVar) {
      if (auto bound = vars_.find(e); bound != vars_.end())
        if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(bound->second)) {
          out->offset += scale * c->getSExtValue();
          return;
        }
      if (auto let = lets_.find(e); let != lets_.end()) return linearize(let->second, scale, out, budget);
    }
    if (e->kind == ExprKind::kAdd || e->kind == ExprKind::kSub) {
      auto* n = static_cast<const BinaryNode*>(e);
      linearize(n->a.get(), scale, out, budget);
      linearize(n->b.get(), e->kind == ExprKind::kAdd ? scale : -scale, out, budget);
      return;
    }
    if (e->kind == ExprKind::kMul) {
      auto* n = static_cast<const BinaryNode*>(e);
      if (auto c = as_const_int(n->b)) return linearize(n->a.get(), scale * *c, out, budget);
      if (auto c = as_const_int(n->a)) return linearize(n->b.get(), scale * *c, out, budget);
    }
  }
  for (auto& term : out->terms)
    if (term.expr == e) {
      term.scale += scale;
      return;
    }
  int depth_budget = 32;
  out->terms.push_back({e, scale, depth_of(e, &depth_budget)});
}

Value* KernelEmitter::address(const BufferNode* buffer, Value* index) {
  Slots* slots = slots_of(buffer);
  if (slots == nullptr || slots->memory == nullptr) {
    fail(format("register buffer '{}' has no address", buffer->name));
    return llvm::PoisonValue::get(b_.getPtrTy());
  }
  llvm::Type* element = storage_type(b_.getContext(), buffer->dtype.element());
  if (element == nullptr) {
    fail(format("buffer '{}': code generation has no {} elements", buffer->name, buffer->dtype.str()));
    return llvm::PoisonValue::get(b_.getPtrTy());
  }
  return b_.CreateInBoundsGEP(element, slots->memory, index);
}

// `inside`: the element exists; false for prefetches.
Value* KernelEmitter::address(const BufferNode* buffer, const ExprNode* index, bool inside) {
  Slots* slots = slots_of(buffer);
  llvm::Type* element = storage_type(b_.getContext(), buffer->dtype.element());
  if (slots == nullptr || slots->memory == nullptr || element == nullptr || !(index->dtype == kInt64)) {
    Value* i = emit(index);
    if (index->dtype.is_uint()) i = b_.CreateZExt(i, b_.getInt64Ty());
    return address(buffer, i);
  }
  Linear sum;
  int budget = 256;
  linearize(index, 1, &sum, &budget);
  std::stable_sort(sum.terms.begin(), sum.terms.end(), [](const auto& a, const auto& b) { return a.depth < b.depth; });
  Value* total = nullptr;
  for (const Linear::Term& term : sum.terms) {
    if (term.scale == 0) continue;
    Value* v = emit(term.expr);
    const bool simple = is_index(v);
    if (term.scale != 1)
      v = note(b_.CreateMul(v, b_.getInt64(static_cast<uint64_t>(term.scale)), "", false, simple), simple,
               term.scale > 0 && is_non_negative(v));
    if (total != nullptr) {
      const bool both = simple && is_index(total);
      v = note(b_.CreateAdd(total, v, "", false, both), both, is_non_negative(total) && is_non_negative(v));
    }
    total = v;
  }
  // Only the complete sum is known to be inside the buffer: the address without the constant may not be.
  Value* pointer = slots->memory;
  if (total != nullptr)
    pointer = sum.offset == 0 && inside ? b_.CreateInBoundsGEP(element, pointer, total)
                                        : b_.CreateGEP(element, pointer, total);
  if (sum.offset != 0) pointer = b_.CreateConstGEP1_64(element, pointer, static_cast<uint64_t>(sum.offset));
  return pointer;
}

Value* KernelEmitter::contiguous_load(const BufferNode* buffer, Value* pointer, int lanes, Value* mask) {
  const DataType dtype = buffer->dtype.element().with_lanes(lanes);
  llvm::Type* type = storage_type(b_.getContext(), dtype);
  if (type == nullptr) return undefined(dtype);
  Value* raw;
  auto* known = llvm::dyn_cast_or_null<llvm::Constant>(mask);
  if (mask == nullptr || lanes == 1) {
    raw = b_.CreateAlignedLoad(type, pointer, element_alignment(buffer));
  } else if (known && target_.vector_bits < 512 && type->getScalarSizeInBits() < 32) {
    raw = load_pieces(buffer, llvm::cast<llvm::FixedVectorType>(type), pointer, known);
  } else {
    raw = b_.CreateMaskedLoad(type, pointer, element_alignment(buffer), mask, llvm::Constant::getNullValue(type));
  }
  return from_storage(b_, raw, dtype);
}

// Constant strides that a contiguous load plus a shuffle can serve.
Value* KernelEmitter::strided_load(const LoadNode* e, const RampNode* ramp) {
  const int n = e->dtype.lanes;
  std::vector<int> pick;
  if (ramp->stride == -1) {
    for (int i = n - 1; i >= 0; --i) pick.push_back(i);
    Value* last = b_.CreateInBoundsGEP(storage_type(b_.getContext(), e->buffer->dtype.element()),
                                       address(e->buffer.get(), ramp->base.get()),
                                       llvm::ConstantInt::getSigned(b_.getInt64Ty(), 1 - n));
    return b_.CreateShuffleVector(contiguous_load(e->buffer.get(), last, n, nullptr), pick);
  }
  // Stride 2: loads elements 0..n-1 and n-1..2n-2, so that nothing past the last one is read.
  Value* first = address(e->buffer.get(), ramp->base.get());
  Value* second = b_.CreateConstInBoundsGEP1_64(storage_type(b_.getContext(), e->buffer->dtype.element()), first,
                                                static_cast<uint64_t>(n - 1));
  for (int i = 0; i < n; ++i) pick.push_back(2 * i < n ? 2 * i : n + 2 * i - (n - 1));
  return b_.CreateShuffleVector(contiguous_load(e->buffer.get(), first, n, nullptr),
                                contiguous_load(e->buffer.get(), second, n, nullptr), pick);
}

// Without AVX-512 no instruction loads bytes or halves under a mask: LLVM would load them one by one.
Value* KernelEmitter::load_pieces(const BufferNode* buffer, llvm::FixedVectorType* type, Value* pointer,
                                  const llvm::Constant* mask) {
  const int lanes = static_cast<int>(type->getNumElements());
  Value* out = llvm::Constant::getNullValue(type);
  for (const auto& [first, count] : pieces_of(mask, lanes)) {
    Value* from = b_.CreateConstInBoundsGEP1_64(type->getElementType(), pointer, static_cast<uint64_t>(first));
    Value* piece = b_.CreateAlignedLoad(with_lanes(type->getElementType(), count), from, element_alignment(buffer));
    if (count == 1) {
      out = b_.CreateInsertElement(out, piece, static_cast<uint64_t>(first));
      continue;
    }
    std::vector<int> widened(static_cast<size_t>(lanes), -1), merged(static_cast<size_t>(lanes));
    std::iota(widened.begin(), widened.begin() + count, 0);
    std::iota(merged.begin(), merged.end(), 0);
    for (int i = 0; i < count; ++i) merged[static_cast<size_t>(first + i)] = lanes + i;
    out = b_.CreateShuffleVector(out, count == lanes ? piece : b_.CreateShuffleVector(piece, widened), merged);
  }
  return out;
}

// Without AVX-512 a masked store is microcoded on AMD (about five plain stores).
void KernelEmitter::store_pieces(const BufferNode* buffer, Value* value, Value* pointer, const llvm::Constant* mask) {
  const llvm::Align align = element_alignment(buffer);
  auto* type = llvm::cast<llvm::FixedVectorType>(value->getType());
  for (const auto& [first, count] : pieces_of(mask, static_cast<int>(type->getNumElements()))) {
    Value* to = b_.CreateConstInBoundsGEP1_64(type->getElementType(), pointer, static_cast<uint64_t>(first));
    std::vector<int> pick(static_cast<size_t>(count));
    std::iota(pick.begin(), pick.end(), first);
    Value* piece =
        count == 1 ? b_.CreateExtractElement(value, static_cast<uint64_t>(first)) : b_.CreateShuffleVector(value, pick);
    b_.CreateAlignedStore(piece, to, align);
  }
}

// Past the caches, which would otherwise read a line before it is overwritten. Such stores must be aligned, and where a
// caller's memory begins is known only at run time; the branch always goes the same way.
void KernelEmitter::store_streamed(Value* value, Value* pointer, llvm::Align align) {
  const uint64_t whole =
      b_.GetInsertBlock()->getModule()->getDataLayout().getTypeStoreSize(value->getType()).getFixedValue();
  const uint64_t bytes = std::min<uint64_t>(whole, static_cast<uint64_t>(target_.vector_bits) / 8);
  if (bytes < 16 || (bytes & (bytes - 1)) != 0 || whole % bytes != 0) {
    b_.CreateAlignedStore(value, pointer, align);
    return;
  }
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  auto* past = llvm::BasicBlock::Create(b_.getContext(), "store.past", function);
  auto* through = llvm::BasicBlock::Create(b_.getContext(), "store.through", function);
  auto* done = llvm::BasicBlock::Create(b_.getContext(), "store.done", function);
  Value* rest = b_.CreateAnd(b_.CreatePtrToInt(pointer, b_.getInt64Ty()), b_.getInt64(bytes - 1));
  b_.CreateCondBr(b_.CreateICmpEQ(rest, b_.getInt64(0)), past, through);
  b_.SetInsertPoint(past);
  llvm::StoreInst* store = b_.CreateAlignedStore(value, pointer, llvm::Align(bytes));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                     llvm::MDNode::get(b_.getContext(), llvm::ConstantAsMetadata::get(b_.getInt32(1))));
  b_.CreateBr(done);
  b_.SetInsertPoint(through);
  b_.CreateAlignedStore(value, pointer, align);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

// Lane by lane: gather instructions are microcoded on AMD. An inactive lane reads element 0, which exists.
Value* KernelEmitter::gather(const LoadNode* e) {
  const BufferNode* buffer = e->buffer.get();
  const RampNode* ramp = as_ramp(e->index.get());
  const bool uniform = e->index->kind == ExprKind::kBroadcast;
  Value* mask = e->mask ? emit(e->mask) : nullptr;
  if (uniform && mask == nullptr)
    return splat(
        contiguous_load(buffer, address(buffer, static_cast<const BroadcastNode*>(e->index.get())->value.get()), 1,
                        nullptr),
        e->dtype.lanes);
  Value* indices = ramp ? nullptr : emit(e->index);
  Value* base = ramp ? address(buffer, ramp->base.get()) : nullptr;
  llvm::Type* element = storage_type(b_.getContext(), buffer->dtype.element());
  Value* zero = llvm::Constant::getNullValue(value_type(b_.getContext(), buffer->dtype.element()));
  Value* out = llvm::PoisonValue::get(value_type(b_.getContext(), e->dtype));
  Value* home = mask ? address(buffer, b_.getInt64(0)) : nullptr;
  for (int i = 0; i < e->dtype.lanes; ++i) {
    Value* pointer;
    if (ramp) {
      pointer = b_.CreateGEP(element, base, llvm::ConstantInt::getSigned(b_.getInt64Ty(), ramp->stride * i));
    } else {
      Value* index = lane(indices, i);
      if (e->index->dtype.is_uint()) index = b_.CreateZExt(index, b_.getInt64Ty());
      pointer = b_.CreateGEP(element, address(buffer, b_.getInt64(0)), index);
    }
    Value* on = mask ? lane(mask, i) : nullptr;
    if (on) pointer = b_.CreateSelect(on, pointer, home);
    Value* value = contiguous_load(buffer, pointer, 1, nullptr);
    if (on) value = b_.CreateSelect(on, value, zero);
    out = b_.CreateInsertElement(out, value, static_cast<uint64_t>(i));
  }
  return out;
}

void KernelEmitter::emit_prefetch(const PrefetchNode* s) {
  if (s->buffer->scope == Scope::kRegister || !(s->index->dtype == kInt64)) return;
  Value* pointer = address(s->buffer.get(), s->index.get(), /*inside=*/false);
  // Prefetches data for reading into the L1 cache.
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {pointer->getType()},
                     {pointer, b_.getInt32(0), b_.getInt32(3), b_.getInt32(1)});
}

Value* KernelEmitter::emit_load(const LoadNode* e) {
  const BufferNode* buffer = e->buffer.get();
  if (buffer->scope == Scope::kRegister) {
    llvm::AllocaInst* slot = register_slot(buffer, e->index);
    return slot ? b_.CreateLoad(slot->getAllocatedType(), slot) : nullptr;
  }
  if (storage_type(b_.getContext(), buffer->dtype.element()) == nullptr)
    return fail(format("buffer '{}': code generation has no {} elements", buffer->name, buffer->dtype.str()));
  if (e->dtype.lanes == 1) {
    Value* pointer = address(buffer, e->index.get());
    if (!e->mask) return contiguous_load(buffer, pointer, 1, nullptr);
    Value* on = emit(e->mask);
    Value* value = contiguous_load(buffer, b_.CreateSelect(on, pointer, address(buffer, b_.getInt64(0))), 1, nullptr);
    return b_.CreateSelect(on, value, llvm::Constant::getNullValue(value->getType()));
  }
  const RampNode* ramp = as_ramp(e->index.get());
  if (ramp && ramp->stride == 1)
    return contiguous_load(buffer, address(buffer, ramp->base.get()), e->dtype.lanes,
                           e->mask ? emit(e->mask) : nullptr);
  if (ramp && !e->mask && (ramp->stride == -1 || ramp->stride == 2)) return strided_load(e, ramp);
  return gather(e);
}

void KernelEmitter::emit_store(const StoreNode* s) {
  const BufferNode* buffer = s->buffer.get();
  Value* value = emit(s->value);
  if (buffer->scope == Scope::kRegister) {
    if (llvm::AllocaInst* slot = register_slot(buffer, s->index)) b_.CreateStore(value, slot);
    return;
  }
  if (storage_type(b_.getContext(), buffer->dtype.element()) == nullptr) {
    fail(format("buffer '{}': code generation has no {} elements", buffer->name, buffer->dtype.str()));
    return;
  }
  if (buffer->read_only) {
    fail(format("store to the read-only buffer '{}'", buffer->name));
    return;
  }
  const DataType dtype = s->value->dtype;
  Value* raw = to_storage(b_, value, dtype);
  const llvm::Align align = element_alignment(buffer);
  const RampNode* ramp = as_ramp(s->index.get());
  Value* mask = s->mask ? emit(s->mask) : nullptr;
  if (dtype.lanes > 1 && ramp && ramp->stride == 1) {
    Value* pointer = address(buffer, ramp->base.get());
    if (auto* lanes = llvm::dyn_cast_or_null<llvm::Constant>(mask); lanes && target_.vector_bits < 512)
      store_pieces(buffer, raw, pointer, lanes);
    else if (mask)
      b_.CreateMaskedStore(raw, pointer, align, mask);
    else if (buffer->streamed && processor_of(target_).architecture == Architecture::kX86_64)
      store_streamed(raw, pointer, align);
    else
      b_.CreateAlignedStore(raw, pointer, align);
    return;
  }
  // Lane by lane, in order: if several lanes write one element, the last wins.
  Value* indices = dtype.lanes == 1 || ramp ? nullptr : emit(s->index);
  Value* base = dtype.lanes == 1 ? address(buffer, s->index.get())
                : ramp           ? address(buffer, ramp->base.get())
                                 : address(buffer, b_.getInt64(0));
  llvm::Type* element = storage_type(b_.getContext(), buffer->dtype.element());
  for (int i = 0; i < dtype.lanes; ++i) {
    Value* pointer = base;
    if (ramp) {
      pointer = b_.CreateGEP(element, base, llvm::ConstantInt::getSigned(b_.getInt64Ty(), ramp->stride * i));
    } else if (indices) {
      Value* index = lane(indices, i);
      if (s->index->dtype.is_uint()) index = b_.CreateZExt(index, b_.getInt64Ty());
      pointer = b_.CreateGEP(element, base, index);
    }
    if (mask == nullptr) {
      b_.CreateAlignedStore(lane(raw, i), pointer, align);
      continue;
    }
    llvm::Function* function = b_.GetInsertBlock()->getParent();
    auto* on = llvm::BasicBlock::Create(b_.getContext(), "store.on", function);
    auto* next = llvm::BasicBlock::Create(b_.getContext(), "store.next", function);
    b_.CreateCondBr(lane(mask, i), on, next);
    b_.SetInsertPoint(on);
    b_.CreateAlignedStore(lane(raw, i), pointer, align);
    b_.CreateBr(next);
    b_.SetInsertPoint(next);
  }
}

}  // namespace tilewright::codegen
