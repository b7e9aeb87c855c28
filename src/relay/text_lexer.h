// SPDX-License-Identifier: Apache-2.0
// Tokens of the Relay text form. Positions are "origin:line:column", both counted from 1.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tilewright::relay {

struct Token {
  enum Kind { kEnd, kName, kLocal, kGlobal, kInt, kFloat, kString, kPunctuation, kBad };
  Kind kind = kEnd;
  std::string text;  // names without '%' or '@'; strings unescaped; punctuation verbatim; kBad: the error
  int64_t integer = 0;
  double real = 0;
  std::string suffix;  // of numbers: "", "f", "f16", "f64", "i64"
  size_t begin = 0;

  bool is(std::string_view punctuation) const { return kind == kPunctuation && text == punctuation; }
  bool is_name(std::string_view name) const { return kind == kName && text == name; }
};

class Lexer {
 public:
  Lexer(std::string_view text, std::string origin) : text_(text), origin_(std::move(origin)) {}
  const Token& peek();
  Token next();
  // Whether an assigning '=' (not "==" or "=>") follows the peeked token.
  bool assigns_next();
  // ".3" directly behind the last token: a tuple field.
  std::optional<int64_t> accept_field();
  // "/* ty=" directly behind the last token; the type and "*/" are then read as ordinary input.
  bool accept_type_comment();
  bool accept_comment_end();
  // Inside dimensions "//" is division; elsewhere it starts a comment.
  void set_in_dims(bool in_dims) { in_dims_ = in_dims; }
  // The text from a position to the last token read.
  std::string since(size_t begin);
  Diagnostic error(size_t at, std::string message, ErrorCode code = ErrorCode::kParseError,
                   std::string hint = {}) const;
  std::string place(size_t at) const;

 private:
  void skip_space();
  size_t end_of_comment(size_t at) const;
  const std::vector<size_t>& line_starts() const;
  Token scan();
  Token scan_number();
  Token scan_string();
  Token scan_name_after(Token::Kind kind);

  std::string_view text_;
  std::string origin_;
  size_t position_ = 0;
  bool in_dims_ = false;
  std::optional<Token> ahead_;
  mutable std::vector<size_t> line_starts_;
};

// A token as messages name it: "'('", "%x", "the end of the text".
std::string describe(const Token& token);

}  // namespace tilewright::relay
