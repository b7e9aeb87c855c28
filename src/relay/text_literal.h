// SPDX-License-Identifier: Apache-2.0
// Values of attributes in the text form, and their assignment to an operator's attribute struct.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/attrs.h"
#include "relay/text_lexer.h"

namespace tilewright::relay {

struct Literal {
  enum Kind { kNone, kBool, kInt, kFloat, kString, kList };
  Kind kind = kNone;
  int64_t integer = 0;  // kBool, kInt
  double real = 0;      // kInt, kFloat
  std::string text;
  std::vector<Literal> list;

  // The literal as a function attribute; nothing if no kind of AttrValue can hold it.
  std::optional<AttrValue> as_attr() const;
};

struct NamedLiteral {
  std::string name;
  Literal value;
  size_t at = 0;
};

Result<Literal> parse_literal(Lexer& lexer, int depth = 0);
// The value of a function's attribute: a literal, or the text (ir/attr_literal.h) of None, of a map `{"a"=1}` or of a
// list of several kinds.
Result<AttrValue> parse_attribute(Lexer& lexer, const std::string& name);
// The attributes of a call of an operator that a script defines. Error: ParseError for a value of no known kind.
Result<AttrsRef> script_attributes(const std::vector<NamedLiteral>& values, const Lexer& lexer);
// Sets the named fields of `attrs` (a fresh struct, or null when the operator has none). Errors: ParseError for an
// unknown name (with the nearest) or a value of the wrong kind.
Status assign_attributes(const AttrsRef& attrs, const std::string& op, const std::vector<NamedLiteral>& values,
                         const Lexer& lexer);

}  // namespace tilewright::relay
