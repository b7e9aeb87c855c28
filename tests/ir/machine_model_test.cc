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

TEST(MachineModel, WhatTheLastCacheHoldsIsTheFamilys) {
  EXPECT_EQ(machine_model_of("znver4").most_cached(false), 20 << 20);
  EXPECT_EQ(machine_model_of("znver2").most_cached(false), 10 << 20);
  EXPECT_EQ(machine_model_of("znver4").most_cached(true), 24 << 20);
}

TEST(MachineModel, AWideVectorPassesInPiecesWhereUnitsAreNarrow) {
  const MachineModel full = machine_model_of("znver5"), halves = machine_model_of("znver4");
  EXPECT_EQ(full.flops_per_cycle(), 64);
  EXPECT_EQ(full.fmas_per_cycle(512), 2);
  EXPECT_EQ(full.loads_per_cycle(512), 2);
  EXPECT_FALSE(full.halves_pay(512));
  EXPECT_EQ(halves.flops_per_cycle(), 32);
  EXPECT_EQ(halves.fmas_per_cycle(512), 1);
  EXPECT_EQ(halves.fmas_per_cycle(256), 2);
  EXPECT_TRUE(halves.halves_pay(512));
}

}  // namespace
}  // namespace tilewright
