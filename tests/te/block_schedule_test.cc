// SPDX-License-Identifier: Apache-2.0
// Steps on blocks: what is accepted gives the values of the definition, what is refused says why. TW_TE_SEEDS=10000
// runs more random ones.
#include "te/block_schedule.h"

#include <algorithm>
#include <cstdlib>

#include "te/block_parts.h"
#include "te/random_program.h"
#include "te/script.h"

namespace tilewright::te {
namespace {

struct DrawnBlocks {
  std::map<std::string, int> accepted;  // by step
  std::map<std::string, int> refused;   // by reason
};

class Steps {
 public:
  Steps(Draw& draw, BlockSchedule& schedule, DrawnBlocks* count) : draw_(draw), s_(schedule), count_(count) {}

  void take(int64_t n) {
    for (int64_t i = 0; i < n; ++i) step();
  }

 private:
  template <class R>
  void note(const std::string& step, const R& result) {
    if (result.ok()) return void(++count_->accepted[step]);
    ++count_->refused[result.error().message];
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument) << result.error().str();
    EXPECT_FALSE(result.error().where.empty());
  }
  std::string block() {
    std::vector<std::string> names;
    for (const PlacedBlock& b : blocks_in(s_.function().body)) names.push_back(b.block->name);
    return names.empty() ? "none" : draw_.one(names);
  }
  PrimExpr loop(const std::string& of) {
    auto loops = s_.loops(of);
    return loops.ok() && !loops->empty() ? draw_.one(*loops) : tir::make_var("none", kInt32);
  }

  void step() {
    const std::string b = block(), other = block();
    const PrimExpr l = loop(b);
    switch (draw_.below(20)) {
      case 0:
      case 1:
      case 2: {
        std::vector<int64_t> factors = {0, 1 + draw_.below(7)};
        if (draw_.chance(20)) factors.push_back(1 + draw_.below(3));
        if (draw_.chance(30)) std::swap(factors[0], factors[1]);
        return note("split", s_.split(l, factors));
      }
      case 3: {
        auto loops = s_.loops(b);
        if (!loops.ok() || loops->size() < 2) return;
        const auto at = static_cast<size_t>(draw_.below(static_cast<int64_t>(loops->size()) - 1));
        return note("fuse", s_.fuse({(*loops)[at], (*loops)[at + 1]}));
      }
      case 4:
      case 5: {
        auto loops = s_.loops(b);
        if (!loops.ok()) return;
        for (size_t k = loops->size(); k > 1; --k)
          std::swap((*loops)[k - 1], (*loops)[static_cast<size_t>(draw_.below(static_cast<int64_t>(k)))]);
        loops->resize(static_cast<size_t>(draw_.below(static_cast<int64_t>(loops->size()) + 1)));
        return note("reorder", s_.reorder(*loops));
      }
      case 6:
        return note("vectorized", s_.set_kind(l, tir::ForKind::kVectorized));
      case 7:
        return note("parallel", s_.set_kind(l, tir::ForKind::kParallel));
      case 8:
        return note("unrolled", s_.set_kind(l, tir::ForKind::kUnrolled));
      case 9:
      case 10:
      case 11:
        return note("compute_at", s_.compute_at(b, loop(other)));
      case 12:
        return note("reverse_compute_at", s_.reverse_compute_at(b, loop(other)));
      case 13:
        return note("compute_inline", s_.compute_inline(b));
      case 14:
        return note("reverse_compute_inline", s_.reverse_compute_inline(b));
      case 15:
        return note("cache_read", s_.cache_read(b, static_cast<size_t>(draw_.below(2)), "global"));
      case 16:
        return note("cache_write", s_.cache_write(b, 0, "local"));
      case 17:
        return note("decompose_reduction", s_.decompose_reduction(b, l));
      case 18:
        return note("rfactor", s_.rfactor(b, l, draw_.below(4) - 1));
      default:
        return note("annotate", s_.annotate(b, "note", "1"));
    }
  }

  Draw& draw_;
  BlockSchedule& s_;
  DrawnBlocks* count_;
};

TEST(BlockSchedule, RandomStepsGiveTheValuesOfTheDefinition) {
  const char* given = std::getenv("TW_TE_SEEDS");
  const int seeds = given ? std::atoi(given) : 300;
  DrawnBlocks count;
  for (int seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(static_cast<uint64_t>(seed));
    Program program(draw);
    std::vector<Tensor> arguments;
    for (const Tensor& t : program.inputs)
      if (Schedule(program.outputs).stage(t->op).ok()) arguments.push_back(t);
    arguments.push_back(output(program.outputs[0]));
    const std::vector<bool> scalars(arguments.size(), false);
    auto function = block_function(arguments, {}, scalars, "f");
    ASSERT_TRUE(function.ok()) << function.error().str();
    BlockSchedule s(*function);
    Steps(draw, s, &count).take(draw.below(14));
    auto lowered = lower(s.function());
    ASSERT_TRUE(lowered.ok()) << lowered.error().str() << to_script(s.function());
    const Elements& expected = program.naive.elements(program.outputs[0]);
    for (bool passes : {false, true}) {
      auto results = run(*lowered, arguments, program.naive, passes ? 3 : 1, passes);
      if (results.empty()) break;
      EXPECT_EQ(results.back(), expected)
          << (passes ? "after the passes of kernels\n" : "as lowered\n") << to_script(s.function());
    }
  }
  int accepted = 0, refused = 0;
  for (const auto& [step, n] : count.accepted) accepted += n;
  for (const auto& [reason, n] : count.refused) refused += n;
  EXPECT_EQ(count.accepted.size(), 15U);  // each step was taken
  EXPECT_GT(accepted, refused / 2);
  EXPECT_GT(count.refused.size(), 10U);
}

// for i: S[i] = A[i] + 1;  for i: C[i] = S[i] * 2, and A[i] written after S is, so that S cannot move behind that.
TEST(BlockSchedule, NothingMovesPastWhatChangesIt) {
  const PrimExpr n = i32(8);
  const tir::Array a = tir::make_array("A", kInt64, {n}), s = tir::make_array("S", kInt64, {n}),
                   c = tir::make_array("C", kInt64, {n});
  auto nest = [&](const char* name, const tir::Array& to, const tir::Array& from, int64_t plus) {
    const PrimExpr i = tir::make_var("i", kInt32), v = tir::make_var("v", kInt32);
    const tir::Stmt body = tir::write(to, {v}, tir::read(from, {v}) + plus);
    return tir::make_for(i, i32(0), n,
                         make_node<tir::BlockNode>(name, std::vector<tir::BlockAxis>{{v, i32(0), n, false, i}},
                                                   PrimExpr(), tir::Stmt(), body, std::vector<Ref<Node>>()));
  };
  tir::BlockFunction f{"f", {{a, {}}, {c, {}}}, {}};
  f.body = make_node<tir::BlockNode>("root", std::vector<tir::BlockAxis>(), PrimExpr(), tir::Stmt(),
                                     tir::seq({nest("S", s, a, 1), nest("A", a, c, 5), nest("C", c, s, 2)}),
                                     std::vector<Ref<Node>>{s});
  BlockSchedule steps(f);
  const PrimExpr loop = steps.loops("C").value()[0];
  EXPECT_FALSE(steps.compute_at("S", loop).ok());
  EXPECT_FALSE(steps.compute_inline("S").ok());
  const PrimExpr first = steps.loops("S").value()[0];
  EXPECT_FALSE(steps.reverse_compute_at("C", first).ok());  // A reads C before
  EXPECT_FALSE(steps.reverse_compute_inline("C").ok());
  EXPECT_FALSE(steps.find_block("D").ok());
}

}  // namespace
}  // namespace tilewright::te
