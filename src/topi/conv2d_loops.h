// SPDX-License-Identifier: Apache-2.0
// Loop extents shared by the cost model of direct convolutions and their kernel.
#pragma once
#include "topi/conv2d_nchwc.h"

namespace tilewright::topi {

// One axis of a window. Taps that only read
// padding at all positions in a tile are skipped.
struct ConvAxis {
  int64_t in, out, kernel, stride, dilation, pad;
  // Number of taps that read data for at least one of `count` outputs from `first` on.
  int64_t taps(int64_t first, int64_t count) const {
    auto below = [&](int64_t at, int64_t bound) {
      const int64_t room = bound - (at * stride - pad);
      return std::min(kernel, room <= 0 ? 0 : ceil_div(room, dilation));
    };
    return std::max<int64_t>(0, below(first, in) - below(first + count - 1, 0));
  }
  // Its mean over all tiles of `count` outputs.
  double mean_taps(int64_t tiles, int64_t count) const {
    int64_t sum = 0;
    for (int64_t i = 0; i < tiles; ++i) sum += taps(i * count, count);
    return tiles ? static_cast<double>(sum) / static_cast<double>(tiles) : 0;
  }
  // Number of input positions read by `count` adjacent outputs.
  int64_t span(int64_t count) const { return (count - 1) * stride + (kernel - 1) * dilation + 1; }
  // The output (of `count`) for which position `x` of the span is read by the tap, or -1.
  int64_t output_of(int64_t x, int64_t tap, int64_t count) const {
    const int64_t rest = x - tap * dilation;
    return rest < 0 || rest % stride != 0 || rest / stride >= count ? -1 : rest / stride;
  }
};
ConvAxis rows_of(const Conv2dProblem& p);
ConvAxis planes_of(const Conv2dProblem& p);
ConvAxis columns_of(const Conv2dProblem& p);

// Whether enough taps read only padding to check for
// them: wide dilations on small maps, large kernels.
bool skips_padding(const Conv2dProblem& p, const Conv2dConfig& c);

// Loop extents, derived from problem and configuration.
struct Conv2dLoops {
  int64_t oc_blocks, ic_blocks,
      ic_block;           // blocks per convolution group; channels, or words of channels, per input block
  int64_t last_ic;        // in the last input block
  int64_t columns;        // taps per row, or words of them
  int64_t oc_tiles;       // register tiles over a group's output blocks
  int64_t height, width;  // output pixels, after merging rows
  int64_t row_tiles, width_tiles, width_tail;
  int64_t chunk,
      chunks;           // width tiles per unit of work; units per row tile
  int64_t bands, band;  // bands of pixels; units per band
  int64_t panel;        // elements of one output block's weights
  int last_cols;        // output blocks of the last register tile
  bool half;            // the last block is at most half full: use half vectors
};

Conv2dLoops conv2d_loops(const Conv2dProblem& p, const Conv2dConfig& c);

// Whether each tile prefetches the next one's pixels:
// input planes from beyond the L2 cache are too many
// short streams for the hardware prefetcher.
bool prefetches_pixels(const Conv2dProblem& p, const Target& target);

}  // namespace tilewright::topi
