// SPDX-License-Identifier: Apache-2.0
// The peak memory that `tilewright bench` reports is its own, not that of whoever started it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/artifact_maker.h"
#include "test_folders.h"

namespace tilewright::driver {
namespace {
using namespace tilewright::testing;

TEST(PeakMemory, IsThatOfTheProcess) {
  TempFolder folder;
  make_artifact(small_model(), folder / "m.so");
  constexpr size_t kMine = size_t{600} << 20;
  std::vector<char> mine(kMine, 1);  // every page touched
  const std::string tool = TW_BUILD_DIR "/tilewright", model = folder / "m.so", out = folder / "out.json";
  std::vector<std::string> words{tool,     "bench", model,           "--json", "--threads", "1",
                                 "--time", "0.05",  "--warmup-time", "0",      "--no-steps"};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int failed = posix_spawn(&child, tool.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed == ENOENT) GTEST_SKIP() << tool << " has not been built";
  ASSERT_EQ(failed, 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  const auto j = nlohmann::json::parse(read_file(out), nullptr, false);
  ASSERT_TRUE(j.is_object()) << read_file(out);
  EXPECT_GT(j["peak_rss_bytes"].get<uint64_t>(), uint64_t{1} << 20);
  EXPECT_LT(j["peak_rss_bytes"].get<uint64_t>(), uint64_t{kMine}) << "that is this process's: " << mine[kMine / 2];
}

}  // namespace
}  // namespace tilewright::driver
