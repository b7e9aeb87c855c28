// SPDX-License-Identifier: Apache-2.0
// Attributes of composed operators for training: losses, gradients, dilation, correlation.
#pragma once
#include "ir/attrs.h"

namespace tilewright::relay {

struct NLLLossAttrs : Attrs<NLLLossAttrs> {
  static constexpr const char* kName = "relay.attrs.NLLLossAttrs";
  std::string reduction = "mean";
  int64_t ignore_index = -100;
  template <class V>
  void fields(V& v) {
    v("reduction", reduction, "mean, sum or none");
    v("ignore_index", ignore_index, "targets of this number count nothing");
  }
};

struct DilateAttrs : Attrs<DilateAttrs> {
  static constexpr const char* kName = "relay.attrs.DilateAttrs";
  std::vector<int64_t> strides;
  double dilation_value = 0;
  template <class V>
  void fields(V& v) {
    v("strides", strides, "of every axis; 1 leaves it alone");
    v("dilation_value", dilation_value, "what stands between the elements");
  }
};

struct FIFOBufferAttrs : Attrs<FIFOBufferAttrs> {
  static constexpr const char* kName = "relay.attrs.FIFOBufferAttrs";
  int64_t axis = 0;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
  }
};

struct CorrelationAttrs : Attrs<CorrelationAttrs> {
  static constexpr const char* kName = "relay.attrs.CorrelationAttrs";
  int64_t kernel_size = 1, max_displacement = 1, stride1 = 1, stride2 = 1;
  std::vector<int64_t> padding = {0, 0};
  bool is_multiply = true;
  std::string layout = "NCHW";
  template <class V>
  void fields(V& v) {
    v("kernel_size", kernel_size);
    v("max_displacement", max_displacement);
    v("stride1", stride1, "between places of the first image");
    v("stride2", stride2, "between displacements of the second");
    v("padding", padding, "one for all, two for height and width, or top, left, bottom, right");
    v("is_multiply", is_multiply, "products; otherwise absolute differences");
    v("layout", layout);
  }
};

struct UpSampling3DAttrs : Attrs<UpSampling3DAttrs> {
  static constexpr const char* kName = "relay.attrs.UpSampling3DAttrs";
  double scale_d = 1, scale_h = 1, scale_w = 1;
  std::string layout = "NCDHW", method = "nearest_neighbor", coordinate_transformation_mode = "half_pixel";
  template <class V>
  void fields(V& v) {
    v("scale_d", scale_d);
    v("scale_h", scale_h);
    v("scale_w", scale_w);
    v("layout", layout);
    v("method", method, "nearest_neighbor or trilinear");
    v("coordinate_transformation_mode", coordinate_transformation_mode, "of trilinear");
  }
};

struct FixedPointMultiplyAttrs : Attrs<FixedPointMultiplyAttrs> {
  static constexpr const char* kName = "relay.attrs.FixedPointMultiplyAttrs";
  int64_t multiplier = 0, shift = 0;
  template <class V>
  void fields(V& v) {
    v("multiplier", multiplier, "in units of 2^-31");
    v("shift", shift, "times 2^shift");
  }
};

struct StftAttrs : Attrs<StftAttrs> {
  static constexpr const char* kName = "relay.attrs.StftAttrs";
  int64_t n_fft = -1, hop_length = -1, win_length = -1;
  bool normalized = false, onesided = true;
  template <class V>
  void fields(V& v) {
    v("n_fft", n_fft, "the transform's length");
    v("hop_length", hop_length, "between frames; -1: a quarter of n_fft");
    v("win_length", win_length, "of the window, in the middle of the frame; -1: n_fft");
    v("normalized", normalized, "divided by the root of n_fft");
    v("onesided", onesided, "n_fft / 2 + 1 frequencies; the others mirror them");
  }
};

struct DFTAttrs : Attrs<DFTAttrs> {
  static constexpr const char* kName = "relay.attrs.DFTAttrs";
  bool inverse = false;
  template <class V>
  void fields(V& v) {
    v("inverse", inverse);
  }
};

struct DebugAttrs : Attrs<DebugAttrs> {
  static constexpr const char* kName = "relay.attrs.DebugAttrs";
  std::string debug_func;
  template <class V>
  void fields(V& v) {
    v("debug_func", debug_func, "a name; nothing is called");
  }
};

struct CastHintAttrs : Attrs<CastHintAttrs> {
  static constexpr const char* kName = "relay.attrs.CastHintAttrs";
  DataType dtype = kFloat32;
  template <class V>
  void fields(V& v) {
    v("dtype", dtype, "a hint for other code generators");
  }
};

}  // namespace tilewright::relay
