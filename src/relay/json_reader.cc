// SPDX-License-Identifier: Apache-2.0
// One reader, together: every kind of node refers to the one table of those read before it.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/checked.h"
#include "base/format.h"
#include "relay/json.h"
#include "relay/json_objects.h"
#include "relay/limits.h"
#include "relay/op.h"

namespace tilewright::relay {
namespace {

using Json = nlohmann::json;
constexpr int kMaxDepth = 64;  // of types, patterns and lists; expressions are read without recursion

Diagnostic wrong(std::string what, int64_t node = -1) {
  return Diagnostic(ErrorCode::kParseError, std::move(what), node < 0 ? "JSON" : format("JSON: node {}", node));
}

// One node of the table; text that is not there reads as empty, references as 0, the null node.
class Nodes {
 public:
  Status load(std::string_view text) {
    document_ = Json::parse(text, nullptr, false);
    if (document_.is_discarded()) return wrong("the text is not valid JSON");
    if (!document_.is_object() || !document_.contains("nodes") || !document_["nodes"].is_array() ||
        document_["nodes"].empty())
      return wrong("this is not a module: there is no list of nodes");
    nodes_ = &document_["nodes"];
    for (size_t i = 0; i < nodes_->size(); ++i)
      if (!(*nodes_)[i].is_object()) return wrong("it is not an object", static_cast<int64_t>(i));
    return Ok{};
  }
  int64_t root() const {
    auto it = document_.find("root");
    return it != document_.end() && it->is_number_unsigned() ? clamp(it->get<uint64_t>()) : 0;
  }
  std::string kind(int64_t id) const { return text_of(at(id), "type_key"); }
  std::string text(int64_t id) const { return text_of(at(id), "repr_str"); }
  std::string attr(int64_t id, const char* name) const {
    auto it = at(id).find("attrs");
    return it != at(id).end() && it->is_object() ? text_of(*it, name) : "";
  }
  bool has_attr(int64_t id, const char* name) const {
    auto it = at(id).find("attrs");
    return it != at(id).end() && it->is_object() && it->contains(name);
  }
  std::vector<std::string> attr_names(int64_t id) const {
    std::vector<std::string> out;
    auto it = at(id).find("attrs");
    if (it != at(id).end() && it->is_object())
      for (auto& [name, value] : it->items()) out.push_back(name);
    return out;
  }
  int64_t reference(int64_t id, const char* name) const {
    auto value = integer(attr(id, name));
    return value ? clamp(static_cast<uint64_t>(*value)) : 0;
  }
  std::vector<int64_t> list(int64_t id) const {
    std::vector<int64_t> out;
    auto it = at(id).find("data");
    if (it != at(id).end() && it->is_array())
      for (const Json& item : *it) out.push_back(item.is_number_unsigned() ? clamp(item.get<uint64_t>()) : 0);
    return out;
  }
  std::vector<std::string> keys(int64_t id) const {
    std::vector<std::string> out;
    auto it = at(id).find("keys");
    if (it != at(id).end() && it->is_array())
      for (const Json& item : *it) out.push_back(item.is_string() ? item.get<std::string>() : "");
    return out;
  }
  const Json* tensors() const {
    auto it = document_.find("b64ndarrays");
    return it != document_.end() && it->is_array() ? &*it : nullptr;
  }
  static std::optional<int64_t> integer(const std::string& s) {
    int64_t out = 0;
    auto [end, failure] = std::from_chars(s.data(), s.data() + s.size(), out);
    return failure == std::errc() && end == s.data() + s.size() ? std::optional(out) : std::nullopt;
  }
  static std::optional<double> real(const std::string& s) {
    double out = 0;
    auto [end, failure] = std::from_chars(s.data(), s.data() + s.size(), out);
    return failure == std::errc() && end == s.data() + s.size() ? std::optional(out) : std::nullopt;
  }

 private:
  const Json& at(int64_t id) const { return (*nodes_)[static_cast<size_t>(id)]; }
  int64_t clamp(uint64_t id) const { return id < nodes_->size() ? static_cast<int64_t>(id) : 0; }
  static std::string text_of(const Json& object, const char* name) {
    auto it = object.find(name);
    return it != object.end() && it->is_string() ? it->get<std::string>() : "";
  }
  Json document_;
  const Json* nodes_ = nullptr;
};

// Fields of an attribute struct from a node. Numbers and dtypes stand in place, everything else is a reference.
class FieldReader : public AttrVisitor {
 public:
  FieldReader(const Nodes& nodes, int64_t id) : nodes_(nodes), id_(id) {}
  std::string problem;
  std::vector<std::string> known;
  void visit(const char* name, bool* v) override {
    if (auto n = number(name)) *v = *n != 0;
  }
  void visit(const char* name, int64_t* v) override {
    if (auto n = number(name)) *v = *n;
  }
  void visit(const char* name, double* v) override {
    if (!has(name)) return;
    if (auto x = Nodes::real(nodes_.attr(id_, name)))
      *v = *x;
    else
      problem = name;
  }
  void visit(const char* name, std::string* v) override {
    if (!has(name)) return;
    std::string_view n = name;
    bool dtype = n.size() >= 5 && n.substr(n.size() - 5) == "dtype";
    int64_t reference = nodes_.reference(id_, name);
    if (dtype)
      *v = nodes_.attr(id_, name);
    else if (nodes_.kind(reference) == "runtime.String")
      *v = nodes_.text(reference);
    else if (reference)
      problem = name;
  }
  void visit(const char* name, DataType* v) override {
    if (!has(name)) return;
    auto parsed = parse_dtype(nodes_.attr(id_, name));
    if (parsed.ok())
      *v = *parsed;
    else if (!nodes_.attr(id_, name).empty())
      problem = name;
  }
  void visit(const char* name, std::optional<int64_t>* v) override {
    if (int64_t id = reference(name)) {
      int64_t value = 0;
      if (item(id, &value))
        *v = value;
      else
        problem = name;
    }
  }
  void visit(const char* name, std::vector<int64_t>* v) override { list(name, v); }
  void visit(const char* name, std::optional<std::vector<int64_t>>* v) override {
    if (!reference(name)) return;
    v->emplace();
    list(name, &**v);
  }
  void visit(const char* name, std::vector<double>* v) override { list(name, v); }
  void visit(const char* name, std::vector<std::string>* v) override { list(name, v); }
  void visit(const char* name, std::vector<std::vector<int64_t>>* v) override { list(name, v); }

 private:
  bool has(const char* name) {
    known.emplace_back(name);
    return nodes_.has_attr(id_, name);
  }
  int64_t reference(const char* name) { return has(name) ? nodes_.reference(id_, name) : 0; }
  std::optional<int64_t> number(const char* name) {
    if (!has(name)) return std::nullopt;
    auto value = Nodes::integer(nodes_.attr(id_, name));
    if (!value) problem = name;
    return value;
  }
  bool item(int64_t id, int64_t* out) {
    auto value = Nodes::integer(nodes_.attr(id, "value"));
    if (nodes_.kind(id) != "IntImm" || !value) return false;
    *out = *value;
    return true;
  }
  bool item(int64_t id, double* out) {
    auto value = Nodes::real(nodes_.attr(id, "value"));
    if ((nodes_.kind(id) != "FloatImm" && nodes_.kind(id) != "IntImm") || !value) return false;
    *out = *value;
    return true;
  }
  bool item(int64_t id, std::string* out) {
    *out = nodes_.text(id);
    return nodes_.kind(id) == "runtime.String";
  }
  template <class T>
  bool item(int64_t id, std::vector<T>* out) {
    if (nodes_.kind(id) != "Array") return false;
    out->clear();
    for (int64_t part : nodes_.list(id)) {
      T value{};
      if (!item(part, &value)) return false;
      out->push_back(std::move(value));
    }
    return true;
  }
  template <class T>
  void list(const char* name, std::vector<T>* v) {
    int64_t id = reference(name);
    if (!id) return;
    // One number where a list is meant: split's indices_or_sections says how many parts.
    int64_t single = 0;
    if (std::is_same_v<T, int64_t> && item(id, &single)) {
      sections = single;
      return;
    }
    if (!item(id, v)) problem = name;
  }

 public:
  std::optional<int64_t> sections;

 private:
  const Nodes& nodes_;
  int64_t id_;
};

class Reader {
 public:
  explicit Reader(Nodes nodes) : nodes_(std::move(nodes)) {}

  Result<Module> module() {
    int64_t root = nodes_.root();
    std::string kind = nodes_.kind(root);
    Module out;
    if (kind == "relay.Function") {
      out.functions["main"] = TW_TRY(expression(root));
      return out;
    }
    if (kind != "IRModule") return wrong(format("the root is '{}', not a module or a function", kind), root);
    std::vector<int64_t> types = nodes_.list(nodes_.reference(root, "type_definitions"));
    for (size_t i = 0; i + 1 < types.size(); i += 2) TW_TRY_STATUS(definition(types[i + 1], &out));
    // Types of the globals first: functions may call each other in any order.
    std::vector<int64_t> functions = nodes_.list(nodes_.reference(root, "functions"));
    for (size_t i = 0; i + 1 < functions.size(); i += 2) {
      std::string name = name_of(functions[i]);
      if (nodes_.kind(functions[i]) != "GlobalVar" || name.empty())
        return wrong("a function has no name", functions[i]);
      if (nodes_.kind(functions[i + 1]) != "relay.Function")
        return wrong(format("@{} is not a function of the graph level", name), functions[i + 1]);
      globals_[name] = make_global_var(name, TW_TRY(signature(functions[i + 1])));
    }
    for (size_t i = 0; i + 1 < functions.size(); i += 2)
      if (!out.functions.emplace(name_of(functions[i]), TW_TRY(expression(functions[i + 1]))).second)
        return wrong(format("@{} is defined twice", name_of(functions[i])), functions[i]);
    return out;
  }

  Result<std::vector<Tensor>> constants() {
    std::vector<Tensor> out;
    int64_t root = nodes_.root();
    std::vector<std::string> keys = nodes_.keys(root);
    std::vector<int64_t> lists = nodes_.list(root);
    for (size_t i = 0; i < std::min(keys.size(), lists.size()); ++i)
      if (keys[i] == "relay.Constant")
        for (int64_t id : nodes_.list(lists[i])) {
          Expr e = TW_TRY(leaf(id, nodes_.kind(id)));
          if (!as<ConstantNode>(e)) return wrong("it is not a constant", id);
          out.push_back(as<ConstantNode>(e)->data);
        }
    return out;
  }

  // Entry `index` of the list `kind` at the root as attributes of `op`.
  Result<AttrsRef> listed_attributes(const OpDef& op, const std::string& kind, int64_t index) {
    const int64_t root = nodes_.root();
    const std::vector<std::string> keys = nodes_.keys(root);
    const std::vector<int64_t> lists = nodes_.list(root);
    for (size_t i = 0; i < std::min(keys.size(), lists.size()); ++i) {
      if (keys[i] != kind) continue;
      const std::vector<int64_t> ids = nodes_.list(lists[i]);
      if (index < 0 || index >= static_cast<int64_t>(ids.size())) break;
      const int64_t id = ids[static_cast<size_t>(index)];
      const AttrsRef made = op.make_attrs ? op.make_attrs() : AttrsRef();
      if (!made || nodes_.kind(id) != kind || kind != made->type_name())
        return wrong(format("{} does not take {}", op.name, kind.substr(0, 64)), id);
      return attributes(op, id);
    }
    return wrong(format("the metadata has no {} number {}", kind.substr(0, 64), index));
  }

 private:
  std::string name_of(int64_t id) const { return nodes_.text(nodes_.reference(id, "name_hint")); }

  // --- types
  Result<std::vector<Type>> types(int64_t list, int depth) {
    std::vector<Type> out;
    for (int64_t id : nodes_.list(list)) out.push_back(TW_TRY(type(id, depth + 1)));
    return out;
  }
  Result<Type> type(int64_t id, int depth = 0) {
    if (depth > kMaxDepth) return wrong("a type nests too deeply", id);
    if (auto it = types_.find(id); it != types_.end()) return it->second;
    Type out = TW_TRY(new_type(id, depth));
    if (std::string bad = limits_.problem(out); !bad.empty()) return wrong(bad, id);
    return types_[id] = out;
  }
  Result<Type> new_type(int64_t id, int depth) {
    std::string kind = nodes_.kind(id);
    if (kind.empty() || kind == "IncompleteType") return incomplete_type();
    if (kind == "relay.TensorType") {
      Shape shape;
      for (int64_t d : nodes_.list(nodes_.reference(id, "shape"))) shape.push_back(TW_TRY(dim(d)));
      auto dtype = parse_dtype(nodes_.attr(id, "dtype"));
      if (!dtype.ok()) return wrong(format("'{}' is not an element type", nodes_.attr(id, "dtype").substr(0, 64)), id);
      std::vector<int64_t> known;
      for (const Dim& d : shape)
        if (d.is_const()) known.push_back(d.value());
      if (shape.size() > 64 || !checked_element_count(known).ok()) return wrong("a shape is impossible", id);
      return tensor_type(std::move(shape), *dtype);
    }
    if (kind == "TupleType") return tuple_type(TW_TRY(types(nodes_.reference(id, "fields"), depth)));
    if (kind == "FuncType") {
      std::vector<Type> variables = TW_TRY(types(nodes_.reference(id, "type_params"), depth));
      for (const Type& v : variables)
        if (!as_variable(v)) return wrong("a type parameter is not a type variable", id);
      std::vector<Type> args = TW_TRY(types(nodes_.reference(id, "arg_types"), depth));
      return func_type(std::move(args), TW_TRY(type(nodes_.reference(id, "ret_type"), depth + 1)),
                       std::move(variables));
    }
    if (kind == "relay.RefType") return reference_type(TW_TRY(type(nodes_.reference(id, "value"), depth + 1)));
    if (kind == "TypeVar") return variable_type(name_of(id));
    if (kind == "GlobalTypeVar") return data_type(name_of(id));
    if (kind == "TypeCall")
      return data_type(name_of(nodes_.reference(id, "func")), TW_TRY(types(nodes_.reference(id, "args"), depth)));
    return wrong(format("'{}' is not a type", kind.substr(0, 64)), id);
  }
  Result<Dim> dim(int64_t id) {
    std::string kind = nodes_.kind(id);
    if (kind == "IntImm")
      if (auto value = Nodes::integer(nodes_.attr(id, "value"))) return Dim(*value);
    if (kind == "tir.Any" || kind == "Any") return Dim::any();
    if (kind == "tir.Var" || kind == "tir.SizeVar") return Dim::symbol(nodes_.text(nodes_.reference(id, "name")));
    return wrong(format("'{}' is not a dimension", kind.substr(0, 64)), id);
  }
  // A function's type by its parameters' annotations.
  Result<Type> signature(int64_t id) {
    std::vector<Type> args;
    for (int64_t param : nodes_.list(nodes_.reference(id, "params"))) args.push_back(TW_TRY(variable_of(param))->type);
    std::vector<Type> variables = TW_TRY(types(nodes_.reference(id, "type_params"), 0));
    return func_type(std::move(args), TW_TRY(type(nodes_.reference(id, "ret_type"))), std::move(variables));
  }
  Status definition(int64_t id, Module* out) {
    std::string name = name_of(nodes_.reference(id, "header"));
    if (nodes_.kind(id) != "relay.TypeData" || name.empty()) return wrong("it does not define a type", id);
    TypeDefinition made;
    made.variables = TW_TRY(types(nodes_.reference(id, "type_vars"), 0));
    for (const Type& v : made.variables)
      if (!as_variable(v)) return wrong("a type parameter is not a type variable", id);
    Type data = data_type(name, made.variables);
    for (int64_t c : nodes_.list(nodes_.reference(id, "constructors"))) {
      if (nodes_.kind(c) != "relay.Constructor") return wrong("it is not a constructor", c);
      Expr e = make_constructor(name_of(c), TW_TRY(types(nodes_.reference(c, "inputs"), 0)), data,
                                static_cast<int64_t>(made.constructors.size()));
      made.constructors.push_back(e);
      done_[c] = e;
    }
    if (!out->types.emplace(name, std::move(made)).second)
      return wrong(format("the type {} is defined twice", name), id);
    return Ok{};
  }

  // --- expressions
  std::vector<int64_t> operands(int64_t id, const std::string& kind) {
    auto get = [&](const char* name) { return nodes_.reference(id, name); };
    std::vector<int64_t> out;
    auto all = [&](int64_t list) {
      for (int64_t item : nodes_.list(list)) out.push_back(item);
    };
    if (kind == "relay.Call") {
      out = {get("op")};
      all(get("args"));
    } else if (kind == "relay.Function") {
      all(get("params"));
      out.push_back(get("body"));
    } else if (kind == "relay.Tuple") {
      all(get("fields"));
    } else if (kind == "relay.TupleGetItem") {
      out = {get("tuple_value")};
    } else if (kind == "relay.Let") {
      out = {get("var"), get("value"), get("body")};
    } else if (kind == "relay.If") {
      out = {get("cond"), get("true_branch"), get("false_branch")};
    } else if (kind == "relay.Match") {
      out = {get("data")};
      for (int64_t clause : nodes_.list(get("clauses"))) out.push_back(nodes_.reference(clause, "rhs"));
    } else if (kind == "relay.RefCreate") {
      out = {get("value")};
    } else if (kind == "relay.RefRead") {
      out = {get("ref")};
    } else if (kind == "relay.RefWrite") {
      out = {get("ref"), get("value")};
    }
    return out;
  }

  Result<Expr> expression(int64_t root) {
    struct Frame {
      int64_t id;
      std::string kind;
      std::vector<int64_t> operands;
      size_t next = 0;
    };
    std::vector<Frame> stack;
    auto push = [&](int64_t id) -> Status {
      if (done_.count(id)) return Ok{};
      if (!open_.insert(id).second) return wrong("it is its own operand", id);
      std::string kind = nodes_.kind(id);
      stack.push_back({id, kind, operands(id, kind)});
      return Ok{};
    };
    TW_TRY_STATUS(push(root));
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next < top.operands.size()) {
        int64_t operand = top.operands[top.next++];
        TW_TRY_STATUS(push(operand));
        continue;
      }
      Frame frame = std::move(top);
      stack.pop_back();
      open_.erase(frame.id);
      std::vector<Expr> kids;
      for (int64_t operand : frame.operands) kids.push_back(done_.at(operand));
      Result<Expr> made = build(frame.id, frame.kind, kids);
      if (!made.ok()) {
        Diagnostic error = made.error();
        if (error.where.rfind("JSON", 0) != 0)
          error = wrong((error.where.empty() ? "" : error.where + ": ") + error.message, frame.id);
        return error;
      }
      if (std::string bad = limits_.problem(*made); !bad.empty()) return wrong(bad, frame.id);
      done_[frame.id] = *made;
    }
    return done_.at(root);
  }

  Result<Expr> variable_of(int64_t id) {
    if (auto it = done_.find(id); it != done_.end() && as<VarNode>(it->second)) return it->second;
    if (nodes_.kind(id) != "relay.Var") return wrong("it is not a variable", id);
    Type t = TW_TRY(type(nodes_.reference(id, "type_annotation")));
    if (t->kind == TypeKind::kIncomplete) t = TW_TRY(type(nodes_.reference(id, "_checked_type_")));
    return done_[id] = make_var(name_of(nodes_.reference(id, "vid")), t);
  }

  Result<Expr> leaf(int64_t id, const std::string& kind) {
    if (kind == "relay.Var") return variable_of(id);
    if (kind == "GlobalVar") {
      auto it = globals_.find(name_of(id));
      if (it == globals_.end()) return wrong(format("@{} is not defined", name_of(id)), id);
      return it->second;
    }
    if (kind == "relay.Constant") {
      auto index = Nodes::integer(nodes_.attr(id, "data"));
      const Json* tensors = nodes_.tensors();
      if (!index || *index < 0 || !tensors || *index >= static_cast<int64_t>(tensors->size()) ||
          !(*tensors)[static_cast<size_t>(*index)].is_string())
        return wrong("its tensor is missing", id);
      return make_constant(TW_TRY(decode_tensor((*tensors)[static_cast<size_t>(*index)].get<std::string>())));
    }
    if (kind == "relay.Constructor") return wrong("its type is not defined", id);
    return wrong(kind.empty() ? "an expression is missing"
                              : format("'{}' is not an expression that is known here", kind.substr(0, 64)),
                 id);
  }

  Result<Expr> build(int64_t id, const std::string& kind, const std::vector<Expr>& kids) {
    for (const Expr& kid : kids)
      if (kid->kind == ExprKind::kOp && !(kind == "relay.Call" && kid == kids[0]))
        return wrong("an operator is used as a value", id);
    if (kind == "Op") {
      const OpDef* op = find_op(nodes_.text(id));
      if (!op)
        return Diagnostic(ErrorCode::kUnknownOp, format("no operator is called {}", nodes_.text(id).substr(0, 128)),
                          format("JSON: node {}", id));
      return Expr(make_node<OpNode>(op));
    }
    if (kind == "relay.Call") return call_of(id, kids);
    if (kind == "relay.Function") return function_of(id, kids);
    if (kind == "relay.Tuple") return make_tuple(kids);
    if (kind == "relay.TupleGetItem") {
      auto index = Nodes::integer(nodes_.attr(id, "index"));
      const auto* tuple = as_tuple(kids[0]->type);
      bool known = kids[0]->type->kind != TypeKind::kIncomplete;
      if (!index || *index < 0 || (known && (!tuple || *index >= static_cast<int64_t>(tuple->fields.size()))))
        return wrong(format("there is no such field in {}", type_str(kids[0]->type)), id);
      return make_get(kids[0], *index);
    }
    if (kind == "relay.Let") {
      if (!as<VarNode>(kids[0])) return wrong("it binds something that is not a variable", id);
      return Expr(make_node<LetNode>(kids[0], kids[1], kids[2]));
    }
    if (kind == "relay.If") return Expr(make_node<IfNode>(kids[0], kids[1], kids[2]));
    if (kind == "relay.Match") {
      std::vector<Clause> clauses;
      std::vector<int64_t> ids = nodes_.list(nodes_.reference(id, "clauses"));
      for (size_t i = 0; i < ids.size(); ++i)
        clauses.push_back({TW_TRY(pattern(nodes_.reference(ids[i], "lhs"), 0)), kids[i + 1]});
      if (clauses.empty()) return wrong("a match has no clauses", id);
      return make_match(kids[0], std::move(clauses), nodes_.attr(id, "complete") != "0");
    }
    if (kind == "relay.RefCreate") return Expr(make_node<RefCreateNode>(kids[0]));
    if (kind == "relay.RefRead") return Expr(make_node<RefReadNode>(kids[0]));
    if (kind == "relay.RefWrite") return Expr(make_node<RefWriteNode>(kids[0], kids[1]));
    return leaf(id, kind);
  }

  Result<Pattern> pattern(int64_t id, int depth) {
    if (depth > kMaxDepth) return wrong("a pattern nests too deeply", id);
    std::string kind = nodes_.kind(id);
    if (kind == "relay.PatternWildcard") return make_pattern(PatternKind::kWildcard);
    if (kind == "relay.PatternVar")
      return make_pattern(PatternKind::kVar, TW_TRY(variable_of(nodes_.reference(id, "var"))));
    std::vector<Pattern> fields;
    for (int64_t field : nodes_.list(nodes_.reference(id, "patterns")))
      fields.push_back(TW_TRY(pattern(field, depth + 1)));
    if (kind == "relay.PatternTuple") return make_pattern(PatternKind::kTuple, {}, std::move(fields));
    auto it = done_.find(nodes_.reference(id, "constructor"));
    if (kind != "relay.PatternConstructor" || it == done_.end() || !as<ConstructorNode>(it->second))
      return wrong("it is not a pattern", id);
    if (fields.size() != as_func(it->second->type)->args.size())
      return wrong("a pattern has another number of fields than its constructor", id);
    return make_pattern(PatternKind::kConstructor, it->second, std::move(fields));
  }

  Result<Expr> call_of(int64_t id, const std::vector<Expr>& kids) {
    std::vector<Expr> args(kids.begin() + 1, kids.end());
    if (const auto* op = as<OpNode>(kids[0]))
      return try_call(op->def->name, std::move(args), TW_TRY(attributes(*op->def, nodes_.reference(id, "attrs"))));
    const auto* f = as_func(kids[0]->type);
    if (!f && kids[0]->type->kind != TypeKind::kIncomplete)
      return wrong(format("a value of type {} is called", type_str(kids[0]->type)), id);
    if (f && f->args.size() != args.size())
      return wrong(format("a function of {} parameters is given {}", f->args.size(), args.size()), id);
    return call_function(kids[0], std::move(args));
  }

  Result<AttrsRef> attributes(const OpDef& op, int64_t id) {
    AttrsRef out = op.make_attrs ? op.make_attrs() : AttrsRef();
    if (!id || !out) return out;
    FieldReader reader(nodes_, id);
    auto* fresh = const_cast<AttrsNode*>(out.get());  // nobody else holds it yet
    fresh->visit(reader);
    if (!reader.problem.empty())
      return wrong(format("the attribute {} of {} has a value of the wrong kind", reader.problem, op.name), id);
    if (reader.sections && std::string_view(op.name) == "split") {
      struct Sections : FieldReader {
        using FieldReader::FieldReader;
        void visit(const char* name, int64_t* v) override {
          if (std::string_view(name) == "sections") *v = *sections;
        }
      } set(nodes_, id);
      set.sections = reader.sections;
      fresh->visit(set);
    }
    // Fields of the classic structs that mean nothing here.
    static constexpr std::string_view kIgnored[] = {"auto_scheduler_rewritten_layout", "meta_schedule_original_shape"};
    for (const std::string& name : nodes_.attr_names(id)) {
      bool known = std::find(reader.known.begin(), reader.known.end(), name) != reader.known.end() ||
                   std::find(std::begin(kIgnored), std::end(kIgnored), name) != std::end(kIgnored);
      std::string value = nodes_.attr(id, name.c_str());
      if (!known && value != "0" && !value.empty())
        return wrong(format("{} has no attribute '{}'", op.name, name.substr(0, 64)), id);
    }
    return out;
  }

  Result<Expr> function_of(int64_t id, const std::vector<Expr>& kids) {
    std::vector<Expr> params(kids.begin(), kids.end() - 1);
    for (const Expr& param : params)
      if (!as<VarNode>(param)) return wrong("a parameter is not a variable", id);
    DictAttrs attrs;
    int64_t dict = nodes_.reference(nodes_.reference(id, "attrs"), "__dict__");
    std::vector<std::string> keys = nodes_.keys(dict);
    std::vector<int64_t> values = nodes_.list(dict);
    for (size_t i = 0; i < std::min(keys.size(), values.size()); ++i)
      if (auto value = attribute(values[i])) attrs[keys[i]] = *value;
    std::vector<Type> variables = TW_TRY(types(nodes_.reference(id, "type_params"), 0));
    for (const Type& v : variables)
      if (!as_variable(v)) return wrong("a type parameter is not a type variable", id);
    Type declared = TW_TRY(type(nodes_.reference(id, "ret_type")));
    return Expr(make_node<FunctionNode>(std::move(params), kids.back(), std::move(attrs), Span(), std::move(variables),
                                        declared));
  }
  // A function's attribute; what has no kind here (a target, a device) is left out, as in texts.
  std::optional<AttrValue> attribute(int64_t id) const {
    std::string kind = nodes_.kind(id);
    if (kind == "runtime.String") return AttrValue(nodes_.text(id));
    if (kind == "IntImm")
      if (auto value = Nodes::integer(nodes_.attr(id, "value"))) return AttrValue(*value);
    if (kind == "FloatImm")
      if (auto value = Nodes::real(nodes_.attr(id, "value"))) return AttrValue(*value);
    if (kind != "Array") return std::nullopt;
    std::vector<int64_t> integers;
    std::vector<std::string> strings;
    for (int64_t item : nodes_.list(id)) {
      auto value = Nodes::integer(nodes_.attr(item, "value"));
      if (nodes_.kind(item) == "IntImm" && value)
        integers.push_back(*value);
      else if (nodes_.kind(item) == "runtime.String")
        strings.push_back(nodes_.text(item));
      else
        return std::nullopt;
    }
    if (!strings.empty()) return integers.empty() ? std::optional<AttrValue>(strings) : std::nullopt;
    return AttrValue(integers);
  }

  Nodes nodes_;
  Limits limits_;
  std::unordered_map<int64_t, Type> types_;
  std::unordered_map<int64_t, Expr> done_;
  std::set<int64_t> open_;
  std::map<std::string, Expr> globals_;
};

}  // namespace

Result<Module> load_json(std::string_view text) {
  Nodes nodes;
  TW_TRY_STATUS(nodes.load(text));
  return Reader(std::move(nodes)).module();
}

struct TextMetadata::Content {
  Reader reader;
};

Result<TextMetadata> TextMetadata::load(std::string_view text) {
  Nodes nodes;
  TW_TRY_STATUS(nodes.load(text));
  TextMetadata out;
  out.content_ = std::make_shared<Content>(Content{Reader(std::move(nodes))});
  out.constants_ = TW_TRY(out.content_->reader.constants());
  return out;
}

Result<AttrsRef> TextMetadata::attributes(const OpDef& op, const std::string& kind, int64_t index) const {
  return content_->reader.listed_attributes(op, kind, index);
}

}  // namespace tilewright::relay
