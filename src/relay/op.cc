// SPDX-License-Identifier: Apache-2.0
#include "relay/op.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checked.h"
#include "base/format.h"
#include "relay/ops/list.h"
#include "relay/ops/program/memory.h"
#include "relay/script_ops.h"

namespace tilewright::relay {

#define TW_FAMILY(name) std::vector<OpDef> name##_ops();
TW_OP_FAMILIES(TW_FAMILY)
#undef TW_FAMILY
#define TW_FACTS(name) void name(const FactsOf&);
TW_OP_FACTS(TW_FACTS)
#undef TW_FACTS

namespace {

// The table and one shared Op expression per entry.
struct Table {
  std::vector<OpDef> ops;
  std::vector<Expr> exprs;
  Table() {
    auto add = [&](std::vector<OpDef> family) {
      for (OpDef& op : family) ops.push_back(std::move(op));
    };
#define TW_FAMILY(name) add(name##_ops());
    TW_OP_FAMILIES(TW_FAMILY)
#undef TW_FAMILY
    std::sort(ops.begin(), ops.end(), [](const OpDef& a, const OpDef& b) { return std::strcmp(a.name, b.name) < 0; });
    for (size_t i = 1; i < ops.size(); ++i)
      TW_ICHECK(std::strcmp(ops[i - 1].name, ops[i].name) != 0, std::string("two operators named ") + ops[i].name);
    auto facts = [&](std::string_view name) -> OpFacts& {
      auto op = std::find_if(ops.begin(), ops.end(), [&](const OpDef& def) { return def.name == name; });
      TW_ICHECK(op != ops.end(), "facts of an operator that is not there: " + std::string(name));
      return op->facts;
    };
#define TW_FACTS(name) name(facts);
    TW_OP_FACTS(TW_FACTS)
#undef TW_FACTS
    for (const OpDef& op : ops) exprs.push_back(make_node<OpNode>(&op));
  }
};

const Table& table() {
  static const Table kTable;
  return kTable;
}

bool tensor_or_tuple(const Type& type) {
  if (as_tensor(type)) return true;
  const auto* tuple = as_tuple(type);
  return tuple &&
         std::all_of(tuple->fields.begin(), tuple->fields.end(), [](const Type& t) { return as_tensor(t) != nullptr; });
}

// A tensor type with more elements than checked_element_count allows, or null.
const Type* oversized(const Type& type) {
  if (const auto* tuple = as_tuple(type)) {
    for (const Type& f : tuple->fields)
      if (const Type* found = oversized(f)) return found;
    return nullptr;
  }
  const auto* t = as_tensor(type);
  auto shape = t ? static_shape(t->shape) : std::nullopt;
  return shape && !checked_element_count(*shape).ok() ? &type : nullptr;
}

}  // namespace

std::span<const OpDef> all_ops() { return table().ops; }

const OpDef* find_op(std::string_view name) {
  const auto& ops = table().ops;
  auto it =
      std::lower_bound(ops.begin(), ops.end(), name, [](const OpDef& op, std::string_view n) { return op.name < n; });
  return it != ops.end() && it->name == name ? &*it : find_script_op(name);
}

const TensorTypeNode& TypeArgs::tensor(size_t i) const {
  TW_ICHECK(i < types.size() && as_tensor(types[i]), "tensor argument");
  return *as_tensor(types[i]);
}

namespace {

Type with_free_sizes_as(const Type& type, int64_t size) {
  if (const auto* tuple = as_tuple(type)) {
    std::vector<Type> fields;
    for (const Type& field : tuple->fields) fields.push_back(with_free_sizes_as(field, size));
    return tuple_type(std::move(fields));
  }
  const auto* tensor = as_tensor(type);
  if (!tensor || static_shape(tensor->shape)) return type;
  Shape shape = tensor->shape;
  for (Dim& d : shape)
    if (!d.is_const()) d = Dim(size);
  return tensor_type(std::move(shape), tensor->dtype);
}

Expr with_free_sizes_as(const Expr& arg, int64_t size) {
  if (const auto* tuple = as<TupleNode>(arg)) {
    std::vector<Expr> fields;
    for (const Expr& field : tuple->fields) fields.push_back(with_free_sizes_as(field, size));
    return make_tuple(std::move(fields));
  }
  Type type = with_free_sizes_as(arg->type, size);
  return type_equal(type, arg->type) ? arg : make_var("operand", std::move(type));
}

// The one free size among the operands' types, or nothing where there are several or it has no name.
std::optional<Dim> only_free_size(std::span<const Type> types) {
  std::optional<Dim> found;
  bool other = false;
  auto look = [&](auto&& self, const Type& type) -> void {
    for (const Type& part : parts_of(type)) self(self, part);
    const auto* t = as_tensor(type);
    if (!t) return;
    for (const Dim& dim : t->shape) {
      if (dim.is_const()) continue;
      other = other || (found && !(*found == dim));
      found = dim;
    }
  };
  for (const Type& type : types) look(look, type);
  return found && !other && !(*found == Dim::any()) ? found : std::nullopt;
}

// What the results for samples of the free sizes have in common. An extent that is the same for all is known if there
// are enough samples; one that is always the sample is the free size `only`; others are free. Null where ranks or
// dtypes differ.
Type common_type(std::span<const Type> made, std::span<const int64_t> sizes, bool enough,
                 const std::optional<Dim>& only) {
  if (const auto* first = as_tuple(made[0])) {
    std::vector<Type> fields;
    for (size_t f = 0; f < first->fields.size(); ++f) {
      std::vector<Type> column;
      for (const Type& type : made) {
        const auto* tuple = as_tuple(type);
        if (!tuple || tuple->fields.size() != first->fields.size()) return {};
        column.push_back(tuple->fields[f]);
      }
      fields.push_back(common_type(column, sizes, enough, only));
      if (!fields.back()) return {};
    }
    return tuple_type(std::move(fields));
  }
  const auto* first = as_tensor(made[0]);
  if (!first) return {};
  for (const Type& type : made) {
    const auto* t = as_tensor(type);
    if (!t || t->dtype != first->dtype || t->shape.size() != first->shape.size()) return {};
  }
  Shape shape;
  for (size_t i = 0; i < first->shape.size(); ++i) {
    bool same = enough && first->shape[i].is_const(), follows = enough && only.has_value();
    for (size_t k = 0; k < made.size(); ++k) {
      const Dim& dim = as_tensor(made[k])->shape[i];
      same = same && dim == first->shape[i];
      follows = follows && dim == Dim(sizes[k]);
    }
    shape.push_back(same ? first->shape[i] : follows ? *only : Dim::any());
  }
  return tensor_type(std::move(shape), first->dtype);
}

// The type of an expansion whose sizes are known only at run time, found by expanding for sample sizes. Rank and dtype
// never depend on sizes. Null where no sample expands.
Type type_for_free_sizes(const OpDef& def, const TypeArgs& args) {
  constexpr size_t kEnough = 3;
  std::vector<Type> results;
  std::vector<int64_t> sizes;
  for (int64_t size : {12, 10, 8, 64, 48, 1, 2, 3, 4, 5, 6, 7, 512, 1024, 4096}) {
    std::vector<Expr> operands;
    std::vector<Type> types;
    for (const Expr& arg : args.args) {
      operands.push_back(with_free_sizes_as(arg, size));
      types.push_back(operands.back()->type);
    }
    auto made = def.expand(TypeArgs{types, operands, args.attrs});
    if (!made.ok()) continue;
    results.push_back((*made)->type);
    sizes.push_back(size);
    if (results.size() == kEnough) break;
  }
  if (results.empty()) return {};
  return common_type(results, sizes, results.size() == kEnough, only_free_size(args.types));
}

}  // namespace

Result<Type> result_type(const OpDef& def, const TypeArgs& args) {
  if (def.infer_type) return def.infer_type(args);
  if (!def.expand) return script_op_type(def, args);
  auto expanded = def.expand(args);
  if (expanded.ok()) return (*expanded)->type;
  if (expanded.error().code == ErrorCode::kFreeDimension)
    if (Type type = type_for_free_sizes(def, args)) return type;
  return expanded.error();
}

Result<Type> infer_call_type(const OpDef& def, std::span<const Expr> args, const AttrsRef& attrs) {
  const std::string name = def.name;
  auto fail = [&](std::string message) { return Diagnostic(ErrorCode::kTypeMismatch, std::move(message), name); };
  if (def.num_inputs >= 0 && args.size() != static_cast<size_t>(def.num_inputs))
    return fail(format("it takes {} operand{}, not {}", def.num_inputs, def.num_inputs == 1 ? "" : "s", args.size()));
  std::vector<Type> types;
  for (const Expr& arg : args) {
    if (!is_complete(arg->type)) return incomplete_type();
    // These operators accept values of any type.
    static constexpr std::array kOfAnyType = {"annotation.checkpoint", "debug", "device_copy", "on_device"};
    bool accepted = is_memory_op(name) || std::find(kOfAnyType.begin(), kOfAnyType.end(), name) != kOfAnyType.end()
                        ? true
                    : def.num_inputs >= 0 ? as_tensor(arg->type) != nullptr
                                          : tensor_or_tuple(arg->type);
    if (!accepted) return fail(format("operand {} is {}, not a tensor", types.size(), type_str(arg->type)));
    types.push_back(arg->type);
  }
  TypeArgs type_args{types, args, attrs};
  Result<Type> type = result_type(def, type_args);
  if (!type.ok()) return std::move(type).error().at(name);
  if (const Type* wrong = oversized(*type))
    return fail(format("its result {} is larger than any tensor can be", type_str(*wrong)));
  return type;
}

Result<Expr> try_call(std::string_view op, std::vector<Expr> args, AttrsRef attrs, Span span) {
  const OpDef* def = find_op(op);
  if (!def) {
    return Diagnostic(ErrorCode::kUnknownOp, format("no operator is named \"{}\"", op), span ? *span : "",
                      "list the operators with: tilewright ops");
  }
  if (def->make_attrs) {
    AttrsRef fresh = def->make_attrs();
    if (!attrs)
      attrs = fresh;
    else if (std::strcmp(attrs->type_name(), fresh->type_name()) != 0)
      return Diagnostic(ErrorCode::kTypeMismatch,
                        format("its attributes are {}, not {}", fresh->type_name(), attrs->type_name()), def->name);
  } else if (attrs && !find_script_op(def->name)) {
    return Diagnostic(ErrorCode::kTypeMismatch, format("it has no attributes, but got {}", attrs->type_name()),
                      def->name);
  }
  Type type = TW_TRY(infer_call_type(*def, args, attrs));
  const auto& ops = table().ops;
  const bool built_in = def >= ops.data() && def < ops.data() + ops.size();
  Expr callee = built_in ? table().exprs[static_cast<size_t>(def - ops.data())] : make_node<OpNode>(def);
  return Expr(
      make_node<CallNode>(std::move(callee), std::move(args), std::move(attrs), std::move(type), std::move(span)));
}

}  // namespace tilewright::relay
