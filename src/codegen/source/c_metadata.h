// SPDX-License-Identifier: Apache-2.0
// What a caller without the compiler can ask a model's C code: the classic stack's TVMMetadata.
#pragma once
#include <string>

#include "base/formats/plan.h"
#include "codegen/source/c_interface.h"

namespace tilewright::codegen {

// The packed function <prefix>_get_c_metadata, which returns the address of the description of the inputs and outputs.
// Linkers with --gc-sections drop both where nothing calls it. kCPackedTypes has to stand in front of it.
std::string c_metadata(const plan::Plan& plan, const CInterface& interface);

}  // namespace tilewright::codegen
