// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/layout/layout_rewrite.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "relay/op.h"
#include "relay/ops/attrs.h"
#include "relay/ops/layout_inference.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

// A value of the new graph in layout `now`; in the old graph
// its layout is `before`. One entry per result tensor.
struct PlacedValue {
  Expr value;
  AxisLayout before, now;
  std::vector<PlacedValue> fields;
  bool is_list = false;
};

class LayoutRewriter {
 public:
  explicit LayoutRewriter(const LayoutRule& rule) : rule_(rule) {}

  Result<Expr> run(const Expr& function) {
    const auto open = [](const Expr& e) { return is_closed_function(e) ? std::vector<Expr>() : children(e); };
    for (const Expr& e : post_order_over(function, open)) values_[e.get()] = TW_TRY(place(e));
    return plain(function);
  }

 private:
  Expr transformed(const Expr& x, const AxisLayout& from, const AxisLayout& to) {
    if (!from || !to || *from == *to) return x;
    auto [it, fresh] = transforms_.try_emplace({x.get(), *from + ">" + *to});
    if (fresh) it->second = {x, transform(x, *from, *to)};
    return it->second.second;
  }
  // Axes that the value lacks are added in front with size 1; scalars fit every layout.
  static Expr transform(const Expr& x, std::string from, const std::string& to) {
    Expr out = x;
    const size_t have = whole_axes(from), want = whole_axes(to);
    if (have < want) {
      const auto* type = as_tensor(x->type);
      if (type && type->shape.empty()) return x;
      std::string missing;
      for (const LayoutAxis& axis : layout_axes(to))
        if (axis.whole() && from.find(axis.letter) == std::string::npos) missing += axis.letter;
      auto made = try_call("expand_dims", {out}, make_attrs<ExpandDimsAttrs>([&](auto& a) {
                             a.axis = 0;
                             a.num_newaxis = static_cast<int64_t>(want - have);
                           }),
                           x->span);
      if (!made.ok()) return x;
      out = *made;
      from = missing + from;
      if (from == to) return out;
    }
    auto made = try_call("layout_transform", {out}, make_attrs<LayoutTransformAttrs>([&](auto& a) {
                           a.src_layout = from;
                           a.dst_layout = to;
                         }),
                         x->span);
    return made.ok() ? *made : x;
  }

  // The value in the old graph's layout.
  Expr realized(const PlacedValue& p, const Span& span) {
    if (!p.is_list) return transformed(p.value, p.now, p.before);
    std::vector<Expr> fields;
    for (const PlacedValue& field : p.fields) fields.push_back(realized(field, span));
    return make_tuple(std::move(fields), span);
  }
  Expr plain(const Expr& e) {
    auto [it, fresh] = plains_.try_emplace(e.get());
    if (fresh) it->second = realized(values_.at(e.get()), e->span);
    return it->second;
  }

  Result<PlacedValue> place(const Expr& e) {
    if (is_closed_function(e) || as<OpNode>(e)) return PlacedValue{e, {}, {}, {}};
    if (const auto* tuple = as<TupleNode>(e)) {
      PlacedValue out{{}, {}, {}, {}, true};
      bool moved = false;
      for (const Expr& field : tuple->fields) {
        out.fields.push_back(values_.at(field.get()));
        moved |= out.fields.back().is_list || out.fields.back().now.has_value();
      }
      if (moved) return out;
    }
    if (const auto* get = as<TupleGetItemNode>(e))
      if (const PlacedValue& tuple = values_.at(get->tuple.get()); tuple.is_list)
        return tuple.fields[static_cast<size_t>(get->index)];
    if (called_op(e)) {
      PlacedValue out = TW_TRY(called(e));
      if (out.value || out.is_list) return out;
    }
    std::vector<Expr> kids = children(e);
    for (Expr& kid : kids) kid = plain(kid);
    return PlacedValue{with_children(e, kids), {}, {}, {}};
  }

  // A null value means: the operator keeps its layout.
  Result<PlacedValue> called(const Expr& e) {
    const CallNode& call = *as<CallNode>(e);
    std::vector<PlacedValue> inputs;
    std::vector<Expr> args;
    std::vector<Type> types;
    for (const Expr& arg : call.args) {
      const PlacedValue& p = values_.at(arg.get());
      types.push_back(arg->type);
      const auto* type = as_tuple(arg->type);
      if (!type) {
        inputs.push_back(p);
        args.push_back(p.value);
        continue;
      }
      std::vector<Expr> fields;
      const auto* written = p.is_list ? nullptr : as<TupleNode>(p.value);
      for (size_t i = 0; i < type->fields.size(); ++i) {
        inputs.push_back(p.is_list ? p.fields[i]
                         : written ? PlacedValue{written->fields[i], {}, {}, {}}
                                   : PlacedValue{make_get(p.value, static_cast<int64_t>(i)), {}, {}, {}});
        if (inputs.back().is_list) return PlacedValue{};
        fields.push_back(inputs.back().value);
      }
      const auto* same = as<TupleNode>(arg);
      args.push_back(same && same->fields == fields ? arg : make_tuple(std::move(fields), arg->span));
    }
    AxisLayouts before, now;
    for (const PlacedValue& p : inputs) {
      before.push_back(p.before);
      now.push_back(p.now);
    }
    const OpDef* op = called_op(e);
    auto old = infer_layouts(*op, {call.attrs, nullptr, before, types});
    if (old && reads_other_axes(*old, before)) {
      // The operator names axes differently from its operands' producers: it takes them in the old layout.
      before.assign(before.size(), {});
      now.assign(now.size(), {});
      for (size_t i = 0; i < args.size(); ++i) args[i] = plain(call.args[i]);
      old = infer_layouts(*op, {call.attrs, nullptr, before, types});
    }
    if (!old || !complete(*old) || old->in.size() != inputs.size()) {
      // An operator that keeps its layout; a replacement must accept that, too.
      std::vector<Expr> kids = call.args;
      for (Expr& kid : kids) kid = plain(kid);
      return PlacedValue{TW_TRY(rule_(e, call.attrs, kids)), {}, {}, {}};
    }
    for (size_t i = 0; i < now.size(); ++i)
      if (!now[i]) now[i] = old->in[i];
    Expr replacement = TW_TRY(rule_(e, old->attrs, args));
    const CallNode* made = replacement ? as<CallNode>(replacement) : nullptr;
    if (replacement && (!made || !called_op(replacement)))
      return Diagnostic(ErrorCode::kInvalidArgument, "a layout rule gives the call of an operator", op->name);
    const OpDef* new_op = made ? called_op(replacement) : op;
    const AttrsRef& attrs = made ? made->attrs : old->attrs;
    if (made) args = made->args;
    auto fresh = infer_layouts(*new_op, {attrs, &now, old->in, types});
    if (!fresh || !complete(*fresh) || fresh->in.size() != now.size() || fresh->out.size() != old->out.size())
      return PlacedValue{};
    size_t at = 0;
    auto next = [&](const Expr& x) -> Expr {
      if (at >= now.size()) return x;
      Expr out = transformed(x, now[at], fresh->in[at]);
      ++at;
      return out;
    };
    for (Expr& arg : args) {
      const auto* tuple = as<TupleNode>(arg);
      if (!tuple) {
        arg = next(arg);
        continue;
      }
      std::vector<Expr> fields;
      for (const Expr& field : tuple->fields) fields.push_back(next(field));
      if (fields != tuple->fields) arg = make_tuple(std::move(fields), arg->span);
    }
    // Nothing changed: keep the node itself.
    if (at == now.size() && new_op == op && args == call.args && attrs_equal(fresh->attrs, call.attrs))
      return placed(e, e, *old, *fresh);
    auto result = try_call(new_op->name, std::move(args), fresh->attrs, e->span);
    if (at != now.size() || !result.ok()) return PlacedValue{};
    return placed(e, *result, *old, *fresh);
  }
  static bool reads_other_axes(const LayoutInference& inferred, const AxisLayouts& before) {
    for (size_t i = 0; i < std::min(before.size(), inferred.in.size()); ++i)
      if (before[i] && inferred.in[i] && *before[i] != *inferred.in[i]) return true;
    return false;
  }
  static bool complete(const LayoutInference& inferred) {
    for (const AxisLayouts* list : {&inferred.in, &inferred.out})
      for (const AxisLayout& layout : *list)
        if (!layout) return false;
    return true;
  }
  static PlacedValue placed(const Expr& e, const Expr& result, const LayoutInference& old,
                            const LayoutInference& fresh) {
    const auto* tuple = as_tuple(e->type);
    if (!tuple) return {result, old.out[0], fresh.out[0], {}};
    PlacedValue out{{}, {}, {}, {}, true};
    for (size_t i = 0; i < fresh.out.size(); ++i)
      out.fields.push_back({make_get(result, static_cast<int64_t>(i), e->span), old.out[i], fresh.out[i], {}});
    return out;
  }

  const LayoutRule& rule_;
  std::unordered_map<const ExprNode*, PlacedValue> values_;
  std::unordered_map<const ExprNode*, Expr> plains_;
  // holds the transformed expression, so that the key stays valid
  std::map<std::pair<const ExprNode*, std::string>, std::pair<Expr, Expr>> transforms_;
};

}  // namespace

Result<Module> rewrite_layouts(const Module& module, const LayoutRule& rule) {
  Module out = module;
  for (auto& [name, function] : out.functions)
    if (as<FunctionNode>(function) && !is_closed_function(function))
      function = TW_TRY(LayoutRewriter(rule).run(function));
  return out;
}

}  // namespace tilewright::relay
