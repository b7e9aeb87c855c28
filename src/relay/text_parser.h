// SPDX-License-Identifier: Apache-2.0
// The parser behind parse_module: recursive descent. Types and dimensions are in text_types.cc, definitions and blocks
// in text_parser.cc, expressions in text_expressions.cc.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "relay/classic/json.h"
#include "relay/limits.h"
#include "relay/text.h"
#include "relay/text_lexer.h"
#include "relay/text_literal.h"
#include "relay/virtual_device.h"

namespace tilewright::relay {

// How deep a text may nest before it is refused.
inline constexpr int kMaxTextDepth = 200;

class TextParser {
 public:
  TextParser(std::string_view text, std::span<const Tensor> constants, const ParseOptions& options,
             const TextMetadata* metadata = nullptr)
      : lexer_(text, options.origin), constants_(constants), options_(options), metadata_(metadata) {}
  Result<Module> module();
  // An expression without definitions; "free_var %x: T;" declares its free variables.
  Result<Expr> whole_expression();

 private:
  // --- tokens
  Diagnostic unexpected(const Token& token, std::string_view wanted);
  Status expect(std::string_view punctuation);
  Status expect_name(std::string_view name);
  bool accept(std::string_view punctuation);
  Status deep(int depth);
  // Locates an error from building an expression; the operator's name moves into the message.
  Diagnostic placed(Diagnostic error, size_t at);
  Span span_at(size_t at);

  // --- definitions and blocks (text_parser.cc)
  Status version();
  Status metadata(Module* out);
  // Reads the names and types of all definitions before their bodies, so that they may refer to each other in any
  // order.
  Status type_names();
  Status signatures();
  Status skip_braces();
  Result<TypeDefinition> type_definition(const std::string& name, bool external);
  struct Header {
    std::vector<Type> variables;
    std::vector<Expr> params;
    DictAttrs attrs;
    Type declared = incomplete_type();
    size_t result_at = 0;
  };
  // "[A](%x: A, Primitive=1) -> A"; the type variables stay in scope until `leave`.
  Result<Header> header(int depth);
  void leave(const Header& header);
  // The header and "{ ... }".
  Result<Expr> function_rest(int depth);
  void declare(const Expr& var);
  void undeclare();
  // "VirtualDevice(...)", or meta[VirtualDevice][i].
  Result<VirtualDevice> virtual_device();
  // meta[Kind][i]
  struct Meta {
    std::string kind;
    int64_t index = 0;
    size_t at = 0;
  };
  Result<Meta> meta_reference();
  // Statements up to `end`, which is not consumed; "" means the end of the text.
  Result<Expr> block(std::string_view end, int depth);
  Result<Expr> braced(int depth);

  // --- types (text_types.cc)
  Result<Type> type(int depth);
  Result<std::vector<Type>> types(std::string_view end, int depth);
  Result<std::vector<Type>> type_variables();
  Result<Type> named_type(const Token& token, int depth);
  Result<DataType> dtype(const Token& token);
  Result<Shape> dims();
  Result<Dim> sum(int depth);
  Result<Dim> product(int depth);
  Result<Dim> factor(int depth);
  // Checks a new type or expression against Limits.
  Result<Type> limited(Type t, size_t at);
  // Whether the two types are compatible: unknowns and type variables match anything.
  static bool matches(const Type& declared, const Type& actual);

  // --- expressions (text_expressions.cc)
  Result<Expr> made(Expr e, size_t at);
  struct Arguments {
    std::vector<Expr> values;
    std::vector<NamedLiteral> attrs;
    std::optional<Meta> listed;  // attributes in the metadata section
  };
  Result<Expr> expression(int depth, int precedence = 0);
  Result<Expr> postfix(int depth);
  Result<Arguments> arguments(int depth, bool of_operator = false);
  Result<Expr> primary(int depth);
  Result<Expr> local(const Token& token);
  Result<Expr> number(const Token& token);
  Result<Expr> negated(int depth);
  Result<Expr> parenthesised(int depth);
  Result<Expr> named(const Token& token, int depth);
  Result<Expr> operator_call(const Token& token, int depth);
  Result<Expr> call_of(std::string_view op, std::vector<Expr> args, const AttrsRef& attrs, size_t at);
  Result<Expr> constructor(const Expr& value, size_t at, int depth);
  Result<Expr> reference(const Token& token, int depth);
  Result<Expr> conditional(int depth);
  Result<Expr> match(int depth);
  // A pattern for values of `type`; declares the variables it binds.
  Result<Pattern> pattern(const Type& type, int depth);
  Result<Expr> meta_constant(int depth);

  Lexer lexer_;
  std::span<const Tensor> constants_;
  const ParseOptions& options_;
  const TextMetadata* metadata_;                    // may be null
  bool attributes_may_stand_ = false;               // an operator's argument that may be attributes begins here
  std::optional<Meta> attributes_;                  // and turned out to be attributes
  std::unordered_map<std::string, Expr> bindings_;  // "%0 = ...": visible to the end of the definition
  std::unordered_map<std::string, std::vector<Expr>> scope_;  // parameters and let variables, innermost last
  std::vector<std::string> declared_;
  std::unordered_set<const ExprNode*> used_;  // variables of scope_ that were used
  std::unordered_map<int64_t, Expr> meta_;
  std::unordered_map<std::string, Expr> globals_;
  std::unordered_map<std::string, Expr> constructors_;
  std::unordered_map<std::string, size_t> data_types_;             // name -> number of type arguments
  std::unordered_map<std::string, std::vector<Type>> type_scope_;  // type variables, innermost last
  Limits limits_;
  int terms_ = 0;
};

}  // namespace tilewright::relay
