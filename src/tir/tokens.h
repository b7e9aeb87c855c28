// SPDX-License-Identifier: Apache-2.0
// Lines and tokens of the text form (tir/text.h), for the parser.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"

namespace tilewright::tir {

struct Token {
  enum Kind { kWord, kInteger, kDecimal, kShared, kSymbol, kEnd } kind;
  std::string_view text;
  int column;
};
struct Line {
  int number, indent;
  std::vector<Token> tokens;  // ends with kEnd
};

// Thrown and caught inside the parser; parse_func turns it into its result.
struct ParseFailure {
  Diagnostic diagnostic;
};
[[noreturn]] void fail_at(int line, int column, std::string message);

// The non-empty lines; comments start at '#'. Tokens point into `text`.
std::vector<Line> split_lines(std::string_view text);

// A position in the lines. Taking a token other than the expected one throws ParseFailure.
class TokenCursor {
 public:
  explicit TokenCursor(std::string_view text) : lines_(split_lines(text)) {}

 protected:
  const Token& token() const { return lines_[row_].tokens[at_]; }
  [[noreturn]] void fail(std::string message) const;  // at this token
  void begin_line() { at_ = 0; }
  void end_line();  // to the next line
  std::string_view take() { return lines_[row_].tokens[at_++].text; }
  bool next_is(std::string_view text) const { return token().kind != Token::kEnd && token().text == text; }
  bool accept(std::string_view text);  // consumes the token if it is next
  bool accept_word(std::string_view text) { return token().kind == Token::kWord && accept(text); }
  void expect(std::string_view text);
  void expect_word(std::string_view text);
  std::string word(const char* what);
  int64_t integer(int64_t low, int64_t high);
  int64_t signed_value(std::string_view digits, bool negative);
  uint64_t unsigned_value(std::string_view digits);
  DataType dtype();

  const std::vector<Line> lines_;
  size_t row_ = 0, at_ = 0;
};

}  // namespace tilewright::tir
