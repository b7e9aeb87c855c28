// SPDX-License-Identifier: Apache-2.0
#include "tir/tokens.h"

#include <algorithm>

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

}  // namespace tilewright::tir
