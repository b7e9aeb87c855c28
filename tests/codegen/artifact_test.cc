// SPDX-License-Identifier: Apache-2.0
// Targets, the table and tw_run of an artifact, weights, linking and its failures.
#include <elf.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>

#include "base/hash.h"
#include "codegen/library.h"

namespace tilewright::codegen {
namespace {

using namespace tir;

TEST(Target, HostIsResolvedOnce) {
  Target host = host_target();
  EXPECT_FALSE(host.mcpu.empty());
  EXPECT_FALSE(host.mtriple.empty());
  EXPECT_GE(host.vector_bits, 128);
  auto again = resolve_target(host);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->str(), host.str());
  EXPECT_EQ(again->cpu_features, host.cpu_features);
  auto parsed = resolve_target(parse_target(host.str()).value());
  ASSERT_TRUE(parsed.ok()) << parsed.error().str();
  EXPECT_EQ(parsed->cpu_features, host.cpu_features);
}

TEST(Target, NamedCpus) {
  auto has = [](const Target& t, const char* f) {
    return std::find(t.cpu_features.begin(), t.cpu_features.end(), f) != t.cpu_features.end();
  };
  struct Row {
    const char* text;
    int bits, registers;
  };
  for (const Row& row : {Row{"llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v2", 128, 16},
                         {"llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3", 256, 16},
                         {"llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4", 512, 32},
                         {"llvm -mtriple=x86_64-linux-gnu -mcpu=znver2", 256, 16},
                         {"llvm -mtriple=x86_64-linux-gnu -mcpu=znver4", 512, 32},
                         {"llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512", 512, 32},
                         {"llvm -mtriple=x86_64-linux-gnu -mcpu=generic", 128, 16},
                         {"llvm -mtriple=x86_64-linux-gnu -mcpu=znver4 -mattr=-avx512f", 256, 16},
                         {"llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1", 128, 32},
                         {"llvm -mtriple=aarch64-linux-gnu", 128, 32}}) {
    Target t = named_target(row.text);
    EXPECT_EQ(t.vector_bits, row.bits) << row.text;
    EXPECT_EQ(t.vector_registers, row.registers) << row.text;
  }
  EXPECT_TRUE(has(named_target("llvm -mtriple=x86_64-linux-gnu -mcpu=znver4"), "avx512vnni"));
  EXPECT_FALSE(has(named_target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v2"), "avx"));
}

TEST(Target, WhatIsUnknownSaysSo) {
  auto error = [](const char* text) {
    auto t = resolve_target(parse_target(text).value());
    return t.ok() ? "accepted" : t.error().str();
  };
  EXPECT_NE(error("llvm -mcpu=pentium9").find("E401"), std::string::npos);
  EXPECT_NE(error("llvm -mcpu=pentium9").find("'pentium9'"), std::string::npos);
  EXPECT_NE(error("llvm -mtriple=x86_64-linux-gnu -mattr=+warp").find("'+warp'"), std::string::npos);
  EXPECT_NE(error("llvm -mtriple=vax-linux-gnu").find("no code generator"), std::string::npos);
  EXPECT_NE(error("llvm -mtriple=x86_64-pc-windows-msvc").find("no code generator"), std::string::npos);
}

TEST(Target, AArch64CompilesToo) {
  auto kernel = elementwise("gelu_like", {kFloat32}, kFloat32, 64, 4, [](auto v) {
    return v[0] * intrinsic(Intrinsic::k_erf, {intrinsic(Intrinsic::k_tanh, {v[0]})});
  });
  auto result = compile_kernels(std::vector<PrimFunc>{kernel},
                                named_target("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1"), 1);
  ASSERT_TRUE(result.ok()) << result.error().str();
  EXPECT_EQ(reinterpret_cast<const Elf64_Ehdr*>(result->objects[0].data())->e_machine, EM_AARCH64);
}

// y = (x * w + b) twice through the arena: kernel "scale" with weights, then "shift" into the output.
struct SmallModel {
  static constexpr int64_t n = 48;
  std::vector<PrimFunc> kernels;
  plan::Plan plan;
  std::vector<float> weights = std::vector<float>(2 * n);
  SmallModel() {
    auto two = [](const std::string& name, auto op) {
      return elementwise(name, {kFloat32, kFloat32}, kFloat32, n, 16, op);
    };
    kernels = {two("scale", [](auto v) { return v[0] * v[1]; }), two("shift", [](auto v) { return v[0] + v[1]; })};
    plan.model_name = "small";
    plan.target = host_target().str();
    plan.kernels = {"scale", "shift"};
    plan.inputs = {{"x", kFloat32, {n}}}, plan.outputs = {{"y", kFloat32, {n}}};
    auto buffer = [](plan::Space space, uint64_t offset) {
      return plan::Buffer{space, 0, offset, n * 4, kFloat32, {n}, "", "t"};
    };
    plan.buffers = {buffer(plan::Space::kInput, 0), buffer(plan::Space::kParams, 0), buffer(plan::Space::kArena, 64),
                    buffer(plan::Space::kParams, n * 4), buffer(plan::Space::kOutput, 0)};
    auto step = [](uint32_t kernel, std::vector<uint32_t> buffers) {
      plan::Step s;
      s.kernel = kernel, s.buffers = std::move(buffers), s.name = "step";
      return s;
    };
    plan.steps = {step(0, {0, 1, 2}), step(1, {2, 3, 4})};
    plan.arena_bytes = 64 + n * 4, plan.params_bytes = 2 * n * 4;
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i) * 0.25f;
  }
  std::vector<WeightPiece> pieces() const {  // pieces need not be whole tensors
    auto all = std::as_bytes(std::span(weights));
    auto later = [this] {
      return Tensor::from<float>(kFloat32, {n}, std::span(weights).first(static_cast<size_t>(n)));
    };
    return {
        {static_cast<uint64_t>(n * 4), later}, WeightPiece(all.subspan(n * 4, 5)), WeightPiece(all.subspan(n * 4 + 5))};
  }
};

using RunFunction = int (*)(void* const*, void* const*, void*);

TEST(Artifact, RunsAPlan) {
  SmallModel model;
  auto pieces = model.pieces();
  Library library(model.kernels, model.plan, pieces);
  ASSERT_FALSE(HasFatalFailure());
  auto run = reinterpret_cast<RunFunction>(library.symbol(kRunSymbol));
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(library.symbol(kParamsSymbol), nullptr);
  EXPECT_EQ(library.symbol("scale"), nullptr) << "kernels are not exported";
  Aligned<float> x(model.n), y(model.n), arena(64);
  for (size_t i = 0; i < x.size; ++i) x[i] = static_cast<float>(i) - 20;
  void *inputs[] = {x.data}, *outputs[] = {y.data};
  EXPECT_EQ(run(inputs, outputs, arena.data), 0);
  for (size_t i = 0; i < x.size; ++i) EXPECT_EQ(y[i], x[i] * model.weights[i] + model.weights[i + model.n]) << i;

  const ArtifactTable& table = library.table();
  EXPECT_EQ(std::memcmp(table.magic, kArtifactMagic, 8), 0);
  EXPECT_EQ(table.abi, kArtifactAbi);
  EXPECT_EQ(table.table_bytes, sizeof(ArtifactTable));
  EXPECT_EQ(table.kernel_count, 2u);
  EXPECT_EQ(table.params_bytes, model.plan.params_bytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(table.params) % 4096, 0u);
  EXPECT_EQ(std::memcmp(table.params, model.weights.data(), table.params_bytes), 0);
  EXPECT_EQ(table.plan_hash, hash_bytes(table.plan, table.plan_bytes));
  auto read = plan::read_plan({static_cast<const std::byte*>(table.plan), table.plan_bytes});
  ASSERT_TRUE(read.ok()) << read.error().str();
  EXPECT_EQ(read->kernels, model.plan.kernels);
}

TEST(Artifact, ScratchIsTheArenasEnd) {
  PrimFunc keep;
  keep.name = "keep";
  Buffer scratch = make_buffer("scratch", kInt32, 4), out = make_buffer("out", kInt32, 1);
  keep.params = {out, scratch};
  keep.body =
      seq({store(scratch, make_int(2), make_int(7, kInt32)), store(out, make_int(0), load(scratch, make_int(2)))});
  plan::Plan plan;
  plan.kernels = {"keep"};
  plan.outputs = {{"y", kInt32, {1}}};
  plan.buffers = {plan::Buffer{plan::Space::kOutput, 0, 0, 4, kInt32, {1}, "", "y"},
                  plan::Buffer{plan::Space::kScratch, 0, 4, 16, kInt32, {4}, "", "scratch"}};
  plan.steps.resize(1);
  plan.steps[0].buffers = {0, 1};
  plan.arena_bytes = 192, plan.scratch_bytes = 64;
  Library library({keep}, plan, {});
  ASSERT_FALSE(HasFatalFailure());
  Aligned<int32_t> arena(48);
  int32_t value = 0;
  void* outputs[] = {&value};
  EXPECT_EQ(reinterpret_cast<RunFunction>(library.symbol(kRunSymbol))(nullptr, outputs, arena.data), 0);
  EXPECT_EQ(value, 7);
  EXPECT_EQ(arena[(192 - 64 + 4) / 4 + 2], 7);
}

TEST(Artifact, FlushesSubnormalsOnlyWhileItRuns) {
  SmallModel model;
  auto pieces = model.pieces();
  Library library(model.kernels, model.plan, pieces);
  auto run = reinterpret_cast<RunFunction>(library.symbol(kRunSymbol));
  Aligned<float> x(model.n, 1e-39f), y(model.n), arena(64);
  void *inputs[] = {x.data}, *outputs[] = {y.data};
  run(inputs, outputs, arena.data);
  EXPECT_EQ(y[1], model.weights[1 + model.n]);
  volatile float small = 1e-39f;
  EXPECT_GT(small * 0.5f, 0) << "the caller's flush mode was changed";
}

TEST(Artifact, LongPlansAreCutIntoFunctions) {
  // 1,001 increments of the arena: more steps than one function holds.
  PrimFunc increment;
  increment.name = "increment";
  Buffer count = make_buffer("count", kInt32, 1);
  increment.params = {count};
  increment.body = store(count, make_int(0), load(count, make_int(0)) + 1);
  plan::Plan plan;
  plan.kernels = {"increment"};
  plan.outputs = {{"count", kInt32, {1}}};
  plan.buffers = {plan::Buffer{plan::Space::kOutput, 0, 0, 4, kInt32, {1}, "", "count"}};
  plan.steps.resize(1001);
  for (auto& step : plan.steps) step.buffers = {0};
  Library library({increment}, plan, {});
  int32_t value = 0;
  void* outputs[] = {&value};
  reinterpret_cast<RunFunction>(library.symbol(kRunSymbol))(nullptr, outputs, nullptr);
  EXPECT_EQ(value, 1001);
}

std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> small_objects(const SmallModel& model) {
  auto objects = compile_kernels(model.kernels, host_target(), 1).value().objects;
  objects.push_back(compile_glue(model.plan, host_target()).value());
  return objects;
}

TEST(Link, SameInputSameBytes) {
  SmallModel model;
  auto pieces = model.pieces();
  WeightPieces params = pieces;
  TempFolder folder;
  std::string bytes[2];
  for (int i = 0; i < 2; ++i) {
    const std::string path = folder.path + "/" + std::to_string(i) + ".so";
    Status s = link_shared(small_objects(model), path, host_target(), &params);
    ASSERT_TRUE(s.ok()) << s.error().str();
    bytes[i] = file_bytes(path);
  }
  EXPECT_FALSE(bytes[0].empty());
  EXPECT_EQ(bytes[0], bytes[1]);
  EXPECT_EQ(bytes[0].find(folder.path), std::string::npos) << "the folder's name is in the library";
}

TEST(Link, NamesLibmOnlyWhenUsed) {
  TempFolder folder;
  auto with =
      elementwise("tangent", {kFloat32}, kFloat32, 16, 4, [](auto v) { return intrinsic(Intrinsic::k_tan, {v[0]}); });
  auto without =
      elementwise("plain", {kFloat32}, kFloat32, 16, 4, [](auto v) { return intrinsic(Intrinsic::k_exp, {v[0]}); });
  for (const auto& kernel : {with, without}) {
    auto objects = compile_kernels(std::vector<PrimFunc>{kernel}, host_target(), 1).value().objects;
    const std::string path = folder.path + "/" + kernel.name + ".so";
    Status s = link_shared(objects, path, host_target());
    ASSERT_TRUE(s.ok()) << s.error().str();
    EXPECT_EQ(file_bytes(path).find("libm.so.6") != std::string::npos, kernel.name == "tangent");
  }
}

TEST(Link, ObjectsAndArchivesForOtherLinkers) {
  SmallModel model;
  auto pieces = model.pieces();
  WeightPieces params = pieces;
  TempFolder folder;
  auto objects = small_objects(model);
  for (std::string name : {"model.o", "model.a"}) {
    auto write = [&](const std::string& path) {
      return name == "model.o" ? link_relocatable(objects, path, host_target(), &params)
                               : write_archive(objects, path, host_target(), &params);
    };
    const std::string path = folder.path + "/" + name;
    Status s = write(path);
    ASSERT_TRUE(s.ok()) << s.error().str();
    ASSERT_TRUE(write(folder.path + "/again").ok());
    EXPECT_EQ(file_bytes(path), file_bytes(folder.path + "/again"));
    std::filesystem::remove(folder.path + "/again");
    // The system's linker makes a working library of it.
    const std::string library = folder.path + "/" + name + ".so";
    const std::string command = "cc -shared -Wl,--whole-archive " + path + " -Wl,--no-whole-archive -o " + library +
                                " 2>" + folder.path + "/log";
    if (std::system("cc --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no C compiler here";
    ASSERT_EQ(std::system(command.c_str()), 0) << file_bytes(folder.path + "/log");
    void* handle = dlopen(library.c_str(), RTLD_NOW);
    ASSERT_NE(handle, nullptr) << dlerror();
    auto run = reinterpret_cast<RunFunction>(dlsym(handle, kRunSymbol));
    Aligned<float> x(model.n, 2), y(model.n), arena(64);
    void *inputs[] = {x.data}, *outputs[] = {y.data};
    run(inputs, outputs, arena.data);
    EXPECT_EQ(y[3], 2 * model.weights[3] + model.weights[3 + model.n]);
    dlclose(handle);
  }
  EXPECT_FALSE(write_archive(std::vector<std::string>{"rubbish"}, folder.path + "/bad.a", host_target()).ok());
  EXPECT_FALSE(link_relocatable(objects, folder.path + "/missing/x.o", host_target()).ok());
}

size_t entries(const std::string& folder) {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

TEST(Link, FailuresNameTheCauseAndLeaveNothing) {
  SmallModel model;
  auto objects = small_objects(model);
  TempFolder folder;
  // tw_params is missing.
  Status undefined = link_shared(objects, folder.path + "/a.so", host_target());
  ASSERT_FALSE(undefined.ok());
  EXPECT_EQ(undefined.error().code, ErrorCode::kLinkFailed);
  // The linker's own words are in a file that the hint names.
  EXPECT_EQ(undefined.error().str().find("tw_params"), std::string::npos) << undefined.error().str();
  const std::string hint = undefined.error().hint;
  const size_t from = hint.find('/'), to = hint.find(',', from);
  ASSERT_NE(to, std::string::npos) << hint;
  const std::string log = hint.substr(from, to - from);
  EXPECT_NE(file_bytes(log).find("tw_params"), std::string::npos) << log;
  std::filesystem::remove(log);
  EXPECT_EQ(entries(folder.path), 0u);
  auto pieces = model.pieces();
  WeightPieces params = pieces;
  for (std::string path : {folder.path + "/missing/a.so", std::string("/proc/a.so"), folder.path, std::string("")}) {
    Status s = link_shared(objects, path, host_target(), &params);
    ASSERT_FALSE(s.ok()) << path;
    EXPECT_EQ(s.error().code, ErrorCode::kCannotWrite) << s.error().str();
  }
  EXPECT_EQ(entries(folder.path), 0u);
  Status rubbish = link_shared(std::vector<std::string>{"not an object"}, folder.path + "/a.so", host_target());
  ASSERT_FALSE(rubbish.ok());
  EXPECT_EQ(rubbish.error().code, ErrorCode::kLinkFailed);
  EXPECT_EQ(entries(folder.path), 0u);
  // After all these failures linking still works.
  EXPECT_TRUE(link_shared(objects, folder.path + "/a.so", host_target(), &params).ok());
  EXPECT_EQ(entries(folder.path), 1u);
}

TEST(Link, FullDisk) {
  SmallModel model;
  auto objects = small_objects(model);
  auto pieces = model.pieces();
  WeightPieces params = pieces;
  TempFolder folder;
  ASSERT_TRUE(link_shared(objects, folder.path + "/a.so", host_target(), &params).ok());
  const rlim_t whole = std::filesystem::file_size(folder.path + "/a.so");
  std::filesystem::remove(folder.path + "/a.so");
  for (rlim_t limit : {rlim_t{512}, whole - 1}) {  // too small for an object; for the library alone
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGXFSZ, SIG_IGN);
      rlimit size{limit, limit};
      setrlimit(RLIMIT_FSIZE, &size);
      Status s = link_shared(objects, folder.path + "/a.so", host_target(), &params);
      _exit(s.ok() ? 100 : s.error().code == ErrorCode::kCannotWrite ? 0 : 101);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0) << limit;
    EXPECT_EQ(entries(folder.path), 0u) << limit;
  }
}

}  // namespace
}  // namespace tilewright::codegen
