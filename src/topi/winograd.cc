// SPDX-License-Identifier: Apache-2.0
#include "topi/winograd.h"

#include <algorithm>

#include "topi/register_tile.h"
#include "topi/winograd_loops.h"

namespace tilewright::topi {

using namespace tir;

namespace {

// A program along both axes of a tile of vectors: columns first, kept in registers, then rows as they are
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

}  // namespace

Stmt conv2d_winograd(const Conv2dProblem& p, const WinogradConfig& c, const View& data, const View& weights,
                     const View& out, const Epilogue& epilogue, const KernelContext& context) {
  const WinogradLoops l = winograd_loops(p, c);
  const int v = p.lanes;
  TW_ICHECK(winograd_applies(p, c.tile_height, c.tile_width), "conv2d_winograd: problem");
  TW_ICHECK(context.scratch && context.scratch->size >= l.scratch(), "conv2d_winograd: scratch");
  const WinogradTransform &down = l.down.transform, &across = l.across.transform;
  const DataType vector = kFloat32.with_lanes(v);
  const Buffer scratch = context.scratch;
  auto scratch_at = [&](const PrimExpr& at) { return load(scratch, ramp(at, 1, v)); };
  const int64_t products_at = l.points * l.data_stride;  // where the products start

  // First row (column) of tile `i` along an axis: combs outside, each of the rows that are `dilation` apart.
  auto origin_of = [](const PrimExpr& i, int64_t tile, int64_t comb_tiles, int64_t dilation) {
    if (dilation == 1) return i * tile;
    return floordiv(i, comb_tiles) + floormod(i, comb_tiles) * (tile * dilation);
  };
  // Tile number `tile` of the whole output: image, and its first row and column.
  auto place_of = [&](const PrimExpr& tile, const std::function<Stmt(PrimExpr, PrimExpr, PrimExpr)>& body) {
    Index at = unravel(tile, {p.batch, l.tiles_high, l.tiles_wide});
    return bind("n", at[0], [&](PrimExpr n) {
      return bind("h0", origin_of(at[1], c.tile_height, l.comb_tiles_high, l.dilation_height), [&](PrimExpr h0) {
        return bind("w0", origin_of(at[2], c.tile_width, l.comb_tiles_wide, l.dilation_width),
                    [&](PrimExpr w0) { return body(n, h0, w0); });
      });
    });
  };

  // Channel blocks outside, so that each row of the map is one stream that the processor can run ahead of.
  auto transform_data = [&](PrimExpr first, PrimExpr count) {
    return loop("icb", l.ic_blocks, [&](PrimExpr icb) {
      return loop("tile", make_int(0), count, [&](PrimExpr tile) {
        return place_of(first + tile, [&](PrimExpr n, PrimExpr h0, PrimExpr w0) {
          // Dilated kernels have stride 1.
          const int64_t step_h = p.stride_height * l.dilation_height * data.strides[2],
                        step_w = p.stride_width * l.dilation_width * data.strides[3];
          PrimExpr origin = n * data.strides[0] + icb * data.strides[1] + h0 * (p.stride_height * data.strides[2]) +
                            w0 * (p.stride_width * data.strides[3]) +
                            (data.offset - p.pad_top * data.strides[2] - p.pad_left * data.strides[3]);
          return bind("from", origin, [&](PrimExpr from) {
            return bind("to", icb * (c.block_tiles * v) + tile * v, [&](PrimExpr to) {
              std::vector<Stmt> phases;
              for (int y = 0; y < l.down.stride; ++y)
                for (int x = 0; x < l.across.stride; ++x)
                  phases.push_back(transform_tile(
                      l.down.data(y), l.across.data(x), vector,
                      [&](int i, int j) {
                        return load(
                            data.buffer,
                            ramp(from + (i * step_h + y * data.strides[2] + j * step_w + x * data.strides[3]), 1, v));
                      },
                      [&](int i, int j, PrimExpr value) {
                        const int64_t phase = y * l.across.phases(j) + x;
                        const int64_t place =
                            (i * across.products() + j) * l.data_stride + phase * (l.ic_blocks * c.block_tiles * v);
                        return store(scratch, ramp(to + place, 1, v), value);
                      }));
              return seq(std::move(phases));
            });
          });
        });
      });
    });
  };

  // Blocks of input channels that a point sums over: those of each phase that has it. They, and the slices
  // before them in the weights, follow from the point's place in the tile.
  auto with_point = [&](const PrimExpr& point, const std::function<Stmt(PrimExpr, PrimExpr)>& body) {
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
  };

  // The product of one point: tiles first .. first + rows by the output blocks of a tile of channels.
  auto multiply = [&](PrimExpr point, PrimExpr blocks, PrimExpr weights_at, PrimExpr turn, int rows, int cols,
                      bool half) {
    RegisterTile acc(rows, cols, vector, half ? v / 2 : v);
    const int unroll = c.ic_unroll;
    const int64_t row = int64_t{cols} * v;  // elements of one input channel's weights
    // Weights stream from memory at an even pace: each of the turns over a panel of weights fetches its part
    // of the next.
    const int64_t line = 64 / 4, lines = ceil_div(unroll * row, line * l.turns);
    // A single turn runs a thousand cycles ahead of itself, longer than memory takes to answer.
    const int64_t distance = std::min<int64_t>(192, 1000 / rows) * line;
    PrimExpr ahead = weights_at + distance;
    // The panel that comes next: of the next tile of channels, or of the next point.
    if (l.turns > 1 && l.phases == 1)
      ahead = weights_at + l.panel * cols + turn * (l.ic_padded / unroll * lines * line);
    else if (l.turns > 1)
      ahead = weights_at + blocks * (v * row) + turn * blocks * (v / unroll * lines * line);
    const PrimExpr first = turn * c.rows;
    return bind("data_at", point * l.data_stride + first * v, [&](PrimExpr data_at) {
      Stmt reduce = loop("icb", make_int(0), blocks, [&](PrimExpr icb) {
        const int64_t block_steps = v / unroll;
        PrimExpr steps =
            l.last_steps == block_steps || l.ic_blocks == 1
                ? make_int(l.last_steps)
                : select(eq(icb, make_int(l.ic_blocks - 1)), make_int(l.last_steps), make_int(block_steps));
        return bind("steps", steps, [&](PrimExpr steps) {
          return loop("ic", make_int(0), steps, [&](PrimExpr ic) {
            PrimExpr data_k = data_at + (icb * (c.block_tiles * v) + ic * unroll);
            PrimExpr weights_k = weights_at + (icb * (v * row) + ic * (unroll * row));
            PrimExpr ahead_k = ahead + (icb * (v / unroll) + ic) * (lines * line);
            std::vector<Stmt> body;
            for (int64_t i = 0; l.prefetches && i < lines; ++i)
              body.push_back(prefetch(weights.buffer, ahead_k + i * line));
            for (int u = 0; u < unroll; ++u) {
              body.push_back(acc.step([&](int r) { return load(scratch, data_k + (int64_t{r} * v + u)); },
                                      [&](int col) {
                                        return load(weights.buffer,
                                                    ramp(weights_k + (u * row + int64_t{col} * v), 1, acc.lanes(col)));
                                      }));
            }
            return seq(std::move(body));
          });
        });
      });
      PrimExpr to = point * l.product_stride + first * v + products_at;
      Stmt drain = bind("products_at", to, [&](PrimExpr at) {
        return acc.drain([&](int r, int col, PrimExpr value) {
          return store(scratch, ramp(at + (col * c.block_tiles + r) * v, 1, v), value);
        });
      });
      return acc.scope(seq({acc.clear(), reduce, drain}));
    });
  };

  // A point of a block of tiles by one tile of output channels.
  auto products = [&](PrimExpr block, PrimExpr point, PrimExpr oc_tile, int cols, bool half) {
    return with_point(point, [&](PrimExpr of_point, PrimExpr slice) {
      PrimExpr at = oc_tile * (l.slices * l.panel * c.oc_blocks) + slice * (l.panel * cols) + weights.offset;
      return bind("weights_at", at, [&](PrimExpr weights_at) {
        std::vector<Stmt> body;
        const int64_t full = c.block_tiles / c.rows, last = l.last_tiles / c.rows;
        PrimExpr tiles = full == last || l.blocks == 1
                             ? make_int(last)
                             : select(eq(block, make_int(l.blocks - 1)), make_int(last), make_int(full));
        if (full > 0 || last > 0)
          body.push_back(bind("row_tiles", tiles, [&](PrimExpr tiles) {
            return loop("row_tile", make_int(0), tiles,
                        [&](PrimExpr t) { return multiply(point, of_point, weights_at, t, c.rows, cols, half); });
          }));
        if (const int64_t tail = l.last_tiles % c.rows) {
          Stmt rest = multiply(point, of_point, weights_at, make_int(last), static_cast<int>(tail), cols, half);
          body.push_back(l.blocks == 1 ? rest : make_if(eq(block, make_int(l.blocks - 1)), rest));
        }
        return seq(std::move(body));
      });
    });
  };

  // Tiles may hang over the edge; where combs differ in length, their first row (column) may lie beyond it, too.
  const bool uneven_rows = p.out_height % l.dilation_height != 0, uneven_columns = p.out_width % l.dilation_width != 0;
  const bool cut_rows = uneven_rows || p.out_height / l.dilation_height % c.tile_height != 0,
             cut_columns = uneven_columns || p.out_width / l.dilation_width % c.tile_width != 0;
  auto transform_result = [&](PrimExpr first, PrimExpr count, PrimExpr oc0, PrimExpr cols) {
    return loop("col", make_int(0), cols, [&](PrimExpr col) {
      return bind("oc", oc0 + col, [&](PrimExpr oc) {
        return loop("tile", make_int(0), count, [&](PrimExpr tile) {
          return place_of(first + tile, [&](PrimExpr n, PrimExpr h0, PrimExpr w0) {
            PrimExpr origin =
                n * out.strides[0] + oc * out.strides[1] + h0 * out.strides[2] + w0 * out.strides[3] + out.offset;
            return bind("from", col * (c.block_tiles * v) + tile * v + products_at, [&](PrimExpr from) {
              return bind("out_at", origin, [&](PrimExpr out_at) {
                return transform_tile(
                    down.result, across.result, vector,
                    [&](int i, int j) { return scratch_at(from + (i * across.products() + j) * l.product_stride); },
                    [&](int i, int j, PrimExpr value) {
                      const int64_t down = i * l.dilation_height, right = j * l.dilation_width;
                      Index index{n, oc, h0 + down, w0 + right, make_int(0)};
                      Stmt one =
                          store(out.buffer, ramp(out_at + (down * out.strides[2] + right * out.strides[3]), 1, v),
                                epilogue(value, index, {}));
                      if (!cut_columns || (j == 0 && !uneven_columns)) return one;
                      return make_if(lt(index[3], make_int(p.out_width)), one);
                    },
                    [&](int i, Stmt row) {
                      if (!cut_rows || (i == 0 && !uneven_rows)) return row;
                      return make_if(lt(h0 + i * l.dilation_height, make_int(p.out_height)), row);
                    });
              });
            });
          });
        });
      });
    });
  };

  // Units: blocks of tiles x tiles of output channels. A thread transforms the data of every block that it
  // has a unit of.
  auto block_of_tiles = [&](PrimExpr block, PrimExpr oc_begin, PrimExpr oc_end) {
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
        auto result = [&](const PrimExpr& oc_tile) {
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
            return loop("point", l.points, [&](PrimExpr point) { return products(block, point, oc_tile, cols, half); });
          });
          return seq({points, result(oc_tile)});
        });
        return seq({transform_data(first, count), tiles});
      });
    });
  };

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

}  // namespace tilewright::topi
