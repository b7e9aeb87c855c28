// SPDX-License-Identifier: Apache-2.0
// What runs in plain loops (lower/strategy_direct.cc) and the element types below 16 bits, against the interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "driver/graphs.h"
#include "driver/verify.h"
#include "relay/op.h"
#include "relay/ops/attrs.h"
#include "relay/rewrite.h"

namespace tilewright::driver {
namespace {

using testing::check;
using testing::input;
using namespace relay;

TEST(DirectKernels, ScansRanksAndSorts) {
  Expr x = input("x", {3, 17, 5});
  for (bool reverse : {false, true})
    for (const char* op : {"cumsum", "cumprod"})
      check({x}, call(op, {x}, make_attrs<ScanopAttrs>([&](auto& a) {
                        a.axis = 1;
                        a.reverse = reverse;
                        a.exclusive = !reverse;
                      })));
  Tensor ties(kFloat32, {3, 17, 5});
  for (int64_t i = 0; i < ties.size(); ++i)
    ties.set_double(i, i % 11 == 3 ? std::nan("") : static_cast<double>(i * 7 % 13));
  for (bool ascending : {false, true}) {
    check({x}, call("topk", {x}, make_attrs<TopKAttrs>([&](auto& a) {
                      a.k = 4;
                      a.axis = 1;
                      a.is_ascend = ascending;
                      a.dtype = kInt64;
                    })),
          {{"x", ties}});
    check({x}, call("sort", {x}, make_attrs<SortAttrs>([&](auto& a) { a.is_ascend = ascending; })), {{"x", ties}});
    check({x}, call("argsort", {x}, make_attrs<ArgsortAttrs>([&](auto& a) { a.is_ascend = ascending, a.axis = 0; })),
          {{"x", ties}});
  }
}

// Along other axes than the last one, a few rows at a time.
TEST(DirectKernels, ScansOfRows) {
  for (DataType dtype : {kFloat32, kFloat64, kInt64, kInt32, kFloat16}) {
    Expr x = input("x", {3, 7, 41, 37}, dtype);
    for (int64_t axis : {0, 1, 2})
      for (bool reverse : {false, true})
        for (bool exclusive : {false, true})
          check({x}, call(axis == 1 ? "cumprod" : "cumsum", {x}, make_attrs<ScanopAttrs>([&](auto& a) {
                            a.axis = axis;
                            a.reverse = reverse;
                            a.exclusive = exclusive;
                          })));
  }
}

// Lists, leading digits and whole sorts (topi/select.h): ties, both zeros, NaN and infinities; lines along the last
// axis and across it.
TEST(DirectKernels, SelectsTheFirst) {
  const double special[] = {0.0, -0.0, std::nan(""), HUGE_VAL, -HUGE_VAL, 1e-42, -1e-42, 3.0};
  for (DataType dtype : {kFloat32, kFloat16, kBFloat16, kInt8, kUInt8, kInt16, kInt32, kUInt32, kInt64, kFloat64})
    for (std::vector<int64_t> shape : {std::vector<int64_t>{3, 200}, {150, 5}}) {
      const int64_t axis = shape[0] == 3 ? 1 : 0, n = shape[static_cast<size_t>(axis)];
      Expr x = input("x", shape, dtype);
      Tensor values(dtype, shape);
      for (int64_t i = 0; i < values.size(); ++i) {
        const int64_t mixed = static_cast<int64_t>(static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15u >> 40);
        if (dtype.is_float())
          values.set_double(i, i % 5 == 0 ? special[mixed % 8] : static_cast<double>(mixed % 97) * 0.37 - 15);
        else
          values.set_int(i, dtype.is_int() ? mixed % 97 - 48 : mixed % 97 + 150);
      }
      for (int64_t k : {int64_t{1}, int64_t{7}, int64_t{16}, int64_t{40}, n})
        for (bool ascending : {false, true}) {
          SCOPED_TRACE(dtype.str() + shape_str(shape) + " first " + std::to_string(k) + (ascending ? " up" : " down"));
          check({x}, call("topk", {x}, make_attrs<TopKAttrs>([&](auto& a) {
                            a.k = k, a.axis = axis, a.is_ascend = ascending, a.dtype = kInt64;
                          })),
                {{"x", values}});
          if (HasFailure()) return;
        }
    }
}

// Few and dozens of a long line: in random order; rising, so that every element is a candidate; all equal; mostly NaN.
TEST(DirectKernels, SelectsTheFirstOfALongLine) {
  for (DataType dtype : {kFloat32, kFloat16, kInt32, kFloat64, kInt64, kUInt64})
    for (int way = 0; way < 4; ++way)
      for (bool ascending : {false, true}) {
        SCOPED_TRACE(dtype.str() + " way " + std::to_string(way) + (ascending ? " up" : " down"));
        const std::vector<int64_t> shape{2, 9001};
        Expr x = input("x", shape, dtype);
        Tensor values(dtype, shape);
        for (int64_t i = 0; i < values.size(); ++i) {
          const auto mixed = static_cast<int64_t>(static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15u >> 44);
          const int64_t v = way == 0      ? mixed % 30000 - 15000
                            : way == 1    ? i
                            : way == 2    ? 7
                            : mixed % 500 ? 1 << 20
                                          : mixed;
          if (way == 3 && v == 1 << 20 && dtype.is_float())
            values.set_double(i, std::nan(""));
          else if (dtype.is_float())
            values.set_double(i, static_cast<double>(v) * 0.5);
          else
            values.set_int(i, v);
        }
        for (int64_t k : {5, 50})
          check({x}, call("topk", {x}, make_attrs<TopKAttrs>([&](auto& a) {
                            a.k = k, a.axis = 1, a.is_ascend = ascending, a.dtype = kInt64;
                          })),
                {{"x", values}});
        if (HasFailure()) return;
      }
}

TEST(DirectKernels, ScattersAndReverses) {
  Expr data = input("data", {9, 8}), at = input("at", {6, 8}, kInt64), updates = input("updates", {6, 8});
  for (const char* how : {"update", "add", "mul", "min", "max"}) {
    check({data, at, updates}, call("scatter_elements", {data, at, updates},
                                    make_attrs<ScatterElementsAttrs>([&](auto& a) { a.reduction = how; })));
    Expr tuples = input("tuples", {1, 4}, kInt64), rows = input("rows", {4, 8});
    check({data, tuples, rows},
          call("scatter_nd", {data, tuples, rows}, make_attrs<ScatterNDAttrs>([&](auto& a) { a.mode = how; })));
  }
  // Rows that threads divide: whole vectors and a rest; narrow floats stay narrow where elements are replaced.
  for (DataType dtype : {kFloat32, kFloat16, kUInt8})
    for (int64_t width : {300, 512}) {
      Expr wide = input("wide", {9, width}, dtype), tuples = input("tuples", {1, 5}, kInt64),
           rows = input("rows", {5, width}, dtype);
      check({wide, tuples, rows},
            call("scatter_nd", {wide, tuples, rows}, make_attrs<ScatterNDAttrs>([](auto& a) { a.mode = "update"; })));
    }
  Expr lengths = input("lengths", {9}, kInt64);
  check({data, lengths}, call("reverse_sequence", {data, lengths}));
}

// Lines of 64-bit elements: ties, NaN and the largest number, lists and whole sorts, along the last axis and across it.
TEST(DirectKernels, FirstOfWideLines) {
  for (DataType dtype : {kFloat64, kInt64, kUInt64})
    for (bool ascending : {false, true})
      for (int64_t axis : {1, 2})
        for (int64_t k : {1, 5, 40}) {
          Tensor values(dtype, {2, 70, 131});
          for (int64_t i = 0; i < values.size(); ++i) {
            if (dtype.is_float())
              values.set_double(i, i % 17 == 3   ? std::nan("")
                                   : i % 19 == 4 ? -0.0
                                                 : static_cast<double>(i * 7 % 13) - 6);
            else
              values.set_int(i, i % 23 == 5 && i > 9000 ? std::numeric_limits<int64_t>::max() : i * 7 % 13);
          }
          Expr x = input("x", {2, 70, 131}, dtype);
          check({x}, call("topk", {x}, make_attrs<TopKAttrs>([&](auto& a) {
                            a.k = k;
                            a.axis = axis;
                            a.is_ascend = ascending;
                            a.dtype = kInt64;
                          })),
                {{"x", values}});
        }
}

// Lines of 64-bit numbers that are near each other are sorted by the digits in which they differ: none, one, all.
TEST(DirectKernels, WholeNumbersNearEachOtherAreSorted) {
  for (int64_t spread : {int64_t{1}, int64_t{13}, int64_t{1} << 40, std::numeric_limits<int64_t>::max()})
    for (bool ascending : {false, true}) {
      Tensor values(kInt64, {3, 170});
      for (int64_t i = 0; i < values.size(); ++i)
        values.set_int(i, i * 7919 % 13 % spread * std::max<int64_t>(1, spread / 13) - spread / 2);
      Expr x = input("x", {3, 170}, kInt64);
      check({x}, call("topk", {x}, make_attrs<TopKAttrs>([&](auto& a) {
                        a.k = 60;
                        a.axis = -1;
                        a.is_ascend = ascending;
                        a.dtype = kInt64;
                      })),
            {{"x", values}});
    }
}

// Lines of both signs are sorted without the gap around zero: random numbers, also with one neighbour of zero or one
// extreme on either side, two digits and three.
TEST(DirectKernels, LinesOfBothSignsAreSorted) {
  for (DataType dtype : {kFloat32, kFloat64, kInt64})
    for (int64_t n : {170, 700})
      for (int way = 0; way < 4; ++way) {
        SCOPED_TRACE(dtype.str() + " " + std::to_string(n) + " way " + std::to_string(way));
        Tensor values(dtype, {2, n});
        for (int64_t i = 0; i < values.size(); ++i) {
          const auto mixed = static_cast<int64_t>(static_cast<uint64_t>(i + 1) * 0x9e3779b97f4a7c15u);
          const bool marked = way > 0 && i % n < 2, up = i % n == 0;
          if (dtype.is_float()) {
            const double special[] = {0, 5e-324, HUGE_VAL, 0.0};
            const double near = dtype == kFloat32 && way == 1 ? 1e-45 : special[way];
            values.set_double(i, marked ? (up ? near : -near) : static_cast<double>(mixed >> 30) * 1e-9);
          } else {
            using Limits = std::numeric_limits<int64_t>;
            const int64_t above[] = {0, 1, Limits::max(), 0}, under[] = {0, -1, Limits::min(), -1};
            values.set_int(i, marked ? (up ? above[way] : under[way]) : mixed >> 12);
          }
        }
        Expr x = input("x", {2, n}, dtype);
        for (bool ascending : {false, true})
          for (int64_t axis : {0, 1}) {
            Expr lines = axis == 1 ? x : call("transpose", {x});
            check({x}, call("topk", {lines}, make_attrs<TopKAttrs>([&](auto& a) {
                              a.k = n * 3 / 5, a.axis = axis, a.is_ascend = ascending, a.dtype = kInt64;
                            })),
                  {{"x", values}});
          }
        if (HasFailure()) return;
      }
}

// Of other rows of a table beyond the second cache: strips of columns, the last one over the one before it.
TEST(DirectKernels, GathersRowsOfALargeTable) {
  for (DataType dtype : {kFloat16, kFloat32, kInt64, kUInt8}) {
    const std::vector<int64_t> shape{2, 1900, 700}, taken{2, 2000, 700};
    Tensor places(kInt64, taken);
    for (int64_t i = 0; i < places.size(); ++i)
      places.set_int(i, static_cast<int64_t>(static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15u >> 40) % 3800 - 1900);
    Expr table = input("table", shape, dtype), at = input("at", taken, kInt64);
    check({table, at}, call("gather", {table, at}, make_attrs<GatherAttrs>([](auto& a) { a.axis = 1; })),
          {{"at", places}});
  }
}

TEST(DirectKernels, TransposesAndCopiesOfEveryWidth) {
  for (DataType dtype : {kBool, kUInt8, kInt16, kFloat16, kInt32, kInt64, kFloat64}) {
    Expr x = input("x", {2, 19, 5, 35}, dtype);
    for (std::vector<int64_t> axes : {std::vector<int64_t>{0, 2, 3, 1}, {0, 3, 1, 2}, {3, 2, 1, 0}})
      check({x}, call("transpose", {x}, make_attrs<TransposeAttrs>([&](auto& a) { a.axes = axes; })));
    check({x}, reshape_to(x, {38, 175}));
    // Several tiles each way, and a rest: as many rows as lanes of bytes, and fewer.
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{150, 70}, {64, 200}, {40, 33}, {3, 130}}) {
      Expr m = input("m", shape, dtype);
      check({m}, call("transpose", {m}, make_attrs<TransposeAttrs>([&](auto& a) { a.axes = {1, 0}; })));
    }
  }
}

// Rows of several operands that are shorter than a vector, or little longer: whole periods and a rest, one operand
// twice.
TEST(DirectKernels, ConcatenatesShortRows) {
  for (DataType dtype : {kFloat32, kInt64, kUInt8, kFloat16})
    for (const std::vector<int64_t>& widths : {std::vector<int64_t>{3, 5}, {3, 4, 2}, {1, 1}, {17, 2}, {1, 20, 3}}) {
      SCOPED_TRACE(dtype.str() + shape_str(widths));
      std::vector<Expr> parts;
      for (size_t i = 0; i < widths.size(); ++i)
        parts.push_back(input(("x" + std::to_string(i)).c_str(), {7, 15, widths[i]}, dtype));
      auto joined = [&](std::vector<Expr> operands) {
        return call("concatenate", {make_tuple(std::move(operands))},
                    make_attrs<ConcatenateAttrs>([](auto& a) { a.axis = -1; }));
      };
      check(parts, joined(parts));
      check({parts[0]}, joined({parts[0], parts[0], parts[0]}));
    }
}

// Too long for the stack, kept in scratch memory; and longer ones, computed anew.
TEST(DirectKernels, SoftmaxOfLongRows) {
  for (int64_t width : {20000, 40001, 140000})
    for (const char* op : {"nn.softmax", "nn.log_softmax"}) {
      Expr x = input("x", {2, width});
      check({x}, call(op, {x}));
    }
}

// 64-bit quotients: vectors of numbers that doubles hold, of larger ones, and of both; zero and the smallest number.
// A vector is stored behind the loads of the next one: lines of one vector, of some with a rest, and in several parts.
TEST(DirectKernels, ExponentialsOfAnyNumberOfVectors) {
  for (int64_t n : {5, 16, 17, 32, 56, 9000, 70000}) {
    auto x = input("x", {n}), y = input("y", {3, n});
    check({x}, call("exp", {x}));
    check({x, y}, call("multiply", {call("sigmoid", {x}), call("tanh", {y})}));
  }
}

TEST(DirectKernels, WideQuotients) {
  for (DataType dtype : {kInt64, kUInt64})
    for (const char* op : {"divide", "floor_divide", "floor_mod", "mod"}) {
      SCOPED_TRACE(dtype.str() + op);
      Tensor above(dtype, {40, 19}), below(dtype, {40, 19}), one(dtype, {1, 1});
      for (int64_t i = 0; i < above.size(); ++i) {
        const uint64_t mixed = static_cast<uint64_t>(i + 1) * 0x9e3779b97f4a7c15u;
        const int bits = i / 19 % 4 == 3 ? static_cast<int>(i % 64) : i / 19 % 4 == 2 ? 12 : 13 + i / 19 % 2 * 30;
        above.set_int(i, i % 53 == 7 ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(mixed) >> bits);
        const int64_t d = static_cast<int64_t>(mixed * 31) >> (i / 19 % 4 == 3 ? static_cast<int>(i * 7 % 64) : 44);
        below.set_int(i, d == 0 ? 3 : d);
      }
      one.set_int(0, 7);
      Expr a = input("a", {40, 19}, dtype), b = input("b", {40, 19}, dtype), c = input("c", {1, 1}, dtype);
      check({a, b}, call(op, {a, b}), {{"a", above}, {"b", below}});
      check({a, c}, call(op, {a, c}), {{"a", above}, {"c", one}});
    }
}

// Transposes and reshapes one after the other, cut at places that are no axis of the input, and what follows them.
TEST(DirectKernels, TransposesAndReshapesAreOneCopy) {
  auto turn = [](const Expr& x, std::vector<int64_t> axes) {
    return call("transpose", {x}, make_attrs<TransposeAttrs>([&](auto& a) { a.axes = std::move(axes); }));
  };
  for (DataType dtype : {kFloat32, kUInt8, kFloat16, kFloat64, kBool}) {
    Expr picture = input("x", {2, 21, 6, 10}, dtype), rows = input("x", {2, 60, 37}, dtype);
    auto follow = [&](const Expr& x) { return dtype.is_float() ? call("nn.gelu", {x}) : x; };
    check({picture}, follow(turn(reshape_to(picture, {2, 21, 60}), {0, 2, 1})));
    check({rows}, follow(reshape_to(turn(rows, {0, 2, 1}), {2, 37, 6, 10})));
    // Patches of 2x2 as rows, and back.
    check({picture},
          follow(reshape_to(
              turn(reshape_to(turn(reshape_to(picture, {126, 2, 5, 2}), {0, 2, 1, 3}), {2, 21, 15, 4}), {0, 3, 2, 1}),
              {8, 15, 21})));
    Expr patches = input("x", {8, 15, 21}, dtype);
    check({patches},
          follow(reshape_to(
              turn(reshape_to(turn(reshape_to(patches, {2, 4, 15, 21}), {0, 3, 2, 1}), {126, 5, 2, 2}), {0, 2, 1, 3}),
              {2, 21, 6, 10})));
    check({rows}, reshape_to(turn(reshape_to(rows, {2, 5, 12, 37}), {3, 1, 0, 2}), {37, 120}));
    // Cut across what the transpose put together: no one copy.
    check({rows}, follow(reshape_to(turn(rows, {0, 2, 1}), {2, 20, 111})));
    Expr column = input("c", {60, 1}, dtype);
    if (dtype.is_float())
      check({picture, column}, call("add", {turn(reshape_to(picture, {2, 21, 60}), {0, 2, 1}), column}));
  }
  for (DataType dtype : {kUInt8, kBool, kFloat16, kFloat32}) {
    Expr wide = input("x", {131, 149}, dtype);
    check({wide}, turn(wide, {1, 0}));
  }
}

TEST(DirectKernels, RowsAreScatteredInVectors) {
  Tensor places(kInt64, {2, 9});  // some of them twice
  for (int64_t i = 0; i < 9; ++i) places.set_int(i, i % 5), places.set_int(9 + i, i % 3);
  for (DataType dtype : {kFloat32, kInt64, kUInt8})
    for (const char* how : {"update", "add", "mul", "min", "max"}) {
      Expr data = input("data", {6, 3, 37}, dtype), tuples = input("tuples", {2, 9}, kInt64),
           rows = input("rows", {9, 37}, dtype);
      check({data, tuples, rows},
            call("scatter_nd", {data, tuples, rows}, make_attrs<ScatterNDAttrs>([&](auto& a) { a.mode = how; })),
            {{"tuples", places}});
    }
}

// Runs of the last dimension (lower/compute.h): operands of a concatenation, padding and data, copies of a tile.
TEST(DirectKernels, RunsOfTheLastDimension) {
  auto join = [](std::vector<Expr> parts) {
    return call("concatenate", {make_tuple(std::move(parts))},
                make_attrs<ConcatenateAttrs>([](auto& a) { a.axis = -1; }));
  };
  for (DataType dtype : {kFloat32, kInt64, kUInt8, kFloat16}) {
    Expr a = input("a", {5, 37}, dtype), b = input("b", {5, 3}, dtype), one = input("one", {5, 1}, dtype);
    check({a, b, one}, join({b, a, one}));
    check({a, b}, call("nn.relu", {join({a, b})}));
    Expr line = input("line", {1, 999}, dtype), rest = input("rest", {1, 1}, dtype);
    check({line, rest}, join({line, rest, line}));
    check({a}, call("tile", {a}, make_attrs<TileAttrs>([](auto& t) { t.reps = {2, 3}; })));
    check({one}, call("tile", {one}, make_attrs<TileAttrs>([](auto& t) { t.reps = {1, 21}; })));
    for (const char* mode : {"constant", "edge", "reflect"})
      check({a}, call("nn.pad", {a, full_constant(2, dtype)}, make_attrs<PadAttrs>([&](auto& p) {
                        p.pad_width = {{1, 2}, {3, 4}};
                        p.pad_mode = mode;
                      })));
  }
}

TEST(DirectKernels, Einsum) {
  auto product = [](std::vector<std::vector<int64_t>> shapes, const char* equation) {
    std::vector<Expr> operands;
    for (size_t i = 0; i < shapes.size(); ++i) operands.push_back(input(i == 0 ? "a" : i == 1 ? "b" : "c", shapes[i]));
    check(operands,
          call("einsum", {make_tuple(operands)}, make_attrs<EinsumAttrs>([&](auto& e) { e.equation = equation; })));
  };
  product({{2, 3, 7, 5}, {2, 3, 6, 5}}, "bhid,bhjd->bhij");
  product({{2, 3, 7, 6}, {2, 3, 6, 5}}, "bhij,bhjd->bhid");
  product({{2, 7, 3, 5}, {2, 6, 3, 5}}, "bihd,bjhd->bhij");
  product({{4, 6}, {6, 5}}, "ij,jk->ki");
  product({{4, 6, 2}, {5}}, "ijm,k->ki");
  product({{4, 6}, {6, 5}, {5, 3}}, "ij,jk,kl->il");
  product({{4, 6, 3}}, "ijk->ki");
  product({{3, 4, 4}}, "bii->bi");
  product({{1, 4}, {3, 4}}, "bi,bi->b");
}

TEST(DirectKernels, ExtremesWithTiesAndNumbersThatAreNone) {
  Tensor values(kFloat32, {3, 70, 21});
  for (int64_t i = 0; i < values.size(); ++i)
    values.set_double(i, i % 211 == 100 ? std::nan("") : static_cast<double>(i * 7 % 13));
  for (DataType dtype : {kFloat32, kInt64, kUInt8, kFloat16})
    for (const char* op : {"argmax", "argmin"})
      for (int64_t axis : {0, 1, 2})
        for (bool last : {false, true}) {
          Expr x = input("x", {3, 70, 21}, dtype);
          auto at = call(op, {x}, make_attrs<ArgReduceAttrs>([&](auto& a) {
                           a.axis = std::vector<int64_t>{axis};
                           a.select_last_index = last;
                         }));
          check({x}, at,
                dtype == kFloat32 ? std::map<std::string, Tensor>{{"x", values}} : std::map<std::string, Tensor>());
        }
}

TEST(DirectKernels, PoolsOfLinesAndOtherTypes) {
  for (DataType dtype : {kFloat32, kFloat64, kFloat16, kInt8}) {
    Expr x = input("x", {2, 3, 11, 39}, dtype), line = input("line", {2, 3, 39}, dtype);
    for (int64_t stride : {1, 2, 3}) {
      check({x}, call("nn.max_pool2d", {x}, make_attrs<MaxPool2DAttrs>([&](auto& p) {
                        p.pool_size = {3, 3}, p.strides = {stride, stride}, p.padding = {1, 1, 1, 1};
                      })));
      check({line}, call("nn.max_pool1d", {line}, make_attrs<MaxPool1DAttrs>([&](auto& p) {
                           p.pool_size = {3}, p.strides = {stride}, p.padding = {1, 0};
                         })));
      if (!dtype.is_float()) continue;
      for (bool counted : {false, true}) {
        check({x}, call("nn.avg_pool2d", {x}, make_attrs<AvgPool2DAttrs>([&](auto& p) {
                          p.pool_size = {5, 3}, p.strides = {stride, stride}, p.padding = {2, 1, 2, 1};
                          p.count_include_pad = counted;
                        })));
        check({line}, call("nn.avg_pool1d", {line}, make_attrs<AvgPool1DAttrs>([&](auto& p) {
                             p.pool_size = {4}, p.strides = {stride}, p.padding = {1, 2}, p.count_include_pad = counted;
                           })));
      }
    }
  }
}

TEST(DirectKernels, ContractionsOfOtherTypesAndRanks) {
  Expr a = input("a", {3, 1, 4, 5}, kFloat64), b = input("b", {2, 5, 7}, kFloat64);
  check({a, b}, call("nn.batch_matmul", {a, b}, make_attrs<BatchMatmulAttrs>([](auto& m) { m.transpose_b = false; })));
  Expr x = input("x", {4, 5}), y = input("y", {5, 6});
  check({x, y},
        call("einsum", {make_tuple({x, y})}, make_attrs<EinsumAttrs>([](auto& e) { e.equation = "ij,jk->ki"; })));
  Expr image = input("image", {2, 4, 7, 6}, kFloat64), kernel = input("kernel", {6, 2, 3, 2}, kFloat64);
  check({image, kernel}, call("nn.conv2d", {image, kernel}, make_attrs<Conv2DAttrs>([](auto& c) {
                                c.strides = {2, 1};
                                c.padding = {1, 0, 2, 1};
                                c.dilation = {1, 2};
                                c.groups = 2;
                              })));
  Expr up = input("up", {4, 3, 3, 2}, kFloat64);
  check({image, up}, call("nn.conv2d_transpose", {image, up}, make_attrs<Conv2DTransposeAttrs>([](auto& c) {
                            c.strides = {2, 3};
                            c.padding = {1, 0, 0, 1};
                            c.groups = 2;
                          })));
  Expr bytes = input("bytes", {1, 2, 6, 6}, kUInt8);
  check({bytes}, call("nn.max_pool2d", {bytes}, make_attrs<MaxPool2DAttrs>([](auto& p) {
                        p.pool_size = {3, 2};
                        p.padding = {1, 1, 1, 0};
                      })));
  for (DataType t : {kInt32, kUInt8, kInt8, kFloat64}) {
    Expr whole = input("whole", {1, 2, 7, 6}, t);
    for (bool counted : {false, true})
      check({whole}, call("nn.avg_pool2d", {whole}, make_attrs<AvgPool2DAttrs>([&](auto& p) {
                            p.pool_size = {3, 2};
                            p.strides = {2, 1};
                            p.dilation = {1, 2};
                            p.padding = {1, 1, 2, 0};
                            p.ceil_mode = true;
                            p.count_include_pad = counted;
                          })));
    check({whole}, call("nn.relu", {call("nn.global_avg_pool2d", {whole}, make_default_attrs<GlobalPool2DAttrs>())}));
    check({whole}, call("nn.global_max_pool2d", {whole}, make_default_attrs<GlobalPool2DAttrs>()));
    Expr line = input("line", {1, 2, 7}, t);
    check({line}, call("nn.avg_pool1d", {line}, make_attrs<AvgPool1DAttrs>([](auto& p) { p.pool_size = {3}; })));
    Expr box = input("box", {1, 2, 4, 3, 5}, t);
    check({box}, call("nn.avg_pool3d", {box}, make_attrs<AvgPool3DAttrs>([](auto& p) {
                        p.pool_size = {2, 3, 2};
                        p.padding = {1, 0, 1, 0, 1, 0};
                      })));
  }
  Expr activations = input("activations", {2, 7, 3, 3});
  check({activations}, call("nn.lrn", {activations}, make_attrs<LRNAttrs>([](auto& l) { l.size = 4; })));
}

TEST(DirectKernels, GridSample) {
  Expr x = input("x", {2, 3, 5, 4}), grid = input("grid", {2, 2, 6, 7});
  Tensor far(kFloat32, {2, 2, 6, 7});
  for (int64_t i = 0; i < far.size(); ++i) far.set_double(i, std::sin(static_cast<double>(i) * 1.7) * 2.3);
  for (const char* method : {"bilinear", "nearest", "bicubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (bool corners : {false, true})
        check({x, grid}, call("image.grid_sample", {x, grid}, make_attrs<GridSampleAttrs>([&](auto& a) {
                                a.method = method;
                                a.padding_mode = padding;
                                a.align_corners = corners;
                              })),
              {{"grid", far}});
  Expr volume = input("volume", {2, 3, 5, 4, 3}), places = input("places", {2, 3, 4, 3, 5});
  Tensor around(kFloat32, {2, 3, 4, 3, 5});
  for (int64_t i = 0; i < around.size(); ++i) around.set_double(i, std::sin(static_cast<double>(i) * 1.3) * 1.9);
  for (const char* method : {"bilinear", "nearest"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (bool corners : {false, true})
        check({volume, places}, call("image.grid_sample", {volume, places}, make_attrs<GridSampleAttrs>([&](auto& a) {
                                       a.layout = "NCDHW";
                                       a.method = method;
                                       a.padding_mode = padding;
                                       a.align_corners = corners;
                                     })),
              {{"places", around}});
  // Planes that the second cache does not hold: several rows of points at once, and a rest.
  for (DataType dtype : {kFloat32, kFloat16, kFloat64}) {
    Expr large = input("large", {1, 3, 220, 210}, dtype), points = input("points", {1, 2, 41, 50}, dtype);
    Tensor everywhere(dtype, {1, 2, 41, 50});
    for (int64_t i = 0; i < everywhere.size(); ++i)
      everywhere.set_double(i, std::sin(static_cast<double>(i) * 1.7) * 1.1);
    check({large, points}, call("image.grid_sample", {large, points}, make_default_attrs<GridSampleAttrs>()),
          {{"points", everywhere}});
  }
}

// Every code of every small format to float32, and back; values between the codes, ties and the far ends included.
TEST(SmallTypes, CastsOfEveryCode) {
  for (const char* name : {"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
                           "float4_e2m1", "int4", "uint4", "int2", "uint2", "float16", "bfloat16"}) {
    const DataType type = *parse_dtype(name);
    const int64_t codes = type.bits == 16 ? 1 << 16 : int64_t{1} << type.bits;
    Tensor all = Tensor::zeros(type, {codes});
    for (int64_t i = 0; i < codes; ++i) {
      const int64_t at = i * type.bits;
      auto* bytes = reinterpret_cast<unsigned char*>(all.mutable_raw());
      for (int b = 0; b < type.bits; ++b)
        if (i >> b & 1) bytes[(at + b) / 8] |= static_cast<unsigned char>(1u << ((at + b) % 8));
    }
    SCOPED_TRACE(name);
    Expr x = input("x", {codes}, type);
    check({x}, call("cast", {x}, make_attrs<CastAttrs>([](auto& a) { a.dtype = kFloat32; })), {{"x", all}});
    check({x}, call("reverse", {x}, make_default_attrs<ReverseAttrs>()), {{"x", all}});
    std::vector<float> values{0.0f, -0.0f};
    if (type.is_float())
      values.insert(values.end(),
                    {INFINITY, -INFINITY, NAN, 1e30f, -1e30f, 1e-30f, 3e38f, 0x1p-127f, 0x1.8p-127f, 0x1p-126f});
    for (int64_t i = 0; i + 1 < codes; i += type.bits == 16 ? 37 : 1) {
      const double a = all.at_double(i), b = all.at_double(i + 1);
      if (!std::isfinite(a) || !std::isfinite(b)) continue;
      for (double v : {a, (a + b) / 2, a * 0.49 + b * 0.51, a * 0.51 + b * 0.49})
        values.push_back(static_cast<float>(type.is_float() ? v : std::trunc(v)));
    }
    Expr y = input("y", {static_cast<int64_t>(values.size())});
    check({y}, call("cast", {y}, make_attrs<CastAttrs>([&](auto& a) { a.dtype = type; })),
          {{"y", Tensor::from<float>(kFloat32, {static_cast<int64_t>(values.size())}, values)}});
  }
}

TEST(SmallTypes, PackedTensorsMove) {
  Expr x = input("x", {3, 7}, *parse_dtype("int4"));
  check({x}, call("transpose", {x}));
  Expr y = input("y", {5, 7}, *parse_dtype("int4"));
  check({x, y}, call("concatenate", {make_tuple({x, y})}, make_attrs<ConcatenateAttrs>([](auto& a) { a.axis = 0; })));
  check({y}, call("strided_slice", {y}, make_attrs<StridedSliceAttrs>([](auto& a) {
                    a.begin = {1, 0};
                    a.end = {4, 7};
                    a.strides = {1, 1};
                  })));
}

}  // namespace
}  // namespace tilewright::driver
