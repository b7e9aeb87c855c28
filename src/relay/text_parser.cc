// SPDX-License-Identifier: Apache-2.0
// Definitions and blocks of the text form.
#include "relay/text_parser.h"

#include <algorithm>

#include "base/format.h"
#include "relay/classic/json.h"

namespace tilewright::relay {

// --- tokens

Diagnostic TextParser::unexpected(const Token& token, std::string_view wanted) {
  return lexer_.error(token.begin, format("{} stands where {} was expected", describe(token), wanted));
}
Status TextParser::expect(std::string_view punctuation) {
  Token token = lexer_.next();
  if (!token.is(punctuation)) return unexpected(token, format("'{}'", punctuation));
  return Ok{};
}
Status TextParser::expect_name(std::string_view name) {
  Token token = lexer_.next();
  if (!token.is_name(name)) return unexpected(token, format("'{}'", name));
  return Ok{};
}
bool TextParser::accept(std::string_view punctuation) {
  if (!lexer_.peek().is(punctuation)) return false;
  lexer_.next();
  return true;
}
Status TextParser::deep(int depth) {
  if (depth > kMaxTextDepth)
    return lexer_.error(lexer_.peek().begin, format("the text nests deeper than {} levels", kMaxTextDepth));
  return Ok{};
}
Diagnostic TextParser::placed(Diagnostic error, size_t at) {
  if (!error.where.empty()) error.message = error.where + ": " + error.message;
  error.where = lexer_.place(at);
  return error;
}
Span TextParser::span_at(size_t at) { return options_.spans ? make_span(lexer_.place(at)) : Span(); }

// --- definitions

Result<Module> TextParser::module() {
  const Lexer start = lexer_;
  TW_TRY_STATUS(type_names());
  lexer_ = start;
  TW_TRY_STATUS(signatures());
  lexer_ = start;
  TW_TRY_STATUS(version());
  Module out;
  while (lexer_.peek().is("#")) TW_TRY_STATUS(metadata(&out));
  while (lexer_.peek().kind != Token::kEnd) {
    Token keyword = lexer_.next();
    const bool external = keyword.is_name("extern");
    if (external) keyword = lexer_.next();
    if (keyword.is_name("type")) {
      Token name = lexer_.next();
      out.types.emplace(name.text, TW_TRY(type_definition(name.text, external)));
      continue;
    }
    if (!keyword.is_name("def")) return unexpected(keyword, "'def' or 'type'");
    Token name = lexer_.next();
    if (name.kind != Token::kGlobal) return unexpected(name, "a function's name such as @main");
    bindings_.clear();
    scope_.clear();
    Expr function = TW_TRY(function_rest(0));
    if (!out.functions.emplace(name.text, function).second)
      return lexer_.error(keyword.begin, format("@{} is defined twice", name.text));
  }
  return out;
}

Result<Expr> TextParser::whole_expression() {
  if (lexer_.peek().is("#")) TW_TRY_STATUS(version());
  int free = 0;
  while (lexer_.peek().is_name("free_var")) {
    lexer_.next();
    Token name = lexer_.next();
    if (name.kind != Token::kLocal) return unexpected(name, "a variable");
    Type declared = incomplete_type();
    if (accept(":")) declared = TW_TRY(type(0));
    TW_TRY_STATUS(expect(";"));
    declare(make_var(name.text, std::move(declared), span_at(name.begin)));
    ++free;
  }
  Expr out = TW_TRY(block("", 0));
  for (; free > 0; --free) undeclare();
  return out;
}

Status TextParser::version() {
  TW_TRY_STATUS(expect("#"));
  TW_TRY_STATUS(expect("["));
  TW_TRY_STATUS(expect_name("version"));
  TW_TRY_STATUS(expect("="));
  Token token = lexer_.next();
  if (token.kind != Token::kString) return unexpected(token, "a version in quotes");
  if (token.text != "0.0.5")
    return lexer_.error(token.begin, format("version {} of the text form is not read", token.text),
                        ErrorCode::kParseError, "only \"0.0.5\" is");
  return expect("]");
}

Status TextParser::metadata(Module* out) {
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

// Skips past the '}' that matches the next '{'.
Status TextParser::skip_braces() {
  // Inside a shape "//" divides; elsewhere it starts a comment.
  auto next = [&] {
    Token token = lexer_.next();
    if (token.is_name("Tensor") && lexer_.peek().is("[")) {
      lexer_.next();
      lexer_.set_in_dims(true);
      Token inside = lexer_.next();
      for (int64_t open = inside.is("(") ? 1 : 0;
           open > 0 && inside.kind != Token::kEnd && inside.kind != Token::kBad;) {
        inside = lexer_.next();
        open += inside.is("(") ? 1 : inside.is(")") ? -1 : 0;
      }
      lexer_.set_in_dims(false);
    }
    return token;
  };
  for (Token token = next(); !token.is("{"); token = next())
    if (token.kind == Token::kEnd || token.kind == Token::kBad) return unexpected(token, "'{'");
  for (int64_t open = 1; open > 0;) {
    Token token = next();
    if (token.kind == Token::kEnd || token.kind == Token::kBad) return unexpected(token, "'}'");
    open += token.is("{") ? 1 : token.is("}") ? -1 : 0;
  }
  return Ok{};
}

Status TextParser::type_names() {
  for (Token token = lexer_.next(); token.kind != Token::kEnd && token.kind != Token::kBad; token = lexer_.next()) {
    const bool external = token.is_name("extern");
    if (external) token = lexer_.next();
    if (token.is_name("type")) {
      Token name = lexer_.next();
      if (name.kind != Token::kName) return unexpected(name, "the name of a type");
      std::vector<Type> variables = TW_TRY(type_variables());
      for (const Type& variable : variables) type_scope_[as_variable(variable)->name].pop_back();
      if (!data_types_.emplace(name.text, variables.size()).second)
        return lexer_.error(name.begin, format("the type {} is defined twice", name.text));
    }
    // Errors in a definition are reported by the passes that read it in full.
    if (!external && (token.is_name("type") || token.is_name("def")) && !skip_braces().ok()) return Ok{};
  }
  return Ok{};
}

Status TextParser::signatures() {
  TW_TRY_STATUS(version());
  Module ignored;
  while (lexer_.peek().is("#")) TW_TRY_STATUS(metadata(&ignored));
  for (;;) {
    const bool external = lexer_.peek().is_name("extern");
    if (external) lexer_.next();
    if (lexer_.peek().is_name("type")) {
      lexer_.next();
      Token name = lexer_.next();
      for (const Expr& constructor : TW_TRY(type_definition(name.text, external)).constructors) {
        const std::string& called = as<ConstructorNode>(constructor)->name;
        auto [it, fresh] = constructors_.emplace(called, constructor);
        if (!fresh && as<ConstructorNode>(it->second)->data_type != name.text)
          return lexer_.error(name.begin, format("two types have a constructor {}", called));
      }
      continue;
    }
    if (!lexer_.peek().is_name("def")) return Ok{};
    lexer_.next();
    Token name = lexer_.next();
    if (name.kind != Token::kGlobal) return unexpected(name, "a function's name such as @main");
    Header head = TW_TRY(header(0));
    std::vector<Type> args;
    for (const Expr& param : head.params) args.push_back(param->type);
    globals_[name.text] = make_global_var(name.text, func_type(std::move(args), head.declared, head.variables));
    leave(head);
    TW_TRY_STATUS(skip_braces());
  }
}

// "[A] { Cons(A, List[A]), Nil, }": repeated reads give
// the same constructors. An "extern" type has none.
Result<TypeDefinition> TextParser::type_definition(const std::string& name, bool external) {
  TypeDefinition out;
  out.variables = TW_TRY(type_variables());
  if (external) {
    for (const Type& variable : out.variables) type_scope_[as_variable(variable)->name].pop_back();
    accept(";");
    return out;
  }
  Type made_type = data_type(name, out.variables);
  TW_TRY_STATUS(expect("{"));
  while (!lexer_.peek().is("}")) {
    Token constructor = lexer_.next();
    if (constructor.kind != Token::kName) return unexpected(constructor, "a constructor's name");
    std::vector<Type> inputs;
    if (accept("(")) inputs = TW_TRY(types(")", 0));
    for (const Expr& other : out.constructors)
      if (as<ConstructorNode>(other)->name == constructor.text)
        return lexer_.error(constructor.begin, format("{} has two constructors {}", name, constructor.text));
    auto known = constructors_.find(constructor.text);
    bool again = known != constructors_.end() && as<ConstructorNode>(known->second)->data_type == name;
    out.constructors.push_back(again ? known->second
                                     : make_constructor(constructor.text, std::move(inputs), made_type,
                                                        static_cast<int64_t>(out.constructors.size())));
    if (!accept(",")) break;
  }
  TW_TRY_STATUS(expect("}"));
  for (const Type& variable : out.variables) type_scope_[as_variable(variable)->name].pop_back();
  // Reuse the type variables that the constructors refer to.
  if (!out.constructors.empty()) out.variables = as_func(out.constructors[0]->type)->variables;
  return out;
}

Result<TextParser::Header> TextParser::header(int depth) {
  TW_TRY_STATUS(deep(depth));
  Header out;
  std::vector<std::string> places;  // of the parameters
  out.variables = TW_TRY(type_variables());
  TW_TRY_STATUS(expect("("));
  while (!lexer_.peek().is(")")) {
    Token token = lexer_.next();
    if (token.kind == Token::kLocal) {
      VirtualDevice place;
      if (accept("{")) {
        TW_TRY_STATUS(expect_name(kDeviceAttr));
        TW_TRY_STATUS(expect("="));
        place = TW_TRY(virtual_device());
        TW_TRY_STATUS(expect("}"));
      }
      places.push_back(place.unconstrained() ? "" : place.text());
      Type t = incomplete_type();
      if (accept(":")) t = TW_TRY(type(depth + 1));
      out.params.push_back(make_var(token.text, std::move(t), span_at(token.begin)));
    } else if (token.kind == Token::kName || token.kind == Token::kString) {
      TW_TRY_STATUS(expect("="));
      if (lexer_.peek().is_name("meta") || lexer_.peek().is_name("VirtualDevice")) {
        out.attrs[token.text] = TW_TRY(virtual_device()).text();
      } else {
        out.attrs[token.text] = TW_TRY(parse_attribute(lexer_, token.text));
      }
    } else {
      return unexpected(token, "a parameter or an attribute");
    }
    if (!accept(",")) break;
  }
  TW_TRY_STATUS(expect(")"));
  if (std::any_of(places.begin(), places.end(), [](const std::string& place) { return !place.empty(); }))
    out.attrs[kParamDevicesAttr] = std::move(places);
  out.result_at = lexer_.peek().begin;
  if (accept("->")) out.declared = TW_TRY(type(depth + 1));
  return out;
}

void TextParser::leave(const Header& header) {
  for (const Type& variable : header.variables) type_scope_[as_variable(variable)->name].pop_back();
}

Result<Expr> TextParser::function_rest(int depth) {
  size_t at = lexer_.peek().begin;
  Header head = TW_TRY(header(depth));
  for (const Expr& param : head.params) declare(param);
  Expr body = TW_TRY(braced(depth));
  for (size_t i = 0; i < head.params.size(); ++i) undeclare();
  leave(head);
  if (!matches(head.declared, body->type))
    return lexer_.error(
        head.result_at,
        format("the function says it gives {}, its body gives {}", type_str(head.declared), type_str(body->type)),
        ErrorCode::kTypeMismatch);
  return made(make_node<FunctionNode>(std::move(head.params), std::move(body), std::move(head.attrs), span_at(at),
                                      std::move(head.variables), head.declared),
              at);
}

void TextParser::declare(const Expr& var) {
  declared_.push_back(as<VarNode>(var)->name);
  scope_[declared_.back()].push_back(var);
}
void TextParser::undeclare() {
  auto it = scope_.find(declared_.back());
  it->second.pop_back();
  declared_.pop_back();
}

Result<VirtualDevice> TextParser::virtual_device() {
  if (!lexer_.peek().is_name("meta")) return parse_virtual_device(lexer_);
  const Meta meta = TW_TRY(meta_reference());
  if (meta.kind != "VirtualDevice") return lexer_.error(meta.at, "only meta[VirtualDevice][i] is a device");
  if (static_cast<size_t>(meta.index) < options_.virtual_devices.size())
    return parse_virtual_device(options_.virtual_devices[static_cast<size_t>(meta.index)]);
  if (!metadata_ && options_.zero_missing_constants) return VirtualDevice{};
  auto listed = metadata_ ? metadata_->virtual_device(meta.index)
                          : Result<std::string>(Diagnostic(ErrorCode::kParseError, "the text has no metadata section"));
  if (!listed.ok()) return lexer_.error(meta.at, listed.error().message);
  return parse_virtual_device(*listed);
}

Result<TextParser::Meta> TextParser::meta_reference() {
  const size_t at = lexer_.peek().begin;
  TW_TRY_STATUS(expect_name("meta"));
  TW_TRY_STATUS(expect("["));
  Token kind = lexer_.next();
  if (kind.kind != Token::kName) return unexpected(kind, "a kind such as relay.Constant");
  TW_TRY_STATUS(expect("]"));
  TW_TRY_STATUS(expect("["));
  Token index = lexer_.next();
  if (index.kind != Token::kInt || index.integer < 0) return unexpected(index, "an index");
  TW_TRY_STATUS(expect("]"));
  return Meta{kind.text, index.integer, at};
}

// --- blocks

Result<Expr> TextParser::braced(int depth) {
  TW_TRY_STATUS(expect("{"));
  Expr e = TW_TRY(block("}", depth + 1));
  TW_TRY_STATUS(expect("}"));
  return e;
}

Result<Expr> TextParser::block(std::string_view end, int depth) {
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
      // A function may refer to itself by the name it is bound to.
      Expr var;
      if (lexer_.peek().is_name("fn")) {
        var = make_var(name.text, declared ? declared : incomplete_type(), span_at(at));
        declare(var);
      }
      Expr value = TW_TRY(expression(depth + 1));
      TW_TRY_STATUS(expect(";"));
      if (declared && !options_.open && !matches(declared, value->type))
        return lexer_.error(
            at, format("%{} says it is {}, its value is {}", name.text, type_str(declared), type_str(value->type)),
            ErrorCode::kTypeMismatch);
      // Of a value with gaps only what is written is known: a gap may be an argument of any type.
      Type known = !is_complete(value->type)   ? (declared ? declared : incomplete_type())
                   : declared && options_.open ? declared
                                               : value->type;
      bool recursive = false;
      if (var) {
        undeclare();
        recursive = used_.count(var.get()) > 0;
      }
      if (!recursive) var = make_var(name.text, known, span_at(at));
      declare(var);
      lets.push_back({var, value, at});
      continue;
    }
    if (token.kind == Token::kLocal && lexer_.assigns_next()) {
      Token name = lexer_.next();
      TW_TRY_STATUS(expect("="));
      Expr value = TW_TRY(expression(depth + 1));
      TW_TRY_STATUS(expect(";"));
      if (!bindings_.emplace(name.text, value).second) return lexer_.error(at, format("%{} is bound twice", name.text));
      continue;
    }
    result = TW_TRY(expression(depth + 1));
    if (!accept(";")) break;
    // "a; b": a for its effects, then b.
    lets.push_back({make_var("_", result->type, span_at(at)), result, at});
    declare(lets.back().var);
  }
  if (end.empty() ? lexer_.peek().kind != Token::kEnd : !lexer_.peek().is(end))
    return unexpected(lexer_.peek(), end.empty() ? "the end of the text" : format("'{}'", end));
  for (size_t i = lets.size(); i-- > 0;) {
    undeclare();
    result = TW_TRY(made(make_node<LetNode>(lets[i].var, lets[i].value, result, span_at(lets[i].at)), lets[i].at));
  }
  return result;
}

namespace {

// Applies `read(parser)` to the text, with constants from its metadata section if present.
template <class Read>
auto with_metadata(std::string_view text, std::span<const Tensor> constants, const ParseOptions& options, Read read)
    -> decltype(read(std::declval<TextParser&>())) {
  // "#[metadata]" on a line of its own: everything behind it is JSON.
  static constexpr std::string_view kSection = "\n#[metadata]\n";
  size_t section = text.find(kSection);
  if (section == std::string_view::npos) {
    TextParser parser(text, constants, options);
    return read(parser);
  }
  const TextMetadata own = TW_TRY(TextMetadata::load(text.substr(section + kSection.size())));
  TextParser parser(text.substr(0, section + 1), own.constants(), options, &own);
  return read(parser);
}

}  // namespace

Result<Module> parse_module(std::string_view text, std::span<const Tensor> constants, const ParseOptions& options) {
  return with_metadata(text, constants, options, [](TextParser& parser) { return parser.module(); });
}

Result<Expr> parse_expression(std::string_view text, std::span<const Tensor> constants, const ParseOptions& options) {
  return with_metadata(text, constants, options, [](TextParser& parser) { return parser.whole_expression(); });
}

}  // namespace tilewright::relay
