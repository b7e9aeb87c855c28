// SPDX-License-Identifier: Apache-2.0
#include "topi/conv2d_nchwc.h"

#include <algorithm>
#include <numeric>

#include "tir/walk.h"
#include "topi/conv2d_loops.h"
#include "topi/reduce_steps.h"
#include "topi/register_tile.h"
#include "topi/words.h"

namespace tilewright::topi {

using namespace tir;

PixelStrides pixel_strides(const View& view, bool plain) {
  const std::vector<int64_t>& s = view.strides;
  const size_t rank = s.size() + (plain ? 1 : 0);
  TW_ICHECK(rank == 5 || rank == 6, "pixel_strides: rank");
  const bool depth = rank == 6;
  return {s[0], s[1], depth ? s[2] : 0, s[depth ? 3 : 2], s[depth ? 4 : 3], plain ? s[1] : s.back()};
}

Index pixel_index(const View& view, const PrimExpr& n, const PrimExpr& block, const PrimExpr& d, const PrimExpr& h,
                  const PrimExpr& w, const PrimExpr& lane) {
  if (view.rank() == 5) return {n, block, h, w, lane};
  return {n, block, d, h, w, lane};
}

TapRange depth_taps(const Conv2dProblem& p, const PrimExpr& first, const PrimExpr& last) {
  const ConvAxis axis = planes_of(p);
  if (axis.taps(0, 1) == axis.kernel && axis.taps(axis.out - 1, 1) == axis.kernel)
    return {make_int(0), make_int(axis.kernel)};
  return {taps_below(last * axis.stride - axis.pad, 0, axis.kernel, axis.dilation),
          taps_below(first * axis.stride - axis.pad, axis.in, axis.kernel, axis.dilation)};
}

bool can_flatten(const Conv2dProblem& p, const View& data, const View& out) {
  const PixelStrides from = pixel_strides(data, p.plain_data), to = pixel_strides(out, false);
  return !p.plain_data && p.kernel_height == 1 && p.kernel_width == 1 && p.stride_height == 1 && p.stride_width == 1 &&
         p.pad_top + p.pad_left + p.pad_bottom + p.pad_right == 0 && from.height == p.in_width * from.width &&
         to.height == p.out_width * to.width && p.in_width == p.out_width && p.out_height > 1;
}

namespace {

// Reductions up to kShortReduction wait for the cache lines of their results, so these are prefetched; with fewer
// blocks than kBlocksForHints the prefetches cost more than they gain.
constexpr int64_t kShortReduction = 1024, kBlocksForHints = 4;

class Conv2dKernel {
 public:
  Conv2dKernel(const Conv2dProblem& problem, const Conv2dConfig& config, const View& data, const View& weights,
               const View& out, const Epilogue& epilogue, const KernelContext& context)
      : p_(problem),
        c_(config),
        data_(data),
        weights_(weights),
        out_(out),
        epilogue_(epilogue),
        context_(context),
        l_(conv2d_loops(problem, config)),
        v_(problem.lanes),
        from_(pixel_strides(data, problem.plain_data)),
        to_(pixel_strides(out, false)),
        vector_(accumulator_dtype(data.dtype()).with_lanes(problem.lanes)),
        element_(static_cast<int64_t>(data.dtype().bytes())),
        skips_(skips_padding(problem, config)) {
    TW_ICHECK(l_.height % c_.tile_height == 0, "conv2d_nchwc: the tile's height divides the output's");
    TW_ICHECK(c_.tile_height == 1 || !c_.flatten, "conv2d_nchwc: flattened rows have height 1");
    TW_ICHECK(p_.groups == 1 || (p_.out_channels / p_.groups) % v_ == 0, "conv2d_nchwc: groups hold whole blocks");
    TW_ICHECK(l_.ic_blocks == 1 || l_.ic_block % c_.ic_unroll == 0, "conv2d_nchwc: the unroll divides the block");
    block_steps_ = l_.ic_block / c_.ic_unroll, last_steps_ = l_.last_ic / c_.ic_unroll;
    last_rest_ = static_cast<int>(l_.last_ic % c_.ic_unroll);
    channel_ = p_.words() && !p_.plain_data ? p_.word : from_.channel;
    column_ = p_.words() && p_.plain_data ? p_.word : p_.dilation_width * from_.width;
    panel_ahead_ = l_.panel * c_.oc_blocks * static_cast<int64_t>(weights.dtype().bytes()) >= 8 << 10;
    pixels_ahead_ = prefetches_pixels(p_, *context.target);
    result_ahead_ =
        2 * product(out.shape) * static_cast<int64_t>(out.dtype().bytes()) >= context.target->machine.l2_bytes &&
        p_.kernel_depth * p_.kernel_height * p_.kernel_width * (p_.in_channels / p_.groups) <= kShortReduction &&
        l_.ic_blocks >= kBlocksForHints;
  }

  // Band by band, each for all output channels: a
  // band's input stays in the L1/L2 cache meanwhile.
  Stmt stmt() const {
    const std::vector<int64_t> units{p_.batch * p_.out_depth, p_.groups, l_.bands, l_.oc_tiles, l_.band};
    Stmt all = parallel_for(context_, "unit", product(units), [&](PrimExpr unit) {
      return bind_all(unravel(unit, units), [&](Index at) { return one_unit(at); });
    });
    // The channels of the last wide block that belong to no group.
    return p_.groups * l_.oc_blocks % p_.split == 0 ? all : seq({all, channels_of_no_group()});
  }

 private:
  using Taps = TapRange;
  // The image and plane of a result.
  struct Image {
    PrimExpr n, d;  // d: plane of the result
  };
  // A register tile: pixels (h0 + r, w0 + i) x output blocks
  // from oc0 on, of one plane, and the taps it reads.
  struct Tile {
    Image image;
    PrimExpr group, oc0, h0, w0;
    int width, cols;
    const RegisterTile& acc;
    PrimExpr data_at = {}, weights_at = {};
  };

  Image image_of(const PrimExpr& plane) const {
    if (p_.out_depth == 1) return Image{plane, make_int(0)};
    return Image{floordiv(plane, p_.out_depth), floormod(plane, p_.out_depth)};
  }
  Index place_of(const Image& image, const PrimExpr& block, PrimExpr h, PrimExpr w) const {
    if (c_.flatten) {
      h = floordiv(w, p_.out_width);
      w = floormod(w, p_.out_width);
    }
    if (p_.split == 1) return pixel_index(out_, image.n, block, image.d, h, w, make_int(0));
    return pixel_index(out_, image.n, floordiv(block, p_.split), image.d, h, w,
                       floormod(block, p_.split) * int64_t{v_});
  }
  // Offset of input block `icb` of a group, or output block `block`, which is part of a wider block if groups are
  // narrow.
  PrimExpr part_at(const PrimExpr& block, int64_t step) const {
    return floordiv(block, p_.split) * step + floormod(block, p_.split) * int64_t{v_};
  }
  PrimExpr input_block(const PrimExpr& group, const PrimExpr& icb) const {
    const int64_t step = p_.plain_data ? 0 : from_.block;
    return p_.split == 1 ? icb * step : part_at(group * l_.ic_blocks + icb, step);
  }
  int64_t pixel_offset(const Tile& t, int r) const {
    return (r / t.width) * p_.stride_height * from_.height + (r % t.width) * p_.stride_width * from_.width;
  }

  Stmt each_tap(const char* name, const Taps& range, bool unrolled, const std::function<Stmt(PrimExpr)>& body) const {
    if (!unrolled) return loop(name, range.begin, range.end, body);
    std::vector<Stmt> all;
    for (int64_t i = 0; i < *constant_value(range.end); ++i) all.push_back(body(make_int(i)));
    return seq(std::move(all));
  }
  // Binds the range of taps that read data for `count` outputs from `first` on.
  Stmt with_taps(const ConvAxis& axis, bool across, const PrimExpr& first, int64_t count,
                 const std::function<Stmt(Taps)>& body) const {
    if (!skips_ || axis.kernel == 1) return body({make_int(0), make_int(across ? l_.columns : axis.kernel)});
    const PrimExpr begin = taps_below((first + (count - 1)) * axis.stride - axis.pad, 0, axis.kernel, axis.dilation);
    const PrimExpr end = taps_below(first * axis.stride - axis.pad, axis.in, axis.kernel, axis.dilation);
    return bind("tap_begin", begin, [&](PrimExpr begin) {
      return bind("tap_end", end, [&](PrimExpr end) { return body({begin, max(begin, end)}); });
    });
  }
  Stmt with_planes(const PrimExpr& d, const std::function<Stmt(Taps)>& body) const {
    const TapRange range = depth_taps(p_, d, d);
    return bind("plane_begin", range.begin, [&](PrimExpr begin) {
      return bind("plane_end", range.end, [&](PrimExpr end) {
        return body({begin, constant_value(end) ? end : max(begin, end)});
      });
    });
  }

  // Prefetches what the next tile along the row, or the first one of the rows below, reads first for this tap.
  std::vector<Stmt> next_pixels(const Tile& t, const PrimExpr& data_k, const PrimExpr& kw) const {
    std::vector<Stmt> hints;
    if (!pixels_ahead_) return hints;
    int64_t next = t.width * p_.stride_width * from_.width * element_;
    if (const auto w0 = constant_value(t.w0); w0 && !c_.flatten && *w0 + t.width == p_.out_width)
      next = (c_.tile_height * p_.stride_height * from_.height - *w0 * p_.stride_width * from_.width) * element_;
    const int64_t new_taps = p_.stride_width / std::gcd(p_.stride_width, p_.dilation_width);
    int64_t line = 0;
    for (int r = 0; r < c_.tile_height * t.width; ++r) {
      const int64_t byte = pixel_offset(t, r) * element_;
      if (r % t.width != 0 && byte < line) continue;
      hints.push_back(prefetch(data_.buffer, data_k + (byte + next) / element_));
      line = byte + 64;
    }
    if (new_taps < p_.kernel_width) hints = {make_if(le(make_int(p_.kernel_width - new_taps), kw), seq(hints))};
    return hints;
  }
  // Prefetches the lines of the result, and of a residual
  // of equal size, if they come from beyond the L2 cache;
  // the lines are distributed over the input blocks.
  std::vector<Stmt> result_pixels(const Tile& t, const PrimExpr& icb) const {
    std::vector<Stmt> hints;
    const int64_t share = ceil_div(t.width, l_.ic_blocks);
    auto ask = [&](const Buffer& buffer, const PrimExpr& first) {
      for (int64_t i = 0; i < share; ++i) hints.push_back(prefetch(buffer, first + (icb * share + i) * to_.width));
    };
    for (int r = 0; result_ahead_ && r < c_.tile_height; ++r)
      for (int col = 0; col < t.cols; ++col) {
        const Index at = place_of(t.image, t.oc0 + col, t.h0 + r, t.w0);
        for_each_expr(epilogue_(make_const(vector_, 0), at, {}), [&](const PrimExpr& e) {
          const auto* read = as<LoadNode>(e);
          const auto* lanes = read ? as<RampNode>(read->index) : nullptr;
          if (lanes && read->buffer->size >= product(out_.shape)) ask(read->buffer, lanes->base);
        });
        ask(out_.buffer, out_.flat(at));
      }
    return hints;
  }

  PrimExpr element(const PrimExpr& at) const { return p_.words() ? word_at(data_.buffer, at) : load(data_.buffer, at); }
  // `count` channels of an input block, from `first` on, for one tap.
  Stmt channels(const Tile& t, const PrimExpr& data_k, const PrimExpr& weights_k, const PrimExpr& first,
                int count) const {
    PrimExpr data_ic = data_k + first * channel_, weights_ic = weights_k + first * int64_t{v_};
    std::vector<Stmt> body;
    for (int u = 0; u < count; ++u) {
      for (int col = 0; panel_ahead_ && col < t.cols; ++col)
        prefetch_ahead(&body, weights_.buffer, weights_ic + col * l_.panel, u * v_, v_, kPrefetchBytes);
      body.push_back(t.acc.step([&](int r) { return element(data_ic + (pixel_offset(t, r) + u * channel_)); },
                                [&](int col) {
                                  return load(weights_.buffer,
                                              ramp(weights_ic + (col * l_.panel + u * v_), 1, t.acc.lanes(col)));
                                }));
    }
    return seq(std::move(body));
  }
  // All channels of input block `icb` for one tap.
  Stmt tap(const Tile& t, const PrimExpr& icb, const PrimExpr& kd, const PrimExpr& kh, const PrimExpr& kw) const {
    PrimExpr data_k = t.data_at + (input_block(t.group, icb) + kd * (p_.dilation_depth * from_.depth) +
                                   kh * (p_.dilation_height * from_.height) + kw * column_);
    PrimExpr weights_k =
        t.weights_at + (((icb * p_.kernel_depth + kd) * p_.kernel_height + kh) * l_.columns + kw) * (l_.ic_block * v_);
    const bool alike = l_.ic_blocks == 1 || block_steps_ == last_steps_;
    const PrimExpr is_last = eq(icb, make_int(l_.ic_blocks - 1));
    PrimExpr steps = alike ? make_int(last_steps_) : select(is_last, make_int(last_steps_), make_int(block_steps_));
    std::vector<Stmt> parts = next_pixels(t, data_k, kw);
    if (alike ? last_steps_ > 0 : block_steps_ > 0)
      parts.push_back(bind("steps", steps, [&](PrimExpr steps) {
        return loop("ic", make_int(0), steps, [&](PrimExpr ic) {
          return channels(t, data_k, weights_k, ic * int64_t{c_.ic_unroll}, c_.ic_unroll);
        });
      }));
    if (last_rest_) {
      Stmt rest = channels(t, data_k, weights_k, make_int(last_steps_ * c_.ic_unroll), last_rest_);
      parts.push_back(l_.ic_blocks == 1 ? rest : make_if(is_last, rest));
    }
    return seq(std::move(parts));
  }
  Stmt sums(const Tile& t, const Taps& planes, const Taps& down, const Taps& across) const {
    return loop("icb", l_.ic_blocks, [&](PrimExpr icb) {
      std::vector<Stmt> block = result_pixels(t, icb);
      block.push_back(each_tap("kd", planes, false, [&](PrimExpr kd) {
        return each_tap("kh", down, c_.tap_unroll >= 2, [&](PrimExpr kh) {
          return each_tap("kw", across, c_.tap_unroll >= 1, [&](PrimExpr kw) { return tap(t, icb, kd, kh, kw); });
        });
      }));
      return seq(std::move(block));
    });
  }
  Stmt reduction(const Tile& t) const {
    return with_planes(t.image.d, [&](Taps planes) {
      return with_taps(rows_of(p_), false, t.h0, c_.tile_height, [&](Taps down) {
        return with_taps(columns_of(p_), true, t.w0, t.width,
                         [&](Taps across) { return sums(t, planes, down, across); });
      });
    });
  }
  Stmt drain(const Tile& t) const {
    PrimExpr origin = t.image.n * to_.image + (p_.split == 1 ? t.oc0 * to_.block : make_int(0)) +
                      t.image.d * to_.depth + t.h0 * to_.height + t.w0 * to_.width + out_.offset;
    return bind("out_at", origin, [&](PrimExpr out_at) {
      return t.acc.drain([&](int r, int col, PrimExpr value) {
        Index index = place_of(t.image, t.oc0 + col, t.h0 + (r / t.width), t.w0 + (r % t.width));
        PrimExpr at =
            make_int((r / t.width) * to_.height + (r % t.width) * to_.width + (p_.split == 1 ? col * to_.block : 0));
        if (p_.split > 1) at = at + part_at(t.oc0 + col, to_.block);
        return store(out_.buffer, ramp(out_at + at, 1, v_), epilogue_(value, index, {}));
      });
    });
  }
  Stmt tile(const Image& image, const PrimExpr& group, const PrimExpr& oc0, const PrimExpr& h0, const PrimExpr& w0,
            int width, int cols, bool half) const {
    RegisterTile acc(c_.tile_height * width, cols, vector_, half ? v_ / 2 : v_);
    acc.of_words(p_.word);
    Tile t{image, group, oc0, h0, w0, width, cols, acc};
    const int64_t group_step = p_.split > 1    ? 0
                               : p_.plain_data ? p_.in_channels / p_.groups * from_.channel
                                               : l_.ic_blocks * from_.block;
    PrimExpr origin =
        image.n * from_.image + image.d * (p_.stride_depth * from_.depth) + group * group_step +
        h0 * (p_.stride_height * from_.height) + w0 * (p_.stride_width * from_.width) +
        (data_.offset - p_.pad_front * from_.depth - p_.pad_top * from_.height - p_.pad_left * from_.width);
    return bind("data_at", origin, [&](PrimExpr data_at) {
      return bind("weights_at", oc0 * l_.panel + weights_.offset, [&](PrimExpr weights_at) {
        t.data_at = data_at, t.weights_at = weights_at;
        Stmt reduce = reduction(t);
        Stmt stores = drain(t);
        return acc.scope(seq({acc.clear(), reduce, stores}));
      });
    });
  }

  // The width tiles of one unit of work.
  Stmt row(const Image& image, const PrimExpr& group, const PrimExpr& oc0, const PrimExpr& h0, const PrimExpr& chunk,
           int cols, bool half) const {
    std::vector<Stmt> body;
    if (l_.width_tiles > 0) {
      PrimExpr first = chunk * l_.chunk;
      PrimExpr end =
          l_.width_tiles % l_.chunk == 0 ? first + l_.chunk : min(first + l_.chunk, make_int(l_.width_tiles));
      body.push_back(loop("wt", first, end, [&](PrimExpr wt) {
        return tile(image, group, oc0, h0, wt * c_.tile_width, c_.tile_width, cols, half);
      }));
    }
    if (l_.width_tail) {
      Stmt tail = tile(image, group, oc0, h0, make_int(l_.width_tiles * c_.tile_width), static_cast<int>(l_.width_tail),
                       cols, half);
      body.push_back(l_.chunks == 1 ? tail : make_if(eq(chunk, make_int(l_.chunks - 1)), tail));
    }
    return seq(std::move(body));
  }
  // at: image and plane, group, band, tile
  // of output channels, unit in the band.
  Stmt one_unit(const Index& at) const {
    const int64_t places = l_.row_tiles * l_.chunks;
    return bind("place", at[2] * l_.band + at[4], [&](PrimExpr place) {
      const Image image = image_of(at[0]);
      const PrimExpr group = at[1], oc_tile = at[3];
      Stmt one = bind("h0", floordiv(place, l_.chunks) * c_.tile_height, [&](PrimExpr h0) {
        return bind("chunk", floormod(place, l_.chunks), [&](PrimExpr chunk) {
          return bind("oc0", group * l_.oc_blocks + oc_tile * c_.oc_blocks, [&](PrimExpr oc0) {
            Stmt last = row(image, group, oc0, h0, chunk, l_.last_cols, l_.half);
            if (l_.oc_tiles == 1) return last;
            Stmt other = row(image, group, oc0, h0, chunk, c_.oc_blocks, false);
            if (l_.last_cols == c_.oc_blocks && !l_.half) return other;
            return make_if(eq(oc_tile, make_int(l_.oc_tiles - 1)), last, other);
          });
        });
      });
      return l_.bands * l_.band == places ? one : make_if(lt(place, make_int(places)), one);
    });
  }
  Stmt channels_of_no_group() const {
    const std::vector<int64_t> pixels{p_.batch * p_.out_depth, p_.out_height, p_.out_width};
    return parallel_for(context_, "pixel", product(pixels), [&](PrimExpr pixel) {
      Index at = unravel(pixel, pixels);
      const Image image = image_of(at[0]);
      std::vector<Stmt> parts;
      for (int64_t part = p_.groups * l_.oc_blocks; part % p_.split != 0; ++part) {
        const Index index = pixel_index(out_, image.n, make_int(part / p_.split), image.d, at[1], at[2],
                                        make_int(part % p_.split * v_));
        parts.push_back(out_.store(index, epilogue_(make_const(vector_, 0), index, {})));
      }
      return seq(std::move(parts));
    });
  }

  const Conv2dProblem& p_;
  const Conv2dConfig& c_;
  const View &data_, &weights_, &out_;
  const Epilogue& epilogue_;
  const KernelContext& context_;
  const Conv2dLoops l_;
  const int v_;                   // lanes of a block
  const PixelStrides from_, to_;  // strides of data and result
  const DataType vector_;         // dtype of accumulator vectors
  const int64_t element_;         // bytes per data element
  const bool skips_;              // skips taps that only read padding
  int64_t block_steps_ = 0,
          last_steps_ = 0;            // iterations over an input block's channels,
                                      // and over the last block's
  int last_rest_ = 0;                 // channels of the last block behind its whole steps
  int64_t channel_ = 1, column_ = 1;  // data strides: from step to step, and from tap to tap of a row
  bool panel_ahead_ = false, pixels_ahead_ = false,
       result_ahead_ = false;  // what to prefetch
};

}  // namespace

Stmt conv2d_nchwc(const Conv2dProblem& p, const Conv2dConfig& c, const View& data, const View& weights, const View& out,
                  const Epilogue& epilogue, const KernelContext& context) {
  return Conv2dKernel(p, c, data, weights, out, epilogue, context).stmt();
}

}  // namespace tilewright::topi
