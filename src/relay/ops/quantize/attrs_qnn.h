// SPDX-License-Identifier: Apache-2.0
// Attributes of quantised operators; quantised convolutions and products have those of their real counterparts.
#pragma once
#include "ir/attrs.h"

namespace tilewright::relay {

// The range of an integer dtype; uint64's is cut at INT64_MAX.
inline int64_t lowest(DataType t) { return t.is_uint() ? 0 : INT64_MIN >> (64 - t.bits); }
inline int64_t highest(DataType t) { return INT64_MAX >> (t.is_uint() && t.bits < 64 ? 63 - t.bits : 64 - t.bits); }

// qnn.quantize: scales and zero points are scalars or vectors along `axis`.
struct QuantizeAttrs : Attrs<QuantizeAttrs> {
  static constexpr const char* kName = "relay.attrs.QuantizeAttrs";
  std::string out_dtype = "int8";
  int64_t axis = -1;
  std::string rounding = "TONEAREST";
  template <class V>
  void fields(V& v) {
    v("out_dtype", out_dtype, "int8, uint8, int16 or int32");
    v("axis", axis, "the axis of a vector of scales");
    v("rounding", rounding, "TONEAREST: ties away from zero; TONEVEN: to even, as ONNX has it (ours)");
  }
};

// qnn.dequantize
struct DequantizeAttrs : Attrs<DequantizeAttrs> {
  static constexpr const char* kName = "relay.attrs.DequantizeAttrs";
  int64_t axis = -1;
  std::string out_dtype = "float32";
  template <class V>
  void fields(V& v) {
    v("axis", axis, "the axis of a vector of scales");
    v("out_dtype", out_dtype, "float32 or float16");
  }
};

// qnn.requantize
struct RequantizeAttrs : Attrs<RequantizeAttrs> {
  static constexpr const char* kName = "relay.attrs.RequantizeAttrs";
  int64_t axis = -1;
  std::string rounding = "None", compute_dtype = "None", out_dtype = "int8";
  template <class V>
  void fields(V& v) {
    v("axis", axis, "the axis of a vector of input scales");
    v("rounding", rounding, "UPWARD (None): ties towards plus infinity; TONEAREST: away from zero");
    v("compute_dtype", compute_dtype, "accepted; every one gives the exact product, rounded once");
    v("out_dtype", out_dtype, "int8, uint8, int16 or int32");
  }
};

// qnn.add, subtract and mul: the axes of per-channel scales.
struct BroadcastAttrs : Attrs<BroadcastAttrs> {
  static constexpr const char* kName = "relay.attrs.BroadcastAttrs";
  int64_t lhs_axis = -1, rhs_axis = -1;
  template <class V>
  void fields(V& v) {
    v("lhs_axis", lhs_axis);
    v("rhs_axis", rhs_axis);
  }
};

// relay.op.annotation.simulated_quantize
struct SimulatedQuantizeAttrs : Attrs<SimulatedQuantizeAttrs> {
  static constexpr const char* kName = "relay.attrs.SimulatedQuantizeAttrs";
  int64_t kind = 1;
  bool sign = true;
  std::string rounding = "round";
  template <class V>
  void fields(V& v) {
    v("kind", kind, "1: an input, 2: a weight, 3: a result");
    v("sign", sign, "of both signs");
    v("rounding", rounding, "round");
  }
};

}  // namespace tilewright::relay
