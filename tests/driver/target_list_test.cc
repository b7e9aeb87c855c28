// SPDX-License-Identifier: Apache-2.0
// Several instruction sets in one library: which is taken, that each computes the model, what they share, and what
// older processors do with it (imitated by qemu-x86_64 where that is installed).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

#include "base/format.h"
#include "base/work_folder.h"
#include "driver/build.h"
#include "driver/cli/inspect_file.h"
#include "driver/command.h"
#include "driver/graphs.h"
#include "driver/target_list.h"
#include "relay/interpreter.h"
#include "runtime/artifact.h"
#include "runtime/cpu.h"
#include "test_folders.h"
#include "tilewright/runtime.h"

namespace tilewright::driver {
namespace {
namespace fs = std::filesystem;
using namespace testing;
using tilewright::testing::command;
using tilewright::testing::Said;

constexpr const char* kSets[] = {"x86-64-v4", "x86-64-v3", "x86-64-v2"};

std::string contents_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// TILEWRIGHT_ISA while it lives.
class Forced {
 public:
  explicit Forced(const char* name) { setenv("TILEWRIGHT_ISA", name, 1); }
  ~Forced() { unsetenv("TILEWRIGHT_ISA"); }
  Forced(const Forced&) = delete;
  Forced& operator=(const Forced&) = delete;
};

class TargetList : public ::testing::Test {
 protected:
  void SetUp() override {
#if !defined(__x86_64__)
    GTEST_SKIP() << "instruction sets of x86-64";
#endif
  }
  std::string at(const std::string& name) const { return place_.path() + "/" + name; }
  // Convolutions of odd sizes, a product, and weights large enough to weigh.
  static relay::Module model(int64_t side = 9) {
    Expr x = input("x", {1, 5, side, side});
    Expr h = relu(bias(conv(x, 72, 5, 3, 1, 1), 72));
    h = relu(conv(h, 72, 1, 3, 2, 1, 72));
    h = relu(conv(h, 64, 72, 1, 1, 0));
    h = relu(conv(h, 64, 64, 3, 1, 1));
    h = call("nn.global_avg_pool2d", {h});
    h = call("nn.batch_flatten", {h});
    return relay::Module().with_main(relay::make_function({x}, call("nn.dense", {h, constant({130, 64})})));
  }
  static BuildOptions options(const std::string& target) {
    BuildOptions o;
    o.target = target, o.jobs = 1, o.name = "net";
    return o;
  }
  void write(const std::string& name, const std::string& target = "portable", bool system_lib = false,
             const std::string& weights = "") const {
    BuildOptions o = options(target);
    o.system_lib = system_lib;
    if (!weights.empty()) o.weights_file = at(weights);
    auto built = build(model(), o);
    ASSERT_TRUE(built.ok()) << built.error().str();
    const Status written = export_library(*built, at(name));
    ASSERT_TRUE(written.ok()) << written.error().str();
  }
  std::string target_of(const std::string& name) const {
    auto artifact = runtime::Artifact::load(at(name));
    return artifact.ok() ? (*artifact)->plan().target : artifact.error().str();
  }
  static Tensor data() { return random_tensor(kFloat32, {1, 5, 9, 9}, 3); }
  static std::vector<double> reference() {
    std::vector<double> out;
    const Tensor y = relay::to_tensor(relay::interpret(model(), {{"x", relay::value_from(data())}}).value()[0]);
    for (int64_t i = 0; i < y.size(); ++i) out.push_back(y.at_double(i));
    return out;
  }
  static double largest_of(const std::vector<double>& values) {
    double most = 1;
    for (double v : values) most = std::max(most, std::fabs(v));
    return most;
  }
  static std::vector<float> run(const Model& model) {
    const Tensor x = data();
    std::vector<float> values;
    for (int64_t i = 0; i < x.size(); ++i) values.push_back(static_cast<float>(x.at_double(i)));
    Executor executor(model, 2);
    executor.set_input("x", values, {1, 5, 9, 9});
    executor.run();
    auto y = executor.output<float>(0);
    return {y.begin(), y.end()};
  }
  static void expect_reference(const std::vector<float>& y) {
    const auto wanted = reference();
    ASSERT_EQ(y.size(), wanted.size());
    const double room = 1e-4 * largest_of(wanted);
    for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], wanted[i], room) << i;
  }
  static bool runs_here(const std::string& cpu) {
    const Target target = targets_of("llvm -mcpu=" + cpu).value()[0].target;
    return runtime::missing_cpu_features(target.cpu_features).empty();
  }
  std::string shell(const std::string& command) const {
    const int status = std::system(("cd " + place_.path() + " && (" + command + ") >log 2>&1").c_str());
    return (status == 0 ? "" : "failed: ") + contents_of(at("log"));
  }
  const WorkFolder place_ = WorkFolder::temporary("tilewright-targets-test").value();
};

TEST_F(TargetList, EachInstructionSetComputesTheModel) {
  write("net.so");
  for (const char* name : kSets) {
    if (!runs_here(name)) continue;
    const Forced forced(name);
    const Model model(at("net.so"));
    EXPECT_NE(target_of("net.so").find(name), std::string::npos) << target_of("net.so");
    expect_reference(run(model));
  }
  // The best of what this machine has, when nothing is said.
  const char* best = kSets[runs_here(kSets[0]) ? 0 : runs_here(kSets[1]) ? 1 : 2];
  EXPECT_NE(target_of("net.so").find(best), std::string::npos) << target_of("net.so");
}

TEST_F(TargetList, WeightsAreHeldOnce) {
  write("all.so");
  uintmax_t largest = 0;
  for (const char* name : kSets) {
    write(std::string(name) + ".so", std::string("llvm -mcpu=") + name);
    largest = std::max(largest, fs::file_size(at(std::string(name) + ".so")));
  }
  const auto json = inspect_file(at("all.so")).value();
  const auto alone = inspect_file(at("x86-64-v4.so")).value();
  ASSERT_EQ(json["instruction_sets"].size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(json["instruction_sets"][i]["name"], kSets[i]);
  EXPECT_LE(json["weights_bytes"].get<double>(), 1.25 * alone["weights_bytes"].get<double>());
}

TEST_F(TargetList, WhatCannotBeForcedIsRefused) {
  write("net.so");
  const Forced forced("pentium");
  try {
    const Model model(at("net.so"));
    FAIL() << "loaded as " << target_of("net.so");
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("TILEWRIGHT_ISA asks for 'pentium'"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("x86-64-v4, x86-64-v3, x86-64-v2"), std::string::npos) << e.what();
  }
}

TEST_F(TargetList, WeightsApart) {
  write("apart.so", "portable", false, "net.weights");
  for (const char* name : kSets) {
    if (!runs_here(name)) continue;
    const Forced forced(name);
    expect_reference(run(Model(at("apart.so"))));
  }
}

TEST_F(TargetList, ListsThatAreNone) {
  for (auto [target, says] :
       {std::pair{"llvm -mcpu=x86-64-v3,x86-64-v3", "twice"},
        std::pair{"llvm -mcpu=x86-64-v3,nonesuch", "no x86-64 CPU named 'nonesuch'"},
        std::pair{"llvm -mcpu=x86-64-v3,", "without a name"},
        std::pair{"llvm -mtriple=aarch64-linux-gnu -mcpu=generic,neoverse-n1", "x86-64"},
        std::pair{"c -mcpu=x86-64-v3,x86-64-v4", "lists processors"},
        std::pair{"portable -mcpu=x86-64-v3", "x86-64-v3"}, std::pair{"portable -nonesuch=1", "not known"}}) {
    auto made = build(model(), options(target));
    ASSERT_FALSE(made.ok()) << target;
    EXPECT_NE(made.error().str().find(says), std::string::npos) << target << "\n" << made.error().str();
    EXPECT_EQ(made.error().code, ErrorCode::kUnknownTarget) << made.error().str();
  }
  auto built = build(model(), options("portable"));
  ASSERT_TRUE(built.ok()) << built.error().str();
  for (const char* name : {"net.ll", "net.bc", "net.s"}) {
    const Status written = export_library(*built, at(name));
    ASSERT_FALSE(written.ok()) << name;
    EXPECT_NE(written.error().str().find("one processor"), std::string::npos) << written.error().str();
  }
}

// A C program without the runtime, which calls what an object or an archive has.
TEST_F(TargetList, TheGeneratedEntryChooses) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the program is built without sanitizers";
#endif
  const Tensor x = data();
  const auto wanted = reference();
  std::ofstream c(at("main.c"));
  c << "#include <stdio.h>\n#include <stdlib.h>\n#include <stdint.h>\n#include <math.h>\n"
       "extern const uint64_t tw_arena_bytes;\nint tw_run(void* const*, void* const*, void*);\n"
       "static float x[] = {";
  for (int64_t i = 0; i < x.size(); ++i) c << static_cast<float>(x.at_double(i)) << ",";
  c << "};\nstatic const float wanted[] = {";
  for (double w : wanted) c << w << ",";
  c << "};\nint main(void) {\n  static float y[" << wanted.size()
    << "];\n  void *in[] = {x}, *out[] = {y};\n  void* arena = aligned_alloc(64, (tw_arena_bytes + 63) / 64 * 64);\n"
       "  int code = tw_run(in, out, arena);\n  if (code) { printf(\"error %d\\n\", code); return 0; }\n"
       "  for (unsigned i = 0; i < sizeof y / sizeof y[0]; ++i)\n"
       "    if (!(fabsf(y[i] - wanted[i]) <= "
    << 1e-4 * largest_of(wanted)
    << ")) { printf(\"wrong at %u\\n\", i); return 0; }\n  printf(\"right\\n\");\n  return 0;\n}\n";
  c.close();
  for (const char* file : {"net.o", "net.a"}) {
    write(file);
    ASSERT_EQ(shell(std::string("cc -O1 -o program main.c ") + file + " -lm"), "");
    EXPECT_EQ(shell("./program"), "right\n") << file;
    for (const char* name : kSets)
      EXPECT_EQ(shell(std::string("TILEWRIGHT_ISA=") + name + " ./program"),
                runs_here(name) ? "right\n" : format("error {}\n", static_cast<int>(ErrorCode::kCpuMismatch)));
    EXPECT_EQ(shell("TILEWRIGHT_ISA=pentium ./program"),
              format("error {}\n", static_cast<int>(ErrorCode::kInvalidArgument)));
  }
  if (std::system("command -v qemu-x86_64 >/dev/null 2>&1") != 0) {
    std::printf("[   note   ] qemu-x86_64 is not installed (Debian: qemu-user): older processors are not imitated\n");
    return;
  }
  // With AVX2; with AVX2 whose registers the operating system does not save; with SSE4.2; with less than anything here.
  const std::string lacks = format("error {}\n", static_cast<int>(ErrorCode::kCpuMismatch));
  for (auto [cpu, forced, says] :
       {std::tuple{"Haswell", "", std::string("right\n")}, std::tuple{"Haswell", "x86-64-v3", std::string("right\n")},
        std::tuple{"Haswell", "x86-64-v4", lacks}, std::tuple{"Haswell,-xsave", "", std::string("right\n")},
        std::tuple{"Haswell,-xsave", "x86-64-v3", lacks}, std::tuple{"Nehalem", "", std::string("right\n")},
        std::tuple{"core2duo", "", lacks}})
    EXPECT_EQ(shell(format("TILEWRIGHT_ISA={} qemu-x86_64 -cpu {} ./program 2>errors", forced, cpu)), says)
        << cpu << " " << forced;
}

// The runtime's own choice, on older processors.
TEST_F(TargetList, OlderProcessors) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "an imitated processor runs no sanitizer";
#endif
  if (std::system("command -v qemu-x86_64 >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "qemu-x86_64 is not installed (Debian: qemu-user)";
  write("net.so");
  write("system.a", "portable", true);
  const std::string program = std::string(TW_BUILD_DIR) + "/tilewright";
  for (auto [cpu, says] : {std::pair{"Haswell", "-mcpu=x86-64-v3"}, std::pair{"Haswell,-xsave", "-mcpu=x86-64-v2"},
                           std::pair{"Nehalem", "-mcpu=x86-64-v2"}, std::pair{"core2duo", "can run none of them"}}) {
    const std::string said = shell(
        format("qemu-x86_64 -cpu {} {} bench net.so --threads 1 --time 0.01 2>&1 | grep -v warning", cpu, program));
    EXPECT_NE(said.find(says), std::string::npos) << cpu << "\n" << said;
  }
}

TEST_F(TargetList, TheCommandLineSaysWhatThereIs) {
  const std::string relay = at("net.relay");
  std::ofstream(relay) << "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2, 40), float32]) { nn.relu(%x) }\n";
  const Said made = command({"compile", relay, "-o", at("net.so"), "--target", "portable"});
  ASSERT_EQ(made.code, 0) << made.error;
  for (const char* name : kSets) EXPECT_NE(made.out.find(name), std::string::npos) << made.out;
  const Said seen = command({"inspect", at("net.so")});
  for (const char* name : kSets) EXPECT_NE(seen.out.find(name), std::string::npos) << seen.out;
  EXPECT_EQ(command({"targets", "portable"}).code, 0);
  const Said refused = command({"verify", relay, "--target", "portable"});
  EXPECT_EQ(refused.code, 1) << refused.out;
  EXPECT_NE(refused.error.find("one is wanted here"), std::string::npos) << refused.error;
}

TEST(SplitTargets, EachProcessorIsATarget) {
  EXPECT_EQ(split_targets("llvm"), std::vector<std::string>{"llvm"});
  EXPECT_EQ(split_targets("llvm -mcpu=a -mattr=+x,+y"), std::vector<std::string>{"llvm -mcpu=a -mattr=+x,+y"});
  EXPECT_EQ(
      split_targets("llvm -mattr=+x,+y -mcpu=a,b -math=strict"),
      (std::vector<std::string>{"llvm -mattr=+x,+y -mcpu=a -math=strict", "llvm -mattr=+x,+y -mcpu=b -math=strict"}));
  EXPECT_EQ(split_targets("portable -math=strict").size(), 3u);
}

}  // namespace
}  // namespace tilewright::driver
