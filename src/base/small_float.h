// SPDX-License-Identifier: Apache-2.0
// Conversion between double and the floating formats of 16 bits and fewer: float16, bfloat16, float8 (OCP and
// FNUZ variants, E8M0 scales) and float4. Bit layouts: IEEE 754-2019; OCP 8-bit and MX formats; ONNX "Float stored in 8
// bits".
#pragma once
#include <cstdint>

#include "base/dtype.h"

namespace tilewright {

struct SmallFloatFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  bool has_sign;
  enum Special { kIeee, kFiniteNan, kUnsignedZero, kNone, kScaleOnly } special;
};
inline constexpr SmallFloatFormat kHalfFormat{5, 10, 15, true, SmallFloatFormat::kIeee};
inline constexpr SmallFloatFormat kBFloatFormat{8, 7, 127, true, SmallFloatFormat::kIeee};

// The layout of a float8 or float4 type code; other codes are an internal error.
SmallFloatFormat small_float_format(TypeCode code);
double small_float_decode(SmallFloatFormat format, unsigned bits);
// Round to nearest even. Out of range: infinity where the format has it, otherwise the largest finite value
// (the saturating cast of ONNX). NaN becomes the format's NaN (zero where it has none).
unsigned small_float_encode(SmallFloatFormat format, double value);

}  // namespace tilewright
