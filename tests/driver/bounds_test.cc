// SPDX-License-Identifier: Apache-2.0
// --bound batch=1..8: one library for every size within bounds, as plans for single sizes and for ranges of them, which
// give the results of a library compiled for the size.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <random>

#include "driver/bounds.h"
#include "driver/build.h"
#include "driver/command.h"
#include "test_folders.h"
#include "tilewright/compiler.h"
#include "tilewright/runtime.h"

namespace tilewright {
namespace {

class BoundsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tw_bounds_XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string compiled(const std::string& model, const std::string& name, std::vector<std::string> bounds,
                       std::vector<std::string> shapes = {}) {
    CompileOptions options;
    options.bounds = std::move(bounds);
    options.shapes = std::move(shapes);
    compile(TW_TEST_DATA "/onnx/" + model, folder_ + "/" + name, options);
    return folder_ + "/" + name;
  }
  std::string folder_;
};

struct Sentences {
  int64_t batch, length;
  std::vector<int64_t> ids, mask;
};

Sentences sentences(int64_t batch, int64_t length) {
  std::mt19937 random(static_cast<unsigned>(100 * batch + length));
  Sentences s{batch, length, {}, {}};
  for (int64_t i = 0; i < batch * length; ++i) {
    s.ids.push_back(static_cast<int64_t>(random() % 40));
    s.mask.push_back(i % length == 0 || random() % 4 != 0);
  }
  return s;
}

std::vector<std::vector<float>> run(Executor& executor, const Sentences& s, size_t outputs) {
  executor.set_input("ids", s.ids, {s.batch, s.length});
  executor.set_input("mask", s.mask, {s.batch, s.length});
  executor.run();
  std::vector<std::vector<float>> out;
  for (size_t i = 0; i < outputs; ++i) {
    const DLTensor t = executor.output(i);
    int64_t count = 1;
    for (int d = 0; d < t.ndim; ++d) count *= t.shape[d];
    EXPECT_EQ(t.shape[0], s.batch);
    const auto* data = static_cast<const float*>(t.data);
    out.emplace_back(data, data + count);
  }
  return out;
}

TEST_F(BoundsTest, RangesGiveTheResultsOfEachSize) {
  const Model model(compiled("tokens.onnx", "tokens.so", {"batch=1..2", "length=9..25"}));
  EXPECT_LT(model.num_variants(), 2u * 17) << "ranges, not sizes";
  for (int threads : {1, 2}) {
    Executor executor(model, threads);
    // Up and down, so that memory of other sizes is there.
    for (auto [batch, length] : {std::pair{2, 25}, {1, 19}, {2, 23}, {2, 22}, {1, 24}, {2, 9}, {1, 25}}) {
      const Sentences s = sentences(batch, length);
      const auto got = run(executor, s, 5);
      const std::string shape = "=" + std::to_string(batch) + "x" + std::to_string(length);
      const Model exact(compiled("tokens.onnx", "exact.so", {}, {"ids" + shape, "mask" + shape}));
      Executor single(exact, 1);
      const auto wanted = run(single, s, 5);
      for (size_t i = 0; i < wanted.size(); ++i) {
        ASSERT_EQ(got[i].size(), wanted[i].size()) << shape << " output " << i;
        for (size_t k = 0; k < wanted[i].size(); ++k)
          ASSERT_NEAR(got[i][k], wanted[i][k], 1e-5 * (1 + std::fabs(wanted[i][k]))) << shape << " output " << i;
      }
    }
  }
}

// Outputs of a library with bounds are those of one that was compiled for the shapes.
struct Given {
  std::string name;
  std::vector<int64_t> shape;
};
std::vector<std::vector<float>> run_floats(Executor& executor, const std::vector<Given>& inputs, size_t outputs,
                                           std::vector<std::vector<int64_t>>* shapes) {
  std::mt19937 random(3);
  for (const Given& input : inputs) {
    int64_t count = 1;
    for (int64_t d : input.shape) count *= d;
    std::vector<float> values(static_cast<size_t>(count));
    for (float& v : values) v = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 500;
    executor.set_input(input.name, values, input.shape);
  }
  executor.run();
  std::vector<std::vector<float>> out;
  for (size_t i = 0; i < outputs; ++i) {
    const DLTensor t = executor.output(i);
    int64_t count = 1;
    for (int d = 0; d < t.ndim; ++d) count *= t.shape[d];
    shapes->emplace_back(t.shape, t.shape + t.ndim);
    const auto* data = static_cast<const float*>(t.data);
    out.emplace_back(data, data + count);
  }
  return out;
}

void expect_same(Executor& executor, const std::string& exact, const std::vector<Given>& inputs) {
  const Model model(exact);
  Executor single(model, 1);
  std::vector<std::vector<int64_t>> shapes, wanted_shapes;
  const auto got = run_floats(executor, inputs, 3, &shapes), wanted = run_floats(single, inputs, 3, &wanted_shapes);
  ASSERT_EQ(shapes, wanted_shapes);
  for (size_t i = 0; i < wanted.size(); ++i)
    for (size_t k = 0; k < wanted[i].size(); ++k)
      ASSERT_NEAR(got[i][k], wanted[i][k], 1e-4 * (1 + std::fabs(wanted[i][k]))) << exact << " output " << i;
}

TEST_F(BoundsTest, WindowsMoveAlongFreeSizes) {
  const Model model(compiled("picture.onnx", "picture.so", {"height=20..20", "width=7..64"}));
  EXPECT_LT(model.num_variants(), 58u) << "ranges, not sizes";
  Executor executor(model, 2);
  for (auto [height, width] : {std::pair{20, 63}, {20, 9}, {20, 37}, {20, 38}, {20, 7}, {20, 64}, {20, 41}}) {
    const std::string shape = "x=1x3x" + std::to_string(height) + "x" + std::to_string(width);
    expect_same(executor, compiled("picture.onnx", "exact.so", {}, {shape}), {{"x", {1, 3, height, width}}});
  }
}

TEST_F(BoundsTest, TokensAreAppendedToWhatIsThere) {
  const Model model(compiled("cache.onnx", "cache.so", {"batch=2..2", "new=1..2", "past=9..30"}));
  EXPECT_LT(model.num_variants(), 2u * 22) << "ranges, not sizes";
  Executor executor(model, 1);
  for (auto [fresh, past] : {std::pair{1, 29}, {1, 30}, {2, 17}, {1, 18}, {2, 25}, {1, 9}, {2, 21}}) {
    const std::string cached = "=2x2x" + std::to_string(past) + "x8";
    expect_same(executor,
                compiled("cache.onnx", "exact.so", {},
                         {"x=2x" + std::to_string(fresh) + "x16", "past_k" + cached, "past_v" + cached}),
                {{"x", {2, fresh, 16}}, {"past_k", {2, 2, past, 8}}, {"past_v", {2, 2, past, 8}}});
  }
}

// What a model leaves free and nothing is said of: a batch is 1 to 8, and the compiler says so.
TEST_F(BoundsTest, BatchesThatNothingIsSaidOfAreOneToEight) {
  const std::string model = TW_TEST_DATA "/onnx/convnet.onnx", out = folder_ + "/m.so";
  testing::Said said = testing::command({"compile", model, "-o", out});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_NE(said.out.find("batch=1..8 was taken; --bound batch=LOW..HIGH"), std::string::npos) << said.out;
  EXPECT_EQ(Model(out).num_variants(), 8u);
  said = testing::command({"compile", model, "-o", out, "--bound", "none"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_NE(said.out.find("a VM program"), std::string::npos) << said.out;
  // Given shapes leave nothing free.
  said = testing::command({"compile", model, "-o", out, "--shape", "x=3x3x8x8"});
  EXPECT_EQ(said.out.find("was taken"), std::string::npos) << said.out;
  EXPECT_EQ(Model(out).num_variants(), 1u);
}

// Tokens are 1 to 512 in few ranges, or as many as the table of places has (64), and every size of them runs.
TEST_F(BoundsTest, TokensThatNothingIsSaidOfHaveFewRanges) {
  const std::string model = TW_TEST_DATA "/onnx/tokens.onnx", out = folder_ + "/tokens.so";
  testing::Said said = testing::command({"compile", model, "-o", out});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_NE(said.out.find("batch=1..8 length=1..64 was taken, in few ranges"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("--bound batch=LOW..HIGH --bound length=LOW..HIGH takes"), std::string::npos) << said.out;
  const Model made(out);
  EXPECT_EQ(made.num_variants(), 4u * 3);
  Executor executor(made, 1);
  for (auto [batch, length] : {std::pair{3, 17}, {1, 1}, {1, 64}}) {
    const Sentences s = sentences(batch, length);
    const std::string shape = "=" + std::to_string(batch) + "x" + std::to_string(length);
    const Model exact(compiled("tokens.onnx", "exact.so", {}, {"ids" + shape, "mask" + shape}));
    Executor single(exact, 1);
    const auto got = run(executor, s, 1)[0], wanted = run(single, s, 1)[0];
    ASSERT_EQ(got.size(), wanted.size()) << shape;
    for (size_t k = 0; k < wanted.size(); ++k)
      ASSERT_NEAR(got[k], wanted[k], 1e-5 * (1 + std::fabs(wanted[k]))) << shape;
  }
  // The sizes of what has no rule, samples and caches are not guessed.
  for (const char* other : {"/onnx/last_token.onnx", "/onnx/free_sizes.onnx", "/onnx/cache.onnx"}) {
    said = testing::command({"compile", std::string(TW_TEST_DATA) + other, "-o", out});
    EXPECT_NE(said.out.find("a VM program"), std::string::npos) << other << said.out;
  }
}

TEST_F(BoundsTest, OutsideIsAnErrorThatNamesTheBounds) {
  const Model model(compiled("tokens.onnx", "tokens.so", {"batch=1..1", "length=5..37"}));
  Executor executor(model, 1);
  for (auto [batch, length] : {std::pair{1, 4}, {1, 38}, {2, 9}}) {
    const Sentences s = sentences(batch, length);
    try {
      executor.set_input("ids", s.ids, {s.batch, s.length});
      ADD_FAILURE() << batch << "x" << length;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), static_cast<int>(ErrorCode::kShapeMismatch));
      EXPECT_NE(std::string(e.what()).find("batch=1..1 length=5..37"), std::string::npos) << e.what();
    }
  }
  const Sentences s = sentences(1, 5), other = sentences(1, 6);
  EXPECT_EQ(run(executor, s, 1)[0].size(), 5u * 16);
  // Inputs of two sizes do not run.
  executor.set_input("ids", other.ids, {1, 6});
  EXPECT_THROW(executor.run(), Error);
}

TEST_F(BoundsTest, BoundMemoryOfTheCallersIsReadAndWritten) {
  const Model model(compiled("tokens.onnx", "tokens.so", {"batch=1..1", "length=9..42"}));
  Executor executor(model, 2);
  Sentences s = sentences(1, 11);
  const auto wanted = run(executor, s, 1)[0];
  std::vector<float> into(11 * 16, -1);
  int64_t in_shape[] = {1, 11}, out_shape[] = {1, 11, 16};
  const DLTensor ids{s.ids.data(), {kDLCPU, 0}, 2, {kDLInt, 64, 1}, in_shape, nullptr, 0},
      mask{s.mask.data(), {kDLCPU, 0}, 2, {kDLInt, 64, 1}, in_shape, nullptr, 0},
      out{into.data(), {kDLCPU, 0}, 3, {kDLFloat, 32, 1}, out_shape, nullptr, 0};
  executor.bind_input("ids", ids);
  executor.bind_input("mask", mask);
  executor.bind_output(0, out);
  executor.run();
  EXPECT_EQ(into, wanted);
  std::fill(s.ids.begin(), s.ids.end(), 3);  // the same memory, other values
  executor.run();
  EXPECT_NE(into, wanted);
}

TEST_F(BoundsTest, WhatMustKnowItsSizesIsCompiledForEach) {
  const Model model(compiled("last_token.onnx", "last.so", {"batch=1..1", "length=3..40"}));
  EXPECT_EQ(model.num_variants(), 38u);
  Executor executor(model, 1);
  const std::vector<float> x = {1, 2, 3, 4, 5};
  executor.set_input("x", x, {1, 5});
  executor.run();
  const auto* last = static_cast<const float*>(executor.output(0).data);
  EXPECT_EQ(*last, 5);
  try {
    compiled("last_token.onnx", "many.so", {"batch=1..8", "length=1..200"});
    ADD_FAILURE();
  } catch (const CompileError& e) {
    EXPECT_NE(std::string(e.what()).find("cannot leave a size free"), std::string::npos) << e.what();
  }
}

TEST_F(BoundsTest, BadBoundsAreRefused) {
  for (const char* text : {"batch", "batch=", "batch=3", "batch=3..1", "=1..2", "batch=1..x", "batch=-1..4"})
    EXPECT_FALSE(driver::parse_bound(text).ok()) << text;
  EXPECT_TRUE(driver::parse_bound("a=b=1..8").ok());
  auto refused = [&](std::vector<std::string> bounds, const char* says, std::vector<std::string> shapes = {}) {
    try {
      compiled("tokens.onnx", "bad.so", std::move(bounds), std::move(shapes));
      ADD_FAILURE() << says;
    } catch (const CompileError& e) {
      EXPECT_NE(std::string(e.what()).find(says), std::string::npos) << e.what();
    }
  };
  refused({"widht=1..4"}, "batch, length");
  refused({"batch=1..4", "batch=1..4"}, "two bounds");
  refused({"batch=1..4"}, "length");  // which stays free
  refused({"batch=1..1000000", "length=1..1000000"}, "512 plans");
  refused({"batch=1..2", "length=1..4"}, "several shapes", {"ids={1,2}x4"});
  EXPECT_NO_THROW(compiled("tokens.onnx", "places.so", {"ids.0=1..2", "length=3..4"}));
}

}  // namespace
}  // namespace tilewright
