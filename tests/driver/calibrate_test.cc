// SPDX-License-Identifier: Apache-2.0
// tilewright calibrate, and what is compiled with what it measured.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "codegen/codegen.h"
#include "driver/command.h"
#include "ir/machine_profile.h"
#include "test_folders.h"

namespace tilewright {
namespace {

using ::tilewright::testing::command;

Target host() { return codegen::resolve_target(parse_target("llvm").value()).value(); }

class CalibrateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* before = std::getenv("TILEWRIGHT_CACHE_DIR");
    was_set_ = before != nullptr;
    if (before) saved_ = before;
    // Other tests run beside this one, each in a process of its own.
    folder_ = ::testing::TempDir() + "calibrate_test" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
    setenv("TILEWRIGHT_CACHE_DIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    was_set_ ? setenv("TILEWRIGHT_CACHE_DIR", saved_.c_str(), 1) : unsetenv("TILEWRIGHT_CACHE_DIR");
    std::filesystem::remove_all(folder_);
  }
  std::string folder_, saved_;
  bool was_set_ = false;
};

TEST_F(CalibrateTest, WhatIsMeasuredIsWhatTheModelCountsWith) {
  const MachineModel before = host().machine;
  EXPECT_NE(before.source, MachineModel::Source::kMeasured);
  const auto measured = command({"calibrate", "--seconds", "0"});
  ASSERT_EQ(measured.code, 0) << measured.error;
  const Target now = host();
  EXPECT_EQ(now.machine.source, MachineModel::Source::kMeasured);
  const auto profile = stored_machine_profile(now.mcpu, now.vector_bits).value();
  ASSERT_TRUE(profile);
  EXPECT_EQ(now.machine.gflops, profile->float32_gflops);
  // One core of anything computes and reads this much at least, and caches are faster than memory.
  EXPECT_GT(profile->float32_gflops, 1);
  EXPECT_GT(profile->l1_gbps, profile->dram_gbps);
  EXPECT_NE(command({"targets"}).out.find("measured"), std::string::npos);
  if (before.source == MachineModel::Source::kTable) {  // what is slower was shared with other programs
    EXPECT_GE(profile->l1_gbps, before.l1_gbps);
    EXPECT_GE(profile->l3_gbps, before.l3_gbps);
    EXPECT_GE(profile->dram_gbps, before.dram_gbps);
  }
  // Another CPU's code does not count with this one's figures.
  const Target other = codegen::resolve_target(parse_target("llvm -mcpu=haswell").value()).value();
  EXPECT_NE(other.machine.source, MachineModel::Source::kMeasured);
  EXPECT_EQ(command({"calibrate", "--remove"}).code, 0);
  EXPECT_EQ(host().machine.gflops, before.gflops);
}

TEST_F(CalibrateTest, ADamagedProfileIsNotUsedAndShown) {
  const Target target = host();
  const std::string path = machine_profile_path(target.mcpu, target.vector_bits);
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << "nonsense\n";
  EXPECT_NE(host().machine.source, MachineModel::Source::kMeasured);
  const auto shown = command({"targets"});
  EXPECT_EQ(shown.code, 0);
  EXPECT_NE(shown.out.find("no machine profile"), std::string::npos) << shown.out;
  EXPECT_EQ(command({"calibrate", "--seconds", "0", "-q"}).code, 0);  // writes it anew
  EXPECT_EQ(host().machine.source, MachineModel::Source::kMeasured);
}

TEST_F(CalibrateTest, AProcessorThatNobodyKnowsGetsAHint) {
  // A CPU that LLVM has and the table has not.
  const std::string out = ::testing::TempDir() + "calibrate_hint.so";
  const auto said = command({"compile", TW_TEST_DATA "/onnx/convnet.onnx", "-o", out, "--shape", "x=1x3x8x8",
                             "--target", "llvm -mcpu=btver2"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_NE(said.out.find("calibrate"), std::string::npos) << said.out;
}

}  // namespace
}  // namespace tilewright
