// SPDX-License-Identifier: Apache-2.0
#include "codegen/llvm/ffi_entry.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <optional>

#include "base/format.h"
#include "base/formats/artifact.h"
#include "base/tensor.h"
#include "codegen/llvm/kernel.h"

namespace tilewright::codegen {
namespace {

using llvm::Value;

// Constants of tvm-ffi's c_api.h and of dlpack.h.
constexpr int kTensorPointer = 7, kTensorObject = 70, kObjectHeader = 24, kCpu = 1;
constexpr int kAnyBytes = 16, kAnyValue = 8;
constexpr int kDeviceAt = 8, kRankAt = 16, kDtypeAt = 20, kShapeAt = 24, kStridesAt = 32, kByteOffsetAt = 40;

// A DLDataType packed into one integer.
std::optional<uint32_t> dlpack_dtype(DataType t) {
  auto number = [&](uint32_t code, uint32_t bits) { return code | bits << 8 | 1u << 16; };
  if (t.lanes != 1) return std::nullopt;
  if (t.code == TypeCode::kBool) return number(6, 8);
  if (t.bits < 8) return std::nullopt;
  switch (t.code) {
    case TypeCode::kInt:
      return number(0, t.bits);
    case TypeCode::kUInt:
      return number(1, t.bits);
    case TypeCode::kFloat:
      return number(2, t.bits);
    case TypeCode::kBFloat:
      return number(4, t.bits);
    default:
      return std::nullopt;
  }
}

struct Entry {
  llvm::Module& module;
  const plan::Plan& plan;
  const Target& target;
  llvm::IRBuilder<> b{module.getContext()};
  llvm::Type *ptr = b.getPtrTy(), *i32 = b.getInt32Ty(), *i64 = b.getInt64Ty();

  llvm::Constant* constant(llvm::Constant* value, const char* name) {
    return new llvm::GlobalVariable(module, value->getType(), true, llvm::GlobalValue::PrivateLinkage, value, name);
  }
  llvm::Constant* text(const std::string& s) {
    return constant(llvm::ConstantDataArray::getString(module.getContext(), s), "ffi.text");
  }
  llvm::Function* weak(const char* name, llvm::Type* result, const std::vector<llvm::Type*>& params) {
    auto* f = llvm::cast<llvm::Function>(
        module.getOrInsertFunction(name, llvm::FunctionType::get(result, params, false)).getCallee());
    f->setLinkage(llvm::GlobalValue::ExternalWeakLinkage);
    return f;
  }
  Value* field(llvm::Type* type, Value* base, int at) {
    return b.CreateAlignedLoad(type, b.CreateConstGEP1_64(b.getInt8Ty(), base, at), llvm::Align(4));
  }

  // ptr tensor(any, dtype, rank, shape): the data pointer of a compact tensor in host memory, or null.
  llvm::Function* tensor_function() {
    auto* f = llvm::Function::Create(llvm::FunctionType::get(ptr, {ptr, i32, i32, ptr}, false),
                                     llvm::GlobalValue::InternalLinkage, "tw_ffi_tensor", module);
    set_function_attributes(f, target);
    auto block = [&](const char* name) { return llvm::BasicBlock::Create(module.getContext(), name, f); };
    auto *entry = block("entry"), *known = block("known"), *head = block("head"), *body = block("body"),
         *strided = block("strided"), *next = block("next"), *good = block("good"), *bad = block("bad");
    b.SetInsertPoint(entry);
    Value* kind = field(i32, f->getArg(0), 0);
    Value* object = field(ptr, f->getArg(0), kAnyValue);
    Value* pointer = b.CreateICmpEQ(kind, b.getInt32(kTensorPointer));
    b.CreateCondBr(b.CreateOr(pointer, b.CreateICmpEQ(kind, b.getInt32(kTensorObject))), known, bad);
    b.SetInsertPoint(known);
    Value* t = b.CreateSelect(pointer, object, b.CreateConstGEP1_64(b.getInt8Ty(), object, kObjectHeader));
    Value* fits = b.CreateICmpEQ(field(i32, t, kDeviceAt), b.getInt32(kCpu));
    fits = b.CreateAnd(fits, b.CreateICmpEQ(field(i32, t, kRankAt), f->getArg(2)));
    fits = b.CreateAnd(fits, b.CreateICmpEQ(field(i32, t, kDtypeAt), f->getArg(1)));
    Value *shape = field(ptr, t, kShapeAt), *strides = field(ptr, t, kStridesAt);
    b.CreateCondBr(fits, head, bad);
    // From the last dimension to the first: checks the size, and the stride if the tensor has strides and the size is
    // not 1.
    b.SetInsertPoint(head);
    auto *i = b.CreatePHI(i32, 2), *expected = b.CreatePHI(i64, 2);
    i->addIncoming(f->getArg(2), known);
    expected->addIncoming(b.getInt64(1), known);
    b.CreateCondBr(b.CreateICmpEQ(i, b.getInt32(0)), good, body);
    b.SetInsertPoint(body);
    Value* at = b.CreateSub(i, b.getInt32(1));
    Value* wanted = b.CreateAlignedLoad(i64, b.CreateGEP(i64, f->getArg(3), at), llvm::Align(8));
    Value* given = b.CreateAlignedLoad(i64, b.CreateGEP(i64, shape, at), llvm::Align(8));
    Value* matters = b.CreateAnd(b.CreateICmpNE(strides, llvm::ConstantPointerNull::get(b.getPtrTy())),
                                 b.CreateICmpNE(wanted, b.getInt64(1)));
    auto* sized = block("sized");
    b.CreateCondBr(b.CreateICmpEQ(wanted, given), sized, bad);
    b.SetInsertPoint(sized);
    b.CreateCondBr(matters, strided, next);
    b.SetInsertPoint(strided);
    Value* stride = b.CreateAlignedLoad(i64, b.CreateGEP(i64, strides, at), llvm::Align(8));
    b.CreateCondBr(b.CreateICmpEQ(stride, expected), next, bad);
    b.SetInsertPoint(next);
    i->addIncoming(at, next);
    expected->addIncoming(b.CreateMul(expected, wanted), next);
    b.CreateBr(head);
    b.SetInsertPoint(good);
    b.CreateRet(b.CreateGEP(b.getInt8Ty(), field(ptr, t, 0), field(i64, t, kByteOffsetAt)));
    b.SetInsertPoint(bad);
    b.CreateRet(llvm::ConstantPointerNull::get(b.getPtrTy()));
    return f;
  }

  void emit(llvm::Function* run, const std::vector<uint32_t>& dtypes) {
    llvm::Function* tensor = tensor_function();
    auto* null = llvm::ConstantPointerNull::get(b.getPtrTy());
    llvm::Function* report = weak("TVMFFIErrorSetRaisedFromCStr", b.getVoidTy(), {ptr, ptr});
    llvm::Function* allocate = weak("aligned_alloc", ptr, {i64, i64});
    llvm::Function* release = weak("free", b.getVoidTy(), {ptr});
    // One arena is kept between calls; a call during which another thread uses it allocates its own.
    auto* kept = new llvm::GlobalVariable(module, ptr, false, llvm::GlobalValue::PrivateLinkage, null, "tw_ffi_arena");
    auto* f = llvm::Function::Create(llvm::FunctionType::get(i32, {ptr, ptr, i32, ptr}, false),
                                     llvm::GlobalValue::ExternalLinkage, "__tvm_ffi_main", module);
    set_function_attributes(f, target);
    auto block = [&](const char* name) { return llvm::BasicBlock::Create(module.getContext(), name, f); };
    b.SetInsertPoint(block("entry"));
    auto* failed = block("failed");
    auto* kind_of_error = llvm::PHINode::Create(ptr, 0, "kind", failed);
    auto* message = llvm::PHINode::Create(ptr, 0, "message", failed);
    // Continues in a new block if `fine`, else reports the error.
    auto require = [&](Value* fine, const char* kind, const std::string& why) {
      auto* on = block("on");
      kind_of_error->addIncoming(text(kind), b.GetInsertBlock());
      message->addIncoming(text(why), b.GetInsertBlock());
      b.CreateCondBr(fine, on, failed);
      b.SetInsertPoint(on);
    };
    const size_t inputs = plan.inputs.size(), count = inputs + plan.outputs.size();
    Value* tables[] = {b.CreateAlloca(llvm::ArrayType::get(ptr, std::max<size_t>(1, inputs))),
                       b.CreateAlloca(llvm::ArrayType::get(ptr, std::max<size_t>(1, count - inputs)))};
    require(b.CreateICmpEQ(f->getArg(2), b.getInt32(static_cast<uint32_t>(count))), "TypeError",
            format("the model takes {} tensors: {} inputs, then {} outputs", count, inputs, count - inputs));
    for (size_t k = 0; k < count; ++k) {
      const bool input = k < inputs;
      const plan::TensorInfo& info = input ? plan.inputs[k] : plan.outputs[k - inputs];
      std::vector<llvm::Constant*> dims;
      for (int64_t d : info.shape) dims.push_back(b.getInt64(static_cast<uint64_t>(d)));
      llvm::Constant* shape =
          constant(llvm::ConstantArray::get(llvm::ArrayType::get(i64, dims.size()), dims), "ffi.shape");
      Value* data =
          b.CreateCall(tensor, {b.CreateConstGEP1_64(b.getInt8Ty(), f->getArg(1), k * kAnyBytes), b.getInt32(dtypes[k]),
                                b.getInt32(static_cast<uint32_t>(dims.size())), shape});
      int64_t elements = 1;
      for (int64_t d : info.shape) elements *= d;
      if (elements > 0)  // the data pointer of an empty tensor may be null
        require(b.CreateICmpNE(data, null), "ValueError",
                format("{} '{}' (argument {}) must be a compact {} tensor of shape {} in host memory",
                       input ? "input" : "output", info.name, k, info.dtype.str(), shape_str(info.shape)));
      b.CreateStore(data, b.CreateConstInBoundsGEP1_64(ptr, tables[input ? 0 : 1], input ? k : k - inputs));
    }
    auto *fresh = block("fresh"), *go = block("go");
    require(b.CreateAnd(b.CreateICmpNE(allocate, null), b.CreateICmpNE(release, null)), "RuntimeError",
            "the process has no aligned_alloc");
    Value* found = b.CreateAtomicRMW(llvm::AtomicRMWInst::Xchg, kept, null, llvm::MaybeAlign(8),
                                     llvm::AtomicOrdering::AcquireRelease);
    auto* from = b.GetInsertBlock();
    b.CreateCondBr(b.CreateICmpNE(found, null), go, fresh);
    b.SetInsertPoint(fresh);
    Value* made = b.CreateCall(
        allocate, {b.getInt64(4096), b.getInt64((std::max<uint64_t>(plan.arena_bytes, 1) + 4095) / 4096 * 4096)});
    require(b.CreateICmpNE(made, null), "MemoryError",
            format("{} bytes of working memory cannot be had", plan.arena_bytes));
    auto* got = b.GetInsertBlock();
    b.CreateBr(go);
    b.SetInsertPoint(go);
    auto* arena = b.CreatePHI(ptr, 2);
    arena->addIncoming(found, from);
    arena->addIncoming(made, got);
    Value* result = b.CreateCall(run, {tables[0], tables[1], arena});
    Value* other = b.CreateAtomicRMW(llvm::AtomicRMWInst::Xchg, kept, arena, llvm::MaybeAlign(8),
                                     llvm::AtomicOrdering::AcquireRelease);
    b.CreateCall(release, {other});  // accepts null
    require(
        b.CreateICmpEQ(result, b.getInt32(0)), "RuntimeError",
        format("the model has no kernels for this processor, or {} names an instruction set that it has not or that "
               "the processor lacks",
               kInstructionSetVariable));
    b.CreateRet(b.getInt32(0));
    b.SetInsertPoint(failed);
    auto *told = block("told"), *out = block("out");
    b.CreateCondBr(b.CreateICmpNE(report, null), told, out);
    b.SetInsertPoint(told);
    b.CreateCall(report, {kind_of_error, message});
    b.CreateBr(out);
    b.SetInsertPoint(out);
    b.CreateRet(llvm::ConstantInt::getSigned(i32, -1));
  }
};

}  // namespace

void emit_ffi_entry(llvm::Module& module, const plan::Plan& plan, const Target& target, llvm::Function* run) {
  std::vector<uint32_t> dtypes;
  for (const auto* list : {&plan.inputs, &plan.outputs})
    for (const plan::TensorInfo& info : *list) {
      auto dtype = dlpack_dtype(info.dtype);
      if (!dtype) return;
      dtypes.push_back(*dtype);
    }
  Entry{module, plan, target}.emit(run, dtypes);
}

}  // namespace tilewright::codegen
