// SPDX-License-Identifier: Apache-2.0
// Processes that crash, hang, eat memory or are killed cost the trial they were at, and no other.
#include "tune/measurer.h"

#include <gtest/gtest.h>

#include <random>

#include "test_folders.h"

namespace tilewright::tune {
namespace {

const std::vector<std::string> kFake = {"python3", "-I", "-S", TW_SOURCE_DIR "/tests/tune/fake_trials.py"};

Batch batch_of(const std::vector<std::string>& texts) {
  Batch batch;
  batch.target = "llvm";
  batch.timing.seconds = 0;
  for (const std::string& text : texts) batch.trials.push_back({"kernel", text});
  return batch;
}

struct Case {
  const char* text;
  MeasureError error;
};

TEST(Measurer, EachWayToFailHasItsNumber) {
  Measurer measurer(kFake, {2, 2});
  const MeasureError good = MeasureError::kNone;
  const std::vector<std::vector<Case>> batches = {
      {{"fine 0.25", good},
       {"abort run", MeasureError::kRuntimeDevice},
       {"fine 0.5", good},
       {"endless run", MeasureError::kRunTimeout},
       {"hog run", MeasureError::kRuntimeDevice},
       {"killed time", MeasureError::kRuntimeDevice},
       {"fine 2", good}},
      {{"fine 3", good}, {"killed build", MeasureError::kCompileHost}, {"refused now", MeasureError::kCompileHost}},
      {{"endless build", MeasureError::kBuildTimeout}}};
  for (const auto& cases : batches) {
    std::vector<std::string> texts;
    for (const Case& c : cases) texts.emplace_back(c.text);
    auto results = measurer.measure(batch_of(texts));
    ASSERT_TRUE(results.ok()) << results.error().str();
    ASSERT_EQ(results->size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ((*results)[i].error, cases[i].error) << texts[i] << ": " << (*results)[i].message;
      if (cases[i].error == good) {
        EXPECT_EQ((*results)[i].costs, std::vector<double>{std::stod(texts[i].substr(5))});
      }
    }
  }
}

// One trial in twenty misbehaves: each gets its own answer, in its place.
TEST(Measurer, AThousandTrialsWithFaultsLoseNone) {
  std::mt19937 random(1);
  Measurer measurer(kFake, {10, 1});
  const char* faults[] = {"abort run",  "killed run", "abort run",  "killed time",
                          "killed run", "abort run",  "endless run"};
  size_t faulty = 0, measured = 0;
  for (int b = 0; b < 125; ++b) {
    std::vector<std::string> texts;
    for (int i = 0; i < 8; ++i) {
      const bool bad = random() % 20 == 0;
      texts.push_back(bad ? faults[random() % 7] : "fine " + std::to_string(1 + random() % 1000));
      faulty += bad;
    }
    auto results = measurer.measure(batch_of(texts));
    ASSERT_TRUE(results.ok()) << results.error().str();
    for (size_t i = 0; i < texts.size(); ++i) {
      const TrialResult& r = (*results)[i];
      if (texts[i].rfind("fine ", 0) == 0) {
        ASSERT_EQ(r.error, MeasureError::kNone) << texts[i] << ": " << r.message;
        ASSERT_EQ(r.costs, std::vector<double>{std::stod(texts[i].substr(5))});
        ++measured;
      } else {
        ASSERT_EQ(r.error, texts[i] == "endless run" ? MeasureError::kRunTimeout : MeasureError::kRuntimeDevice)
            << texts[i];
      }
    }
  }
  EXPECT_EQ(measured + faulty, 1000U);
  EXPECT_GT(faulty, 20U);
}

TEST(Measurer, SaysWhenThereIsNobodyToMeasure) {
  EXPECT_EQ(Measurer({"/nowhere/measures"}).measure(batch_of({"fine 1"})).error().code, ErrorCode::kLinkFailed);
  EXPECT_EQ(Measurer(kFake).measure(batch_of({"garbage run"})).error().code, ErrorCode::kProtocolError);
  Measurer interrupted(kFake, {}, [] { return true; });
  EXPECT_EQ(interrupted.measure(batch_of({"endless run"})).error().code, ErrorCode::kInterrupted);
}

TEST(Trial, MessagesAreReadBackAndCheckedWhole) {
  Batch batch = batch_of({"a=1", ""});
  batch.module = {"fn () {\n}", {{kFloat32, {2, 3}}, {kInt8, {}}}};
  batch.timing = {3, 0.5, 7, 11, 1.5, 0.25, true, false, 1 << 20};
  batch.folder = "/tmp/x";
  const std::string line = to_line(batch);
  auto read = parse_batch(line);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(to_line(*read), line);
  for (size_t i = 0; i < line.size(); ++i) (void)parse_batch(line.substr(0, i));  // refused, and nothing else
  for (const char* bad :
       {"", "{}", "[]", "{\"kind\":\"resting\"}", "{\"kind\":\"running\"}", "{\"kind\":\"done\",\"results\":7}",
        "{\"kind\":\"done\",\"results\":[{\"costs\":[-1],\"error\":0,\"message\":\"\",\"seconds\":1}]}",
        "{\"kind\":\"done\",\"results\":[{\"costs\":[1],\"error\":99,\"message\":\"\",\"seconds\":1}]}",
        "{\"kind\":\"done\",\"results\":[{\"costs\":[],\"error\":0,\"message\":\"\",\"seconds\":1}]}"}) {
    auto message = parse_message(bad);
    EXPECT_TRUE(!message.ok() && message.error().code == ErrorCode::kProtocolError) << bad;
  }
}

}  // namespace
}  // namespace tilewright::tune
