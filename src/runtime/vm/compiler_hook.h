// SPDX-License-Identifier: Apache-2.0
// Access from the VM to an optional compiler: C functions that are linked in or found at run time.
#pragma once
#include "runtime/vm/specialized.h"
#include "tilewright/text_tensor.h"

namespace tilewright::runtime::vm {

// Where these functions are, if they are not linked in.
inline constexpr const char* kCompilerLibrary = "libtilewright_compiler.so";

// tw_compiler_specialize of tilewright/compiler.h, and tw_compiler_last_error_message.
using SpecializeFunction = int32_t (*)(const char* format, const void* source, uint64_t source_bytes,
                                       const char* target, const char* const* names, const DLTensor* arguments,
                                       uint64_t count, const char* output, uint8_t* by_value);
// tw_compiler_evaluate of the same header.
using EvaluateFunction = int32_t (*)(const char* format, const void* source, uint64_t source_bytes,
                                     const char* const* names, const tw_text_tensor* arguments, uint64_t count,
                                     int32_t however_long, uint8_t* by_value,
                                     void (*give)(void* context, const tw_text_tensor* result), void* context);
using MessageFunction = const char* (*)();

// Specialisations are exchanged through a temporary file, which is removed before this returns.
Specialize specialize_with(std::shared_ptr<const Program> program, SpecializeFunction function,
                           MessageFunction message);
Evaluate evaluate_with(const std::shared_ptr<const Program>& program, EvaluateFunction function,
                       MessageFunction message);

}  // namespace tilewright::runtime::vm
