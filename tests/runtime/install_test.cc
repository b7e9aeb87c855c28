// SPDX-License-Identifier: Apache-2.0
// The installed runtime, used the way a stranger's project uses it: find_package, build, run.
#include "runtime/artifact_maker.h"
#include "test_folders.h"

namespace tilewright {
namespace {
using namespace tilewright::testing;

TEST(Install, AProjectFindsAndUsesTheRuntime) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a plain program cannot load a sanitized library";
#endif
  TempFolder folder;
  auto run = [&](const std::string& command) {
    int status = std::system((command + " >" + (folder / "log") + " 2>&1").c_str());
    EXPECT_EQ(status, 0) << command << "\n" << read_file(folder / "log");
    return status == 0;
  };
  ASSERT_TRUE(run("cmake --install " TW_BUILD_DIR " --component runtime --prefix " + (folder / "usr")));
  make_artifact(small_model(), folder / "m.so");
  std::filesystem::create_directory(folder / "project");
  write_file(folder / "project/CMakeLists.txt", R"(
cmake_minimum_required(VERSION 3.20)
project(stranger LANGUAGES C CXX)
find_package(Tilewright REQUIRED COMPONENTS runtime)
add_executable(stranger main.cc)
target_link_libraries(stranger PRIVATE tilewright::runtime)
add_executable(plain_c main.c)
target_link_libraries(plain_c PRIVATE tilewright::runtime)
)");
  write_file(folder / "project/main.cc", R"(
#include <tilewright/runtime.h>
#include <cstdio>
int main(int, char** argv) {
  tilewright::Model model(argv[1]);
  tilewright::Executor executor(model);
  executor.set_input("x", std::vector<float>(64, 2.0f), {4, 16});
  executor.run();
  std::printf("%g\n", executor.output<float>(0)[63]);
})");
  write_file(folder / "project/main.c",
             "#include <tilewright/c_api.h>\nint main(void) { return tw_c_api_version() != TW_C_API_VERSION; }\n");
  ASSERT_TRUE(run("cmake -G Ninja -S " + (folder / "project") + " -B " + (folder / "b") +
                  " -DCMAKE_PREFIX_PATH=" + (folder / "usr")));
  ASSERT_TRUE(run("cmake --build " + (folder / "b")));
  ASSERT_TRUE(run((folder / "b/plain_c")));
  ASSERT_TRUE(run((folder / "b/stranger") + " " + (folder / "m.so")));
  EXPECT_EQ(read_file(folder / "log"), "22.5\n");
}

}  // namespace
}  // namespace tilewright
