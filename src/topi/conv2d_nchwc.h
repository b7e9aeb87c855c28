// SPDX-License-Identifier: Apache-2.0
// Direct convolution on channel-blocked activations: a tile of output pixels x blocks of output channels stays in
// registers while the reduction over input channels and taps runs; padding is the input's halo, so no border code.
// Volumes are planes one after another: taps along the depth are one more part of the reduction, and those that meet
// only padding there are left out, so the depth needs no halo.
#pragma once
#include "topi/config.h"
#include "topi/view.h"

namespace tilewright::topi {

struct Conv2dProblem {
  int64_t batch = 1, in_channels = 0, out_channels = 0;  // logical: padding lanes not counted
  int64_t in_height = 0, in_width = 0, out_height = 0, out_width = 0;
  int64_t kernel_height = 1, kernel_width = 1, stride_height = 1, stride_width = 1;
  int64_t dilation_height = 1, dilation_width = 1;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  int64_t in_depth = 1, out_depth = 1;  // planes; 1: views have no such dimension, or one of a single plane
  int64_t kernel_depth = 1, stride_depth = 1, dilation_depth = 1, pad_front = 0;
  int64_t groups = 1;  // in_channels/groups and out_channels/groups are multiples of lanes when > 1
  int lanes = 16;      // channels of a block; blocked data, packed weights and output share it
  int split = 1;       // blocks of data and output hold so many times as many: groups that do not fill one of theirs
  bool plain_data = false;  // data is (N, C, [D,] H, W): stems with few channels
  // Data are unsigned bytes, weights words of four (words.h): of four channels of a block, or with plain data of four
  // taps of a row, which are not dilated.
  bool words = false;
};

struct Conv2dConfig {
  int tile_height = 1, tile_width = 1;  // output pixels of a register tile; tile_height divides the output height
  int oc_blocks = 1;                    // output channel blocks of a register tile
  int ic_unroll = 4;                    // input channels unrolled in the reduction loop
  int tap_unroll = 0;    // 1: the taps of a row are unrolled too, 2: all taps (narrow vectors: short loops)
  bool flatten = false;  // rows run together (1x1, stride 1, both views without gaps between rows)
  int bands = 1;         // runs of output pixels that all output channels are computed for before the next one
  int chunk = 8;         // register tiles along a row that are one unit of a thread's work, at most
  bool operator==(const Conv2dConfig&) const = default;
  static constexpr auto fields() {
    using C = Conv2dConfig;
    return std::tuple{field("tile_height", &C::tile_height),
                      field("tile_width", &C::tile_width),
                      field("oc_blocks", &C::oc_blocks),
                      field("ic_unroll", &C::ic_unroll),
                      field("tap_unroll", &C::tap_unroll),
                      field("flatten", &C::flatten),
                      field("bands", &C::bands),
                      field("chunk", &C::chunk)};
  }
};

// Whether rows of these views can be run together (Conv2dConfig::flatten).
bool can_flatten(const Conv2dProblem& problem, const View& data, const View& out);
// The fastest by the cost model, then the others; at most `most`.
std::vector<Conv2dConfig> configs(const Conv2dProblem& problem, const Target& target, bool may_flatten, size_t most);
Conv2dConfig default_config(const Conv2dProblem& problem, const Target& target, bool may_flatten);
// Whether a kernel of this configuration can be made for the problem, flattened where the views allow it.
bool fits(const Conv2dProblem& problem, const Conv2dConfig& config);
Cost estimate(const Conv2dProblem& problem, const Conv2dConfig& config, const Target& target);
// Packed weights: (OC/v, IC/g/v, kd*kh, kw, v of input, v of output); with plain data (OC/v, 1, kd*kh, kw, IC, v).
// Of bytes fewer (pack_conv2d_words). Independent of the configuration. topi::pack_conv2d_weights (pack.h) makes them.
std::vector<int64_t> packed_weight_shape(const Conv2dProblem& problem);
// Elements that data's halo must have before and after each of (height, width); "after" may be less than the padding
// where strides leave input unread.
struct HaloNeed {
  int64_t top = 0, left = 0, bottom = 0, right = 0;
};
HaloNeed halo_need(const Conv2dProblem& problem);

// data: (N, ceil(IC/v), [D,] H, W, v) or plain (N, C, [D,] H, W), halo >= halo_need. weights: packed, contiguous.
// out: (N, ceil(OC/v), [OD,] OH, OW, v), any strides but v contiguous. Padding lanes of data must be zero (finite at
// least); those of out get epilogue(0).
tir::Stmt conv2d_nchwc(const Conv2dProblem& problem, const Conv2dConfig& config, const View& data, const View& weights,
                       const View& out, const Epilogue& epilogue, const KernelContext& context);

// Element strides of a view's dimensions, whichever it has; depth 0 where there is none. `block`: a block of channels,
// or a channel of plain data; `channel`: a channel of a block, or of plain data.
struct PixelStrides {
  int64_t image, block, depth, height, width, channel;
};
PixelStrides pixel_strides(const View& view, bool plain);
// An index of `view`: with the depth if it has one.
Index pixel_index(const View& view, const tir::PrimExpr& n, const tir::PrimExpr& block, const tir::PrimExpr& d,
                  const tir::PrimExpr& h, const tir::PrimExpr& w, const tir::PrimExpr& lane);
// Taps [begin, end) along the depth that read planes inside the data for some of the outputs first .. last.
struct TapRange {
  tir::PrimExpr begin, end;
};
TapRange depth_taps(const Conv2dProblem& problem, const tir::PrimExpr& first, const tir::PrimExpr& last);

}  // namespace tilewright::topi
