// SPDX-License-Identifier: Apache-2.0
// Reference-counted handles of the C interface as C++ values for nanobind.
#pragma once
#include <utility>

#include "bind.h"

namespace tilewright::python {

template <class T, T* (*retain)(T*), void (*free)(T*)>
class Handle {
 public:
  explicit Handle(T* owned = nullptr) : raw_(owned) {}
  Handle(const Handle& other) : raw_(retain(other.raw_)) {}
  Handle(Handle&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Handle() { free(raw_); }
  T* get() const { return raw_; }

 private:
  T* raw_;
};
using FunctionHandle = Handle<tw_function, tw_function_retain, tw_function_free>;
using ModuleHandle = Handle<tw_module, tw_module_retain, tw_module_free>;

// Device types of tensors in other processes begin here (docs/rpc.md).
inline constexpr int32_t kFirstRemoteDevice = 128;
// A function that calls a Python callable; exceptions are passed to the caller.
FunctionHandle function_of(nb::handle callable);
// An object that has no form in the C interface travels as a function that nobody can call, and arrives as itself.
FunctionHandle held(nb::handle object);
// Whether both sides of the call in progress are Python: numbers and strings with a class of their own stay objects.
bool between_scripts();
nb::object held_object(const tw_function* function);  // null for other functions
bool is_device(nb::handle object);                    // a tilewright.Device, which is also a tuple
void bind_values(nb::module_& m);

}  // namespace tilewright::python
