// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>
#include <unordered_set>

#include "base/hash.h"
#include "relay/op.h"
#include "relay/structural.h"

namespace tilewright::relay {
namespace {

// Replaces all unknown sizes by the same one.
Shape plain(Shape shape) {
  for (Dim& d : shape)
    if (is_unknown(d)) d = Dim::any();
  return shape;
}

class Hash {
 public:
  Hash& mix(uint64_t v) {
    value_ = hash_bytes(&v, sizeof v, value_);
    return *this;
  }
  Hash& text(const std::string& s) {
    value_ = hash_bytes(s.data(), s.size(), value_);
    return *this;
  }
  // Numbers that count as equal round to the same float, except near a rounding boundary.
  Hash& real(double v) {
    const auto single = static_cast<float>(v);
    value_ = hash_bytes(&single, sizeof single, value_);
    return *this;
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0;
};

uint64_t hash_of(const Type& type) {
  Hash h;
  h.mix(static_cast<uint64_t>(type->kind));
  if (const auto* tensor = as_tensor(type)) {
    h.text(tensor->dtype.str()).text(shape_str(plain(tensor->shape)));
    return h.value();
  }
  // Names of type variables do not matter.
  if (const auto* data = as_data(type)) h.text(data->name);
  for (const Type& part : parts_of(type)) h.mix(hash_of(part));
  return h.value();
}

uint64_t hash_of(const AttrsRef& attrs) {
  Hash h;
  if (!attrs) return h.value();
  h.text(attrs->type_name());
  for (const auto& [name, value] : attr_texts(attrs)) {
    h.text(name);
    if (value.size() > 1 && value[0] != '"' && value.back() == 'f')
      h.real(std::strtod(value.c_str(), nullptr));
    else
      h.text(value);
  }
  return h.value();
}

uint64_t hash_of(const DictAttrs& attrs) {
  Hash h;
  for (const auto& [name, value] : attrs) {
    h.text(name);
    if (const auto* real = std::get_if<double>(&value))
      h.real(*real);
    else
      h.text(attr_text(value));
  }
  return h.value();
}

uint64_t hash_of(const Pattern& p) {
  Hash h;
  h.mix(static_cast<uint64_t>(p->kind));
  if (const auto* c = as<ConstructorNode>(p->expr)) h.text(c->data_type).text(c->name);
  for (const Pattern& field : p->fields) h.mix(hash_of(field));
  return h.value();
}

// Hashes the node itself; the caller hashes children.
void mix_head(const Expr& e, Hash& h) {
  h.mix(static_cast<uint64_t>(e->kind));
  switch (e->kind) {
    case ExprKind::kVar:
      h.mix(hash_of(e->type));
      break;
    case ExprKind::kGlobalVar:
      h.text(as<GlobalVarNode>(e)->name);
      break;
    case ExprKind::kConstant: {
      const Tensor& data = as<ConstantNode>(e)->data;
      h.mix(hash_of(e->type));
      if (data.dtype().is_string())
        for (const std::string& s : data.string_values()) h.text(s);
      else
        h.mix(hash_bytes(data.raw(), data.bytes()));
      break;
    }
    case ExprKind::kOp:
      h.text(as<OpNode>(e)->def->name);
      break;
    case ExprKind::kCall:
      if (const OpDef* op = called_op(e)) h.text(op->name);
      h.mix(hash_of(as<CallNode>(e)->attrs));
      break;
    case ExprKind::kFunction:
      h.mix(hash_of(as<FunctionNode>(e)->attrs)).mix(as<FunctionNode>(e)->type_variables.size());
      break;
    case ExprKind::kTupleGetItem:
      h.mix(static_cast<uint64_t>(as<TupleGetItemNode>(e)->index));
      break;
    case ExprKind::kConstructor:
      h.text(as<ConstructorNode>(e)->data_type).text(as<ConstructorNode>(e)->name);
      break;
    case ExprKind::kMatch:
      h.mix(as<MatchNode>(e)->complete);
      for (const Clause& clause : as<MatchNode>(e)->clauses) h.mix(hash_of(clause.pattern));
      break;
    case ExprKind::kTuple:
    case ExprKind::kLet:
    case ExprKind::kIf:
    case ExprKind::kRefCreate:
    case ExprKind::kRefRead:
    case ExprKind::kRefWrite:
      break;
  }
}

// Nodes whose sharing matters are hashed by position as well.
bool has_place(const Expr& e) {
  return e->kind != ExprKind::kGlobalVar && e->kind != ExprKind::kConstant && e->kind != ExprKind::kOp &&
         e->kind != ExprKind::kTupleGetItem && e->kind != ExprKind::kConstructor &&
         !(as<TupleNode>(e) && as<TupleNode>(e)->fields.empty());
}

}  // namespace

uint64_t structural_hash(const Expr& root, bool map_free_variables) {
  std::unordered_set<const ExprNode*> themselves;
  if (!map_free_variables)
    for (const Expr& e : free_variables(root)) themselves.insert(e.get());
  std::unordered_map<const ExprNode*, uint64_t> done;
  uint64_t places = 0;
  for (const Expr& e : post_order(root, true)) {
    Hash h;
    if (themselves.count(e.get())) {
      h.mix(reinterpret_cast<uintptr_t>(e.get()));
    } else {
      mix_head(e, h);
      for (const Expr& kid : children(e)) h.mix(done.at(kid.get()));
      if (has_place(e)) h.mix(places++);
    }
    done[e.get()] = h.value();
  }
  return done.at(root.get());
}

uint64_t structural_hash(const Module& module) {
  Hash h;
  for (const auto& [name, definition] : module.types) {
    h.text(name).mix(definition.variables.size());
    for (const Expr& c : definition.constructors) h.text(as<ConstructorNode>(c)->name).mix(hash_of(c->type));
  }
  for (const auto& [name, function] : module.functions) h.text(name).mix(structural_hash(function));
  return h.value();
}

}  // namespace tilewright::relay
