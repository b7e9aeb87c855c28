// SPDX-License-Identifier: Apache-2.0
#include "ir/pass.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace tilewright {
namespace {

// The runner is the same for every kind of module, so its tests use the simplest one: a text.
using Text = std::string;

Result<Text> append_a(const Text& t, PassContext&) { return t + "a"; }
Result<Text> append_b(const Text& t, PassContext&) { return t + "b"; }
Result<Text> leave(const Text& t, PassContext&) { return t; }
Result<Text> spoil(const Text& t, PassContext&) { return t + "!"; }
Result<Text> refuse(const Text&, PassContext&) { return Diagnostic(ErrorCode::kTypeMismatch, "no"); }
Result<Text> crash(const Text& t, PassContext&) {
  TW_ICHECK(t.empty(), "the text is not empty");
  return t;
}

const std::vector<Pass<Text>>& table() {
  static const std::vector<Pass<Text>> kTable = {
      {{"AppendA", 1, "appends a"}, append_a},
      {{"AppendB", 3, "appends b"}, append_b},
      {{"Leave", 0, "changes nothing"}, leave},
      {{"Spoil", 0, "breaks the rules"}, spoil},
      {{"Refuse", 0, "fails"}, refuse},
      {{"Crash", 0, "has a bug"}, crash},
      {{"Finish", 9, "must run", true}, append_b},
  };
  return kTable;
}

const PassLevel<Text>& level() {
  static const PassLevel<Text> kLevel = {
      [](const Text& t) { return t + "\n"; },
      [](const Text& t, const Text&) -> Status {
        if (t.find('!') != Text::npos) return Diagnostic(ErrorCode::kVerifyFailed, "there is a '!'");
        return Ok{};
      },
      [](const Text& a, const Text& b) { return a == b; },
      [](const Text& t) { return t + "\nwhole\n"; },
  };
  return kLevel;
}

Result<Text> run(const Pipeline& names, PassContext& context) {
  return run_passes<Text>("", names, table(), level(), context);
}

TEST(PassRunner, LevelRequiredDisabled) {
  PassContext context;
  EXPECT_EQ(context.opt_level, 2);
  EXPECT_EQ(*run({"AppendA", "AppendB"}, context), "a");
  EXPECT_EQ(context.log[1].skipped, "opt level 3");
  context.required = {"AppendB"};
  EXPECT_EQ(*run({"AppendA", "AppendB"}, context), "ab");
  context.disabled = {"AppendB"};  // disabled wins over required, as in the classic stack
  EXPECT_EQ(*run({"AppendA", "AppendB"}, context), "a");
  context.opt_level = 0;
  EXPECT_EQ(*run({"AppendA", "Finish"}, context), "b");
}

TEST(PassRunner, RecordsChangesAndTimes) {
  PassContext context;
  ASSERT_TRUE(run({"AppendA", "Leave"}, context).ok());
  ASSERT_EQ(context.log.size(), 2u);
  EXPECT_TRUE(context.log[0].ran && context.log[0].changed);
  EXPECT_TRUE(context.log[1].ran && !context.log[1].changed);
  EXPECT_NE(context.timing_report().find("Leave  (no change)"), std::string::npos);
}

TEST(PassRunner, UnknownPassNamesTheNearest) {
  PassContext context;
  auto result = run({"AppendA", "ApendB"}, context);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kUnknownPass);
  EXPECT_NE(result.error().hint.find("AppendB"), std::string::npos) << result.error().str();
  EXPECT_TRUE(context.log.empty()) << "nothing may run before the names are checked";
  context.disabled = {"leave"};
  auto names = context.check_names(pass_names<Text>(table()));
  ASSERT_FALSE(names.ok());
  EXPECT_NE(names.error().hint.find("Leave"), std::string::npos);
  context.disabled = {"Leave"};
  EXPECT_TRUE(context.check_names(pass_names<Text>(table())).ok());
}

TEST(PassRunner, VerifiesAfterAChange) {
  PassContext context;
  auto result = run({"AppendA", "Spoil"}, context);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kVerifyFailed);
  EXPECT_NE(result.error().where.find("pass Spoil"), std::string::npos);
  context.verify = false;
  EXPECT_TRUE(run({"AppendA", "Spoil"}, context).ok());
}

TEST(PassRunner, ErrorsAndBugsNameThePass) {
  PassContext context;
  auto refused = run({"Refuse"}, context);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().where, "pass Refuse");
  auto crashed = run({"AppendA", "Crash"}, context);
  ASSERT_FALSE(crashed.ok());
  EXPECT_EQ(crashed.error().code, ErrorCode::kInternal);
  EXPECT_EQ(crashed.error().where, "pass Crash");
}

TEST(PassRunner, BisectionStopsOptionalPasses) {
  PassContext context;
  context.opt_level = 3;
  context.stop_after = 1;
  EXPECT_EQ(*run({"AppendA", "AppendB", "Finish"}, context), "ab");
  EXPECT_EQ(context.log[1].skipped, "bisection");
}

TEST(PassRunner, InstrumentsSeeAndVeto) {
  struct Watch : PassInstrument {
    std::string seen;
    bool should_run(const PassInfo& pass) override { return pass.name != "Leave"; }
    void before(const PassInfo& pass, const std::function<std::string()>& text) override {
      seen += "<" + pass.name + text();
    }
    void after(const PassInfo& pass, bool changed, const std::function<std::string()>& text) override {
      seen += ">" + pass.name + (changed ? "*" : "") + text();
    }
  };
  auto watch = std::make_shared<Watch>();
  PassContext context;
  context.instruments = {watch};
  ASSERT_TRUE(run({"AppendA", "Leave"}, context).ok());
  EXPECT_EQ(watch->seen, "<AppendA\n>AppendA*a\n");
}

TEST(PassRunner, DumpsNumberedTexts) {
  PassContext context;
  context.dump_dir = std::filesystem::path(testing::TempDir()) / "pass_dump";
  std::filesystem::remove_all(context.dump_dir);
  ASSERT_TRUE(run({"AppendA", "Leave", "Finish"}, context).ok());
  std::stringstream text;
  text << std::ifstream(context.dump_dir / "002_Finish.txt").rdbuf();
  EXPECT_EQ(text.str(), "ab\n");
  EXPECT_TRUE(std::filesystem::exists(context.dump_dir / "000_input.txt"));
  EXPECT_TRUE(std::filesystem::exists(context.dump_dir / "001_AppendA.txt"));
  // What the failed pass was given, whole, and how to repeat it.
  const auto kept = context.dump_dir / "003_Refuse.failed_on.txt";
  auto failed = run({"Refuse"}, context);
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().hint.find("tilewright passes --run Refuse " + kept.string()), std::string::npos)
      << failed.error().hint;
  std::stringstream whole;
  whole << std::ifstream(kept).rdbuf();
  EXPECT_EQ(whole.str(), "\nwhole\n");
  PassContext nowhere;
  nowhere.dump_dir = "/proc/no/such/folder";
  auto result = run({"AppendA"}, nowhere);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kCannotWrite);
}

TEST(PassContext, OptionsAreTyped) {
  PassContext context;
  static const ConfigKey<int64_t> kDepth{"relay.FuseOps.max_depth", 256};
  EXPECT_EQ(context.get(kDepth), 256);
  EXPECT_TRUE(context.set_config("relay.FuseOps.max_depth", int64_t{10}).ok());
  EXPECT_EQ(context.get(kDepth), 10);
  auto wrong_type = context.set_config("relay.FuseOps.max_depth", std::string("ten"));
  ASSERT_FALSE(wrong_type.ok());
  EXPECT_NE(wrong_type.error().message.find("int, not string"), std::string::npos);
  auto wrong_key = context.set_config("relay.FuseOps.max_dept", int64_t{10});
  ASSERT_FALSE(wrong_key.ok());
  EXPECT_NE(wrong_key.error().hint.find("relay.FuseOps.max_depth"), std::string::npos);
  EXPECT_TRUE(context.set_config("tir.noalias", int64_t{0}).ok());
  EXPECT_FALSE(context.get(ConfigKey<bool>{"tir.noalias", true}));
}

}  // namespace
}  // namespace tilewright
