// SPDX-License-Identifier: Apache-2.0
// The classic quantisation of float networks, in three passes (docs/relay.md):
// QuantizeAnnotate: simulated_quantize stands where values become small integers.
// What: operands of convolutions and matrix products, and what meets their results in additions and concatenations, in
// every function but Primitive ones; kind says whether it is an input, a weight or a result. Scales are still 1.
// QuantizeCalibrate: the simulated quantisations get their scales.
// What: weights from their own values (the next power of two above the largest one, or that value), the others
// global_scale or the scales given; the clipping range from the number of bits.
// QuantizeRealize: simulated quantisation becomes integer arithmetic.
// What: integers of the narrow types go into products, sums are int32; changes of scale are shifts where both scales
// are powers of two, else fixed-point multiplications; operators without an integer form take floats again.
// Requires: typed modules; weights that are constants.
// Why not in the default pipeline: it trades accuracy, and wants data to calibrate with.
// Test: tests/relay/passes/quantize_*.txt
#pragma once
#include <span>
#include <vector>

#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {

struct QuantizeOptions {
  int nbit_input = 8, nbit_weight = 8;
  DataType dtype_input = kInt8, dtype_weight = kInt8, dtype_activation = kInt32;
  double global_scale = 8;
  bool max_weight_scale = false;  // the largest absolute weight instead of the next power of two
  bool skip_dense_layer = true;
  std::vector<int64_t> skip_conv_layers = {0};  // indices of convolutions to skip, in order
  bool round_for_shift = true;
  bool to_nearest = false;  // rounds ties away from zero instead of upward
};

// The role of a simulated quantisation (attribute `kind`).
enum class QuantizeKind : int { kInput = 1, kWeight = 2, kActivation = 3 };

Result<Module> quantize_annotate(const Module& module, const QuantizeOptions& options);
// activation_scales: one per non-weight simulated quantisation, in the order of simulated_inputs; or none, for
// global_scale everywhere. Errors: InvalidArgument (a wrong number of scales, weights that are not constant).
Result<Module> quantize_calibrate(const Module& module, const QuantizeOptions& options,
                                  std::span<const double> activation_scales = {});
Result<Module> quantize_realize(const Module& module, const QuantizeOptions& options);
// main returning, as a tuple, the unquantised inputs of all simulated quantisations other than weights.
Result<Module> simulated_inputs(const Module& module);

// Uses the default options.
Result<Module> quantize_annotate(const Module& module, PassContext& context);
Result<Module> quantize_calibrate(const Module& module, PassContext& context);
Result<Module> quantize_realize(const Module& module, PassContext& context);

}  // namespace tilewright::relay
