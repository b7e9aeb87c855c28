// SPDX-License-Identifier: Apache-2.0
// Targets for other processors: what they resolve to, what is refused, and the files that are made for them.
#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "base/formats/artifact.h"
#include "codegen/library.h"
#include "codegen/processor.h"

namespace tilewright::codegen {
namespace {

using namespace tir;

TEST(Processors, TargetsAreSettled) {
  struct Row {
    const char *text, *triple, *abi;
    int bits, registers;
  };
  for (const Row& row : {
           Row{"llvm -mtriple=aarch64-linux-gnu -mattr=+neon", "aarch64-unknown-linux-gnu", "", 128, 32},
           {"llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72 -num-cores=4", "aarch64-unknown-linux-gnu", "", 128, 32},
           {"llvm -device=arm_cpu -model=bcm2711 -mtriple=armv8l-linux-gnueabihf -mattr=+neon",
            "armv8l-unknown-linux-gnueabihf", "", 128, 16},
           {"llvm -mtriple=arm-linux-gnueabihf", "armv7a-unknown-linux-gnueabihf", "", 128, 16},
           {"llvm -mtriple=armv7a-linux-gnueabihf -mattr=-neon -mfloat-abi=hard", "armv7a-unknown-linux-gnueabihf", "",
            64, 8},
           {"llvm -mtriple=armv7em-none-eabi -mcpu=cortex-m4", "thumbv7em-unknown-none-eabi", "", 64, 8},
           {"llvm -mtriple=i686-linux-gnu", "i686-unknown-linux-gnu", "", 128, 8},
           {"llvm -mtriple=i686-linux-gnu -mcpu=i686", "i686-unknown-linux-gnu", "", 64, 8},
           {"llvm -mtriple=riscv64-linux-gnu", "riscv64-unknown-linux-gnu", "lp64d", 64, 16},
           {"llvm -mtriple=riscv64-linux-gnu -mattr=+m,+a,+f,+d,+c,+v", "riscv64-unknown-linux-gnu", "lp64d", 128, 32},
           {"llvm -mtriple=riscv64-unknown-linux-gnu -mcpu=sifive-u54 -mabi=lp64d -mattr=+m,+a,+f,+d,+c",
            "riscv64-unknown-linux-gnu", "lp64d", 64, 16},
           {"llvm -mtriple=riscv32-unknown-linux-gnu -mcpu=sifive-e31 -mabi=ilp32 -mattr=+m,+a,+c",
            "riscv32-unknown-linux-gnu", "ilp32", 64, 16},
       }) {
    SCOPED_TRACE(row.text);
    auto target = resolve_target(parse_target(row.text).value());
    ASSERT_TRUE(target.ok()) << target.error().str();
    EXPECT_EQ(target->mtriple, row.triple);
    EXPECT_EQ(target->mabi, row.abi);
    EXPECT_EQ(target->vector_bits, row.bits);
    EXPECT_EQ(target->vector_registers, row.registers);
    // A library names its target by this text.
    auto again = resolve_target(parse_target(target->str()).value());
    ASSERT_TRUE(again.ok()) << again.error().str();
    EXPECT_EQ(again->str(), target->str());
    EXPECT_EQ(again->cpu_features, target->cpu_features);
  }
}

TEST(Processors, WhatCannotBeSaysWhy) {
  for (auto [text, said] : {
           std::pair{"llvm -mtriple=riscv64-linux-gnu -mabi=ilp32", "no ABI of RISC-V (64 bits)"},
           {"llvm -mtriple=riscv64-linux-gnu -mattr=+m -mabi=lp64d", "passes numbers in registers"},
           {"llvm -mfloat-abi=hard", "-mfloat-abi is ARM's"},
           {"llvm -mfloat-abi=harder", "-mfloat-abi=harder is not known"},
           {"llvm -num-cores=many", "no number of cores"},
           {"llvm -mtriple=riscv64-linux-gnu -mcpu=cortex-a72", "there is no RISC-V (64 bits) CPU named 'cortex-a72'"},
           {"llvm -mtriple=aarch64-linux-gnu -mattr=+avx2", "'+avx2' in -mattr is not a feature of AArch64"},
           {"llvm -mtriple=aarch64_be-linux-gnu", "there is no code generator for"},
           {"llvm -mtriple=armeb-linux-gnueabi", "there is no code generator for"},
           {"llvm -mtriple=mips-linux-gnu", "there is no code generator for"},
       }) {
    auto parsed = parse_target(text);
    auto target = parsed.ok() ? resolve_target(*parsed) : std::move(parsed);
    ASSERT_FALSE(target.ok()) << text;
    EXPECT_EQ(target.error().code, ErrorCode::kUnknownTarget);
    EXPECT_NE(target.error().str().find(said), std::string::npos) << target.error().str();
    EXPECT_FALSE(target.error().hint.empty());
  }
}

PrimFunc scaled() {
  return elementwise("scaled", {kFloat32, kFloat32}, kFloat32, 64, 4, [](auto v) { return v[0] * v[1]; });
}

plan::Plan plan_of(const Target& target) {
  plan::Plan plan;
  plan.model_name = "scaled", plan.target = target.str(), plan.kernels = {"scaled"};
  plan.inputs = {{"x", kFloat32, {64}}}, plan.outputs = {{"y", kFloat32, {64}}};
  auto buffer = [](plan::Space space) { return plan::Buffer{space, 0, 0, 256, kFloat32, {64}, "", "t"}; };
  plan.buffers = {buffer(plan::Space::kInput), buffer(plan::Space::kParams), buffer(plan::Space::kOutput)};
  plan::Step step;
  step.buffers = {0, 1, 2}, step.name = "scaled";
  plan.steps = {step};
  plan.params_bytes = 256;
  return plan;
}

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// LLD would write to a symbol that the link before this one had. (In a process of its own, since nothing links after
// it.)
TEST(Processors, NothingIsLinkedAfter32BitX86) {
  auto link_two = [] {
    TempFolder folder;
    for (bool first : {true, false}) {
      const Target target = named_target(first ? "llvm -mtriple=i686-linux-gnu" : "llvm -mtriple=x86_64-linux-gnu");
      std::vector<std::string> objects = compile_kernels(std::vector<PrimFunc>{scaled()}, target, 1).value().objects;
      objects.push_back(compile_glue(plan_of(target), target).value());
      const std::vector<std::byte> weights(256);
      const std::vector<WeightPiece> pieces{WeightPiece(std::span(weights))};
      const WeightPieces params = pieces;
      Status linked = link_shared(objects, folder.path + "/net.so", target, &params);
      if (linked.ok() != first) std::exit(1);
      if (!first) std::exit(linked.error().message.find("32-bit x86") == std::string::npos ? 2 : 0);
      const std::string file = contents(folder.path + "/net.so");
      if (elf_file_machine(std::as_bytes(std::span(file))) != "x86 (32 bits)") std::exit(3);
    }
  };
  EXPECT_EXIT(link_two(), ::testing::ExitedWithCode(0), "");
}
TEST(Processors, LibrariesAreReadWithoutBeingLoaded) {
  TempFolder folder;
  const std::vector<std::byte> weights(256);
  const std::vector<WeightPiece> pieces{WeightPiece(std::span(weights))};
  const WeightPieces params = pieces;
  for (auto [text, machine, bits, name] : {
           std::tuple{"llvm -mtriple=aarch64-linux-gnu", EM_AARCH64, 64, "AArch64"},
           {"llvm -mtriple=riscv32-unknown-linux-gnu", EM_RISCV, 32, "RISC-V (32 bits)"},
           {"llvm -mtriple=armv7a-linux-gnueabihf", EM_ARM, 32, "ARM (32 bits)"},
       }) {
    SCOPED_TRACE(text);
    const Target target = named_target(text);
    const plan::Plan plan = plan_of(target);
    std::vector<std::string> objects = compile_kernels(std::vector<PrimFunc>{scaled()}, target, 1).value().objects;
    objects.push_back(compile_glue(plan, target).value());
    const std::string path = folder.path + "/net.so";
    Status linked = link_shared(objects, path, target, &params);
    ASSERT_TRUE(linked.ok()) << linked.error().str();
    const std::string file = contents(path);
    const auto bytes = std::as_bytes(std::span(file));
    auto image = check_artifact_file(bytes, true);
    ASSERT_TRUE(image.ok()) << image.error().str();
    EXPECT_EQ(image->machine, static_cast<unsigned>(machine));
    EXPECT_EQ(image->word_bits, static_cast<unsigned>(bits));
    EXPECT_EQ(elf_file_machine(bytes), name);
    const ElfSymbol* table = image->find(kArtifactSymbol);
    ASSERT_NE(table, nullptr);
    // The pointer to the plan, behind the mark and two numbers, leads to the plan's bytes.
    const auto to = image->pointer_at(table->address + 16);
    ASSERT_TRUE(to.has_value());
    const std::string stored = plan::write_plan(plan);
    const auto at = image->file_offset(*to, stored.size());
    ASSERT_TRUE(at.has_value());
    EXPECT_EQ(file.substr(*at, stored.size()), stored);
    for (auto write : {link_relocatable, write_archive}) {
      Status made = write(objects, folder.path + "/net.o", target, &params, {});
      EXPECT_TRUE(made.ok()) << made.error().str();
    }
    // RISC-V of another word is refused: lld would link it as the first one.
    if (machine == EM_RISCV) {
      const Target other = named_target("llvm -mtriple=riscv64-linux-gnu");
      std::vector<std::string> more = compile_kernels(std::vector<PrimFunc>{scaled()}, other, 1).value().objects;
      more.push_back(compile_glue(plan_of(other), other).value());
      Status second = link_shared(more, folder.path + "/other.so", other, &params);
      ASSERT_FALSE(second.ok());
      EXPECT_NE(second.error().message.find("RISC-V"), std::string::npos) << second.error().str();
    }
    // Whatever is cut off or changed is found.
    for (size_t keep : {size_t{10}, file.size() / 2}) EXPECT_FALSE(check_artifact_file(bytes.first(keep), true).ok());
    std::string big = file;
    big[EI_DATA] = ELFDATA2MSB;
    auto foreign = read_elf(std::as_bytes(std::span(big)));
    ASSERT_FALSE(foreign.ok());
    EXPECT_EQ(foreign.error().code, ErrorCode::kCpuMismatch);
    EXPECT_NE(foreign.error().message.find("big-endian"), std::string::npos) << foreign.error().str();
  }
}

TEST(Processors, NothingLoadsLibrariesWithoutASystem) {
  TempFolder folder;
  const Target target = named_target("llvm -mtriple=arm-none-eabi -mcpu=cortex-m4");
  EXPECT_TRUE(target.mtriple.starts_with("thumb")) << target.mtriple;
  const auto objects = compile_kernels(std::vector<PrimFunc>{scaled()}, target, 1).value().objects;
  EXPECT_EQ(reinterpret_cast<const Elf32_Ehdr*>(objects[0].data())->e_machine, EM_ARM);
  Status library = link_shared(objects, folder.path + "/net.so", target);
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().code, ErrorCode::kLinkFailed);
  EXPECT_NE(library.error().hint.find(".o"), std::string::npos);
  EXPECT_TRUE(write_archive(objects, folder.path + "/net.a", target).ok());
}

}  // namespace
}  // namespace tilewright::codegen
