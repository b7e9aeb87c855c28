// SPDX-License-Identifier: Apache-2.0
#include "codegen/llvm/types.h"

#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/IRBuilder.h>

#include <cmath>
#include <limits>

#include "base/small_float.h"
#include "codegen/llvm/machine.h"

namespace tilewright::codegen {
namespace {

using llvm::Value;

llvm::Type* element_type(llvm::LLVMContext& c, DataType dtype) {
  switch (dtype.code) {
    case TypeCode::kInt:
    case TypeCode::kUInt:
      return llvm::Type::getIntNTy(c, dtype.bits);
    case TypeCode::kFloat:
      return dtype.bits == 32   ? llvm::Type::getFloatTy(c)
             : dtype.bits == 64 ? llvm::Type::getDoubleTy(c)
             : dtype.bits == 16 ? llvm::Type::getInt16Ty(c)
                                : nullptr;
    case TypeCode::kBFloat:
      return llvm::Type::getInt16Ty(c);
    case TypeCode::kBool:
      return llvm::Type::getInt1Ty(c);
    case TypeCode::kFloat8E4M3FN:
    case TypeCode::kFloat8E4M3FNUZ:
    case TypeCode::kFloat8E5M2:
    case TypeCode::kFloat8E5M2FNUZ:
    case TypeCode::kFloat8E8M0:
    case TypeCode::kFloat4E2M1:
      return llvm::Type::getIntNTy(c, dtype.bits);
    case TypeCode::kComplex:
    case TypeCode::kString:
    case TypeCode::kHandle:
      return nullptr;
  }
  return nullptr;
}

// The same shape (scalar or vector) with another element type.
llvm::Type* reshape_type(Value* like, llvm::Type* element) { return with_lanes(element, lanes_of(like)); }

Value* int_like(Value* like, uint64_t value) { return llvm::ConstantInt::get(like->getType(), value); }

Value* half_bits_to_float(llvm::IRBuilderBase& b, Value* bits) {
  llvm::Type* i32 = reshape_type(bits, b.getInt32Ty());
  llvm::Type* f32 = reshape_type(bits, b.getFloatTy());
  Value* h = b.CreateZExt(bits, i32);
  Value* sign = b.CreateShl(b.CreateAnd(h, int_like(h, 0x8000)), int_like(h, 16));
  Value* magnitude = b.CreateAnd(h, int_like(h, 0x7fff));
  // Subnormal halves are small integers times 2^-24; converting via an integer works under denormals-are-zero.
  Value* subnormal =
      b.CreateBitCast(b.CreateFMul(b.CreateUIToFP(magnitude, f32), llvm::ConstantFP::get(f32, 0x1p-24)), i32);
  Value* normal = b.CreateAdd(b.CreateShl(magnitude, int_like(h, 13)), int_like(h, 112u << 23));
  Value* special = b.CreateOr(b.CreateShl(magnitude, int_like(h, 13)), int_like(h, 0x7f800000));
  Value* out = b.CreateSelect(b.CreateICmpULT(magnitude, int_like(h, 0x400)), subnormal, normal);
  out = b.CreateSelect(b.CreateICmpUGE(magnitude, int_like(h, 0x7c00)), special, out);
  return b.CreateBitCast(b.CreateOr(out, sign), f32);
}

Value* float_to_half_bits(llvm::IRBuilderBase& b, Value* value) {
  llvm::Type* i32 = reshape_type(value, b.getInt32Ty());
  Value* bits = b.CreateBitCast(value, i32);
  Value* sign = b.CreateAnd(bits, int_like(bits, 0x80000000u));
  Value* a = b.CreateXor(bits, sign);
  Value* special =
      b.CreateSelect(b.CreateICmpUGT(a, int_like(a, 0x7f800000)), int_like(a, 0x7e00), int_like(a, 0x7c00));
  // Adding 0.5 aligns a subnormal half's last bit with the float's, so that the addition rounds it.
  Value* half = llvm::ConstantFP::get(value->getType(), 0.5);
  Value* sum = b.CreateBitCast(b.CreateFAdd(b.CreateBitCast(a, value->getType()), half), i32);
  Value* subnormal = b.CreateSub(sum, int_like(a, 0x3f000000));
  Value* odd = b.CreateAnd(b.CreateLShr(a, int_like(a, 13)), int_like(a, 1));
  Value* rounded = b.CreateAdd(b.CreateAdd(a, int_like(a, 0xc8000fffu)), odd);  // rebias 127 -> 15, then round to even
  Value* normal = b.CreateLShr(rounded, int_like(a, 13));
  Value* out = b.CreateSelect(b.CreateICmpULT(a, int_like(a, 0x38800000)), subnormal, normal);
  out = b.CreateSelect(b.CreateICmpUGE(a, int_like(a, 0x47800000)), special, out);
  out = b.CreateOr(out, b.CreateLShr(sign, int_like(sign, 16)));
  return b.CreateTrunc(out, reshape_type(value, b.getInt16Ty()));
}

// Decodes float8 and float4, exactly, since all values are float32 values; special codes as in small_float.cc.
Value* tiny_bits_to_float(llvm::IRBuilderBase& b, Value* raw, SmallFloatFormat f) {
  llvm::Type* i32 = reshape_type(raw, b.getInt32Ty());
  llvm::Type* f32 = reshape_type(raw, b.getFloatTy());
  Value* bits = b.CreateZExt(raw, i32);
  const int width = f.exponent_bits + f.mantissa_bits, shift = 23 - f.mantissa_bits;
  const uint64_t mask = (1u << width) - 1, quiet_nan = 0x7fc00000;
  if (f.special == SmallFloatFormat::kScaleOnly) {
    Value* scale = b.CreateSelect(b.CreateICmpEQ(bits, int_like(bits, 0)), int_like(bits, 0x400000),
                                  b.CreateShl(bits, int_like(bits, 23)));
    return b.CreateBitCast(b.CreateSelect(b.CreateICmpEQ(bits, int_like(bits, mask)), int_like(bits, quiet_nan), scale),
                           f32);
  }
  Value* magnitude = b.CreateAnd(bits, int_like(bits, mask));
  Value* sign = b.CreateShl(b.CreateLShr(bits, int_like(bits, static_cast<uint64_t>(width))), int_like(bits, 31));
  Value* unit = llvm::ConstantFP::get(f32, std::ldexp(1.0, 1 - f.bias - f.mantissa_bits));
  Value* subnormal = b.CreateBitCast(b.CreateFMul(b.CreateUIToFP(magnitude, f32), unit), i32);
  Value* moved = b.CreateShl(magnitude, int_like(bits, static_cast<uint64_t>(shift)));
  Value* normal = b.CreateAdd(moved, int_like(bits, static_cast<uint64_t>(127 - f.bias) << 23));
  Value* out =
      b.CreateSelect(b.CreateICmpULT(magnitude, int_like(bits, uint64_t{1} << f.mantissa_bits)), subnormal, normal);
  if (f.special == SmallFloatFormat::kIeee) {
    const uint64_t infinity = ((uint64_t{1} << f.exponent_bits) - 1) << f.mantissa_bits;
    out = b.CreateSelect(b.CreateICmpUGE(magnitude, int_like(bits, infinity)),
                         b.CreateOr(moved, int_like(bits, 0x7f800000)), out);
  } else if (f.special == SmallFloatFormat::kFiniteNan) {
    out = b.CreateSelect(b.CreateICmpEQ(magnitude, int_like(bits, mask)), int_like(bits, quiet_nan), out);
  }
  out = b.CreateOr(out, sign);
  if (f.special == SmallFloatFormat::kUnsignedZero)
    out = b.CreateSelect(b.CreateICmpEQ(bits, int_like(bits, mask + 1)), int_like(bits, quiet_nan), out);
  return b.CreateBitCast(out, f32);
}

Value* float_to_tiny_bits(llvm::IRBuilderBase& b, Value* value, SmallFloatFormat f, llvm::Type* element) {
  llvm::Type* i32 = reshape_type(value, b.getInt32Ty());
  Value* bits = b.CreateBitCast(value, i32);
  auto imm = [&](uint64_t v) { return int_like(bits, v); };
  auto code_of = [&](double v) { return imm(small_float_encode(f, v)); };
  Value* a = b.CreateAnd(bits, imm(0x7fffffff));
  Value* code;
  if (f.special == SmallFloatFormat::kScaleOnly) {
    Value* small = b.CreateZExt(b.CreateICmpUGE(a, imm(0x600000)), i32);
    code =
        b.CreateSelect(b.CreateICmpULT(a, imm(0x800000)), small, b.CreateLShr(b.CreateAdd(a, imm(0x400000)), imm(23)));
  } else {
    const int shift = 23 - f.mantissa_bits;
    Value* odd = b.CreateAnd(b.CreateLShr(a, imm(static_cast<uint64_t>(shift))), imm(1));
    Value* rounded = b.CreateAdd(b.CreateAdd(a, imm((uint64_t{1} << (shift - 1)) - 1)), odd);
    Value* normal = b.CreateLShr(b.CreateSub(rounded, imm(static_cast<uint64_t>(127 - f.bias) << 23)),
                                 imm(static_cast<uint64_t>(shift)));
    // Adding a power of two whose last bit is the smallest subnormal makes the addition round to the format.
    Value* magic = llvm::ConstantFP::get(value->getType(), std::ldexp(1.0, 24 - f.bias - f.mantissa_bits));
    Value* sum = b.CreateBitCast(b.CreateFAdd(b.CreateBitCast(a, value->getType()), magic), i32);
    Value* subnormal = b.CreateSub(sum, b.CreateBitCast(magic, i32));
    code = b.CreateSelect(b.CreateICmpULT(a, imm(static_cast<uint64_t>(128 - f.bias) << 23)), subnormal, normal);
  }
  Value* infinity = code_of(std::numeric_limits<double>::infinity());
  const uint64_t largest = f.special == SmallFloatFormat::kIeee
                               ? small_float_encode(f, std::numeric_limits<double>::infinity()) - 1
                               : small_float_encode(f, std::numeric_limits<double>::infinity());
  code = b.CreateSelect(b.CreateICmpUGT(code, imm(largest)), infinity, code);
  if (f.has_sign) {
    Value* sign = b.CreateLShr(b.CreateAnd(bits, imm(0x80000000u)),
                               imm(static_cast<uint64_t>(31 - f.exponent_bits - f.mantissa_bits)));
    if (f.special == SmallFloatFormat::kUnsignedZero) sign = b.CreateSelect(b.CreateICmpEQ(code, imm(0)), imm(0), sign);
    code = b.CreateOr(code, sign);
  }
  code = b.CreateSelect(b.CreateICmpUGT(a, imm(0x7f800000)), code_of(std::numeric_limits<double>::quiet_NaN()), code);
  return b.CreateTrunc(code, reshape_type(value, element));
}

// double to float32 with rounding to odd: a second rounding to a narrower format is then correct.
Value* double_to_float_odd(llvm::IRBuilderBase& b, Value* value) {
  llvm::Type* f32 = reshape_type(value, b.getFloatTy());
  llvm::Type* i32 = reshape_type(value, b.getInt32Ty());
  Value* nearest = b.CreateFPTrunc(value, f32);
  Value* back = b.CreateFPExt(nearest, value->getType());
  Value* bits = b.CreateBitCast(nearest, i32);
  Value* inexact = b.CreateFCmpONE(back, value);  // false for NaN
  Value* even = b.CreateICmpEQ(b.CreateAnd(bits, int_like(bits, 1)), int_like(bits, 0));
  Value* toward_zero = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                       b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value));
  Value* step = b.CreateSelect(toward_zero, int_like(bits, uint64_t(-1)), int_like(bits, 1));
  Value* moved = b.CreateSelect(b.CreateAnd(inexact, even), b.CreateAdd(bits, step), bits);
  return b.CreateBitCast(moved, f32);
}

Value* int_to_float(llvm::IRBuilderBase& b, Value* value, DataType from, llvm::Type* to) {
  // One masked move where LLVM would make a vector of integers first.
  if (from.is_bool()) return b.CreateSelect(value, llvm::ConstantFP::get(to, 1), llvm::ConstantFP::getZero(to));
  return from.is_int() ? b.CreateSIToFP(value, to) : b.CreateUIToFP(value, to);
}

}  // namespace

bool is_small_float(DataType dtype) { return dtype.is_float() && dtype.bits <= 16; }

uint64_t small_float_bits(DataType dtype, double value) {
  if (dtype.bits == 16) return small_float_encode(dtype.code == TypeCode::kBFloat ? kBFloatFormat : kHalfFormat, value);
  return small_float_encode(small_float_format(dtype.code), value);
}

llvm::Type* with_lanes(llvm::Type* element, int lanes) {
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
}

int lanes_of(Value* value) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return vector ? static_cast<int>(vector->getNumElements()) : 1;
}

llvm::Type* value_type(llvm::LLVMContext& context, DataType dtype) {
  llvm::Type* element = element_type(context, dtype);
  return element && dtype.lanes > 0 ? with_lanes(element, dtype.lanes) : nullptr;
}

llvm::Type* storage_type(llvm::LLVMContext& context, DataType dtype) {
  if (dtype.is_bool()) return with_lanes(llvm::Type::getInt8Ty(context), dtype.lanes);
  return value_type(context, dtype);
}

Value* to_storage(llvm::IRBuilderBase& b, Value* value, DataType dtype) {
  return dtype.is_bool() ? b.CreateZExt(value, reshape_type(value, b.getInt8Ty())) : value;
}

Value* from_storage(llvm::IRBuilderBase& b, Value* value, DataType dtype) {
  return dtype.is_bool() ? b.CreateICmpNE(value, int_like(value, 0)) : value;
}

namespace {

// Otherwise LLVM calls a support function that not every system has.
bool converts_halves(const Target& target) {
  return has_feature(target, "f16c") || processor_of(target).architecture == Architecture::kAArch64;
}

// Conversions between formats of 16 bits or fewer and float32; round to nearest, ties to even.
Value* widen_small(llvm::IRBuilderBase& b, Value* value, DataType dtype, const Target& target) {
  llvm::Type* f32 = reshape_type(value, b.getFloatTy());
  if (dtype.bits < 16) return tiny_bits_to_float(b, value, small_float_format(dtype.code));
  if (dtype.code == TypeCode::kBFloat) {
    Value* wide = b.CreateZExt(value, reshape_type(value, b.getInt32Ty()));
    return b.CreateBitCast(b.CreateShl(wide, int_like(wide, 16)), f32);
  }
  if (converts_halves(target)) {
    // The fence costs nothing and keeps LLVM from comparing and choosing halves, which most processors do one by one.
    Value* wide = b.CreateFPExt(b.CreateBitCast(value, reshape_type(value, b.getHalfTy())), f32);
    return b.CreateArithmeticFence(wide, f32);
  }
  return half_bits_to_float(b, value);
}

Value* narrow_small(llvm::IRBuilderBase& b, Value* value, DataType dtype, const Target& target) {
  if (dtype.bits < 16)
    return float_to_tiny_bits(b, value, small_float_format(dtype.code), element_type(b.getContext(), dtype));
  if (dtype.code == TypeCode::kBFloat) {
    Value* bits = b.CreateBitCast(value, reshape_type(value, b.getInt32Ty()));
    Value* odd = b.CreateAnd(b.CreateLShr(bits, int_like(bits, 16)), int_like(bits, 1));
    Value* rounded = b.CreateAdd(b.CreateAdd(bits, int_like(bits, 0x7fff)), odd);
    Value* quiet = b.CreateOr(bits, int_like(bits, 0x400000));
    Value* out = b.CreateSelect(b.CreateFCmpUNO(value, value), quiet, rounded);
    return b.CreateTrunc(b.CreateLShr(out, int_like(out, 16)), reshape_type(value, b.getInt16Ty()));
  }
  if (converts_halves(target))
    return b.CreateBitCast(b.CreateFPTrunc(value, reshape_type(value, b.getHalfTy())),
                           reshape_type(value, b.getInt16Ty()));
  return float_to_half_bits(b, value);
}

// x86 without AVX-512 converts floats to uint32, int64 and uint64 one by one.
bool converts_wide_one_by_one(const Target& target) {
  return processor_of(target).architecture == Architecture::kX86_64 && has_feature(target, "avx") &&
         !has_feature(target, "avx512dq");
}

// Whole floats modulo 2^32 as 32 bits: what is left behind the nearest multiple of 2^32 fits a signed conversion, whose
// answer to 2^31 itself has the right bits, too.
Value* whole_to_32_bits(llvm::IRBuilderBase& b, Value* whole) {
  auto number = [&](double v) { return llvm::ConstantFP::get(whole->getType(), v); };
  Value* high = b.CreateUnaryIntrinsic(llvm::Intrinsic::rint, b.CreateFMul(whole, number(0x1p-32)));
  Value* rest = b.CreateFSub(whole, b.CreateFMul(high, number(0x1p32)));  // exact
  return b.CreateFreeze(b.CreateFPToSI(rest, reshape_type(whole, b.getInt32Ty())));
}

// Whole doubles modulo 2^64 as 64 bits, by halves: adding 2^52 leaves a whole number below 2^52 in a double's low bits.
Value* whole_to_64_bits(llvm::IRBuilderBase& b, Value* whole) {
  auto number = [&](double v) { return llvm::ConstantFP::get(whole->getType(), v); };
  llvm::Type* i64 = reshape_type(whole, b.getInt64Ty());
  Value* high = b.CreateUnaryIntrinsic(llvm::Intrinsic::floor, b.CreateFMul(whole, number(0x1p-32)));
  Value* low = b.CreateFSub(whole, b.CreateFMul(high, number(0x1p32)));  // exact
  Value* low_bits = b.CreateBitCast(b.CreateFAdd(low, number(0x1p52)), i64);
  Value* high_bits = b.CreateBitCast(b.CreateFAdd(high, number(0x1.8p52)), i64);
  return b.CreateOr(b.CreateShl(high_bits, int_like(high_bits, 32)),
                    b.CreateAnd(low_bits, int_like(low_bits, 0xffffffff)));
}

Value* float_to_wide_integer(llvm::IRBuilderBase& b, Value* value, DataType to) {
  Value* whole = b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, value);
  if (to.bits == 32) return whole_to_32_bits(b, whole);
  whole = b.CreateFPCast(whole, reshape_type(value, b.getDoubleTy()));
  Value* bits = whole_to_64_bits(b, whole);
  if (to.is_uint()) return bits;
  // What does not fit becomes the lowest number, as by the instruction for one.
  Value* size = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, whole);
  return b.CreateSelect(b.CreateFCmpOLT(size, llvm::ConstantFP::get(whole->getType(), 0x1p63)), bits,
                        int_like(bits, uint64_t{1} << 63));
}

}  // namespace

Value* convert(llvm::IRBuilderBase& b, Value* value, DataType from, DataType to, const Target& target) {
  if (from.element() == to.element()) return value;
  llvm::Type* f32 = reshape_type(value, b.getFloatTy());
  llvm::Type* f64 = reshape_type(value, b.getDoubleTy());
  if (is_small_float(from)) {
    value = widen_small(b, value, from, target);
    from = kFloat32.with_lanes(from.lanes);
    if (to.element() == kFloat32) return value;
  }
  if (is_small_float(to)) {
    if (from.is_integral() && from.bits >= 32) {
      value = int_to_float(b, value, from, f64);
      from = kFloat64.with_lanes(from.lanes);
    } else if (!from.is_float()) {
      value = int_to_float(b, value, from, f32);
    }
    if (from.element() == kFloat64) value = double_to_float_odd(b, value);
    return narrow_small(b, value, to, target);
  }
  llvm::Type* type = reshape_type(value, value_type(b.getContext(), to.element()));
  if (to.is_bool())
    return from.is_float() ? b.CreateFCmpUNE(value, llvm::ConstantFP::getZero(value->getType()))
                           : b.CreateICmpNE(value, int_like(value, 0));
  if (from.is_float() && to.is_float()) return b.CreateFPCast(value, type);
  if (to.is_float()) return int_to_float(b, value, from, type);
  if (from.is_float()) {
    const bool wide_result = to.bits == 64 || (to.bits == 32 && to.is_uint());
    if (wide_result && lanes_of(value) > 1 && converts_wide_one_by_one(target))
      return float_to_wide_integer(b, value, to);
    // Narrow integers are converted via a wider signed one and wrap, as compilers do on x86 and as in numpy.
    if (to.is_uint() && to.bits == 64) return b.CreateFreeze(b.CreateFPToUI(value, type));
    int bits = to.is_int() ? (to.bits < 32 ? 32 : to.bits) : (to.bits < 32 ? 32 : 64);
    Value* wide = b.CreateFreeze(b.CreateFPToSI(value, reshape_type(value, b.getIntNTy(static_cast<unsigned>(bits)))));
    return b.CreateTrunc(wide, type);
  }
  return b.CreateIntCast(value, type, from.is_int());
}

}  // namespace tilewright::codegen
