// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"
#include "tir/parse_expr.h"
#include "tir/text.h"
#include "tir/verify.h"
#include "tir/walk.h"

namespace tilewright::tir {
namespace {

class Parser : ExprParser {
 public:
  using ExprParser::ExprParser;

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
  Buffer buffer(Scope scope) {
    std::string name = word("a buffer's name");
    expect(":");
    DataType type = dtype();
    expect("[");
    const int64_t size = scope == Scope::kGlobal && accept("?") ? kUnknownSize : integer(0, int64_t{1} << 48);
    expect("]");
    bool read_only = false, streamed = false;
    int alignment = 0;
    for (;;) {
      if (accept_word("readonly"))
        read_only = true;
      else if (scope == Scope::kGlobal && accept_word("streamed"))
        streamed = true;
      else if (accept_word("align"))
        alignment = static_cast<int>(integer(1, 4096));
      else if (scope != Scope::kGlobal && accept_word("stack"))
        scope = Scope::kStack;
      else if (scope != Scope::kGlobal && accept_word("register"))
        scope = Scope::kRegister;
      else
        break;
    }
    Buffer b = make_buffer(name, type, size, scope, alignment, read_only, streamed);
    if (auto error = typing_error(*b); !error.empty()) fail(error);
    bind(name, {}, b);
    return b;
  }

  // Parses the following lines that are indented more than `outer`.
  Stmt block(int outer) {
    if (row_ >= lines_.size() || lines_[row_].indent <= outer) {
      const Line& last = lines_[row_ ? row_ - 1 : 0];
      fail_at(last.number, last.tokens.back().column,
              "an indented body expected below this line; 'pass' is an empty one");
    }
    if (++blocks_ > kMaxStmtDepth) fail("statements are nested too deeply");
    const int indent = lines_[row_].indent;
    const size_t mark = order_.size();
    // The rest of the block is the body of a let or alloc: statements before it wait until the block ends.
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
          stmts.push_back(made<LetStmtNode>(var, value, *body));
        else
          open.push_back({std::exchange(stmts, {}), var, value, {}});
      } else if (accept_word("alloc")) {
        size_t before = order_.size();
        Buffer b = buffer(Scope::kStack);
        if (std::optional<Stmt> body = nested_body(before))
          stmts.push_back(made<AllocateNode>(b, *body));
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

  // The indented body behind a let's or alloc's header that ends with ':', else nothing.
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
    if (const bool loops = accept_word("while"); loops || accept_word("if")) {
      PrimExpr condition = expr();
      if (condition->dtype != kBool) fail(format("{} on {}", loops ? "a while" : "an if", condition->dtype.str()));
      expect(":");
      finish_header();
      if (loops) return make_node<WhileNode>(condition, block(indent));
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
    return next_is("call") && names_.find("call") == names_.end() ? call() : access();
  }
  // Statements without nested blocks are parsed in separate functions, so that recursion takes less stack.
  [[gnu::noinline]] Stmt call() {
    ++at_;
    std::string name = word("a function");
    std::vector<ExternArgument> args;
    expect("(");
    while (!next_is(")")) {
      if (!args.empty()) expect(",");
      args.push_back(extern_argument());
    }
    expect(")");
    Stmt s = made<CallExternNode>(std::move(name), std::move(args), false);
    finish_header();
    return s;
  }
  [[gnu::noinline]] Stmt access() {
    const bool hint = accept_word("prefetch");
    auto it = names_.find(token().text);
    if (it == names_.end() || !it->second.buffer) fail(format("a statement expected, found '{}'", token().text));
    Buffer b = it->second.buffer;
    ++at_;
    auto [index, mask] = subscript();
    if (hint) {
      Stmt s = made<PrefetchNode>(b, index);
      finish_header();
      return s;
    }
    expect("=");
    PrimExpr value = expr();
    Stmt s = made<StoreNode>(b, index, value, mask);
    finish_header();
    return s;
  }

  ExternArgument extern_argument() {
    if (!accept_word("address")) return {expr(), {}};
    auto it = names_.find(token().text);
    if (it == names_.end() || !it->second.buffer) fail(format("a buffer expected, found '{}'", token().text));
    Buffer b = it->second.buffer;
    ++at_;
    return {subscript().first, b};
  }

  int blocks_ = 0;  // current nesting depth of blocks
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
