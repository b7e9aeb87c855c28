// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "base/format.h"
#include "relay/classic/json.h"
#include "relay/op.h"
#include "relay/text.h"
#include "relay/virtual_device.h"

namespace tilewright::relay {
namespace {

// Letters, digits and '_', not starting with a digit: needs no quotes. ("%1" names a binding, "%x.0" a field.)
bool is_identifier(const std::string& name) {
  auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), plain);
}

std::string name_text(const std::string& name) { return is_identifier(name) ? name : quoted(name); }

// Scalars of these dtypes are printed inline.
std::optional<std::string> scalar_text(const Tensor& t) {
  if (t.rank() != 0) return std::nullopt;
  if (t.dtype() == kBool) return std::string(t.at_int(0) ? "True" : "False");
  if (t.dtype() == kInt32) return format("{}", t.at_int(0));
  if (t.dtype() == kInt64) return format("{}i64", t.at_int(0));
  if (t.dtype() == kInt16) return format("{}i16", t.at_int(0));
  if (!t.dtype().is_float()) return std::nullopt;
  double v = t.at_double(0);
  if (!std::isfinite(v)) return std::nullopt;
  if (t.dtype() == kFloat32) return format("{}f", static_cast<float>(v));
  if (t.dtype() == kFloat64) return format("{}f64", v);
  if (t.dtype() == kFloat16) return format("{}f16", static_cast<float>(v));
  return std::nullopt;
}

class Printer {
 public:
  Printer(const TextOptions& options, std::vector<Tensor>* constants) : options_(options), constants_(constants) {}

  void module(const Module& m) {
    out_ = "#[version = \"0.0.5\"]\n";
    for (auto& [key, value] : m.metadata) out_ += format("#[metadata({}) = {}]\n", quoted(key), quoted(value));
    bool first = true;
    for (auto& [name, definition] : m.types) {
      if (!first) out_ += "\n";
      first = false;
      out_ += "type " + name + variables_text(definition.variables) + " {\n";
      for (const Expr& e : definition.constructors) {
        const auto& inputs = as_func(e->type)->args;
        out_ += "  " + as<ConstructorNode>(e)->name;
        for (size_t i = 0; i < inputs.size(); ++i) out_ += (i ? ", " : "(") + type_str(inputs[i]);
        out_ += inputs.empty() ? ",\n" : "),\n";
      }
      out_ += "}\n";
    }
    for (auto& [name, function] : m.functions) {
      if (!first) out_ += "\n";
      first = false;
      bound_.clear();
      used_names_.clear();
      next_binding_ = 0;
      const auto* node = as<FunctionNode>(function);
      if (!node) continue;
      count_users(function);
      out_ += "def @" + name_text(name);
      function_text(*node);
      out_ += "\n";
    }
  }

  void expression(const Expr& e) {
    // Free variables are not declared in the text: they are named first, so that bindings do not take their names.
    count_users(e);
    block(e);
  }

  std::string take() { return std::move(out_); }

 private:
  void line_start() { out_.append(static_cast<size_t>(2 * indent_), ' '); }

  std::string comment(const Expr& e) const {
    if (options_.annotate) return options_.annotate(e);
    std::string inside;
    if (options_.types && e->type->kind != TypeKind::kIncomplete) inside += " ty=" + type_str(e->type);
    if (options_.spans && e->span && e->span->find("*/") == std::string::npos) inside += " from " + *e->span;
    return inside.empty() ? "" : " /*" + inside + " */";
  }

  // ": T", or nothing where the type is not known.
  static std::string annotation(const Type& type) {
    return type->kind == TypeKind::kIncomplete ? "" : ": " + type_str(type);
  }

  // A variable's text, unique in the definition.
  std::string declare(const Expr& var) {
    std::string base = as<VarNode>(var)->name;
    if (base.empty() || (options_.classic_names && !std::isalpha(static_cast<unsigned char>(base[0]))))
      base = "v" + base;
    std::string name = base;
    for (int i = 1; !used_names_.insert(name).second; ++i) name = base + std::to_string(i);
    return bound_[var.get()] = "%" + name_text(name);
  }

  // "(%x: T, ..., Primitive=1) -> T {\n body \n}"
  void function_text(const FunctionNode& f) {
    out_ += variables_text(f.type_variables) + "(";
    bool first = true;
    auto separate = [&] {
      if (!first) out_ += ", ";
      first = false;
    };
    const auto places = f.attrs.find(kParamDevicesAttr);
    const auto* devices = places == f.attrs.end() ? nullptr : std::get_if<std::vector<std::string>>(&places->second);
    if (devices && !std::all_of(devices->begin(), devices->end(), [](auto& d) { return d.empty() || is_device(d); }))
      devices = nullptr;  // another attribute of that name
    for (size_t i = 0; i < f.params.size(); ++i) {
      separate();
      out_ += declare(f.params[i]);
      if (devices && i < devices->size() && !(*devices)[i].empty())
        out_ += format(" {{{}={}}}", kDeviceAttr, (*devices)[i]);
      out_ += annotation(f.params[i]->type);
    }
    for (auto& [name, value] : f.attrs) {
      if (devices && name == kParamDevicesAttr) continue;
      separate();
      const auto* device = name == kDeviceAttr ? std::get_if<std::string>(&value) : nullptr;
      out_ += name_text_dotted(name) + "=" + (device && is_device(*device) ? *device : attr_text(value));
    }
    const Type& result = as_func(f.type)->result;
    out_ += result->kind == TypeKind::kIncomplete ? ") {\n" : ") -> " + type_str(result) + " {\n";
    ++indent_;
    block(f.body);
    --indent_;
    line_start();
    out_ += "}";
  }

  static std::string variables_text(const std::vector<Type>& variables) {
    std::string out;
    for (const Type& variable : variables) out += (out.empty() ? "[" : ", ") + type_str(variable);
    return out.empty() ? out : out + "]";
  }

  static std::string name_text_dotted(const std::string& name) {
    std::string plain = name;
    std::replace(plain.begin(), plain.end(), '.', '_');
    return is_identifier(plain) ? name : quoted(name);
  }

  // Prints the bindings that `root` needs, then `root` as the block's result. What has several users is bound, too.
  void block(Expr root) {
    while (const auto* let = as<LetNode>(root)) {
      // A function may name the variable it is bound to.
      const bool closure = as<FunctionNode>(let->value) && !bound_.count(let->value.get());
      std::string var = closure ? declare(let->var) : "";
      bind_operands(let->value, !closure && is_shared(let->value));
      std::string value = bound_or_rhs(let->value);
      if (!closure) var = declare(let->var);
      line_start();
      out_ += format("let {}{} = {};\n", var, annotation(let->var->type), value);
      root = Expr(let->body);
    }
    bind_operands(root, is_shared(root));
    std::string result = bound_or_rhs(root);
    line_start();
    out_ += result + "\n";
  }

  // Counts the users of everything in a definition.
  void count_users(const Expr& definition) {
    users_.clear();
    for (const Expr& e : post_order(definition, true))
      for (const Expr& child : children(e)) ++users_[child.get()];
  }
  bool is_shared(const Expr& e) const {
    auto it = users_.find(e.get());
    return it != users_.end() && it->second > 1;
  }

  // Children that are evaluated in the same block.
  static std::vector<Expr> operands(const Expr& e) {
    if (const auto* branch = as<IfNode>(e)) return {branch->condition};
    if (const auto* match = as<MatchNode>(e)) return {match->data};
    if (e->kind == ExprKind::kFunction || e->kind == ExprKind::kLet) return {};
    std::vector<Expr> out = children(e);
    // A called function is printed directly above its call, behind the call's arguments.
    if (e->kind == ExprKind::kCall && !called_op(e)) std::rotate(out.begin(), out.begin() + 1, out.end());
    return out;
  }

  static bool is_inline(const Expr& e) {
    return e->kind == ExprKind::kVar || e->kind == ExprKind::kGlobalVar || e->kind == ExprKind::kConstant ||
           e->kind == ExprKind::kOp || e->kind == ExprKind::kConstructor;
  }

  // Prints "%n = ...;" for everything below `root` that has no name yet, and for `root` if that is to be bound.
  void bind_operands(const Expr& root, bool bind_root) {
    std::vector<std::pair<Expr, size_t>> stack;
    std::unordered_map<const ExprNode*, std::vector<Expr>> kids;
    auto push = [&](const Expr& e) {
      if (is_inline(e) || bound_.count(e.get()) || kids.count(e.get())) return;
      kids[e.get()] = operands(e);
      stack.emplace_back(e, 0);
    };
    push(root);
    while (!stack.empty()) {
      auto& [e, next] = stack.back();
      auto& list = kids[e.get()];
      if (next < list.size()) {
        push(list[next++]);
        continue;
      }
      Expr done = e;
      stack.pop_back();
      if (done == root && !bind_root) continue;
      std::string value = rhs(done);
      std::string name = format("%{}", next_binding_++);
      line_start();
      out_ += name + " = " + value + ";\n";
      bound_[done.get()] = name;
    }
  }

  std::string bound_or_rhs(const Expr& e) {
    auto it = bound_.find(e.get());
    return it != bound_.end() ? it->second : rhs(e);
  }

  // How an operand is written: by name, unless it is inline.
  std::string operand(const Expr& e) { return bound_or_rhs(e); }

  std::string list(const std::vector<Expr>& es) {
    std::string out;
    for (size_t i = 0; i < es.size(); ++i) out += (i ? ", " : "") + operand(es[i]);
    return out;
  }

  std::string constant(const Expr& e) {
    const Tensor& data = as<ConstantNode>(e)->data;
    if (auto scalar = scalar_text(data)) return *scalar + comment(e);
    auto [it, fresh] = constant_index_.try_emplace(e.get(), constant_index_.size());
    if (fresh && constants_) constants_->push_back(data);
    return format("meta[relay.Constant][{}]", it->second) + comment(e);
  }

  // Collects the text of a nested block separately, because the current line is unfinished.
  template <class F>
  std::string apart(F&& write) {
    std::string saved = std::move(out_);
    out_.clear();
    write();
    std::swap(saved, out_);
    return saved;
  }

  std::string rhs(const Expr& e) {
    switch (e->kind) {
      case ExprKind::kVar:
        return declare(e);  // the first occurrence of a free variable
      case ExprKind::kGlobalVar:
        return "@" + name_text(as<GlobalVarNode>(e)->name);
      case ExprKind::kConstant:
        return constant(e);
      case ExprKind::kOp:
        return as<OpNode>(e)->def->name;
      case ExprKind::kCall: {
        const auto& call = *as<CallNode>(e);
        if (as<ConstructorNode>(call.callee) && call.args.empty()) return operand(call.callee) + comment(e);
        std::string args = list(call.args);
        std::string attrs = attributes(call);
        if (!args.empty() && !attrs.empty()) args += ", ";
        return operand(call.callee) + "(" + args + attrs + ")" + comment(e);
      }
      case ExprKind::kFunction:
        return "fn " + apart([&] { function_text(*as<FunctionNode>(e)); }) + comment(e);
      case ExprKind::kTuple: {
        const auto& fields = as<TupleNode>(e)->fields;
        return "(" + list(fields) + (fields.size() == 1 ? ",)" : ")") + comment(e);
      }
      case ExprKind::kTupleGetItem:
        return format("{}.{}", operand(as<TupleGetItemNode>(e)->tuple), as<TupleGetItemNode>(e)->index) + comment(e);
      case ExprKind::kLet:
        return "(\n" + nested(e) + indentation() + ")";
      case ExprKind::kIf: {
        const auto& branch = *as<IfNode>(e);
        std::string condition = operand(branch.condition);
        // In sequence: the second branch may use names that the first one binds.
        std::string then_text = nested(branch.then_branch);
        std::string else_text = nested(branch.else_branch);
        return format("if ({}) {{\n", condition) + then_text + indentation() + "} else {\n" + else_text +
               indentation() + "}" + comment(e);
      }
      case ExprKind::kConstructor:
        return as<ConstructorNode>(e)->name;
      case ExprKind::kMatch: {
        const auto& match = *as<MatchNode>(e);
        std::string out = format("match{} ({}) {{\n", match.complete ? "" : "?", operand(match.data));
        ++indent_;
        for (const Clause& clause : match.clauses) {
          std::string head = indentation() + pattern(clause.pattern) + " => {\n";
          out += head + nested(clause.body) + indentation() + "},\n";
        }
        --indent_;
        return out + indentation() + "}" + comment(e);
      }
      case ExprKind::kRefCreate:
        return "ref(" + operand(as<RefCreateNode>(e)->value) + ")" + comment(e);
      case ExprKind::kRefRead:
        return "ref_read(" + operand(as<RefReadNode>(e)->reference) + ")" + comment(e);
      case ExprKind::kRefWrite: {
        const auto& write = *as<RefWriteNode>(e);
        std::string reference = operand(write.reference);
        return "ref_write(" + reference + ", " + operand(write.value) + ")" + comment(e);
      }
    }
    return "";
  }

  std::string pattern(const Pattern& p) {
    if (p->kind == PatternKind::kWildcard) return "_";
    if (p->kind == PatternKind::kVar) return declare(p->expr);
    std::string fields;
    for (const Pattern& field : p->fields) fields += (fields.empty() ? "" : ", ") + pattern(field);
    if (p->kind == PatternKind::kTuple) return "(" + fields + (p->fields.size() == 1 ? ",)" : ")");
    return as<ConstructorNode>(p->expr)->name + (fields.empty() ? "" : "(" + fields + ")");
  }

  std::string indentation() const { return std::string(static_cast<size_t>(2 * indent_), ' '); }
  std::string nested(const Expr& e) {
    return apart([&] {
      ++indent_;
      block(e);
      --indent_;
    });
  }

  using Fields = std::vector<std::pair<std::string, std::string>>;

  // "axis=1, keepdims=True": fields that differ from the classic operator's defaults.
  std::string attributes(const CallNode& call) {
    if (!call.attrs) return "";
    const auto* op = as<OpNode>(call.callee);
    const Fields fields = attr_texts(call.attrs), &defaults = defaults_of(op);
    Fields said;
    for (size_t i = 0; i < fields.size(); ++i)
      // dtype is always printed, even when it is the default, for readability.
      if (i >= defaults.size() || defaults[i] != fields[i] || fields[i].first == "dtype" ||
          always_said(op, fields[i].first))
        said.push_back(fields[i]);
    std::string out;
    for (auto& [name, value] : in_classic_words(op, call, std::move(said)))
      out += (out.empty() ? "" : ", ") + name + "=" + value;
    return out;
  }

  const Fields& defaults_of(const OpNode* op) {
    static const Fields kNone;
    if (!op || !op->def->make_attrs) return kNone;
    auto [it, fresh] = defaults_.try_emplace(op->def);
    if (!fresh) return it->second;
    it->second = attr_texts(op->def->make_attrs());
    for (auto& [name, value] : it->second)
      if (is_op(op, "nn.batch_matmul") && name == "transpose_b") value = "False";
    return it->second;
  }

  // Fields that the classic stack merges or names differently.
  static Fields in_classic_words(const OpNode* op, const CallNode& call, Fields said) {
    if (is_op(op, "on_device")) {
      std::erase_if(said, [](const auto& field) { return !field.first.starts_with("constrain_"); });
      said.insert(said.begin(), {kDeviceAttr, device_of(call.attrs).text()});
    } else if (is_op(op, "device_copy")) {
      const auto [from, to] = devices_of(call.attrs);
      return {{std::string("src_") + kDeviceAttr, from.text()}, {std::string("dst_") + kDeviceAttr, to.text()}};
    } else if (is_op(op, "split") && !said.empty() && said.back().first == "sections") {
      said.back().first = "indices_or_sections";
      std::rotate(said.begin(), said.end() - 1, said.end());
    }
    return said;
  }

  // Fields without a default in the classic operators: their texts always have them.
  static bool always_said(const OpNode* op, std::string_view field) {
    static const std::set<std::string_view> kOfAny = {
        "a_max",         "a_min",        "block_shape",  "compiler",  "crop_size",   "crops",     "dst_layout",
        "multiplier",    "newshape",     "output_shape", "pad_width", "paddings",    "pool_size", "pooled_size",
        "repeats",       "reps",         "scale_d",      "scale_h",   "scale_w",     "shift",     "src_layout",
        "spatial_scale", "target_shape", "tile_size",    "units",     "window_shape"};
    static const std::set<std::string> kOfOne = {"broadcast_to shape",
                                                 "expand_dims axis",
                                                 "full shape",
                                                 "nn.l2_normalize axis",
                                                 "nn.l2_normalize eps",
                                                 "nn.leaky_relu alpha",
                                                 "nn.lrn alpha",
                                                 "ones shape",
                                                 "qnn.quantize out_dtype",
                                                 "qnn.requantize out_dtype",
                                                 "slice_like axes",
                                                 "sliding_window axis",
                                                 "sliding_window strides",
                                                 "strided_slice axes",
                                                 "strided_slice begin",
                                                 "strided_slice end",
                                                 "strided_slice strides",
                                                 "topk k",
                                                 "transpose axes",
                                                 "zeros shape"};
    return op && (kOfAny.contains(field) || kOfOne.contains(std::string(op->def->name) + " " + std::string(field)));
  }

  static bool is_device(const std::string& text) { return text.starts_with("VirtualDevice("); }
  static bool is_op(const OpNode* op, std::string_view name) { return op && op->def->name == name; }

  const TextOptions& options_;
  std::vector<Tensor>* constants_;
  std::string out_;
  int indent_ = 0;
  int64_t next_binding_ = 0;
  std::unordered_map<const ExprNode*, std::string> bound_;
  std::unordered_map<const ExprNode*, size_t> constant_index_;
  std::unordered_map<const ExprNode*, size_t> users_;
  std::unordered_map<const OpDef*, Fields> defaults_;
  std::set<std::string> used_names_;
};

}  // namespace

ModuleText print_module(const Module& module, const TextOptions& options) {
  ModuleText out;
  Printer printer(options, &out.constants);
  printer.module(module);
  out.text = printer.take();
  if (options.metadata && !out.constants.empty()) out.text += "\n#[metadata]\n" + save_constants(out.constants) + "\n";
  return out;
}

std::string print_expr(const Expr& e, const TextOptions& options) {
  Printer printer(options, nullptr);
  printer.expression(e);
  return printer.take();
}

}  // namespace tilewright::relay
