// SPDX-License-Identifier: Apache-2.0
// Files are little-endian: weights and code in them are used where they lie, so that a machine of the other byte order
// refuses them as a whole.
#pragma once
#include <bit>
#include <string>

#include "base/result.h"

namespace tilewright {

// `what` as in "the file of byte code". Error: CpuMismatch on a big-endian machine.
inline Status check_byte_order(const char* what, std::endian own = std::endian::native) {
  if (own == std::endian::little) return Ok{};
  return Diagnostic(ErrorCode::kCpuMismatch, std::string(what) + " is little-endian, and this machine is big-endian",
                    {}, "run the model on a little-endian machine; C code (--target c) compiles for any");
}

}  // namespace tilewright
