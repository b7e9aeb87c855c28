// SPDX-License-Identifier: Apache-2.0
#include "topi/resize.h"

#include <algorithm>
#include <cmath>

#include "topi/reduce_steps.h"

namespace tilewright::topi {

using namespace tir;

int resize_taps(ResizeMethod method) {
  switch (method) {
    case ResizeMethod::kNearest:
      return 1;
    case ResizeMethod::kLinear:
      return 2;
    case ResizeMethod::kCubic:
      return 4;
  }
  return 1;
}

double resize_coordinate(const ResizeAxis& a, int64_t out) {
  const double scale = a.scale > 0 ? a.scale : static_cast<double>(a.out) / static_cast<double>(a.in);
  const double x = static_cast<double>(out), in = static_cast<double>(a.in), extent = static_cast<double>(a.out);
  switch (a.coordinates) {
    case ResizeCoordinates::kHalfPixel:
      return (x + 0.5) / scale - 0.5;
    case ResizeCoordinates::kPytorchHalfPixel:
      return a.out > 1 ? (x + 0.5) / scale - 0.5 : 0;
    case ResizeCoordinates::kAlignCorners:
      return a.out > 1 ? x * (in - 1) / (extent - 1) : 0;
    case ResizeCoordinates::kAsymmetric:
      return x / scale;
    case ResizeCoordinates::kHalfPixelSymmetric: {
      // The output extent may have been rounded: centre by the unrounded scale * in.
      const double adjustment = extent / (scale * in), centre = in / 2;
      return centre * (1 - adjustment) + (x + 0.5) / scale - 0.5;
    }
    case ResizeCoordinates::kTfHalfPixelForNearest:
      return (x + 0.5) / scale;
    case ResizeCoordinates::kTfCropAndResize:
      return a.out > 1 ? a.roi_start * (in - 1) + x * (a.roi_end - a.roi_start) * (in - 1) / (extent - 1)
                       : 0.5 * (a.roi_start + a.roi_end) * (in - 1);
  }
  return x;
}

namespace {

// Positions that differ from a whole number only by rounding errors are rounded to it.
constexpr double kNear = 1e-5;
double nearest(ResizeRounding rounding, double x) {
  switch (rounding) {
    case ResizeRounding::kRoundPreferFloor:
      return std::ceil(x - 0.5);
    case ResizeRounding::kRoundPreferCeil:
      return std::floor(x + 0.5);
    case ResizeRounding::kFloor:
      return std::floor(x + kNear);
    case ResizeRounding::kCeil:
      return std::ceil(x - kNear);
  }
  return x;
}

// Taps of one output coordinate, not yet clamped, and their weights.
void taps_at(const ResizeAxis& a, int64_t out, int64_t* index, double* weight) {
  const double x = resize_coordinate(a, out);
  if (a.method == ResizeMethod::kNearest) {
    index[0] = static_cast<int64_t>(nearest(a.rounding, x));
    weight[0] = 1;
    return;
  }
  const double base = std::floor(x), t = x - base;
  const int64_t first = static_cast<int64_t>(base);
  if (a.method == ResizeMethod::kLinear) {
    index[0] = first, index[1] = first + 1;
    weight[0] = 1 - t, weight[1] = t;
  } else {
    const double c = a.cubic_coefficient;
    auto near_side = [&](double d) { return ((c + 2) * d - (c + 3)) * d * d + 1; };
    auto far_side = [&](double d) { return ((c * d - 5 * c) * d + 8 * c) * d - 4 * c; };
    for (int i = 0; i < 4; ++i) index[i] = first - 1 + i;
    weight[0] = far_side(1 + t), weight[1] = near_side(t), weight[2] = near_side(1 - t), weight[3] = far_side(2 - t);
  }
  if (a.exclude_outside) {
    double sum = 0;
    for (int i = 0; i < resize_taps(a.method); ++i) {
      if (index[i] < 0 || index[i] >= a.in) weight[i] = 0;
      sum += weight[i];
    }
    for (int i = 0; i < resize_taps(a.method) && sum != 0; ++i) weight[i] /= sum;
  }
}

}  // namespace

Tensor resize_indices(const ResizeAxis& a) {
  const int taps = resize_taps(a.method);
  Tensor table(kInt32, {a.out, taps});
  auto values = table.as_mutable<int32_t>();
  for (int64_t o = 0; o < a.out; ++o) {
    int64_t index[4];
    double weight[4];
    taps_at(a, o, index, weight);
    for (int i = 0; i < taps; ++i)
      values[o * taps + i] = static_cast<int32_t>(std::clamp<int64_t>(index[i], 0, a.in - 1));
  }
  return table;
}

DataType resized_in(DataType dtype) { return dtype == kFloat64 ? kFloat64 : kFloat32; }

Tensor resize_weights(const ResizeAxis& a, DataType dtype) {
  const int taps = resize_taps(a.method);
  Tensor table(dtype, {a.out, taps});
  for (int64_t o = 0; o < a.out; ++o) {
    int64_t index[4];
    double weight[4];
    taps_at(a, o, index, weight);
    for (int i = 0; i < taps; ++i) table.set_double(o * taps + i, weight[i]);
  }
  return table;
}

Stmt resize2d(ResizeMethod method, const ResizeTables& tables, const View& data, const View& out,
              const Epilogue& epilogue, const KernelContext& context) {
  const bool blocked = data.rank() == 5;
  const int lanes = blocked ? static_cast<int>(data.shape[4]) : 1, taps = resize_taps(method);
  const bool copies = method == ResizeMethod::kNearest;
  const DataType element = copies ? data.dtype() : resized_in(data.dtype());
  const DataType vector = element.with_lanes(lanes);
  auto entry = [&](const View& table, const PrimExpr& at, int tap) {
    return load(table.buffer, at * taps + (table.offset + tap));
  };
  auto position = [&](const View& table, const PrimExpr& at, int tap) { return cast(kInt64, entry(table, at, tap)); };
  const std::vector<int64_t> units{out.shape[0], out.shape[1], out.shape[2]};
  return parallel_for(context, "unit", product(units), [&](PrimExpr unit) {
    return bind_all(unravel(unit, units), [&](Index at) {
      const PrimExpr &n = at[0], &c = at[1], &h = at[2];
      // Per row: the taps' input rows and weights; the loop below runs over columns.
      Index rows, weights;
      for (int i = 0; i < taps; ++i) {
        rows.push_back(n * data.strides[0] + c * data.strides[1] + position(tables.rows, h, i) * data.strides[2] +
                       data.offset);
        if (!copies) weights.push_back(cast(element, entry(tables.row_weights, h, i)));
      }
      return bind_all(rows, [&](Index rows) {
        return bind_all(weights, [&](Index weights) {
          return loop("w", out.shape[3], [&](PrimExpr w) {
            Index columns, column_weights;
            for (int i = 0; i < taps; ++i) {
              columns.push_back(position(tables.columns, w, i) * data.strides[3]);
              if (!copies) column_weights.push_back(cast(element, entry(tables.column_weights, w, i)));
            }
            return bind_all(columns, [&](Index columns) {
              return bind_all(column_weights, [&](Index column_weights) {
                auto value = [&](int row, int column) {
                  PrimExpr from = rows[row] + columns[column];
                  PrimExpr x = load(data.buffer, lanes > 1 ? ramp(from, 1, lanes) : from);
                  return x->dtype == vector ? x : cast(vector, x);
                };
                PrimExpr result;
                if (copies) {
                  result = value(0, 0);
                } else {
                  for (int r = 0; r < taps; ++r) {
                    PrimExpr row;
                    for (int k = 0; k < taps; ++k) {
                      PrimExpr weight = broadcast(column_weights[k], lanes);
                      row = row ? fma(value(r, k), weight, row) : value(r, k) * weight;
                    }
                    PrimExpr weight = broadcast(weights[r], lanes);
                    result = result ? fma(row, weight, result) : row * weight;
                  }
                }
                Index index{n, c, h, w};
                if (blocked) index.push_back(make_int(0));
                return out.store(index, epilogue(result, index, {}));
              });
            });
          });
        });
      });
    });
  });
}

}  // namespace tilewright::topi
