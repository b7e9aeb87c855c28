// SPDX-License-Identifier: Apache-2.0
// The last error of this thread in a C interface, the runtime's or the compiler's.
#include <new>

#include "base/advice.h"
#include "base/format.h"
#include "base/token_refused.h"
#include "runtime/c_support.h"

namespace tilewright::runtime {
namespace {

struct LastError {
  Diagnostic diagnostic;
  std::string text;  // empty: no error
};
thread_local LastError last_error;

bool is_error_code(int32_t code) {
  if (static_cast<ErrorCode>(code) == kTokenRefused) return true;
  switch (static_cast<ErrorCode>(code)) {
#define TW_CASE(number, name, text) case ErrorCode::k##name:
    TW_ERROR_CODES(TW_CASE)
#undef TW_CASE
    return true;
  }
  return false;
}

}  // namespace

ErrorCode error_code(int32_t number) {
  return is_error_code(number) ? static_cast<ErrorCode>(number) : ErrorCode::kInvalidArgument;
}

int32_t fail(Diagnostic d) {
  last_error.diagnostic = std::move(d);
  last_error.diagnostic.hint = advice(last_error.diagnostic);
  last_error.text = last_error.diagnostic.str();
  return static_cast<int32_t>(last_error.diagnostic.code);
}

int32_t run_guarded(Status (*body)(void*), void* context) noexcept {
  try {
    try {
      Status status = body(context);
      return status.ok() ? 0 : fail(std::move(status).error());
    } catch (const std::bad_alloc&) {
      return fail({ErrorCode::kLimitExceeded, "out of memory", {}, "free memory or raise the limit"});
    } catch (const std::exception& e) {
      return fail({ErrorCode::kInternal, e.what(), {}, "please report this with the model and the command"});
    }
  } catch (...) {  // out of memory for the message
    return static_cast<int32_t>(ErrorCode::kInternal);
  }
}

const char* last_error_text() { return last_error.text.c_str(); }

Status last_error_parts(tw_error_info* out) {
  const Diagnostic& d = last_error.diagnostic;
  const bool none = last_error.text.empty();
  return deliver({0, none ? 0 : static_cast<int32_t>(d.code), none ? "" : error_name(d.code), d.message.c_str(),
                  d.where.c_str(), d.hint.c_str()},
                 out);
}

void clear_last_error() { last_error = {}; }

Diagnostic take_last_error(int32_t status, const std::string& function) {
  Diagnostic d = last_error.diagnostic;
  if (last_error.text.empty())
    d = {error_code(status),
         format("{} failed with status {} and did not say why", function, status),
         {},
         "it should call tw_set_last_error"};
  clear_last_error();
  return d;
}

}  // namespace tilewright::runtime
