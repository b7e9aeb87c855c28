// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/convert_transposed_matmul.h"

#include <algorithm>
#include <numeric>

#include "relay/calls.h"
#include "relay/ops/attrs.h"

namespace tilewright::relay {
namespace {

// x when `e` is x with its last two axes swapped.
Expr swapped_source(const Expr& e) {
  if (!is_call_to(e, "transpose")) return {};
  size_t rank = tensor_of(e).shape.size();
  std::vector<int64_t> wanted(rank);
  if (rank < 2) return {};
  std::iota(wanted.begin(), wanted.end(), 0);
  std::swap(wanted[rank - 1], wanted[rank - 2]);
  auto axes = attrs_of<TransposeAttrs>(e).axes;
  if (!axes) return rank == 2 ? arg(e, 0) : Expr();
  for (int64_t& axis : *axes) axis = positive_axis(axis, rank);
  return *axes == wanted ? arg(e, 0) : Expr();
}

Expr swap_last(const Expr& e) {
  size_t rank = tensor_of(e).shape.size();
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[rank - 1], axes[rank - 2]);
  return transposed(e, std::move(axes), e->span);
}

template <class A>
Expr absorb_transposes(const Expr& e) {
  const auto& attrs = attrs_of<A>(e);
  Expr a = swapped_source(arg(e, 0)), b = swapped_source(arg(e, 1));
  if (!a && !b) return e;
  auto out = try_call(called_op(e)->name, {a ? a : arg(e, 0), b ? b : arg(e, 1)}, make_attrs<A>([&](auto& made) {
                        made = attrs;
                        made.transpose_a = attrs.transpose_a != static_cast<bool>(a);
                        made.transpose_b = attrs.transpose_b != static_cast<bool>(b);
                      }),
                      e->span);
  return out.ok() && type_equal((*out)->type, e->type) ? *out : e;
}

// Makes the reduction axis of the left operand innermost, as kernels read it.
template <class A>
Expr with_rows(const Expr& e) {
  const auto& attrs = attrs_of<A>(e);
  if (!attrs.transpose_a) return e;
  return call(called_op(e)->name, {swap_last(arg(e, 0)), arg(e, 1)}, make_attrs<A>([&](auto& made) {
                made = attrs;
                made.transpose_a = false;
              }),
              e->span);
}

// A product whose right operand is one constant matrix, shared by all batches.
template <class A>
Expr to_dense(const Expr& e) {
  const auto& attrs = attrs_of<A>(e);
  const Tensor* weights = constant_data(arg(e, 1));
  if (attrs.transpose_a || !weights || weights->rank() < 2) return e;
  for (int i = 0; i + 2 < weights->rank(); ++i)
    if (weights->shape()[static_cast<size_t>(i)] != 1) return e;
  Expr matrix = reshape_to(arg(e, 1), {weights->shape().end() - 2, weights->shape().end()});
  if (!attrs.transpose_b) matrix = swap_last(matrix);
  auto out = try_call("nn.dense", {arg(e, 0), matrix},
                      make_attrs<DenseAttrs>([&](auto& a) { a.out_dtype = attrs.out_dtype; }), e->span);
  return out.ok() && type_equal((*out)->type, e->type) ? *out : e;
}

Expr convert(const Expr& e) {
  if (is_call_to(e, "nn.batch_matmul")) {
    Expr out = absorb_transposes<BatchMatmulAttrs>(e);
    return to_dense<BatchMatmulAttrs>(with_rows<BatchMatmulAttrs>(out));
  }
  if (is_call_to(e, "nn.matmul")) {
    Expr out = absorb_transposes<MatmulAttrs>(e);
    return to_dense<MatmulAttrs>(with_rows<MatmulAttrs>(out));
  }
  return e;
}

}  // namespace

Result<Module> convert_transposed_matmul(const Module& module, PassContext&) {
  return rewrite_module(module, [](const Expr&, const Expr& e) { return convert(e); });
}

}  // namespace tilewright::relay
