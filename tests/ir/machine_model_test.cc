// SPDX-License-Identifier: Apache-2.0
#include "ir/machine_model.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(MachineModel, SaysWhereItComesFrom) {
  const MachineModel known = machine_model_of("znver4");
  EXPECT_EQ(known.source, MachineModel::Source::kTable);
  EXPECT_EQ(known.family, "znver4");
  EXPECT_NE(describe(known).find("from the table (znver4)"), std::string::npos) << describe(known);
  const MachineModel unknown = machine_model_of("znver9");
  EXPECT_EQ(unknown.source, MachineModel::Source::kAssumed);
  EXPECT_TRUE(unknown.family.empty());
  EXPECT_NE(describe(unknown).find("assumed"), std::string::npos) << describe(unknown);
}

TEST(MachineModel, TheLongestNameOfAFamilyIsTaken) {
  EXPECT_EQ(machine_model_of("skylake-avx512").family, "skylake-avx512");
  EXPECT_EQ(machine_model_of("skylake").family, "skylake");
  EXPECT_EQ(machine_model_of("x86-64-v3").family, "x86-64-v3");
  EXPECT_EQ(machine_model_of("x86-64").family, "x86-64");
}

}  // namespace
}  // namespace tilewright
