// SPDX-License-Identifier: Apache-2.0
#include "te/script.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/format.h"
#include "te/flatten.h"
#include "tir/operators.h"
#include "tir/text.h"
#include "tir/walk.h"

namespace tilewright::te {
namespace {

using tir::ExprKind;
using tir::PrimExpr;
using tir::Stmt;
using tir::StmtKind;

class ScriptPrinter {
 public:
  // `canonical`: variables and arrays are named by numbers.
  explicit ScriptPrinter(bool canonical) : canonical_(canonical) {}
  std::string out;

  void function(const tir::BlockFunction& f, const std::string& def_name) {
    std::set<const tir::ExprNode*> sizes;
    std::vector<PrimExpr> free;
    auto visit = [&](const PrimExpr& e) {
      if (e->kind == ExprKind::kVar && sizes.insert(e.get()).second) free.push_back(e);
    };
    for (const auto& p : f.params)
      if (p.var) sizes.insert(p.var.get());
    for (const PrimExpr& v : bound_variables(f.body)) sizes.insert(v.get());
    for (const auto& p : f.params)
      if (p.array)
        for (const PrimExpr& d : p.array->shape) tir::for_each_expr(d, visit);
    tir::for_each_expr(f.body, visit);
    std::string head;
    bool symbolic = !free.empty();  // a size may be declared after the buffers that use it
    for (const auto& p : f.params)
      if (p.array)
        for (const PrimExpr& d : p.array->shape) symbolic = symbolic || !tir::as_const_int(d);
    for (const auto& p : f.params) {
      if (!head.empty()) head += ", ";
      if (p.var)
        head += format("{}: T.{}", name_of(p.var.get(), var_name(p.var)), p.var->dtype.str());
      else if (symbolic)
        head += format("{}: T.handle", handle_of(*p.array));
      else
        head += format("{}: T.Buffer[{}, \"{}\"]", name_of(p.array.get(), p.array->name), tuple(p.array->shape),
                       p.array->dtype.str());
    }
    out += "@T.prim_func\n";
    line(0, format("def {}({}) -> None:", canonical_ ? "f" : identifier(def_name), head));
    if (!canonical_) line(1, format("T.func_attr({{\"global_symbol\": \"{}\", \"tir.noalias\": True}})", f.name));
    for (const PrimExpr& v : free) line(1, format("{} = T.var(\"{}\")", name_of(v.get(), var_name(v)), v->dtype.str()));
    if (symbolic)
      for (const auto& p : f.params)
        if (p.array)
          line(1, format("{} = T.match_buffer({}, {}, dtype=\"{}\")", name_of(p.array.get(), p.array->name),
                         handle_of(*p.array), list(p.array->shape), p.array->dtype.str()));
    const auto* root = tir::as<tir::BlockNode>(f.body);
    if (root && root->axes.empty() && !root->predicate && root->name == "root") {
      memory(*root, 1);
      body(root->body, 1);
    } else {
      body(f.body, 1);
    }
  }

 private:
  static const std::string& var_name(const PrimExpr& v) { return static_cast<const tir::VarNode&>(*v).name; }
  static std::string identifier(const std::string& hint) {
    std::string name;
    for (char c : hint) name += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "v" + name;
    static const std::set<std::string> kWords = {"T",   "and",  "or",    "not",    "if",    "else", "for",   "in",
                                                 "is",  "with", "while", "def",    "class", "from", "None",  "True",
                                                 "try", "del",  "False", "lambda", "pass",  "as",   "return"};
    return kWords.count(name) ? name + "_" : name;
  }
  std::string name_of(const Node* node, const std::string& hint) {
    if (auto found = names_.find(node); found != names_.end()) return found->second;
    const std::string base = canonical_ ? "v" : identifier(hint);
    std::string name = base;
    for (int i = 1; !used_.insert(name).second; ++i) name = format("{}_{}", base, i);
    return names_[node] = name;
  }
  std::string handle_of(const tir::ArrayNode& a) { return format("{}_handle", name_of(&a, a.name)); }

  void line(int depth, const std::string& text) {
    out += std::string(static_cast<size_t>(4 * depth), ' ') + text + "\n";
  }
  std::string joined(const std::vector<PrimExpr>& list) {
    std::string text;
    for (const PrimExpr& e : list) text += (text.empty() ? "" : ", ") + expr(e);
    return text;
  }
  std::string list(const std::vector<PrimExpr>& l) { return "[" + joined(l) + "]"; }
  std::string tuple(const std::vector<PrimExpr>& l) {
    return l.size() == 1 ? "(" + joined(l) + ",)" : "(" + joined(l) + ")";
  }

  std::string integer(const tir::IntImmNode& n) {
    if (n.dtype.is_bool()) return n.value ? "True" : "False";
    if (n.dtype == kInt32) return format("{}", n.value);
    return format("T.{}({})", n.dtype.str(),
                  n.dtype.is_uint() ? format("{}", static_cast<uint64_t>(n.value)) : format("{}", n.value));
  }

  std::string binary(const tir::BinaryNode& n, int outer) {
    if (n.kind == ExprKind::kMin || n.kind == ExprKind::kMax)
      return format("T.{}({}, {})", n.kind == ExprKind::kMin ? "min" : "max", expr(n.a), expr(n.b));
    if (n.kind == ExprKind::kDiv && !n.a->dtype.is_float()) return format("T.truncdiv({}, {})", expr(n.a), expr(n.b));
    if (n.kind == ExprKind::kMod) return format("T.truncmod({}, {})", expr(n.a), expr(n.b));
    for (const auto& row : tir::kOperators) {
      if (row.kind != n.kind) continue;
      // With two literal operands Python would compute the result itself.
      const bool numbers = n.a->kind == ExprKind::kIntImm && n.b->kind == ExprKind::kIntImm;
      const std::string first =
          numbers ? format("T.{}({})", n.a->dtype.str(), *tir::as_const_int(n.a)) : expr(n.a, row.precedence);
      const std::string text = format("{} {} {}", first, row.token, expr(n.b, row.precedence + 1));
      // Python would read chained comparisons as one.
      return row.precedence < outer || (outer == row.precedence && tir::is_comparison(n.kind)) ? "(" + text + ")"
                                                                                               : text;
    }
    return "";
  }

  std::string call(const std::string& name, const std::vector<PrimExpr>& args) {
    return format("T.{}({})", name, joined(args));
  }

  std::string expr(const PrimExpr& e, int outer = 0) {
    if (tir::is_binary(e->kind)) return binary(static_cast<const tir::BinaryNode&>(*e), outer);
    if (const auto* n = tir::as<tir::IntImmNode>(e)) return integer(*n);
    if (const auto* n = tir::as<tir::FloatImmNode>(e)) {
      if (n->value != n->value || n->value - n->value != 0)  // NaN or infinite
        return format("T.{}(\"{}\")", e->dtype.str(), n->value != n->value ? "nan" : n->value > 0 ? "inf" : "-inf");
      std::string text = format("{}", n->value);
      if (text.find_first_of(".e") == std::string::npos) text += ".0";  // keeps the sign of zero, and the type
      return format("T.{}({})", e->dtype.str(), text);
    }
    if (e->kind == ExprKind::kVar) return name_of(e.get(), var_name(e));
    if (const auto* n = tir::as<tir::NotNode>(e)) {
      const std::string text = "not " + expr(n->a, tir::kNotPrecedence);
      return outer > tir::kNotPrecedence ? "(" + text + ")" : text;
    }
    if (const auto* n = tir::as<tir::SelectNode>(e)) return call("Select", {n->condition, n->on_true, n->on_false});
    if (const auto* n = tir::as<tir::CastNode>(e)) return format("T.cast({}, \"{}\")", expr(n->value), e->dtype.str());
    if (const auto* n = tir::as<tir::ReinterpretNode>(e))
      return format("T.reinterpret({}, dtype=\"{}\")", expr(n->value), e->dtype.str());
    if (const auto* n = tir::as<tir::ReadNode>(e)) return element(n->source, n->name, n->indices);
    if (const auto* n = tir::as<tir::RampNode>(e))
      return format("T.ramp({}, {}, {})", expr(n->base), n->stride, static_cast<int>(e->dtype.lanes));
    if (const auto* n = tir::as<tir::BroadcastNode>(e))
      return format("T.broadcast({}, {})", expr(n->value), static_cast<int>(e->dtype.lanes));
    if (const auto* n = tir::as<tir::CallNode>(e)) return call(tir::intrinsic_name(n->op), n->args);
    if (const auto* n = tir::as<tir::ExternNode>(e)) return external(*n);
    return tir::to_text(e);
  }

  std::string external(const tir::ExternNode& n) {
    if (n.name == kAddressOf) return format("T.address_of({}, dtype=\"{}\")", joined(n.args), n.dtype.str());
    if (n.name.starts_with(kLookupParam))
      return format("T.lookup_param(\"{}\", dtype=\"{}\")", n.name.substr(std::string_view(kLookupParam).size()),
                    n.dtype.str());
    return format("T.call_extern(\"{}\"{}{}, dtype=\"{}\")", n.name, n.args.empty() ? "" : ", ", joined(n.args),
                  n.dtype.str());
  }

  std::string element(const Ref<Node>& source, const std::string& name, const std::vector<PrimExpr>& indices) {
    return format("{}[{}]", name_of(source.get(), name), indices.empty() ? "()" : joined(indices));
  }

  void memory(const tir::BlockNode& b, int depth) {
    for (const Ref<Node>& m : b.memory) {
      const auto& a = static_cast<const tir::ArrayNode&>(*m);
      const std::string scope = a.scope == "global" ? "" : format(", scope=\"{}\"", a.scope);
      line(depth,
           format("{} = T.alloc_buffer({}, dtype=\"{}\"{})", name_of(&a, a.name), list(a.shape), a.dtype.str(), scope));
    }
  }

  static std::string notes_of(const tir::Annotations& notes) {
    std::string text;
    for (const auto& [key, value] : notes) {
      if (key == "thread") continue;
      const bool number = !value.empty() && value.find_first_not_of("-0123456789") == std::string::npos;
      text += (text.empty() ? "" : ", ") +
              (number ? format("\"{}\": {}", key, value) : format("\"{}\": \"{}\"", key, value));
    }
    return text;
  }

  static bool in_grid(const tir::ForNode& n) {
    return n.for_kind == tir::ForKind::kSerial && n.annotations.empty() && tir::as_const_int(n.min) == 0;
  }

  void loop(const tir::ForNode& first, int depth) {
    loops_[first.var.get()] = {first.min, first.extent};
    std::vector<const tir::ForNode*> grid = {&first};
    while (in_grid(*grid.back())) {
      const auto* next = tir::as<tir::ForNode>(grid.back()->body);
      if (!next || !in_grid(*next)) break;
      bool depends = false;
      tir::for_each_expr(next->extent, [&](const PrimExpr& e) {
        for (const auto* l : grid) depends = depends || e == l->var;
      });
      if (depends) break;
      grid.push_back(next);
      loops_[next->var.get()] = {next->min, next->extent};
    }
    if (grid.size() > 1 && in_grid(first)) {
      std::string names, extents;
      for (const auto* l : grid) {
        extents += (extents.empty() ? "" : ", ") + expr(l->extent);
        names += (names.empty() ? "" : ", ") + name_of(l->var.get(), var_name(l->var));
      }
      line(depth, format("for {} in T.grid({}):", names, extents));
      return body(grid.back()->body, depth + 1);
    }
    static constexpr const char* kKinds[] = {"serial", "vectorized", "unroll", "parallel"};
    const std::string range = tir::as_const_int(first.min) == 0
                                  ? expr(first.extent)
                                  : format("{}, {}", expr(first.min), expr(first.min + first.extent));
    std::string kind = kKinds[static_cast<size_t>(first.for_kind)], more;
    for (const auto& [key, value] : first.annotations)
      if (key == "thread") kind = "thread_binding", more = format(", thread=\"{}\"", value);
    const std::string notes = notes_of(first.annotations);
    if (!notes.empty()) more += format(", annotations={{{}}}", notes);
    line(depth, format("for {} in T.{}({}{}):", name_of(first.var.get(), var_name(first.var)), kind, range, more));
    body(first.body, depth + 1);
  }

  void block(const tir::BlockNode& b, int depth) {
    line(depth, format("with T.block(\"{}\"):", b.name));
    ++depth;
    const size_t before = out.size();
    if (remapped(b.axes)) {
      std::string kinds, vars, loops;
      for (const tir::BlockAxis& a : b.axes) {
        kinds += a.reduces ? "R" : "S";
        loops += (loops.empty() ? "" : ", ") + expr(a.value);
        vars += (vars.empty() ? "" : ", ") + name_of(a.var.get(), var_name(a.var));
      }
      line(depth, format("{} = T.axis.remap(\"{}\", [{}])", vars, kinds, loops));
    } else {
      axes(b.axes, depth);
    }
    if (b.predicate) line(depth, format("T.where({})", expr(b.predicate)));
    accesses(b, depth);
    if (const std::string notes = notes_of(b.annotations); !notes.empty())
      line(depth, format("T.block_attr({{{}}})", notes));
    memory(b, depth);
    Stmt init = b.init, rest = b.body;
    while (init && init->kind == StmtKind::kLetStmt && rest->kind == StmtKind::kLetStmt) {  // lets around both
      const auto& n = static_cast<const tir::LetStmtNode&>(*init);
      const auto& other = static_cast<const tir::LetStmtNode&>(*rest);
      if (n.var != other.var) break;
      depth = open_let(view_of(n).array != nullptr ? n : other, depth);
      init = n.body, rest = other.body;
    }
    if (init) {
      line(depth, "with T.init():");
      body(init, depth + 1);
    }
    body(rest, depth);
    if (out.size() == before) line(depth, "T.evaluate(0)");
  }

  // Whether each axis is exactly one loop.
  bool remapped(const std::vector<tir::BlockAxis>& list) const {
    return list.size() > 1 && std::all_of(list.begin(), list.end(), [&](const tir::BlockAxis& a) {
             const auto found = loops_.find(a.value.get());
             return found != loops_.end() && tir::as_const_int(found->second.first) == 0 &&
                    tir::as_const_int(a.min) == 0 && tir::as_const_int(a.extent) &&
                    tir::as_const_int(a.extent) == tir::as_const_int(found->second.second) &&
                    a.var->dtype == a.value->dtype;
           });
  }

  void axes(const std::vector<tir::BlockAxis>& list, int depth) {
    for (const tir::BlockAxis& a : list) {
      const std::string range =
          tir::as_const_int(a.min) == 0 ? expr(a.extent) : format("({}, {})", expr(a.min), expr(a.min + a.extent));
      const std::string value = expr(a.value);
      line(depth, format("{} = T.axis.{}({}, {})", name_of(a.var.get(), var_name(a.var)),
                         a.reduces ? "reduce" : "spatial", range, value));
    }
  }

  // The array elements that the block reads and writes, if those are single elements.
  void accesses(const tir::BlockNode& b, int depth) {
    std::vector<std::string> reads, writes;
    auto add = [](std::vector<std::string>* to, std::string text) {
      if (std::find(to->begin(), to->end(), text) == to->end()) to->push_back(std::move(text));
    };
    bool plain = true;
    std::set<const Node*> written;
    tir::for_each_stmt(b.body, [&](const Stmt& s) {
      if (const auto* n = tir::as<tir::WriteNode>(s)) {
        written.insert(n->target.get());
        add(&writes, element(n->target, n->name, n->indices));
      }
      plain = plain && (s->kind == StmtKind::kWrite || s->kind == StmtKind::kIf || s->kind == StmtKind::kSeq);
    });
    if (!plain) return;
    tir::for_each_expr(b.body, [&](const PrimExpr& e) {
      if (const auto* n = tir::as<tir::ReadNode>(e); n && !written.count(n->source.get()))
        add(&reads, element(n->source, n->name, n->indices));
    });
    auto joined_texts = [](const std::vector<std::string>& texts) {
      std::string all;
      for (const std::string& t : texts) all += (all.empty() ? "" : ", ") + t;
      return all;
    };
    line(depth, format("T.reads({})", joined_texts(reads)));
    line(depth, format("T.writes({})", joined_texts(writes)));
  }

  void extern_call(const tir::CallExternNode& n, int depth) {
    if (n.name == tir::kEvaluate) return line(depth, format("T.evaluate({})", expr(n.args[0].value)));
    if (n.name == tir::kReturn) return line(depth, format("T.evaluate(T.ret({}))", expr(n.args[0].value)));
    std::string args;
    for (const tir::ExternArgument& a : n.args) {
      const auto* read = a.address ? tir::as<tir::ReadNode>(a.value) : nullptr;
      args += ", ";
      if (read && n.packed)
        args += name_of(read->source.get(), read->name);
      else
        args += read ? format("T.address_of({})", expr(a.value)) : expr(a.value);
    }
    line(depth, n.packed ? format("T.evaluate(T.call_packed(\"{}\"{}))", n.name, args)
                         : format("T.evaluate(T.call_extern(\"{}\"{}, dtype=\"int32\"))", n.name, args));
  }

  std::string region(const View& view) {
    const std::vector<PrimExpr>& at = view.element->indices;
    const size_t leading = at.size() - view.array->shape.size();
    std::string text;
    for (size_t d = 0; d < at.size(); ++d) {
      text += (d > 0 ? ", " : "") + expr(at[d]);
      if (d < leading) continue;
      const PrimExpr& extent = view.array->shape[d - leading];
      text += ":" + expr(at[d] + tir::cast(at[d]->dtype, extent));
    }
    return format("{}[{}]", name_of(view.source, view.source->name), text);
  }

  // Prints what begins the let; returns the depth of its body.
  int open_let(const tir::LetStmtNode& n, int depth) {
    const View view = view_of(n);
    if (view.is_region) {
      const std::string of = region(view);
      line(depth, format("{} = T.match_buffer({}, {}, dtype=\"{}\")", name_of(view.array, view.array->name), of,
                         list(view.array->shape), view.array->dtype.str()));
      return depth;
    }
    const std::string value = expr(n.value);
    if (view.array != nullptr) {
      const std::string name = name_of(view.array, view.array->name);
      line(depth,
           format("{} = T.buffer_decl({}, dtype=\"{}\")", name, list(view.array->shape), view.array->dtype.str()));
      names_[n.var.get()] = name + ".data";
    } else {
      line(depth, format("{} = T.var(\"{}\")", name_of(n.var.get(), var_name(n.var)), n.var->dtype.str()));
    }
    line(depth, format("with T.let({}, {}):", name_of(n.var.get(), var_name(n.var)), value));
    return depth + 1;
  }

  void body(const Stmt& s, int depth) {
    switch (s->kind) {
      case StmtKind::kFor:
        return loop(static_cast<const tir::ForNode&>(*s), depth);
      case StmtKind::kBlock:
        return block(static_cast<const tir::BlockNode&>(*s), depth);
      case StmtKind::kWrite: {
        const auto& n = static_cast<const tir::WriteNode&>(*s);
        const std::string value = expr(n.value);
        return line(depth, format("{} = {}", element(n.target, n.name, n.indices), value));
      }
      case StmtKind::kLetStmt: {
        const auto& n = static_cast<const tir::LetStmtNode&>(*s);
        return body(n.body, open_let(n, depth));
      }
      case StmtKind::kIf: {
        const auto& n = static_cast<const tir::IfNode&>(*s);
        line(depth, format("if {}:", expr(n.condition)));
        body(n.then_case, depth + 1);
        if (!n.else_case) return;
        line(depth, "else:");
        return body(n.else_case, depth + 1);
      }
      case StmtKind::kWhile: {
        const auto& n = static_cast<const tir::WhileNode&>(*s);
        line(depth, format("while {}:", expr(n.condition)));
        return body(n.body, depth + 1);
      }
      case StmtKind::kSeq: {
        const auto& parts = static_cast<const tir::SeqNode&>(*s).stmts;
        if (parts.empty()) line(depth, "T.evaluate(0)");
        for (const Stmt& part : parts) body(part, depth);
        return;
      }
      case StmtKind::kCallExtern:
        return extern_call(static_cast<const tir::CallExternNode&>(*s), depth);
      case StmtKind::kStore:
      case StmtKind::kPrefetch:
      case StmtKind::kAllocate:
        return line(depth, "# " + tir::to_text(s));
    }
  }

  const bool canonical_;
  std::map<const tir::ExprNode*, std::pair<PrimExpr, PrimExpr>> loops_;  // min and extent
  std::map<const Node*, std::string> names_;
  std::set<std::string> used_ = {"T"};
};

}  // namespace

std::string to_script(const tir::BlockFunction& function, const std::string& def_name, bool canonical) {
  ScriptPrinter printer(canonical);
  printer.function(function, def_name.empty() ? function.name : def_name);
  return std::move(printer.out);
}

}  // namespace tilewright::te
