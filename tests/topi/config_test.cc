// SPDX-License-Identifier: Apache-2.0
// Configurations as values: the text holds every field, and is read back as the equal value.
#include "topi/config.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "topi/conv2d_transpose.h"
#include "topi/conv_direct.h"
#include "topi/gemm.h"
#include "topi/recurrent.h"
#include "topi/sparse.h"
#include "topi/winograd.h"

namespace tilewright::topi {
namespace {

// Another value of a field's type.
template <class T>
T changed(T value, std::mt19937_64& random) {
  if constexpr (std::is_same_v<T, bool>)
    return !value;
  else if constexpr (std::is_enum_v<T>)
    return static_cast<T>((static_cast<size_t>(value) + 1 + random() % (config_names(value).size() - 1)) %
                          config_names(value).size());
  else if constexpr (std::is_same_v<T, DataType>)
    return value == kFloat16 ? kBFloat16 : kFloat16;
  else
    return value + static_cast<T>(1 + random() % 1000);
}

// One column of vectors asks for a load with each multiply-add: two units of 512 bits would wait for them.
TEST(ConfigOfMachine, PointwiseTilesOfFullWidthUnitsHoldSeveralColumns) {
  Target target;
  target.vector_bits = 512, target.vector_registers = 32, target.machine = machine_model_of("znver5");
  Conv2dProblem p;
  p.in_channels = 256, p.out_channels = 128, p.lanes = 16;
  p.in_height = p.in_width = p.out_height = p.out_width = 56;
  const Conv2dConfig c = default_config(p, target, true);
  EXPECT_GE(c.oc_blocks, 2) << to_text(c);
  EXPECT_GE(c.tile_height * c.tile_width * c.oc_blocks, 16) << to_text(c);
}

template <class C>
class Configs : public ::testing::Test {};
using AllConfigs = ::testing::Types<GemmConfig, Conv2dConfig, WinogradConfig, DepthwiseConfig, ConvDirectConfig,
                                    SparseConfig, RecurrentConfig>;
TYPED_TEST_SUITE(Configs, AllConfigs);

TYPED_TEST(Configs, TextsAreEqualWhereConfigurationsAre) {
  std::mt19937_64 random(13);
  for (int round = 0; round < 200; ++round) {
    TypeParam a;
    auto scramble = [&](const auto& f) {
      if (random() % 2) a.*f.member = changed(a.*f.member, random);
    };
    std::apply([&](const auto&... f) { (scramble(f), ...); }, TypeParam::fields());
    const std::string text = to_text(a);
    ASSERT_EQ(parse_config<TypeParam>(text), a) << text;
    auto check = [&](const auto& f) {
      TypeParam b = a;
      b.*f.member = changed(b.*f.member, random);
      EXPECT_NE(to_text(b), text) << f.name;
      EXPECT_FALSE(b == a) << f.name;
      EXPECT_EQ(parse_config<TypeParam>(to_text(b)), b) << f.name;
    };
    std::apply([&](const auto&... f) { (check(f), ...); }, TypeParam::fields());
  }
}

TYPED_TEST(Configs, OnlyTheCanonicalTextIsRead) {
  const std::string text = to_text(TypeParam());
  for (const std::string& bad :
       {std::string(), text + " ", " " + text, text + " more=1", text.substr(text.find(' ') + 1),
        text.substr(0, text.rfind('=')), text + "0x", std::string("?") + text,
        text.substr(0, text.find('=') + 1) + "0" + text.substr(text.find('=') + 1)})
    EXPECT_FALSE(parse_config<TypeParam>(bad)) << bad;
}

TYPED_TEST(Configs, FieldsThatAnOlderTextLacksHaveTheirDefaults) {
  const std::string text = to_text(TypeParam());
  EXPECT_EQ(parse_config<TypeParam>(text.substr(0, text.rfind(' '))), TypeParam());
}

TEST(ConfigText, SaysEveryField) {
  EXPECT_EQ(to_text(GemmConfig{6, 2, 4, false}), "mr=6 nr=2 k_unroll=4 dots=false");
  EXPECT_EQ(to_text(DepthwiseConfig{7, HeldTaps::kRow}), "tile_width=7 held=row tile_height=1");
}

TEST(ConfigText, SeveralSideBySide) {
  const DepthwisePhaseConfigs phases{{7, HeldTaps::kRow}, {3, HeldTaps::kAll, 2}};
  const std::string text = to_text(phases);
  EXPECT_EQ(text, "tile_width=7 held=row tile_height=1; tile_width=3 held=all tile_height=2");
  EXPECT_EQ(parse_configs<DepthwiseConfig>(text), phases);
  for (const std::string& bad : {text + "; ", text + ";", "; " + text})
    EXPECT_FALSE(parse_configs<DepthwiseConfig>(bad));
}

// The guess comes first and once; every one listed is a configuration of the problem.
TEST(ConfigLists, TheGuessIsFirstAndAllFit) {
  for (const char* cpu : {"x86-64-v4", "x86-64-v3"}) {
    Target target = *parse_target(std::string("llvm -mcpu=") + cpu);
    const bool wide = std::string_view(cpu) == "x86-64-v4";
    target.vector_bits = wide ? 512 : 256, target.vector_registers = wide ? 32 : 16;
    GemmProblem g;
    g.m = 40, g.n = 100, g.k = 64, g.row_stride = 64;
    for (MatrixB b : {MatrixB::kPacked, MatrixB::kRowMajor, MatrixB::kTransposed}) {
      g.b = b;
      const auto all = configs(g, target, SIZE_MAX);
      EXPECT_EQ(all[0], default_config(g, target));
      std::set<std::string> texts;
      for (const GemmConfig& c : all) {
        EXPECT_TRUE(texts.insert(to_text(c)).second) << to_text(c);
        EXPECT_TRUE(fits(g, c, target)) << to_text(c);
      }
      EXPECT_GT(all.size(), 4u);
      EXPECT_EQ(configs(g, target, 3).size(), 3u);
    }
    Conv2dProblem c;
    c.in_channels = c.out_channels = 64, c.in_height = c.in_width = c.out_height = c.out_width = 14;
    c.lanes = wide ? 16 : 8;
    c.kernel_height = c.kernel_width = 3, c.pad_top = c.pad_left = c.pad_bottom = c.pad_right = 1;
    std::set<std::string> texts;
    for (const Conv2dConfig& one : configs(c, target, false, SIZE_MAX)) {
      EXPECT_TRUE(texts.insert(to_text(one)).second) << to_text(one);
      EXPECT_TRUE(fits(c, one)) << to_text(one);
    }
    EXPECT_GT(texts.size(), 10u);
    EXPECT_EQ(configs(c, target, false, 5)[0], default_config(c, target, false));
  }
}

}  // namespace
}  // namespace tilewright::topi
