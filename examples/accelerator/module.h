// SPDX-License-Identifier: Apache-2.0
// The runtime's side: programs for the vector unit as a module that a library carries.
#pragma once
#include <memory>
#include <string>

#include "device.h"
#include "tilewright/function.h"

namespace accelerator {

inline constexpr const char* kTypeKey = "vecunit";

// A module with one function, the program's symbol: (inputs..., outputs...) as float32 tensors.
tilewright::Module make_module(Program program);
// What runtime.module.loadbinary_vecunit does; throws on damaged bytes.
tilewright::Module load_module(const std::string& bytes);
void register_loader();

}  // namespace accelerator
