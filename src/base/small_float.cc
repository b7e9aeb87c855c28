// SPDX-License-Identifier: Apache-2.0
#include "base/small_float.h"

#include <cmath>
#include <limits>

namespace tilewright {

SmallFloatFormat small_float_format(TypeCode code) {
  using F = SmallFloatFormat;
  switch (code) {
    case TypeCode::kFloat8E4M3FN:
      return {4, 3, 7, true, F::kFiniteNan};
    case TypeCode::kFloat8E4M3FNUZ:
      return {4, 3, 8, true, F::kUnsignedZero};
    case TypeCode::kFloat8E5M2:
      return {5, 2, 15, true, F::kIeee};
    case TypeCode::kFloat8E5M2FNUZ:
      return {5, 2, 16, true, F::kUnsignedZero};
    case TypeCode::kFloat8E8M0:
      return {8, 0, 127, false, F::kScaleOnly};
    case TypeCode::kFloat4E2M1:
      return {2, 1, 1, true, F::kNone};
    case TypeCode::kInt:
    case TypeCode::kUInt:
    case TypeCode::kFloat:
    case TypeCode::kBFloat:
    case TypeCode::kBool:
    case TypeCode::kComplex:
    case TypeCode::kString:
    case TypeCode::kHandle:
      break;
  }
  internal_error(__FILE__, __LINE__, "not a small float");
}

double small_float_decode(SmallFloatFormat f, unsigned bits) {
  int e_max = (1 << f.exponent_bits) - 1, m_max = (1 << f.mantissa_bits) - 1;
  bool negative = f.has_sign && ((bits >> (f.exponent_bits + f.mantissa_bits)) & 1);
  int e = static_cast<int>(bits >> f.mantissa_bits) & e_max, m = static_cast<int>(bits) & m_max;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  switch (f.special) {
    case SmallFloatFormat::kIeee:
      if (e == e_max) return m ? nan : (negative ? -1 : 1) * std::numeric_limits<double>::infinity();
      break;
    case SmallFloatFormat::kFiniteNan:
      if (e == e_max && m == m_max) return nan;
      break;
    case SmallFloatFormat::kUnsignedZero:
      if (negative && e == 0 && m == 0) return nan;
      break;
    case SmallFloatFormat::kScaleOnly:
      return e == e_max ? nan : std::ldexp(1.0, e - f.bias);
    case SmallFloatFormat::kNone:
      break;
  }
  double v = e == 0 ? std::ldexp(m, 1 - f.bias - f.mantissa_bits)
                    : std::ldexp((1 << f.mantissa_bits) + m, e - f.bias - f.mantissa_bits);
  return negative ? -v : v;
}

unsigned small_float_encode(SmallFloatFormat f, double value) {
  int e_max = (1 << f.exponent_bits) - 1;
  unsigned m_max = (1u << f.mantissa_bits) - 1, sign_bit = 1u << (f.exponent_bits + f.mantissa_bits);
  unsigned largest = (static_cast<unsigned>(e_max) << f.mantissa_bits) | m_max, nan = largest, inf = largest;
  switch (f.special) {
    case SmallFloatFormat::kIeee:
      inf = static_cast<unsigned>(e_max) << f.mantissa_bits;
      nan = inf | (1u << (f.mantissa_bits - 1));
      largest = inf - 1;
      break;
    case SmallFloatFormat::kFiniteNan:
      inf = largest = largest - 1;
      break;
    case SmallFloatFormat::kUnsignedZero:
      nan = sign_bit;
      break;
    case SmallFloatFormat::kScaleOnly:
      nan = static_cast<unsigned>(e_max);
      inf = largest = nan - 1;
      break;
    case SmallFloatFormat::kNone:
      nan = 0;
      break;
  }
  if (std::isnan(value)) return nan;
  unsigned sign = f.has_sign && std::signbit(value) ? sign_bit : 0;
  double a = std::fabs(value);
  if (std::isinf(value)) return sign | inf;
  unsigned code = 0;
  if (a != 0) {
    int e = std::max(std::ilogb(a), 1 - f.bias);
    if (f.special == SmallFloatFormat::kScaleOnly) e = std::max(std::ilogb(a), -f.bias);
    // nearbyint rounds half to even in the default rounding mode; a carry propagates into the exponent.
    double scaled = std::nearbyint(std::ldexp(a, f.mantissa_bits - e));
    if (e > e_max - f.bias + 1) return sign | inf;
    code = f.special == SmallFloatFormat::kScaleOnly
               ? static_cast<unsigned>(e + f.bias) + (scaled >= 2 ? 1 : 0)
               : (static_cast<unsigned>(e + f.bias - 1) << f.mantissa_bits) + static_cast<unsigned>(scaled);
    if (code > largest) code = inf;
  }
  if (f.special == SmallFloatFormat::kUnsignedZero && code == 0) return 0;
  return sign | code;
}

}  // namespace tilewright
