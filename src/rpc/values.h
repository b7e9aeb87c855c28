// SPDX-License-Identifier: Apache-2.0
// Owning wrappers for the runtime's C interface, and conversion of errors. This room uses the runtime only through that
// interface: it is linked into programs, and loaded beside them as a plug-in.
#pragma once
#include <string>
#include <utility>

#include "base/result.h"
#include "tilewright/c_api.h"

namespace tilewright::rpc {

// The error of this thread's last failed C interface call.
Diagnostic last_error();
// Ok, or the last error.
Status checked(int32_t status);
// Reports the error of our function to the runtime; returns its number.
int32_t reported(const Diagnostic& error);

class OwnedValue {
 public:
  OwnedValue() { value_.kind = TW_NULL; }
  explicit OwnedValue(tw_value owned) : value_(owned) {}
  OwnedValue(OwnedValue&& other) noexcept : value_(other.release()) {}
  OwnedValue& operator=(OwnedValue&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~OwnedValue() { tw_value_free(&value_); }
  static OwnedValue of(int64_t i);
  static OwnedValue text(std::string_view text);
  static OwnedValue bytes(std::string_view bytes);
  const tw_value& get() const { return value_; }
  tw_value* out() { return &value_; }
  tw_value release() {
    tw_value out = value_;
    value_ = {};
    value_.kind = TW_NULL;
    return out;
  }

 private:
  tw_value value_{};
};

// Calls it; the error is the function's own.
Result<OwnedValue> call_function(tw_function* function, const tw_value* args, size_t count);

// A tensor with an owner: `free` is called with `context` after the last use.
DLManagedTensor* managed_tensor(void* data, DLDevice device, DLDataType dtype, const int64_t* shape, size_t rank,
                                uint64_t byte_offset, void (*free)(void*), void* context);

}  // namespace tilewright::rpc
