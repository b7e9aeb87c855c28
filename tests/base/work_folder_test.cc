// SPDX-License-Identifier: Apache-2.0
#include "base/work_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

namespace tilewright {
namespace {

size_t entries(const std::string& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

// A signal ends the program a moment after its folders were removed; until then its other threads go on.
TEST(WorkFolder, NoneIsMadeOnceAllWereRemoved) {
  char name[] = "/tmp/tw_test_XXXXXX";
  const std::string place = mkdtemp(name);
  const pid_t child = fork();
  if (child == 0) {
    setenv("TMPDIR", place.c_str(), 1);
    auto before = WorkFolder::temporary("before");
    const bool made = before.ok() && entries(place) == 1;
    remove_work_folders();
    std::thread([] { auto after = WorkFolder::temporary("after"); }).detach();
    usleep(100'000);
    _exit(made && entries(place) == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(entries(place), 0u);
  std::filesystem::remove_all(place);
}

}  // namespace
}  // namespace tilewright
