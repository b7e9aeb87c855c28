// SPDX-License-Identifier: Apache-2.0
// Loading artifacts: good ones load, every kind of damage is an error with a code, none is a crash.
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <random>

#include "runtime/artifact.h"
#include "runtime/artifact_maker.h"
#include "runtime/executor.h"

namespace tilewright::runtime {
namespace {
using namespace tilewright::testing;

ErrorCode load_error(const std::string& path, const LoadOptions& options = {}) {
  auto artifact = Artifact::load(path, options);
  EXPECT_FALSE(artifact.ok()) << path;
  return artifact.ok() ? ErrorCode::kInternal : artifact.error().code;
}

ErrorCode made_error(const std::function<void(ArtifactSource&)>& change) {
  TempFolder folder;
  ArtifactSource source = small_model();
  change(source);
  make_artifact(source, folder / "m.so");
  return load_error(folder / "m.so");
}

TEST(Loader, LoadsWithAndWithoutSeal) {
  TempFolder folder;
  for (bool seal : {true, false}) {
    ArtifactSource source = small_model();
    source.seal = seal;
    make_artifact(source, folder / "m.so");
    auto artifact = Artifact::load(folder / "m.so", {.verify_params = true});
    ASSERT_TRUE(artifact.ok()) << artifact.error().str();
    EXPECT_EQ((*artifact)->plan().model_name, "small");
    EXPECT_EQ((*artifact)->kernels().size(), 2u);
  }
}

// The line of /proc/self/smaps that starts with `field`, of the mapping that holds the address.
std::string mapping_field(const void* address, std::string_view field) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long first = 0, last = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &first, &last) == 2)
      inside = first <= reinterpret_cast<uint64_t>(address) && reinterpret_cast<uint64_t>(address) < last;
    else if (inside && line.starts_with(field))
      return line;
  }
  return {};
}

// Weights that have to be read from disk come in huge pages, in one mapping; small ones do not ask for any.
TEST(Loader, LargeWeightsAreReadIntoHugePages) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) GTEST_SKIP() << "a system without huge pages";
  TempFolder folder;
  for (bool large : {false, true}) {
    ArtifactSource source = small_model();
    source.plan.params_bytes = large ? 4 << 20 : 64;
    source.params.resize(source.plan.params_bytes / 4);
    make_artifact(source, folder / "m.so");
    auto artifact = Artifact::load(folder / "m.so");
    ASSERT_TRUE(artifact.ok()) << artifact.error().str();
    const std::byte* first = (*artifact)->params();
    const std::string flags = mapping_field(first, "VmFlags:");
    if (flags.empty()) GTEST_SKIP() << "a system that does not say what mappings asked for";
    EXPECT_EQ(flags.find(" hg") != std::string::npos, large) << flags;
    EXPECT_EQ(flags, mapping_field(first + source.plan.params_bytes - 1, "VmFlags:"));
  }
}

// The dynamic linker remembers paths; a model compiled again must still be the one that loads.
TEST(Loader, AReplacedFileLoadsAnew) {
  TempFolder folder;
  ArtifactSource source = small_model();
  make_artifact(source, folder / "m.so");
  auto first = Artifact::load(folder / "m.so");
  ASSERT_TRUE(first.ok());
  source.plan.model_name = "other";
  make_artifact(source, folder / "m.so");
  auto second = Artifact::load(folder / "m.so");
  ASSERT_TRUE(second.ok()) << second.error().str();
  EXPECT_EQ((*first)->plan().model_name, "small");
  EXPECT_EQ((*second)->plan().model_name, "other");
  EXPECT_NE((*first)->kernels()[0], (*second)->kernels()[0]);
}

TEST(Loader, TellsWhatIsWrong) {
  TempFolder folder;
  EXPECT_EQ(load_error(folder / "absent.so"), ErrorCode::kFileNotFound);
  EXPECT_EQ(load_error("/tmp"), ErrorCode::kBadArtifact);
  write_file(folder / "empty.so", "");
  EXPECT_EQ(load_error(folder / "empty.so"), ErrorCode::kBadArtifact);
  write_file(folder / "model.onnx", std::string(500, 'x'));
  EXPECT_EQ(load_error(folder / "model.onnx"), ErrorCode::kBadArtifact);
  EXPECT_EQ(made_error([](ArtifactSource& a) { a.symbol = "something_else"; }), ErrorCode::kBadArtifact);
  EXPECT_EQ(made_error([](ArtifactSource& a) { a.symbol = "tw_artifact_v7"; }), ErrorCode::kArtifactVersion);
  EXPECT_EQ(made_error([](ArtifactSource& a) { a.abi = 7; }), ErrorCode::kArtifactVersion);
  EXPECT_EQ(made_error([](ArtifactSource& a) { a.hash_error = 1; }), ErrorCode::kBadArtifact);
  EXPECT_EQ(made_error([](ArtifactSource& a) { a.plan.cpu_features = {"sse2", "avx1024f"}; }), ErrorCode::kCpuMismatch);
  EXPECT_EQ(made_error([](ArtifactSource& a) { a.plan.params_bytes = 1 << 20; }), ErrorCode::kBadArtifact);
  EXPECT_EQ(made_error([](ArtifactSource& a) { a.plan.steps[0].kernel = 9; }), ErrorCode::kBadArtifact);
}

TEST(Loader, CpuFeaturesAreNamed) {
  TempFolder folder;
  ArtifactSource source = small_model();
  source.plan.cpu_features = {"sse2", "avx1024f"};
  make_artifact(source, folder / "m.so");
  auto artifact = Artifact::load(folder / "m.so");
  ASSERT_FALSE(artifact.ok());
  EXPECT_NE(artifact.error().message.find("avx1024f"), std::string::npos);
  EXPECT_EQ(artifact.error().message.find("sse2"), std::string::npos);
}

// Loads the damaged file in a child process: a crash there is a failure of the test, not its end. Returns 0 refused,
// 1 loaded, -1 crashed.
int load_in_child(const std::string& path) {
  pid_t child = fork();
  if (child == 0) _exit(Artifact::load(path).ok() ? 1 : 0);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Loader, TruncatedFilesAreRefused) {
  TempFolder folder;
  for (bool seal : {true, false}) {
    ArtifactSource source = small_model();
    source.seal = seal;
    make_artifact(source, folder / "m.so");
    std::string bytes = read_file(folder / "m.so");
    for (size_t n = 0; n < bytes.size(); n += n < 200 ? 7 : 97) {
      write_file(folder / "t.so", bytes.substr(0, n));
      int result = load_in_child(folder / "t.so");
      // Cutting into the seal alone leaves a whole library without one.
      if (result == 1)
        EXPECT_GT(n + 64, bytes.size()) << n;
      else
        EXPECT_EQ(result, 0) << n << " of " << bytes.size();
    }
  }
}

TEST(Loader, EveryFlippedBitOfASealedFileIsSeen) {
  TempFolder folder;
  ArtifactSource source = small_model();
  make_artifact(source, folder / "m.so");
  std::string bytes = read_file(folder / "m.so");
  auto seal = read_artifact_seal(std::as_bytes(std::span(bytes.data(), bytes.size())));
  ASSERT_TRUE(seal.ok() && seal->has_value());
  ASSERT_EQ((*seal)->params_bytes, 64u);
  for (size_t i = 0; i + 8 < bytes.size(); i += i < 1024 ? 1 : 61) {  // the last 8 bytes say that there is a seal
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    auto view = std::as_bytes(std::span(damaged.data(), damaged.size()));
    auto found = read_artifact_seal(view);
    bool weights = i >= (*seal)->params_offset && i < (*seal)->params_offset + 64;
    EXPECT_TRUE(!found.ok() || !check_artifact_seal(view, **found, true).ok()) << i;
    if (found.ok() && weights) {
      EXPECT_TRUE(check_artifact_seal(view, **found, false).ok()) << i;
    }
    write_file(folder / "d.so", damaged);
    EXPECT_EQ(load_error(folder / "d.so", {.verify_params = true}), ErrorCode::kBadArtifact) << i;
  }
}

// Without a seal a flipped bit in code or data cannot be seen, but headers and tables are checked: loading never
// crashes.
TEST(Loader, FlippedHeadersOfAnUnsealedFileDoNotCrash) {
  TempFolder folder;
  ArtifactSource source = small_model();
  source.seal = false;
  make_artifact(source, folder / "m.so");
  std::string bytes = read_file(folder / "m.so");
  std::mt19937 random(3);
  int refused = 0;
  for (int round = 0; round < 600; ++round) {
    std::string damaged = bytes;
    size_t at = round < 300 ? random() % 800 : random() % bytes.size();
    damaged[at] = static_cast<char>(round % 2 ? random() : damaged[at] ^ (1 << random() % 8));
    write_file(folder / "d.so", damaged);
    int result = load_in_child(folder / "d.so");
    EXPECT_GE(result, 0) << "crashed with byte " << at << " damaged, round " << round;
    refused += result == 0;
  }
  EXPECT_GT(refused, 60);
}

TEST(Loader, ALibraryLoadedTwiceIsNotTakenForAnother) {
  TempFolder folder;
  ArtifactSource a = small_model(), b = small_model();
  b.plan.model_name = "other";
  make_artifact(a, folder / "a.so");
  make_artifact(b, folder / "b.so");
  auto first = Artifact::load(folder / "a.so");
  ASSERT_TRUE(first.ok());
  { ASSERT_TRUE(Artifact::load(folder / "a.so").ok()); }  // its descriptor's number is free again
  auto other = Artifact::load(folder / "b.so");
  ASSERT_TRUE(other.ok());
  EXPECT_EQ((*other)->plan().model_name, "other");
}

}  // namespace
}  // namespace tilewright::runtime
