// SPDX-License-Identifier: Apache-2.0
// The C interface and its C++ wrapper, in this process and from small programs that link the shared library alone.
#include <sys/stat.h>

#include <cstring>
#include <numeric>

#include "runtime/artifact_maker.h"
#include "test_folders.h"
#include "tilewright/runtime.h"

namespace tilewright {
namespace {
using namespace tilewright::testing;

class CApiTest : public ::testing::Test {
 protected:
  void SetUp() override { make_artifact(small_model(), folder_ / "m.so"); }
  TempFolder folder_;
};

TEST_F(CApiTest, WrapperRunsAModel) {
  Model model(folder_ / "m.so", true);
  EXPECT_EQ(model.info().name, "small");
  ASSERT_EQ(model.inputs().size(), 1u);
  EXPECT_EQ(model.inputs()[0].dtype, "float32");
  EXPECT_EQ(model.inputs()[0].shape, (std::vector<int64_t>{4, 16}));
  EXPECT_EQ(model.input_index("x"), 0);
  EXPECT_EQ(model.input_index("nothing"), -1);
  EXPECT_EQ(model.metadata("labels"), "cat\ndog");
  EXPECT_EQ(model.metadata("absent", "none"), "none");
  Executor executor(model, 2);
  EXPECT_EQ(executor.threads(), 2);
  std::vector<float> x(64);
  std::iota(x.begin(), x.end(), 0.0f);
  executor.set_input("x", x, {4, 16});
  executor.run();
  auto y = executor.output<float>(0);
  ASSERT_EQ(y.size(), 64u);
  EXPECT_EQ(y[17], 18 * 0.5f);
  EXPECT_THROW(executor.output<int32_t>(0), Error);
  Profile profile = executor.profile(3);
  EXPECT_EQ(profile.steps.size(), 2u);
  EXPECT_NE(profile.trace.find("traceEvents"), std::string::npos);
}

TEST_F(CApiTest, WrapperThrowsCodesWithHints) {
  Model model(folder_ / "m.so");
  Executor executor(model, 1);
  try {
    executor.set_input("y", std::vector<float>(64), {4, 16});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), 504);
    EXPECT_EQ(e.name(), "UnknownInput");
    EXPECT_NE(std::string(e.what()).find("error[E504 UnknownInput]"), std::string::npos);
    EXPECT_NE(e.hint().find("'x' (float32 4x16)"), std::string::npos);
  }
  EXPECT_THROW(executor.set_input("x", std::vector<float>(10), {4, 16}), Error);
  EXPECT_THROW(executor.set_input("x", std::vector<double>(64), {4, 16}), Error);
  EXPECT_THROW(executor.run(), Error);
  EXPECT_THROW(Model(folder_ / "absent.so"), Error);
}

TEST_F(CApiTest, NullAndOldStructuresAreHandled) {
  EXPECT_EQ(tw_module_load(nullptr, nullptr, nullptr), 101);
  EXPECT_EQ(tw_executor_run(nullptr), 101);
  EXPECT_EQ(tw_module_get_input_index(nullptr, "x"), -1);
  tw_module_free(nullptr);
  tw_executor_free(nullptr);
  tw_profile_free(nullptr);
  tw_module* module = nullptr;
  ASSERT_EQ(tw_module_load((folder_ / "m.so").c_str(), nullptr, &module), 0);
  tw_module_info info{};
  EXPECT_EQ(tw_module_get_info(module, &info), 101);  // no size
  // A caller with an older, shorter structure gets what it has room for.
  std::memset(&info, 0x55, sizeof info);
  info.size = offsetof(tw_module_info, target);
  EXPECT_EQ(tw_module_get_info(module, &info), 0);
  EXPECT_STREQ(info.name, "small");
  EXPECT_EQ(info.num_inputs, 0x5555555555555555u);
  tw_executor_options options{sizeof options, -3, -1};
  tw_executor* executor = nullptr;
  EXPECT_EQ(tw_executor_create(module, &options, &executor), 101);
  EXPECT_EQ(executor, nullptr);
  options = {offsetof(tw_executor_options, spin_us), 3, 12345};
  ASSERT_EQ(tw_executor_create(module, &options, &executor), 0);
  tw_module_free(module);  // the executor keeps what it needs
  EXPECT_EQ(tw_executor_num_threads(executor), 3);
  DLTensor view;
  EXPECT_EQ(tw_executor_get_input(executor, 0, &view), 0);
  EXPECT_EQ(tw_executor_run(executor), 0);
  EXPECT_EQ(tw_executor_get_output(executor, 1, &view), 504);
  tw_executor_free(executor);
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  char part[512];
  while (size_t n = fread(part, 1, sizeof part, pipe)) text.append(part, n);
  pclose(pipe);
  return text;
}

TEST_F(CApiTest, SharedLibraryIsSmallAndStandsAlone) {
  std::string library = TW_BUILD_DIR "/libtilewright_runtime.so";
  struct stat info;
  ASSERT_EQ(stat(library.c_str(), &info), 0) << library;
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_LT(info.st_size, 620'000);
  std::string needed = output_of("LC_ALL=C readelf -d " + library + " | grep NEEDED");
  size_t at = 0, count = 0;
  while ((at = needed.find('[', at)) != std::string::npos) {
    std::string name = needed.substr(at + 1, needed.find(']', at) - at - 1);
    EXPECT_TRUE(name == "libc.so.6" || name == "libm.so.6" || name == "libpthread.so.0" || name == "libdl.so.2" ||
                name.rfind("ld-linux", 0) == 0)
        << name;
    ++at, ++count;
  }
  EXPECT_GE(count, 1u);
#endif
  std::string exported = output_of("nm -D --defined-only " + library + " | awk '{print $NF}' | grep -v '^tw_'");
  EXPECT_EQ(exported, "");
}

TEST_F(CApiTest, ProgramsInCAndCxxLinkTheLibraryAlone) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a plain program cannot load a sanitized library";
#endif
  write_file(folder_ / "p.c", R"(
#include <stdio.h>
#include "tilewright/c_api.h"
int main(int argc, char** argv) {
  tw_module* m; tw_executor* e; DLTensor x, y;
  if (tw_module_load(argv[1], NULL, &m)) { fprintf(stderr, "%s\n", tw_last_error_message()); return 2; }
  if (tw_executor_create(m, NULL, &e) || tw_executor_get_input(e, 0, &x)) return 1;
  for (int i = 0; i < 64; ++i) ((float*)x.data)[i] = (float)i;
  if (tw_executor_run(e) || tw_executor_get_output(e, 0, &y)) return 1;
  printf("%g\n", ((float*)y.data)[63]);
  tw_executor_free(e); tw_module_free(m);
  return 0;
})");
  write_file(folder_ / "p.cc", R"(
#include <iostream>
#include "tilewright/runtime.h"
int main(int argc, char** argv) try {
  tilewright::Model model(argv[1]);
  tilewright::Executor executor(model);
  executor.set_input("x", std::vector<float>(64, 1.0f), {4, 16});
  executor.run();
  std::cout << executor.output<float>(0)[63] << "\n";
} catch (const tilewright::Error& e) {
  std::cerr << e.what() << "\n";
  return 2;
})");
  std::string flags = " -Wall -Wextra -Werror -Wno-unused-parameter -I" TW_SOURCE_DIR "/include -L" TW_BUILD_DIR
                      " -Wl,-rpath," TW_BUILD_DIR " ";
  ASSERT_EQ(output_of("cc -std=c99" + flags + (folder_ / "p.c") + " -ltilewright_runtime -o " + (folder_ / "pc")), "");
  ASSERT_EQ(output_of("c++ -std=c++17" + flags + (folder_ / "p.cc") + " -ltilewright_runtime -o " + (folder_ / "pcc")),
            "");
  EXPECT_EQ(output_of((folder_ / "pc") + " " + (folder_ / "m.so")), "480\n");
  EXPECT_EQ(output_of((folder_ / "pcc") + " " + (folder_ / "m.so")), "15\n");
  EXPECT_NE(output_of((folder_ / "pcc") + " /etc/hostname").find("error[E501 BadArtifact]"), std::string::npos);
}

}  // namespace
}  // namespace tilewright
