// SPDX-License-Identifier: Apache-2.0
// Every error says what to do, once.
#include "base/advice.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

size_t hints(const std::string& text) {
  size_t n = 0;
  for (size_t at = text.find("\n  hint: "); at != std::string::npos; at = text.find("\n  hint: ", at + 1)) ++n;
  return n;
}

TEST(Advice, EveryCodeHasSome) {
#define TW_CODE(number, name, text)                                                 \
  EXPECT_EQ(hints(Diagnostic(ErrorCode::k##name, "it failed").str()), 1u) << #name; \
  EXPECT_FALSE(advice(Diagnostic(ErrorCode::k##name, "it failed")).empty()) << #name;
  TW_ERROR_CODES(TW_CODE)
#undef TW_CODE
}

TEST(Advice, ItsOwnComesFirstAndAnotherErrorsTextBringsOne) {
  const Diagnostic own(ErrorCode::kParseError, "it failed", "a.txt", "read the grammar");
  EXPECT_EQ(advice(own), "read the grammar");
  const Diagnostic outer(ErrorCode::kParseError, own.str());
  EXPECT_EQ(advice(outer), "");
  EXPECT_EQ(hints(outer.str()), 1u) << outer.str();
}

}  // namespace
}  // namespace tilewright
