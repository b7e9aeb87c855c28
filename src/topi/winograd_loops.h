// SPDX-License-Identifier: Apache-2.0
// Extents and strides shared by kernel, cost model and weight packing.
#pragma once
#include "topi/winograd.h"

namespace tilewright::topi {

struct WinogradLoops {
  // A dilated kernel is an undilated one on each of the maps formed by every d-th row and column: its combs.
  int64_t dilation_height = 0, dilation_width = 0;
  int64_t comb_tiles_high = 0, comb_tiles_wide = 0;   // tiles of one comb along each axis
  int64_t tiles_high = 0, tiles_wide = 0, tiles = 0;  // tiles of one plane, over all combs; of all images
  int64_t blocks = 0, last_tiles = 0;                 // blocks of tiles; tiles of the last block
  // A block holds its tiles in all output planes, plane by plane: these are its rows. For each tap along the depth, a
  // row reads planes a fixed number of rows further on; with a stride, planes of equal remainder are adjacent.
  int64_t depth = 0, slots = 0;            // planes of the output; data planes that a block transforms
  int64_t remainders = 0, slots_each = 0;  // remainders of the depth's stride that taps use; slots per remainder
  WinogradAxis down, across;
  int64_t points = 0;  // per tile
  int64_t slices = 0;  // products per output and input channel: points times phases
  int64_t phases = 0;  // of the stride, maximum per point
  int64_t ic_blocks = 0, oc_blocks = 0, oc_tiles = 0,
          last_steps = 0;                       // last_steps: unrolled steps over the last block of input channels
  int64_t block = 0;                            // input channels of a block in the products, or words of two
  int64_t ic_padded = 0;                        // input channels, or words, in the products, including padding
  int64_t panel = 0;                            // weights of one slice and output block, with all taps along the depth
  int64_t data_stride = 0, product_stride = 0;  // distance of two points in the transformed data, and in the products
  int last_cols = 0;                            // blocks of the last tile of output channels
  bool half = false;                            // the last block is at most half full: use half vectors
  bool prefetches = false;
  int64_t turns = 0;  // register tiles per block of tiles: each reads the same panel of weights
  int64_t rows(int64_t block_tiles) const { return block_tiles * depth; }
  // The first slot, in planes, that outputs read with tap `k` along the depth.
  int64_t slot_of(int64_t k, int64_t stride, int64_t dilation) const {
    return k * dilation % stride * slots_each + k * dilation / stride;
  }
  int64_t scratch() const { return points * (data_stride + product_stride); }  // in elements
};
// What the weights of words are multiplied by along either axis to be whole numbers.
inline constexpr int kWinogradWordScale = 2;
WinogradLoops winograd_loops(const Conv2dProblem& problem, const WinogradConfig& config);

}  // namespace tilewright::topi
