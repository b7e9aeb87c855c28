// SPDX-License-Identifier: Apache-2.0
// Tasks of a model, kernels measured in a process of their own, and builds by what was measured.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "driver/build.h"
#include "driver/command.h"
#include "driver/graphs.h"
#include "driver/tuned.h"
#include "relay/text.h"
#include "runtime/executor.h"
#include "test_folders.h"
#include "tune/measurer.h"
#include "tune/session.h"

namespace tilewright::driver {
namespace {
using namespace relay;
using namespace testing;
using ::tilewright::testing::command;
using tune::Task;

const std::vector<std::string> kServe = {TW_BUILD_DIR "/tilewright", "serve-trials"};

relay::Module model() {
  Expr x = input("x", {1, 32, 28, 28});
  Expr y = relu(bias(conv(x, 64, 32, 3, 1, 1), 64));
  y = relu(conv(y, 64, 1, 3, 2, 1, 64));
  y = relu(conv(y, 32, 64, 1, 1, 0));
  y = call("nn.batch_flatten", {call("nn.global_avg_pool2d", {y})});
  y = call("nn.dense", {y, constant({40, 32})});
  return relay::Module().with_main(make_function({x}, y));
}

std::vector<Task> tasks_of(const relay::Module& module, const std::string& target = "llvm") {
  BuildOptions options;
  options.target = target;
  const Built built = optimize(module, options).value();
  auto tasks = tune::extract_tasks(built.optimized, built.target);
  EXPECT_TRUE(tasks.ok()) << tasks.error().str();
  return std::move(tasks).value();
}

tune::Record record_of(const Task& task, uint64_t index, double seconds) {
  tune::Record r;
  r.target = task.target, r.name = task.workload.name, r.args = task.workload.args;
  r.index = index, r.entity = task.space.entity(index), r.costs = {seconds};
  return r;
}

TEST(Tuning, TasksHaveTheClassicNamesAndArguments) {
  const auto tasks = tasks_of(model());
  std::vector<std::string> names;
  for (const Task& task : tasks) {
    names.push_back(task.workload.name);
    EXPECT_GT(task.space.size(), 1U) << task.workload.name;
    EXPECT_FALSE(task.space.ranked().empty());
  }
  ASSERT_GE(names.size(), 4U);
  EXPECT_EQ(names[0], "conv2d_NCHWc.x86");
  EXPECT_EQ(
      tasks[0].workload.args.dump(),
      R"([["TENSOR",[1,32,28,28],"float32"],["TENSOR",[64,32,3,3],"float32"],[1,1],[1,1,1,1],[1,1],"NCHW","NCHW","float32"])");
  EXPECT_EQ(names[1], "depthwise_conv2d_NCHWc.x86");
  EXPECT_NE(std::find(names.begin(), names.end(), "dense_pack.x86"), names.end());
}

// Every kernel that a space names computes the same: the measuring process compares each with the first.
TEST(Tuning, RandomEntitiesOfEveryTaskAgree) {
  std::mt19937_64 random(3);
  tune::Measurer measurer(kServe);
  for (const char* target : {"llvm", "llvm -mcpu=x86-64-v3"})
    for (const Task& task : tasks_of(model(), target)) {
      auto search = tune::make_search("random", tune::search_space(task.space), random()).value();
      tune::Batch batch{task.target, task.module, {{}}, {}, ""};
      for (uint64_t index : search->propose(target == std::string("llvm") ? 20 : 8)) {
        const auto c = *task.space.get(index);
        EXPECT_EQ(task.space.index_of(c), index);
        EXPECT_EQ(task.space.index_of_entity(task.space.entity(index)), index);
        batch.trials.push_back({c.implementation->name, c.text});
      }
      batch.timing.seconds = 0, batch.timing.threads = 1;
      auto results = measurer.measure(batch);
      ASSERT_TRUE(results.ok()) << results.error().str();
      for (size_t i = 0; i < results->size(); ++i)
        EXPECT_EQ((*results)[i].error, tune::MeasureError::kNone)
            << task.workload.name << " " << batch.trials[i].implementation << " " << batch.trials[i].configuration
            << ": " << (*results)[i].message;
    }
  EXPECT_EQ(measurer.replaced(), 0);
}

// Seconds of one run of the model's first convolution, the best of many.
double best_run(const relay::Module& module, std::shared_ptr<const lower::KernelChooser> chooser) {
  BuildOptions options;
  options.chooser = std::move(chooser);
  const Built built = build(module, options).value();
  const std::string path = ::testing::TempDir() + "tuning_test" + std::to_string(getpid()) + ".so";
  EXPECT_TRUE(export_library(built, path).ok());
  runtime::ExecutorOptions one;
  one.threads = 1;
  auto executor = runtime::Executor::create(runtime::Artifact::load(path).value(), one).value();
  (void)executor->input(0).value();
  double best = 1;
  for (int i = 0; i < 30; ++i) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(executor->run().ok());
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::filesystem::remove(path);
  return best;
}

TEST(Tuning, TheWorstConfigurationByARecordIsSlower) {
  Expr x = input("x", {1, 64, 28, 28});
  const relay::Module module = relay::Module().with_main(make_function({x}, conv(x, 64, 64, 3, 1, 1)));
  const auto tasks = tasks_of(module);
  ASSERT_EQ(tasks.size(), 1U);
  auto forced = std::make_shared<tune::RecordChooser>(
      std::vector<tune::Record>{record_of(tasks[0], tasks[0].space.ranked().back(), 1e-9)});
  const double slow = best_run(module, forced), usual = best_run(module, nullptr);
  EXPECT_EQ(forced->use().used, 1U);
  EXPECT_GE(slow, 1.5 * usual) << "records apply";
}

TEST(Tuning, ARecordThatIsNoBetterThanTheDefaultsDoesNotDecide) {
  const auto tasks = tasks_of(model());
  const Task& task = tasks[0];
  const uint64_t other = task.space.ranked().back(), usual = task.space.index_of(task.chosen).value();
  auto configuration = [&](std::vector<tune::Record> records, std::string* use = nullptr) {
    auto chooser = std::make_shared<tune::RecordChooser>(std::move(records));
    BuildOptions options;
    options.chooser = chooser;
    const Built built = build(model(), options).value();
    if (use) *use = chooser->use().line();
    for (const auto& trace : built.lowered.traces)
      if (trace.choice->kernel) return trace.choice->implementation + " " + trace.choice->configuration;
    return std::string();
  };
  auto text = [&](const tune::Configuration& c) { return c.implementation->name + (" " + c.text); };
  const std::string by_default = text(task.chosen), by_record = text(*task.space.get(other));
  ASSERT_NE(by_default, by_record);
  EXPECT_EQ(configuration({record_of(task, other, 1e-5)}), by_record) << "nothing says that it is worse";
  EXPECT_EQ(configuration({record_of(task, other, 1e-5), record_of(task, usual, 2e-5)}), by_record);
  EXPECT_EQ(configuration({record_of(task, other, 2e-5), record_of(task, usual, 1e-5)}), by_default);
  EXPECT_EQ(configuration({record_of(task, other, 1e-5), record_of(task, usual, 1.01e-5)}), by_default) << "noise";
  tune::Record elsewhere = record_of(task, other, 1e-5);
  elsewhere.target = "llvm -mcpu=core-avx2";
  std::string use;
  EXPECT_EQ(configuration({elsewhere}, &use), by_default);
  EXPECT_NE(use.find("1 records are of other processors"), std::string::npos) << use;
  tune::Record foreign = record_of(task, other, 1e-5);
  foreign.entity = nlohmann::json::parse(R"([["tile_ic","sp",[-1,3]],["tile_oc","sp",[-1,8]]])");
  EXPECT_EQ(configuration({foreign}, &use), by_default);
  EXPECT_NE(use.find("do not have"), std::string::npos) << use;
}

// Times from a table in place of measurements: the same seed, the same choices.
TEST(Tuning, TheSameSeedAndTimesGiveTheSameChoices) {
  const auto tasks = tasks_of(model());
  auto run = [&](uint64_t seed, std::vector<tune::Record> known = {}) {
    tune::TuneOptions options;
    options.seed = seed, options.trials = 24, options.known = std::move(known);
    options.log = ::testing::TempDir() + "tuning_test_log" + std::to_string(getpid());
    std::filesystem::remove(options.log);
    auto table = [](const Task&, const std::vector<tune::Trial>& trials) {
      std::vector<tune::TrialResult> out;
      for (const tune::Trial& trial : trials) {
        tune::TrialResult r;
        r.costs = {1e-6 * static_cast<double>(1 + std::hash<std::string>()(trial.configuration) % 1000)};
        r.error = tune::MeasureError::kNone;
        out.push_back(r);
      }
      return Result<std::vector<tune::TrialResult>>(out);
    };
    auto tuning = tune::Tuning::make(tasks, options, table, [] { return 0.0; }).value();
    EXPECT_TRUE(tuning.run().ok());
    std::string text;
    for (const auto& state : tuning.states()) {
      text += state.best.text + "\n";
      EXPECT_LE(state.trials, 24U);
      // What the model uses may be another task's kernel, which has no record here.
      const bool own = state.task->space.index_of(state.task->chosen).has_value();
      EXPECT_TRUE(!own || state.best_seconds <= state.default_seconds);
    }
    std::vector<tune::Record> records;
    if (std::filesystem::exists(options.log)) records = tune::read_log(options.log).value().records;
    std::filesystem::remove(options.log);
    EXPECT_EQ(records.size(), tuning.trials() - options.known.size());
    for (const auto& record : records) text += record.entity.dump() + "\n";
    return std::pair{text, records};
  };
  const auto [first, records] = run(5);
  EXPECT_EQ(run(5).first, first);
  EXPECT_NE(run(6).first, first);
  // What is known is not measured again, and all of it is known now.
  EXPECT_EQ(run(5, records).second.size(), 0U);
}

TEST(Tuning, SaysWhyNothingCouldBeMeasured) {
  const auto tasks = tasks_of(model());
  auto fails = [](const Task&, const std::vector<tune::Trial>& trials) {
    tune::TrialResult r;
    r.error = tune::MeasureError::kCompileHost, r.message = "the processor lacks amx-tile";
    return Result<std::vector<tune::TrialResult>>(std::vector<tune::TrialResult>(trials.size(), r));
  };
  auto tuning = tune::Tuning::make(tasks, {}, fails, [] { return 0.0; }).value();
  const Status done = tuning.run();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(done.error().message.find("amx-tile"), std::string::npos);
}

TEST(Tuning, TheCommandLineTunesAndCompiles) {
  const std::string base = ::testing::TempDir() + "tuning_test" + std::to_string(getpid());
  const std::string log = base + ".log.json", library = base + ".so", text = base + ".relay";
  std::ofstream(text) << print_module(model(), {true, true, false}).text;
  const std::string tune = TW_BUILD_DIR "/tilewright tune " + text + " -j " + log + " --threads 1 --batch-seconds 0.01";
  ASSERT_EQ(std::system((tune + " --trials 5 --minutes 1 > " + base + ".out").c_str()), 0);
  std::ifstream out(base + ".out");
  const std::string said((std::istreambuf_iterator<char>(out)), {});
  EXPECT_NE(said.find("conv2d_NCHWc.x86"), std::string::npos) << said;
  const size_t records = tune::read_log(log).value().records.size();
  EXPECT_GE(records, 5U * 4U - 4U);
  ASSERT_EQ(std::system((tune + " --trials 5 --minutes 1 --resume -q").c_str()), 0);
  EXPECT_LE(tune::read_log(log).value().records.size(), records + 1) << "resumed: there is nothing left to do";
  auto made = command({"compile", text, "--records", log, "-o", library, "--explain"});
  ASSERT_EQ(made.code, 0) << made.error;
  EXPECT_NE(made.out.find("by records"), std::string::npos) << made.out;
  EXPECT_NE(made.out.find("      record  conv2d_NCHWc.x86 [["), std::string::npos) << made.out;
  auto shown = command({"inspect", library});
  EXPECT_NE(shown.out.find("record         step 1: conv2d_NCHWc.x86, conv2d_nchwc."), std::string::npos) << shown.out;
  auto bad = command({"compile", text, "--records", "/nowhere.log", "-o", library});
  EXPECT_NE(bad.code, 0);
  EXPECT_NE(bad.error.find("FileNotFound"), std::string::npos) << bad.error;
  for (const std::string& file : {log, library, text, base + ".out"}) std::filesystem::remove(file);
}

}  // namespace
}  // namespace tilewright::driver
