// SPDX-License-Identifier: Apache-2.0
// Regular expressions for RegexFullMatch: RE2's syntax without flags and named groups, matched in linear time.
#pragma once
#include <memory>
#include <string_view>

#include "base/result.h"

namespace tilewright::onnx {

class TextPattern {
 public:
  // Errors: InvalidArgument (not a pattern), LimitExceeded (a pattern whose program grows too large).
  static Result<TextPattern> parse(std::string_view pattern);
  // Whether the pattern matches the whole text, given in UTF-8.
  bool matches(std::string_view text) const;

 private:
  struct Program;
  std::shared_ptr<const Program> program_;
};

}  // namespace tilewright::onnx
