// SPDX-License-Identifier: Apache-2.0
// Turns a failed internal check into an ordinary error that contains what a bug report needs.
#pragma once
#include <new>

#include "base/result.h"

namespace tilewright::driver {

template <class F>
auto guarded(F&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const InternalError& e) {
    return Diagnostic(ErrorCode::kInternal, e.what(), {},
                      "this is a bug in Tilewright; please report it with the model");
  } catch (const std::bad_alloc&) {
    return Diagnostic(ErrorCode::kLimitExceeded, "memory ran out", {},
                      "compile on a machine with more memory, or a smaller input shape");
  }
}

}  // namespace tilewright::driver
