// SPDX-License-Identifier: Apache-2.0
// Attributes of object detection: overlapping boxes, regions of images, anchors.
#pragma once
#include "ir/attrs.h"

namespace tilewright::relay {

// vision.get_valid_counts
struct GetValidCountsAttrs : Attrs<GetValidCountsAttrs> {
  static constexpr const char* kName = "relay.attrs.GetValidCountsAttrs";
  int64_t id_index = 0, score_index = 1;
  template <class V>
  void fields(V& v) {
    v("id_index", id_index, "where a box has its class; -1: nowhere");
    v("score_index", score_index, "where a box has its score");
  }
};

// vision.non_max_suppression
struct NonMaximumSuppressionAttrs : Attrs<NonMaximumSuppressionAttrs> {
  static constexpr const char* kName = "relay.attrs.NonMaximumSuppressionAttrs";
  bool force_suppress = false;
  int64_t top_k = -1, coord_start = 2, score_index = 1, id_index = 0;
  bool return_indices = true, invalid_to_bottom = false;
  template <class V>
  void fields(V& v) {
    v("force_suppress", force_suppress, "boxes of different classes suppress each other too");
    v("top_k", top_k, "so many of the best boxes are looked at; 0 or less: all");
    v("coord_start", coord_start, "where a box has its four coordinates");
    v("score_index", score_index, "where a box has its score");
    v("id_index", id_index, "where a box has its class; -1: nowhere");
    v("return_indices", return_indices, "indices of boxes instead of boxes");
    v("invalid_to_bottom", invalid_to_bottom, "boxes that stay come first");
  }
};

// vision.all_class_non_max_suppression
struct AllClassNonMaximumSuppressionAttrs : Attrs<AllClassNonMaximumSuppressionAttrs> {
  static constexpr const char* kName = "relay.attrs.AllClassNonMaximumSuppressionAttrs";
  std::string output_format = "onnx";
  template <class V>
  void fields(V& v) {
    v("output_format", output_format, "onnx or tensorflow");
  }
};

// vision.suppress (ours)
struct SuppressAttrs : Attrs<SuppressAttrs> {
  static constexpr const char* kName = "relay.attrs.SuppressAttrs";
  bool force_suppress = false, count_all = false, pixels = false;
  template <class V>
  void fields(V& v) {
    v("force_suppress", force_suppress, "boxes of different classes suppress each other too");
    v("count_all", count_all, "boxes whose score is not above 0 count towards max_output_size too");
    v("pixels", pixels,
      "corners are as given and the last pixels belong to the box; it falls when the overlap is above the threshold, "
      "not when it reaches it");
  }
};

// vision.region_align (ours)
struct RegionAlignAttrs : Attrs<RegionAlignAttrs> {
  static constexpr const char* kName = "relay.attrs.RegionAlignAttrs";
  std::vector<int64_t> pooled_size;
  double spatial_scale = 1;
  int64_t sample_ratio = -1;
  std::string layout = "NHWC", mode = "avg";
  bool half_pixel = false;
  template <class V>
  void fields(V& v) {
    v("pooled_size", pooled_size, "rows and columns of bins");
    v("spatial_scale", spatial_scale, "from the regions' coordinates to pixels");
    v("sample_ratio", sample_ratio,
      "samples of a bin along each axis; 0 or less: as many as it has pixels, rounded up");
    v("layout", layout, "NHWC or NCHW, of data and result");
    v("mode", mode, "avg, max, or max_pixel: the largest weighted pixel of all samples");
    v("half_pixel", half_pixel, "coordinates are of the pixels' centres, and regions may be smaller than a pixel");
  }
};

// vision.roi_align
struct ROIAlignAttrs : Attrs<ROIAlignAttrs> {
  static constexpr const char* kName = "relay.attrs.ROIAlignAttrs";
  std::vector<int64_t> pooled_size;
  double spatial_scale = 1;
  int64_t sample_ratio = -1;
  std::string layout = "NCHW", mode = "avg";
  template <class V>
  void fields(V& v) {
    v("pooled_size", pooled_size, "rows and columns of bins");
    v("spatial_scale", spatial_scale, "from the regions' coordinates to pixels");
    v("sample_ratio", sample_ratio,
      "samples of a bin along each axis; 0 or less: as many as it has pixels, rounded up");
    v("layout", layout, "NCHW or NHWC");
    v("mode", mode, "avg or max");
  }
};

// vision.roi_pool and vision.region_pool (ours)
struct ROIPoolAttrs : Attrs<ROIPoolAttrs> {
  static constexpr const char* kName = "relay.attrs.ROIPoolAttrs";
  std::vector<int64_t> pooled_size;
  double spatial_scale = 1;
  std::string layout = "NCHW";
  template <class V>
  void fields(V& v) {
    v("pooled_size", pooled_size, "rows and columns of bins");
    v("spatial_scale", spatial_scale, "from the regions' coordinates to pixels");
    v("layout", layout, "NCHW or NHWC");
  }
};

// vision.multibox_transform_loc
struct MultiBoxTransformLocAttrs : Attrs<MultiBoxTransformLocAttrs> {
  static constexpr const char* kName = "relay.attrs.MultiBoxTransformLocAttrs";
  bool clip = true;
  double threshold = 0.01;
  std::vector<double> variances = {0.1, 0.1, 0.2, 0.2};
  template <class V>
  void fields(V& v) {
    v("clip", clip, "boxes end at the picture's edges");
    v("threshold", threshold, "the least probability of an object");
    v("variances", variances, "factors of the predicted x, y, width and height");
  }
};

// vision.multibox_prior
struct MultiBoxPriorAttrs : Attrs<MultiBoxPriorAttrs> {
  static constexpr const char* kName = "relay.attrs.MultiBoxPriorAttrs";
  std::vector<double> sizes = {1}, ratios = {1}, steps = {-1, -1}, offsets = {0.5, 0.5};
  bool clip = false;
  template <class V>
  void fields(V& v) {
    v("sizes", sizes, "heights of boxes, of the picture's");
    v("ratios", ratios, "widths over heights of further boxes of the first size");
    v("steps", steps, "between boxes, y and x; not above 0: one over the number of places");
    v("offsets", offsets, "of the first box, y and x, in steps");
    v("clip", clip, "boxes end at the picture's edges");
  }
};

// vision.yolo_reorg
struct YoloReorgAttrs : Attrs<YoloReorgAttrs> {
  static constexpr const char* kName = "relay.attrs.YoloReorgAttrs";
  int64_t stride = 1;
  template <class V>
  void fields(V& v) {
    v("stride", stride);
  }
};

// vision.proposal
struct ProposalAttrs : Attrs<ProposalAttrs> {
  static constexpr const char* kName = "relay.attrs.ProposalAttrs";
  std::vector<double> scales = {4, 8, 16, 32}, ratios = {0.5, 1, 2};
  int64_t feature_stride = 16;
  double threshold = 0.7;
  int64_t rpn_pre_nms_top_n = 6000, rpn_post_nms_top_n = 300, rpn_min_size = 16;
  bool iou_loss = false;
  template <class V>
  void fields(V& v) {
    v("scales", scales, "of anchors");
    v("ratios", ratios, "heights over widths of anchors");
    v("feature_stride", feature_stride, "pixels of the picture between two places of the features");
    v("threshold", threshold, "boxes that overlap by more fall");
    v("rpn_pre_nms_top_n", rpn_pre_nms_top_n, "so many of the best boxes are looked at; 0 or less: all");
    v("rpn_post_nms_top_n", rpn_post_nms_top_n, "boxes of each picture in the result");
    v("rpn_min_size", rpn_min_size, "the least width and height, in the scaled picture");
    v("iou_loss", iou_loss, "predictions are moves of corners");
  }
};

// nn.deformable_conv2d
struct DeformableConv2DAttrs : Attrs<DeformableConv2DAttrs> {
  static constexpr const char* kName = "relay.attrs.DeformableConv2DAttrs";
  std::vector<int64_t> strides = {1, 1}, padding = {0, 0}, dilation = {1, 1};
  int64_t deformable_groups = 1, groups = 1;
  std::optional<int64_t> channels;
  std::optional<std::vector<int64_t>> kernel_size;
  std::string data_layout = "NCHW", kernel_layout = "OIHW", out_layout, out_dtype;
  template <class V>
  void fields(V& v) {
    v("strides", strides);
    v("padding", padding, "1, 2 or 4 values: all sides, rows and columns, or top, left, bottom, right");
    v("dilation", dilation);
    v("deformable_groups", deformable_groups, "sets of offsets, each for its share of the channels");
    v("groups", groups);
    v("channels", channels, "of the result");
    v("kernel_size", kernel_size);
    v("data_layout", data_layout, "NCHW or NHWC");
    v("kernel_layout", kernel_layout, "OIHW or HWIO");
    v("out_layout", out_layout, "empty: as the data");
    v("out_dtype", out_dtype);
  }
};

}  // namespace tilewright::relay
