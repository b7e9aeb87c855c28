// SPDX-License-Identifier: Apache-2.0
// Attributes of convolutions, matrix products, pools and normalisations.
#pragma once
#include "ir/attrs.h"

namespace tilewright::relay {

// Padding: one value per spatial side, [top, left, bottom, right] (all begins, then all ends); one value for all sides;
// or n values (n spatial axes), each for both sides of an axis.
template <class D>
struct ConvFields : Attrs<D> {
  std::vector<int64_t> strides, padding, dilation;
  int64_t groups = 1;
  std::optional<int64_t> channels;
  std::optional<std::vector<int64_t>> kernel_size;
  std::string data_layout, kernel_layout, out_layout, out_dtype;
  ConvFields(size_t spatial, const char* data, const char* kernel)
      : strides(spatial, 1), padding(spatial, 0), dilation(spatial, 1), data_layout(data), kernel_layout(kernel) {}
  template <class V>
  void fields(V& v) {
    v("strides", strides);
    v("padding", padding, "begins then ends of the spatial axes");
    v("dilation", dilation);
    v("groups", groups);
    v("channels", channels, "output channels (logical)");
    v("kernel_size", kernel_size);
    v("data_layout", data_layout);
    v("kernel_layout", kernel_layout);
    v("out_layout", out_layout, "empty: data_layout");
    v("out_dtype", out_dtype, "empty: the data's");
  }
};
struct Conv1DAttrs : ConvFields<Conv1DAttrs> {
  static constexpr const char* kName = "relay.attrs.Conv1DAttrs";
  Conv1DAttrs() : ConvFields(1, "NCW", "OIW") {}
};
struct Conv2DAttrs : ConvFields<Conv2DAttrs> {
  static constexpr const char* kName = "relay.attrs.Conv2DAttrs";
  Conv2DAttrs() : ConvFields(2, "NCHW", "OIHW") {}
};
struct Conv3DAttrs : ConvFields<Conv3DAttrs> {
  static constexpr const char* kName = "relay.attrs.Conv3DAttrs";
  Conv3DAttrs() : ConvFields(3, "NCDHW", "OIDHW") {}
};

// nn.contrib_conv2d_NCHWc and nn.contrib_depthwise_conv2d_NCHWc. data_layout "NCHW16c" or "NCHW" (first layer),
// out_layout "NCHW16c", kernel_layout "OIHW16i16o" ("OIHW16o" when the data is NCHW; "OIHW1i16o" for depthwise).
// channels and in_channels are the logical counts; the padding lanes are zero in every tensor.
struct Conv2DNCHWcAttrs : ConvFields<Conv2DNCHWcAttrs> {
  static constexpr const char* kName = "relay.attrs.Conv2DNCHWcAttrs";
  std::optional<int64_t> in_channels;
  Conv2DNCHWcAttrs() : ConvFields(2, "NCHW16c", "OIHW16i16o") {}
  template <class V>
  void fields(V& v) {
    ConvFields::fields(v);
    v("in_channels", in_channels, "input channels (logical; ours)");
  }
};

// nn.conv*_transpose. The kernel is (C, O/groups, ...), as in ONNX and PyTorch: "IOHW". The classic default "OIHW"
// means the same; its letters never described this operator's kernel.
template <class D>
struct ConvTransposeFields : Attrs<D> {
  std::optional<int64_t> channels;
  std::optional<std::vector<int64_t>> kernel_size;
  std::vector<int64_t> strides, padding, output_padding, dilation;
  int64_t groups = 1;
  std::string data_layout, kernel_layout, out_layout, out_dtype;
  ConvTransposeFields(size_t spatial, const char* data, const char* kernel)
      : strides(spatial, 1),
        padding(spatial, 0),
        output_padding(spatial, 0),
        dilation(spatial, 1),
        data_layout(data),
        kernel_layout(kernel) {}
  template <class V>
  void fields(V& v) {
    v("channels", channels);
    v("kernel_size", kernel_size);
    v("strides", strides);
    v("padding", padding, "begins then ends of the spatial axes");
    v("output_padding", output_padding, "extra size at the end of each spatial axis");
    v("dilation", dilation);
    v("groups", groups);
    v("data_layout", data_layout);
    v("kernel_layout", kernel_layout);
    v("out_layout", out_layout);
    v("out_dtype", out_dtype);
  }
};
struct Conv1DTransposeAttrs : ConvTransposeFields<Conv1DTransposeAttrs> {
  static constexpr const char* kName = "relay.attrs.Conv1DTransposeAttrs";
  Conv1DTransposeAttrs() : ConvTransposeFields(1, "NCW", "OIW") {}
};
struct Conv2DTransposeAttrs : ConvTransposeFields<Conv2DTransposeAttrs> {
  static constexpr const char* kName = "relay.attrs.Conv2DTransposeAttrs";
  Conv2DTransposeAttrs() : ConvTransposeFields(2, "NCHW", "OIHW") {}
};
struct Conv3DTransposeAttrs : ConvTransposeFields<Conv3DTransposeAttrs> {
  static constexpr const char* kName = "relay.attrs.Conv3DTransposeAttrs";
  Conv3DTransposeAttrs() : ConvTransposeFields(3, "NCDHW", "OIDHW") {}
};

// nn.dense: data (..., K) x weight (N, K) -> (..., N)
struct DenseAttrs : Attrs<DenseAttrs> {
  static constexpr const char* kName = "relay.attrs.DenseAttrs";
  std::optional<int64_t> units;
  std::string out_dtype;
  template <class V>
  void fields(V& v) {
    v("units", units);
    v("out_dtype", out_dtype);
  }
};

// nn.block_dense: a weight of `bits` (4 or 8) quantised in blocks of `block` (a multiple of 16) along its rows; units
// is its N.
struct BlockDenseAttrs : Attrs<BlockDenseAttrs> {
  static constexpr const char* kName = "relay.attrs.BlockDenseAttrs";
  int64_t bits = 4, block = 32;
  template <class V>
  void fields(V& v) {
    v("bits", bits);
    v("block", block);
  }
};

// nn.contrib_dense_pack: weight (ceil(N/v), K, v) for weight_layout "NC{v}n"; units is the logical N.
struct DensePackAttrs : Attrs<DensePackAttrs> {
  static constexpr const char* kName = "relay.attrs.DensePackAttrs";
  std::optional<int64_t> units;
  std::string out_dtype, weight_layout = "NC";
  template <class V>
  void fields(V& v) {
    v("units", units);
    v("out_dtype", out_dtype);
    v("weight_layout", weight_layout);
  }
};

// nn.matmul: 2-D (or batched left operand with a 2-D right one)
struct MatmulAttrs : Attrs<MatmulAttrs> {
  static constexpr const char* kName = "relay.attrs.MatmulAttrs";
  std::optional<int64_t> units;
  std::string out_dtype;
  bool transpose_a = false, transpose_b = false;
  template <class V>
  void fields(V& v) {
    v("units", units);
    v("out_dtype", out_dtype);
    v("transpose_a", transpose_a);
    v("transpose_b", transpose_b);
  }
};

// nn.batch_matmul: the leading axes broadcast (numpy rules); classic default multiplies by the transpose of b.
struct BatchMatmulAttrs : Attrs<BatchMatmulAttrs> {
  static constexpr const char* kName = "relay.attrs.BatchMatmulAttrs";
  std::string out_dtype;
  bool transpose_a = false, transpose_b = true;
  template <class V>
  void fields(V& v) {
    v("out_dtype", out_dtype);
    v("transpose_a", transpose_a);
    v("transpose_b", transpose_b);
  }
};

template <class D, bool kAverage>
struct PoolFields : Attrs<D> {
  std::vector<int64_t> pool_size, strides, dilation, padding;
  std::string layout, out_layout;
  bool ceil_mode = false, count_include_pad = false;
  PoolFields(size_t spatial, const char* l)
      : pool_size(spatial, 1), strides(spatial, 1), dilation(spatial, 1), padding(spatial, 0), layout(l) {}
  template <class V>
  void fields(V& v) {
    v("pool_size", pool_size);
    v("strides", strides);
    v("dilation", dilation);
    v("padding", padding, "begins then ends of the spatial axes");
    v("layout", layout, "NCHW, NHWC or NCHW16c");
    v("out_layout", out_layout);
    v("ceil_mode", ceil_mode, "round the output size up; a window may then hang over the end");
    if constexpr (kAverage) v("count_include_pad", count_include_pad, "padding counts as values");
  }
};
#define TW_POOL_ATTRS(name, average, spatial, layout)          \
  struct name : PoolFields<name, average> {                    \
    static constexpr const char* kName = "relay.attrs." #name; \
    name() : PoolFields(spatial, layout) {}                    \
  };
TW_POOL_ATTRS(MaxPool1DAttrs, false, 1, "NCW")
TW_POOL_ATTRS(MaxPool2DAttrs, false, 2, "NCHW")
TW_POOL_ATTRS(MaxPool3DAttrs, false, 3, "NCDHW")
TW_POOL_ATTRS(AvgPool1DAttrs, true, 1, "NCW")
TW_POOL_ATTRS(AvgPool2DAttrs, true, 2, "NCHW")
TW_POOL_ATTRS(AvgPool3DAttrs, true, 3, "NCDHW")
#undef TW_POOL_ATTRS

// nn.global_max_pool2d, nn.global_avg_pool2d
struct GlobalPool2DAttrs : Attrs<GlobalPool2DAttrs> {
  static constexpr const char* kName = "relay.attrs.GlobalPool2DAttrs";
  std::string layout = "NCHW", out_layout;
  template <class V>
  void fields(V& v) {
    v("layout", layout);
    v("out_layout", out_layout);
  }
};

template <class D>
struct AdaptivePoolFields : Attrs<D> {
  std::vector<int64_t> output_size;
  std::string layout, out_layout;
  explicit AdaptivePoolFields(const char* l) : layout(l) {}
  template <class V>
  void fields(V& v) {
    v("output_size", output_size, "empty: as the input; one value: for every axis");
    v("layout", layout);
    v("out_layout", out_layout);
  }
};
struct AdaptivePool1DAttrs : AdaptivePoolFields<AdaptivePool1DAttrs> {
  static constexpr const char* kName = "relay.attrs.AdaptivePool1DAttrs";
  AdaptivePool1DAttrs() : AdaptivePoolFields("NCW") {}
};
struct AdaptivePool2DAttrs : AdaptivePoolFields<AdaptivePool2DAttrs> {
  static constexpr const char* kName = "relay.attrs.AdaptivePool2DAttrs";
  AdaptivePool2DAttrs() : AdaptivePoolFields("NCHW") {}
};
struct AdaptivePool3DAttrs : AdaptivePoolFields<AdaptivePool3DAttrs> {
  static constexpr const char* kName = "relay.attrs.AdaptivePool3DAttrs";
  AdaptivePool3DAttrs() : AdaptivePoolFields("NCDHW") {}
};

// nn.softmax, nn.log_softmax
struct SoftmaxAttrs : Attrs<SoftmaxAttrs> {
  static constexpr const char* kName = "relay.attrs.SoftmaxAttrs";
  int64_t axis = -1;
  template <class V>
  void fields(V& v) {
    v("axis", axis, "the axis to normalise");
  }
};

// nn.batch_norm(data, gamma, beta, moving_mean, moving_var) -> (out, moving_mean, moving_var)
struct BatchNormAttrs : Attrs<BatchNormAttrs> {
  static constexpr const char* kName = "relay.attrs.BatchNormAttrs";
  int64_t axis = 1;
  double epsilon = 1e-5;
  bool center = true, scale = true;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
    v("epsilon", epsilon);
    v("center", center, "add beta");
    v("scale", scale, "multiply by gamma");
  }
};

// nn.layer_norm(data, gamma, beta): normalises `axis`; gamma and beta run along it
struct LayerNormAttrs : Attrs<LayerNormAttrs> {
  static constexpr const char* kName = "relay.attrs.LayerNormAttrs";
  int64_t axis = -1;
  double epsilon = 1e-5;
  bool center = true, scale = true;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
    v("epsilon", epsilon);
    v("center", center);
    v("scale", scale);
  }
};

// nn.instance_norm(data, gamma, beta): per sample and channel over every other axis
struct InstanceNormAttrs : Attrs<InstanceNormAttrs> {
  static constexpr const char* kName = "relay.attrs.InstanceNormAttrs";
  int64_t axis = 1;
  double epsilon = 1e-5;
  bool center = true, scale = true;
  template <class V>
  void fields(V& v) {
    v("axis", axis, "the channel axis");
    v("epsilon", epsilon);
    v("center", center);
    v("scale", scale);
  }
};

// nn.group_norm(data, gamma, beta)
struct GroupNormAttrs : Attrs<GroupNormAttrs> {
  static constexpr const char* kName = "relay.attrs.GroupNormAttrs";
  int64_t num_groups = 1, axis = 1;
  double epsilon = 1e-5;
  bool center = true, scale = true;
  template <class V>
  void fields(V& v) {
    v("num_groups", num_groups);
    v("axis", axis, "the channel axis");
    v("epsilon", epsilon);
    v("center", center);
    v("scale", scale);
  }
};

// nn.l2_normalize: x / sqrt(max(sum of squares over axis, eps))
struct L2NormalizeAttrs : Attrs<L2NormalizeAttrs> {
  static constexpr const char* kName = "relay.attrs.L2NormalizeAttrs";
  double eps = 1e-12;
  std::vector<int64_t> axis;
  template <class V>
  void fields(V& v) {
    v("eps", eps);
    v("axis", axis, "empty: all");
  }
};

// nn.lrn: x / (bias + alpha/size * sum of squares over a window of `size` along axis)^beta
struct LRNAttrs : Attrs<LRNAttrs> {
  static constexpr const char* kName = "relay.attrs.LRNAttrs";
  int64_t size = 5, axis = 1;
  double bias = 2, alpha = 0.00001, beta = 0.75;
  template <class V>
  void fields(V& v) {
    v("size", size);
    v("axis", axis);
    v("bias", bias);
    v("alpha", alpha);
    v("beta", beta);
  }
};

// nn.dropout: the identity at inference; result (out, mask)
struct DropoutAttrs : Attrs<DropoutAttrs> {
  static constexpr const char* kName = "relay.attrs.DropoutAttrs";
  double rate = 0.5;
  template <class V>
  void fields(V& v) {
    v("rate", rate);
  }
};

}  // namespace tilewright::relay
