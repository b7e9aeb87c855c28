// SPDX-License-Identifier: Apache-2.0
#include "lower/compute.h"

namespace tilewright::lower {
using namespace tir;

PrimExpr ComputeArgs::broadcast_operand(size_t i) const {
  size_t rank = types[i]->shape.size();
  std::vector<PrimExpr> mapped;
  for (size_t d = 0; d < rank; ++d) {
    size_t out_axis = index.size() - rank + d;
    bool repeated = in_dim(i, d) == 1 && out_dim(out_axis) != 1;
    mapped.push_back(repeated ? make_int(0) : index[out_axis]);
  }
  // A last dimension of one element that the result has as well is read as a (masked) vector like any other.
  bool vector = rank > 0 && (in_dim(i, rank - 1) != 1 || out_dim(index.size() - 1) == 1);
  if (lanes == 1 || vector) return at(i, mapped, lanes);
  return broadcast(at(i, mapped, 1), lanes);
}

namespace {

// Whether lane l of a mask is set, if that is known at compile time (tail masks are `ramp < broadcast`).
std::optional<bool> known_lane(const PrimExpr& mask, int l) {
  const auto* less = mask->kind == ExprKind::kLT ? as<BinaryNode>(mask) : nullptr;
  const auto* lanes = less ? as<RampNode>(less->a) : nullptr;
  const auto limit = less ? as_const_int(less->b) : std::nullopt;
  const auto base = lanes ? as_const_int(lanes->base) : std::nullopt;
  if (!limit || !base) return std::nullopt;
  return *base + lanes->stride * l < *limit;
}

}  // namespace

PrimExpr ComputeArgs::by_lane(const std::function<PrimExpr(const std::vector<PrimExpr>&)>& element) const {
  return by_numbered_lane([&](const std::vector<PrimExpr>& at, int) { return element(at); });
}

PrimExpr ComputeArgs::by_numbered_lane(
    const std::function<PrimExpr(const std::vector<PrimExpr>&, int lane)>& element) const {
  if (lanes == 1) return element(index, 0);
  std::vector<PrimExpr> elements;
  std::vector<int> order;
  for (int l = 0; l < lanes; ++l) {
    const std::optional<bool> on = mask ? known_lane(mask, l) : true;
    if (on && !*on) {
      elements.push_back(make_const(out.dtype, 0));
      order.push_back(l);
      continue;
    }
    auto at = index;
    at.back() = at.back() + l;
    PrimExpr value = element(at, l);
    // An inactive lane may lie outside the data: it must not be read.
    if (!on) value = intrinsic(Intrinsic::k_if_then_else, {shuffle({mask}, {l}), value, make_const(value->dtype, 0)});
    elements.push_back(value);
    order.push_back(l);
  }
  return shuffle(std::move(elements), std::move(order));
}

PrimExpr flatten_index(const std::vector<PrimExpr>& index, std::span<const int64_t> shape) {
  PrimExpr flat = make_int(0);
  for (size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + index[d];
  return flat;
}

std::vector<PrimExpr> unflatten_index(const PrimExpr& flat, std::span<const int64_t> shape) {
  std::vector<PrimExpr> index(shape.size(), make_int(0));
  size_t first = 0;  // the outermost dimension with extent > 1 takes the remaining quotient
  while (first < shape.size() && shape[first] == 1) ++first;
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > first;) {
    if (shape[d] == 1) continue;
    PrimExpr q = floordiv(flat, stride);
    index[d] = d == first ? q : floormod(q, shape[d]);
    stride *= shape[d];
  }
  return index;
}

ComputeFn find_compute(std::string_view op) {
  for (const auto& def : elementwise_computes())
    if (op == def.op) return def.compute;
  for (const auto& def : transform_computes())
    if (op == def.op) return def.compute;
  return nullptr;
}

}  // namespace tilewright::lower
