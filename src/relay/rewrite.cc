// SPDX-License-Identifier: Apache-2.0
#include "relay/rewrite.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "relay/ops/attrs.h"

namespace tilewright::relay {
namespace {

std::vector<Expr> open_children(const Expr& e) { return is_closed_function(e) ? std::vector<Expr>() : children(e); }

}  // namespace

std::vector<Expr> post_order_over(const Expr& root, const std::function<std::vector<Expr>(const Expr&)>& operands) {
  struct Frame {
    Expr e;
    std::vector<Expr> kids;
    size_t next = 0;
  };
  std::vector<Expr> out;
  std::unordered_map<const ExprNode*, bool> seen{{root.get(), true}};
  std::vector<Frame> stack;
  stack.push_back({root, operands(root)});
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next == top.kids.size()) {
      out.push_back(std::move(top.e));
      stack.pop_back();
      continue;
    }
    Expr kid = top.kids[top.next++];
    if (seen.emplace(kid.get(), true).second) stack.push_back({kid, operands(kid)});
  }
  return out;
}

Expr rewrite_expr(const Expr& root, const Rewrite& rewrite) {
  std::unordered_map<const ExprNode*, Expr> done;
  for (const Expr& e : post_order_over(root, open_children)) {
    std::vector<Expr> kids = open_children(e);
    for (Expr& kid : kids) kid = done.at(kid.get());
    done[e.get()] = rewrite(e, with_children(e, kids));
  }
  return done.at(root.get());
}

Module rewrite_functions(const Module& module, const std::function<Expr(const Expr& function)>& rewrite) {
  Module out = module;
  for (auto& [name, function] : out.functions)
    if (as<FunctionNode>(function) && !is_closed_function(function)) function = rewrite(function);
  return out;
}

Module rewrite_module(const Module& module, const Rewrite& rewrite) {
  return rewrite_functions(module, [&](const Expr& function) { return rewrite_expr(function, rewrite); });
}

const Tensor* constant_data(const Expr& e) {
  const auto* constant = as<ConstantNode>(e);
  return constant ? &constant->data : nullptr;
}

std::optional<double> uniform_value(const Expr& e) {
  const Tensor* data = constant_data(e);
  if (!data || data->size() == 0 || data->dtype().is_string() || data->dtype().code == TypeCode::kComplex)
    return std::nullopt;
  double first = data->at_double(0);
  if (std::isnan(first)) return std::nullopt;
  // Not for 64-bit integers that a double cannot represent exactly.
  if (data->dtype().is_integral() && data->dtype().bits == 64 && std::fabs(first) > 9007199254740992.0)
    return std::nullopt;
  for (int64_t i = 1; i < data->size(); ++i)
    if (data->at_double(i) != first || std::signbit(data->at_double(i)) != std::signbit(first)) return std::nullopt;
  return first;
}

bool is_uniform(const Expr& e, double value) {
  auto v = uniform_value(e);
  return v && *v == value;
}

const CallNode* as_call(const Expr& e, std::string_view op) { return is_call_to(e, op) ? as<CallNode>(e) : nullptr; }

const TensorTypeNode& tensor_of(const Expr& e) {
  const auto* type = as_tensor(e->type);
  TW_ICHECK(type, "a tensor is needed");
  return *type;
}

bool is_float_tensor(const Expr& e) {
  const auto* type = as_tensor(e->type);
  return type && type->dtype.is_float();
}

bool same_tensor_type(const Expr& a, const Expr& b) { return as_tensor(a->type) && type_equal(a->type, b->type); }

int64_t positive_axis(int64_t axis, size_t rank) { return axis < 0 ? axis + static_cast<int64_t>(rank) : axis; }

UseCounts count_uses(const Expr& root) {
  UseCounts uses;
  ++uses[root.get()];
  for (const Expr& e : post_order_over(root, open_children))
    for (const Expr& kid : open_children(e)) ++uses[kid.get()];
  return uses;
}

Span join_spans(const Span& a, const Span& b) {
  if (!a || !b) return a ? a : b;
  if (*a == *b || b->empty()) return a;
  // Names are for readers: many merges of one node must not grow them without bound.
  constexpr size_t kLongest = 400;
  if (("+" + *a + "+").find("+" + *b + "+") != std::string::npos || a->size() > kLongest) return a;
  return make_span(*a + "+" + *b);
}

Expr reshape_to(const Expr& e, const std::vector<int64_t>& shape) {
  if (tensor_of(e).shape == to_shape(shape)) return e;
  if (const Tensor* data = constant_data(e)) return make_constant(data->reshaped(shape), e->span);
  return call("reshape", {e}, make_attrs<ReshapeAttrs>([&](auto& a) {
                a.newshape = shape;
                a.allowzero = std::find(shape.begin(), shape.end(), 0) != shape.end();
              }),
              e->span);
}

Expr full_constant(double value, DataType dtype, std::vector<int64_t> shape) {
  Tensor data = Tensor::zeros(dtype, std::move(shape));
  for (int64_t i = 0; i < data.size(); ++i)
    if (dtype.is_float())
      data.set_double(i, value);
    else
      data.set_int(i, static_cast<int64_t>(value));
  return make_constant(std::move(data));
}

std::optional<Tensor> per_channel(const Expr& e, size_t rank, int64_t axis, int64_t channels) {
  const Tensor* data = constant_data(e);
  if (!data || data->dtype().is_string() || static_cast<size_t>(data->rank()) > rank) return std::nullopt;
  int64_t missing = static_cast<int64_t>(rank) - data->rank();
  int64_t along = 1;
  for (int64_t i = 0; i < data->rank(); ++i) {
    int64_t size = data->shape()[static_cast<size_t>(i)];
    if (i + missing == axis)
      along = size;
    else if (size != 1)
      return std::nullopt;
  }
  if (along == channels) return data->reshaped({channels});
  if (along != 1) return std::nullopt;
  Tensor out = Tensor::zeros(data->dtype(), {channels});
  for (int64_t i = 0; i < channels; ++i)
    if (data->dtype().is_float())
      out.set_double(i, data->at_double(0));
    else
      out.set_int(i, data->at_int(0));
  return out;
}

}  // namespace tilewright::relay
