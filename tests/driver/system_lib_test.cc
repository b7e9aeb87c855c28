// SPDX-License-Identifier: Apache-2.0
// Models linked into a C and a C++ program: static libraries that name themselves before main, asked for by name.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "driver/build.h"
#include "driver/graphs.h"
#include "runtime/system_lib.h"
#include "test_folders.h"
#include "tilewright/function.h"

namespace tilewright::driver {
namespace {
using namespace testing;

class SystemLibTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tw_system_XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string read(const std::string& name) const {
    std::ifstream in(folder_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void shell(const std::string& command) {
    const int status = std::system(("cd " + folder_ + " && (" + command + ") >log 2>&1").c_str());
    ASSERT_EQ(status, 0) << command << "\n" << read("log");
  }
  // A model called `name` with `channels` outputs, as a static library for a system library.
  void compile(const std::string& name, int64_t channels, const std::string& file) {
    BuildOptions options;
    options.jobs = 1;
    options.name = name;
    options.system_lib = file != "m.so";  // which needs nothing but the C library
    Expr x = input("x", {1, 4, 8, 8});
    auto built =
        build(relay::Module().with_main(relay::make_function({x}, relu(bias(conv(x, channels, 4, 3, 1, 1), channels)))),
              options);
    ASSERT_TRUE(built.ok()) << built.error().str();
    Status written = export_library(*built, folder_ + "/" + file);
    ASSERT_TRUE(written.ok()) << written.error().str();
  }
  std::string folder_;
};

class SystemLibProgram : public SystemLibTest {
  void SetUp() override {
    SystemLibTest::SetUp();
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "the program is built without sanitizers";
#endif
  }
};

constexpr const char* kLink =
    " -I " TW_SOURCE_DIR "/include -L " TW_BUILD_DIR " -Wl,-rpath," TW_BUILD_DIR " -ltilewright_runtime -lm ";

TEST_F(SystemLibProgram, ACProgramFindsItsModelsAndFunctionsByName) {
  compile("first", 8, "first.a");
  compile("second", 3, "second.o");
  std::ofstream(folder_ + "/main.c") << R"(
#include <stdio.h>
#include <string.h>
#include "tilewright/c_api.h"

/* Names that kernels have inside of the models: a program may have its own. */
float conv2d_add_relu(float x) { return x; }
float tw_params(float x) { return x; }

static int32_t twice(void* context, const tw_value* args, int32_t count, tw_value* result) {
  if (context || count != 1 || args[0].kind != TW_INT) return tw_set_last_error(101, "an integer, please", 0, 0);
  result->kind = TW_INT, result->as.i = 2 * args[0].as.i;
  return 0;
}
__attribute__((constructor)) static void name_it(void) { tw_system_lib_register("demo.twice", (const void*)twice); }

static int fail(const char* what) { return fprintf(stderr, "%s: %s\n", what, tw_last_error_message()), 1; }

int main(void) {
  tw_module *lib, *executor, *model;
  tw_function *make, *f;
  if (tw_system_lib(&lib)) return fail("system_lib");
  if (strcmp(tw_module_type_key(lib), "system_lib") || tw_module_num_imports(lib) != 2) return fail("models");
  tw_value arg = {TW_INT}, result = {TW_NULL};
  arg.as.i = 21;
  if (tw_module_get_function(lib, "demo.twice", 0, &f) || !f || tw_function_call(f, &arg, 1, &result)) return fail("twice");
  if (result.as.i != 42) return fail("not 42");
  tw_function_free(f);
  /* Two models: what both have must be asked of one. */
  if (tw_module_get_function(lib, "default", 0, &f) != 101) return fail("default of two");
  if (tw_module_get_function(lib, "nothing", 0, &f) || f) return fail("nothing");
  /* By its name, as an executor; and as a library of the C interface. */
  if (tw_module_get_function(lib, "second", 0, &make) || !make) return fail("second");
  if (tw_function_call(make, 0, 0, &result) || result.kind != TW_MODULE) return fail("executor");
  executor = result.as.module;
  if (strcmp(tw_module_type_key(executor), "GraphExecutor")) return fail("its type");
  tw_value_free(&result);
  tw_function_free(make);
  for (uint64_t i = 0; i < 2; ++i) {
    tw_executor* run;
    tw_module_info info = {sizeof info};
    static float x[256];
    int64_t shape[] = {1, 4, 8, 8};
    DLTensor in = {x, {kDLCPU, 0}, 4, {kDLFloat, 32, 1}, shape, 0, 0}, out;
    for (int k = 0; k < 256; ++k) x[k] = 0.01f * (float)(k % 37);
    if (tw_module_get_import(lib, i, &model) || tw_module_get_info(model, &info)) return fail("import");
    if (tw_executor_create(model, 0, &run) || tw_executor_set_input(run, "x", &in)) return fail("executor");
    if (tw_executor_run(run) || tw_executor_get_output(run, 0, &out)) return fail("run");
    char name[64];
    snprintf(name, sizeof name, "%s.bin", info.name);
    FILE* file = fopen(name, "wb");
    fwrite(out.data, 4, (size_t)(out.shape[1] * 64), file);
    fclose(file);
    tw_executor_free(run);
    tw_module_free(model);
  }
  tw_module_free(lib);
  return 0;
}
)";
  shell("cc -Wall -Werror -c main.c -I " TW_SOURCE_DIR
        "/include && cc main.o -Wl,--whole-archive first.a "
        "-Wl,--no-whole-archive second.o" +
        std::string(kLink) + "-o main && ./main");
  // The same models as libraries.
  for (const auto& [name, channels] : {std::pair{"first", 8}, std::pair{"second", 3}}) {
    compile(name, channels, "m.so");
    Model model(folder_ + "/m.so");
    Executor executor(model, 1);
    std::vector<float> x(256);
    for (size_t k = 0; k < x.size(); ++k) x[k] = 0.01f * static_cast<float>(k % 37);
    executor.set_input("x", x, {1, 4, 8, 8});
    executor.run();
    const auto y = executor.output<float>(0);
    const std::string bytes = read(std::string(name) + ".bin");
    ASSERT_EQ(bytes.size(), y.size() * 4) << name;
    EXPECT_EQ(std::memcmp(bytes.data(), y.data(), bytes.size()), 0) << name;
  }
}

TEST_F(SystemLibProgram, ACppProgramHasOneModelAsItsDefault) {
  compile("only", 8, "only.a");
  std::ofstream(folder_ + "/main.cc") << R"(
#include <cstdio>
#include "tilewright/function.h"
int main() {
  tilewright::Module lib = tilewright::Module::system_lib();
  tilewright::Module graph = lib["default"](tilewright::cpu()).module();
  tilewright::Model model = tilewright::Model::of(lib.imported_modules()[0].get());
  tilewright::Executor executor(model, 1);
  executor.set_input("x", std::vector<float>(256, 1.0f), {1, 4, 8, 8});
  executor.run();
  std::printf("%s %s %zu\n", graph.type_key().c_str(), model.info().name.c_str(), executor.output<float>(0).size());
}
)";
  shell("c++ -std=c++17 main.cc -Wl,--whole-archive only.a -Wl,--no-whole-archive" + std::string(kLink) +
        "-o main && ./main");
  EXPECT_EQ(read("log"), "GraphExecutor only 512\n");
}

// What tells the runtime of a model goes with the shared library that it is in.
TEST_F(SystemLibProgram, ALibraryThatIsClosedTakesItsModelWithIt) {
  compile("passing", 8, "passing.so");
  std::ofstream(folder_ + "/main.c") << R"(
#include <dlfcn.h>
#include <stdio.h>
#include "tilewright/c_api.h"
static long models(void) {
  tw_module* lib;
  if (tw_system_lib(&lib)) return -1;
  long n = (long)tw_module_num_imports(lib);
  tw_module_free(lib);
  return n;
}
int main(void) {
  long before = models();
  void* library = dlopen("./passing.so", RTLD_NOW);
  if (!library) return puts(dlerror());
  long during = models();
  dlclose(library);
  printf("%ld %ld %ld\n", before, during, models());
  return 0;
}
)";
  shell("cc main.c" + std::string(kLink) + "-ldl -o main && ./main");
  EXPECT_EQ(read("log"), "0 1 0\n");
}

TEST_F(SystemLibTest, ADamagedTableIsAnError) {
  ArtifactTable table{};
  runtime::register_system_symbol(std::string(kSystemLibModel) + "broken", &table);
  auto lib = runtime::system_lib();
  ASSERT_FALSE(lib.ok());
  EXPECT_EQ(lib.error().code, ErrorCode::kBadArtifact);
  EXPECT_NE(lib.error().where.find("broken"), std::string::npos);
  runtime::register_system_symbol(std::string(kSystemLibModel) + "broken", nullptr);
  EXPECT_TRUE(runtime::system_lib().ok());
}

}  // namespace
}  // namespace tilewright::driver
