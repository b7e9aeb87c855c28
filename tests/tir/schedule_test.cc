// SPDX-License-Identifier: Apache-2.0
// schedule.tir: the name of a case is the schedule ("split i 8, vectorize i_inner"). What is refused stands here.
#include "tir/schedule.h"

#include "tir/cases.h"
#include "tir/verify.h"

namespace tilewright::tir {
namespace {

Status apply(Schedule& schedule, const PrimFunc& f, const std::string& text) {
  std::stringstream steps(text);
  for (std::string step; std::getline(steps, step, ',');) {
    std::stringstream in(step);
    std::string primitive, name;
    in >> primitive;
    std::vector<std::string> words;
    while (in >> name) words.push_back(name);
    std::vector<PrimExpr> loops;
    if (primitive == "split") {
      TW_TRY(schedule.split(TW_TRY(schedule.loop(words.at(0))), std::stoll(words.at(1))));
      continue;
    }
    if (primitive == "cache_write") {
      for (const Buffer& b : f.params)
        if (b->name == words.at(0)) TW_TRY_STATUS(schedule.cache_write(b, TW_TRY(schedule.loop(words.at(1)))));
      continue;
    }
    for (const auto& word : words) loops.push_back(TW_TRY(schedule.loop(word)));
    if (primitive == "fuse")
      TW_TRY(schedule.fuse(loops.at(0), loops.at(1)));
    else if (primitive == "reorder")
      TW_TRY_STATUS(schedule.reorder(loops));
    else if (primitive == "unroll")
      TW_TRY_STATUS(schedule.unroll(loops.at(0)));
    else if (primitive == "vectorize")
      TW_TRY_STATUS(schedule.vectorize(loops.at(0)));
    else if (primitive == "parallelize")
      TW_TRY(schedule.parallelize(loops, f.tid, f.nthreads));
    else
      return Diagnostic(ErrorCode::kInvalidArgument, "there is no primitive " + primitive);
  }
  return Ok{};
}

TEST(Schedule, TransformsNests) {
  check_cases("schedule.tir", [](PrimFunc f, const std::string& text) {
    Schedule schedule(f.body);
    Status done = apply(schedule, f, text);
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().str());
    f.body = schedule.stmt();
    EXPECT_TRUE(verify(f).ok());
    return f;
  });
}

void expect_refused(const char* function, const std::string& steps, const std::string& why) {
  auto f = parse_func(function);
  ASSERT_TRUE(f.ok()) << f.error().str();
  Schedule schedule(f->body);
  Status done = apply(schedule, *f, steps);
  ASSERT_FALSE(done.ok()) << steps << "\n" << to_text(schedule.stmt());
  EXPECT_NE(done.error().str().find(why), std::string::npos) << done.error().str();
}

TEST(Schedule, RefusesWhatWouldChangeResults) {
  const char* sum =
      "func f(a: float32[64] readonly, c: float32[8]):\n"
      "  for i from 0 extent 8:\n"
      "    for k from 0 extent 8:\n"
      "      c[i] = c[i] + a[i * 8 + k]\n";
  expect_refused(sum, "vectorize k", "two iterations of loop 'k' may use the same element of 'c'");
  expect_refused(sum, "cache_write c i", "loop 'i' uses more than one element of 'c'");
  expect_refused(sum, "cache_write a i", "loop 'i' does not write to 'a'");
  const char* shift =
      "func f(c: float32[64]):\n"
      "  for i from 1 extent 7:\n"
      "    for j from 0 extent 7:\n"
      "      c[i * 8 + j] = c[i * 8 + j - 7] + 1.0\n";
  // Iteration (i, j) reads what (i - 1, j + 1) wrote: j is independent in one iteration of i, but they cannot change
  // places.
  expect_refused(shift, "reorder j i", "loops 'i' and 'j' cannot change places");
  expect_refused(shift, "vectorize i", "may use the same element of 'c'");
  expect_refused(
      "func f(n: int64[8] readonly, c: float32[64]):\n  for i from 0 extent 8:\n    c[max(min(n[i], 63), 0)] = 1.0\n",
      "vectorize i", "may use the same element of 'c'");
  expect_refused("func f(c: float32[64]):\n  for i from 0 extent 8:\n    c[i // 2] = 1.0\n", "vectorize i",
                 "may use the same element of 'c'");
  expect_refused(
      "func f(c: float32[64]) threads(t, n):\n  for i from 0 extent 8:\n    c[i] = 1.0\n  for j from 0 extent 8:\n    "
      "c[j] = c[j] + 1.0\n",
      "parallelize i", "'i' is not the outermost statement");
  expect_refused(
      "func f(c: float32[64]):\n  alloc acc: float32[1] register\n  for i from 0 extent 8:\n    acc[0] = 1.0\n    c[i] "
      "= acc[0]\n",
      "vectorize i", "may use the same element of 'acc'");
}

TEST(Schedule, RefusesWhatDoesNotFitTheNest) {
  const char* nest =
      "func f(c: float32[64]) threads(t, n):\n"
      "  for i from 0 extent 8:\n"
      "    for j from 0 extent i + 1:\n"
      "      c[i] = 1.0\n"
      "    for k from 0 extent 8:\n"
      "      c[i * 8 + k] = 1.0\n";
  expect_refused(nest, "split x 4", "there is no loop 'x'");
  expect_refused(nest, "split i 0", "loop 'i' cannot be split by 0");
  expect_refused(nest, "split j 4", "loop 'j' cannot be split: its extent is not a constant");
  expect_refused(nest, "unroll j", "loop 'j' cannot be unrolled: its extent is not a constant");
  expect_refused(nest, "fuse i k", "loop 'k' is not directly in loop 'i'");
  expect_refused(nest, "reorder k i", "are no perfect nest");
  expect_refused(nest, "reorder i i", "listed twice");
  expect_refused(
      "func f(c: float32[64]):\n  for i from 0 extent 8:\n    for j from 0 extent i + 1:\n      c[i * 8 + j] = 1.0\n",
      "reorder j i", "the bounds of loop 'j' need loop 'i' around it");
  expect_refused(
      "func f(c: float32[8]):\n  for i from 0 extent 8:\n    c[i] = 1.0\n  for i from 0 extent 8:\n    c[i] = 2.0\n",
      "split i 4", "there are 2 loops 'i'");
}

}  // namespace
}  // namespace tilewright::tir
