// SPDX-License-Identifier: Apache-2.0
// The inner loops of kernels for NEON, by their instructions: an emulator tells nothing of their time.
#include <algorithm>
#include <map>
#include <sstream>

#include "base/format.h"
#include "codegen/codegen.h"
#include "driver/build.h"
#include "driver/graphs.h"

namespace tilewright::driver {
namespace {
using namespace testing;

struct Loop {
  int products = 0, loads = 0, stores = 0, broadcasts = 0;
};

// The innermost loop with the most of the instruction `product`: from a label to the branch back to it.
Loop busiest_loop(const std::string& assembly, const std::string& product) {
  std::vector<std::string> lines;
  std::istringstream in(assembly);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::map<std::string, size_t> labels;
  Loop best;
  for (size_t i = 0; i < lines.size(); ++i) {
    std::istringstream words(lines[i]);
    std::string word, label;
    words >> word;
    if (word.ends_with(':')) labels[word.substr(0, word.size() - 1)] = i;
    for (std::string operand; words >> operand;) label = operand;
    if (!word.starts_with("b") && !word.starts_with("cb") && !word.starts_with("tb")) continue;
    const auto from = labels.find(label);
    if (from == labels.end()) continue;
    Loop loop;
    for (size_t k = from->second; k < i; ++k) {
      std::istringstream instruction(lines[k]);
      std::string name;
      instruction >> name;
      loop.products += name == product;
      loop.loads += name.starts_with("ld");
      loop.stores += name.starts_with("st");
      loop.broadcasts += name == "dup";
    }
    if (loop.products > best.products) best = loop;
  }
  return best;
}

std::string assembly_of(const Expr& body, const std::vector<Expr>& params, const std::string& target_text) {
  BuildOptions options;
  options.target = target_text;
  auto built = build(relay::Module().with_main(relay::make_function(params, body)), options);
  EXPECT_TRUE(built.ok()) << built.error().str();
  std::string out;
  if (built.ok())
    for (const auto& kernel : built->lowered.kernels) out += codegen::kernel_text(kernel, built->target, "s").value();
  return out;
}

// Of 32 registers a tile takes 16 to 27 as sums: two products for each load at least, and neither spills nor copies.
TEST(ArmKernels, ConvolutionsAndProductsOfFloats) {
  for (const char* cpu : {"generic", "cortex-a53", "cortex-a72", "neoverse-n1", "apple-m1"})
    for (int64_t kernel : {1, 3}) {
      SCOPED_TRACE(format("{} {}", cpu, kernel));
      const Expr x = input("x", {1, 64, 28, 28});
      const Loop loop = busiest_loop(assembly_of(conv(x, 64, 64, kernel, 1, kernel / 2), {x},
                                                 format("llvm -mtriple=aarch64-linux-gnu -math=strict -mcpu={}", cpu)),
                                     "fmla");
      EXPECT_GE(loop.products, 16);
      EXPECT_GE(loop.products, 2 * loop.loads) << loop.products << " products, " << loop.loads << " loads";
      EXPECT_EQ(loop.stores, 0);
      EXPECT_EQ(loop.broadcasts, 0) << "products by an element need no copies of it";
    }
}

TEST(ArmKernels, ProductsOfBytes) {
  const Expr x = input("x", {32, 128}, kUInt8);
  const Expr w = relay::make_constant(random_tensor(kInt8, {64, 128}, 2));
  const Expr y = call("nn.dense", {x, w}, make_attrs<relay::DenseAttrs>([](auto& a) { a.out_dtype = "int32"; }));
  const std::string base = "llvm -mtriple=aarch64-linux-gnu -mattr=+dotprod";
  for (auto [target, product] : {std::pair{base, "sdot"}, {base + ",+i8mm", "usdot"}}) {
    SCOPED_TRACE(target);
    const Loop loop = busiest_loop(assembly_of(y, {x}, target), product);
    EXPECT_GE(loop.products, 12);
    EXPECT_GE(loop.products, 1.5 * loop.loads) << loop.products << " products, " << loop.loads << " loads";
    EXPECT_EQ(loop.stores, 0);
  }
}

}  // namespace
}  // namespace tilewright::driver
