// SPDX-License-Identifier: Apache-2.0
#include "lower/permutation.h"

#include <algorithm>

#include "relay/op.h"
#include "relay/ops/tensor/attrs_transform.h"

namespace tilewright::lower {
namespace {
using namespace relay;
using Part = topi::Permutation::Part;
using Axes = std::vector<std::vector<Part>>;

bool is_transpose(const Expr& e) { return called_op(e) && called_op(e)->name == std::string_view("transpose"); }

// Another shape or order of the first operand's elements, and nothing else.
bool moves_elements(const Expr& e) {
  const OpDef* op = called_op(e);
  if (!op || !as_tensor(e->type)) return false;
  const auto* call = as<CallNode>(e);
  if (call->args.size() != 1 || !as_tensor(call->args[0]->type) ||
      as_tensor(call->args[0]->type)->dtype != as_tensor(e->type)->dtype)
    return false;
  return is_transpose(e) || op->facts.elements == Elements::kReshaped;
}

// Computed element by element at the shape of the moved elements.
bool follows_element_by_element(const Expr& e, const Expr& moved) {
  const OpDef* op = called_op(e);
  return op->pattern <= OpPattern::kBroadcast && op->name != std::string_view("repeat") &&
         op->name != std::string_view("tile") && as_tensor(e->type) &&
         as_tensor(e->type)->shape == as_tensor(moved->type)->shape;
}

// The moves that begin with this parameter.
Anchor moves_of(const FunctionNode& function, int param) {
  Anchor found;
  bool turned = false;
  std::vector<const ExprNode*> after;  // the last move and what is computed from it
  for (const Expr& e : post_order(function.body)) {
    const OpDef* op = called_op(e);
    if (e->kind == ExprKind::kTuple || e->kind == ExprKind::kTupleGetItem) return {};
    if (!op) continue;
    const auto kids = children(e);
    const bool uses = std::any_of(kids.begin(), kids.end(), [&](const Expr& kid) {
      return std::find(after.begin(), after.end(), kid.get()) != after.end();
    });
    const auto* call = as<CallNode>(e);
    const bool layout = op->name == std::string_view("layout_transform");
    const bool begins = !found.call && !call->args.empty() &&
                        call->args[0] == function.params[static_cast<size_t>(param)] && (layout || moves_elements(e));
    const bool goes_on = uses && after.size() == 1 && found.op == "transpose" && moves_elements(e);
    if (begins || goes_on) {
      found.call = call, found.expr = e, found.op = layout ? "layout_transform" : "transpose";
      found.inputs = {param};
      turned = turned || layout || is_transpose(e);
      after = {e.get()};
    } else if (uses) {
      if (!follows_element_by_element(e, found.expr)) return {};
      after.push_back(e.get());
    }
  }
  return turned && after.back() == function.body.get() ? found : Anchor();
}

// The parts of the axes, put together or cut to a shape; nothing where a size is no product of theirs.
std::optional<Axes> reshaped(const Axes& axes, const Shape& shape) {
  std::vector<Part> parts;
  for (const auto& axis : axes)
    for (const Part& part : axis)
      if (part.extent > 1) parts.push_back(part);
  Axes out(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    for (int64_t need = shape[d].value(); need > 1;) {
      if (parts.empty()) return {};
      Part part = parts.back();
      if (need % part.extent == 0) {
        parts.pop_back();
      } else if (part.extent % need == 0) {
        parts.back().extent = part.extent / need, parts.back().from = part.from * need;
        part.extent = need;
      } else {
        return {};
      }
      out[d].insert(out[d].begin(), part);
      need /= part.extent;
    }
  }
  return out;
}

}  // namespace

Anchor find_moves(const FunctionNode& function) {
  for (size_t i = 0; i < function.params.size(); ++i) {
    if (!as_tensor(function.params[i]->type)) return {};
    if (Anchor found = moves_of(function, static_cast<int>(i)); found.call) return found;
  }
  return {};
}

std::optional<topi::Permutation> permutation_of(const Anchor& anchor, const topi::View& in, const topi::View& out) {
  if (topi::product(out.shape) == 0) return {};
  std::vector<Expr> moves;
  for (Expr e = anchor.expr; called_op(e); e = as<CallNode>(e)->args[0]) moves.push_back(e);
  Axes axes;
  for (int d = 0; d < in.rank(); ++d) axes.push_back({{in.shape[d], in.strides[d]}});
  for (size_t i = moves.size(); i-- > 0;) {
    const auto* call = as<CallNode>(moves[i]);
    if (!is_transpose(moves[i])) {
      std::optional<Axes> next = reshaped(axes, as_tensor(moves[i]->type)->shape);
      if (!next) return {};
      axes = std::move(*next);
      continue;
    }
    const auto& order = attrs_as<TransposeAttrs>(call->attrs)->axes;
    Axes turned;
    for (size_t d = 0; d < axes.size(); ++d) {
      const auto last = static_cast<int64_t>(axes.size()) - 1, at = static_cast<int64_t>(d);
      int64_t from = order && !order->empty() ? (*order)[d] : last - at;
      if (from < 0) from += last + 1;
      turned.push_back(axes[static_cast<size_t>(from)]);
    }
    axes = std::move(turned);
  }
  topi::Permutation p{in, out, {}};
  p.in.halo_before.clear(), p.in.halo_after.clear();
  for (size_t d = 0; d < axes.size(); ++d) {
    int64_t step = 1;
    for (size_t i = axes[d].size(); i-- > 0;) {
      Part& part = axes[d][i];
      part.axis = static_cast<int>(d), part.step = step, part.to = out.strides[d] * step;
      step *= part.extent;
    }
    p.parts.insert(p.parts.end(), axes[d].begin(), axes[d].end());
  }
  return p;
}

topi::Permutation with_longest_parts(const topi::Permutation& permutation) {
  topi::Permutation p = permutation;
  p.parts.clear();
  for (const Part& part : permutation.parts) {
    if (part.extent == 1) continue;
    Part* last = p.parts.empty() ? nullptr : &p.parts.back();
    if (last && last->from == part.from * part.extent && last->to == part.to * part.extent)
      last->extent *= part.extent, last->from = part.from, last->to = part.to;
    else
      p.parts.push_back(part);
  }
  if (p.parts.empty()) return permutation;
  p.out.shape.clear(), p.out.strides.clear(), p.out.halo_before.clear(), p.out.halo_after.clear();
  for (Part& part : p.parts) {
    part.axis = p.out.rank(), part.step = 1;
    p.out.shape.push_back(part.extent), p.out.strides.push_back(part.to);
  }
  return p;
}

}  // namespace tilewright::lower
