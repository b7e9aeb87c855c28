// SPDX-License-Identifier: Apache-2.0
// Attributes of the random operators.
#pragma once
#include "ir/attrs.h"

namespace tilewright::relay {

struct ThreefryGenerateAttrs : Attrs<ThreefryGenerateAttrs> {
  static constexpr const char* kName = "relay.attrs.ThreefryGenerateAttrs";
  std::vector<int64_t> out_shape;
  template <class V>
  void fields(V& v) {
    v("out_shape", out_shape);
  }
};

template <class D>
struct DrawFields : Attrs<D> {
  std::vector<int64_t> out_shape;
  DataType out_dtype = kFloat32;
  template <class V>
  void fields(V& v) {
    v("out_shape", out_shape);
    v("out_dtype", out_dtype, "float32 or float64");
  }
};
struct UniformAttrs : DrawFields<UniformAttrs> {
  static constexpr const char* kName = "relay.attrs.UniformAttrs";
};
struct NormalAttrs : DrawFields<NormalAttrs> {
  static constexpr const char* kName = "relay.attrs.NormalAttrs";
};

}  // namespace tilewright::relay
