// SPDX-License-Identifier: Apache-2.0
#include "tir/tokens.h"

#include <algorithm>
#include <charconv>

#include "base/format.h"

namespace tilewright::tir {
namespace {
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
}  // namespace

void fail_at(int line, int column, std::string message) {
  throw ParseFailure{Diagnostic(ErrorCode::kParseError, std::move(message), format("line {}, column {}", line, column),
                                "src/tir/text.h describes the text form")};
}

std::vector<Line> split_lines(std::string_view text) {
  static constexpr std::string_view kSymbols[] = {"//", "==", "!=", "<=", ">=", "<<", ">>", "(", ")",
                                                  "[",  "]",  ",",  ":",  "=",  "<",  ">",  "|", "^",
                                                  "&",  "+",  "-",  "*",  "/",  "%",  "?"};
  std::vector<Line> lines;
  int number = 0;
  while (!text.empty()) {
    std::string_view row = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), row.size() + 1));
    ++number;
    size_t at = row.find_first_not_of(' ');
    if (at == std::string_view::npos || row[at] == '#') continue;
    Line line{number, static_cast<int>(at), {}};
    while (at < row.size()) {
      if (row[at] == ' ') {
        ++at;
        continue;
      }
      if (row[at] == '#') break;
      size_t end = at + 1;
      Token::Kind kind = Token::kSymbol;
      if (is_letter(row[at])) {
        kind = Token::kWord;
        while (end < row.size() && (is_letter(row[end]) || is_digit(row[end]) || row[end] == '.')) ++end;
      } else if (is_digit(row[at])) {
        kind = Token::kInteger;
        for (; end < row.size(); ++end) {
          char c = row[end];
          if (c == '.' || c == 'e') kind = Token::kDecimal;
          bool sign = (c == '-' || c == '+') && row[end - 1] == 'e';
          if (!is_digit(c) && c != '.' && c != 'e' && !sign) break;
        }
      } else if (row[at] == '%' && end < row.size() && is_digit(row[end])) {
        kind = Token::kShared;
        while (end < row.size() && is_digit(row[end])) ++end;
      } else {
        bool known = false;
        for (auto s : kSymbols)
          if (!known && row.substr(at, s.size()) == s) {
            known = true;
            end = at + s.size();
          }
        if (!known) fail_at(number, static_cast<int>(at) + 1, "a character that no token starts with");
      }
      line.tokens.push_back({kind, row.substr(at, end - at), static_cast<int>(at) + 1});
      at = end;
    }
    line.tokens.push_back({Token::kEnd, "", static_cast<int>(row.size()) + 1});
    lines.push_back(std::move(line));
  }
  return lines;
}

void TokenCursor::fail(std::string message) const {
  if (row_ >= lines_.size()) fail_at(lines_.back().number, lines_.back().tokens.back().column, std::move(message));
  fail_at(lines_[row_].number, token().column, std::move(message));
}

void TokenCursor::end_line() {
  if (token().kind != Token::kEnd) fail(format("'{}' where the line should end", token().text));
  ++row_;
  at_ = 0;
}

bool TokenCursor::accept(std::string_view text) {
  bool found = next_is(text);
  at_ += found;
  return found;
}

void TokenCursor::expect(std::string_view text) {
  if (!accept(text)) fail(format("'{}' expected, found '{}'", text, token().text));
}

void TokenCursor::expect_word(std::string_view text) {
  if (!accept_word(text)) fail(format("'{}' expected, found '{}'", text, token().text));
}

std::string TokenCursor::word(const char* what) {
  if (token().kind != Token::kWord) fail(format("{} expected, found '{}'", what, token().text));
  return std::string(take());
}

int64_t TokenCursor::integer(int64_t low, int64_t high) {
  bool negative = accept("-");
  if (token().kind != Token::kInteger) fail(format("a whole number expected, found '{}'", token().text));
  const int64_t value = signed_value(take(), negative);
  if (value < low || value > high) fail(format("{} is not between {} and {}", value, low, high));
  return value;
}

int64_t TokenCursor::signed_value(std::string_view digits, bool negative) {
  uint64_t magnitude = unsigned_value(digits);
  if (magnitude > uint64_t{INT64_MAX} + negative) fail(format("{} does not fit 64 bits", digits));
  return static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
}

uint64_t TokenCursor::unsigned_value(std::string_view digits) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) fail(format("{} does not fit 64 bits", digits));
  return value;
}

DataType TokenCursor::dtype() {
  if (token().kind != Token::kWord) fail(format("a dtype expected, found '{}'", token().text));
  auto type = parse_dtype(token().text);
  if (!type.ok()) fail(type.error().message);
  ++at_;
  return *type;
}

}  // namespace tilewright::tir
