// SPDX-License-Identifier: Apache-2.0
// Functions of C source that was compiled into a library (docs/external-codegen.md), with the classic convention:
//   int32_t f(TVMValue* args, int* type_codes, int num_args, TVMValue* result, int* result_code, void* resource)
// Their names are a record of the library's import tree; the code is found in the library.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/module.h"

namespace tilewright::runtime {

inline constexpr const char* kLinkedRecord = "linked_functions";
std::string write_linked_record(std::span<const std::string> names);
// Errors: BadArtifact (damaged), UnknownFunction (the library lacks the function).
Result<std::shared_ptr<Module>> linked_functions(const std::shared_ptr<Module>& library, std::string_view record);

}  // namespace tilewright::runtime
