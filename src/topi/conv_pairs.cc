// SPDX-License-Identifier: Apache-2.0
#include "topi/conv_pairs.h"

#include <algorithm>
#include <cmath>

#include "topi/byte_tiles.h"
#include "topi/words.h"

namespace tilewright::topi {

using namespace tir;

namespace {

constexpr int kPairSums = 8;
constexpr int64_t kMostColumns = 8;  // columns of a row that a tile reads

int64_t columns_of(const ConvBytesProblem& p, int64_t pixels) {
  return (pixels - 1) * p.stride_width + (p.kernel_width - 1) * p.dilation_width + 1;
}
int64_t pairs_of(const ConvBytesProblem& p) { return ceil_div(p.channels, 2); }
// Pairs per iteration, where a single step would be short.
int64_t pairs_together(const ConvBytesProblem& p) {
  return p.kernel_width != 1 ? 1 : p.channels % 8 == 0 ? 4 : p.channels % 4 == 0 ? 2 : 1;
}

TileInstructions pair_instructions(const ConvBytesProblem& p) {
  return [&p](double rows, double pixels, bool whole_row) {
    const auto taps = static_cast<double>(p.kernel_width);
    const int64_t columns = columns_of(p, static_cast<int64_t>(pixels));
    // Two loads, both halves of each, and their combination; for two columns the halves are combined first.
    const int64_t row_loads = columns / 4 * 10 + columns % 4 / 2 * 5 + columns % 2 * 4;
    const double loads = whole_row ? static_cast<double>(row_loads) : taps * 6;
    // Estimates GCC 12's spills of sums and columns that do not fit beside weights, addresses and a counter; fitted to
    // its output for eight tiles.
    const double live = rows * pixels + static_cast<double>(columns);
    const double spills = whole_row && live > 9 ? 3 * std::pow(live - 9, 1.3) : 0;
    const double body = loads + taps * rows * 1.5 + rows * pixels * taps + spills;
    const auto steps = static_cast<double>(pairs_of(p) * p.kernel_height);
    return steps * (body + 3.0 / static_cast<double>(pairs_together(p))) + 14 + rows * pixels * 22;
  };
}

struct PairsKernel {
  const ConvBytesProblem& p;
  const View &data, &weights;

  // A tile's sums, and a row's columns, whose halves are a pair of channels.
  struct Registers {
    Buffer sums, columns;
    int rows, pixels;
  };

  bool is_unsigned() const { return data.buffer->dtype == kUInt8; }
  // Added to both halves: turns bytes, read as signed, into their distance from the zero point.
  PrimExpr shift() const {
    const int64_t half = (is_unsigned() ? 128 : 0) - p.zero;
    return make_int(static_cast<int32_t>(static_cast<uint32_t>(half & 0xffff) * 0x10001U), kInt32);
  }
  PrimExpr as_signed(const PrimExpr& word) const {
    if (!is_unsigned()) return word;
    return binary(ExprKind::kBitXor, word, make_int(static_cast<int32_t>(0x80808080U), kInt32));
  }
  PrimExpr halves(Intrinsic which, const PrimExpr& a, const PrimExpr& b) const { return intrinsic(which, {a, b}); }

  // Loads columns from `first` on of the channels at a and b: four, two or one.
  Stmt load_columns(const Registers& r, int64_t first, int64_t count, const PrimExpr& a, const PrimExpr& b) const {
    auto set = [&](int64_t column, const PrimExpr& value) { return store(r.columns, make_int(first + column), value); };
    using I = Intrinsic;
    if (count >= 4) {
      return bind("a", as_signed(word_at(data.buffer, a + first)), [&](const PrimExpr& x) {
        return bind("b", as_signed(word_at(data.buffer, b + first)), [&](const PrimExpr& y) {
          std::vector<Stmt> all;
          for (int odd = 0; odd < 2; ++odd) {
            const I bytes = odd != 0 ? I::k_odd_bytes : I::k_even_bytes;
            all.push_back(bind("a_halves", halves(bytes, shift(), x), [&](const PrimExpr& u) {
              return bind("b_halves", halves(bytes, shift(), y), [&](const PrimExpr& v) {
                return seq({set(odd, halves(I::k_low_halves, u, v)), set(odd + 2, halves(I::k_high_halves, u, v))});
              });
            }));
          }
          return seq(std::move(all));
        });
      });
    }
    auto part = [&](const PrimExpr& at) {
      if (count == 1) return cast(kInt32, load(data.buffer, at + first));
      return cast(kInt32, reinterpret(kUInt16, load(data.buffer, ramp(at + first, 1, 2))));
    };
    return bind("both", as_signed(halves(I::k_low_halves, part(a), part(b))), [&](const PrimExpr& both) {
      std::vector<Stmt> all{set(0, halves(I::k_even_bytes, shift(), both))};
      if (count == 2) all.push_back(set(1, halves(I::k_odd_bytes, shift(), both)));
      return seq(std::move(all));
    });
  }
  // One tap of a pair of channels: all rows' weights by all pixels' columns.
  Stmt multiply(const Registers& r, const PrimExpr& words, int64_t tap) const {
    std::vector<Stmt> all;
    for (int two = 0; two < r.rows / 2; ++two)
      all.push_back(bind("w", load(weights.buffer, words + two), [&](const PrimExpr& w) {
        std::vector<Stmt> rows;
        for (int odd = 0; odd < 2; ++odd) {
          const Intrinsic bytes = odd != 0 ? Intrinsic::k_odd_bytes : Intrinsic::k_even_bytes;
          rows.push_back(bind("pair", halves(bytes, make_int(0, kInt32), w), [&](const PrimExpr& pair) {
            std::vector<Stmt> sums;
            for (int x = 0; x < r.pixels; ++x) {
              const PrimExpr at = make_int(int64_t{2 * two + odd} * r.pixels + x);
              const PrimExpr column = load(r.columns, make_int(x * p.stride_width + tap * p.dilation_width));
              sums.push_back(store(r.sums, at, intrinsic(Intrinsic::k_dot2, {load(r.sums, at), column, pair})));
            }
            return seq(std::move(sums));
          }));
        }
        return seq(std::move(rows));
      }));
    return seq(std::move(all));
  }
  // All taps of a row for a pair of channels; without a second channel its weights are zero.
  Stmt pair_of_channels(const BytePlace& t, const Registers& r, const PrimExpr& from, int64_t second,
                        const PrimExpr& words) const {
    const int64_t per_tap = r.rows / 2;
    std::vector<Stmt> all;
    if (!t.whole_row)
      return loop("kx", t.columns.begin, t.columns.end, [&](const PrimExpr& k) {
        const PrimExpr at = from + k * p.dilation_width;
        return seq({load_columns(r, 0, 1, at, at + second), multiply(r, words + k * per_tap, 0)});
      });
    const int64_t columns = columns_of(p, r.pixels);
    for (int64_t first = 0; first < columns;) {
      const int64_t count = columns - first >= 4 ? 4 : columns - first >= 2 ? 2 : 1;
      all.push_back(load_columns(r, first, count, from, from + second));
      first += count;
    }
    for (int64_t k = 0; k < p.kernel_width; ++k) all.push_back(multiply(r, words + k * per_tap, k));
    return seq(std::move(all));
  }
  Stmt rows(const BytePlace& t, const Registers& r, const PrimExpr& data_at, const PrimExpr& weights_at) const {
    const int64_t per_pair = p.kernel_width * r.rows / 2, together = pairs_together(p), whole = p.channels / 2;
    const int64_t channel = data.strides[1];
    return loop("ky", t.rows.begin, t.rows.end, [&](const PrimExpr& k) {
      return bind("row_at", data_at + k * (p.dilation_height * data.strides[2]), [&](const PrimExpr& row_at) {
        return bind("words_at", weights_at + k * (pairs_of(p) * per_pair), [&](const PrimExpr& words_at) {
          std::vector<Stmt> all;
          if (whole > 0)
            all.push_back(loop("pairs", whole / together, [&](const PrimExpr& i) {
              std::vector<Stmt> steps;
              for (int64_t part = 0; part < together; ++part)
                steps.push_back(pair_of_channels(t, r, row_at + (i * together + part) * (2 * channel), channel,
                                                 words_at + (i * together + part) * per_pair));
              return seq(std::move(steps));
            }));
          if (p.channels % 2 != 0)
            all.push_back(pair_of_channels(t, r, row_at + whole * 2 * channel, 0, words_at + whole * per_pair));
          return seq(std::move(all));
        });
      });
    });
  }
  Stmt tile(const BytePlace& t, int oc_rows, int pixels, const PrimExpr& data_at, const Buffer& to) const {
    const int64_t columns = t.whole_row ? columns_of(p, pixels) : 1, sums = int64_t{oc_rows} * pixels;
    const Registers r{make_buffer("acc", kInt32, sums, Scope::kRegister),
                      make_buffer("columns", kInt32, columns, Scope::kRegister), oc_rows, pixels};
    const int64_t words = p.kernel_height * pairs_of(p) * p.kernel_width * (oc_rows / 2);
    return bind("weights_at", floordiv(t.oc, make_int(oc_rows)) * words + weights.offset,
                [&](const PrimExpr& weights_at) {
                  std::vector<Stmt> all;
                  for (int64_t i = 0; i < sums; ++i) all.push_back(store(r.sums, make_int(i), make_int(0, kInt32)));
                  all.push_back(rows(t, r, data_at, weights_at));
                  for (int64_t i = 0; i < sums; ++i) all.push_back(store(to, make_int(i), load(r.sums, make_int(i))));
                  return allocate(r.sums, allocate(r.columns, seq(std::move(all))));
                });
  }
};

}  // namespace

bool pairs_fit(const ConvBytesProblem& p, const ConvBytesConfig& c) {
  return c.oc_rows >= 2 && c.oc_rows % 2 == 0 && p.outputs % c.oc_rows == 0 && c.pixels >= 1 &&
         int64_t{c.oc_rows} * c.pixels <= 32 && columns_of(p, c.pixels) <= kMostColumns;
}

std::vector<ConvBytesConfig> pairs_configs(const ConvBytesProblem& p, size_t most) {
  return byte_tile_configs(
      p, kPairSums, most, [&](const ConvBytesConfig& c) { return pairs_fit(p, c); }, pair_instructions(p));
}

Cost estimate_pairs(const ConvBytesProblem& p, const ConvBytesConfig& c, const Target& target) {
  return byte_tiles_cost(p, byte_tiles_instructions(p, c, pair_instructions(p)), target);
}

Tensor pack_conv_pairs(const Tensor& weights, const ConvBytesConfig& c) {
  TW_ICHECK(weights.dtype() == kInt8, "pack_conv_pairs: weights of int8");
  std::vector<int64_t> shape = weights.shape();
  shape.resize(4, 1);
  const int64_t outputs = shape[0], channels = shape[1], kh = shape[2], kw = shape[3], pairs = ceil_div(channels, 2);
  const int64_t half = c.oc_rows / 2;
  Tensor packed = Tensor::zeros(kInt32, {outputs / c.oc_rows, kh, pairs, kw, half});
  auto* to = reinterpret_cast<uint32_t*>(packed.mutable_raw());
  const auto* from = reinterpret_cast<const int8_t*>(weights.raw());
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t i = 0; i < channels; ++i)
      for (int64_t y = 0; y < kh; ++y)
        for (int64_t x = 0; x < kw; ++x) {
          const int64_t row = o % c.oc_rows, byte = row % 2 + i % 2 * 2;
          const int64_t word = (((o / c.oc_rows * kh + y) * pairs + i / 2) * kw + x) * half + row / 2;
          to[word] |= static_cast<uint32_t>(static_cast<uint8_t>(from[((o * channels + i) * kh + y) * kw + x]))
                      << (8 * byte);
        }
  return packed;
}

Stmt conv_pairs(const ConvBytesProblem& p, const ConvBytesConfig& c, const View& data, const View& weights,
                const View& out, const Epilogue& epilogue, const KernelContext& context) {
  TW_ICHECK(data.rank() == 4 && out.rank() == 4 && data.strides[3] == 1, "conv_pairs: pixels beside each other");
  const PairsKernel kernel{p, data, weights};
  return ByteTiles(p, c, data, out, epilogue, context,
                   [&](const BytePlace& t, int rows, int pixels, const PrimExpr& data_at, const Buffer& sums) {
                     return kernel.tile(t, rows, pixels, data_at, sums);
                   })
      .stmt();
}

}  // namespace tilewright::topi
