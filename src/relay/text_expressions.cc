// SPDX-License-Identifier: Apache-2.0
// Expressions of the text form.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/near_match.h"
#include "relay/op.h"
#include "relay/script_ops.h"
#include "relay/text_parser.h"

namespace tilewright::relay {
namespace {

struct Infix {
  std::string_view sign;
  int precedence;
  const char* op;
};
constexpr Infix kInfix[] = {
    {"==", 1, "equal"},      {"!=", 1, "not_equal"},     {"<", 2, "less"}, {">", 2, "greater"},
    {"<=", 2, "less_equal"}, {">=", 2, "greater_equal"}, {"+", 3, "add"},  {"-", 3, "subtract"},
    {"*", 4, "multiply"},    {"/", 4, "divide"},
};

const Infix* infix_of(const Token& token) {
  for (const Infix& infix : kInfix)
    if (token.is(infix.sign)) return &infix;
  return nullptr;
}

}  // namespace

Result<Expr> TextParser::made(Expr e, size_t at) {
  if (std::string wrong = limits_.problem(e); !wrong.empty()) return lexer_.error(at, std::move(wrong));
  return e;
}

Result<Expr> TextParser::expression(int depth, int precedence) {
  TW_TRY_STATUS(deep(depth));
  Expr left = TW_TRY(postfix(depth));
  for (;;) {
    const Token sign = lexer_.peek();
    const Infix* infix = infix_of(sign);
    if (!infix || infix->precedence <= precedence) return left;
    lexer_.next();
    Expr right = TW_TRY(expression(depth + 1, infix->precedence));
    left = TW_TRY(call_of(infix->op, {left, right}, {}, sign.begin));
  }
}

Result<Expr> TextParser::postfix(int depth) {
  size_t at = lexer_.peek().begin;
  Expr e = TW_TRY(primary(depth));
  for (;;) {
    if (auto field = lexer_.accept_field()) {
      const auto* tuple = as_tuple(e->type);
      if (e->type->kind != TypeKind::kIncomplete && (!tuple || *field >= static_cast<int64_t>(tuple->fields.size())))
        return lexer_.error(at, format("there is no field {} in {}", *field, type_str(e->type)),
                            ErrorCode::kTypeMismatch);
      e = TW_TRY(made(make_get(e, *field, span_at(at)), at));
    } else if (lexer_.peek().is("(")) {
      Arguments args = TW_TRY(arguments(depth + 1));
      if (!args.attrs.empty()) return lexer_.error(at, "a call of a function takes no attributes");
      if (options_.open) {  // types are inferred later
      } else if (const auto* f = as_func(e->type)) {
        if (f->args.size() != args.values.size())
          return lexer_.error(at, format("the function takes {} arguments, not {}", f->args.size(), args.values.size()),
                              ErrorCode::kTypeMismatch);
        for (size_t i = 0; i < args.values.size(); ++i)
          if (!matches(f->args[i], args.values[i]->type))
            return lexer_.error(at,
                                format("argument {} is {}, the function takes {}", i, type_str(args.values[i]->type),
                                       type_str(f->args[i])),
                                ErrorCode::kTypeMismatch);
      } else if (e->type->kind != TypeKind::kIncomplete) {
        return lexer_.error(at, format("a value of type {} is called", type_str(e->type)), ErrorCode::kTypeMismatch);
      }
      e = TW_TRY(made(call_function(e, std::move(args.values), span_at(at)), at));
    } else {
      return e;
    }
  }
}

Result<TextParser::Arguments> TextParser::arguments(int depth, bool of_operator) {
  Arguments out;
  TW_TRY_STATUS(expect("("));
  while (!lexer_.peek().is(")")) {
    const Token& token = lexer_.peek();
    if ((token.kind == Token::kName || token.kind == Token::kString) && lexer_.assigns_next()) {
      Token name = lexer_.next();
      TW_TRY_STATUS(expect("="));
      size_t at = lexer_.peek().begin;
      if (lexer_.peek().is_name("VirtualDevice") ||
          (lexer_.peek().is_name("meta") && name.text.ends_with(kDeviceAttr))) {
        const VirtualDevice device = TW_TRY(virtual_device());
        for (NamedLiteral& field : device_literals(name.text, device, at)) out.attrs.push_back(std::move(field));
        if (!accept(",")) break;
        continue;
      }
      Literal value = TW_TRY(parse_literal(lexer_));
      out.attrs.push_back({name.text, std::move(value), at});
    } else {
      if (!out.attrs.empty() || out.listed) return unexpected(token, "an attribute");
      attributes_may_stand_ = of_operator && token.is_name("meta");
      Expr value = TW_TRY(expression(depth + 1));
      if (attributes_)
        out.listed = *std::exchange(attributes_, std::nullopt);
      else
        out.values.push_back(std::move(value));
    }
    if (!accept(",")) break;
  }
  TW_TRY_STATUS(expect(")"));
  return out;
}

Result<Expr> TextParser::primary(int depth) {
  const Token token = lexer_.peek();
  switch (token.kind) {
    case Token::kLocal:
      lexer_.next();
      return local(token);
    case Token::kGlobal:
      lexer_.next();
      if (auto it = globals_.find(token.text); it != globals_.end()) return it->second;
      if (options_.open) return globals_[token.text] = make_global_var(token.text, incomplete_type());
      return lexer_.error(token.begin, format("@{} is not defined", token.text));
    case Token::kInt:
    case Token::kFloat:
      lexer_.next();
      return number(token);
    case Token::kPunctuation:
      if (token.is("(")) return parenthesised(depth);
      if (token.is("-")) return negated(depth);
      if (token.is("{")) return braced(depth);
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

Result<Expr> TextParser::local(const Token& token) {
  if (auto it = scope_.find(token.text); it != scope_.end() && !it->second.empty()) {
    used_.insert(it->second.back().get());
    return it->second.back();
  }
  if (auto it = bindings_.find(token.text); it != bindings_.end()) return it->second;
  return lexer_.error(token.begin, format("%{} is not defined above", token.text));
}

Result<Expr> TextParser::number(const Token& token) {
  static const std::map<std::string, DataType> kTypes = {
      {"f", kFloat32},  {"f16", kFloat16}, {"f32", kFloat32}, {"f64", kFloat64}, {"i", kInt32},
      {"i8", kInt8},    {"i16", kInt16},   {"i32", kInt32},   {"i64", kInt64},   {"u8", kUInt8},
      {"u16", kUInt16}, {"u32", kUInt32},  {"u64", kUInt64}};
  auto it = kTypes.find(token.suffix);
  const bool fits32 = token.integer >= INT32_MIN && token.integer <= INT32_MAX;
  DataType d = it != kTypes.end() ? it->second : token.kind == Token::kFloat ? kFloat32 : fits32 ? kInt32 : kInt64;
  const auto does_not_fit = [&] { return lexer_.error(token.begin, format("the number does not fit {}", d.str())); };
  Tensor value = Tensor::zeros(d, {});
  if (d.is_float()) {
    if (d == kFloat32 && std::isfinite(token.real) &&
        std::abs(token.real) >= 0x1.ffffffp+127)  // from where it rounds to infinity
      return does_not_fit();
    value.set_double(0, token.real);
  } else {
    value.set_int(0, token.integer);
    if (d != kUInt64 && value.at_int(0) != token.integer) return does_not_fit();
  }
  return make_constant(std::move(value), span_at(token.begin));
}

// "--10" is a number; in front of anything else the sign is a call of negative.
Result<Expr> TextParser::negated(int depth) {
  TW_TRY_STATUS(deep(depth));
  const size_t at = lexer_.next().begin;
  Expr value = TW_TRY(postfix(depth + 1));
  if (const auto* number = as<ConstantNode>(value); number && number->data.rank() == 0) {
    Tensor negative = Tensor::zeros(number->data.dtype(), {});
    if (number->data.dtype().is_float())
      negative.set_double(0, -number->data.at_double(0));
    else
      negative.set_int(0, -number->data.at_int(0));
    return make_constant(std::move(negative), span_at(at));
  }
  return call_of("negative", {value}, {}, at);
}

Result<Expr> TextParser::parenthesised(int depth) {
  size_t at = lexer_.next().begin;
  // A block, which may bind what its first "let" needs in front of it.
  if (lexer_.peek().is_name("let") || (lexer_.peek().kind == Token::kLocal && lexer_.assigns_next())) {
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
  return made(make_tuple(std::move(fields), span_at(at)), at);
}

Result<Expr> TextParser::named(const Token& token, int depth) {
  if (token.text == "fn") {
    lexer_.next();
    return function_rest(depth + 1);
  }
  if (token.text == "if") return conditional(depth);
  if (token.text == "match") return match(depth);
  if (token.text == "meta") return meta_constant(depth);
  lexer_.next();
  if (token.text == "True" || token.text == "False") {
    Tensor value = Tensor::zeros(kBool, {});
    value.set_int(0, token.text == "True");
    return make_constant(std::move(value), span_at(token.begin));
  }
  if (auto it = constructors_.find(token.text); it != constructors_.end())
    return constructor(it->second, token.begin, depth);
  if (!lexer_.peek().is("(")) {
    if (const OpDef* op = options_.open ? find_op(token.text) : nullptr) return Expr(make_node<OpNode>(op));
    return unexpected(lexer_.peek(), format("'(' after the operator {}", token.text));
  }
  if (token.text == "ref" || token.text == "ref_read" || token.text == "ref_write") return reference(token, depth);
  return operator_call(token, depth);
}

Result<Expr> TextParser::operator_call(const Token& token, int depth) {
  const OpDef* op = find_op(token.text);
  if (!op) {
    std::vector<std::string> names;
    for (const OpDef& known : all_ops()) names.emplace_back(known.name);
    return lexer_.error(token.begin, format("no operator is called {}", token.text.substr(0, 128)),
                        ErrorCode::kUnknownOp, did_you_mean(token.text, names, "'tilewright ops' lists them all"));
  }
  Arguments args = TW_TRY(arguments(depth + 1, true));
  // Classic text writes both forms of split under one name.
  for (NamedLiteral& attr : args.attrs)
    if (token.text == "split" && attr.name == "indices_or_sections" && attr.value.kind == Literal::kInt)
      attr.name = "sections";
  // transpose flags that a classic batch_matmul omits are false.
  if (token.text == "nn.batch_matmul" && !args.listed)
    args.attrs.insert(args.attrs.begin(), {"transpose_b", Literal{Literal::kBool, 0, 0, "", {}}, token.begin});
  AttrsRef attrs = op->make_attrs ? op->make_attrs() : AttrsRef();
  if (args.listed) {
    auto listed = metadata_ ? metadata_->attributes(*op, args.listed->kind, args.listed->index)
                            : Result<AttrsRef>(Diagnostic(ErrorCode::kParseError, "the text has no metadata section"));
    if (!listed.ok()) return lexer_.error(args.listed->at, listed.error().message);
    attrs = *listed;
  }
  if (!attrs && !args.attrs.empty() && find_script_op(op->name))
    attrs = TW_TRY(script_attributes(args.attrs, lexer_));
  else
    TW_TRY_STATUS(assign_attributes(attrs, op->name, args.attrs, lexer_));
  return call_of(op->name, std::move(args.values), attrs, token.begin);
}

Result<Expr> TextParser::call_of(std::string_view op, std::vector<Expr> args, const AttrsRef& attrs, size_t at) {
  auto call = try_call(op, args, attrs, span_at(at));
  if (call.ok()) return made(*call, at);
  // Of a text that is joined with others, operands of the wrong types are found when all is typed.
  const bool of_types = call.error().code == ErrorCode::kTypeMismatch || call.error().code == ErrorCode::kShapeMismatch;
  if (!options_.open || !of_types) return placed(call.error(), at);
  const OpDef* def = find_op(op);
  return made(make_node<CallNode>(make_node<OpNode>(def), std::move(args), attrs, incomplete_type(), span_at(at)), at);
}

// "Nil" is a call of a constructor without fields; "Cons"
// alone is the constructor as a function, to be called.
Result<Expr> TextParser::constructor(const Expr& value, size_t at, int depth) {
  if (!as_func(value->type)->args.empty()) return value;
  if (lexer_.peek().is("(")) {
    Arguments args = TW_TRY(arguments(depth + 1));
    if (!args.values.empty() || !args.attrs.empty())
      return lexer_.error(at, format("{} has no fields", as<ConstructorNode>(value)->name), ErrorCode::kTypeMismatch);
  }
  return made(call_function(value, {}, span_at(at)), at);
}

Result<Expr> TextParser::reference(const Token& token, int depth) {
  Arguments args = TW_TRY(arguments(depth + 1));
  const size_t wanted = token.text == "ref_write" ? 2 : 1;
  if (args.values.size() != wanted || !args.attrs.empty())
    return lexer_.error(token.begin, format("{} takes {} operand{}", token.text, wanted, wanted == 1 ? "" : "s"));
  Span span = span_at(token.begin);
  if (token.text == "ref") return made(make_node<RefCreateNode>(args.values[0], span), token.begin);
  const Type& cell = args.values[0]->type;
  if (!as_reference(cell) && cell->kind != TypeKind::kIncomplete)
    return lexer_.error(token.begin, format("{} is given {}, not a reference", token.text, type_str(cell)),
                        ErrorCode::kTypeMismatch);
  if (wanted == 1) return made(make_node<RefReadNode>(args.values[0], span), token.begin);
  return made(make_node<RefWriteNode>(args.values[0], args.values[1], span), token.begin);
}

Result<Expr> TextParser::conditional(int depth) {
  size_t at = lexer_.next().begin;
  TW_TRY_STATUS(expect("("));
  Expr condition = TW_TRY(expression(depth + 1));
  TW_TRY_STATUS(expect(")"));
  Expr then_branch = TW_TRY(braced(depth));
  TW_TRY_STATUS(expect_name("else"));
  Expr else_branch = TW_TRY(braced(depth));
  if (!matches(then_branch->type, else_branch->type))
    return lexer_.error(at,
                        format("the branches give {} and {}", type_str(then_branch->type), type_str(else_branch->type)),
                        ErrorCode::kTypeMismatch);
  return made(make_node<IfNode>(condition, then_branch, else_branch, span_at(at)), at);
}

// "match (%x) { Cons(%h, %t) => ..., Nil => ..., }"; "match?" may fail.
Result<Expr> TextParser::match(int depth) {
  size_t at = lexer_.next().begin;
  bool complete = !accept("?");
  TW_TRY_STATUS(expect("("));
  Expr data = TW_TRY(expression(depth + 1));
  TW_TRY_STATUS(expect(")"));
  TW_TRY_STATUS(expect("{"));
  std::vector<Clause> clauses;
  while (!lexer_.peek().is("}")) {
    Pattern p = TW_TRY(pattern(data->type, depth + 1));
    TW_TRY_STATUS(expect("=>"));
    Expr body = TW_TRY(lexer_.peek().is("{") ? braced(depth + 1) : expression(depth + 1));
    for (size_t i = pattern_vars(p).size(); i > 0; --i) undeclare();
    if (!clauses.empty() && !matches(clauses[0].body->type, body->type))
      return lexer_.error(at,
                          format("the clauses give {} and {}", type_str(clauses[0].body->type), type_str(body->type)),
                          ErrorCode::kTypeMismatch);
    clauses.push_back({std::move(p), std::move(body)});
    if (!accept(",")) break;
  }
  TW_TRY_STATUS(expect("}"));
  if (clauses.empty()) return lexer_.error(at, "a match has no clauses");
  return made(make_match(std::move(data), std::move(clauses), complete, span_at(at)), at);
}

Result<Pattern> TextParser::pattern(const Type& type, int depth) {
  TW_TRY_STATUS(deep(depth));
  Token token = lexer_.next();
  if (token.is_name("_")) return make_pattern(PatternKind::kWildcard);
  if (token.kind == Token::kLocal) {
    Type declared = type;
    if (accept(":")) declared = TW_TRY(this->type(depth + 1));
    Expr var = make_var(token.text, declared, span_at(token.begin));
    declare(var);
    return make_pattern(PatternKind::kVar, var);
  }
  std::vector<Pattern> fields;
  if (token.is("(")) {
    const auto* tuple = as_tuple(type);
    while (!lexer_.peek().is(")")) {
      bool known = tuple && fields.size() < tuple->fields.size();
      fields.push_back(TW_TRY(pattern(known ? tuple->fields[fields.size()] : incomplete_type(), depth + 1)));
      if (!accept(",")) break;
    }
    TW_TRY_STATUS(expect(")"));
    return make_pattern(PatternKind::kTuple, {}, std::move(fields));
  }
  auto it = token.kind == Token::kName ? constructors_.find(token.text) : constructors_.end();
  if (it == constructors_.end()) return unexpected(token, "a pattern");
  const auto& signature = *as_func(it->second->type);
  const auto* data = as_data(type);
  if (data ? data->name != as<ConstructorNode>(it->second)->data_type : type->kind != TypeKind::kIncomplete)
    return lexer_.error(token.begin, format("the pattern {} stands for {}", token.text, type_str(type)),
                        ErrorCode::kTypeMismatch);
  TypeMap values;
  for (size_t i = 0; i < signature.variables.size(); ++i)
    values[signature.variables[i].get()] = data ? data->args.at(i) : incomplete_type();
  if (accept("(")) {
    while (!lexer_.peek().is(")")) {
      bool known = fields.size() < signature.args.size();
      fields.push_back(TW_TRY(
          pattern(known ? substitute_types(signature.args[fields.size()], values) : incomplete_type(), depth + 1)));
      if (!accept(",")) break;
    }
    TW_TRY_STATUS(expect(")"));
  }
  if (fields.size() != signature.args.size())
    return lexer_.error(token.begin,
                        format("{} has {} fields, not {}", token.text, signature.args.size(), fields.size()),
                        ErrorCode::kTypeMismatch);
  return make_pattern(PatternKind::kConstructor, it->second, std::move(fields));
}

Result<Expr> TextParser::meta_constant(int depth) {
  const bool attributes_may_stand = std::exchange(attributes_may_stand_, false);
  const Meta meta = TW_TRY(meta_reference());
  const size_t at = meta.at;
  const int64_t index = meta.index;
  if (meta.kind != "relay.Constant") {
    const bool ends = lexer_.peek().is(",") || lexer_.peek().is(")");
    if (!attributes_may_stand || !ends)
      return lexer_.error(at,
                          "only meta[relay.Constant][i] is an expression; attributes are an operator's last argument");
    attributes_ = meta;
    return make_tuple({});  // not visible to anyone
  }
  if (auto it = meta_.find(index); it != meta_.end()) return it->second;
  if (index < static_cast<int64_t>(constants_.size()))
    return meta_[index] = make_constant(constants_[static_cast<size_t>(index)], span_at(at));
  if (options_.zero_missing_constants && lexer_.accept_type_comment()) {
    Type t = TW_TRY(type(depth + 1));
    if (!lexer_.accept_comment_end()) return lexer_.error(at, "a comment has no end");
    const auto* tensor = as_tensor(t);
    auto shape = tensor ? static_shape(tensor->shape) : std::nullopt;
    // Zeros in place of a listing's weights; no real weight is larger.
    if (!shape || element_count(tensor->shape).value() > (int64_t{1} << 28) || tensor->dtype.is_string())
      return lexer_.error(at, "a constant's type is not that of a tensor of known size");
    return meta_[index] = make_constant(Tensor::zeros(tensor->dtype, *shape), span_at(at));
  }
  return lexer_.error(at, format("constant {} was not given with the text ({} were)", index, constants_.size()));
}

}  // namespace tilewright::relay
