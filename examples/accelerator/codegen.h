// SPDX-License-Identifier: Apache-2.0
// The compiler's side: which operators the vector unit takes, and programs for it.
#pragma once
#include "tilewright/compiler.h"

namespace accelerator {

tilewright::ExternalCodegen codegen();

}  // namespace accelerator
