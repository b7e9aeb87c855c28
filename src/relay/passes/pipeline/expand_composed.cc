// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/expand_composed.h"

#include <algorithm>

#include "relay/calls.h"
#include "relay/ops/attrs.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

template <class A>
Expr one_filter_a_row(const Expr& e) {
  const auto& a = attrs_of<A>(e);
  const std::string usual = A().kernel_layout;
  if (a.groups == 1 || !a.channels || *a.channels == a.groups) return e;
  std::vector<int64_t> axes;
  for (char letter : usual) axes.push_back(static_cast<int64_t>(a.kernel_layout.find(letter)));
  if (a.kernel_layout.size() != usual.size() || std::find(axes.begin(), axes.end(), int64_t{-1}) != axes.end())
    return e;
  const Shape& given = tensor_of(arg(e, 1)).shape;
  std::vector<int64_t> shape{*a.channels, 1};
  for (size_t i = 2; i < axes.size(); ++i) shape.push_back(given[static_cast<size_t>(axes[i])].constant().value_or(0));
  const auto channels = given[static_cast<size_t>(axes[0])].constant(),
             filters = given[static_cast<size_t>(axes[1])].constant();
  if (channels != a.groups || !filters || *filters * a.groups != *a.channels) return e;
  Expr kernel = a.kernel_layout == usual ? arg(e, 1) : transposed(arg(e, 1), std::move(axes), arg(e, 1)->span);
  return call(called_op(e)->name, {arg(e, 0), reshape_to(kernel, shape)}, make_attrs<A>([&](auto& attrs) {
                attrs = a;
                attrs.kernel_layout = usual;
              }),
              e->span);
}

}  // namespace

Expr with_one_filter_a_row(const Expr& e) {
  if (is_call_to(e, "nn.conv1d")) return one_filter_a_row<Conv1DAttrs>(e);
  if (is_call_to(e, "nn.conv2d")) return one_filter_a_row<Conv2DAttrs>(e);
  return is_call_to(e, "nn.conv3d") ? one_filter_a_row<Conv3DAttrs>(e) : e;
}

Expr expanded(const Expr& e) {
  const OpDef* op = called_op(e);
  if (!op || !is_complete(e->type)) return e;
  if (!op->expand) return with_one_filter_a_row(e);
  const auto& call = *as<CallNode>(e);
  std::vector<Type> types;
  for (const Expr& operand : call.args) types.push_back(operand->type);
  // The operands were checked when the call was made, so a failure here means that sizes or values are still unknown.
  auto made = op->expand(TypeArgs{types, call.args, call.attrs, call.span});
  return made.ok() ? *made : e;
}

Result<Module> expand_composed(const Module& module, PassContext&) {
  Module current = module;
  for (bool changed = true; changed;) {
    changed = false;
    current = rewrite_module(current, [&](const Expr&, const Expr& e) {
      Expr out = expanded(e);
      changed |= !(out == e);
      return out;
    });
  }
  return current;
}

}  // namespace tilewright::relay
