// SPDX-License-Identifier: Apache-2.0
// How element types appear in LLVM IR. A value of float16, bfloat16, float8 or float4 is an integer holding its bits,
// so that no target needs library calls for it; bool is i1 as a value and a byte in memory. Elements of fewer than 8
// bits are bytes in memory by now (tir/passes/legalize_sub_bytes.h).
#pragma once
#include "base/dtype.h"
#include "ir/target.h"

namespace llvm {
class IRBuilderBase;
class LLVMContext;
class Type;
class Value;
}  // namespace llvm

namespace tilewright::codegen {

bool is_small_float(DataType dtype);  // of 16 bits or fewer
uint64_t small_float_bits(DataType dtype, double value);
// Null for types without code generation (strings, complex numbers).
llvm::Type* value_type(llvm::LLVMContext& context, DataType dtype);
llvm::Type* storage_type(llvm::LLVMContext& context, DataType dtype);
llvm::Type* with_lanes(llvm::Type* element, int lanes);
int lanes_of(llvm::Value* value);

llvm::Value* to_storage(llvm::IRBuilderBase& b, llvm::Value* value, DataType dtype);
llvm::Value* from_storage(llvm::IRBuilderBase& b, llvm::Value* value, DataType dtype);

// Value conversion by C's rules. An out-of-range float to integer conversion gives an arbitrary value, not undefined
// behaviour.
llvm::Value* convert(llvm::IRBuilderBase& b, llvm::Value* value, DataType from, DataType to, const Target& target);

}  // namespace tilewright::codegen
