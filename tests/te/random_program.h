// SPDX-License-Identifier: Apache-2.0
// Random computations.
#pragma once
#include <random>

#include "te/testing.h"

namespace tilewright::te {

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  const T& one(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }

 private:
  std::mt19937_64 random_;
};

// A chain of computations over two inputs of two dimensions; sizes are numbers or variables.
struct Program {
  Naive naive;
  std::vector<Tensor> inputs, tensors;
  std::vector<Operation> outputs;
  PrimExpr rows, columns;

  explicit Program(Draw& draw) {
    auto size = [&](const char* name) -> PrimExpr {
      const int64_t n = 1 + draw.below(draw.chance(50) ? 9 : 21);
      if (draw.chance(60)) return i32(n);
      PrimExpr var = tir::make_var(name, kInt32);
      naive.sizes[var.get()] = n;
      return var;
    };
    rows = size("n"), columns = size("m");
    for (const char* name : {"A", "B"}) {
      inputs.push_back(placeholder({rows, columns}, kInt64, name));
      Bindings none;
      Elements data;
      const int64_t count = naive.value(rows, none) * naive.value(columns, none);
      for (int64_t i = 0; i < count; ++i) data.push_back(draw.below(19) - 9);
      naive.known[inputs.back()->op.get()] = data;
    }
    tensors = inputs;
    const int64_t steps = 1 + draw.below(4);
    for (int64_t i = 0; i < steps; ++i) add(draw, format_name(i));
    outputs = {tensors.back()->op};
  }
  static std::string format_name(int64_t i) { return std::string("T") + std::to_string(i); }

  PrimExpr at(const Tensor& t, PrimExpr i, PrimExpr j) { return element(t, {std::move(i), std::move(j)}).value(); }

  void add(Draw& draw, const std::string& name) {
    const Tensor x = draw.chance(70) ? tensors.back() : draw.one(tensors), y = draw.one(tensors);
    auto inside = [&](const PrimExpr& i, const PrimExpr& n, PrimExpr value) {
      return tir::intrinsic(tir::Intrinsic::k_if_then_else,
                            {tir::logical_and(tir::ge(i, i32(0)), tir::lt(i, n)), std::move(value), tir::make_int(0)});
    };
    const int64_t kind = draw.below(7);
    const IterVar k = reduce_axis(i32(0), columns, "k");
    Result<Operation> made = [&]() -> Result<Operation> {
      switch (kind) {
        case 0:  // elementwise
          return compute(
              {rows, columns}, [&](const auto& v) { return std::vector{at(x, v[0], v[1]) * 3 + at(y, v[0], v[1])}; },
              name);
        case 1:  // a stencil
          return compute(
              {rows, columns},
              [&](const auto& v) {
                return std::vector{at(x, v[0], v[1]) + inside(v[1] - 1, columns, at(x, v[0], v[1] - 1)) +
                                   inside(v[0] + 2, rows, at(x, v[0] + 2, v[1]))};
              },
              name);
        case 2:  // reversed rows
          return compute(
              {rows, columns},
              [&](const auto& v) { return std::vector{at(x, rows - 1 - v[0], v[1]) - at(y, v[0], v[1])}; }, name);
        case 3:  // a sum over columns, again for every column
          return compute_reduction(
              {rows, columns},
              [&](const auto& v) { return std::vector{at(x, v[0], k->var) * (tir::cast(kInt64, v[1]) + 1)}; }, {k},
              make_combiner(Reduction::kSum, kInt64).value(), {}, name);
        case 4:  // a running maximum
          return compute_reduction(
              {rows, columns}, [&](const auto& v) { return std::vector{at(x, v[0], k->var) + at(y, v[0], v[1])}; }, {k},
              make_combiner(Reduction::kMax, kInt64).value(), {}, name);
        case 5:  // a sum over a window that stays inside
        {
          const IterVar w = reduce_axis(i32(-1), i32(3), "w");
          return compute_reduction(
              {rows, columns},
              [&](const auto& v) { return std::vector{inside(v[1] + w->var, columns, at(x, v[0], v[1] + w->var))}; },
              {w}, make_combiner(Reduction::kSum, kInt64).value(), {}, name);
        }
        default:  // the upper triangle's sum
          return compute_reduction(
              {rows, columns}, [&](const auto& v) { return std::vector{at(x, v[0], k->var)}; }, {k},
              make_combiner(Reduction::kSum, kInt64).value(), tir::lt(tir::floormod(k->var, i32(3)), i32(2)), name);
      }
    }();
    ASSERT_TRUE(made.ok()) << made.error().str();
    tensors.push_back(output(*made));
  }
};

}  // namespace tilewright::te
