// SPDX-License-Identifier: Apache-2.0
#include "tir/parse_expr.h"

#include <charconv>
#include <limits>

#include "base/format.h"
#include "tir/scalar.h"

namespace tilewright::tir {
namespace {

// Levels of parentheses, calls and subscripts.
constexpr int kMaxTextNesting = 400;

}  // namespace

void ExprParser::bind(const std::string& name, PrimExpr variable, Buffer buffer) {
  if (names_.count(name)) fail(format("{} is bound already", name));
  names_[name] = {std::move(variable), std::move(buffer)};
  order_.push_back(name);
}

PrimExpr ExprParser::bind_variable(const std::string& name, DataType type) {
  PrimExpr v = make_var(name, type);
  bind(name, v, {});
  return v;
}

void ExprParser::unbind_to(size_t mark) {
  for (; order_.size() > mark; order_.pop_back()) names_.erase(order_.back());
}

// expr and primary recurse for nested text: everything else is in functions of its own, so that a level takes little
// stack.
PrimExpr ExprParser::expr(int precedence) {
  if (++depth_ > kMaxTextNesting) too_deep();
  PrimExpr left = precedence <= kNotPrecedence && accept_word("not") ? made<NotNode>(expr(kNotPrecedence)) : primary();
  while (const OperatorRow* row = operator_here()) {
    if (row->precedence < precedence) break;
    ++at_;
    left = combined(*row, std::move(left), expr(row->precedence + 1));
  }
  --depth_;
  return left;
}

PrimExpr ExprParser::primary() {
  if (accept("(")) {
    PrimExpr e = expr();
    expect(")");
    return e;
  }
  if (token().kind == Token::kWord && names_.find(token().text) != names_.end()) return named();
  if (token().kind == Token::kWord && lines_[row_].tokens[at_ + 1].text == "(" && !parse_dtype(token().text).ok())
    return call();
  return leaf();
}

[[gnu::noinline]] void ExprParser::too_deep() const { fail("an expression is nested too deeply"); }

[[gnu::noinline]] PrimExpr ExprParser::combined(const OperatorRow& row, PrimExpr left, PrimExpr right) {
  if (left->dtype != right->dtype || !operator_takes(row.kind, left->dtype))
    fail(format("'{}' between {} and {}", row.token, left->dtype.str(), right->dtype.str()));
  DataType type = operator_result(row.kind, left->dtype);
  return make_node<BinaryNode>(row.kind, type, std::move(left), std::move(right));
}

[[gnu::noinline]] const OperatorRow* ExprParser::operator_here() const {
  if (token().kind != Token::kWord && token().kind != Token::kSymbol) return nullptr;
  for (const auto& row : kOperators)
    if (row.token && token().text == row.token) return &row;
  return nullptr;
}

// Leaves: constants and shared expressions.
[[gnu::noinline]] PrimExpr ExprParser::leaf() {
  switch (token().kind) {
    case Token::kEnd:
      fail("the line ends inside an expression");
    case Token::kInteger:
    case Token::kDecimal:
      return literal({}, false);
    case Token::kShared: {
      auto it = shared_.find(token().text);
      if (it == shared_.end()) fail(format("{} is not defined on the lines before this statement", token().text));
      ++at_;
      return it->second;
    }
    case Token::kSymbol:
      if (accept("-")) return literal({}, true);
      fail(format("an expression expected, found '{}'", token().text));
    case Token::kWord:
      break;
  }
  const std::string_view text = token().text;
  if (text == "inf" || text == "nan") return literal({}, false);
  if (accept("true")) return make_int(1, kBool);
  if (accept("false")) return make_int(0, kBool);
  auto type = parse_dtype(text);
  if (!type.ok() || lines_[row_].tokens[at_ + 1].text != "(")
    fail(format("{} is not the name of a variable or buffer here", text));
  at_ += 2;
  bool negative = accept("-");
  PrimExpr e = literal(*type, negative);
  expect(")");
  return e;
}

// A variable, or an element of a buffer.
[[gnu::noinline]] PrimExpr ExprParser::named() {
  const Named& name = names_.find(token().text)->second;
  ++at_;
  if (name.variable) return name.variable;
  Buffer b = name.buffer;
  auto [index, mask] = subscript();
  DataType type = b->scope == Scope::kRegister ? b->dtype : b->dtype.element().with_lanes(index->dtype.lanes);
  return made<LoadNode>(type, b, index, mask);
}

std::pair<PrimExpr, PrimExpr> ExprParser::subscript() {
  expect("[");
  PrimExpr index = expr(), mask;
  if (accept(",")) {
    expect_word("mask");
    expect("=");
    mask = expr();
  }
  expect("]");
  return {index, mask};
}

// A number of the given dtype; without one, int64 or float32 by its notation.
PrimExpr ExprParser::literal(std::optional<DataType> type, bool negative) {
  const Token number = token();
  if (type && type->lanes != 1) fail("a constant has one lane; broadcast it");
  if (number.kind == Token::kWord ? number.text != "inf" && number.text != "nan"
                                  : number.kind != Token::kInteger && number.kind != Token::kDecimal)
    fail(format("a number expected, found '{}'", number.text));
  if (number.kind == Token::kInteger && (!type || !type->is_float())) {
    DataType t = type.value_or(kInt64);
    if (!t.is_integral()) fail(format("a whole number cannot be {}", t.str()));
    int64_t value =
        t.is_int() ? signed_value(number.text, negative) : static_cast<int64_t>(unsigned_value(number.text));
    if (wrap_integer(t, value) != value || (negative && !t.is_int()))
      fail(format("{} does not fit {}", number.text, t.str()));
    ++at_;
    return make_int(value, t);
  }
  DataType t = type.value_or(kFloat32);
  if (!t.is_float()) fail(format("{} is no {}", number.text, t.str()));
  double value = 0;
  if (number.text == "inf")
    value = std::numeric_limits<double>::infinity();
  else if (number.text == "nan")
    value = std::numeric_limits<double>::quiet_NaN();
  else {
    auto [end, error] = std::from_chars(number.text.data(), number.text.data() + number.text.size(), value);
    if (error != std::errc() || end != number.text.data() + number.text.size())
      fail(format("'{}' is no number", number.text));
  }
  ++at_;
  return make_float(negative ? -value : value, t);
}

[[gnu::noinline]] PrimExpr ExprParser::call() {
  std::string_view name = take();
  expect("(");
  if (name == "cast" || name == "reinterpret") return conversion_call(name);
  if (name == "let") return let_call();
  if (name == "ramp" || name == "broadcast") return lanes_call(name);
  if (name == "shuffle") return shuffle_call();
  if (name == "extern") return extern_call();
  return plain_call(name);
}

PrimExpr ExprParser::conversion_call(std::string_view name) {
  DataType type = dtype();
  expect(",");
  PrimExpr value = expr();
  expect(")");
  if (name == "cast") return made<CastNode>(type, value);
  return made<ReinterpretNode>(type, value);
}

PrimExpr ExprParser::let_call() {
  size_t mark = order_.size();
  std::string variable = word("a variable");
  expect(":");
  DataType type = dtype();
  expect("=");
  PrimExpr value = expr();
  expect(",");
  PrimExpr v = bind_variable(variable, type);
  PrimExpr body = expr();
  expect(")");
  unbind_to(mark);
  return made<LetNode>(v, value, body);
}

PrimExpr ExprParser::lanes_call(std::string_view name) {
  PrimExpr value = expr();
  if (value->dtype.lanes != 1) fail(format("{} of {}", name, value->dtype.str()));
  expect(",");
  int64_t stride = 0;
  if (name == "ramp") {
    stride = integer(INT64_MIN, INT64_MAX);
    expect(",");
  }
  int lanes = static_cast<int>(integer(2, UINT16_MAX));
  expect(")");
  if (name == "ramp") return made<RampNode>(value, stride, lanes);
  return made<BroadcastNode>(value, lanes);
}

PrimExpr ExprParser::shuffle_call() {
  std::vector<PrimExpr> vectors;
  std::vector<int> indices;
  expect("[");
  do vectors.push_back(expr());
  while (accept(","));
  expect("]");
  expect(",");
  expect("[");
  do indices.push_back(static_cast<int>(integer(0, INT32_MAX)));
  while (accept(","));
  expect("]");
  expect(")");
  if (indices.size() > UINT16_MAX) fail("a shuffle gives at most 65535 lanes");
  return made<ShuffleNode>(std::move(vectors), std::move(indices));
}

PrimExpr ExprParser::extern_call() {
  std::string function = word("a function");
  expect(",");
  const DataType type = dtype();
  std::vector<PrimExpr> args;
  while (accept(",")) args.push_back(expr());
  expect(")");
  return made<ExternNode>(type, std::move(function), std::move(args));
}

// Functions whose arguments are plain expressions.
PrimExpr ExprParser::plain_call(std::string_view name) {
  std::vector<PrimExpr> args;
  do args.push_back(expr());
  while (accept(","));
  expect(")");
  if (name == "select") {
    if (args.size() != 3) fail("select takes a condition and two values");
    return made<SelectNode>(args[0], args[1], args[2]);
  }
  if (name == "min" || name == "max" || name == "truncmod") {
    if (args.size() != 2) fail(format("{} takes two values", name));
    const ExprKind kind = name == "min" ? ExprKind::kMin : name == "max" ? ExprKind::kMax : ExprKind::kMod;
    return made<BinaryNode>(kind, args[0]->dtype, args[0], args[1]);
  }
  for (int i = 0; i <= static_cast<int>(Intrinsic::k_if_then_else); ++i) {
    Intrinsic op = static_cast<Intrinsic>(i);
    if (name != intrinsic_name(op)) continue;
    if (static_cast<int>(args.size()) != intrinsic_arity(op))
      fail(format("{} takes {} arguments, not {}", name, intrinsic_arity(op), args.size()));
    DataType type = call_result(op, args);
    return made<CallNode>(type, op, std::move(args));
  }
  fail(format("{} is not the name of a function", name));
}

}  // namespace tilewright::tir
