// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

#include "base/format.h"
#include "tir/operators.h"
#include "tir/scalar.h"
#include "tir/text.h"
#include "tir/tokens.h"
#include "tir/typing.h"
#include "tir/verify.h"
#include "tir/walk.h"

namespace tilewright::tir {
namespace {

// Levels of parentheses, calls and subscripts.
constexpr int kMaxTextNesting = 400;

class Parser {
 public:
  explicit Parser(std::string_view text) : lines_(split_lines(text)) {}

  PrimFunc function() {
    if (lines_.empty()) fail_at(1, 1, "no function in the text");
    PrimFunc f;
    begin_line();
    expect_word("func");
    f.name = word("the function's name");
    expect("(");
    while (!accept(")")) {
      if (!f.params.empty()) expect(",");
      f.params.push_back(buffer(Scope::kGlobal));
    }
    if (accept_word("threads")) {
      expect("(");
      f.tid = bind_variable(word("a variable"), kInt64);
      expect(",");
      f.nthreads = bind_variable(word("a variable"), kInt64);
      expect(")");
    }
    expect(":");
    end_line();
    f.body = block(lines_[0].indent);
    if (row_ < lines_.size())
      fail_at(lines_[row_].number, lines_[row_].indent + 1, "text after the end of the function");
    return f;
  }

 private:
  // ---- tokens ----
  const Token& token() const { return lines_[row_].tokens[at_]; }
  [[noreturn]] void fail(std::string message) const {
    if (row_ >= lines_.size()) fail_at(lines_.back().number, lines_.back().tokens.back().column, std::move(message));
    fail_at(lines_[row_].number, token().column, std::move(message));
  }
  void begin_line() { at_ = 0; }
  void end_line() {
    if (token().kind != Token::kEnd) fail(format("'{}' where the line should end", token().text));
    ++row_;
    at_ = 0;
  }
  std::string_view take() { return lines_[row_].tokens[at_++].text; }
  bool next_is(std::string_view text) const { return token().kind != Token::kEnd && token().text == text; }
  bool accept(std::string_view text) {
    bool found = next_is(text);
    at_ += found;
    return found;
  }
  bool accept_word(std::string_view text) { return token().kind == Token::kWord && accept(text); }
  [[gnu::noinline]] void expect(std::string_view text) {
    if (!accept(text)) fail(format("'{}' expected, found '{}'", text, token().text));
  }
  void expect_word(std::string_view text) {
    if (!accept_word(text)) fail(format("'{}' expected, found '{}'", text, token().text));
  }
  std::string word(const char* what) {
    if (token().kind != Token::kWord) fail(format("{} expected, found '{}'", what, token().text));
    return std::string(take());
  }
  int64_t integer(int64_t low, int64_t high) {
    bool negative = accept("-");
    if (token().kind != Token::kInteger) fail(format("a whole number expected, found '{}'", token().text));
    return ranged(signed_value(take(), negative), low, high);
  }
  int64_t ranged(int64_t v, int64_t low, int64_t high) {
    if (v < low || v > high) fail(format("{} is not between {} and {}", v, low, high));
    return v;
  }
  int64_t signed_value(std::string_view digits, bool negative) {
    uint64_t magnitude = unsigned_value(digits);
    if (magnitude > uint64_t{INT64_MAX} + negative) fail(format("{} does not fit 64 bits", digits));
    return static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
  }
  uint64_t unsigned_value(std::string_view digits) {
    uint64_t value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) fail(format("{} does not fit 64 bits", digits));
    return value;
  }
  DataType dtype() {
    if (token().kind != Token::kWord) fail(format("a dtype expected, found '{}'", token().text));
    auto type = parse_dtype(token().text);
    if (!type.ok()) fail(type.error().message);
    ++at_;
    return *type;
  }

  // ---- names ----
  void bind(const std::string& name, PrimExpr variable, Buffer buffer) {
    if (names_.count(name)) fail(format("{} is bound already", name));
    names_[name] = {std::move(variable), std::move(buffer)};
    order_.push_back(name);
  }
  PrimExpr bind_variable(const std::string& name, DataType type) {
    PrimExpr v = make_var(name, type);
    bind(name, v, {});
    return v;
  }
  void unbind_to(size_t mark) {
    for (; order_.size() > mark; order_.pop_back()) names_.erase(order_.back());
  }
  Buffer buffer(Scope scope) {
    std::string name = word("a buffer's name");
    expect(":");
    DataType type = dtype();
    expect("[");
    const int64_t size = scope == Scope::kGlobal && accept("?") ? kUnknownSize : integer(0, int64_t{1} << 48);
    expect("]");
    bool read_only = false;
    int alignment = 0;
    for (;;) {
      if (accept_word("readonly"))
        read_only = true;
      else if (accept_word("align"))
        alignment = static_cast<int>(integer(1, 4096));
      else if (scope != Scope::kGlobal && accept_word("stack"))
        scope = Scope::kStack;
      else if (scope != Scope::kGlobal && accept_word("register"))
        scope = Scope::kRegister;
      else
        break;
    }
    Buffer b = make_buffer(name, type, size, scope, alignment, read_only);
    if (auto error = typing_error(*b); !error.empty()) fail(error);
    bind(name, {}, b);
    return b;
  }

  // ---- expressions ----
  template <class T, class... Args>
  [[gnu::noinline]] PrimExpr made(Args&&... args) {
    Ref<T> node = make_node<T>(std::forward<Args>(args)...);
    if (auto error = typing_error(*node); !error.empty()) fail(error);
    return node;
  }

  // expr and primary are the recursion of nested text: what they need beyond it is in functions of their own,
  // so that a level takes little stack.
  PrimExpr expr(int precedence = 0) {
    if (++depth_ > kMaxTextNesting) too_deep();
    PrimExpr left =
        precedence <= kNotPrecedence && accept_word("not") ? made<NotNode>(expr(kNotPrecedence)) : primary();
    while (const OperatorRow* row = operator_here()) {
      if (row->precedence < precedence) break;
      ++at_;
      left = combined(*row, std::move(left), expr(row->precedence + 1));
    }
    --depth_;
    return left;
  }
  PrimExpr primary() {
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

  [[noreturn, gnu::noinline]] void too_deep() const { fail("an expression is nested too deeply"); }
  [[gnu::noinline]] PrimExpr combined(const OperatorRow& row, PrimExpr left, PrimExpr right) {
    if (left->dtype != right->dtype || !operator_takes(row.kind, left->dtype))
      fail(format("'{}' between {} and {}", row.token, left->dtype.str(), right->dtype.str()));
    DataType type = operator_result(row.kind, left->dtype);
    return make_node<BinaryNode>(row.kind, type, std::move(left), std::move(right));
  }
  [[gnu::noinline]] const OperatorRow* operator_here() const {
    if (token().kind != Token::kWord && token().kind != Token::kSymbol) return nullptr;
    for (const auto& row : kOperators)
      if (row.token && token().text == row.token) return &row;
    return nullptr;
  }

  // What holds no expression inside: constants and shared expressions.
  [[gnu::noinline]] PrimExpr leaf() {
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
  [[gnu::noinline]] PrimExpr named() {
    const Named& name = names_.find(token().text)->second;
    ++at_;
    if (name.variable) return name.variable;
    Buffer b = name.buffer;
    auto [index, mask] = subscript();
    DataType type = b->scope == Scope::kRegister ? b->dtype : b->dtype.element().with_lanes(index->dtype.lanes);
    return made<LoadNode>(type, b, index, mask);
  }

  std::pair<PrimExpr, PrimExpr> subscript() {
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

  // A number of the given dtype, or int64 or float32 by its looks.
  PrimExpr literal(std::optional<DataType> type, bool negative) {
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

  [[gnu::noinline]] PrimExpr call() {
    std::string name(take());
    expect("(");
    if (name == "cast" || name == "reinterpret") {
      DataType type = dtype();
      expect(",");
      PrimExpr value = expr();
      expect(")");
      return name == "cast" ? made<CastNode>(type, value) : made<ReinterpretNode>(type, value);
    }
    if (name == "let") {
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
    if (name == "ramp" || name == "broadcast") {
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
      return name == "ramp" ? made<RampNode>(value, stride, lanes) : made<BroadcastNode>(value, lanes);
    }
    if (name == "shuffle") return shuffle_call();
    std::vector<PrimExpr> args;
    do args.push_back(expr());
    while (accept(","));
    expect(")");
    if (name == "select") {
      if (args.size() != 3) fail("select takes a condition and two values");
      return made<SelectNode>(args[0], args[1], args[2]);
    }
    if (name == "min" || name == "max") {
      if (args.size() != 2) fail(format("{} takes two values", name));
      return made<BinaryNode>(name == "min" ? ExprKind::kMin : ExprKind::kMax, args[0]->dtype, args[0], args[1]);
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

  PrimExpr shuffle_call() {
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

  // ---- statements ----
  template <class T, class... Args>
  Stmt made_stmt(Args&&... args) {
    Ref<T> node = make_node<T>(std::forward<Args>(args)...);
    if (auto error = typing_error(*node); !error.empty()) fail(error);
    return node;
  }

  // The lines below that are indented more than `outer`.
  Stmt block(int outer) {
    if (row_ >= lines_.size() || lines_[row_].indent <= outer) {
      const Line& last = lines_[row_ ? row_ - 1 : 0];
      fail_at(last.number, last.tokens.back().column,
              "an indented body expected below this line; 'pass' is an empty one");
    }
    if (++blocks_ > kMaxStmtDepth) fail("statements are nested too deeply");
    const int indent = lines_[row_].indent;
    const size_t mark = order_.size();
    // A let or alloc takes the rest of the block as its body: what is before it waits until the block ends.
    struct Open {
      std::vector<Stmt> before;
      PrimExpr var, value;
      Buffer buffer;
    };
    std::vector<Open> open;
    std::vector<Stmt> stmts;
    while (row_ < lines_.size() && lines_[row_].indent > outer) {
      if (lines_[row_].indent != indent)
        fail_at(lines_[row_].number, lines_[row_].indent + 1, "unexpected indentation");
      begin_line();
      if (token().kind == Token::kShared) {
        std::string_view name = take();
        expect("=");
        PrimExpr e = expr();
        if (!shared_.emplace(name, e).second) fail(format("{} is defined twice", name));
        end_line();
        continue;
      }
      if (accept_word("let")) {
        std::string name = word("a variable");
        expect(":");
        DataType type = dtype();
        expect("=");
        PrimExpr value = expr();
        if (type != value->dtype) fail(format("a let of {} is {}", type.str(), value->dtype.str()));
        size_t before = order_.size();
        PrimExpr var = bind_variable(name, type);
        if (std::optional<Stmt> body = nested_body(before))
          stmts.push_back(made_stmt<LetStmtNode>(var, value, *body));
        else
          open.push_back({std::exchange(stmts, {}), var, value, {}});
      } else if (accept_word("alloc")) {
        size_t before = order_.size();
        Buffer b = buffer(Scope::kStack);
        if (std::optional<Stmt> body = nested_body(before))
          stmts.push_back(made_stmt<AllocateNode>(b, *body));
        else
          open.push_back({std::exchange(stmts, {}), {}, {}, b});
      } else {
        stmts.push_back(statement());
      }
    }
    if (!shared_.empty()) fail_at(lines_[row_ - 1].number, 1, "a shared expression with no statement after it");
    Stmt body = seq(std::move(stmts));
    for (; !open.empty(); open.pop_back()) {
      Open& o = open.back();
      o.before.push_back(o.var ? Stmt(make_node<LetStmtNode>(o.var, o.value, body))
                               : Stmt(make_node<AllocateNode>(o.buffer, body)));
      body = seq(std::move(o.before));
    }
    unbind_to(mark);
    --blocks_;
    return body;
  }

  // After a let's or alloc's header: the indented body if the line ends with ':', else nothing.
  std::optional<Stmt> nested_body(size_t mark) {
    bool nested = accept(":");
    finish_header();
    if (!nested) return std::nullopt;
    Stmt body = block(lines_[row_ - 1].indent);
    unbind_to(mark);
    return body;
  }
  void finish_header() {
    shared_.clear();
    end_line();
  }

  Stmt statement() {
    const int indent = lines_[row_].indent;
    if (accept_word("pass")) {
      finish_header();
      return seq({});
    }
    if (accept_word("for")) {
      std::string name = word("a variable");
      DataType type = kInt64;
      if (accept(":")) type = dtype();
      expect_word("from");
      PrimExpr min = expr();
      expect_word("extent");
      PrimExpr extent = expr();
      ForKind kind = ForKind::kSerial;
      if (accept_word("vectorized"))
        kind = ForKind::kVectorized;
      else if (accept_word("unrolled"))
        kind = ForKind::kUnrolled;
      else if (accept_word("parallel"))
        kind = ForKind::kParallel;
      expect(":");
      if (!type.is_integral() || type.lanes != 1 || min->dtype != type || extent->dtype != type)
        fail(format("a loop over {} from {} by {}", type.str(), min->dtype.str(), extent->dtype.str()));
      size_t mark = order_.size();
      PrimExpr var = bind_variable(name, type);
      finish_header();
      Stmt body = block(indent);
      unbind_to(mark);
      return make_node<ForNode>(var, min, extent, kind, body);
    }
    if (accept_word("if")) {
      PrimExpr condition = expr();
      if (condition->dtype != kBool) fail(format("an if on {}", condition->dtype.str()));
      expect(":");
      finish_header();
      Stmt then_case = block(indent), else_case;
      if (row_ < lines_.size() && lines_[row_].indent == indent && lines_[row_].tokens[0].text == "else") {
        begin_line();
        ++at_;
        expect(":");
        end_line();
        else_case = block(indent);
      }
      return make_node<IfNode>(condition, then_case, else_case);
    }
    const bool hint = accept_word("prefetch");
    auto it = names_.find(token().text);
    if (it == names_.end() || !it->second.buffer) fail(format("a statement expected, found '{}'", token().text));
    Buffer b = it->second.buffer;
    ++at_;
    auto [index, mask] = subscript();
    if (hint) {
      Stmt s = made_stmt<PrefetchNode>(b, index);
      finish_header();
      return s;
    }
    expect("=");
    PrimExpr value = expr();
    Stmt s = made_stmt<StoreNode>(b, index, value, mask);
    finish_header();
    return s;
  }

  struct Named {
    PrimExpr variable;
    Buffer buffer;
  };
  const std::vector<Line> lines_;
  size_t row_ = 0, at_ = 0;
  int depth_ = 0, blocks_ = 0;
  std::map<std::string, Named, std::less<>> names_;
  std::vector<std::string> order_;  // of binding, to leave scopes
  std::map<std::string_view, PrimExpr> shared_;
};
}  // namespace

Result<PrimFunc> parse_func(std::string_view text) {
  try {
    PrimFunc f = Parser(text).function();
    TW_TRY_STATUS(verify(f));
    return f;
  } catch (ParseFailure& failure) {
    return std::move(failure.diagnostic);
  }
}

}  // namespace tilewright::tir
