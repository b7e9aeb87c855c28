// SPDX-License-Identifier: Apache-2.0
// Reads the text form. One file, longer than others, because the grammar is one mutually recursive whole.
#include <algorithm>
#include <unordered_map>

#include "base/checked.h"
#include "base/format.h"
#include "base/near_match.h"
#include "relay/op.h"
#include "relay/text.h"
#include "relay/text_lexer.h"
#include "relay/text_literal.h"

namespace tilewright::relay {
namespace {

// Limits that keep hostile texts from exhausting the stack or memory; real modules stay far below.
constexpr int kMaxDepth = 200;
constexpr int64_t kMaxTypeLeaves = 1 << 16;
constexpr int kMaxDimTerms = 64;
constexpr size_t kMaxRank = 64;

class Parser {
 public:
  Parser(std::string_view text, std::span<const Tensor> constants, const ParseOptions& options)
      : lexer_(text, options.origin), constants_(constants), options_(options) {}

  Result<Module> module() {
    const Lexer start = lexer_;
    TW_TRY_STATUS(signatures());
    lexer_ = start;
    TW_TRY_STATUS(version());
    Module out;
    while (lexer_.peek().is("#")) TW_TRY_STATUS(metadata(&out));
    while (lexer_.peek().kind != Token::kEnd) {
      size_t at = lexer_.peek().begin;
      TW_TRY_STATUS(expect_name("def"));
      Token name = lexer_.next();
      if (name.kind != Token::kGlobal) return unexpected(name, "a function's name such as @main");
      bindings_.clear();
      scope_.clear();
      Expr function = TW_TRY(function_rest(0));
      if (!out.functions.emplace(name.text, function).second)
        return lexer_.error(at, format("@{} is defined twice", name.text));
    }
    return out;
  }

 private:
  // --- tokens
  Diagnostic unexpected(const Token& token, std::string_view wanted) {
    return lexer_.error(token.begin, format("{} stands where {} was expected", describe(token), wanted));
  }
  Status expect(std::string_view punctuation) {
    Token token = lexer_.next();
    if (!token.is(punctuation)) return unexpected(token, format("'{}'", punctuation));
    return Ok{};
  }
  Status expect_name(std::string_view name) {
    Token token = lexer_.next();
    if (!token.is_name(name)) return unexpected(token, format("'{}'", name));
    return Ok{};
  }
  bool accept(std::string_view punctuation) {
    if (!lexer_.peek().is(punctuation)) return false;
    lexer_.next();
    return true;
  }
  Status deep(int depth) {
    if (depth > kMaxDepth) return lexer_.error(lexer_.peek().begin, format("the text nests deeper than {} levels", kMaxDepth));
    return Ok{};
  }
  // An error of building an expression gets this place; the operator's name moves into the message.
  Diagnostic placed(Diagnostic error, size_t at) {
    if (!error.where.empty()) error.message = error.where + ": " + error.message;
    error.where = lexer_.place(at);
    return error;
  }

  // --- header
  Status version() {
    TW_TRY_STATUS(expect("#"));
    TW_TRY_STATUS(expect("["));
    TW_TRY_STATUS(expect_name("version"));
    TW_TRY_STATUS(expect("="));
    Token token = lexer_.next();
    if (token.kind != Token::kString) return unexpected(token, "a version in quotes");
    if (token.text != "0.0.5") return lexer_.error(token.begin, format("version {} of the text form is not read", token.text),
                                                   ErrorCode::kParseError, "only \"0.0.5\" is");
    return expect("]");
  }
  Status metadata(Module* out) {
    TW_TRY_STATUS(expect("#"));
    TW_TRY_STATUS(expect("["));
    TW_TRY_STATUS(expect_name("metadata"));
    TW_TRY_STATUS(expect("("));
    Token key = lexer_.next();
    if (key.kind != Token::kString) return unexpected(key, "a key in quotes");
    TW_TRY_STATUS(expect(")"));
    TW_TRY_STATUS(expect("="));
    Token value = lexer_.next();
    if (value.kind != Token::kString) return unexpected(value, "a value in quotes");
    out->metadata[key.text] = value.text;
    return expect("]");
  }

  // --- types
  Result<Type> type(int depth) {
    TW_TRY_STATUS(deep(depth));
    Token token = lexer_.next();
    if (token.is("(")) {
      std::vector<Type> fields;
      while (!lexer_.peek().is(")")) {
        fields.push_back(TW_TRY(type(depth + 1)));
        if (!accept(",")) break;
      }
      TW_TRY_STATUS(expect(")"));
      return limited(tuple_type(std::move(fields)), token.begin);
    }
    if (token.is_name("_")) return incomplete_type();
    if (token.is_name("fn")) {
      TW_TRY_STATUS(expect("("));
      std::vector<Type> args;
      while (!lexer_.peek().is(")")) {
        args.push_back(TW_TRY(type(depth + 1)));
        if (!accept(",")) break;
      }
      TW_TRY_STATUS(expect(")"));
      TW_TRY_STATUS(expect("->"));
      Type result = TW_TRY(type(depth + 1));
      return limited(func_type(std::move(args), std::move(result)), token.begin);
    }
    if (token.is_name("Tensor")) {
      TW_TRY_STATUS(expect("["));
      Shape shape = TW_TRY(dims());
      TW_TRY_STATUS(expect(","));
      DataType d = TW_TRY(dtype(lexer_.next()));
      TW_TRY_STATUS(expect("]"));
      return tensor_type(std::move(shape), d);
    }
    return tensor_type({}, TW_TRY(dtype(token)));
  }
  Result<DataType> dtype(const Token& token) {
    if (token.kind != Token::kName) return unexpected(token, "a type");
    auto result = parse_dtype(token.text);
    if (!result.ok()) return lexer_.error(token.begin, format("'{}' is not a type", token.text.substr(0, 64)));
    return *result;
  }
  Result<Shape> dims() {
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
      if (!checked_element_count(known).ok()) return lexer_.error(at, "a dimension is negative or the tensor is too large");
      return shape;
    };
    auto shape = parse();
    lexer_.set_in_dims(false);
    return shape;
  }
  Result<Dim> sum(int depth) {
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
  Result<Dim> product(int depth) {
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
  Result<Dim> factor(int depth) {
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

  // A type that is printed in full must not be exponentially larger than its text.
  struct Extent {
    int64_t leaves = 1;
    int depth = 1;
  };
  Extent extent_of(const Type& t) {
    if (as_tensor(t) || t->kind == TypeKind::kIncomplete) return {};
    if (auto it = extents_.find(t.get()); it != extents_.end()) return it->second.second;
    Extent out{1, 1};
    auto add = [&](const Type& part) {
      Extent e = extent_of(part);
      out.leaves = std::min(kMaxTypeLeaves + 1, out.leaves + e.leaves);
      out.depth = std::max(out.depth, e.depth + 1);
    };
    if (const auto* tuple = as_tuple(t))
      for (const Type& field : tuple->fields) add(field);
    if (const auto* function = as_func(t)) {
      for (const Type& arg : function->args) add(arg);
      add(function->result);
    }
    extents_.emplace(t.get(), std::make_pair(t, out));
    return out;
  }
  Result<Type> limited(Type t, size_t at) {
    Extent extent = extent_of(t);
    if (extent.leaves > kMaxTypeLeaves || extent.depth > kMaxDepth) return lexer_.error(at, "a type is too large");
    return t;
  }
  // Records how deep scopes nest inside an expression, through bindings too: printing and passes recurse over scopes.
  Result<Expr> made(Expr e, size_t at) {
    (void)TW_TRY(limited(e->type, at));
    int nesting = 0;
    bool scope = e->kind == ExprKind::kFunction || e->kind == ExprKind::kIf;
    for (const Expr& kid : children(e)) nesting = std::max(nesting, nesting_of(kid) + (scope ? 1 : 0));
    if (const auto* let = as<LetNode>(e)) nesting = std::max(nesting_of(let->value) + 1, nesting_of(let->body));
    if (nesting > kMaxDepth) return lexer_.error(at, format("functions nest deeper than {} levels", kMaxDepth));
    if (nesting > 0) nesting_[e.get()] = nesting;
    return e;
  }
  int nesting_of(const Expr& e) const {
    auto it = nesting_.find(e.get());
    return it == nesting_.end() ? 0 : it->second;
  }

  // --- functions and blocks
  struct Header {
    std::vector<Expr> params;
    DictAttrs attrs;
    Type declared = incomplete_type();
    size_t result_at = 0;
  };
  // "(%x: T, Primitive=1) -> T"
  Result<Header> header(int depth) {
    TW_TRY_STATUS(deep(depth));
    Header out;
    TW_TRY_STATUS(expect("("));
    while (!lexer_.peek().is(")")) {
      Token token = lexer_.next();
      if (token.kind == Token::kLocal) {
        if (lexer_.peek().is("{")) TW_TRY_STATUS(skip_annotation());
        Type t = incomplete_type();
        if (accept(":")) t = TW_TRY(type(depth + 1));
        out.params.push_back(make_var(token.text, std::move(t)));
      } else if (token.kind == Token::kName || token.kind == Token::kString) {
        TW_TRY_STATUS(expect("="));
        if (lexer_.peek().is_name("meta")) {  // a virtual device of the classic stack: means nothing here
          TW_TRY_STATUS(skip_meta());
        } else {
          size_t value_at = lexer_.peek().begin;
          auto value = TW_TRY(parse_literal(lexer_)).as_attr();
          if (!value) return lexer_.error(value_at, format("the attribute {} has a value of no known kind", token.text));
          out.attrs[token.text] = *value;
        }
      } else {
        return unexpected(token, "a parameter or an attribute");
      }
      if (!accept(",")) break;
    }
    TW_TRY_STATUS(expect(")"));
    out.result_at = lexer_.peek().begin;
    if (accept("->")) out.declared = TW_TRY(type(depth + 1));
    return out;
  }
  // "(%x: T, Primitive=1) -> T { ... }"
  Result<Expr> function_rest(int depth) {
    size_t at = lexer_.peek().begin;
    Header head = TW_TRY(header(depth));
    TW_TRY_STATUS(expect("{"));
    for (const Expr& param : head.params) declare(param);
    Expr body = TW_TRY(block("}", depth + 1));
    TW_TRY_STATUS(expect("}"));
    for (size_t i = 0; i < head.params.size(); ++i) undeclare();
    if (!matches(head.declared, body->type))
      return lexer_.error(head.result_at,
                          format("the function says it gives {}, its body gives {}", type_text(head.declared), type_text(body->type)),
                          ErrorCode::kTypeMismatch);
    return made(make_function(std::move(head.params), std::move(body), std::move(head.attrs)), at);
  }
  // The types of all definitions, read before their bodies, so that they may call each other in any order.
  Status signatures() {
    TW_TRY_STATUS(version());
    Module ignored;
    while (lexer_.peek().is("#")) TW_TRY_STATUS(metadata(&ignored));
    while (lexer_.peek().is_name("def")) {
      lexer_.next();
      Token name = lexer_.next();
      if (name.kind != Token::kGlobal) return unexpected(name, "a function's name such as @main");
      Header head = TW_TRY(header(0));
      std::vector<Type> args;
      for (const Expr& param : head.params) args.push_back(param->type);
      globals_[name.text] = make_global_var(name.text, func_type(std::move(args), head.declared));
      TW_TRY_STATUS(expect("{"));
      for (int64_t open = 1; open > 0;) {
        Token token = lexer_.next();
        if (token.kind == Token::kEnd || token.kind == Token::kBad) return unexpected(token, "'}'");
        open += token.is("{") ? 1 : token.is("}") ? -1 : 0;
      }
    }
    return Ok{};
  }
  void declare(const Expr& var) {
    declared_.push_back(as<VarNode>(var)->name);
    scope_[declared_.back()].push_back(var);
  }
  void undeclare() {
    auto it = scope_.find(declared_.back());
    it->second.pop_back();
    declared_.pop_back();
  }
  Status skip_annotation() {
    size_t at = lexer_.peek().begin;
    for (Token token = lexer_.next(); !token.is("}"); token = lexer_.next())
      if (token.kind == Token::kEnd || token.kind == Token::kBad) return lexer_.error(at, "an annotation has no closing brace");
    return Ok{};
  }
  // meta[Kind][i]; returns the index of a constant, or -1 for other kinds.
  Result<int64_t> skip_meta() {
    TW_TRY_STATUS(expect_name("meta"));
    TW_TRY_STATUS(expect("["));
    Token kind = lexer_.next();
    if (kind.kind != Token::kName) return unexpected(kind, "a kind such as relay.Constant");
    TW_TRY_STATUS(expect("]"));
    TW_TRY_STATUS(expect("["));
    Token index = lexer_.next();
    if (index.kind != Token::kInt || index.integer < 0) return unexpected(index, "an index");
    TW_TRY_STATUS(expect("]"));
    return kind.text == "relay.Constant" ? index.integer : int64_t{-1};
  }

  static bool matches(const Type& declared, const Type& actual) {
    if (declared->kind == TypeKind::kIncomplete || actual->kind == TypeKind::kIncomplete) return true;
    if (declared == actual) return true;
    if (declared->kind != actual->kind) return false;
    auto all = [](const std::vector<Type>& a, const std::vector<Type>& b) {
      return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), matches);
    };
    if (const auto* t = as_tensor(declared)) {
      const auto& other = *as_tensor(actual);
      auto unknown = [](const Dim& d) { return !d.is_const() && d.node()->kind == DimKind::kAny; };
      auto same = [&](const Dim& a, const Dim& b) { return a == b || unknown(a) || unknown(b); };
      return t->dtype == other.dtype && t->shape.size() == other.shape.size() &&
             std::equal(t->shape.begin(), t->shape.end(), other.shape.begin(), same);
    }
    if (const auto* t = as_tuple(declared)) return all(t->fields, as_tuple(actual)->fields);
    const auto &f = *as_func(declared), &g = *as_func(actual);
    return all(f.args, g.args) && matches(f.result, g.result);
  }

  // Statements up to `end`, which is not consumed.
  Result<Expr> block(std::string_view end, int depth) {
    TW_TRY_STATUS(deep(depth));
    struct Let {
      Expr var, value;
      size_t at;
    };
    std::vector<Let> lets;
    Expr result;
    for (;;) {
      const Token& token = lexer_.peek();
      size_t at = token.begin;
      if (token.is_name("let")) {
        lexer_.next();
        Token name = lexer_.next();
        if (name.kind != Token::kLocal) return unexpected(name, "a variable");
        Type declared;
        if (accept(":")) declared = TW_TRY(type(depth + 1));
        TW_TRY_STATUS(expect("="));
        Expr value = TW_TRY(expression(depth + 1));
        TW_TRY_STATUS(expect(";"));
        if (declared && !matches(declared, value->type))
          return lexer_.error(at, format("%{} says it is {}, its value is {}", name.text, type_text(declared), type_text(value->type)),
                              ErrorCode::kTypeMismatch);
        Expr var = make_var(name.text, value->type->kind == TypeKind::kIncomplete && declared ? declared : value->type);
        declare(var);
        lets.push_back({var, value, at});
        continue;
      }
      if (token.kind == Token::kLocal && lexer_.after_peek() == '=') {
        Token name = lexer_.next();
        TW_TRY_STATUS(expect("="));
        Expr value = TW_TRY(expression(depth + 1));
        TW_TRY_STATUS(expect(";"));
        if (!bindings_.emplace(name.text, value).second) return lexer_.error(at, format("%{} is bound twice", name.text));
        continue;
      }
      result = TW_TRY(expression(depth + 1));
      break;
    }
    if (!lexer_.peek().is(end)) return unexpected(lexer_.peek(), format("'{}'", end));
    for (size_t i = lets.size(); i-- > 0;) {
      undeclare();
      result = TW_TRY(made(make_node<LetNode>(lets[i].var, lets[i].value, result, Span()), lets[i].at));
    }
    return result;
  }

  // --- expressions
  Result<Expr> expression(int depth) {
    TW_TRY_STATUS(deep(depth));
    size_t at = lexer_.peek().begin;
    Expr e = TW_TRY(primary(depth));
    for (;;) {
      if (auto field = lexer_.accept_field()) {
        const auto* tuple = as_tuple(e->type);
        if (e->type->kind != TypeKind::kIncomplete && (!tuple || *field >= static_cast<int64_t>(tuple->fields.size())))
          return lexer_.error(at, format("there is no field {} in {}", *field, type_text(e->type)), ErrorCode::kTypeMismatch);
        e = TW_TRY(made(make_get(e, *field), at));
      } else if (lexer_.peek().is("(")) {
        Arguments args = TW_TRY(arguments(depth + 1));
        if (!args.attrs.empty()) return lexer_.error(at, "a call of a function takes no attributes");
        if (const auto* f = as_func(e->type)) {
          if (f->args.size() != args.values.size())
            return lexer_.error(at, format("the function takes {} arguments, not {}", f->args.size(), args.values.size()), ErrorCode::kTypeMismatch);
          for (size_t i = 0; i < args.values.size(); ++i)
            if (!matches(f->args[i], args.values[i]->type))
              return lexer_.error(at, format("argument {} is {}, the function takes {}", i, type_text(args.values[i]->type), type_text(f->args[i])),
                                  ErrorCode::kTypeMismatch);
        } else if (e->type->kind != TypeKind::kIncomplete) {
          return lexer_.error(at, format("a value of type {} is called", type_text(e->type)), ErrorCode::kTypeMismatch);
        }
        e = TW_TRY(made(call_function(e, std::move(args.values)), at));
      } else {
        return e;
      }
    }
  }

  struct Arguments {
    std::vector<Expr> values;
    std::vector<NamedLiteral> attrs;
  };
  Result<Arguments> arguments(int depth) {
    Arguments out;
    TW_TRY_STATUS(expect("("));
    while (!lexer_.peek().is(")")) {
      const Token& token = lexer_.peek();
      if ((token.kind == Token::kName || token.kind == Token::kString) && lexer_.after_peek() == '=') {
        Token name = lexer_.next();
        TW_TRY_STATUS(expect("="));
        size_t at = lexer_.peek().begin;
        out.attrs.push_back({name.text, TW_TRY(parse_literal(lexer_)), at});
      } else {
        if (!out.attrs.empty()) return unexpected(token, "an attribute");
        out.values.push_back(TW_TRY(expression(depth + 1)));
      }
      if (!accept(",")) break;
    }
    TW_TRY_STATUS(expect(")"));
    return out;
  }

  Result<Expr> primary(int depth) {
    const Token token = lexer_.peek();
    switch (token.kind) {
      case Token::kLocal:
        lexer_.next();
        return local(token);
      case Token::kGlobal:
        lexer_.next();
        if (auto it = globals_.find(token.text); it != globals_.end()) return it->second;
        return lexer_.error(token.begin, format("@{} is not defined", token.text));
      case Token::kInt:
      case Token::kFloat:
        lexer_.next();
        return number(token);
      case Token::kPunctuation:
        if (token.is("(")) return parenthesised(depth);
        return unexpected(token, "an expression");
      case Token::kName:
        return named(token, depth);
      case Token::kString:
      case Token::kEnd:
      case Token::kBad:
        break;
    }
    return unexpected(token, "an expression");
  }

  Result<Expr> local(const Token& token) {
    if (auto it = scope_.find(token.text); it != scope_.end() && !it->second.empty()) return it->second.back();
    if (auto it = bindings_.find(token.text); it != bindings_.end()) return it->second;
    return lexer_.error(token.begin, format("%{} is not defined above", token.text));
  }

  Result<Expr> number(const Token& token) {
    static const std::map<std::string, DataType> kTypes = {{"f", kFloat32}, {"f16", kFloat16}, {"f64", kFloat64}, {"i64", kInt64}, {"i32", kInt32}};
    auto it = kTypes.find(token.suffix);
    DataType d = it != kTypes.end() ? it->second : token.kind == Token::kInt ? kInt32 : kFloat32;
    Tensor value = Tensor::zeros(d, {});
    if (d.is_float()) {
      value.set_double(0, token.real);
    } else {
      if (d == kInt32 && (token.integer < INT32_MIN || token.integer > INT32_MAX))
        return lexer_.error(token.begin, "the number does not fit int32", ErrorCode::kParseError, "write it with the suffix i64");
      value.set_int(0, token.integer);
    }
    return make_constant(std::move(value));
  }

  Result<Expr> parenthesised(int depth) {
    size_t at = lexer_.next().begin;
    if (lexer_.peek().is_name("let")) {
      Expr e = TW_TRY(block(")", depth + 1));
      TW_TRY_STATUS(expect(")"));
      return e;
    }
    std::vector<Expr> fields;
    bool comma = false;
    while (!lexer_.peek().is(")")) {
      fields.push_back(TW_TRY(expression(depth + 1)));
      comma = accept(",");
      if (!comma) break;
    }
    TW_TRY_STATUS(expect(")"));
    if (fields.size() == 1 && !comma) return fields[0];
    return made(make_tuple(std::move(fields)), at);
  }

  Result<Expr> named(const Token& token, int depth) {
    if (token.text == "fn") {
      lexer_.next();
      return function_rest(depth + 1);
    }
    if (token.text == "if") return conditional(depth);
    if (token.text == "meta") return meta_constant(depth);
    if (token.text == "True" || token.text == "False") {
      lexer_.next();
      Tensor value = Tensor::zeros(kBool, {});
      value.set_int(0, token.text == "True");
      return make_constant(std::move(value));
    }
    lexer_.next();
    if (!lexer_.peek().is("(")) return unexpected(lexer_.peek(), format("'(' after the operator {}", token.text));
    const OpDef* op = find_op(token.text);
    if (!op) {
      std::vector<std::string> names;
      for (const OpDef& known : all_ops()) names.emplace_back(known.name);
      return lexer_.error(token.begin, format("no operator is called {}", token.text.substr(0, 128)), ErrorCode::kUnknownOp,
                          did_you_mean(token.text, names, "'tilewright ops' lists them all"));
    }
    Arguments args = TW_TRY(arguments(depth + 1));
    // The classic text writes split's two forms under one name.
    for (NamedLiteral& attr : args.attrs)
      if (token.text == "split" && attr.name == "indices_or_sections" && attr.value.kind == Literal::kInt) attr.name = "sections";
    AttrsRef attrs = op->make_attrs ? op->make_attrs() : AttrsRef();
    TW_TRY_STATUS(assign_attributes(attrs, op->name, args.attrs, lexer_));
    auto call = try_call(op->name, std::move(args.values), std::move(attrs));
    if (!call.ok()) return placed(call.error(), token.begin);
    return made(*call, token.begin);
  }

  Result<Expr> conditional(int depth) {
    size_t at = lexer_.next().begin;
    TW_TRY_STATUS(expect("("));
    Expr condition = TW_TRY(expression(depth + 1));
    TW_TRY_STATUS(expect(")"));
    TW_TRY_STATUS(expect("{"));
    Expr then_branch = TW_TRY(block("}", depth + 1));
    TW_TRY_STATUS(expect("}"));
    TW_TRY_STATUS(expect_name("else"));
    TW_TRY_STATUS(expect("{"));
    Expr else_branch = TW_TRY(block("}", depth + 1));
    TW_TRY_STATUS(expect("}"));
    if (!matches(then_branch->type, else_branch->type))
      return lexer_.error(at, format("the branches give {} and {}", type_text(then_branch->type), type_text(else_branch->type)),
                          ErrorCode::kTypeMismatch);
    return made(make_node<IfNode>(condition, then_branch, else_branch, Span()), at);
  }

  Result<Expr> meta_constant(int depth) {
    size_t at = lexer_.peek().begin;
    int64_t index = TW_TRY(skip_meta());
    if (index < 0) return lexer_.error(at, "only meta[relay.Constant][i] is an expression");
    if (auto it = meta_.find(index); it != meta_.end()) return it->second;
    if (index < static_cast<int64_t>(constants_.size()))
      return meta_[index] = make_constant(constants_[static_cast<size_t>(index)]);
    if (options_.zero_missing_constants && lexer_.accept_type_comment()) {
      Type t = TW_TRY(type(depth + 1));
      if (!lexer_.accept_comment_end()) return lexer_.error(at, "a comment has no end");
      const auto* tensor = as_tensor(t);
      auto shape = tensor ? static_shape(tensor->shape) : std::nullopt;
      // Zeros that stand for weights of a listing; nothing real is larger.
      if (!shape || element_count(tensor->shape).value() > (int64_t{1} << 28) || tensor->dtype.is_string())
        return lexer_.error(at, "a constant's type is not that of a tensor of known size");
      return meta_[index] = make_constant(Tensor::zeros(tensor->dtype, *shape));
    }
    return lexer_.error(at, format("constant {} was not given with the text ({} were)", index, constants_.size()));
  }

  Lexer lexer_;
  std::span<const Tensor> constants_;
  const ParseOptions& options_;
  std::unordered_map<std::string, Expr> bindings_;                  // "%0 = ...": visible to the definition's end
  std::unordered_map<std::string, std::vector<Expr>> scope_;        // parameters and let variables, innermost last
  std::vector<std::string> declared_;
  std::unordered_map<int64_t, Expr> meta_;
  std::unordered_map<std::string, Expr> globals_;
  std::unordered_map<const TypeNode*, std::pair<Type, Extent>> extents_;
  std::unordered_map<const ExprNode*, int> nesting_;
  int terms_ = 0;
};

}  // namespace

Result<Module> parse_module(std::string_view text, std::span<const Tensor> constants, const ParseOptions& options) {
  return Parser(text, constants, options).module();
}

}  // namespace tilewright::relay
