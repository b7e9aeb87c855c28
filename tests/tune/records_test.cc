// SPDX-License-Identifier: Apache-2.0
// The classic log: what the classic stack wrote is read, what is written is read back, damage is said where it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>

#include "test_folders.h"
#include "tune/database.h"
#include "tune/search.h"

namespace tilewright::tune {
namespace {

const char* const kLine =
    R"({"input": ["llvm -mcpu=core-avx2", "dense_nopack.x86", [["TENSOR", [1, 8], "float32"], null], {}], )"
    R"("config": {"index": 15, "code_hash": null, "entity": [["tile_y", "sp", [-1, 1]]]}, )"
    R"("result": [[1.5e-05, 2.5e-05], 0, 0.25, 1795250966.5], "version": 0.2, "tvm_version": "0.9.0"})";

TEST(AutotvmLog, ReadsWhatTheClassicStackWrote) {
  const struct {
    const char* file;
    size_t records;
  } files[] = {{"best.log", 3}, {"ga.log", 12}, {"random6.log", 6}};
  for (const auto& f : files) {
    auto log = read_log(std::string(TW_TEST_DATA "/autotvm/") + f.file);
    ASSERT_TRUE(log.ok()) << log.error().str();
    EXPECT_EQ(log->records.size() + static_cast<size_t>(log->other_versions), f.records) << f.file;
    for (const Record& record : log->records) {
      auto again = parse_record(to_line(record), "again");
      ASSERT_TRUE(again.ok()) << again.error().str();
      EXPECT_EQ(to_line(*again), to_line(record));
      EXPECT_EQ(again->key(), record.key());
    }
  }
}

TEST(AutotvmLog, FieldsAreWhatTheyWere) {
  auto r = parse_record(kLine, "line");
  ASSERT_TRUE(r.ok()) << r.error().str();
  EXPECT_EQ(r->target, "llvm -mcpu=core-avx2");
  EXPECT_EQ(r->name, "dense_nopack.x86");
  EXPECT_EQ(r->index, 15U);
  EXPECT_DOUBLE_EQ(r->cost(), 2e-5);
  EXPECT_EQ(nlohmann::json::parse(to_line(*r)), nlohmann::json::parse(kLine));
}

TEST(AutotvmLog, DamageIsSaidWhereItIs) {
  const std::string good = std::string(kLine) + "\n";
  for (const char* bad :
       {"{}", "nonsense", "{\"input\": 3}", "[]", "{\"input\": [\"llvm\", \"x\", []], \"config\": {}}"}) {
    auto log = parse_log(good + bad + "\n" + good, "my.log");
    ASSERT_FALSE(log.ok()) << bad;
    EXPECT_EQ(log.error().code, ErrorCode::kParseError);
    EXPECT_EQ(log.error().where, "my.log, line 2");
  }
  // Whoever was killed while writing left part of a line at the end.
  auto cut = parse_log(good + good.substr(0, good.size() / 2), "my.log");
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(cut->records.size(), 1U);
  EXPECT_TRUE(cut->cut);
  EXPECT_FALSE(parse_record(std::string(100000, '['), "deep").ok());
}

TEST(AutotvmLog, AppendingGoesOnBehindHalfALine) {
  const std::string path = ::testing::TempDir() + "append_test.log";
  std::remove(path.c_str());
  const Record record = parse_record(kLine, "line").value();
  ASSERT_TRUE(append_record(path, record).ok());
  std::ofstream(path, std::ios::app) << "{\"input\": [\"ll";
  ASSERT_TRUE(append_record(path, record).ok());
  std::ifstream in(path);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_EQ(append_record("/nowhere/x.log", record).error().code, ErrorCode::kCannotWrite);
  std::remove(path.c_str());
}

TEST(Database, LaterTimesTakeThePlaceOfEarlierOnes) {
  Record first = parse_record(kLine, "line").value(), other = first;
  first.costs = {1e-6};
  other.entity[0][2] = {-1, 4};
  other.costs = {5e-6};
  Database database;
  database.add({first, other});
  EXPECT_EQ(database.of(first.key())[0]->entity, first.entity);
  first.costs = {9e-6};  // it was luck
  database.add(first);
  ASSERT_EQ(database.of(first.key()).size(), 2U);
  EXPECT_EQ(database.of(first.key())[0]->entity, other.entity);
  other.error = static_cast<int>(MeasureError::kRuntimeDevice);
  database.add(other);
  EXPECT_EQ(database.of(first.key()).size(), 1U);
  EXPECT_TRUE(database.of("nothing").empty());
}

TEST(Search, EveryKindTriesEachKernelOnceAndTheSameSeedTheSameOnes) {
  for (const char* name : {"guided", "genetic", "random", "grid"}) {
    auto run = [&](uint64_t seed) {
      SearchSpace space;
      space.branches = {{4, 3, 5}, {7, 2}};
      space.legal = [](uint64_t index) { return index % 3 != 1; };
      space.ranked = {12, 6, 59};
      auto search = make_search(name, space, seed).value();
      std::vector<uint64_t> order;
      for (auto next = search->propose(8); !next.empty(); next = search->propose(8))
        for (uint64_t index : next) {
          EXPECT_TRUE(space.is_legal(index)) << name;
          order.push_back(index);
          search->learn(index, 1.0 + static_cast<double>((index * 37) % 11));
        }
      return order;
    };
    const auto order = run(7);
    EXPECT_EQ(std::set<uint64_t>(order.begin(), order.end()).size(), order.size()) << name;
    EXPECT_EQ(order.size(), 74U - 25U) << name;
    EXPECT_EQ(run(7), order) << name;
  }
  EXPECT_EQ(make_search("luck", {}, 0).error().code, ErrorCode::kInvalidArgument);
}

TEST(Search, IndicesAreMixedRadixWithTheFirstKnobFastest) {
  SearchSpace space;
  space.branches = {{4, 3, 5}, {7, 2}};
  EXPECT_EQ(space.size(), 74U);
  for (uint64_t index = 0; index < space.size(); ++index) {
    size_t branch = 0;
    const auto digits = space.digits(index, &branch);
    EXPECT_EQ(space.index(branch, digits), index);
  }
  size_t branch = 9;
  EXPECT_EQ(space.digits(5, &branch), (std::vector<size_t>{1, 1, 0}));
  EXPECT_EQ(branch, 0U);
}

}  // namespace
}  // namespace tilewright::tune
