// SPDX-License-Identifier: Apache-2.0
// Attributes of convolutions with pre-transformed weights.
#pragma once
#include "relay/ops/nn/attrs_nn.h"

namespace tilewright::relay {

// nn.contrib_conv2d_winograd_weight_transform, nn.contrib_conv3d_winograd_weight_transform
struct ConvWinogradWeightTransformAttrs : Attrs<ConvWinogradWeightTransformAttrs> {
  static constexpr const char* kName = "relay.attrs.ConvWinogradWeightTransformAttrs";
  int64_t tile_size = 0;
  template <class V>
  void fields(V& v) {
    v("tile_size", tile_size, "outputs of a tile along each axis");
  }
};

// nn.contrib_conv2d_gemm_weight_transform
struct ConvGemmWeightTransformAttrs : Attrs<ConvGemmWeightTransformAttrs> {
  static constexpr const char* kName = "relay.attrs.ConvGemmWeightTransformAttrs";
  int64_t tile_rows = 0, tile_cols = 0;
  template <class V>
  void fields(V& v) {
    v("tile_rows", tile_rows, "output channels of a tile");
    v("tile_cols", tile_cols, "kernel elements of a tile");
  }
};

// nn.contrib_conv2d_winograd_without_weight_transform and nn.contrib_conv3d_...: the tile size, then a convolution's.
template <class D>
struct ConvWinogradFields : ConvFields<D> {
  int64_t tile_size = 0;
  using ConvFields<D>::ConvFields;
  template <class V>
  void fields(V& v) {
    v("tile_size", tile_size, "outputs of a tile along each axis");
    ConvFields<D>::fields(v);
  }
};
struct Conv2DWinogradAttrs : ConvWinogradFields<Conv2DWinogradAttrs> {
  static constexpr const char* kName = "relay.attrs.Conv2DWinogradAttrs";
  Conv2DWinogradAttrs() : ConvWinogradFields(2, "NCHW", "OIHW") {}
};
struct Conv3DWinogradAttrs : ConvWinogradFields<Conv3DWinogradAttrs> {
  static constexpr const char* kName = "relay.attrs.Conv3DWinogradAttrs";
  Conv3DWinogradAttrs() : ConvWinogradFields(3, "NCDHW", "OIDHW") {}
};

}  // namespace tilewright::relay
