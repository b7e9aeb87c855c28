// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include "base/advice.h"
#include "base/format.h"
#include "base/token_refused.h"

namespace tilewright {

const char* error_name(ErrorCode code) {
  if (code == kTokenRefused) return "TokenRefused";
  switch (code) {
#define TW_CODE(number, name, text) \
  case ErrorCode::k##name:          \
    return #name;
    TW_ERROR_CODES(TW_CODE)
#undef TW_CODE
  }
  return "Unknown";
}

std::string Diagnostic::str() const {
  std::string out = format("error[E{} {}]: ", static_cast<int>(code), error_name(code));
  if (!where.empty()) out += where + ": ";
  out += message;
  if (const std::string what = advice(*this); !what.empty()) out += "\n  hint: " + what;
  return out;
}

Diagnostic Diagnostic::at(std::string place) && {
  if (where.empty()) where = std::move(place);
  return std::move(*this);
}

void internal_error(const char* file, int line, const std::string& what) {
  throw InternalError(format("{}:{}: {}", file, line, what));
}

}  // namespace tilewright
