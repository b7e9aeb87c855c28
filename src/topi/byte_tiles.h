// SPDX-License-Identifier: Apache-2.0
// Loops shared by 8-bit kernels for processors without vector units: tiles of output channels x adjacent pixels of a
// row, over maps without padding. Where a window leaves the map its taps are clamped, one pixel at a time.
#pragma once
#include <functional>

#include "topi/conv_bytes.h"

namespace tilewright::topi {

// Position of a tile: image, group, first output channel (of all), output row, first pixel, and the taps to apply.
struct BytePlace {
  struct Taps {
    tir::PrimExpr begin, end;
  };
  tir::PrimExpr n, group, oc, y, x;
  Taps rows, columns;
  bool whole_row = true;  // all taps of a row are inside the map
};

class ByteTiles {
 public:
  // Computes rows x pixels sums into `sums` (int32, row by row), from data at element `data_at` on.
  using Sums = std::function<tir::Stmt(const BytePlace& place, int rows, int pixels, const tir::PrimExpr& data_at,
                                       const tir::Buffer& sums)>;
  ByteTiles(const ConvBytesProblem& problem, const ConvBytesConfig& config, const View& data, const View& out,
            const Epilogue& epilogue, const KernelContext& context, Sums sums)
      : p(problem), c(config), data(data), out(out), epilogue(epilogue), context(context), sums_(std::move(sums)) {}
  tir::Stmt stmt() const;

 private:
  tir::Stmt tile(const BytePlace& place, int oc_rows, int pixels) const;
  tir::Stmt columns(BytePlace place, int oc_rows) const;
  bool rows_inside() const;

  const ConvBytesProblem& p;
  const ConvBytesConfig& c;
  const View &data, &out;
  const Epilogue& epilogue;
  const KernelContext& context;
  Sums sums_;
};

// Instruction count of a tile, from which that of the whole kernel follows; `whole_row` as above.
using TileInstructions = std::function<double(double rows, double pixels, bool whole_row)>;
double byte_tiles_instructions(const ConvBytesProblem& problem, const ConvBytesConfig& config,
                               const TileInstructions& tile);
// Configurations with up to `sums` accumulators accepted by `fits`, ordered by instruction count.
std::vector<ConvBytesConfig> byte_tile_configs(const ConvBytesProblem& problem, int sums, size_t most,
                                               const std::function<bool(const ConvBytesConfig&)>& fits,
                                               const TileInstructions& tile);
Cost byte_tiles_cost(const ConvBytesProblem& problem, double instructions, const Target& target);

}  // namespace tilewright::topi
