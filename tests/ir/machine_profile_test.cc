// SPDX-License-Identifier: Apache-2.0
#include "ir/machine_profile.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tilewright {
namespace {

MachineProfile example() {
  MachineProfile p;
  p.cpu = "znver9", p.vector_bits = 512, p.gigahertz = 4.5;
  p.float32_gflops = 280.25, p.float64_gflops = 140, p.int8_gops = 1100;
  p.l1_gbps = 500, p.l2_gbps = 220, p.l3_gbps = 90, p.dram_gbps = 33;
  p.l1_bytes = 48 << 10, p.l2_bytes = 1 << 20, p.l3_bytes = 32 << 20, p.threads = 2, p.thread_us = 0.4;
  return p;
}

class MachineProfileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* before = std::getenv("TILEWRIGHT_CACHE_DIR");
    if (before) saved_ = before;
    was_set_ = before != nullptr;
    // Tests run beside each other, each in a process of its own.
    folder_ =
        ::testing::TempDir() + "machine_profile_" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
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

TEST_F(MachineProfileTest, IsReadAsItWasStored) {
  EXPECT_FALSE(stored_machine_profile("znver9", 512).value());
  ASSERT_TRUE(store_machine_profile(example()).ok());
  const auto back = stored_machine_profile("znver9", 512).value();
  ASSERT_TRUE(back);
  EXPECT_EQ(to_text(*back), to_text(example()));
  EXPECT_FALSE(stored_machine_profile("znver9", 256).value());
  MachineModel machine = machine_model_of("znver9");
  EXPECT_EQ(machine.source, MachineModel::Source::kAssumed);
  apply(*back, &machine);
  EXPECT_EQ(machine.source, MachineModel::Source::kMeasured);
  EXPECT_EQ(machine.gflops, 280.25);
  EXPECT_EQ(machine.l1_bytes, 48 << 10);
  EXPECT_EQ(machine.l3_bytes, 32 << 20);
  EXPECT_NE(describe(machine).find("measured on this machine"), std::string::npos);
}

TEST_F(MachineProfileTest, DamagedFilesAreRefusedWithTheirNames) {
  const std::string whole = to_text(example());
  for (size_t cut = 0; cut + 1 < whole.size(); cut += 7)
    if (auto read = parse_machine_profile(whole.substr(0, cut), "here"); read.ok())
      EXPECT_EQ(to_text(*read).substr(0, cut), whole.substr(0, cut));  // cut within the last number
    else
      EXPECT_EQ(read.error().where, "here");
  for (const char* wrong : {"float32_gflops -3", "float32_gflops nan", "float32_gflops inf", "float32_gflops 1e300"}) {
    std::string text = whole;
    text.replace(text.find("float32_gflops 280.25"), 21, wrong);
    EXPECT_FALSE(parse_machine_profile(text, "here").ok()) << wrong;
  }
  // Under another machine's name.
  ASSERT_TRUE(store_machine_profile(example()).ok());
  std::filesystem::copy_file(machine_profile_path("znver9", 512), machine_profile_path("znver8", 512));
  EXPECT_FALSE(stored_machine_profile("znver8", 512).ok());
}

}  // namespace
}  // namespace tilewright
