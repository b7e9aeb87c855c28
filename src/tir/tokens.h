// SPDX-License-Identifier: Apache-2.0
// Lines and tokens of the text form (tir/text.h), for the parser.
#pragma once
#include <string>
#include <string_view>
#include <vector>

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

// Thrown and caught inside the parser: parse_func turns it into its result.
struct ParseFailure {
  Diagnostic diagnostic;
};
[[noreturn]] void fail_at(int line, int column, std::string message);

// The lines that hold something; comments run from '#'. Tokens point into `text`.
std::vector<Line> split_lines(std::string_view text);

}  // namespace tilewright::tir
