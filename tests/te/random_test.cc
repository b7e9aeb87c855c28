// SPDX-License-Identifier: Apache-2.0
// Random schedules over random computations: what is accepted gives the values of the definition, what is refused says
// why. TW_TE_SEEDS=10000 runs more of them.
#include <algorithm>
#include <cstdlib>

#include "te/random_program.h"

namespace tilewright::te {
namespace {

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
