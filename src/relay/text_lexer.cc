// SPDX-License-Identifier: Apache-2.0
#include "relay/text_lexer.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

#include "base/format.h"

namespace tilewright::relay {
namespace {
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
}  // namespace

std::string describe(const Token& token) {
  switch (token.kind) {
    case Token::kEnd:
      return "the end of the text";
    case Token::kLocal:
      return "%" + token.text;
    case Token::kGlobal:
      return "@" + token.text;
    case Token::kString:
      return "a string";
    case Token::kInt:
    case Token::kFloat:
      return "a number";
    case Token::kName:
    case Token::kPunctuation:
      return "'" + token.text + "'";
    case Token::kBad:
      return token.text;
  }
  return "?";
}

std::string Lexer::place(size_t at) const {
  at = std::min(at, text_.size());
  const auto& starts = line_starts();
  auto after = std::upper_bound(starts.begin(), starts.end(), at);
  return format("{}:{}:{}", origin_, after - starts.begin(), at - *(after - 1) + 1);
}

const std::vector<size_t>& Lexer::line_starts() const {
  if (line_starts_.empty()) {
    line_starts_.push_back(0);
    for (size_t i = 0; i < text_.size(); ++i)
      if (text_[i] == '\n') line_starts_.push_back(i + 1);
  }
  return line_starts_;
}

std::string Lexer::since(size_t begin) {
  std::string_view found = text_.substr(begin, peek().begin - begin);
  while (!found.empty() && std::isspace(static_cast<unsigned char>(found.back()))) found.remove_suffix(1);
  return std::string(found);
}

Diagnostic Lexer::error(size_t at, std::string message, ErrorCode code, std::string hint) const {
  return Diagnostic(code, std::move(message), place(at), std::move(hint));
}

// Block comments nest.
size_t Lexer::end_of_comment(size_t at) const {
  int open = 0;
  while (at < text_.size()) {
    const std::string_view two = text_.substr(at, 2);
    if (two == "/*" || two == "*/") {
      open += two == "/*" ? 1 : -1;
      at += 2;
      if (open == 0) return at;
    } else {
      ++at;
    }
  }
  return text_.size();
}

void Lexer::skip_space() {
  while (position_ < text_.size()) {
    if (std::isspace(static_cast<unsigned char>(text_[position_]))) {
      ++position_;
    } else if (!in_dims_ && text_.substr(position_, 2) == "//") {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else if (text_.substr(position_, 2) == "/*") {
      position_ = end_of_comment(position_);
    } else {
      return;
    }
  }
}

const Token& Lexer::peek() {
  if (!ahead_) ahead_ = scan();
  return *ahead_;
}

Token Lexer::next() {
  Token token = peek();
  ahead_.reset();
  return token;
}

bool Lexer::assigns_next() {
  peek();
  size_t saved = position_;
  skip_space();
  auto at = [&](size_t i) { return i < text_.size() ? text_[i] : '\0'; };
  bool assigns = at(position_) == '=' && at(position_ + 1) != '=' && at(position_ + 1) != '>';
  position_ = saved;
  return assigns;
}

std::optional<int64_t> Lexer::accept_field() {
  if (ahead_ || position_ + 1 >= text_.size() || text_[position_] != '.' || !is_digit(text_[position_ + 1])) return {};
  int64_t index = 0;
  const char* begin = text_.data() + position_ + 1;
  auto [end, failure] = std::from_chars(begin, text_.data() + text_.size(), index);
  if (failure != std::errc()) index = INT64_MAX;  // no tuple has as many fields: reported as out of range
  position_ = static_cast<size_t>(end - text_.data());
  return index;
}

bool Lexer::accept_type_comment() {
  if (ahead_) return false;
  size_t at = position_;
  while (at < text_.size() && text_[at] == ' ') ++at;
  static constexpr std::string_view kMark = "/* ty=";
  if (text_.substr(at, kMark.size()) != kMark) return false;
  position_ = at + kMark.size();
  return true;
}

bool Lexer::accept_comment_end() {
  if (ahead_) return false;
  size_t at = std::min(text_.find("*/", position_), text_.size());
  bool found = at < text_.size();
  position_ = found ? at + 2 : at;
  return found;
}

Token Lexer::scan_number() {
  Token token;
  token.begin = position_;
  size_t at = position_;
  bool real = false;
  if (text_[at] == '-') ++at;
  while (at < text_.size() && is_digit(text_[at])) ++at;
  if (at + 1 < text_.size() && text_[at] == '.' && is_digit(text_[at + 1])) {
    real = true;
    ++at;
    while (at < text_.size() && is_digit(text_[at])) ++at;
  }
  if (at < text_.size() && (text_[at] == 'e' || text_[at] == 'E')) {
    size_t digits = at + 1;
    if (digits < text_.size() && (text_[digits] == '-' || text_[digits] == '+')) ++digits;
    if (digits < text_.size() && is_digit(text_[digits])) {
      real = true;
      at = digits;
      while (at < text_.size() && is_digit(text_[at])) ++at;
    }
  }
  const char *begin = text_.data() + position_, *end = text_.data() + at;
  while (at < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at])) || text_[at] == '_'))
    token.suffix += text_[at++];
  position_ = at;
  static constexpr std::string_view kSuffixes[] = {"",    "f",   "f16", "f32", "f64", "i",   "i8",
                                                   "i16", "i32", "i64", "u8",  "u16", "u32", "u64"};
  if (std::find(std::begin(kSuffixes), std::end(kSuffixes), token.suffix) == std::end(kSuffixes)) {
    token.kind = Token::kBad;
    token.text = "a number with the unknown suffix '" + token.suffix.substr(0, 16) + "'";
    return token;
  }
  real |= !token.suffix.empty() && token.suffix[0] == 'f';
  token.kind = real ? Token::kFloat : Token::kInt;
  auto failed = real ? std::from_chars(begin, end, token.real).ec : std::from_chars(begin, end, token.integer).ec;
  if (!real) token.real = static_cast<double>(token.integer);
  if (failed != std::errc()) {
    token.kind = Token::kBad;
    token.text = "a number out of range";
  }
  return token;
}

Token Lexer::scan_string() {
  Token token{Token::kString};
  token.begin = position_++;
  while (position_ < text_.size() && text_[position_] != '"') {
    char c = text_[position_++];
    if (c == '\\' && position_ < text_.size()) {
      c = text_[position_++];
      if (c == 'n') c = '\n';
    }
    token.text += c;
  }
  if (position_ >= text_.size()) {
    token.kind = Token::kBad;
    token.text = "a string without its closing quote";
    return token;
  }
  ++position_;
  return token;
}

Token Lexer::scan_name_after(Token::Kind kind) {
  Token token;
  token.begin = position_++;
  if (position_ < text_.size() && text_[position_] == '"') {
    size_t begin = token.begin;
    token = scan_string();
    if (token.kind == Token::kString) token.kind = kind;
    token.begin = begin;
    return token;
  }
  auto at = [&](size_t i) { return i < text_.size() ? text_[i] : '\0'; };
  // Slashes divide the names of some models' layers: %block1/relu.
  while (is_letter(at(position_)) || is_digit(at(position_)) ||
         (at(position_) == '/' && !token.text.empty() && is_letter(at(position_ + 1))))
    token.text += text_[position_++];
  token.kind = kind;
  if (token.text.empty()) {
    token.kind = Token::kBad;
    token.text = "a name that is empty";
  }
  return token;
}

Token Lexer::scan() {
  skip_space();
  Token token;
  token.begin = position_;
  if (position_ >= text_.size()) return token;
  char c = text_[position_];
  char following = position_ + 1 < text_.size() ? text_[position_ + 1] : '\0';
  if (is_digit(c) || (c == '-' && is_digit(following) && !in_dims_)) return scan_number();
  if (c == '"') return scan_string();
  if (c == '%' && !in_dims_) return scan_name_after(Token::kLocal);
  if (c == '@') return scan_name_after(Token::kGlobal);
  if (is_letter(c)) {
    // A dot belongs to the name if a letter follows: nn.conv2d, relay.Constant.
    token.kind = Token::kName;
    while (position_ < text_.size()) {
      char d = text_[position_];
      bool dot = d == '.' && position_ + 1 < text_.size() && is_letter(text_[position_ + 1]);
      if (!is_letter(d) && !is_digit(d) && !dot) break;
      token.text += d;
      ++position_;
    }
    if (token.text == "inff") {  // a number with its suffix, though it has no digits
      token.kind = Token::kFloat;
      token.real = std::numeric_limits<double>::infinity();
      token.suffix = "f";
    }
    return token;
  }
  token.kind = Token::kPunctuation;
  static constexpr std::string_view kTwo[] = {"->", "//", "=>", "==", "!=", "<=", ">="};
  for (std::string_view two : kTwo)
    if (text_.substr(position_, 2) == two) {
      token.text = two;
      position_ += 2;
      return token;
    }
  static constexpr std::string_view kOne = "()[]{},;:=.?+-*/%#<>";
  ++position_;
  token.text = c;
  if (kOne.find(c) == std::string_view::npos) {
    token.kind = Token::kBad;
    token.text = std::isprint(static_cast<unsigned char>(c))
                     ? format("the character '{}'", c)
                     : format("the byte 0x{:02x}", static_cast<unsigned char>(c));
  }
  return token;
}

}  // namespace tilewright::relay
