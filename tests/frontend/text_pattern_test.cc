// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/text_pattern.h"

#include <gtest/gtest.h>

namespace tilewright::onnx {
namespace {

bool matches(std::string_view pattern, std::string_view text) {
  auto p = TextPattern::parse(pattern);
  EXPECT_TRUE(p.ok()) << p.error().str();
  return p.ok() && p->matches(text);
}

TEST(TextPattern, Matches) {
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_TRUE(matches("a|b|", "b"));
  EXPECT_TRUE(matches("a|b|", ""));
  EXPECT_TRUE(matches("(a|bc)*d", "abcad"));
  EXPECT_FALSE(matches("(a|bc)*d", "abad"));
  EXPECT_TRUE(matches("(?:ab)+?", "ababab"));
  EXPECT_TRUE(matches("a{2,3}", "aaa"));
  EXPECT_FALSE(matches("a{2,3}", "aaaa"));
  EXPECT_FALSE(matches("a{2}", "a"));
  EXPECT_TRUE(matches("a{2,}", "aaaaaa"));
  EXPECT_TRUE(matches("a{x", "a{x"));
  EXPECT_TRUE(matches("[a-c\\d_-]+", "b7-_"));
  EXPECT_FALSE(matches("[^a-c]", "b"));
  EXPECT_TRUE(matches("[]x]+", "]x"));
  EXPECT_TRUE(matches("\\bcom\\b", "com"));
  EXPECT_FALSE(matches("x\\bcom", "xcom"));
  EXPECT_TRUE(matches("^a.c$",
                      "a\xc3\xa9"
                      "c"));  // one character of two bytes
  EXPECT_FALSE(matches("a.c", "a\nc"));
  EXPECT_TRUE(matches("(\\W|^)[\\w.\\-]{0,25}@(yahoo|gmail)\\.com(\\W|$)", "account@gmail.com"));
  EXPECT_FALSE(matches("(\\W|^)[\\w.\\-]{0,25}@(yahoo|gmail)\\.com(\\W|$)", "not email"));
}

TEST(TextPattern, TimeIsLinear) {
  std::string text(20000, 'a');
  EXPECT_TRUE(matches("(a*)*", text));
  EXPECT_FALSE(matches("(a|aa)+b", text));
}

TEST(TextPattern, RefusesWhatIsNoPattern) {
  for (const char* p : {"(", ")", "a)", "[a", "*a", "a{3,2}", "\\", "\\y", "[z-a]", "(?i)a"})
    EXPECT_FALSE(TextPattern::parse(p).ok()) << p;
  EXPECT_EQ(TextPattern::parse("((((a{1000}){1000}){1000}){1000})").error().code, ErrorCode::kLimitExceeded);
  EXPECT_EQ(TextPattern::parse(std::string(100000, '(')).error().code, ErrorCode::kLimitExceeded);
}

}  // namespace
}  // namespace tilewright::onnx
