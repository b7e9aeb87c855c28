// SPDX-License-Identifier: Apache-2.0
// Winograd convolution on channel-blocked activations, stride 1 (dilated or not) or, by phases, 2: a block of tiles is
// transformed, multiplied point by point (one small matrix product for each of the tile's points) and transformed back,
// all in the thread's scratch, which stays in its caches; bias and activation are applied in registers before the one
// store.
#pragma once
#include "base/tensor.h"
#include "topi/conv2d_nchwc.h"
#include "topi/winograd_transform.h"

namespace tilewright::topi {

struct WinogradConfig {
  int tile_height = 4, tile_width = 4;  // output pixels of a tile: F(tile_height, kernel_height) x F(tile_width, ...)
  int64_t block_tiles = 0;              // tiles transformed at a time
  int rows = 12, oc_blocks = 2;         // register tile of the products: tiles x output channel blocks
  int ic_unroll = 4;
  bool operator==(const WinogradConfig&) const = default;
  static constexpr auto fields() {
    using C = WinogradConfig;
    return std::tuple{field("tile_height", &C::tile_height), field("tile_width", &C::tile_width),
                      field("block_tiles", &C::block_tiles), field("rows", &C::rows),
                      field("oc_blocks", &C::oc_blocks),     field("ic_unroll", &C::ic_unroll)};
  }
};

// Requires one group and blocked data; each axis must have kernel 1 and stride 1, or a kernel for which F exists with
// the tile, larger than the stride, which is 1 or, without dilation, 2.
bool winograd_applies(const Conv2dProblem& problem, int tile_height, int tile_width);
// Whether bytes by bytes (words of kUInt8) gain by it on this target: F(2,3) in int16 and int32, exact, where a word of
// bytes takes several instructions and a pair of halves one. Weights are int8 then, transformed ones words of int32.
bool winograd_of_bytes(const Conv2dProblem& problem, const Target& target);
// The best block sizes and register tiles for this tile size, at most `most`; uneven splits over threads are included
// in the cost. `weights_from_memory`: the model's weights do not stay in the caches between runs.
std::vector<WinogradConfig> winograd_configs(const Conv2dProblem& problem, int tile_height, int tile_width,
                                             bool weights_from_memory, const Target& target, size_t most);
WinogradConfig winograd_config(const Conv2dProblem& problem, int tile_height, int tile_width, bool weights_from_memory,
                               const Target& target);
// For each width of a tile of output channels (which determines the packed weights), the best configuration with its
// time.
std::vector<Weighed<WinogradConfig>> winograd_config_of_columns(const Conv2dProblem& problem, int tile_height,
                                                                int tile_width, bool weights_from_memory,
                                                                const Target& target);
// Whether a kernel exists for this problem and configuration.
bool fits(const Conv2dProblem& problem, const WinogradConfig& config);
Cost winograd_cost(const Conv2dProblem& problem, const WinogradConfig& config, bool weights_from_memory,
                   const Target& target);
// The halo that tiles at the output's edge read beyond the padding.
HaloNeed winograd_halo(const Conv2dProblem& problem, const WinogradConfig& config);
int64_t winograd_scratch_bytes(const Conv2dProblem& problem, const WinogradConfig& config, DataType dtype = kFloat32);
// The transformed weights, float32, float64 or words (tiles of output channels, points, phases, input channels, blocks
// of a tile, v), computed in double from those of conv2d_nchwc (packed_weight_shape of elements).
std::vector<int64_t> winograd_weight_shape(const Conv2dProblem& problem, const WinogradConfig& config);
Tensor winograd_weights(const Tensor& packed, const Conv2dProblem& problem, const WinogradConfig& config);

// The root-mean-square rounding error of the worst output channel, relative to the outputs, for inputs of uniform size:
// how these weights amplify rounding in the products. Infinite if a weight is.
double winograd_error(const Tensor& packed, const Conv2dProblem& problem, int tile_height, int tile_width);

// Operands as for conv2d_nchwc, except the halo (winograd_halo) and the weights; context.scratch has
// winograd_scratch_bytes. Sums do not depend on the number of threads.
tir::Stmt conv2d_winograd(const Conv2dProblem& problem, const WinogradConfig& config, const View& data,
                          const View& weights, const View& out, const Epilogue& epilogue, const KernelContext& context);

}  // namespace tilewright::topi
