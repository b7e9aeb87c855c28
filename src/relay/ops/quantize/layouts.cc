// SPDX-License-Identifier: Apache-2.0
// Layout rules of quantised operators: those of their plain forms, with scales and zero points.
#include "relay/ops/attrs.h"
#include "relay/ops/layout_inference.h"
#include "relay/ops/quantize/attrs_qnn.h"

namespace tilewright::relay {
namespace layouts {
namespace {

// Scales and zero points are per-channel vectors or scalars.
template <class A>
Inferred quantized_convolution(const LayoutQuery& q) {
  Inferred out = convolution<A>(q);
  while (out->in.size() < q.inputs()) out->in.emplace_back("C");
  return out;
}
Inferred requantized(const LayoutQuery& q) { return along_axis<RequantizeAttrs>(q); }
// Scales and zero points of both sides and of the result are scalars or vectors.
Inferred quantized_broadcast(const LayoutQuery& q) {
  if (q.inputs() != 8) return std::nullopt;
  const AxisLayouts before(q.before.begin(), q.before.begin() + 2);
  const std::vector<Type> types(q.types.begin(), q.types.begin() + 2);
  AxisLayouts now;
  if (q.now) now.assign(q.now->begin(), q.now->begin() + 2);
  Inferred out = broadcast({q.attrs, q.now ? &now : nullptr, before, types});
  if (!out) return out;
  while (out->in.size() < q.inputs()) out->in.emplace_back("C");
  return out;
}
Inferred quantized_join(const LayoutQuery& q) {
  if (q.types.size() != 5 || !as_tuple(q.types[0])) return std::nullopt;
  const auto n = static_cast<int64_t>(as_tuple(q.types[0])->fields.size());
  const AxisLayouts before(q.before.begin(), q.before.begin() + n);
  const std::vector<Type> types{q.types[0]};
  AxisLayouts now;
  if (q.now) now.assign(q.now->begin(), q.now->begin() + n);
  Inferred out = joined({q.attrs, q.now ? &now : nullptr, before, types});
  if (!out) return out;
  while (out->in.size() < q.inputs()) out->in.emplace_back("C");
  return out;
}

constexpr Entry kQuantizeLayouts[] = {
    {"qnn.add", quantized_broadcast},
    {"qnn.concatenate", quantized_join},
    {"qnn.conv2d", quantized_convolution<Conv2DAttrs>},
    {"qnn.conv2d_transpose", quantized_convolution<Conv2DTransposeAttrs>},
    {"qnn.dequantize", along_axis<DequantizeAttrs>},
    {"qnn.mul", quantized_broadcast},
    {"qnn.quantize", along_axis<QuantizeAttrs>},
    {"qnn.requantize", requantized},
    {"qnn.subtract", quantized_broadcast},
};

}  // namespace
}  // namespace layouts

void quantize_layouts(const FactsOf& facts) { layouts::add(facts, layouts::kQuantizeLayouts); }

}  // namespace tilewright::relay
