// SPDX-License-Identifier: Apache-2.0
// The way from the VM to a compiler that may or may not be there: one C function, linked or found at run time.
#pragma once
#include "runtime/vm/specialized.h"
#include "tilewright/text_tensor.h"

namespace tilewright::runtime::vm {

// tw_compiler_specialize of tilewright/compiler.h, and tw_compiler_last_error_message.
using SpecializeFunction = int32_t (*)(const char* format, const void* source, uint64_t source_bytes,
                                       const char* target, const char* const* names, const DLTensor* arguments,
                                       uint64_t count, const char* output, uint8_t* by_value);
// tw_compiler_evaluate of the same header.
using EvaluateFunction = int32_t (*)(const char* format, const void* source, uint64_t source_bytes,
                                     const char* const* names, const tw_text_tensor* arguments, uint64_t count,
                                     uint8_t* by_value, void (*give)(void* context, const tw_text_tensor* result),
                                     void* context);
using MessageFunction = const char* (*)();

// Specialisations go through a file in the system's temporary folder, which is gone before this returns.
Specialize specialize_with(std::shared_ptr<const Program> program, SpecializeFunction function,
                           MessageFunction message);
Evaluate evaluate_with(const std::shared_ptr<const Program>& program, EvaluateFunction function,
                       MessageFunction message);

}  // namespace tilewright::runtime::vm
