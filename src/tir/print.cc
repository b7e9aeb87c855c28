// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "base/format.h"
#include "tir/block.h"
#include "tir/operators.h"
#include "tir/text.h"
#include "tir/walk.h"

namespace tilewright::tir {
namespace {

// Shared expressions with fewer nodes are repeated instead of named.
constexpr int kNamedSize = 7;

const OperatorRow& operator_row(ExprKind kind) {
  for (const auto& row : kOperators)
    if (row.kind == kind) return row;
  TW_ICHECK(false, kind_name(kind));
  return kOperators[0];
}

bool is_reserved(const std::string& name) {
  static const std::unordered_set<std::string> words = [] {
    std::unordered_set<std::string> all(std::begin(kReservedWords), std::end(kReservedWords));
#define TW_INTRINSIC(name, arity) all.insert(#name);
    TW_TIR_INTRINSICS(TW_INTRINSIC)
#undef TW_INTRINSIC
    return all;
  }();
  return words.count(name) != 0 || parse_dtype(name).ok();
}

// Letters, digits, '_' and '.', not starting with a digit.
std::string plain_word(const std::string& hint) {
  std::string name;
  for (char c : hint) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    bool later = (c >= '0' && c <= '9') || c == '.';
    name += letter || (later && !name.empty()) ? c : '_';
  }
  return name.empty() ? "v" : name;
}

std::string identifier(const std::string& hint) {
  std::string name = plain_word(hint);
  return is_reserved(name) ? name + "_" : name;
}

std::string float_text(double value, DataType dtype) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = dtype == kFloat64 ? format("{}", value) : format("{}", static_cast<float>(value));
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

class Printer {
 public:
  std::string out;

  void function(const PrimFunc& f) {
    out += format("func {}(", plain_word(f.name));
    for (size_t i = 0; i < f.params.size(); ++i) {
      if (i) out += ", ";
      out += format("{}: {}", bind(f.params[i].get(), f.params[i]->name), buffer_type(*f.params[i]));
    }
    out += ")";
    if (f.tid) {
      out += format(" threads({}, ", bind_var(f.tid));
      out += format("{})", bind_var(f.nthreads));
    }
    out += ":\n";
    block(f.body, 1);
  }

  void block(const Stmt& s, int depth) {
    if (s->kind != StmtKind::kSeq) return stmt(s, depth, true);
    const auto& stmts = static_cast<const SeqNode&>(*s).stmts;
    if (stmts.empty()) line(depth, "pass");
    for (size_t i = 0; i < stmts.size(); ++i) stmt(stmts[i], depth, i + 1 == stmts.size());
  }

  void expr(const PrimExpr& e, int outer = 0) {
    if (auto it = shared_.find(e.get()); it != shared_.end()) {
      out += it->second;
      return;
    }
    switch (e->kind) {
#define TW_KIND(name) case ExprKind::k##name:
      TW_TIR_BINARY(TW_KIND)
#undef TW_KIND
      return binary_expr(static_cast<const BinaryNode&>(*e), outer);
      case ExprKind::kIntImm:
        return integer(static_cast<const IntImmNode&>(*e));
      case ExprKind::kFloatImm: {
        std::string text = float_text(static_cast<const FloatImmNode&>(*e).value, e->dtype);
        out += e->dtype == kFloat32 ? text : format("{}({})", e->dtype.str(), text);
        return;
      }
      case ExprKind::kVar:
        out += name_of(e.get(), static_cast<const VarNode&>(*e).name);
        return;
      case ExprKind::kNot: {
        bool parens = outer > kNotPrecedence;
        out += parens ? "(not " : "not ";
        expr(static_cast<const NotNode&>(*e).a, kNotPrecedence);
        if (parens) out += ")";
        return;
      }
      case ExprKind::kSelect: {
        const auto& n = static_cast<const SelectNode&>(*e);
        return call("select", {n.condition, n.on_true, n.on_false});
      }
      case ExprKind::kCast:
        return call("cast(" + e->dtype.str() + ", ", {static_cast<const CastNode&>(*e).value}, true);
      case ExprKind::kReinterpret:
        return call("reinterpret(" + e->dtype.str() + ", ", {static_cast<const ReinterpretNode&>(*e).value}, true);
      case ExprKind::kLoad: {
        const auto& n = static_cast<const LoadNode&>(*e);
        return element(n.buffer, n.index, n.mask);
      }
      case ExprKind::kRamp: {
        const auto& n = static_cast<const RampNode&>(*e);
        out += "ramp(";
        expr(n.base);
        out += format(", {}, {})", n.stride, e->dtype.lanes);
        return;
      }
      case ExprKind::kBroadcast:
        out += "broadcast(";
        expr(static_cast<const BroadcastNode&>(*e).value);
        out += format(", {})", e->dtype.lanes);
        return;
      case ExprKind::kShuffle: {
        const auto& n = static_cast<const ShuffleNode&>(*e);
        call("shuffle([", n.vectors, true, "]");
        out += ", [";
        for (size_t i = 0; i < n.indices.size(); ++i) out += format("{}{}", i ? ", " : "", n.indices[i]);
        out += "])";
        return;
      }
      case ExprKind::kCall: {
        const auto& n = static_cast<const CallNode&>(*e);
        return call(intrinsic_name(n.op), n.args);
      }
      case ExprKind::kExtern: {
        const auto& n = static_cast<const ExternNode&>(*e);
        out += format("extern({}, {}", n.name, e->dtype.str());
        for (const PrimExpr& a : n.args) {
          out += ", ";
          expr(a);
        }
        out += ")";
        return;
      }
      case ExprKind::kRead: {
        const auto& n = static_cast<const ReadNode&>(*e);
        return call(n.name + "[", n.indices, true, "]");
      }
      case ExprKind::kLet: {
        const auto& n = static_cast<const LetNode&>(*e);
        out += "let(";
        size_t at = out.size();
        expr(n.value);  // the variable is not in scope yet
        std::string value = out.substr(at);
        out.resize(at);
        out += format("{}: {} = {}, ", bind_var(n.var), n.var->dtype.str(), value);
        expr(n.body);
        out += ")";
        unbind(n.var.get());
        return;
      }
    }
  }

 private:
  std::string bind(const Node* node, const std::string& hint) {
    std::string base = identifier(hint), name = base;
    for (int i = 1; !used_.insert(name).second; ++i) name = format("{}.{}", base, i);
    names_[node] = name;
    return name;
  }
  std::string bind_var(const PrimExpr& var) { return bind(var.get(), static_cast<const VarNode&>(*var).name); }
  void unbind(const Node* node) {
    used_.erase(names_[node]);
    names_.erase(node);
  }
  std::string name_of(const Node* node, const std::string& hint) {
    auto it = names_.find(node);
    return it != names_.end() ? it->second : bind(node, hint);
  }

  static std::string buffer_type(const BufferNode& b) {
    std::string text = b.dtype.str() + (b.size == kUnknownSize ? std::string("[?]") : format("[{}]", b.size));
    if (b.scope == Scope::kStack) text += " stack";
    if (b.scope == Scope::kRegister) text += " register";
    if (b.read_only) text += " readonly";
    if (b.streamed) text += " streamed";
    if (b.alignment != static_cast<int>(b.dtype.element().bytes())) text += format(" align {}", b.alignment);
    return text;
  }

  void line(int depth, const std::string& text) {
    out.append(2 * depth, ' ');
    out += text;
    out += '\n';
  }

  void integer(const IntImmNode& n) {
    if (n.dtype.is_bool())
      out += n.value ? "true" : "false";
    else if (n.dtype == kInt64)
      out += format("{}", n.value);
    else if (n.dtype.is_int())
      out += format("{}({})", n.dtype.str(), n.value);
    else
      out += format("{}({})", n.dtype.str(), static_cast<uint64_t>(n.value));
  }

  void binary_expr(const BinaryNode& n, int outer) {
    const OperatorRow& row = operator_row(n.kind);
    if (!row.token)
      return call(n.kind == ExprKind::kMin ? "min" : n.kind == ExprKind::kMax ? "max" : "truncmod", {n.a, n.b});
    const bool parens = outer > row.precedence;
    if (parens) out += "(";
    expr(n.a, row.precedence);
    out += format(" {} ", row.token);
    expr(n.b, row.precedence + 1);
    if (parens) out += ")";
  }

  void call(const std::string& head, const std::vector<PrimExpr>& args, bool opened = false, const char* close = ")") {
    out += head;
    if (!opened) out += "(";
    for (size_t i = 0; i < args.size(); ++i) {
      if (i) out += ", ";
      expr(args[i]);
    }
    out += close;
  }

  void element(const Buffer& buffer, const PrimExpr& index, const PrimExpr& mask) {
    out += name_of(buffer.get(), buffer->name) + "[";
    expr(index);
    if (mask) {
      out += ", mask = ";
      expr(mask);
    }
    out += "]";
  }

  // Writes a named line for each larger expression that the statement uses several times.
  void name_shared(const Stmt& s, int depth) {
    shared_.clear();
    struct Use {
      int parents = 0, size = 0;
    };
    std::unordered_map<const ExprNode*, Use> uses;
    std::vector<PrimExpr> order;  // in post order
    std::function<int(const PrimExpr&)> count = [&](const PrimExpr& e) {
      if (e->kind == ExprKind::kVar || e->kind == ExprKind::kIntImm || e->kind == ExprKind::kFloatImm) return 1;
      Use& use = uses[e.get()];
      if (use.parents++) return use.size;
      int size = 1;
      // Expressions over variables bound inside this statement cannot be named in front of it.
      if (e->kind == ExprKind::kLet)
        size += count(static_cast<const LetNode&>(*e).value);
      else
        for_each_child(e, [&](const PrimExpr& child) { size = std::min(size + count(child), kNamedSize); });
      order.push_back(e);
      return uses[e.get()].size = std::min(size, kNamedSize);
    };
    for_each_own_expr(s, [&](const PrimExpr& e) { count(e); });
    int next = 0;
    for (const auto& e : order) {
      const Use& use = uses[e.get()];
      if (use.parents < 2 || use.size < kNamedSize) continue;
      std::string name = format("%{}", next++);
      out.append(2 * depth, ' ');
      out += name + " = ";
      expr(e);
      out += '\n';
      shared_[e.get()] = name;
    }
  }

  void call(const CallExternNode& n) {
    out += n.name == kEvaluate ? "evaluate(" : format("call {}(", n.name);
    for (size_t i = 0; i < n.args.size(); ++i) {
      if (i) out += ", ";
      if (n.args[i].buffer || n.args[i].address) out += "address ";
      n.args[i].buffer ? element(n.args[i].buffer, n.args[i].value, PrimExpr()) : expr(n.args[i].value);
    }
    out += ")\n";
  }

  void scope_body(const Stmt& body, int depth, bool last) {
    out += last ? "\n" : ":\n";
    block(body, last ? depth : depth + 1);
  }

  void stmt(const Stmt& s, int depth, bool last) {
    name_shared(s, depth);
    if (s->kind != StmtKind::kSeq) out.append(2 * depth, ' ');
    switch (s->kind) {
      case StmtKind::kFor: {
        const auto& n = static_cast<const ForNode&>(*s);
        out += "for ";
        size_t at = out.size();
        out += n.var->dtype == kInt64 ? " from " : format(": {} from ", n.var->dtype.str());
        expr(n.min);
        out += " extent ";
        expr(n.extent);
        out.insert(at, bind_var(n.var));  // bound behind its bounds, in which it is not in scope
        if (n.for_kind == ForKind::kVectorized) out += " vectorized";
        if (n.for_kind == ForKind::kUnrolled) out += " unrolled";
        if (n.for_kind == ForKind::kParallel) out += " parallel";
        out += ":\n";
        block(n.body, depth + 1);
        unbind(n.var.get());
        break;
      }
      case StmtKind::kStore: {
        const auto& n = static_cast<const StoreNode&>(*s);
        element(n.buffer, n.index, n.mask);
        out += " = ";
        expr(n.value);
        out += "\n";
        break;
      }
      case StmtKind::kPrefetch: {
        const auto& n = static_cast<const PrefetchNode&>(*s);
        out += "prefetch ";
        element(n.buffer, n.index, PrimExpr());
        out += "\n";
        break;
      }
      case StmtKind::kCallExtern:
        call(static_cast<const CallExternNode&>(*s));
        break;
      case StmtKind::kWrite: {
        const auto& n = static_cast<const WriteNode&>(*s);
        call(n.name + "[", n.indices, true, "]");
        out += " = ";
        expr(n.value);
        out += "\n";
        break;
      }
      case StmtKind::kBlock: {
        const auto& n = static_cast<const BlockNode&>(*s);
        out += format("block {}:\n", n.name);
        block(n.body, depth + 1);
        break;
      }
      case StmtKind::kLetStmt: {
        const auto& n = static_cast<const LetStmtNode&>(*s);
        out += "let ";
        size_t at = out.size();
        out += format(": {} = ", n.var->dtype.str());
        expr(n.value);
        out.insert(at, bind_var(n.var));
        scope_body(n.body, depth, last);
        unbind(n.var.get());
        break;
      }
      case StmtKind::kWhile: {
        const auto& n = static_cast<const WhileNode&>(*s);
        out += "while ";
        expr(n.condition);
        out += ":\n";
        block(n.body, depth + 1);
        break;
      }
      case StmtKind::kIf: {
        const auto& n = static_cast<const IfNode&>(*s);
        out += "if ";
        expr(n.condition);
        out += ":\n";
        block(n.then_case, depth + 1);
        if (n.else_case) {
          line(depth, "else:");
          block(n.else_case, depth + 1);
        }
        break;
      }
      case StmtKind::kSeq:
        block(s, depth);
        break;
      case StmtKind::kAllocate: {
        const auto& n = static_cast<const AllocateNode&>(*s);
        out += format("alloc {}: {}", bind(n.buffer.get(), n.buffer->name), buffer_type(*n.buffer));
        scope_body(n.body, depth, last);
        unbind(n.buffer.get());
        break;
      }
    }
  }

  std::unordered_map<const Node*, std::string> names_;
  std::unordered_set<std::string> used_;
  std::unordered_map<const ExprNode*, std::string> shared_;
};
}  // namespace

std::string to_text(const PrimFunc& function) {
  Printer p;
  p.function(function);
  return std::move(p.out);
}
std::string to_text(const Stmt& stmt) {
  Printer p;
  p.block(stmt, 0);
  return std::move(p.out);
}
std::string to_text(const PrimExpr& expr) {
  Printer p;
  p.expr(expr);
  return std::move(p.out);
}

}  // namespace tilewright::tir
