// SPDX-License-Identifier: Apache-2.0
#include "topi/winograd.h"

#include <algorithm>

#include "topi/register_tile.h"
#include "topi/winograd_loops.h"

namespace tilewright::topi {

using namespace tir;

namespace {

// Applies a program along both axes of a tile of vectors: columns first, kept in registers, then rows as they are
// stored.
Stmt transform_tile(const LinearProgram& down, const LinearProgram& across, const DataType& vector,
                    const std::function<PrimExpr(int, int)>& input,
                    const std::function<Stmt(int, int, PrimExpr)>& output,
                    const std::function<Stmt(int, Stmt)>& row = {}) {
  const int wide = across.inputs, high = static_cast<int>(down.results.size());
  Buffer middle = make_buffer("middle", vector, int64_t{high} * wide, Scope::kRegister);
  Buffer line =
      make_buffer("line", vector, std::max(program_registers(down), program_registers(across)), Scope::kRegister);
  std::vector<Stmt> body;
  for (int j = 0; j < wide; ++j)
    body.push_back(emit_program(
        down, line, [&](int i) { return input(i, j); },
        [&](int i, PrimExpr value) { return store(middle, make_int(i * wide + j), value); }));
  for (int i = 0; i < high; ++i) {
    Stmt one = emit_program(
        across, line, [&](int j) { return load(middle, make_int(i * wide + j)); },
        [&](int j, PrimExpr value) { return output(i, j, value); });
    body.push_back(row ? row(i, one) : one);
  }
  return allocate(middle, allocate(line, seq(std::move(body))));
}

struct WinogradKernel {
  const Conv2dProblem& p;
  const WinogradConfig& c;
  const View &data, &weights, &out;
  const Epilogue& epilogue;
  const KernelContext& context;
  const WinogradLoops l = winograd_loops(p, c);
  const int v = p.lanes;
  // Of the products and the result, and of the transformed data. Bytes (p.words()) are transformed as halves, of which
  // scratch has two in a word.
  const DataType vector = (p.words() ? kInt32 : data.dtype()).with_lanes(v),
                 transformed = p.words() ? kInt16.with_lanes(v) : vector;
  const int stored = static_cast<int>(l.block);  // elements of scratch for a block of channels
  const Buffer scratch = context.scratch;
  const PixelStrides in = pixel_strides(data, false), result = pixel_strides(out, false);
  const int64_t products_at = l.points * l.data_stride;  // offset of the products
  // Tiles may extend past the edge; if combs have different lengths, even their first row (column) may.
  const bool uneven_rows = p.out_height % l.dilation_height != 0, uneven_columns = p.out_width % l.dilation_width != 0;
  const bool cut_rows = uneven_rows || p.out_height / l.dilation_height % c.tile_height != 0,
             cut_columns = uneven_columns || p.out_width / l.dilation_width % c.tile_width != 0;

  Stmt stmt() const {
    const Range share = parallel_range(context, l.blocks * l.oc_tiles);
    return bind("unit_begin", share.begin, [&](PrimExpr begin) {
      return bind("unit_end", share.end, [&](PrimExpr end) {
        PrimExpr first = floordiv(begin, l.oc_tiles), last = floordiv(end + (l.oc_tiles - 1), l.oc_tiles);
        Stmt blocks = bind("block_begin", first, [&](PrimExpr first) {
          return bind("block_end", last, [&](PrimExpr last) {
            PrimExpr block = make_var("block");
            return make_for(block, first, last - first,
                            bind("oc_begin", max(begin - block * l.oc_tiles, make_int(0)), [&](PrimExpr oc_begin) {
                              return bind("oc_end", min(end - block * l.oc_tiles, make_int(l.oc_tiles)),
                                          [&](PrimExpr oc_end) { return block_of_tiles(block, oc_begin, oc_end); });
                            }));
          });
        });
        return make_if(lt(begin, end), blocks);
      });
    });
  }

  PrimExpr scratch_at(const PrimExpr& at) const { return load(scratch, ramp(at, 1, v)); }
  // First row (column) of tile `i` along an axis: first by comb, then by tile; a comb's rows are `dilation` apart.
  static PrimExpr origin_of(const PrimExpr& i, int64_t tile, int64_t comb_tiles, int64_t dilation) {
    if (dilation == 1) return i * tile;
    return floordiv(i, comb_tiles) + floormod(i, comb_tiles) * (tile * dilation);
  }
  // The image, first row and first column of tile number `tile` of the whole output.
  Stmt place_of(const PrimExpr& tile, const std::function<Stmt(PrimExpr, PrimExpr, PrimExpr)>& body) const {
    Index at = unravel(tile, {p.batch, l.tiles_high, l.tiles_wide});
    return bind("n", at[0], [&](PrimExpr n) {
      return bind("h0", origin_of(at[1], c.tile_height, l.comb_tiles_high, l.dilation_height), [&](PrimExpr h0) {
        return bind("w0", origin_of(at[2], c.tile_width, l.comb_tiles_wide, l.dilation_width),
                    [&](PrimExpr w0) { return body(n, h0, w0); });
      });
    });
  }

  // Channel blocks in the outer loop, so that each row of the map is one stream for the prefetcher.
  Stmt transform_plane(const PrimExpr& icb, const PrimExpr& slot, const PrimExpr& plane, const PrimExpr& first,
                       const PrimExpr& count) const {
    return loop("tile", make_int(0), count, [&](PrimExpr tile) {
      return place_of(first + tile, [&](PrimExpr n, PrimExpr h0, PrimExpr w0) {
        // Dilated kernels have stride 1.
        const int64_t step_h = p.stride_height * l.dilation_height * in.height,
                      step_w = p.stride_width * l.dilation_width * in.width;
        PrimExpr origin = n * in.image + icb * in.block + plane * in.depth + h0 * (p.stride_height * in.height) +
                          w0 * (p.stride_width * in.width) +
                          (data.offset - p.pad_top * in.height - p.pad_left * in.width);
        return bind("from", origin, [&](PrimExpr from) {
          return bind(
              "to", icb * (l.slots * c.block_tiles * stored) + (slot * count + tile) * stored, [&](PrimExpr to) {
                std::vector<Stmt> phases;
                for (int y = 0; y < l.down.stride; ++y)
                  for (int x = 0; x < l.across.stride; ++x)
                    phases.push_back(transform_tile(
                        l.down.data(y), l.across.data(x), transformed,
                        [&](int i, int j) {
                          PrimExpr pixel = load(
                              data.buffer, ramp(from + (i * step_h + y * in.height + j * step_w + x * in.width), 1, v));
                          return p.words() ? cast(transformed, pixel) : pixel;
                        },
                        [&](int i, int j, PrimExpr value) {
                          const int64_t phase = y * l.across.phases(j) + x;
                          const int64_t place = (i * l.across.products() + j) * l.data_stride +
                                                phase * (l.ic_blocks * l.slots * c.block_tiles * stored);
                          return store(scratch, ramp(to + place, 1, stored),
                                       reinterpret(vector.with_lanes(stored), value));
                        }));
                return seq(std::move(phases));
              });
        });
      });
    });
  }
  // Planes before the first and after the last are zero.
  Stmt clear_plane(const PrimExpr& icb, const PrimExpr& slot, const PrimExpr& count) const {
    return loop("phase", l.phases, [&](PrimExpr phase) {
      return loop("point", l.points, [&](PrimExpr point) {
        return loop("tile", make_int(0), count, [&](PrimExpr tile) {
          PrimExpr to = point * l.data_stride + (phase * l.ic_blocks + icb) * (l.slots * c.block_tiles * v) +
                        (slot * count + tile) * v;
          return store(scratch, ramp(to, 1, v), make_const(vector, 0));
        });
      });
    });
  }
  Stmt transform_data(PrimExpr first, PrimExpr count) const {
    return loop("icb", l.ic_blocks, [&](PrimExpr icb) {
      return loop("slot", l.slots, [&](PrimExpr slot) {
        PrimExpr at = floormod(slot, l.slots_each) * p.stride_depth + floordiv(slot, l.slots_each) - p.pad_front;
        return bind("plane", l.slots == 1 ? make_int(0) : at, [&](PrimExpr plane) {
          Stmt inside = transform_plane(icb, slot, plane, first, count);
          const int64_t last = (l.slots_each - 1) * p.stride_depth + l.remainders - 1 - p.pad_front;
          if (l.slots == 1 || (p.pad_front == 0 && last < p.in_depth)) return inside;
          PrimExpr real = logical_and(le(make_int(0), plane), lt(plane, make_int(p.in_depth)));
          return make_if(real, inside, clear_plane(icb, slot, count));
        });
      });
    });
  }

  // The input channel blocks over which a point sums: those of all phases that have the point. They, and the offset in
  // the weights, follow from the point's position in the tile.
  Stmt with_point(const PrimExpr& point, const std::function<Stmt(PrimExpr, PrimExpr)>& body) const {
    if (l.phases == 1) return body(make_int(l.ic_blocks), point);
    const int64_t wide = l.across.products(), high = l.down.products();
    auto phases = [](const WinogradAxis& axis, const PrimExpr& at, int64_t products) {
      if (axis.last_phases == axis.stride) return make_int(axis.stride);
      return select(eq(at, make_int(products - 1)), make_int(axis.last_phases), make_int(axis.stride));
    };
    return bind("i", floordiv(point, wide), [&](PrimExpr i) {
      return bind("j", floormod(point, wide), [&](PrimExpr j) {
        return bind("phases_down", phases(l.down, i, high), [&](PrimExpr down_phases) {
          return bind("blocks", down_phases * phases(l.across, j, wide) * l.ic_blocks, [&](PrimExpr blocks) {
            PrimExpr before =
                i * int64_t{l.down.stride * l.across.slices()} + down_phases * j * int64_t{l.across.stride};
            return bind("slice", before, [&](PrimExpr slice) { return body(blocks, slice); });
          });
        });
      });
    });
  }

  // Accumulates `blocks` blocks of input channels; each step
  // prefetches `hints` elements of weights from `ahead` on.
  Stmt sum_of_channels(const RegisterTile& acc, const PrimExpr& blocks, const PrimExpr& data_at,
                       const PrimExpr& weights_at, const PrimExpr& ahead, int64_t hints) const {
    const int unroll = c.ic_unroll;
    const int64_t row = int64_t{acc.cols()} * v, line = 64 / static_cast<int64_t>(vector.element().bytes());
    return loop("icb", make_int(0), blocks, [&](PrimExpr icb) {
      const int64_t block_steps = stored / unroll;
      PrimExpr steps = l.last_steps == block_steps || l.ic_blocks == 1
                           ? make_int(l.last_steps)
                           : select(eq(icb, make_int(l.ic_blocks - 1)), make_int(l.last_steps), make_int(block_steps));
      return bind("steps", steps, [&](PrimExpr steps) {
        return loop("ic", make_int(0), steps, [&](PrimExpr ic) {
          PrimExpr data_k = data_at + (icb * (l.slots * c.block_tiles * stored) + ic * unroll);
          PrimExpr weights_k = weights_at + (icb * (stored * row) + ic * (unroll * row));
          PrimExpr ahead_k = ahead + (icb * (stored / unroll) + ic) * (hints);
          std::vector<Stmt> body;
          for (int64_t i = 0; l.prefetches && i < hints / line; ++i)
            body.push_back(prefetch(weights.buffer, ahead_k + i * line));
          for (int u = 0; u < unroll; ++u) {
            body.push_back(acc.step([&](int r) { return load(scratch, data_k + (int64_t{r} * stored + u)); },
                                    [&](int col) {
                                      return load(weights.buffer,
                                                  ramp(weights_k + (u * row + int64_t{col} * v), 1, acc.lanes(col)));
                                    }));
          }
          return seq(std::move(body));
        });
      });
    });
  }

  // The product of one point: rows first .. first + rows of a block by the output blocks of a channel tile.
  Stmt multiply(PrimExpr point, PrimExpr blocks, PrimExpr weights_at, PrimExpr turn, PrimExpr count, int rows, int cols,
                bool half) const {
    RegisterTile acc(rows, cols, vector, half ? v / 2 : v);
    acc.of_words(p.words() ? 2 : 0);
    const int unroll = c.ic_unroll;
    const int64_t row = int64_t{cols} * v;  // weights of one input channel
    // Spreads the reads of weights from memory: each pass
    // over a panel prefetches its share of the next panel.
    const int64_t line = 64 / static_cast<int64_t>(vector.element().bytes()),
                  lines = ceil_div(unroll * row, line * l.turns);
    // With a single pass, the prefetch distance is a thousand cycles, longer than memory latency.
    const int64_t distance = std::min<int64_t>(192, 1000 / rows) * line;
    PrimExpr ahead = weights_at + distance;
    // The next panel: of the next channel tile, or of the next point.
    if (l.turns > 1 && l.phases == 1)
      ahead = weights_at + l.panel * cols + turn * (p.kernel_depth * l.ic_padded / unroll * lines * line);
    else if (l.turns > 1)
      ahead = weights_at + blocks * (p.kernel_depth * v * row) +
              turn * blocks * (p.kernel_depth * v / unroll * lines * line);
    const PrimExpr first = turn * c.rows;
    return bind("row_at", point * l.data_stride + first * stored, [&](PrimExpr row_at) {
      auto sum = [&](const PrimExpr& data_at, const PrimExpr& weights_at, const PrimExpr& ahead) {
        return sum_of_channels(acc, blocks, data_at, weights_at, ahead, lines * line);
      };
      // Taps along the depth whose planes are inside for at least one row.
      auto deep = [&](const PrimExpr& k) {
        PrimExpr slot = k * p.dilation_depth;
        if (p.stride_depth > 1) slot = floormod(slot, p.stride_depth) * l.slots_each + floordiv(slot, p.stride_depth);
        // A partial last channel block ends each tap's range, except with phases, which are consecutive.
        const PrimExpr channels = l.phases == 1 ? k * l.ic_padded : k * blocks * int64_t{v};
        return bind("data_at", row_at + slot * count * v, [&](PrimExpr data_at) {
          return sum(data_at, weights_at + channels * row, ahead + floordiv(channels, unroll) * (lines * line));
        });
      };
      Stmt reduce;
      if (p.kernel_depth == 1) {
        reduce = sum(row_at, weights_at, ahead);
      } else {
        const TapRange range = depth_taps(p, floordiv(first, count), floordiv(first + (rows - 1), count));
        reduce = bind("plane_begin", range.begin, [&](PrimExpr begin) {
          return bind("plane_end", range.end, [&](PrimExpr end) { return loop("kd", begin, max(begin, end), deep); });
        });
      }
      PrimExpr to = point * l.product_stride + first * v + products_at;
      Stmt drain = bind("products_at", to, [&](PrimExpr at) {
        return acc.drain([&](int r, int col, PrimExpr value) {
          return store(scratch, ramp(at + (col * l.rows(c.block_tiles) + r) * v, 1, v), value);
        });
      });
      return acc.scope(seq({acc.clear(), reduce, drain}));
    });
  }

  // One point of a block of tiles by one tile of output channels.
  Stmt products(PrimExpr block, PrimExpr point, PrimExpr oc_tile, PrimExpr count, int cols, bool half) const {
    return with_point(point, [&](PrimExpr of_point, PrimExpr slice) {
      PrimExpr at = oc_tile * (l.slices * l.panel * c.oc_blocks) + slice * (l.panel * cols) + weights.offset;
      const int64_t full_rows = l.rows(c.block_tiles), last_rows = l.rows(l.last_tiles);
      return bind("weights_at", at, [&](PrimExpr weights_at) {
        std::vector<Stmt> body;
        const int64_t full = full_rows / c.rows, last = last_rows / c.rows;
        PrimExpr tiles = full == last || l.blocks == 1
                             ? make_int(last)
                             : select(eq(block, make_int(l.blocks - 1)), make_int(last), make_int(full));
        if (full > 0 || last > 0)
          body.push_back(bind("row_tiles", tiles, [&](PrimExpr tiles) {
            return loop("row_tile", make_int(0), tiles, [&](PrimExpr t) {
              return multiply(point, of_point, weights_at, t, count, c.rows, cols, half);
            });
          }));
        const int64_t full_tail = full_rows % c.rows, last_tail = last_rows % c.rows;
        auto tail = [&](int64_t after, int64_t rows) {
          if (rows == 0) return seq({});
          return multiply(point, of_point, weights_at, make_int(after), count, static_cast<int>(rows), cols, half);
        };
        if (l.blocks == 1 || (full == last && full_tail == last_tail))
          body.push_back(tail(last, last_tail));
        else if (full_tail == 0 && last_tail != 0)
          body.push_back(make_if(eq(block, make_int(l.blocks - 1)), tail(last, last_tail)));
        else if (full_tail != 0)
          body.push_back(make_if(eq(block, make_int(l.blocks - 1)), tail(last, last_tail), tail(full, full_tail)));
        return seq(std::move(body));
      });
    });
  }

  // Transforms one tile of products, from scratch element `from` on, to the pixels at (h0, w0) of a plane.
  Stmt transform_result_tile(const PrimExpr& n, const PrimExpr& oc, const PrimExpr& plane, const PrimExpr& h0,
                             const PrimExpr& w0, const PrimExpr& from, const PrimExpr& out_at) const {
    const WinogradTransform &down_axis = *l.down.transform, &across_axis = *l.across.transform;
    return transform_tile(
        down_axis.result, across_axis.result, vector,
        [&](int i, int j) { return scratch_at(from + (i * across_axis.products() + j) * l.product_stride); },
        [&](int i, int j, PrimExpr value) {
          const int64_t down = i * l.dilation_height, right = j * l.dilation_width;
          const PrimExpr column = w0 + right;
          const Index index = pixel_index(out, n, oc, plane, h0 + down, column, make_int(0));
          // The weights of words are whole numbers: twice F(2,3)'s along both axes.
          if (p.words()) value = floordiv(value, make_const(vector, kWinogradWordScale * kWinogradWordScale));
          Stmt one = store(out.buffer, ramp(out_at + (down * result.height + right * result.width), 1, v),
                           epilogue(value, index, {}));
          if (!cut_columns || (j == 0 && !uneven_columns)) return one;
          return make_if(lt(column, make_int(p.out_width)), one);
        },
        [&](int i, Stmt row) {
          if (!cut_rows || (i == 0 && !uneven_rows)) return row;
          return make_if(lt(h0 + i * l.dilation_height, make_int(p.out_height)), row);
        });
  }
  Stmt transform_result(PrimExpr first, PrimExpr count, PrimExpr oc0, PrimExpr cols) const {
    return loop("col", make_int(0), cols, [&](PrimExpr col) {
      return bind("oc", oc0 + col, [&](PrimExpr oc) {
        return loop("plane", l.depth, [&](PrimExpr plane) {
          return loop("tile", make_int(0), count, [&](PrimExpr tile) {
            return place_of(first + tile, [&](PrimExpr n, PrimExpr h0, PrimExpr w0) {
              PrimExpr origin = n * result.image + oc * result.block + plane * result.depth + h0 * result.height +
                                w0 * result.width + out.offset;
              PrimExpr row = l.depth == 1 ? tile : plane * count + tile;
              return bind("from", col * (l.rows(c.block_tiles) * v) + row * v + products_at, [&](PrimExpr from) {
                return bind("out_at", origin,
                            [&](PrimExpr out_at) { return transform_result_tile(n, oc, plane, h0, w0, from, out_at); });
              });
            });
          });
        });
      });
    });
  }

  // Units of work: blocks of tiles x tiles of output channels. A thread transforms the data of every block of which it
  // has a unit.
  Stmt block_of_tiles(PrimExpr block, PrimExpr oc_begin, PrimExpr oc_end) const {
    PrimExpr count = l.last_tiles == c.block_tiles || l.blocks == 1
                         ? make_int(l.last_tiles)
                         : select(eq(block, make_int(l.blocks - 1)), make_int(l.last_tiles), make_int(c.block_tiles));
    return bind("first", block * c.block_tiles, [&](PrimExpr first) {
      return bind("count", count, [&](PrimExpr count) {
        auto of_tile = [&](const PrimExpr& oc_tile, const std::function<Stmt(int, bool)>& body) {
          Stmt last = body(l.last_cols, l.half);
          if (l.oc_tiles == 1) return last;
          Stmt other = body(c.oc_blocks, false);
          return l.last_cols == c.oc_blocks && !l.half ? other
                                                       : make_if(eq(oc_tile, make_int(l.oc_tiles - 1)), last, other);
        };
        auto results = [&](const PrimExpr& oc_tile) {
          PrimExpr cols =
              l.last_cols == c.oc_blocks || l.oc_tiles == 1
                  ? make_int(l.last_cols)
                  : select(eq(oc_tile, make_int(l.oc_tiles - 1)), make_int(l.last_cols), make_int(c.oc_blocks));
          return bind("oc0", oc_tile * c.oc_blocks, [&](PrimExpr oc0) {
            return bind("cols", cols, [&](PrimExpr cols) { return transform_result(first, count, oc0, cols); });
          });
        };
        Stmt tiles = loop("oc_tile", oc_begin, oc_end, [&](PrimExpr oc_tile) {
          Stmt points = of_tile(oc_tile, [&](int cols, bool half) {
            return loop("point", l.points,
                        [&](PrimExpr point) { return products(block, point, oc_tile, count, cols, half); });
          });
          return seq({points, results(oc_tile)});
        });
        return seq({transform_data(first, count), tiles});
      });
    });
  }
};

}  // namespace

Stmt conv2d_winograd(const Conv2dProblem& p, const WinogradConfig& c, const View& data, const View& weights,
                     const View& out, const Epilogue& epilogue, const KernelContext& context) {
  TW_ICHECK(winograd_applies(p, c.tile_height, c.tile_width), "conv2d_winograd: problem");
  const WinogradKernel kernel{p, c, data, weights, out, epilogue, context};
  TW_ICHECK(context.scratch && context.scratch->size >= kernel.l.scratch(), "conv2d_winograd: scratch");
  return kernel.stmt();
}

}  // namespace tilewright::topi
