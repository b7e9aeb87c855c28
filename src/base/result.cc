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

Diagnostic::Diagnostic() = default;
Diagnostic::Diagnostic(ErrorCode c, std::string m) : code(c), message(std::move(m)) {}
Diagnostic::Diagnostic(ErrorCode c, std::string m, std::string w)
    : code(c), message(std::move(m)), where(std::move(w)) {}
Diagnostic::Diagnostic(ErrorCode c, std::string m, std::string w, std::string h)
    : code(c), message(std::move(m)), where(std::move(w)), hint(std::move(h)) {}
Diagnostic::Diagnostic(const Diagnostic&) = default;
Diagnostic::Diagnostic(Diagnostic&&) noexcept = default;
Diagnostic& Diagnostic::operator=(const Diagnostic&) = default;
Diagnostic& Diagnostic::operator=(Diagnostic&&) noexcept = default;
Diagnostic::~Diagnostic() = default;

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

Failure::Failure(Diagnostic diagnostic) : diagnostic_(new Diagnostic(std::move(diagnostic))) {}
Failure::Failure(const Failure& other)
    : diagnostic_(other.diagnostic_ ? new Diagnostic(*other.diagnostic_) : nullptr) {}
void Failure::destroy() { delete diagnostic_; }
void Failure::raise() const { internal_error("result.h", 0, diagnostic_->str()); }

void check_failed(const char* file, int line, const char* condition, const std::string& detail) {
  internal_error(file, line, format("{} {}", condition, detail));
}

void internal_error(const char* file, int line, const std::string& what) {
  throw InternalError(format("{}:{}: {}", file, line, what));
}

}  // namespace tilewright
