// SPDX-License-Identifier: Apache-2.0
#include "tir/passes/inline_calls.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/format.h"
#include "tir/operands.h"
#include "tir/structural.h"
#include "tir/text.h"
#include "tir/walk.h"

namespace tilewright::tir {
namespace {

constexpr const char* kAddressOf = "tir.address_of";  // the address of its operand, a Read
constexpr const char* kWeight = "tir.lookup_param:";  // begins the names of weights that nothing gives
const DataType kHandle{TypeCode::kHandle, 64, 1};

Diagnostic wrong(std::string what) { return Diagnostic(ErrorCode::kInvalidArgument, std::move(what)); }

Ref<ArrayNode> array_in(const Ref<Node>& node) { return Ref<ArrayNode>(array_of(node)); }
PrimExpr element_of(const Array& array, std::vector<PrimExpr> indices) { return read(array, std::move(indices)); }
bool is_handle(const PrimExpr& e) { return e && e->dtype == kHandle; }
bool is_null(const PrimExpr& e) { return is_handle(e) && e->kind == ExprKind::kReinterpret; }

// Whether an array of a call is the parameter itself: same elements, same sizes, no strides.
bool is_whole(const Array& given, const Array& parameter) {
  return given->dtype == parameter->dtype && given->strides.empty() && parameter->strides.empty() &&
         std::equal(given->shape.begin(), given->shape.end(), parameter->shape.begin(), parameter->shape.end(),
                    [](const PrimExpr& a, const PrimExpr& b) { return structural_equal(a, b, false); });
}

// A copy of a function's statements over other arrays than its parameters, with memory and addresses of its own.
class Copy {
 public:
  Copy(std::unordered_map<const Node*, Array> arrays, int number) : arrays_(std::move(arrays)), number_(number) {}

  Stmt stmt(const Stmt& s) {
    if (const auto* block = as<BlockNode>(s))
      for (const Ref<Node>& m : block->memory)
        if (const Array a = array_in(m))
          arrays_[a.get()] = make_array(own_name(a->name), a->dtype, a->shape, a->scope, a->strides);
    if (const auto* bound = as<LetStmtNode>(s); bound && is_handle(bound->var)) {
      const std::string& name = as<VarNode>(bound->var)->name;
      addresses_[bound->var.get()] = make_var(own_name(name), kHandle);
      address_names_[name] = own_name(name);
    }
    Stmt out = map_children(
        s, [&](const PrimExpr& e) { return expr(e); }, [&](const Stmt& child) { return stmt(child); });
    if (const auto* w = as<WriteNode>(out))
      if (const Array to = known(w->target)) return write(to, w->indices, w->value);
    if (const auto* bound = as<LetStmtNode>(out))
      if (auto own = addresses_.find(bound->var.get()); own != addresses_.end())
        return let_stmt(own->second, bound->value, bound->body);
    if (const auto* block = as<BlockNode>(out); block && !block->memory.empty()) {
      std::vector<Ref<Node>> memory;
      for (const Ref<Node>& m : block->memory) memory.push_back(known(m) ? Ref<Node>(known(m)) : m);
      return make_node<BlockNode>(block->name, block->axes, block->predicate, block->init, block->body,
                                  std::move(memory), block->annotations);
    }
    return out;
  }

 private:
  std::string own_name(const std::string& name) const { return format("{}_{}", name, number_); }

  // What an array becomes; null if it stays. One that has the name of an address is memory at that address.
  Array known(const Ref<Node>& node) {
    const Array array = array_in(node);
    if (!array) return {};
    auto found = arrays_.find(array.get());
    if (found != arrays_.end()) return found->second;
    auto named = address_names_.find(array->name);
    if (named == address_names_.end()) return {};
    kept_.push_back(array);
    return arrays_[array.get()] = make_array(named->second, array->dtype, array->shape, array->scope, array->strides);
  }

  PrimExpr expr(const PrimExpr& e) {
    return mutate(e, [&](PrimExpr x) -> PrimExpr {
      if (auto own = addresses_.find(x.get()); own != addresses_.end()) return own->second;
      if (const auto* r = as<ReadNode>(x))
        if (const Array from = known(r->source)) return read(r->dtype, from, from->name, r->indices);
      return x;
    });
  }

  std::unordered_map<const Node*, Array> arrays_;
  std::unordered_map<const ExprNode*, PrimExpr> addresses_;
  std::map<std::string, std::string> address_names_;
  std::vector<Array> kept_;  // arrays_ has their addresses as keys
  const int number_;
};

class Inliner {
 public:
  explicit Inliner(const CallableFunctions& functions) : functions_(functions) {}

  bool calls(const BlockFunction& function) const {
    bool found = false;
    for_each_stmt(function.body, [&](const Stmt& s) {
      const auto* call = as<CallExternNode>(s);
      found = found || (call && functions_.count(call->name) > 0);
    });
    return found;
  }

  // The function without calls of others. `name`: one of its names.
  Result<const BlockFunction*> function(const std::string& name);
  // The statements of a function for what it is given.
  Result<Stmt> statement(const BlockFunction& function, const std::vector<PrimExpr>& given, const std::string& at);

  const CallableFunctions& functions() const { return functions_; }
  InlinedFunctions& made() { return made_; }

 private:
  const CallableFunctions& functions_;
  InlinedFunctions made_;
  std::vector<const BlockFunction*> open_;
  int count_ = 0;
};

// A function that calls others.
class Caller {
 public:
  Caller(const BlockFunction& function, Inliner& inliner)
      : function_(function), inliner_(inliner), params_(function.params) {}

  Result<BlockFunction> run() {
    const Stmt body = stmt(function_.body);
    if (failed_) return std::move(*failed_);
    return BlockFunction{function_.name, params_, body};
  }

 private:
  Stmt stmt(const Stmt& s) {
    if (failed_) return s;
    note(s);
    Stmt out = map_children(
        s, [](const PrimExpr& e) { return e; }, [&](const Stmt& child) { return stmt(child); });
    if (const auto* block = as<BlockNode>(out)) {
      std::vector<Ref<Node>> memory;
      for (const Ref<Node>& m : block->memory) {
        auto bytes = bytes_.find(m.get());
        memory.push_back(bytes == bytes_.end() ? m : Ref<Node>(bytes->second));
      }
      if (memory == block->memory) return out;
      return make_node<BlockNode>(block->name, block->axes, block->predicate, block->init, block->body,
                                  std::move(memory), block->annotations);
    }
    const auto* call = as<CallExternNode>(out);
    if (!call || !inliner_.functions().count(call->name)) return out;
    Result<Stmt> made = inlined(*call);
    if (made.ok()) return *made;
    if (!failed_) failed_ = std::move(made).error();
    return out;
  }

  // What handles stand for: a bound address, or bytes that only functions use.
  void note(const Stmt& s) {
    if (const auto* bound = as<LetStmtNode>(s); bound && is_handle(bound->var)) {
      const auto* value = as<ExternNode>(bound->value);
      if (value && !value->args.empty()) memory_[bound->var.get()] = value->args[0];
    }
    const auto* block = as<BlockNode>(s);
    if (!block || !block->name.empty() || !block->axes.empty() || block->memory.size() != 1) return;
    const Array array = array_in(block->memory[0]);
    if (array && array->dtype == kInt8 && !is_accessed(array, block->body))
      bytes_[array.get()] = make_array(array->name, kUInt8, array->shape);
  }

  // Whether elements of the array are read or written, and not only their addresses given to functions.
  static bool is_accessed(const Array& array, const Stmt& body) {
    bool accessed = false;
    auto reads = [&](const PrimExpr& e) {
      for_each_expr(e, [&](const PrimExpr& x) {
        const auto* r = as<ReadNode>(x);
        accessed = accessed || (r && r->source.get() == array.get());
      });
    };
    for_each_stmt(body, [&](const Stmt& s) {
      const auto* w = as<WriteNode>(s);
      accessed = accessed || (w && w->target.get() == array.get());
      if (const auto* call = as<CallExternNode>(s)) {
        for (const ExternArgument& a : call->args) {
          if (!a.address) reads(a.value);
          if (a.address)
            for (const PrimExpr& index : static_cast<const ReadNode&>(*a.value).indices) reads(index);
        }
      } else {
        for_each_own_expr(s, reads);
      }
    });
    return accessed;
  }

  Result<Stmt> inlined(const CallExternNode& call) {
    if (!inliner_.functions().at(call.name))
      return wrong(format("the function '{}', which {} calls, is lowered already", call.name, function_.name));
    const BlockFunction& callee = *TW_TRY(inliner_.function(call.name));
    std::vector<ExternArgument> args = call.args;
    // the device's handle of a cpacked call, of which there is none here
    if (args.size() == callee.params.size() + 1 && !args.back().address && is_null(args.back().value)) args.pop_back();
    if (args.size() != callee.params.size())
      return wrong(format("{} gives {} values to '{}', which has {} parameters", function_.name, args.size(), call.name,
                          callee.params.size()));
    std::vector<PrimExpr> given;
    for (size_t i = 0; i < args.size(); ++i)
      given.push_back(TW_TRY(value_of(args[i], callee.params[i].array, call.name)));
    return inliner_.statement(callee, given, function_.name);
  }

  // An argument: a number, or the element of memory that its address is of.
  Result<PrimExpr> value_of(const ExternArgument& argument, const Array& parameter, const std::string& callee) {
    const PrimExpr& value = argument.value;
    if (argument.buffer) return wrong(format("{} gives '{}' flat memory", function_.name, callee));
    if (argument.address) {
      const auto& r = static_cast<const ReadNode&>(*value);
      auto bytes = bytes_.find(r.source.get());
      return bytes == bytes_.end() ? value : element_of(bytes->second, r.indices);
    }
    if (is_handle(value) && parameter) {
      const auto own = std::find_if(params_.begin(), params_.end(), [&](const auto& p) { return p.var == value; });
      if (own != params_.end()) {
        const Array array = make_array(as<VarNode>(value)->name, parameter->dtype, parameter->shape);
        *own = {array, {}};
        std::vector<PrimExpr> first(array->shape.size(), make_int(0, kInt32));
        memory_[value.get()] = element_of(array, std::move(first));
        kept_.push_back(value);
      }
    }
    if (auto found = memory_.find(value.get()); found != memory_.end()) return found->second;
    if (const auto* weight = as<ExternNode>(value); weight && weight->name.rfind(kWeight, 0) == 0)
      return wrong(format("nothing gives {} the weight '{}', which '{}' gets; make it a parameter, or T.allocate_const",
                          function_.name, weight->name.substr(std::string(kWeight).size()), callee));
    return value;
  }

  const BlockFunction& function_;
  Inliner& inliner_;
  std::vector<BlockFunction::Param> params_;
  std::unordered_map<const ExprNode*, PrimExpr> memory_;  // the first element of what a handle stands for
  std::unordered_map<const Node*, Array> bytes_;
  std::vector<PrimExpr> kept_;  // memory_ has their addresses as keys
  std::optional<Diagnostic> failed_;
};

Result<const BlockFunction*> Inliner::function(const std::string& name) {
  const BlockFunction* original = functions_.at(name);
  if (const auto begin = std::find(open_.begin(), open_.end(), original); begin != open_.end()) {
    std::string way;
    for (auto step = begin; step != open_.end(); ++step) way += (*step)->name + " -> ";
    return wrong(format("the function '{}' calls itself: {}{}", original->name, way, original->name));
  }
  if (auto found = made_.find(original); found != made_.end()) return &found->second;
  if (!calls(*original)) return original;
  open_.push_back(original);
  Result<BlockFunction> made = Caller(*original, *this).run();
  open_.pop_back();
  return &made_.emplace(original, TW_TRY(std::move(made))).first->second;
}

Result<Stmt> Inliner::statement(const BlockFunction& function, const std::vector<PrimExpr>& given,
                                const std::string& at) {
  const int number = ++count_;
  Substitution values;
  std::unordered_map<const Node*, Array> arrays;
  std::vector<std::pair<PrimExpr, PrimExpr>> views;  // a variable, and the address that it is
  for (size_t i = 0; i < given.size(); ++i) {
    const auto& [array, var] = function.params[i];
    const PrimExpr& value = given[i];
    if (!array) {
      if (is_handle(var) && is_null(value)) continue;
      if (is_handle(var))
        return wrong(
            format("nothing in '{}' says what memory its parameter '{}' is", function.name, as<VarNode>(var)->name));
      values[var.get()] = TW_TRY(convert(var->dtype, value));
      continue;
    }
    const auto* element = as<ReadNode>(value);
    const Array source = element ? array_in(element->source) : Array();
    if (!source) {
      const auto number_given = as_const_int(value);
      return wrong(format("{} gives '{}' the number {} for the buffer '{}'", at, function.name,
                          number_given ? format("{}", *number_given) : to_text(value), array->name));
    }
    const bool first = std::all_of(element->indices.begin(), element->indices.end(),
                                   [](const PrimExpr& index) { return as_const_int(index) == 0; });
    if (first && is_whole(source, array)) {
      arrays[array.get()] = source;
      continue;
    }
    const std::string name = format("{}_{}", array->name, number);
    arrays[array.get()] = make_array(name, array->dtype, array->shape);
    views.emplace_back(make_var(name, kHandle), extern_value(kHandle, kAddressOf, {value}));
  }
  Stmt body = substitute(Copy(std::move(arrays), number).stmt(function.body), values);
  for (size_t i = views.size(); i-- > 0;) body = let_stmt(views[i].first, views[i].second, body);
  return body;
}

}  // namespace

Result<InlinedFunctions> inline_calls(const CallableFunctions& functions) {
  Inliner inliner(functions);
  for (const auto& [name, function] : functions)
    if (function) TW_TRY(inliner.function(name));
  return std::move(inliner.made());
}

}  // namespace tilewright::tir
