// SPDX-License-Identifier: Apache-2.0
#include "te/views.h"

#include "tir/walk.h"

namespace tilewright::te {

using tir::PrimExpr;
using tir::Stmt;

View view_of(const tir::LetStmtNode& let) {
  View out;
  if (let.var->dtype.code != TypeCode::kHandle) return out;
  const auto* address = tir::as<tir::ExternNode>(let.value);
  if (address == nullptr || address->name != kAddressOf || address->args.size() != 1) return out;
  out.element = tir::as<tir::ReadNode>(address->args[0]);
  if (out.element == nullptr) return out;
  out.source = tir::array_of(out.element->source);
  const std::string& name = static_cast<const tir::VarNode&>(*let.var).name;
  auto see = [&](const Ref<Node>& memory) {
    const tir::ArrayNode* array = tir::array_of(memory);
    if (array != nullptr && array != out.source && array->name == name) out.array = array;
  };
  tir::for_each_expr(let.body, [&](const PrimExpr& e) {
    if (const auto* n = tir::as<tir::ReadNode>(e)) see(n->source);
  });
  tir::for_each_stmt(let.body, [&](const Stmt& s) {
    if (const auto* n = tir::as<tir::WriteNode>(s)) see(n->target);
  });
  out.is_region = out.array != nullptr && out.source != nullptr && !out.array->strides.empty() &&
                  out.array->dtype == out.source->dtype && out.element->indices.size() == out.source->shape.size() &&
                  out.array->shape.size() <= out.source->shape.size();
  return out;
}

namespace {

// One region of an array.
class Resolving {
 public:
  Resolving(const View& view, PrimExpr var) : view_(view), var_(std::move(var)) {}

  Stmt run(const Stmt& body) const {
    return tir::mutate(
        body,
        [&](PrimExpr e) -> PrimExpr {
          const auto* n = tir::as<tir::ReadNode>(e);
          if (n == nullptr || n->source.get() != view_.array) return e;
          return tir::read(e->dtype, view_.element->source, view_.source->name, indices(n->indices));
        },
        [&](Stmt s) -> Stmt {
          if (const auto* n = tir::as<tir::WriteNode>(s); n && n->target.get() == view_.array)
            return tir::write(view_.element->source, view_.source->name, indices(n->indices), n->value);
          if (const auto* n = tir::as<tir::CallExternNode>(s)) return call(*n, s);
          return s;
        });
  }

 private:
  static PrimExpr plus(const PrimExpr& base, const PrimExpr& index) {
    if (const auto* ramp = tir::as<tir::RampNode>(index))
      return tir::ramp(plus(base, ramp->base), ramp->stride, index->dtype.lanes);
    return base + tir::cast(base->dtype.with_lanes(index->dtype.lanes), index);
  }

  // Indices of the region as those of its array.
  std::vector<PrimExpr> indices(const std::vector<PrimExpr>& in_region) const {
    const std::vector<PrimExpr>& base = view_.element->indices;
    const std::vector<PrimExpr>& dims = view_.source->shape;
    if (in_region.size() == 1 && view_.array->shape.size() != 1) {  // elements from the first on, wherever they lie
      PrimExpr flat = base[0];
      for (size_t d = 1; d < base.size(); ++d) flat = plus(flat * tir::cast(flat->dtype, dims[d]), base[d]);
      return {plus(flat, in_region[0])};
    }
    std::vector<PrimExpr> out = base;
    const size_t leading = base.size() - in_region.size();
    for (size_t d = 0; d < in_region.size(); ++d) out[leading + d] = plus(base[leading + d], in_region[d]);
    return out;
  }

  // The variable among a call's arguments is the address of the region's first element.
  Stmt call(const tir::CallExternNode& n, const Stmt& s) const {
    std::vector<tir::ExternArgument> args = n.args;
    bool changed = false;
    for (tir::ExternArgument& a : args) {
      if (a.address || a.value != var_) continue;
      a.value = PrimExpr(view_.element);
      a.address = changed = true;
    }
    return changed ? tir::call_extern(n.name, std::move(args), n.packed) : s;
  }

  const View view_;
  const PrimExpr var_;
};

bool is_used(const PrimExpr& var, const Stmt& body) {
  bool found = false;
  tir::for_each_expr(body, [&](const PrimExpr& e) { found = found || e == var; });
  return found;
}

}  // namespace

Stmt resolve_regions(const Stmt& s) {
  if (const auto* let = tir::as<tir::LetStmtNode>(s)) {
    const View view = view_of(*let);
    if (view.is_region) return resolve_regions(Resolving(view, let->var).run(let->body));
    if (view.element != nullptr && view.array == nullptr && !is_used(let->var, let->body))
      return resolve_regions(let->body);
  }
  return tir::map_children(
      s, [](const PrimExpr& e) { return e; }, resolve_regions);
}

}  // namespace tilewright::te
