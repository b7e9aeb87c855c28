// SPDX-License-Identifier: Apache-2.0
#include "relay/text_literal.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/format.h"
#include "base/near_match.h"
#include "ir/attr_literal.h"
#include "relay/script_ops.h"

namespace tilewright::relay {
namespace {

// Each overload checks that the literal has the field's kind, and stores it.
bool store(const Literal& v, bool* out) {
  if (v.kind != Literal::kBool && v.kind != Literal::kInt) return false;
  *out = v.integer != 0;
  return true;
}
bool store(const Literal& v, int64_t* out) {
  if (v.kind != Literal::kInt && v.kind != Literal::kBool) return false;
  *out = v.integer;
  return true;
}
bool store(const Literal& v, double* out) {
  if (v.kind != Literal::kFloat && v.kind != Literal::kInt) return false;
  *out = v.real;
  return true;
}
bool store(const Literal& v, std::string* out) {
  if (v.kind != Literal::kString) return false;
  *out = v.text;
  return true;
}
bool store(const Literal& v, DataType* out) {
  if (v.kind != Literal::kString) return false;
  auto parsed = parse_dtype(v.text);
  if (parsed.ok()) *out = *parsed;
  return parsed.ok();
}
template <class T>
bool store(const Literal& v, std::vector<T>* out) {
  if (v.kind != Literal::kList) return false;
  out->clear();
  for (const Literal& item : v.list) {
    T value{};
    if (!store(item, &value)) return false;
    out->push_back(std::move(value));
  }
  return true;
}
template <class T>
bool store(const Literal& v, std::optional<T>* out) {
  if (v.kind == Literal::kNone) {
    out->reset();
    return true;
  }
  T value{};
  if (!store(v, &value)) return false;
  *out = std::move(value);
  return true;
}

class Assigner : public AttrVisitor {
 public:
  explicit Assigner(const std::vector<NamedLiteral>& values) : values_(values), used_(values.size()) {}
  std::vector<std::string> known;
  const NamedLiteral* wrong = nullptr;
  const NamedLiteral* first_unused() const {
    for (size_t i = 0; i < used_.size(); ++i)
      if (!used_[i]) return &values_[i];
    return nullptr;
  }
#define TW_VISIT(...) \
  void visit(const char* name, __VA_ARGS__* v) override { assign(name, v); }
  TW_VISIT(bool)
  TW_VISIT(int64_t)
  TW_VISIT(double)
  TW_VISIT(std::string)
  TW_VISIT(DataType)
  TW_VISIT(std::optional<int64_t>)
  TW_VISIT(std::vector<int64_t>)
  TW_VISIT(std::optional<std::vector<int64_t>>)
  TW_VISIT(std::vector<double>)
  TW_VISIT(std::vector<std::string>)
  TW_VISIT(std::vector<std::vector<int64_t>>)
#undef TW_VISIT

 private:
  template <class T>
  void assign(const char* name, T* field) {
    known.emplace_back(name);
    for (size_t i = 0; i < values_.size(); ++i) {
      if (values_[i].name != name) continue;
      used_[i] = true;
      // Classic texts write None for an unset number
      // or list; the struct's default means the same.
      if (values_[i].value.kind == Literal::kNone) {
        T empty{};
        if (store(values_[i].value, &empty)) *field = std::move(empty);
        continue;
      }
      if (!store(values_[i].value, field)) wrong = &values_[i];
    }
  }
  const std::vector<NamedLiteral>& values_;
  std::vector<bool> used_;
};

}  // namespace

std::optional<AttrValue> Literal::as_attr() const {
  switch (kind) {
    case kBool:
      return AttrValue(integer != 0);
    case kInt:
      return AttrValue(integer);
    case kFloat:
      return AttrValue(real);
    case kString:
      return AttrValue(text);
    case kList: {
      std::vector<int64_t> integers;
      std::vector<std::string> strings;
      if (store(*this, &integers)) return AttrValue(std::move(integers));
      if (store(*this, &strings)) return AttrValue(std::move(strings));
      return std::nullopt;
    }
    case kNone:
      return std::nullopt;
  }
  return std::nullopt;
}

Result<Literal> parse_literal(Lexer& lexer, int depth) {
  Token token = lexer.next();
  Literal out;
  switch (token.kind) {
    case Token::kInt:
      out.kind = Literal::kInt;
      out.integer = token.integer;
      out.real = token.real;
      return out;
    case Token::kFloat:
      out.kind = Literal::kFloat;
      out.real = token.real;
      return out;
    case Token::kString:
      out.kind = Literal::kString;
      out.text = std::move(token.text);
      return out;
    case Token::kName: {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      if (token.text == "None") return out;
      if (token.text == "True" || token.text == "False") {
        out.kind = Literal::kBool;
        out.integer = token.text == "True";
        return out;
      }
      out.kind = Literal::kFloat;
      if (token.text == "inf") {
        out.real = kInfinity;
        return out;
      }
      if (token.text == "nanf" || token.text == "nan") {
        out.real = std::numeric_limits<double>::quiet_NaN();
        return out;
      }
      break;
    }
    case Token::kPunctuation:
      if (token.is("-") && (lexer.peek().is_name("inf") || std::isinf(lexer.peek().real))) {
        lexer.next();
        out.kind = Literal::kFloat;
        out.real = -std::numeric_limits<double>::infinity();
        return out;
      }
      if (token.is("[") || token.is("(")) {
        std::string end = token.is("[") ? "]" : ")";
        if (depth > 8) return lexer.error(token.begin, "lists nest too deeply");
        out.kind = Literal::kList;
        while (!lexer.peek().is(end)) {
          out.list.push_back(TW_TRY(parse_literal(lexer, depth + 1)));
          if (!lexer.peek().is(",")) break;
          lexer.next();
        }
        Token last = lexer.next();
        if (!last.is(end))
          return lexer.error(last.begin, format("{} stands where '{}' was expected", describe(last), end));
        return out;
      }
      break;
    case Token::kEnd:
    case Token::kLocal:
    case Token::kGlobal:
    case Token::kBad:
      break;
  }
  return lexer.error(token.begin, format("{} stands where a value was expected", describe(token)));
}

Result<AttrValue> parse_attribute(Lexer& lexer, const std::string& name) {
  const Token first = lexer.peek();
  Lexer ahead = lexer;
  auto literal = parse_literal(ahead);
  if (literal.ok())
    if (auto value = literal->as_attr()) {
      lexer = ahead;
      return *value;
    }
  if (!first.is("[") && !first.is("(") && !first.is("{") && !first.is_name("None"))
    return lexer.error(first.begin, format("the attribute {} has a value of no known kind", name));
  int open = 0;
  do {
    const Token token = lexer.next();
    if (token.kind == Token::kEnd || token.kind == Token::kBad)
      return lexer.error(token.begin, format("the attribute {} has no end", name));
    if (token.is("[") || token.is("(") || token.is("{")) ++open;
    if (token.is("]") || token.is(")") || token.is("}")) --open;
  } while (open > 0);
  return AttrValue(kLiteralAttr + lexer.since(first.begin));
}

Result<AttrsRef> script_attributes(const std::vector<NamedLiteral>& values, const Lexer& lexer) {
  std::vector<std::pair<std::string, AttrValue>> out;
  for (const NamedLiteral& each : values) {
    auto value = each.value.as_attr();
    if (!value) return lexer.error(each.at, format("the attribute {} has a value of no known kind", each.name));
    out.emplace_back(each.name, std::move(*value));
  }
  return AttrsRef(make_node<ScriptAttrs>(std::move(out)));
}

Status assign_attributes(const AttrsRef& attrs, const std::string& op, const std::vector<NamedLiteral>& values,
                         const Lexer& lexer) {
  Assigner assigner(values);
  // The struct is new and not shared.
  if (attrs) const_cast<AttrsNode*>(attrs.get())->visit(assigner);
  if (const NamedLiteral* wrong = assigner.wrong)
    return lexer.error(wrong->at, format("the attribute {} of {} has a value of the wrong kind", wrong->name, op));
  if (const NamedLiteral* unknown = assigner.first_unused())
    return lexer.error(unknown->at, format("{} has no attribute '{}'", op, unknown->name.substr(0, 64)),
                       ErrorCode::kParseError, did_you_mean(unknown->name, assigner.known));
  return Ok{};
}

}  // namespace tilewright::relay
