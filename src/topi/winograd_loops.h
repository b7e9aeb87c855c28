// SPDX-License-Identifier: Apache-2.0
// Extents and strides that the kernel, its cost and its weights agree on.
#pragma once
#include "topi/winograd.h"

namespace tilewright::topi {

struct WinogradLoops {
  // A dilated kernel is one without dilation over each of the maps of every d-th row and column: its combs.
  int64_t dilation_height = 0, dilation_width = 0;
  int64_t comb_tiles_high = 0, comb_tiles_wide = 0;   // tiles of one comb, along each axis
  int64_t tiles_high = 0, tiles_wide = 0, tiles = 0;  // of one plane, all combs; of all images
  int64_t blocks = 0, last_tiles = 0;                 // blocks of tiles; tiles of the last block
  // A block holds its tiles in all planes of the output, plane by plane: its rows. The planes that a row reads are as
  // many rows further on for each tap along the depth: with a stride, planes of one remainder lie side by side.
  int64_t depth = 0, slots = 0;            // planes of the output; planes of the data that a block transforms
  int64_t remainders = 0, slots_each = 0;  // of the depth's stride, as far as taps meet them; slots of one
  WinogradAxis down, across;
  int64_t points = 0;  // of a tile
  int64_t slices = 0;  // products per output and input channel: points times the stride's phases
  int64_t phases = 0;  // of the stride, at most per point
  int64_t ic_blocks = 0, oc_blocks = 0, oc_tiles = 0,
          last_steps = 0;                       // last_steps: unrolled steps over the last block of input channels
  int64_t ic_padded = 0;                        // input channels that the products run over
  int64_t panel = 0;                            // weights of one slice and one output block, all taps along the depth
  int64_t data_stride = 0, product_stride = 0;  // elements from one point's transformed data (products) to the next's
  int last_cols = 0;                            // blocks of the last tile of output channels
  bool half = false;                            // its last block is at most half full: computed in half vectors
  bool prefetches = false;
  int64_t turns = 0;  // register tiles over a block of tiles: each goes over the same panel of weights
  int64_t rows(int64_t block_tiles) const { return block_tiles * depth; }
  // The first slot that outputs read with tap `k` along the depth, counted in planes.
  int64_t slot_of(int64_t k, int64_t stride, int64_t dilation) const {
    return k * dilation % stride * slots_each + k * dilation / stride;
  }
  int64_t scratch() const { return points * (data_stride + product_stride); }  // elements
};
WinogradLoops winograd_loops(const Conv2dProblem& problem, const WinogradConfig& config);

}  // namespace tilewright::topi
