// SPDX-License-Identifier: Apache-2.0
// What the cost model of direct convolutions and their kernel must agree on.
#pragma once
#include "topi/conv2d_nchwc.h"

namespace tilewright::topi {

// One axis of a window. Taps that meet only padding, wherever in a tile, are
// not summed.
struct ConvAxis {
  int64_t in, out, kernel, stride, dilation, pad;
  // Taps that some of `count` outputs from `first` on read inside the data.
  int64_t taps(int64_t first, int64_t count) const {
    auto below = [&](int64_t at, int64_t bound) {
      const int64_t room = bound - (at * stride - pad);
      return std::min(kernel, room <= 0 ? 0 : ceil_div(room, dilation));
    };
    return std::max<int64_t>(0, below(first, in) - below(first + count - 1, 0));
  }
  // Their mean over tiles of `count` outputs.
  double mean_taps(int64_t tiles, int64_t count) const {
    int64_t sum = 0;
    for (int64_t i = 0; i < tiles; ++i) sum += taps(i * count, count);
    return tiles ? static_cast<double>(sum) / static_cast<double>(tiles) : 0;
  }
  // Input positions that `count` outputs side by side meet.
  int64_t span(int64_t count) const { return (count - 1) * stride + (kernel - 1) * dilation + 1; }
  // Which of `count` outputs position `x` of the span meets with a tap, or -1.
  int64_t output_of(int64_t x, int64_t tap, int64_t count) const {
    const int64_t rest = x - tap * dilation;
    return rest < 0 || rest % stride != 0 || rest / stride >= count ? -1 : rest / stride;
  }
};
ConvAxis rows_of(const Conv2dProblem& p);
ConvAxis planes_of(const Conv2dProblem& p);
ConvAxis columns_of(const Conv2dProblem& p);

// Whether enough taps meet padding only to look for them: wide dilations over
// small maps, large kernels.
bool skips_padding(const Conv2dProblem& p, const Conv2dConfig& c);

// Extents of the loops, derived from problem and configuration.
struct Conv2dLoops {
  int64_t oc_blocks, ic_blocks,
      ic_block;           // blocks per convolution group; channels of an input block, or its words of them
  int64_t last_ic;        // of the last input block
  int64_t columns;        // taps of a row, or words of them
  int64_t oc_tiles;       // register tiles over the output blocks of a group
  int64_t height, width;  // output pixels, after flattening
  int64_t row_tiles, width_tiles, width_tail;
  int64_t chunk,
      chunks;           // width tiles of a unit of work, and units per row tile
  int64_t bands, band;  // runs of such units over the pixels, and units of a run
  int64_t panel;        // elements of one output block's weights
  int last_cols;        // blocks of the last register tile over the output channels
  bool half;            // its last block is at most half full: computed in half vectors
};

Conv2dLoops conv2d_loops(const Conv2dProblem& p, const Conv2dConfig& c);

// Whether each tile asks for the next one's pixels: the planes of an input from
// beyond the second level are more streams than hardware follows, each of them
// a few lines long.
bool prefetches_pixels(const Conv2dProblem& p, const Target& target);

}  // namespace tilewright::topi
