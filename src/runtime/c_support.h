// SPDX-License-Identifier: Apache-2.0
// Shared by all files of the C interface: this thread's last error, and conversion of errors to numbers.
#pragma once
#include <cstring>
#include <memory>
#include <string>

#include "base/result.h"
#include "runtime/function.h"
#include "runtime/module.h"
#include "tilewright/c_api.h"

// The C handle of a module: reference counted, holding one share of the module.
struct tw_module {
  std::atomic<int64_t> references{1};
  std::shared_ptr<tilewright::runtime::Module> module;
};

namespace tilewright::runtime {

// Stores the error for this thread and returns its number.
int32_t fail(Diagnostic d);
// The values of tw_last_error_message and tw_last_error.
const char* last_error_text();
Status last_error_parts(tw_error_info* out);
// The error with this number; InvalidArgument if docs/errors has no such page.
ErrorCode error_code(int32_t number);
// Takes the error that a user's function reported by returning `status`.
Diagnostic take_last_error(int32_t status, const std::string& function);
// Call before a user's function, so that it is not blamed for an older error.
void clear_last_error();

// Runs a body that returns a Status and converts exceptions to errors. Out of line, since every call of the C interface
// is such a body.
int32_t run_guarded(Status (*body)(void*), void* context) noexcept;
template <class F>
int32_t guarded(F body) noexcept {
  return run_guarded([](void* b) -> Status { return (*static_cast<F*>(b))(); }, &body);
}

inline Diagnostic null_argument(const char* name) {
  return Diagnostic(ErrorCode::kInvalidArgument, std::string("argument '") + name + "' is null");
}
#define TW_REQUIRE(argument) \
  if (!(argument)) return ::tilewright::runtime::null_argument(#argument)

// Copies a filled structure, up to the size of the caller's version of it.
template <class T>
Status deliver(T filled, T* out) {
  TW_REQUIRE(out);
  size_t size = out->size;
  if (size < sizeof(size_t))
    return Diagnostic(ErrorCode::kInvalidArgument, "the structure's size field is not set", {}, "set it to sizeof");
  filled.size = size;
  std::memcpy(static_cast<void*>(out), &filled, std::min(size, sizeof(T)));
  return Ok{};
}

// The caller's options, with zeros for fields that its version lacks.
template <class T>
Result<T> options_of(const T* given) {
  T options{};
  if (given) {
    if (given->size < sizeof(size_t))
      return Diagnostic(ErrorCode::kInvalidArgument, "the options' size field is not set", {}, "set it to sizeof");
    std::memcpy(static_cast<void*>(&options), given, std::min(given->size, sizeof(T)));
  }
  return options;
}

}  // namespace tilewright::runtime
