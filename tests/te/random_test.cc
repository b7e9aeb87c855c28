// SPDX-License-Identifier: Apache-2.0
// Random schedules over random computations: what is accepted gives the values of the definition, what is refused says
// why. TW_TE_SEEDS=10000 runs more of them.
#include <algorithm>
#include <cstdlib>
#include <random>

#include "te/testing.h"

namespace tilewright::te {
namespace {

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

struct Drawn {
  int accepted = 0, refused = 0;
};

void draw_steps(Draw& draw, Schedule& s, Drawn* count) {
  auto note = [&](const auto& result) {
    if (result.ok()) return void(++count->accepted);
    ++count->refused;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument) << result.error().str();
    EXPECT_FALSE(result.error().where.empty());
  };
  const int64_t steps = draw.below(9);
  for (int64_t i = 0; i < steps; ++i) {
    std::vector<Stage*> stages;
    for (const auto& st : s.stages()) stages.push_back(st.get());
    Stage& stage = *draw.one(stages);
    const IterVar a = draw.one(stage.leaves());
    switch (draw.below(12)) {
      case 0:
      case 1:
        note(draw.chance(70) ? stage.split(a, 1 + draw.below(9)) : stage.split(a, 0, 1 + draw.below(5)));
        break;
      case 2: {
        const auto& l = stage.leaves();
        const auto at = static_cast<size_t>(draw.below(static_cast<int64_t>(l.size())));
        note(stage.fuse(l[at], l[std::min(at + 1, l.size() - 1)]));
        break;
      }
      case 3: {
        std::vector<IterVar> order = stage.leaves();
        for (size_t k = order.size(); k > 1; --k)
          std::swap(order[k - 1], order[static_cast<size_t>(draw.below(static_cast<int64_t>(k)))]);
        note(stage.reorder(order));
        break;
      }
      case 4:
        note(stage.vectorize(a));
        break;
      case 5:
        note(stage.unroll(a));
        break;
      case 6:
        note(stage.parallel(draw.chance(70) ? stage.leaves()[0] : a));
        break;
      case 7:
      case 8: {
        Stage& home = *draw.one(stages);
        note(stage.compute_at(home, draw.one(home.leaves())));
        break;
      }
      case 9:
        note(stage.compute_inline());
        break;
      case 10:
        note(s.cache_write(output(stage.op())));
        break;
      default:
        note(s.cache_read(output(stage.op()), {}));
    }
  }
}

TEST(RandomSchedule, GivesTheValuesOfTheDefinition) {
  const char* given = std::getenv("TW_TE_SEEDS");
  const int seeds = given ? std::atoi(given) : 150;
  Drawn count;
  int lowered_count = 0, refused_count = 0;
  for (int seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(static_cast<uint64_t>(seed));
    Program program(draw);
    Schedule s(program.outputs);
    draw_steps(draw, s, &count);
    std::vector<Tensor> arguments;
    for (const Tensor& t : program.inputs)
      if (s.stage(t->op).ok()) arguments.push_back(t);
    arguments.push_back(output(program.outputs[0]));
    auto lowered = lower(s, arguments, "f");
    if (!lowered.ok()) {
      ++refused_count;
      EXPECT_EQ(lowered.error().code, ErrorCode::kInvalidArgument) << lowered.error().str();
      continue;
    }
    ++lowered_count;
    const Elements& expected = program.naive.elements(program.outputs[0]);
    for (bool passes : {false, true}) {
      auto results = run(*lowered, arguments, program.naive, passes ? 3 : 1, passes);
      if (results.empty()) break;
      std::string text;
      for (const auto& k : lowered->kernels) text += tir::to_text(k);
      EXPECT_EQ(results.back(), expected) << (passes ? "after the passes of kernels\n" : "as lowered\n") << text;
    }
  }
  RecordProperty("accepted steps", count.accepted);
  EXPECT_GT(lowered_count, seeds / 2);
  EXPECT_GT(count.accepted, count.refused);
  EXPECT_GT(refused_count + count.refused, 0);
}

}  // namespace
}  // namespace tilewright::te
