// SPDX-License-Identifier: Apache-2.0
// Simulates the effect of quantisation on a value, in floats.
#include "relay/ops/composition.h"
#include "relay/ops/quantize/attrs_qnn.h"

namespace tilewright::relay {
namespace {

// clip(round(x / scale)) * scale.
Result<Expr> expand_simulated_quantize(const TypeArgs& args) {
  const auto& a = attrs_of<SimulatedQuantizeAttrs>(args);
  if (a.rounding != "round") return type_error(format("the rounding '{}' is not known; there is round", a.rounding));
  if (!args.tensor(0).dtype.is_float()) return type_error("simulated quantisation is of floats");
  Composition c(args);
  const DataType dtype = args.tensor(0).dtype;
  auto beside = [&](size_t i) { return c.cast(c[i], dtype); };
  Expr whole = c.call("round", {c.divide(c[0], beside(1))});
  Expr bounded = c.call("minimum", {c.call("maximum", {whole, beside(2)}), beside(3)});
  return c.result(c.times(bounded, beside(1)));
}

}  // namespace

std::vector<OpDef> composed_quantize_ops() {
  return {define_composed("relay.op.annotation.simulated_quantize",
                          "A value as it will be after quantisation: clip(round(data / dom_scale)) * dom_scale.",
                          {{"data", "floats"},
                           {"dom_scale", "a scalar: the step between neighbours"},
                           {"clip_min", "a scalar: the least whole number"},
                           {"clip_max", "a scalar: the greatest"}},
                          OpPattern::kElemWise, expand_simulated_quantize, make_default_attrs<SimulatedQuantizeAttrs>)};
}

}  // namespace tilewright::relay
