// SPDX-License-Identifier: Apache-2.0
// FakeQuantizationToInteger: real arithmetic between qnn.dequantize and qnn.quantize becomes integer arithmetic.
// What: where everything between a quantize and the dequantizes above it has a rule, and every scale and zero point is
// constant, products become qnn.conv2d, qnn.conv2d_transpose, qnn.dense and qnn.batch_matmul, biases int32 constants,
// sums and elementwise functions their qnn siblings, what moves values moves integers, means become sums of a smaller
// scale; the quantize becomes a requantize, or nothing where scales agree.
// Requires: typed module.
// Ensures: results within one step of the output's scale per operator that rounds; a region with anything else in it
// stays whole, and with hard_fail is an error that names the operator. Values that others read stay real for them.
// Why here: on request, before CanonicalizeQnn. Not in the default pipeline, which keeps the model's own roundings.
// Test: tests/relay/passes/fake_quantization*.txt, tests/relay/fake_quantization_test.cc
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> fake_quantization_to_integer(const Module& module, PassContext& context);
// IntegerArithmetic: what quantised models say in real numbers and integers can do as exactly.
// What: nn.conv2d, nn.dense and nn.matmul of dequantized bytes by dequantized constant bytes become the dequantized
// sums
//   of their integers, where the target has kernels of bytes for them, or groups are so small that floats have the sums
//   exactly; maxima in windows and moves between a dequantize
//   and a quantize of the same scale become those of integers.
// Requires: typed module.
// Ensures: the model's own roundings: what is quantized is still quantized by its own scale, and only what stands
//   between, a sum that was rounded in float32, is exact.
// Why here: before CanonicalizeQnn, in the default pipeline. Test: tests/relay/passes/integer_arithmetic*.txt
Result<Module> integer_arithmetic(const Module& module, PassContext& context);
// Integers with their affine parameters; without a scale: a value that is not quantised.
struct AffineValue {
  Expr integers, scale, zero;
  DataType dtype;
  int64_t axis = -1;
};
// A script's rule for an operator: `call` is the call over integer operands, described by `operands`. Nothing if there
// is no rule. `optional` rules apply under use_qat only.
using FakeQuantizationRules = std::function<std::optional<AffineValue>(
    const std::string& op, const Expr& call, const std::vector<AffineValue>& operands, bool optional)>;
// use_qat: operators on dequantized operands become integer ones even without a following quantize. Errors, when
// hard_fail: UnsupportedOp.
Result<Module> fake_quantization_to_integer(const Module& module, bool hard_fail, bool use_qat = false,
                                            const FakeQuantizationRules& rules = {});
}  // namespace tilewright::relay
