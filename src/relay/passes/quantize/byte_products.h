// SPDX-License-Identifier: Apache-2.0
// 8-bit products by constant weights, in the form that integer kernels take: words of four bytes where the processor
// has an instruction for them, else pairs of int16 on x86.
#pragma once
#include <optional>

#include "ir/target.h"
#include "relay/expr.h"

namespace tilewright::relay {

// Whether a target has an 8-bit kernel for an nn.conv2d, nn.dense or nn.matmul with these attributes and constant
// weights, whatever its operand types are now, and that is faster than its float kernels.
bool gains_by_bytes(const Expr& e, const Target& target);

// Whether a target has kernels for qnn.conv2d and qnn.dense themselves and keeps activations as bytes in between: small
// processors, whose memory could not hold a widened map.
bool keeps_bytes(const Target& target);
// Whether a real product of dequantized bytes and constant weights, or a quantised product, can become an integer
// product on this target. That does not depend on its scales.
bool may_keep_bytes(const Expr& product, const Target& target);
bool keeps_bytes(const Expr& product, const Target& target);

// Rewrites nn.conv2d, nn.dense or nn.matmul of (x - z) by constant integers w, where x is int8 or uint8 and z is one
// number, to a uint8 x int8 product in int32, plus a per-output correction for z and for a shift of w. int8 data are
// flipped to uint8 (z grows by 128); weights outside of int8 are shifted into it if they span at most 255; padding is
// filled with z. Without an instruction for bytes both operands become int16, z subtracted from x. Nothing if the
// target has no kernel for it. `weight`: the call's weight as a constant.
std::optional<Expr> as_byte_product(const Expr& e, const Expr& weight, const Target& target);
// Whether a product is already one of int16 that has such a kernel.
bool is_half_product(const Expr& e, const Tensor& weight, const Target& target);

}  // namespace tilewright::relay
