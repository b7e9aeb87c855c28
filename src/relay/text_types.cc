// SPDX-License-Identifier: Apache-2.0
// Types and dimensions of the text form.
#include <algorithm>

#include "base/checked.h"
#include "base/format.h"
#include "relay/text_parser.h"

namespace tilewright::relay {
namespace {
constexpr int kMaxDimTerms = 64;
constexpr size_t kMaxRank = 64;
}  // namespace

Result<std::vector<Type>> TextParser::types(std::string_view end, int depth) {
  std::vector<Type> out;
  while (!lexer_.peek().is(end)) {
    out.push_back(TW_TRY(type(depth + 1)));
    if (!accept(",")) break;
  }
  TW_TRY_STATUS(expect(end));
  return out;
}

// "[A, B]", or nothing. The variables come into scope.
Result<std::vector<Type>> TextParser::type_variables() {
  std::vector<Type> out;
  if (!accept("[")) return out;
  while (!lexer_.peek().is("]")) {
    Token name = lexer_.next();
    if (name.kind != Token::kName) return unexpected(name, "a type variable");
    out.push_back(variable_type(name.text));
    type_scope_[name.text].push_back(out.back());
    if (!accept(",")) break;
  }
  TW_TRY_STATUS(expect("]"));
  return out;
}

Result<Type> TextParser::type(int depth) {
  TW_TRY_STATUS(deep(depth));
  Token token = lexer_.next();
  if (token.is("(")) return limited(tuple_type(TW_TRY(types(")", depth))), token.begin);
  if (token.is_name("_")) return incomplete_type();
  if (token.is_name("fn")) {
    std::vector<Type> variables = TW_TRY(type_variables());
    TW_TRY_STATUS(expect("("));
    std::vector<Type> args = TW_TRY(types(")", depth));
    TW_TRY_STATUS(expect("->"));
    Type result = TW_TRY(type(depth + 1));
    for (const Type& variable : variables) type_scope_[as_variable(variable)->name].pop_back();
    return limited(func_type(std::move(args), std::move(result), std::move(variables)), token.begin);
  }
  if (token.is_name("Tensor")) {
    TW_TRY_STATUS(expect("["));
    Shape shape = TW_TRY(dims());
    TW_TRY_STATUS(expect(","));
    DataType d = TW_TRY(dtype(lexer_.next()));
    TW_TRY_STATUS(expect("]"));
    return tensor_type(std::move(shape), d);
  }
  if (token.is_name("ref") && accept("(")) {
    Type value = TW_TRY(type(depth + 1));
    TW_TRY_STATUS(expect(")"));
    return limited(reference_type(std::move(value)), token.begin);
  }
  return named_type(token, depth);
}

// A type variable, an algebraic data type or a scalar's element type.
Result<Type> TextParser::named_type(const Token& token, int depth) {
  if (token.kind == Token::kName) {
    if (auto it = type_scope_.find(token.text); it != type_scope_.end() && !it->second.empty())
      return it->second.back();
    if (auto it = data_types_.find(token.text); it != data_types_.end()) {
      std::vector<Type> args;
      if (accept("[")) args = TW_TRY(types("]", depth));
      if (args.size() != it->second)
        return lexer_.error(token.begin,
                            format("the type {} takes {} arguments, not {}", token.text, it->second, args.size()));
      return limited(data_type(token.text, std::move(args)), token.begin);
    }
  }
  return tensor_type({}, TW_TRY(dtype(token)));
}

Result<DataType> TextParser::dtype(const Token& token) {
  if (token.kind != Token::kName) return unexpected(token, "a type");
  auto result = parse_dtype(token.text);
  if (!result.ok()) return lexer_.error(token.begin, format("'{}' is not a type", token.text.substr(0, 64)));
  return *result;
}

Result<Shape> TextParser::dims() {
  lexer_.set_in_dims(true);
  auto parse = [&]() -> Result<Shape> {
    Shape shape;
    size_t at = lexer_.peek().begin;
    TW_TRY_STATUS(expect("("));
    terms_ = 0;
    while (!lexer_.peek().is(")")) {
      if (shape.size() >= kMaxRank) return lexer_.error(at, format("a tensor has more than {} dimensions", kMaxRank));
      shape.push_back(TW_TRY(sum(0)));
      if (!accept(",")) break;
    }
    TW_TRY_STATUS(expect(")"));
    std::vector<int64_t> known;
    for (const Dim& d : shape)
      if (d.is_const()) known.push_back(d.value());
    if (!checked_element_count(known).ok())
      return lexer_.error(at, "a dimension is negative or the tensor is too large");
    return shape;
  };
  auto shape = parse();
  lexer_.set_in_dims(false);
  return shape;
}

Result<Dim> TextParser::sum(int depth) {
  Dim out = TW_TRY(product(depth));
  for (;;) {
    if (accept("+"))
      out = out + TW_TRY(product(depth));
    else if (accept("-"))
      out = out - TW_TRY(product(depth));
    else
      return out;
  }
}

Result<Dim> TextParser::product(int depth) {
  Dim out = TW_TRY(factor(depth));
  for (;;) {
    DimKind kind;
    size_t at = lexer_.peek().begin;
    if (accept("*"))
      kind = DimKind::kMul;
    else if (accept("//"))
      kind = DimKind::kFloorDiv;
    else if (accept("%"))
      kind = DimKind::kMod;
    else
      return out;
    Dim right = TW_TRY(factor(depth));
    if (kind != DimKind::kMul && right == Dim(0)) return lexer_.error(at, "a dimension is divided by zero");
    out = make_dim(kind, out, right);
  }
}

Result<Dim> TextParser::factor(int depth) {
  TW_TRY_STATUS(deep(depth));
  Token token = lexer_.next();
  if (++terms_ > kMaxDimTerms) return lexer_.error(token.begin, format("a shape has more than {} terms", kMaxDimTerms));
  if (token.kind == Token::kInt) return Dim(token.integer);
  if (token.is("-")) return Dim(0) - TW_TRY(factor(depth + 1));
  if (token.is("?")) return Dim::any();
  if (token.is("(")) {
    Dim out = TW_TRY(sum(depth + 1));
    TW_TRY_STATUS(expect(")"));
    return out;
  }
  if (token.kind != Token::kName) return unexpected(token, "a dimension");
  if ((token.text == "min" || token.text == "max") && lexer_.peek().is("(")) {
    lexer_.next();
    Dim a = TW_TRY(sum(depth + 1));
    TW_TRY_STATUS(expect(","));
    Dim b = TW_TRY(sum(depth + 1));
    TW_TRY_STATUS(expect(")"));
    return make_dim(token.text == "min" ? DimKind::kMin : DimKind::kMax, a, b);
  }
  return Dim::symbol(token.text);
}

Result<Type> TextParser::limited(Type t, size_t at) {
  if (std::string wrong = limits_.problem(t); !wrong.empty()) return lexer_.error(at, std::move(wrong));
  return t;
}

bool TextParser::matches(const Type& declared, const Type& actual) {
  auto open = [](const Type& t) { return t->kind == TypeKind::kIncomplete || t->kind == TypeKind::kVariable; };
  if (declared == actual || open(declared) || open(actual)) return true;
  if (declared->kind != actual->kind) return false;
  if (const auto* t = as_tensor(declared)) {
    const auto& other = *as_tensor(actual);
    // Arithmetic on an unknown size: a new unknown for each occurrence.
    auto unknown = [](const Dim& d) { return !d.is_const() && d.str().find('?') != std::string::npos; };
    auto same = [&](const Dim& a, const Dim& b) { return a == b || unknown(a) || unknown(b); };
    return t->dtype == other.dtype && t->shape.size() == other.shape.size() &&
           std::equal(t->shape.begin(), t->shape.end(), other.shape.begin(), same);
  }
  if (declared->kind == TypeKind::kData && as_data(declared)->name != as_data(actual)->name) return false;
  std::vector<Type> a = parts_of(declared), b = parts_of(actual);
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), matches);
}

}  // namespace tilewright::relay
