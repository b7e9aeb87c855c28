// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "base/checked.h"
#include "base/format.h"
#include "ir/attr_literal.h"
#include "relay/classic/json.h"
#include "relay/classic/json_nodes.h"
#include "relay/classic/json_tensors.h"
#include "relay/limits.h"
#include "relay/op.h"
#include "relay/script_ops.h"
#include "relay/virtual_device.h"

namespace tilewright::relay {
namespace {

constexpr int kMaxDepth = 64;  // nesting of types, patterns and lists; expressions are read without recursion

class JsonReader {
 public:
  explicit JsonReader(JsonNodes nodes) : nodes_(std::move(nodes)) {}

  Result<Module> module() {
    int64_t root = nodes_.root();
    std::string kind = nodes_.kind(root);
    Module out;
    if (kind == "relay.Function") {
      alone_ = true;
      out.functions["main"] = TW_TRY(expression(root));
      return out;
    }
    if (kind != "IRModule" && kind != "relay.Module")
      return json_error(format("the root is '{}', not a module or a function", kind), root);
    std::vector<int64_t> types = nodes_.list(nodes_.reference(root, "type_definitions"));
    for (size_t i = 0; i + 1 < types.size(); i += 2) TW_TRY_STATUS(definition(types[i + 1], &out));
    // Declares the types of all globals first, since functions may call each other in any order.
    std::vector<int64_t> functions = nodes_.list(nodes_.reference(root, "functions"));
    alone_ = types.empty() && functions.size() == 2;
    for (size_t i = 0; i + 1 < functions.size(); i += 2) {
      std::string name = name_of(functions[i]);
      if (nodes_.kind(functions[i]) != "GlobalVar" || name.empty())
        return json_error("a function has no name", functions[i]);
      if (nodes_.kind(functions[i + 1]) != "relay.Function")
        return json_error(format("@{} is not a function of the graph level", name), functions[i + 1]);
      globals_[name] = make_global_var(name, TW_TRY(signature(functions[i + 1])));
    }
    for (size_t i = 0; i + 1 < functions.size(); i += 2)
      if (!out.functions.emplace(name_of(functions[i]), TW_TRY(expression(functions[i + 1]))).second)
        return json_error(format("@{} is defined twice", name_of(functions[i])), functions[i]);
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
          if (!as<ConstantNode>(e)) return json_error("it is not a constant", id);
          out.push_back(as<ConstantNode>(e)->data);
        }
    return out;
  }

  // Entry `index` of the list `kind` at the root as attributes of `op`.
  Result<AttrsRef> listed_attributes(const OpDef& op, const std::string& kind, int64_t index) {
    const int64_t id = TW_TRY(listed(kind, index));
    const AttrsRef made = op.make_attrs ? op.make_attrs() : AttrsRef();
    if (!made || nodes_.kind(id) != kind || kind != made->type_name())
      return json_error(format("{} does not take {}", op.name, kind.substr(0, 64)), id);
    return read_attributes(nodes_, op, id);
  }
  // Targets are dropped: this compiler chooses what a function is compiled for.
  Result<std::string> listed_device(int64_t index) {
    const int64_t id = TW_TRY(listed("VirtualDevice", index));
    VirtualDevice out;
    const auto type = JsonNodes::integer(nodes_.attr(id, "device_type_int"));
    const auto number = JsonNodes::integer(nodes_.attr(id, "virtual_device_id"));
    if (!type || !number) return json_error("a virtual device has no numbers", id);
    if (*type > 0) {
      out.type = *type;
      out.id = *number;
    }
    out.memory_scope = nodes_.text(nodes_.reference(id, "memory_scope"));
    return out.text();
  }

 private:
  // The node of meta[kind][index].
  Result<int64_t> listed(const std::string& kind, int64_t index) const {
    const int64_t root = nodes_.root();
    const std::vector<std::string> keys = nodes_.keys(root);
    const std::vector<int64_t> lists = nodes_.list(root);
    for (size_t i = 0; i < std::min(keys.size(), lists.size()); ++i) {
      if (keys[i] != kind) continue;
      const std::vector<int64_t> ids = nodes_.list(lists[i]);
      if (index < 0 || index >= static_cast<int64_t>(ids.size())) break;
      return ids[static_cast<size_t>(index)];
    }
    return json_error(format("the metadata has no {} number {}", kind.substr(0, 64), index));
  }
  // Version 0.6 stored names in the node.
  std::string name_of(int64_t id) const {
    std::string in_place = nodes_.attr(id, "name_hint");
    return JsonNodes::integer(in_place) ? nodes_.text(nodes_.reference(id, "name_hint")) : in_place;
  }

  // --- types
  Result<std::vector<Type>> types(int64_t list, int depth) {
    std::vector<Type> out;
    for (int64_t id : nodes_.list(list)) out.push_back(TW_TRY(type(id, depth + 1)));
    return out;
  }
  Result<Type> type(int64_t id, int depth = 0) {
    if (depth > kMaxDepth) return json_error("a type nests too deeply", id);
    if (auto it = types_.find(id); it != types_.end()) return it->second;
    Type out = TW_TRY(new_type(id, depth));
    if (std::string bad = limits_.problem(out); !bad.empty()) return json_error(bad, id);
    return types_[id] = out;
  }
  Result<Type> new_type(int64_t id, int depth) {
    std::string kind = nodes_.kind(id);
    if (kind.empty() || kind == "IncompleteType") return incomplete_type();
    if (kind == "relay.TensorType") {
      Shape shape;
      for (int64_t d : nodes_.list(nodes_.reference(id, "shape"))) shape.push_back(TW_TRY(dim(d)));
      auto dtype = parse_dtype(nodes_.attr(id, "dtype"));
      if (!dtype.ok())
        return json_error(format("'{}' is not an element type", nodes_.attr(id, "dtype").substr(0, 64)), id);
      std::vector<int64_t> known;
      for (const Dim& d : shape)
        if (d.is_const()) known.push_back(d.value());
      if (shape.size() > 64 || !checked_element_count(known).ok()) return json_error("a shape is impossible", id);
      return tensor_type(std::move(shape), *dtype);
    }
    if (kind == "TupleType") return tuple_type(TW_TRY(types(nodes_.reference(id, "fields"), depth)));
    if (kind == "FuncType") {
      std::vector<Type> variables = TW_TRY(types(nodes_.reference(id, "type_params"), depth));
      for (const Type& v : variables)
        if (!as_variable(v)) return json_error("a type parameter is not a type variable", id);
      std::vector<Type> args = TW_TRY(types(nodes_.reference(id, "arg_types"), depth));
      return func_type(std::move(args), TW_TRY(type(nodes_.reference(id, "ret_type"), depth + 1)),
                       std::move(variables));
    }
    if (kind == "relay.RefType") return reference_type(TW_TRY(type(nodes_.reference(id, "value"), depth + 1)));
    if (kind == "TypeVar") return variable_type(name_of(id));
    if (kind == "GlobalTypeVar") return data_type(name_of(id));
    if (kind == "TypeCall")
      return data_type(name_of(nodes_.reference(id, "func")), TW_TRY(types(nodes_.reference(id, "args"), depth)));
    return json_error(format("'{}' is not a type", kind.substr(0, 64)), id);
  }
  Result<Dim> dim(int64_t id) {
    std::string kind = nodes_.kind(id);
    if (kind == "IntImm")
      if (auto value = JsonNodes::integer(nodes_.attr(id, "value"))) return Dim(*value);
    if (kind == "tir.Any" || kind == "Any") return Dim::any();
    if (kind == "tir.Var" || kind == "tir.SizeVar") return Dim::symbol(nodes_.text(nodes_.reference(id, "name")));
    return json_error(format("'{}' is not a dimension", kind.substr(0, 64)), id);
  }
  // A function's type, from the annotations of its parameters.
  Result<Type> signature(int64_t id) {
    std::vector<Type> args;
    for (int64_t param : nodes_.list(nodes_.reference(id, "params"))) args.push_back(TW_TRY(variable_of(param))->type);
    std::vector<Type> variables = TW_TRY(types(nodes_.reference(id, "type_params"), 0));
    return func_type(std::move(args), TW_TRY(type(nodes_.reference(id, "ret_type"))), std::move(variables));
  }
  Status definition(int64_t id, Module* out) {
    std::string name = name_of(nodes_.reference(id, "header"));
    if (nodes_.kind(id) != "relay.TypeData" || name.empty()) return json_error("it does not define a type", id);
    TypeDefinition made;
    made.variables = TW_TRY(types(nodes_.reference(id, "type_vars"), 0));
    for (const Type& v : made.variables)
      if (!as_variable(v)) return json_error("a type parameter is not a type variable", id);
    Type data = data_type(name, made.variables);
    for (int64_t c : nodes_.list(nodes_.reference(id, "constructors"))) {
      if (nodes_.kind(c) != "relay.Constructor") return json_error("it is not a constructor", c);
      Expr e = make_constructor(name_of(c), TW_TRY(types(nodes_.reference(c, "inputs"), 0)), data,
                                static_cast<int64_t>(made.constructors.size()));
      made.constructors.push_back(e);
      done_[c] = e;
    }
    if (!out->types.emplace(name, std::move(made)).second)
      return json_error(format("the type {} is defined twice", name), id);
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
      if (!open_.insert(id).second) return json_error("it is its own operand", id);
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
          error = json_error((error.where.empty() ? "" : error.where + ": ") + error.message, frame.id);
        return error;
      }
      if (std::string bad = limits_.problem(*made); !bad.empty()) return json_error(bad, frame.id);
      done_[frame.id] = *made;
    }
    return done_.at(root);
  }

  Result<Expr> variable_of(int64_t id) {
    if (auto it = done_.find(id); it != done_.end() && as<VarNode>(it->second)) return it->second;
    if (nodes_.kind(id) != "relay.Var") return json_error("it is not a variable", id);
    Type t = TW_TRY(type(nodes_.reference(id, "type_annotation")));
    if (t->kind == TypeKind::kIncomplete) t = TW_TRY(type(nodes_.reference(id, "_checked_type_")));
    return done_[id] = make_var(name_of(nodes_.reference(id, "vid")), t);
  }

  Result<Expr> leaf(int64_t id, const std::string& kind) {
    if (kind == "relay.Var") return variable_of(id);
    if (kind == "GlobalVar") {
      auto it = globals_.find(name_of(id));
      if (it != globals_.end()) return it->second;
      if (alone_) return make_global_var(name_of(id), incomplete_type());
      return json_error(format("@{} is not defined", name_of(id)), id);
    }
    if (kind == "relay.Constant") {
      auto index = JsonNodes::integer(nodes_.attr(id, "data"));
      const nlohmann::json* tensors = nodes_.tensors();
      if (!index || *index < 0 || !tensors || *index >= static_cast<int64_t>(tensors->size()) ||
          !(*tensors)[static_cast<size_t>(*index)].is_string())
        return json_error("its tensor is missing", id);
      return make_constant(TW_TRY(decode_tensor((*tensors)[static_cast<size_t>(*index)].get<std::string>())));
    }
    if (kind == "relay.Constructor" && alone_) return free_constructor(id);
    if (kind == "relay.Constructor") return json_error("its type is not defined", id);
    return json_error(kind.empty() ? "an expression is missing"
                                   : format("'{}' is not an expression that is known here", kind.substr(0, 64)),
                      id);
  }

  // A constructor of a type that another module defines: the variables of its fields are those of the type.
  Result<Expr> free_constructor(int64_t id) {
    std::vector<Type> fields = TW_TRY(types(nodes_.reference(id, "inputs"), 0)), variables;
    auto collect = [&](auto&& self, const Type& t) -> void {
      if (as_variable(t) && std::find(variables.begin(), variables.end(), t) == variables.end()) variables.push_back(t);
      for (const Type& part : parts_of(t)) self(self, part);
    };
    for (const Type& field : fields) collect(collect, field);
    return make_constructor(name_of(id), std::move(fields),
                            data_type(name_of(nodes_.reference(id, "belong_to")), std::move(variables)), -1);
  }

  Result<Expr> build(int64_t id, const std::string& kind, const std::vector<Expr>& kids) {
    for (const Expr& kid : kids)
      if (kid->kind == ExprKind::kOp && !(kind == "relay.Call" && kid == kids[0]))
        return json_error("an operator is used as a value", id);
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
      auto index = JsonNodes::integer(nodes_.attr(id, "index"));
      const auto* tuple = as_tuple(kids[0]->type);
      bool known = kids[0]->type->kind != TypeKind::kIncomplete;
      if (!index || *index < 0 || (known && (!tuple || *index >= static_cast<int64_t>(tuple->fields.size()))))
        return json_error(format("there is no such field in {}", type_str(kids[0]->type)), id);
      return make_get(kids[0], *index);
    }
    if (kind == "relay.Let") {
      if (!as<VarNode>(kids[0])) return json_error("it binds something that is not a variable", id);
      return Expr(make_node<LetNode>(kids[0], kids[1], kids[2]));
    }
    if (kind == "relay.If") return Expr(make_node<IfNode>(kids[0], kids[1], kids[2]));
    if (kind == "relay.Match") {
      std::vector<Clause> clauses;
      std::vector<int64_t> ids = nodes_.list(nodes_.reference(id, "clauses"));
      for (size_t i = 0; i < ids.size(); ++i)
        clauses.push_back({TW_TRY(pattern(nodes_.reference(ids[i], "lhs"), 0)), kids[i + 1]});
      if (clauses.empty()) return json_error("a match has no clauses", id);
      return make_match(kids[0], std::move(clauses), nodes_.attr(id, "complete") != "0");
    }
    if (kind == "relay.RefCreate") return Expr(make_node<RefCreateNode>(kids[0]));
    if (kind == "relay.RefRead") return Expr(make_node<RefReadNode>(kids[0]));
    if (kind == "relay.RefWrite") return Expr(make_node<RefWriteNode>(kids[0], kids[1]));
    return leaf(id, kind);
  }

  Result<Pattern> pattern(int64_t id, int depth) {
    if (depth > kMaxDepth) return json_error("a pattern nests too deeply", id);
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
      return json_error("it is not a pattern", id);
    if (fields.size() != as_func(it->second->type)->args.size())
      return json_error("a pattern has another number of fields than its constructor", id);
    return make_pattern(PatternKind::kConstructor, it->second, std::move(fields));
  }

  Result<Expr> call_of(int64_t id, const std::vector<Expr>& kids) {
    std::vector<Expr> args(kids.begin() + 1, kids.end());
    if (const auto* op = as<OpNode>(kids[0]))
      return try_call(op->def->name, std::move(args), TW_TRY(attributes_of(*op->def, nodes_.reference(id, "attrs"))));
    const auto* f = as_func(kids[0]->type);
    if (!f && kids[0]->type->kind != TypeKind::kIncomplete)
      return json_error(format("a value of type {} is called", type_str(kids[0]->type)), id);
    if (f && f->args.size() != args.size())
      return json_error(format("a function of {} parameters is given {}", f->args.size(), args.size()), id);
    return call_function(kids[0], std::move(args));
  }

  Result<AttrsRef> attributes_of(const OpDef& op, int64_t id) const {
    if (!id || !find_script_op(op.name)) return read_attributes(nodes_, op, id);
    const DictAttrs attrs = dictionary(id);
    return AttrsRef(make_node<ScriptAttrs>(std::vector<std::pair<std::string, AttrValue>>(attrs.begin(), attrs.end())));
  }
  DictAttrs dictionary(int64_t id) const {
    DictAttrs attrs;
    const int64_t dict = nodes_.reference(id, "__dict__");
    const std::vector<std::string> keys = nodes_.keys(dict);
    const std::vector<int64_t> values = nodes_.list(dict);
    for (size_t i = 0; i < std::min(keys.size(), values.size()); ++i)
      if (auto value = attribute(values[i])) attrs[keys[i]] = *value;
    return attrs;
  }

  Result<Expr> function_of(int64_t id, const std::vector<Expr>& kids) {
    std::vector<Expr> params(kids.begin(), kids.end() - 1);
    for (const Expr& param : params)
      if (!as<VarNode>(param)) return json_error("a parameter is not a variable", id);
    DictAttrs attrs = dictionary(nodes_.reference(id, "attrs"));
    std::vector<Type> variables = TW_TRY(types(nodes_.reference(id, "type_params"), 0));
    for (const Type& v : variables)
      if (!as_variable(v)) return json_error("a type parameter is not a type variable", id);
    Type declared = TW_TRY(type(nodes_.reference(id, "ret_type")));
    return Expr(make_node<FunctionNode>(std::move(params), kids.back(), std::move(attrs), Span(), std::move(variables),
                                        declared));
  }
  // A function's attribute; kinds that do not exist here (targets, devices) are dropped, as in texts.
  std::optional<AttrValue> attribute(int64_t id) const {
    std::string kind = nodes_.kind(id);
    if (kind == "runtime.String") return AttrValue(nodes_.text(id));
    if (kind == "IntImm")
      if (auto value = JsonNodes::integer(nodes_.attr(id, "value"))) {
        if (nodes_.attr(id, "dtype") == "bool") return AttrValue(*value != 0);
        return AttrValue(*value);
      }
    if (kind == "FloatImm")
      if (auto value = JsonNodes::real(nodes_.attr(id, "value"))) return AttrValue(*value);
    if (kind.empty() || kind == "Map") return literal(id);
    if (kind != "Array") return std::nullopt;
    std::vector<int64_t> integers;
    std::vector<std::string> strings;
    for (int64_t item : nodes_.list(id)) {
      auto value = JsonNodes::integer(nodes_.attr(item, "value"));
      if (nodes_.kind(item) == "IntImm" && value)
        integers.push_back(*value);
      else if (nodes_.kind(item) == "runtime.String")
        strings.push_back(nodes_.text(item));
      else
        return literal(id);
    }
    if (!strings.empty() && !integers.empty()) return literal(id);
    if (strings.empty()) return AttrValue(integers);
    return AttrValue(strings);
  }
  // What no kind of AttrValue holds, as its text (ir/attr_literal.h); nothing if a part has none.
  std::optional<AttrValue> literal(int64_t id) const {
    auto text = literal_text(id, 0);
    return text ? std::optional<AttrValue>(kLiteralAttr + *text) : std::nullopt;
  }
  std::optional<std::string> literal_text(int64_t id, int depth) const {
    const std::string kind = nodes_.kind(id), value = nodes_.attr(id, "value"), dtype = nodes_.attr(id, "dtype");
    if (depth > kMaxDepth) return std::nullopt;
    if (kind.empty()) return "None";
    if (kind == "runtime.String") return quoted(nodes_.text(id));
    if (kind == "IntImm" && dtype == "bool") return value == "0" ? "False" : "True";
    if (kind == "IntImm" && JsonNodes::integer(value)) return value + (dtype == "int64" ? "i64" : "");
    if (kind == "FloatImm" && JsonNodes::real(value)) return value + (dtype == "float64" ? "f64" : "f");
    if (kind != "Array" && kind != "Map") return std::nullopt;
    const std::vector<std::string> keys = nodes_.keys(id);
    const std::vector<int64_t> items = nodes_.list(id);
    if (kind == "Map" && keys.size() != items.size()) return std::nullopt;
    std::string out;
    for (size_t i = 0; i < items.size(); ++i) {
      auto part = literal_text(items[i], depth + 1);
      if (!part) return std::nullopt;
      out += (i ? ", " : "") + (kind == "Map" ? quoted(keys[i]) + "=" : "") + *part;
    }
    return kind == "Map" ? "{" + out + "}" : "[" + out + "]";
  }

  JsonNodes nodes_;
  Limits limits_;
  std::unordered_map<int64_t, Type> types_;
  std::unordered_map<int64_t, Expr> done_;
  std::set<int64_t> open_;
  std::map<std::string, Expr> globals_;
  bool alone_ = false;  // a function without its module: what it names is defined elsewhere
};

}  // namespace

Result<Module> load_json(std::string_view text) {
  JsonNodes nodes;
  TW_TRY_STATUS(nodes.load(text));
  return JsonReader(std::move(nodes)).module();
}

struct TextMetadata::Content {
  JsonReader reader;
};

Result<TextMetadata> TextMetadata::load(std::string_view text) {
  JsonNodes nodes;
  TW_TRY_STATUS(nodes.load(text));
  TextMetadata out;
  out.content_ = std::make_shared<Content>(Content{JsonReader(std::move(nodes))});
  out.constants_ = TW_TRY(out.content_->reader.constants());
  return out;
}

Result<AttrsRef> TextMetadata::attributes(const OpDef& op, const std::string& kind, int64_t index) const {
  return content_->reader.listed_attributes(op, kind, index);
}

Result<std::string> TextMetadata::virtual_device(int64_t index) const { return content_->reader.listed_device(index); }

}  // namespace tilewright::relay
