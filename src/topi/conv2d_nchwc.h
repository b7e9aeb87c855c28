// SPDX-License-Identifier: Apache-2.0
// Direct convolution on channel-blocked activations: a register tile of output pixels x output channel blocks
// accumulates over input channels and taps; padding is the input's halo, so there is no border code. Volumes are
// sequences of planes: taps along the depth are another reduction axis, and those in the padding are skipped, so that
// no halo along the depth is needed.
#pragma once
#include "topi/config.h"
#include "topi/view.h"

namespace tilewright::topi {

struct Conv2dProblem {
  int64_t batch = 1, in_channels = 0, out_channels = 0;  // logical, without padding lanes
  int64_t in_height = 0, in_width = 0, out_height = 0, out_width = 0;
  int64_t kernel_height = 1, kernel_width = 1, stride_height = 1, stride_width = 1;
  int64_t dilation_height = 1, dilation_width = 1;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  int64_t in_depth = 1, out_depth = 1;  // number of planes; 1: views may lack the dimension
  int64_t kernel_depth = 1, stride_depth = 1, dilation_depth = 1, pad_front = 0;
  int64_t groups = 1;  // channels per group are multiples of lanes if > 1
  int lanes = 16;      // channels per block, of data, packed weights and output
  // blocks of data and output are this many times wider than `lanes`, for groups that end within a block
  int split = 1;
  bool plain_data = false;  // data is (N, C, [D,] H, W): first layers with few channels
  // > 0: elements of a word. Data are uint8, int16 or bfloat16 (word_of), weights words (words.h): channels of a block
  // or, with plain data, undilated taps of a row.
  int word = 0;
  DataType word_of = kUInt8;
  bool words() const { return word > 0; }
};

struct Conv2dConfig {
  int tile_height = 1, tile_width = 1;  // output pixels of a register tile; tile_height divides the output height
  int oc_blocks = 1;                    // output channel blocks of a register tile
  int ic_unroll = 4;                    // input channels unrolled in the reduction loop
  int tap_unroll = 0;    // 1: unrolls the taps of a row, 2: all taps (for narrow vectors, whose loops are short)
  bool flatten = false;  // merges rows (1x1, stride 1, both views without gaps between rows)
  int bands = 1;         // bands of output pixels; all output channels of a band are computed before the next one
  int chunk = 8;         // register tiles of a row in one unit of work, at most
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

// Whether these views' rows can be merged (Conv2dConfig::flatten).
bool can_flatten(const Conv2dProblem& problem, const View& data, const View& out);
// Configurations from fastest to slowest by the cost model; at most `most`.
std::vector<Conv2dConfig> configs(const Conv2dProblem& problem, const Target& target, bool may_flatten, size_t most);
Conv2dConfig default_config(const Conv2dProblem& problem, const Target& target, bool may_flatten);
// Whether a kernel exists for this problem and configuration, flattened if the views allow it.
bool fits(const Conv2dProblem& problem, const Conv2dConfig& config);
Cost estimate(const Conv2dProblem& problem, const Conv2dConfig& config, const Target& target);
// Packed weights: (OC/v, IC/g/v, kd*kh, kw, v of input, v of output); with plain data (OC/v, 1, kh, kw, IC, v). 8-bit
// weights are packed further (pack_conv2d_words). Independent of the configuration. See topi::pack_conv2d_weights
// (pack.h).
std::vector<int64_t> packed_weight_shape(const Conv2dProblem& problem);
// Halo elements required before and after each of (height, width); "after" can be less than the padding if strides skip
// input.
struct HaloNeed {
  int64_t top = 0, left = 0, bottom = 0, right = 0;
};
HaloNeed halo_need(const Conv2dProblem& problem);

// data: (N, ceil(IC/v), [D,] H, W, v) or plain (N, C, [D,] H, W), halo >= halo_need. weights: packed, contiguous. out:
// (N, ceil(OC/v), [OD,] OH, OW, v), any strides with v contiguous. Padding lanes of data must be zero (at least
// finite); those of out become epilogue(0).
tir::Stmt conv2d_nchwc(const Conv2dProblem& problem, const Conv2dConfig& config, const View& data, const View& weights,
                       const View& out, const Epilogue& epilogue, const KernelContext& context);

// Element strides of a view's dimensions; depth 0 if it has none. `block`: a block of channels, or a channel of plain
// data; `channel`: a channel within a block, or of plain data.
struct PixelStrides {
  int64_t image, block, depth, height, width, channel;
};
PixelStrides pixel_strides(const View& view, bool plain);
// An index of `view`, with the depth if it has one.
Index pixel_index(const View& view, const tir::PrimExpr& n, const tir::PrimExpr& block, const tir::PrimExpr& d,
                  const tir::PrimExpr& h, const tir::PrimExpr& w, const tir::PrimExpr& lane);
// Taps [begin, end) along the depth that read planes inside the data for at least one of the outputs first .. last.
struct TapRange {
  tir::PrimExpr begin, end;
};
TapRange depth_taps(const Conv2dProblem& problem, const tir::PrimExpr& first, const tir::PrimExpr& last);

}  // namespace tilewright::topi
