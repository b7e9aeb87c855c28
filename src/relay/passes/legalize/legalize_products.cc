// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/legalize/legalize_products.h"

#include "relay/calls.h"

namespace tilewright::relay {
namespace {

using Ints = std::vector<int64_t>;

int64_t product_of(const Ints& extents) {
  int64_t n = 1;
  for (int64_t extent : extents) n *= extent;
  return n;
}

// Accumulation dtype: integers below 32 bits are summed in int32.
DataType summed_in(DataType t) { return t.is_integral() && t.bits < 32 ? DataType(kInt32) : t; }

// Broadcasts the axes before the last two to `batch`.
Expr with_batch(const Expr& e, const Ints& batch) {
  auto shape = static_shape(tensor_of(e).shape);
  Ints wanted = batch;
  wanted.insert(wanted.end(), shape->end() - 2, shape->end());
  const int64_t own = product_of(Ints(shape->begin(), shape->end() - 2)), all = product_of(batch);
  if (own == 1 || own == all) return e;  // kernels support these directly
  return call("broadcast_to", {e}, make_attrs<InitOpAttrs>([&](auto& a) { a.shape = wanted; }), e->span);
}

// uint8 times a constant int8 matrix, or int16 times a constant one, with int32 sums: kernels support that directly.
bool is_product_of_words(const Expr& e) {
  if (!is_call_to(e, "nn.dense") && !is_call_to(e, "nn.matmul")) return false;
  if (is_call_to(e, "nn.matmul") && attrs_of<MatmulAttrs>(e).transpose_a) return false;
  const Tensor* w = constant_data(arg(e, 1));
  const DataType x = tensor_of(arg(e, 0)).dtype;
  return w && w->size() > 1 && tensor_of(e).dtype == kInt32 &&
         ((x == kUInt8 && w->dtype() == kInt8) || (x == kInt16 && w->dtype() == kInt16));
}

}  // namespace

Expr legal_product(const Expr& e) {
  if (is_product_of_words(e)) return e;
  const DataType a = tensor_of(arg(e, 0)).dtype, b = tensor_of(arg(e, 1)).dtype, out = tensor_of(e).dtype;
  Expr x = arg(e, 0), y = arg(e, 1);
  if (a != b || summed_in(a).bits < out.bits) x = cast(x, summed_in(out)), y = cast(y, summed_in(out));
  auto shape = static_shape(tensor_of(e).shape);
  if (is_call_to(e, "nn.batch_matmul") && shape && static_shape(tensor_of(x).shape) &&
      static_shape(tensor_of(y).shape)) {
    const Ints batch(shape->begin(), shape->end() - 2);
    x = with_batch(x, batch), y = with_batch(y, batch);
  }
  if (x == arg(e, 0) && y == arg(e, 1)) return e;
  auto made = try_call(called_op(e)->name, {x, y}, as<CallNode>(e)->attrs, e->span);
  if (!made.ok()) return e;
  return tensor_of(*made).dtype == out ? *made : cast(*made, out);
}

}  // namespace tilewright::relay
