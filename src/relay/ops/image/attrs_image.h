// SPDX-License-Identifier: Apache-2.0
// Attributes of padding, upsampling, resizing, sampling and block rearrangements.
#pragma once
#include "ir/attrs.h"

namespace tilewright::relay {

// nn.pad(data, pad_value): negative widths crop (ours).
struct PadAttrs : Attrs<PadAttrs> {
  static constexpr const char* kName = "relay.attrs.PadAttrs";
  std::vector<std::vector<int64_t>> pad_width;
  std::string pad_mode = "constant";
  template <class V>
  void fields(V& v) {
    v("pad_width", pad_width, "[before, after] of every axis");
    v("pad_mode", pad_mode, "constant, edge, reflect or wrap (ours)");
  }
};

// nn.mirror_pad
struct MirrorPadAttrs : Attrs<MirrorPadAttrs> {
  static constexpr const char* kName = "relay.attrs.MirrorPadAttrs";
  std::string mode = "SYMMETRIC";
  std::vector<std::vector<int64_t>> pad_width;
  template <class V>
  void fields(V& v) {
    v("mode", mode, "SYMMETRIC or REFLECT");
    v("pad_width", pad_width);
  }
};

// nn.upsampling
struct UpSamplingAttrs : Attrs<UpSamplingAttrs> {
  static constexpr const char* kName = "relay.attrs.UpSamplingAttrs";
  double scale_h = 1, scale_w = 1;
  std::string layout = "NCHW", method = "nearest_neighbor";
  bool align_corners = false;
  template <class V>
  void fields(V& v) {
    v("scale_h", scale_h);
    v("scale_w", scale_w);
    v("layout", layout);
    v("method", method, "nearest_neighbor, bilinear or bicubic");
    v("align_corners", align_corners);
  }
};

// nn.depth_to_space, nn.space_to_depth
struct SubPixelAttrs : Attrs<SubPixelAttrs> {
  static constexpr const char* kName = "relay.attrs.SubPixelAttrs";
  int64_t block_size = 1;
  std::string layout = "NCHW", mode = "DCR";
  template <class V>
  void fields(V& v) {
    v("block_size", block_size);
    v("layout", layout);
    v("mode", mode, "DCR or CDR, as ONNX (depth_to_space only; CRD is accepted for CDR)");
  }
};

// image.resize1d/2d/3d over the spatial axes of `layout`; results equal ONNX Resize.
template <class D>
struct ResizeFields : Attrs<D> {
  std::vector<int64_t> size;
  std::vector<double> roi, scales;
  std::string layout, method = "linear", coordinate_transformation_mode = "half_pixel", rounding_method;
  double cubic_alpha = -0.5;
  int64_t cubic_exclude = 0;
  double extrapolation_value = 0;
  bool antialias = false;
  std::string out_dtype;
  explicit ResizeFields(const char* l) : layout(l) {}
  // Copies how to sample, but not the sizes, from a resize of other axes.
  template <class O>
  void sample_as(const ResizeFields<O>& other) {
    method = other.method;
    coordinate_transformation_mode = other.coordinate_transformation_mode;
    rounding_method = other.rounding_method;
    cubic_alpha = other.cubic_alpha;
    cubic_exclude = other.cubic_exclude;
    antialias = other.antialias;
  }
  template <class V>
  void fields(V& v) {
    v("size", size, "output size of each spatial axis");
    v("roi", roi, "starts then ends of the spatial axes, normalised (tf_crop_and_resize)");
    v("layout", layout);
    v("method", method, "nearest_neighbor, linear or cubic");
    v("coordinate_transformation_mode", coordinate_transformation_mode,
      "half_pixel, align_corners, asymmetric, pytorch_half_pixel, half_pixel_symmetric or tf_crop_and_resize");
    v("rounding_method", rounding_method, "round_prefer_floor (default), round_prefer_ceil, floor or ceil");
    v("cubic_alpha", cubic_alpha);
    v("cubic_exclude", cubic_exclude, "1: weights outside the image are zero and the rest is renormalised");
    v("extrapolation_value", extrapolation_value, "outside the roi (tf_crop_and_resize)");
    v("out_dtype", out_dtype);
    v("scales", scales, "output over input size of each spatial axis; empty: from the sizes (ours)");
    v("antialias", antialias, "widen the filter when shrinking (ours)");
  }
};
struct Resize1DAttrs : ResizeFields<Resize1DAttrs> {
  static constexpr const char* kName = "relay.attrs.Resize1DAttrs";
  Resize1DAttrs() : ResizeFields("NCW") {}
};
struct Resize2DAttrs : ResizeFields<Resize2DAttrs> {
  static constexpr const char* kName = "relay.attrs.Resize2DAttrs";
  Resize2DAttrs() : ResizeFields("NCHW") {}
};
struct Resize3DAttrs : ResizeFields<Resize3DAttrs> {
  static constexpr const char* kName = "relay.attrs.Resize3DAttrs";
  Resize3DAttrs() : ResizeFields("NCDHW") {}
};

// image.grid_sample(data NCHW, grid (N, 2, H, W) in [-1, 1], x first)
struct GridSampleAttrs : Attrs<GridSampleAttrs> {
  static constexpr const char* kName = "relay.attrs.GridSampleAttrs";
  std::string method = "bilinear", layout = "NCHW", padding_mode = "zeros";
  bool align_corners = true;
  template <class V>
  void fields(V& v) {
    v("method", method, "bilinear, nearest or bicubic");
    v("layout", layout);
    v("padding_mode", padding_mode, "zeros, border or reflection");
    v("align_corners", align_corners);
  }
};

// image.affine_grid
struct AffineGridAttrs : Attrs<AffineGridAttrs> {
  static constexpr const char* kName = "relay.attrs.AffineGridAttrs";
  std::vector<int64_t> target_shape;
  template <class V>
  void fields(V& v) {
    v("target_shape", target_shape, "rows and columns of the grid");
  }
};

// image.crop_and_resize
struct CropAndResizeAttrs : Attrs<CropAndResizeAttrs> {
  static constexpr const char* kName = "relay.attrs.CropAndResizeAttrs";
  std::vector<int64_t> crop_size;
  std::string layout = "NCHW", method = "bilinear";
  double extrapolation_value = 0;
  std::string out_dtype;
  template <class V>
  void fields(V& v) {
    v("crop_size", crop_size, "rows and columns of every box");
    v("layout", layout, "NCHW or NHWC");
    v("method", method, "bilinear or nearest_neighbor");
    v("extrapolation_value", extrapolation_value, "outside the picture");
    v("out_dtype", out_dtype);
  }
};

// image.dilation2d
struct Dilation2DAttrs : Attrs<Dilation2DAttrs> {
  static constexpr const char* kName = "relay.attrs.Dilation2DAttrs";
  std::vector<int64_t> strides = {1, 1}, padding = {0, 0}, dilations = {1, 1};
  std::string data_layout = "NCHW", kernel_layout = "IHW", out_dtype;
  template <class V>
  void fields(V& v) {
    v("strides", strides);
    v("padding", padding, "1, 2 or 4 values: all sides, rows and columns, or top, left, bottom, right");
    v("dilations", dilations);
    v("data_layout", data_layout, "NCHW or NHWC");
    v("kernel_layout", kernel_layout, "IHW or HWI");
    v("out_dtype", out_dtype);
  }
};

}  // namespace tilewright::relay
