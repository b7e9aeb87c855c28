// SPDX-License-Identifier: Apache-2.0
#include "topi/transpose.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "topi/reduce_steps.h"

namespace tilewright::topi {

using namespace tir;

namespace {

// One round of a transpose in vectors of 128 bits, whose interleaving is an instruction on every processor: pairs rows
// r and r + n/2. Vector number and lane together are rotated by one bit per round, so that log2(n) rounds swap them.
std::vector<Stmt> interleave_rows(const Buffer& from, const Buffer& to, int lanes) {
  std::vector<int> low, high;
  for (int j = 0; j < lanes; ++j) {
    low.push_back(j / 2 + (j % 2 != 0 ? lanes : 0));
    high.push_back(j / 2 + lanes / 2 + (j % 2 != 0 ? lanes : 0));
  }
  std::vector<Stmt> out;
  for (int r = 0; r < lanes / 2; ++r) {
    PrimExpr a = load(from, make_int(r)), b = load(from, make_int(r + lanes / 2));
    out.push_back(store(to, make_int(2 * r), shuffle({a, b}, low)));
    out.push_back(store(to, make_int(2 * r + 1), shuffle({a, b}, high)));
  }
  return out;
}

// Exchanges bit `distance` of the row index with the same bit of the lane index.
std::vector<Stmt> exchange_blocks(const Buffer& from, const Buffer& to, int lanes, int distance) {
  std::vector<int> low, high;
  for (int j = 0; j < lanes; ++j) {
    low.push_back(j & distance ? lanes + j - distance : j);
    high.push_back(j & distance ? lanes + j : j + distance);
  }
  std::vector<Stmt> out;
  for (int r = 0; r < lanes; ++r) {
    if (r & distance) continue;
    PrimExpr a = load(from, make_int(r)), b = load(from, make_int(r + distance));
    out.push_back(store(to, make_int(r), shuffle({a, b}, low)));
    out.push_back(store(to, make_int(r + distance), shuffle({a, b}, high)));
  }
  return out;
}

}  // namespace

Stmt transpose_tile(DataType element, int lanes, const std::function<PrimExpr(int)>& load_row,
                    const std::function<Stmt(int, PrimExpr)>& store_column) {
  const DataType vector = element.with_lanes(lanes);
  std::vector<Stmt> body;
  std::vector<Buffer> stages;
  stages.push_back(make_buffer("rows", vector, lanes, Scope::kRegister));
  for (int r = 0; r < lanes; ++r) body.push_back(store(stages[0], make_int(r), load_row(r)));
  for (int distance = 1; distance < lanes; distance *= 2) {
    const Buffer from = stages.back(), to = make_buffer("rows", vector, lanes, Scope::kRegister);
    for (Stmt& step :
         element.bits* lanes == 128 ? interleave_rows(from, to, lanes) : exchange_blocks(from, to, lanes, distance))
      body.push_back(std::move(step));
    stages.push_back(to);
  }
  for (int c = 0; c < lanes; ++c) body.push_back(store_column(c, load(stages.back(), make_int(c))));
  Stmt all = seq(std::move(body));
  for (const Buffer& stage : stages) all = allocate(stage, all);
  return all;
}

Stmt transpose_narrow(DataType element, int side, int parts, const std::function<PrimExpr(int)>& piece,
                      const std::function<Stmt(int, PrimExpr)>& store_column) {
  const int lanes = side * parts;
  const DataType vector = element.with_lanes(lanes);
  std::vector<Stmt> body;
  std::vector<Buffer> stages{make_buffer("rows", vector, side, Scope::kRegister)};
  for (int r = 0; r < side; ++r) {
    std::vector<PrimExpr> pieces;
    for (int part = 0; part < parts; ++part) pieces.push_back(piece(part * side + r));
    std::vector<int> all(static_cast<size_t>(lanes));
    std::iota(all.begin(), all.end(), 0);
    body.push_back(store(stages[0], make_int(r), parts == 1 ? pieces[0] : shuffle(pieces, all)));
  }
  // A round interleaves rows i and i + side/2: it rotates an element's place, row and lane as one number, by one bit.
  for (int round = 1; round < side; round *= 2) {
    const Buffer from = stages.back(), to = make_buffer("rows", vector, side, Scope::kRegister);
    std::vector<int> low, high;
    for (int j = 0; j < lanes; ++j) {
      const int first = j / side * side, lane = first + j % side / 2, other = j % 2 ? lanes : 0;
      low.push_back(lane + other);
      high.push_back(lane + side / 2 + other);
    }
    for (int i = 0; i < side / 2; ++i) {
      const PrimExpr a = load(from, make_int(i)), b = load(from, make_int(i + side / 2));
      body.push_back(store(to, make_int(2 * i), shuffle({a, b}, low)));
      body.push_back(store(to, make_int(2 * i + 1), shuffle({a, b}, high)));
    }
    stages.push_back(to);
  }
  for (int c = 0; c < side; ++c) body.push_back(store_column(c, load(stages.back(), make_int(c))));
  Stmt all = seq(std::move(body));
  for (const Buffer& stage : stages) all = allocate(stage, all);
  return all;
}

Stmt transpose_quads(int lanes, const std::function<PrimExpr(int)>& piece,
                     const std::function<Stmt(const std::vector<PrimExpr>&)>& use) {
  std::vector<std::pair<PrimExpr, PrimExpr>> lets;
  auto keep = [&](PrimExpr value) {
    lets.emplace_back(make_var("turned", value->dtype), value);
    return lets.back().first;
  };
  auto used = [&](const std::vector<PrimExpr>& columns) {
    Stmt body = use(columns);
    for (size_t i = lets.size(); i-- > 0;) body = let_stmt(lets[i].first, lets[i].second, body);
    return body;
  };
  std::vector<PrimExpr> x;
  if (lanes < 4) {  // fewer rows than columns: element by element
    std::vector<PrimExpr> rows;
    for (int r = 0; r < lanes; ++r) rows.push_back(keep(piece(r)));
    for (int c = 0; c < 4; ++c) {
      std::vector<int> column;
      for (int r = 0; r < lanes; ++r) column.push_back(4 * r + c);
      x.push_back(keep(shuffle(rows, column)));
    }
    return used(x);
  }
  // Combines rows r, r + 4, r + 8 ... in one vector.
  for (int r = 0; r < 4; ++r) {
    std::vector<PrimExpr> parts;
    for (int row = r; row < lanes; row += 4) parts.push_back(piece(row));
    while (parts.size() > 1) {
      std::vector<PrimExpr> wider;
      for (size_t i = 0; i < parts.size(); i += 2) {
        std::vector<int> all(static_cast<size_t>(parts[i]->dtype.lanes) * 2);
        std::iota(all.begin(), all.end(), 0);
        wider.push_back(shuffle({parts[i], parts[i + 1]}, all));
      }
      parts = std::move(wider);
    }
    x.push_back(keep(parts[0]));
  }
  // Selects elements `from` of both vectors in every 128 bits; the second vector's are numbered from 4 on.
  auto pick = [&](size_t i, size_t j, std::array<int, 4> from) {
    std::vector<int> index;
    for (int quarter = 0; quarter < lanes; quarter += 4)
      for (int e : from) index.push_back(e < 4 ? quarter + e : lanes + quarter + e - 4);
    return keep(shuffle({x[i], x[j]}, index));
  };
  x = {pick(0, 1, {0, 4, 1, 5}), pick(0, 1, {2, 6, 3, 7}), pick(2, 3, {0, 4, 1, 5}), pick(2, 3, {2, 6, 3, 7})};
  x = {pick(0, 2, {0, 1, 4, 5}), pick(0, 2, {2, 3, 6, 7}), pick(1, 3, {0, 1, 4, 5}), pick(1, 3, {2, 3, 6, 7})};
  return used(x);
}

namespace {

using Place = std::function<PrimExpr(const PrimExpr& at)>;
Place stride(int64_t elements) {
  return [elements](const PrimExpr& at) { return at * elements; };
}

// A batch of matrices: in[outer..., in_row(r) + c] -> out[outer..., out_column(c) + r].
struct Matrices {
  std::vector<int64_t> outer;  // extents
  int64_t rows = 0, columns = 0;
  Place in_row, out_column;
  std::vector<int64_t> in_outer, out_outer;   // strides
  int64_t row_stride = 0, column_stride = 0;  // of `in` and `out`, where it is one; 0: it is not
  int64_t in_offset = 0, out_offset = 0;
  // The valid rows and columns of a matrix; others are zero (rows) or not stored (columns). Null: all.
  std::function<PrimExpr(const Index&outer)> real_rows, real_columns;
  std::function<Index(const Index& outer, const PrimExpr& row, const PrimExpr& column)> out_index;
};

// A tile of one pass through registers: `rows` become the lanes of vectors along the result's rows.
struct Tile {
  int rows = 1, columns = 1;
  bool narrow = false;  // columns fill 128 bits, rows several times as many
};
Tile tile_of(const Matrices& m, DataType in, DataType out, const Target& target) {
  const int bits = std::max(in.bits, out.bits);
  if (bits >= 32) return {target.lanes(bits), target.lanes(bits)};
  if (in.bits != out.bits) return {std::max(16, target.lanes(32)), std::max(16, target.lanes(32))};
  const int side = 128 / std::max(8, bits);
  int parts = std::max(1, target.vector_bits / 128);
  while (parts > 1 && side * (parts / 2) >= m.rows) parts /= 2;
  return {side * parts, side, true};
}

Stmt copy_matrices(const Matrices& m, const View& in, const View& out, const Epilogue& epilogue,
                   const KernelContext& context) {
  const bool bools = in.dtype().is_bool();  // shuffles of single bits would go element by element
  const DataType element = bools ? kUInt8 : in.dtype();
  const Tile size = tile_of(m, element, out.dtype(), *context.target);
  const int64_t row_tiles = ceil_div(m.rows, size.rows), column_tiles = ceil_div(m.columns, size.columns);
  auto tile = [&](const Index& outer, const PrimExpr& in_at, const PrimExpr& out_at, const PrimExpr& r0,
                  const PrimExpr& c0, const PrimExpr& rows, const PrimExpr& columns, bool whole) {
    const PrimExpr row_lane = ramp(make_int(0), 1, size.rows), column_lane = ramp(make_int(0), 1, size.columns);
    const PrimExpr column_mask = whole ? PrimExpr() : lt(column_lane, broadcast(columns - c0, size.columns));
    const PrimExpr row_real = whole ? PrimExpr() : lt(row_lane, broadcast(rows - r0, size.rows));
    const PrimExpr row_mask =
        whole || m.rows % size.rows == 0 ? PrimExpr() : lt(row_lane, broadcast(make_int(m.rows) - r0, size.rows));
    auto piece = [&](int r) {
      PrimExpr row = whole ? r0 + r : min(r0 + r, rows - 1);
      PrimExpr x = load(in.buffer, ramp(in_at + m.in_row(row) + c0, 1, size.columns), column_mask);
      return bools ? cast(kUInt8, x) : x;
    };
    auto put = [&](int c, PrimExpr value) {
      if (bools) value = ne(value, make_const(value->dtype, 0));
      if (row_real && m.real_rows) value = select(row_real, value, make_const(value->dtype, 0));
      PrimExpr column = c0 + c;
      Stmt put = store(out.buffer, ramp(out_at + m.out_column(column) + r0, 1, size.rows),
                       epilogue(value, m.out_index(outer, r0, column), row_mask), row_mask);
      return whole ? put : make_if(lt(column, columns), put);
    };
    return size.narrow ? transpose_narrow(element, size.columns, size.rows / size.columns, piece, put)
                       : transpose_tile(element, size.rows, piece, put);
  };
  // Tiles of narrow elements are parts of cache lines: as many side by side as fill whole ones, on both sides.
  const int64_t in_line = 64 / std::max<int64_t>(1, element.bits / 8),
                out_line = 64 / std::max<int64_t>(1, out.dtype().bits / 8);
  // Where rows of one side follow each other closely, several lines of each of the other side's, which lie far apart.
  auto close = [](int64_t stride, DataType t) {
    return stride > 0 && stride * std::max<int64_t>(1, t.bits / 8) <= 512;
  };
  auto lines = [](bool close, int64_t tiles, int side, int64_t line) {
    return close && tiles * side >= 32 * line ? 4 * line : line;
  };
  const bool columns_close = close(m.column_stride, out.dtype());
  const int64_t out_piece = lines(close(m.row_stride, element), row_tiles, size.rows, out_line),
                in_piece = lines(columns_close, column_tiles, size.columns, in_line);
  // Of the result's close rows the whole, so that one stretch of memory is written.
  const int64_t rows_together = columns_close && m.rows <= m.column_stride
                                    ? row_tiles
                                    : std::min(ceil_div(out_piece, size.rows), row_tiles),
                columns_together = std::min(ceil_div(in_piece, size.columns), column_tiles);
  std::vector<int64_t> units = m.outer;
  units.push_back(ceil_div(row_tiles, rows_together));
  units.push_back(ceil_div(column_tiles, columns_together));
  const size_t outer_rank = m.outer.size();
  return parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
    return bind_all(unravel(unit, units), [&](Index at) {
      Index outer(at.begin(), at.begin() + static_cast<int64_t>(outer_rank));
      PrimExpr in_at = make_int(m.in_offset), out_at = make_int(m.out_offset);
      for (size_t i = 0; i < outer_rank; ++i) {
        in_at = in_at + outer[i] * m.in_outer[i];
        out_at = out_at + outer[i] * m.out_outer[i];
      }
      PrimExpr rows = m.real_rows ? m.real_rows(outer) : make_int(m.rows);
      PrimExpr columns = m.real_columns ? m.real_columns(outer) : make_int(m.columns);
      auto one = [&](const PrimExpr& r, const PrimExpr& c) {
        const PrimExpr row = (at[outer_rank] * rows_together + r) * int64_t{size.rows},
                       column = (at[outer_rank + 1] * columns_together + c) * int64_t{size.columns};
        return bind_all({in_at, out_at, row, column, rows, columns}, [&](Index x) {
          PrimExpr whole = logical_and(le(x[2] + size.rows, x[4]), le(x[3] + size.columns, x[5]));
          Stmt some = tile(outer, x[0], x[1], x[2], x[3], x[4], x[5], false);
          if (row_tiles % rows_together != 0 || column_tiles % columns_together != 0)
            some = make_if(logical_and(lt(x[2], make_int(m.rows)), lt(x[3], make_int(m.columns))), some);
          return make_if(whole, tile(outer, x[0], x[1], x[2], x[3], x[4], x[5], true), some);
        });
      };
      return loop("column", columns_together, [&](const PrimExpr& c) {
        return loop("row", rows_together, [&](const PrimExpr& r) { return one(r, c); });
      });
    });
  });
}

using Part = Permutation::Part;

// Parts that are walked as one number, the slowest first.
struct Run {
  std::vector<Part> parts;
  int64_t extent() const {
    int64_t n = 1;
    for (const Part& part : parts) n *= part.extent;
    return n;
  }
  // Calls `use` with each part and the number's digit for it.
  void digits(const PrimExpr& number, const std::function<void(const Part&, const PrimExpr&)>& use) const {
    PrimExpr rest = number;
    for (size_t i = parts.size(); i-- > 0;) {
      use(parts[i], i == 0 ? rest : floormod(rest, parts[i].extent));
      if (i > 0) rest = floordiv(rest, parts[i].extent);
    }
  }
  // The number's place by one of the strides: without arithmetic where parts lie side by side.
  Place place(int64_t Part::*stride) const {
    Run run;
    for (const Part& part : parts) {
      if (!run.parts.empty() && run.parts.back().*stride == part.extent * (part.*stride)) {
        const int64_t extent = run.parts.back().extent * part.extent;
        run.parts.back() = part, run.parts.back().extent = extent;
      } else {
        run.parts.push_back(part);
      }
    }
    return [run, stride](const PrimExpr& at) {
      PrimExpr sum;
      run.digits(at, [&](const Part& part, const PrimExpr& digit) {
        PrimExpr here = digit * (part.*stride);
        sum = sum ? sum + here : here;
      });
      return sum;
    };
  }
};

// Rows run along the result's last dimension, columns along what is contiguous in `in`; `outer` is the rest.
struct Division {
  Run rows, columns;
  std::vector<Part> outer;
};
Division divide(const Permutation& p) {
  Division d;
  for (const Part& part : p.parts) (part.axis + 1 == p.out.rank() ? d.rows.parts : d.outer).push_back(part);
  for (int64_t contiguous = 1;;) {
    auto next = std::find_if(d.outer.begin(), d.outer.end(),
                             [&](const Part& part) { return part.from == contiguous && part.extent > 1; });
    if (next == d.outer.end()) return d;
    contiguous *= next->extent;
    d.columns.parts.insert(d.columns.parts.begin(), *next);
    d.outer.erase(next);
  }
}

}  // namespace

Permutation permutation(const View& in, const View& out) {
  Permutation p{in, out, {}};
  for (int d = 0; d < out.rank(); ++d) p.parts.push_back({out.shape[d], in.strides[d], out.strides[d], d, 1});
  return p;
}

bool is_transposing(const Permutation& p) {
  if (p.out.rank() < 1 || p.out.strides.back() != 1 || (p.in.dtype().bits < 8 && !p.in.dtype().is_bool())) return false;
  const Division d = divide(p);
  const bool moved = std::all_of(d.rows.parts.begin(), d.rows.parts.end(),
                                 [](const Part& part) { return part.from != 1 || part.extent == 1; });
  return moved && d.rows.extent() > 1 && d.columns.extent() > 1;
}

Stmt transpose_copy(const Permutation& p, const Epilogue& epilogue, const KernelContext& context) {
  const Division d = divide(p);
  Matrices m;
  m.rows = d.rows.extent(), m.in_row = d.rows.place(&Part::from);
  m.columns = d.columns.extent(), m.out_column = d.columns.place(&Part::to);
  m.in_offset = p.in.offset, m.out_offset = p.out.offset;
  if (d.rows.parts.size() == 1) m.row_stride = d.rows.parts[0].from;
  if (d.columns.parts.size() == 1) m.column_stride = d.columns.parts[0].to;
  for (const Part& part : d.outer)
    m.outer.push_back(part.extent), m.in_outer.push_back(part.from), m.out_outer.push_back(part.to);
  const size_t rank = p.out.shape.size();
  m.out_index = [d, rank](const Index& at, const PrimExpr& row, const PrimExpr& column) {
    Index index(rank);
    auto add = [&](const Part& part, const PrimExpr& digit) {
      PrimExpr& i = index[static_cast<size_t>(part.axis)];
      i = i ? i + digit * part.step : digit * part.step;
    };
    for (size_t i = 0; i < d.outer.size(); ++i) add(d.outer[i], at[i]);
    d.columns.digits(column, add);
    index[rank - 1] = row;
    for (PrimExpr& i : index)
      if (!i) i = make_int(0);
    return index;
  };
  return copy_matrices(m, p.in, p.out, epilogue, context);
}

namespace {
// The dimension of phases: contiguous, with the last dimension's stride as its extent. -1 if there is none.
int phase_dimension(const View& in) {
  for (int d = 0; d + 1 < in.rank(); ++d)
    if (in.strides[d] == 1 && in.shape[d] == in.strides.back()) return d;
  return -1;
}
}  // namespace

bool is_deinterleaving(const View& in, const View& out) {
  return in.rank() >= 2 && in.shape == out.shape && in.dtype().bits >= 32 && out.strides.back() == 1 &&
         in.strides.back() >= 2 && in.strides.back() <= 4 && in.shape.back() >= 8 && phase_dimension(in) >= 0;
}

Stmt deinterleave_copy(const View& in, const View& out, const Epilogue& epilogue, const KernelContext& context) {
  const int rank = in.rank(), q = phase_dimension(in), v = context.target->lanes(in.dtype().bits);
  const int64_t s = in.shape[q], width = in.shape.back(), whole = width / v;
  // `valid` elements of each phase, from element w0 on.
  auto vectors = [&](const Index& outer, const PrimExpr& from, const PrimExpr& to, const PrimExpr& w0, int64_t valid) {
    Buffer mixed = make_buffer("mixed", in.dtype().with_lanes(v), s, Scope::kRegister);
    std::vector<Stmt> body;
    std::vector<PrimExpr> all;
    for (int64_t k = 0; k < s && k * v < s * valid; ++k) {
      const PrimExpr at = from + w0 * s + k * v;
      body.push_back(store(mixed, make_int(k), load(in.buffer, ramp(at, 1, v), tail_mask(v, s * valid - k * v))));
      all.push_back(load(mixed, make_int(k)));
    }
    const int lanes = static_cast<int>(all.size()) * v;
    for (int64_t j = 0; j < s; ++j) {
      std::vector<int> pick;
      for (int64_t i = 0; i < v; ++i) pick.push_back(static_cast<int>(std::min<int64_t>(i * s + j, lanes - 1)));
      Index index = outer;
      index[q] = make_int(j), index[rank - 1] = w0;
      const PrimExpr mask = tail_mask(v, valid);
      body.push_back(
          store(out.buffer, ramp(to + w0 + j * out.strides[q], 1, v), epilogue(shuffle(all, pick), index, mask), mask));
    }
    return allocate(mixed, seq(std::move(body)));
  };
  // In the order in which `in` lies: the other phase of its rows may be another dimension.
  std::vector<int> walked;
  for (int d = 0; d + 1 < rank; ++d)
    if (d != q) walked.push_back(d);
  std::stable_sort(walked.begin(), walked.end(), [&](int a, int b) { return in.strides[a] > in.strides[b]; });
  std::vector<int64_t> units;
  for (int d : walked) units.push_back(in.shape[d]);
  return parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
    return bind_all(unravel(unit, units), [&](Index at) {
      Index outer(static_cast<size_t>(rank), make_int(0));
      PrimExpr from = make_int(in.offset), to = make_int(out.offset);
      for (size_t i = 0; i < walked.size(); ++i) {
        const int d = walked[i];
        outer[d] = at[i];
        from = from + outer[d] * in.strides[d], to = to + outer[d] * out.strides[d];
      }
      return bind_all({from, to}, [&](Index x) {
        std::vector<Stmt> body;
        if (whole > 0)
          body.push_back(
              loop("vector", whole, [&](PrimExpr i) { return vectors(outer, x[0], x[1], i * int64_t{v}, v); }));
        if (width % v) body.push_back(vectors(outer, x[0], x[1], make_int(whole * v), width % v));
        return seq(std::move(body));
      });
    });
  });
}

Stmt to_blocked(const View& in, const View& out, const Epilogue& epilogue, const KernelContext& context) {
  const int64_t channels = in.shape[1], v = out.shape[4], width = in.shape[3];
  // Merges rows of pixels if neither side has gaps between them.
  const bool flat = in.strides[2] == width && out.strides[2] == width * out.strides[3];
  Matrices m;
  m.outer = {in.shape[0], out.shape[1], flat ? 1 : in.shape[2]};
  m.in_outer = {in.strides[0], v * in.strides[1], in.strides[2]};
  m.out_outer = {out.strides[0], out.strides[1], out.strides[2]};
  m.rows = v, m.in_row = stride(in.strides[1]);
  m.columns = flat ? in.shape[2] * width : width, m.out_column = stride(out.strides[3]);
  m.in_offset = in.offset, m.out_offset = out.offset;
  if (channels % v != 0)
    m.real_rows = [=](const Index& outer) { return min(make_int(channels) - outer[1] * v, make_int(v)); };
  m.out_index = [=](const Index& at, const PrimExpr& row, const PrimExpr& column) {
    return Index{at[0], at[1], flat ? floordiv(column, width) : at[2], flat ? floormod(column, width) : column, row};
  };
  return copy_matrices(m, in, out, epilogue, context);
}

Stmt from_blocked(const View& in, const View& out, const Epilogue& epilogue, const KernelContext& context,
                  bool rows_together) {
  const int64_t channels = out.shape[1], v = in.shape[4], width = out.shape[3];
  const bool flat = rows_together && out.strides[2] == width && in.strides[2] == width * in.strides[3];
  Matrices m;
  m.outer = {in.shape[0], in.shape[1], flat ? 1 : in.shape[2]};
  m.in_outer = {in.strides[0], in.strides[1], in.strides[2]};
  m.out_outer = {out.strides[0], v * out.strides[1], out.strides[2]};
  m.rows = flat ? out.shape[2] * width : width, m.in_row = stride(in.strides[3]);
  m.columns = v, m.out_column = stride(out.strides[1]);
  m.in_offset = in.offset, m.out_offset = out.offset;
  if (channels % v != 0)
    m.real_columns = [=](const Index& outer) { return min(make_int(channels) - outer[1] * v, make_int(v)); };
  m.out_index = [=](const Index& at, const PrimExpr& row, const PrimExpr& column) {
    return Index{at[0], at[1] * v + column, flat ? floordiv(row, width) : at[2], flat ? floormod(row, width) : row};
  };
  return copy_matrices(m, in, out, epilogue, context);
}

Cost transpose_cost(const View& out, const Target& target) {
  Cost cost;
  cost.bytes = 2.0 * static_cast<double>(product(out.shape)) * out.dtype().bits / 8;
  cost.microseconds = cost.bytes / (target.machine.l3_gbps * 0.4e3);
  return cost;
}

}  // namespace tilewright::topi
