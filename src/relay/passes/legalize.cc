// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/legalize.h"

#include "relay/ops/attrs.h"
#include "relay/ops/attrs_batch_blocks.h"
#include "relay/passes/rewrite.h"

namespace tilewright::relay {
namespace {

Expr transposed(const Expr& x, std::vector<int64_t> axes) {
  return call("transpose", {x}, make_attrs<TransposeAttrs>([&](auto& a) { a.axes = std::move(axes); }), x->span);
}

// (N, S1, .., R) -> (B1 .. Bm, N, S1/B1, .., R) -> (N * B1 .. Bm, S1/B1, .., R)
Expr space_to_batch(const Expr& e) {
  const auto& a = attrs_of<SpaceToBatchNDAttrs>(e);
  auto in = static_shape(tensor_of(arg(e, 0)).shape), out = static_shape(tensor_of(e).shape);
  if (!in || !out) return e;
  const size_t m = a.block_shape.size();
  DataType dtype = tensor_of(e).dtype;
  Expr x = arg(e, 0);
  std::vector<std::vector<int64_t>> widths(in->size(), {0, 0});
  bool pads = false;
  for (size_t i = 0; i < m; ++i) {
    widths[i + 1] = a.paddings[i];
    pads |= a.paddings[i][0] != 0 || a.paddings[i][1] != 0;
  }
  if (pads)
    x = call("nn.pad", {x, full_constant(a.pad_value, dtype)},
             make_attrs<PadAttrs>([&](auto& p) { p.pad_width = widths; }), e->span);
  std::vector<int64_t> split{(*in)[0]}, order;
  for (size_t i = 0; i < m; ++i) {
    order.push_back(static_cast<int64_t>(2 * i + 2));
    split.push_back((*out)[i + 1]);
    split.push_back(a.block_shape[i]);
  }
  order.push_back(0);
  for (size_t i = 0; i < m; ++i) order.push_back(static_cast<int64_t>(2 * i + 1));
  for (size_t d = m + 1; d < in->size(); ++d) {
    order.push_back(static_cast<int64_t>(split.size()));
    split.push_back((*in)[d]);
  }
  return reshape_to(transposed(reshape_to(x, split), order), *out);
}

// (N * B1 .. Bm, S1, .., R) -> (B1 .. Bm, N, S1, .., R) -> (N, S1 * B1, .., R), cropped
Expr batch_to_space(const Expr& e) {
  const auto& a = attrs_of<BatchToSpaceNDAttrs>(e);
  auto in = static_shape(tensor_of(arg(e, 0)).shape), out = static_shape(tensor_of(e).shape);
  if (!in || !out) return e;
  const size_t m = a.block_shape.size();
  std::vector<int64_t> split = a.block_shape, order{static_cast<int64_t>(m)}, joined{(*out)[0]};
  split.push_back((*out)[0]);
  for (size_t i = 0; i < m; ++i) {
    order.push_back(static_cast<int64_t>(split.size()));
    order.push_back(static_cast<int64_t>(i));
    split.push_back((*in)[i + 1]);
    joined.push_back((*in)[i + 1] * a.block_shape[i]);
  }
  for (size_t d = m + 1; d < in->size(); ++d) {
    order.push_back(static_cast<int64_t>(split.size()));
    split.push_back((*in)[d]);
    joined.push_back((*in)[d]);
  }
  Expr x = reshape_to(transposed(reshape_to(arg(e, 0), split), order), joined);
  if (joined == *out) return x;
  return call("strided_slice", {x}, make_attrs<StridedSliceAttrs>([&](auto& s) {
                for (size_t i = 0; i < m; ++i) {
                  s.begin.push_back(a.crops[i][0]);
                  s.end.push_back(joined[i + 1] - a.crops[i][1]);
                }
                s.strides.assign(m, 1);
                s.axes.emplace();
                for (size_t i = 0; i < m; ++i) s.axes->push_back(static_cast<int64_t>(i + 1));
              }),
              e->span);
}

}  // namespace

Result<Module> legalize(const Module& module, PassContext&) {
  return rewrite_module(module, [](const Expr&, const Expr& e) -> Expr {
    if (is_call_to(e, "nn.space_to_batch_nd")) return space_to_batch(e);
    if (is_call_to(e, "nn.batch_to_space_nd")) return batch_to_space(e);
    return e;
  });
}

}  // namespace tilewright::relay
