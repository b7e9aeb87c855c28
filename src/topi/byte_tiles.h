// SPDX-License-Identifier: Apache-2.0
// The loops that kernels of bytes for processors without vectors share: tiles of output channels by neighbouring pixels
// of a row, over maps without a frame. Where a window leaves the map its taps are clamped, one pixel at a time.
#pragma once
#include <functional>

#include "topi/conv_bytes.h"

namespace tilewright::topi {

// Where a tile stands: image, group, first output channel (of all), output row, first pixel, and its taps.
struct BytePlace {
  struct Taps {
    tir::PrimExpr begin, end;
  };
  tir::PrimExpr n, group, oc, y, x;
  Taps rows, columns;
  bool whole_row = true;  // every tap of a row lies in the map
};

class ByteTiles {
 public:
  // Leaves rows x pixels sums in `sums` (int32, row by row), of data from element `data_at` on.
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

// Instructions of a whole kernel by those of a tile, `whole_row` as above.
using TileInstructions = std::function<double(double rows, double pixels, bool whole_row)>;
double byte_tiles_instructions(const ConvBytesProblem& problem, const ConvBytesConfig& config,
                               const TileInstructions& tile);
// The configurations of up to `sums` sums that `fits` takes, by their instructions.
std::vector<ConvBytesConfig> byte_tile_configs(const ConvBytesProblem& problem, int sums, size_t most,
                                               const std::function<bool(const ConvBytesConfig&)>& fits,
                                               const TileInstructions& tile);
Cost byte_tiles_cost(const ConvBytesProblem& problem, double instructions, const Target& target);

}  // namespace tilewright::topi
