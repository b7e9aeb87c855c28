// SPDX-License-Identifier: Apache-2.0
// Products of bytes by constant bytes, in the form that integer kernels take.
#pragma once
#include <optional>

#include "ir/target.h"
#include "relay/expr.h"

namespace tilewright::relay {

// Whether a target has a kernel for nn.conv2d, nn.dense or nn.matmul of these attributes on bytes by constant bytes,
// whatever its operands are now.
bool has_byte_kernel(const Expr& e, const Target& target);

// Whether a target has kernels for qnn.conv2d and qnn.dense themselves, and keeps activations as bytes between them:
// small processors, whose memory a widened map would not fit.
bool keeps_bytes(const Target& target);
// Whether a real product, of what dequantized bytes and constant weights are, may become such a one; and whether a
// quantised product is one. Its scales do not matter to it.
bool may_keep_bytes(const Expr& product, const Target& target);
bool keeps_bytes(const Expr& product, const Target& target);

// nn.conv2d, nn.dense or nn.matmul of (x - z) by constant integers w, where x are int8 or uint8 and z is one number, as
//   the product of unsigned bytes by signed ones in int32, plus what z and a shift of w add to each output.
// int8 data are flipped to unsigned (z grows by 128), weights that leave int8 are shifted into it where they span no
// more than 255, and z stands in the padding. Nothing where the target has no kernel for it. `weight`: of the call, as
// a constant.
std::optional<Expr> as_byte_product(const Expr& e, const Expr& weight, const Target& target);

}  // namespace tilewright::relay
