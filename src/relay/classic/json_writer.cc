// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/format.h"
#include "ir/attr_literal.h"
#include "relay/classic/json.h"
#include "relay/classic/json_tensors.h"
#include "relay/op.h"
#include "relay/script_ops.h"

namespace tilewright::relay {
namespace {

std::string json_string(const std::string& s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\')
      out += std::string("\\") + c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += format("\\u{:04x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + "\"";
}

std::string real_text(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  return format("{:.17g}", v);
}

using Fields = std::map<std::string, std::string>;  // sorted, as the classic stack writes them

class Writer {
 public:
  Writer() { nodes_.push_back("{\"type_key\": \"\"}"); }

  int64_t module(const Module& m) {
    std::vector<int64_t> types, functions, global_types, globals;
    std::vector<std::string> type_names, names;
    for (auto& [name, definition] : m.types) {
      int64_t header = type_name(name);
      std::vector<int64_t> constructors;
      for (const Expr& e : definition.constructors) constructors.push_back(expression(e));
      types.push_back(header);
      types.push_back(node("relay.TypeData", {{"constructors", ref(array(constructors))},
                                              {"header", ref(header)},
                                              {"span", "0"},
                                              {"type_vars", ref(type_array(definition.variables))}}));
      type_names.push_back(name);
      global_types.push_back(header);
    }
    for (auto& [name, function] : m.functions) {
      functions.push_back(expression(make_global(name, function)));
      functions.push_back(expression(function));
      names.push_back(name);
      globals.push_back(functions[functions.size() - 2]);
    }
    int64_t source = node("SourceMap", {{"source_map", ref(map({}, {}))}});
    return node("IRModule", {{"attrs", "0"},
                             {"functions", ref(map({}, functions))},
                             {"global_type_var_map_", ref(map(type_names, global_types))},
                             {"global_var_map_", ref(map(names, globals))},
                             {"source_map", ref(source)},
                             {"type_definitions", ref(map({}, types))}});
  }

  int64_t constants(const std::vector<Tensor>& tensors) {
    std::vector<int64_t> ids;
    for (const Tensor& t : tensors) ids.push_back(constant(t, "0"));
    return map({"relay.Constant"}, {array(ids)});
  }

  std::string document(int64_t root) const {
    std::string out = format("{{\n  \"root\": {}, \n  \"nodes\": [\n", root);
    for (size_t i = 0; i < nodes_.size(); ++i) out += "    " + nodes_[i] + (i + 1 < nodes_.size() ? ", \n" : "\n");
    out += "  ], \n  \"b64ndarrays\": [";
    for (size_t i = 0; i < tensors_.size(); ++i) out += (i ? ", \n    \"" : "\n    \"") + tensors_[i] + "\"";
    return out + (tensors_.empty() ? "" : "\n  ") + "], \n  \"attrs\": {\"tvm_version\": \"0.9.0\"}\n}";
  }

 private:
  static std::string ref(int64_t id) { return std::to_string(id); }
  int64_t add(std::string text) {
    nodes_.push_back(std::move(text));
    return static_cast<int64_t>(nodes_.size()) - 1;
  }
  int64_t node(const std::string& kind, const Fields& fields) {
    std::string out = "{\"type_key\": " + json_string(kind) + ", \"attrs\": {";
    bool first = true;
    for (auto& [name, value] : fields) {
      out += (first ? "" : ", ") + json_string(name) + ": " + json_string(value);
      first = false;
    }
    return add(out + "}}");
  }
  static std::string ids_text(const std::vector<int64_t>& ids) {
    std::string out;
    for (int64_t id : ids) out += (out.empty() ? "" : ", ") + std::to_string(id);
    return out.empty() ? out : ", \"data\": [" + out + "]";
  }
  int64_t array(const std::vector<int64_t>& ids) { return add("{\"type_key\": \"Array\"" + ids_text(ids) + "}"); }
  // A map node: keyed by name, or, without keys, alternating keys and values.
  int64_t map(const std::vector<std::string>& keys, const std::vector<int64_t>& ids) {
    std::string names;
    for (const std::string& key : keys) names += (names.empty() ? "" : ", ") + json_string(key);
    return add("{\"type_key\": \"Map\"" + (names.empty() ? "" : ", \"keys\": [" + names + "]") + ids_text(ids) + "}");
  }
  int64_t string(const std::string& s) {
    return add("{\"type_key\": \"runtime.String\"" + (s.empty() ? "" : ", \"repr_str\": " + json_string(s)) + "}");
  }
  int64_t integer(int64_t v, const char* dtype = "int32") {
    return node("IntImm", {{"dtype", dtype}, {"span", "0"}, {"value", std::to_string(v)}});
  }

  // --- types: one node for each object
  int64_t type_array(const std::vector<Type>& types) {
    std::vector<int64_t> ids;
    for (const Type& t : types) ids.push_back(type(t));
    return array(ids);
  }
  int64_t type_name(const std::string& name) {
    auto [it, fresh] = type_names_.try_emplace(name, 0);
    if (fresh) it->second = node("GlobalTypeVar", {{"kind", "5"}, {"name_hint", ref(string(name))}, {"span", "0"}});
    return it->second;
  }
  int64_t type(const Type& t) {
    auto it = types_.find(t.get());
    if (it != types_.end()) return it->second;
    // Types with equal text share a node, unless they contain parts that are equal only to themselves (unknowns).
    const bool plain = !has_identity(t);
    int64_t id = 0;
    if (plain) {
      auto [known, fresh] = types_by_text_.try_emplace(type_str(t), 0);
      if (fresh) known->second = new_type(t);
      id = known->second;
    } else {
      id = new_type(t);
    }
    types_[t.get()] = id;
    kept_.push_back(t);
    return id;
  }
  static bool has_identity(const Type& t) {
    if (const auto* tensor = as_tensor(t))
      return std::any_of(tensor->shape.begin(), tensor->shape.end(), [](const Dim& d) { return !d.is_const(); });
    if (t->kind == TypeKind::kVariable || t->kind == TypeKind::kIncomplete) return true;
    std::vector<Type> parts = parts_of(t);
    return std::any_of(parts.begin(), parts.end(), has_identity);
  }
  int64_t new_type(const Type& t) {
    switch (t->kind) {
      case TypeKind::kTensor: {
        std::vector<int64_t> dims;
        for (const Dim& d : as_tensor(t)->shape) dims.push_back(dim(d));
        return node("relay.TensorType",
                    {{"dtype", as_tensor(t)->dtype.str()}, {"shape", ref(array(dims))}, {"span", "0"}});
      }
      case TypeKind::kTuple:
        return node("TupleType", {{"fields", ref(type_array(as_tuple(t)->fields))}, {"span", "0"}});
      case TypeKind::kFunc: {
        int64_t variables = type_array(as_func(t)->variables), args = type_array(as_func(t)->args),
                result = type(as_func(t)->result);
        return node("FuncType", {{"arg_types", ref(args)},
                                 {"ret_type", ref(result)},
                                 {"span", "0"},
                                 {"type_constraints", ref(array({}))},
                                 {"type_params", ref(variables)}});
      }
      case TypeKind::kReference:
        return node("relay.RefType", {{"span", "0"}, {"value", ref(type(as_reference(t)->value))}});
      case TypeKind::kVariable:
        return node("TypeVar", {{"kind", "0"}, {"name_hint", ref(string(as_variable(t)->name))}, {"span", "0"}});
      case TypeKind::kData:
        return node(
            "TypeCall",
            {{"args", ref(type_array(as_data(t)->args))}, {"func", ref(type_name(as_data(t)->name))}, {"span", "0"}});
      case TypeKind::kIncomplete:
        return node("IncompleteType", {{"kind", "0"}, {"span", "0"}});
    }
    return 0;
  }
  int64_t dim(const Dim& d) {
    if (d.is_const()) return integer(d.value());
    if (d.node()->kind == DimKind::kSymbol)
      return node("tir.Var",
                  {{"dtype", "int32"}, {"name", ref(string(d.node()->name))}, {"span", "0"}, {"type_annotation", "0"}});
    return node("tir.Any", {{"dtype", "int32"}, {"span", "0"}});
  }

  // --- expressions
  static Expr make_global(const std::string& name, const Expr& function) {
    return make_global_var(name, function->type);
  }

  int64_t device() {
    if (!device_)
      device_ = node(
          "VirtualDevice",
          {{"device_type_int", "-1"}, {"memory_scope", ref(string(""))}, {"target", "0"}, {"virtual_device_id", "-1"}});
    return device_;
  }
  int64_t constant(const Tensor& data, const std::string& checked) {
    tensors_.push_back(encode_tensor(data));
    return node("relay.Constant", {{"_checked_type_", checked},
                                   {"data", std::to_string(tensors_.size() - 1)},
                                   {"span", "0"},
                                   {"virtual_device_", ref(device())}});
  }

  int64_t expression(const Expr& root) {
    // The variables of patterns count as children, so that every node is written before it is referenced.
    for (const Expr& e : post_order(root, true)) {
      if (done_.count(e.get())) continue;
      if (const auto* global = as<GlobalVarNode>(e)) {
        auto [it, fresh] = globals_.try_emplace(global->name, 0);
        if (fresh) it->second = one(e);
        done_[e.get()] = it->second;
      } else {
        done_[e.get()] = one(e);
      }
      kept_exprs_.push_back(e);
    }
    return done_.at(root.get());
  }
  int64_t at(const Expr& e) {
    auto it = done_.find(e.get());
    if (it != done_.end()) return it->second;
    kept_exprs_.push_back(e);
    return done_[e.get()] = one(e);  // operators and constructors, which are no children
  }
  std::vector<int64_t> all(const std::vector<Expr>& es) {
    std::vector<int64_t> out;
    for (const Expr& e : es) out.push_back(at(e));
    return out;
  }

  int64_t one(const Expr& e) {
    if (const auto* op = as<OpNode>(e)) {
      auto [it, fresh] = ops_.try_emplace(op->def, 0);
      if (fresh) it->second = add("{\"type_key\": \"Op\", \"repr_str\": " + json_string(op->def->name) + "}");
      return it->second;
    }
    if (const auto* constructor = as<ConstructorNode>(e)) {
      auto [it, fresh] = constructors_.try_emplace({constructor->data_type, constructor->tag}, 0);
      if (fresh) {
        int64_t inputs = type_array(as_func(e->type)->args);
        it->second = node("relay.Constructor", {{"_checked_type_", "0"},
                                                {"belong_to", ref(type_name(constructor->data_type))},
                                                {"inputs", ref(inputs)},
                                                {"name_hint", ref(string(constructor->name))},
                                                {"span", "0"},
                                                {"tag", std::to_string(constructor->tag)},
                                                {"virtual_device_", "0"}});
      }
      return it->second;
    }
    std::string checked = is_complete(e->type) ? ref(type(e->type)) : "0";
    if (const auto* c = as<ConstantNode>(e)) return constant(c->data, checked);
    Fields fields{{"_checked_type_", checked}, {"span", "0"}, {"virtual_device_", ref(device())}};
    auto write = [&](const char* kind, Fields own) {
      fields.merge(own);
      return node(kind, fields);
    };
    switch (e->kind) {
      case ExprKind::kVar: {
        int64_t id = node("relay.Id", {{"name_hint", ref(string(as<VarNode>(e)->name))}});
        return write("relay.Var", {{"type_annotation", checked}, {"vid", ref(id)}});
      }
      case ExprKind::kGlobalVar:
        fields["virtual_device_"] = "0";
        return write("GlobalVar", {{"name_hint", ref(string(as<GlobalVarNode>(e)->name))}});
      case ExprKind::kCall: {
        const auto& c = *as<CallNode>(e);
        int64_t callee = at(c.callee), args = array(all(c.args)), attrs = attributes(c);
        return write("relay.Call",
                     {{"args", ref(args)}, {"attrs", ref(attrs)}, {"op", ref(callee)}, {"type_args", ref(array({}))}});
      }
      case ExprKind::kFunction: {
        const auto& f = *as<FunctionNode>(e);
        int64_t params = array(all(f.params)), body = at(f.body), variables = type_array(f.type_variables),
                result = type(as_func(f.type)->result);
        return write("relay.Function", {{"attrs", ref(dictionary(f.attrs))},
                                        {"body", ref(body)},
                                        {"params", ref(params)},
                                        {"ret_type", ref(result)},
                                        {"type_params", ref(variables)}});
      }
      case ExprKind::kTuple:
        return write("relay.Tuple", {{"fields", ref(array(all(as<TupleNode>(e)->fields)))}});
      case ExprKind::kTupleGetItem:
        return write("relay.TupleGetItem", {{"index", std::to_string(as<TupleGetItemNode>(e)->index)},
                                            {"tuple_value", ref(at(as<TupleGetItemNode>(e)->tuple))}});
      case ExprKind::kLet: {
        const auto& let = *as<LetNode>(e);
        return write("relay.Let",
                     {{"body", ref(at(let.body))}, {"value", ref(at(let.value))}, {"var", ref(at(let.var))}});
      }
      case ExprKind::kIf: {
        const auto& branch = *as<IfNode>(e);
        return write("relay.If", {{"cond", ref(at(branch.condition))},
                                  {"false_branch", ref(at(branch.else_branch))},
                                  {"true_branch", ref(at(branch.then_branch))}});
      }
      case ExprKind::kMatch: {
        const auto& match = *as<MatchNode>(e);
        std::vector<int64_t> clauses;
        for (const Clause& clause : match.clauses) {
          int64_t lhs = pattern(clause.pattern);
          clauses.push_back(node("relay.Clause", {{"lhs", ref(lhs)}, {"rhs", ref(at(clause.body))}}));
        }
        return write("relay.Match", {{"clauses", ref(array(clauses))},
                                     {"complete", match.complete ? "1" : "0"},
                                     {"data", ref(at(match.data))}});
      }
      case ExprKind::kRefCreate:
        return write("relay.RefCreate", {{"value", ref(at(as<RefCreateNode>(e)->value))}});
      case ExprKind::kRefRead:
        return write("relay.RefRead", {{"ref", ref(at(as<RefReadNode>(e)->reference))}});
      case ExprKind::kRefWrite:
        return write("relay.RefWrite", {{"ref", ref(at(as<RefWriteNode>(e)->reference))},
                                        {"value", ref(at(as<RefWriteNode>(e)->value))}});
      case ExprKind::kConstant:
      case ExprKind::kOp:
      case ExprKind::kConstructor:
        break;
    }
    return 0;
  }

  int64_t pattern(const Pattern& p) {
    std::vector<int64_t> fields;
    for (const Pattern& field : p->fields) fields.push_back(pattern(field));
    switch (p->kind) {
      case PatternKind::kWildcard:
        return node("relay.PatternWildcard", {{"span", "0"}});
      case PatternKind::kVar:
        return node("relay.PatternVar", {{"span", "0"}, {"var", ref(at(p->expr))}});
      case PatternKind::kTuple:
        return node("relay.PatternTuple", {{"patterns", ref(array(fields))}, {"span", "0"}});
      case PatternKind::kConstructor:
        return node("relay.PatternConstructor",
                    {{"constructor", ref(at(p->expr))}, {"patterns", ref(array(fields))}, {"span", "0"}});
    }
    return 0;
  }

  // --- attributes
  int64_t dictionary(const DictAttrs& attrs) {
    if (attrs.empty()) return 0;
    std::vector<std::string> keys;
    std::vector<int64_t> values;
    for (auto& [name, value] : attrs) {
      keys.push_back(name);
      values.push_back(std::visit([&](const auto& v) { return item(v); }, value));
    }
    return node("DictAttrs", {{"__dict__", ref(map(keys, values))}});
  }
  int64_t item(bool v) { return integer(v, "bool"); }
  int64_t item(int64_t v) { return integer(v, v == static_cast<int32_t>(v) ? "int32" : "int64"); }
  int64_t item(double v) { return node("FloatImm", {{"dtype", "float64"}, {"span", "0"}, {"value", real_text(v)}}); }
  int64_t item(const std::string& v) {  // a literal of None alone is no node; others are kept as their text
    return v == std::string(1, kLiteralAttr) + "None" ? 0 : string(v);
  }
  template <class T>
  int64_t item(const std::vector<T>& v) {
    std::vector<int64_t> ids;
    for (const T& part : v) ids.push_back(item(part));
    return array(ids);
  }

  // The fields in the classic stack's encoding: numbers and dtypes in the node, all else as references.
  class FieldWriter : public AttrVisitor {
   public:
    FieldWriter(Writer* writer, bool is_split) : writer_(writer), is_split_(is_split) {}
    Fields fields;
    void visit(const char* name, bool* v) override { fields[name] = *v ? "1" : "0"; }
    void visit(const char* name, int64_t* v) override {
      if (!is_split_ || std::string_view(name) != "sections")
        fields[name] = std::to_string(*v);
      else if (*v > 0)
        fields["indices_or_sections"] = ref(writer_->item(*v));
    }
    void visit(const char* name, double* v) override { fields[name] = real_text(*v); }
    void visit(const char* name, std::string* v) override {
      std::string_view n = name;
      bool dtype = n.size() >= 5 && n.substr(n.size() - 5) == "dtype";
      fields[name] = dtype ? *v : ref(writer_->string(*v));
    }
    void visit(const char* name, DataType* v) override { fields[name] = v->str(); }
    void visit(const char* name, std::optional<int64_t>* v) override {
      fields[name] = *v ? ref(writer_->item(**v)) : "0";
    }
    void visit(const char* name, std::vector<int64_t>* v) override { fields[name] = ref(writer_->item(*v)); }
    void visit(const char* name, std::optional<std::vector<int64_t>>* v) override {
      fields[name] = *v ? ref(writer_->item(**v)) : "0";
    }
    void visit(const char* name, std::vector<double>* v) override { fields[name] = ref(writer_->item(*v)); }
    void visit(const char* name, std::vector<std::string>* v) override { fields[name] = ref(writer_->item(*v)); }
    void visit(const char* name, std::vector<std::vector<int64_t>>* v) override {
      fields[name] = ref(writer_->item(*v));
    }

   private:
    Writer* writer_;
    bool is_split_;
  };
  int64_t attributes(const CallNode& c) {
    if (!c.attrs) return 0;
    if (const auto* script = attrs_as<ScriptAttrs>(c.attrs))
      return dictionary({script->values().begin(), script->values().end()});
    const auto* op = as<OpNode>(c.callee);
    FieldWriter writer(this, op && std::string_view(op->def->name) == "split");
    const_cast<AttrsNode*>(c.attrs.get())->visit(writer);  // the visitor does not modify
    return node(c.attrs->type_name(), writer.fields);
  }

  std::vector<std::string> nodes_, tensors_;
  int64_t device_ = 0;
  std::unordered_map<const TypeNode*, int64_t> types_;
  std::unordered_map<const ExprNode*, int64_t> done_;
  std::vector<Type> kept_;  // keeps objects alive whose addresses are keys
  std::vector<Expr> kept_exprs_;
  std::map<std::string, int64_t> type_names_, globals_, types_by_text_;
  std::map<const OpDef*, int64_t> ops_;
  std::map<std::pair<std::string, int64_t>, int64_t> constructors_;
};

}  // namespace

std::string save_json(const Module& module) {
  Writer writer;
  int64_t root = writer.module(module);
  return writer.document(root);
}

std::string save_constants(const std::vector<Tensor>& constants) {
  Writer writer;
  int64_t root = writer.constants(constants);
  return writer.document(root);
}

}  // namespace tilewright::relay
