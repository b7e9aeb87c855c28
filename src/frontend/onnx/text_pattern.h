// SPDX-License-Identifier: Apache-2.0
// Regular expressions of RegexFullMatch: what RE2 takes without flags and names, matched in time linear in the text.
#pragma once
#include <memory>
#include <string_view>

#include "base/result.h"

namespace tilewright::onnx {

class TextPattern {
 public:
  // Errors: InvalidArgument (not a pattern), LimitExceeded (a pattern that grows too large).
  static Result<TextPattern> parse(std::string_view pattern);
  // Whether the whole text, in UTF-8, is what the pattern describes.
  bool matches(std::string_view text) const;

 private:
  struct Program;
  std::shared_ptr<const Program> program_;
};

}  // namespace tilewright::onnx
