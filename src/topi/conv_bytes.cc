// SPDX-License-Identifier: Apache-2.0
#include "topi/conv_bytes.h"

#include "topi/byte_tiles.h"
#include "topi/register_tile.h"

namespace tilewright::topi {

using namespace tir;

namespace {

// Sums, a weight and a tile's data must fit the thirteen registers that a Cortex-M has besides two addresses and a
// counter; with eight sums GCC 12 spills.
constexpr int kSumRegisters = 6;
// Channels per iteration, where a single step would be short.
int64_t channels_together(const ConvBytesProblem& p) { return p.kernel_width == 1 && p.channels % 4 == 0 ? 4 : 1; }

TileInstructions tile_instructions(const ConvBytesProblem& p) {
  return [&p](double rows, double pixels, bool whole_row) {
    const double taps = static_cast<double>(p.kernel_width), distinct = pixels + taps - 1;
    const bool shared = p.stride_width == 1 && p.dilation_width == 1;  // adjacent pixels share loaded data
    const double loads = shared ? distinct : pixels * taps;
    const double body = loads * (p.zero != 0 ? 2 : 1) + rows * taps + rows * pixels * taps;
    const double steps = static_cast<double>(p.channels * p.kernel_height);
    const double all = steps * (body + 3.0 / static_cast<double>(channels_together(p))) + 12 + rows * pixels * 22;
    return whole_row ? all : all * 1.2;
  };
}

struct BytesKernel {
  const ConvBytesProblem& p;
  const View &data, &weights;

  PrimExpr centred(const PrimExpr& at) const {
    PrimExpr value = cast(kInt32, load(data.buffer, at));
    return p.zero != 0 ? value - make_int(p.zero, kInt32) : value;
  }
  Stmt step(const RegisterTile& acc, const PrimExpr& from, const PrimExpr& tap) const {
    const int64_t per_output = p.channels * p.kernel_height * p.kernel_width;
    return acc.step([&](int r) { return load(weights.buffer, tap + r * per_output); },
                    [&](int col) { return centred(from + col * p.stride_width * data.strides[3]); });
  }
  // All taps of a row for some channels.
  Stmt row_of_taps(const BytePlace& t, const RegisterTile& acc, const PrimExpr& from, const PrimExpr& tap) const {
    const int64_t in_row = p.dilation_width * data.strides[3];
    if (!t.whole_row || p.kernel_width > 16)
      return loop("kx", t.columns.begin, t.columns.end,
                  [&](const PrimExpr& k) { return step(acc, from + k * in_row, tap + k); });
    std::vector<Stmt> all;
    for (int64_t k = 0; k < p.kernel_width; ++k) all.push_back(step(acc, from + k * in_row, tap + k));
    return seq(std::move(all));
  }
  Stmt sums(const BytePlace& t, const RegisterTile& acc, const PrimExpr& data_at, const PrimExpr& weights_at) const {
    const int64_t taps = p.kernel_height * p.kernel_width;
    const int64_t together = channels_together(p);
    return loop("ky", t.rows.begin, t.rows.end, [&](const PrimExpr& k) {
      return bind("row_at", data_at + k * (p.dilation_height * data.strides[2]), [&](const PrimExpr& row_at) {
        return bind("taps_at", weights_at + k * p.kernel_width, [&](const PrimExpr& taps_at) {
          return loop("ic", p.channels / together, [&](const PrimExpr& i) {
            std::vector<Stmt> all;
            for (int64_t part = 0; part < together; ++part)
              all.push_back(row_of_taps(t, acc, row_at + (i * together + part) * data.strides[1],
                                        taps_at + (i * together + part) * taps));
            return seq(std::move(all));
          });
        });
      });
    });
  }
  Stmt tile(const BytePlace& t, int oc_rows, int pixels, const PrimExpr& data_at, const Buffer& to) const {
    const RegisterTile acc(oc_rows, pixels, kInt32);
    const int64_t per_output = p.channels * p.kernel_height * p.kernel_width;
    return bind("weights_at", t.oc * per_output + weights.offset, [&](const PrimExpr& weights_at) {
      const Stmt keep = acc.drain(
          [&](int r, int col, const PrimExpr& value) { return store(to, make_int(int64_t{r} * pixels + col), value); });
      return acc.scope(seq({acc.clear(), sums(t, acc, data_at, weights_at), keep}));
    });
  }
};

}  // namespace

bool fits(const ConvBytesProblem&, const ConvBytesConfig& c) {
  return c.oc_rows >= 1 && c.pixels >= 1 && c.oc_rows * c.pixels <= 64;
}

std::vector<ConvBytesConfig> configs(const ConvBytesProblem& p, size_t most) {
  return byte_tile_configs(
      p, kSumRegisters, most, [](const ConvBytesConfig&) { return true; }, tile_instructions(p));
}

Cost estimate(const ConvBytesProblem& p, const ConvBytesConfig& c, const Target& target) {
  return byte_tiles_cost(p, byte_tiles_instructions(p, c, tile_instructions(p)), target);
}

Stmt conv_bytes(const ConvBytesProblem& p, const ConvBytesConfig& c, const View& data, const View& weights,
                const View& out, const Epilogue& epilogue, const KernelContext& context) {
  TW_ICHECK(data.rank() == 4 && out.rank() == 4, "conv_bytes: ranks");
  const BytesKernel kernel{p, data, weights};
  return ByteTiles(p, c, data, out, epilogue, context,
                   [&](const BytePlace& t, int rows, int pixels, const PrimExpr& data_at, const Buffer& sums) {
                     return kernel.tile(t, rows, pixels, data_at, sums);
                   })
      .stmt();
}

}  // namespace tilewright::topi
