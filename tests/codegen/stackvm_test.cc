// SPDX-License-Identifier: Apache-2.0
// Byte code: what it computes against the interpreter of the loop IR, and what a program may not do.
#include <cmath>
#include <cstring>

#include "base/formats/stackvm.h"
#include "codegen/library.h"
#include "codegen/stackvm/assembler.h"
#include "runtime/stackvm/machine.h"
#include "tir/cases.h"
#include "tir/passes/legalize_small_floats.h"
#include "tir/passes/legalize_sub_bytes.h"
#include "tir/passes/lower_kernel.h"
#include "tir/passes/simplify.h"
#include "tir/random_kernel.h"

namespace tilewright::codegen {
namespace {

using ByteCodeMemory = std::vector<std::vector<std::byte>>;

// As the backend compiles it, written to bytes and read back.
Result<stackvm::Program> byte_code_of(const tir::PrimFunc& function) {
  const Target target = named_target("stackvm");
  Kernels made = TW_TRY(compile_kernels({&function, 1}, target, 1));
  return stackvm::read_program(made.objects[0]);
}

ByteCodeMemory seeded(tir::PrimFunc f, unsigned seed) {
  f.body = tir::seq({});
  return tir::run_on_random(f, seed);
}

std::vector<void*> addresses(ByteCodeMemory* memory) {
  std::vector<void*> out;
  for (auto& bytes : *memory) out.push_back(bytes.data());
  return out;
}

testing::AssertionResult close_to(const std::vector<std::byte>& want, const std::vector<std::byte>& got,
                                  DataType dtype) {
  if (want == got) return testing::AssertionSuccess();
  if (!(dtype == kFloat32)) return testing::AssertionFailure() << dtype.str() << " bytes differ";
  std::vector<float> a(want.size() / 4), b(want.size() / 4);
  std::memcpy(a.data(), want.data(), a.size() * 4), std::memcpy(b.data(), got.data(), b.size() * 4);
  float scale = 1;
  for (float v : a)
    if (std::isfinite(v)) scale = std::max(scale, std::fabs(v));
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || std::fabs(a[i]) > 1e30f || std::fabs(b[i]) > 1e30f) continue;
    if (!(std::fabs(a[i] - b[i]) <= 1e-5f * scale))
      return testing::AssertionFailure() << "element " << i << ": " << b[i] << " instead of " << a[i];
  }
  return testing::AssertionSuccess();
}

TEST(ByteCode, RandomKernelsMatchTheInterpreter) {
  constexpr int kThreads = 2;
  int wrote = 0, all = 0;
  for (unsigned seed = 0; seed < 250; ++seed) {
    SCOPED_TRACE(seed);
    const tir::PrimFunc source = tir::RandomKernel(seed, /*whiles=*/false).function();
    const tir::PrimFunc kernel = tir::lower_kernel(source).value();
    auto program = byte_code_of(kernel);
    ASSERT_TRUE(program.ok()) << program.error().str() << "\n" << tir::to_text(kernel);
    const std::string text = stackvm::to_text(*program);
    const stackvm::Code code(std::move(*program));
    std::string error;
    const ByteCodeMemory want = tir::run_on_random(source, seed, &error, kThreads);
    ASSERT_TRUE(error.empty()) << error;
    ByteCodeMemory got = seeded(source, seed);
    const auto buffers = addresses(&got);
    for (int t = 0; t < kThreads; ++t) {
      const Status status = code.run(buffers.data(), nullptr, t, kThreads);
      ASSERT_TRUE(status.ok()) << status.error().str() << "\n" << tir::to_text(kernel) << text;
    }
    for (size_t p = 0; p < got.size(); ++p)
      ASSERT_TRUE(close_to(want[p], got[p], source.params[p]->dtype)) << source.params[p]->name << "\n"
                                                                      << tir::to_text(kernel) << text;
    wrote += want[3] != seeded(source, seed)[3], ++all;
  }
  EXPECT_GT(wrote * 2, all) << "too few kernels wrote anything";
}

// One value of each dtype through memory, conversion and reinterpretation: as the interpreter has it.
TEST(ByteCode, DtypesMatchTheInterpreter) {
  using namespace tir;
  const DataType types[] = {kFloat32,
                            kFloat64,
                            kFloat16,
                            kBFloat16,
                            kInt8,
                            kInt16,
                            kInt32,
                            kInt64,
                            kUInt8,
                            kUInt16,
                            kUInt32,
                            kUInt64,
                            kBool,
                            {TypeCode::kFloat8E4M3FN, 8, 1},
                            {TypeCode::kFloat8E5M2, 8, 1},
                            {TypeCode::kInt, 4, 1},
                            {TypeCode::kUInt, 4, 1}};
  for (DataType from : types)
    for (DataType to : types)
      for (int lanes : {1, 3, 16}) {
        SCOPED_TRACE(from.str() + " to " + to.str() + " x " + std::to_string(lanes));
        const int64_t n = 48;
        Buffer in = make_buffer("in", from, n, tir::Scope::kGlobal, 0, true), out = make_buffer("out", to, n);
        PrimExpr i = make_var("i"), index = lanes == 1 ? i : ramp(i * lanes, 1, lanes);
        PrimFunc f;
        f.name = "convert", f.params = {in, out};
        f.body = make_for(i, make_int(0), make_int(n / lanes),
                          store(out, index, cast(to.with_lanes(lanes), load(in, index))));
        auto program = byte_code_of(f);
        ASSERT_TRUE(program.ok()) << program.error().str();
        std::string error;
        const ByteCodeMemory want = tir::run_on_random(f, 5, &error);
        ASSERT_TRUE(error.empty()) << error;
        ByteCodeMemory got = seeded(f, 5);
        const Status status = stackvm::Code(std::move(*program)).run(addresses(&got).data(), nullptr, 0, 1);
        ASSERT_TRUE(status.ok()) << status.error().str();
        ASSERT_EQ(want[1], got[1]);
      }
}

TEST(ByteCode, FunctionsMatchTheInterpreter) {
  using namespace tir;
  for (DataType type : {kFloat32, kFloat64})
    for (int op = 0; op <= static_cast<int>(Intrinsic::k_fmod); ++op)
      for (int lanes : {1, 16}) {
        const auto which = static_cast<Intrinsic>(op);
        SCOPED_TRACE(intrinsic_name(which));
        Buffer in = make_buffer("in", type, 64, tir::Scope::kGlobal, 0, true), out = make_buffer("out", type, 64);
        PrimExpr i = make_var("i"), index = lanes == 1 ? i : ramp(i * lanes, 1, lanes);
        std::vector<PrimExpr> args(static_cast<size_t>(intrinsic_arity(which)), load(in, index));
        PrimFunc f;
        f.name = "function", f.params = {in, out};
        f.body = make_for(i, make_int(0), make_int(64 / lanes), store(out, index, intrinsic(which, args)));
        std::string error;
        const ByteCodeMemory want = tir::run_on_random(f, 9, &error);
        ByteCodeMemory got = seeded(f, 9);
        ASSERT_TRUE(stackvm::Code(byte_code_of(f).value()).run(addresses(&got).data(), nullptr, 0, 1).ok());
        for (int k = 0; k < 64; ++k) {
          double a = 0, b = 0;
          if (type == kFloat32) {
            a = static_cast<double>(reinterpret_cast<const float*>(want[1].data())[k]);
            b = static_cast<double>(reinterpret_cast<const float*>(got[1].data())[k]);
          } else {
            a = reinterpret_cast<const double*>(want[1].data())[k],
            b = reinterpret_cast<const double*>(got[1].data())[k];
          }
          ASSERT_EQ(std::isnan(a), std::isnan(b)) << k;
          if (std::isnan(a) || a == b) continue;
          ASSERT_LE(std::fabs(a - b), (type == kFloat32 ? 3e-7 : 1e-15) * std::max(1.0, std::fabs(a))) << k;
        }
      }
}

// What is the same in every turn of a loop is computed before it.
TEST(ByteCode, LoopsHoldOnlyWhatChanges) {
  using namespace tir;
  Buffer in = make_buffer("in", kFloat32, 1024, tir::Scope::kGlobal, 0, true), out = make_buffer("out", kFloat32, 1024);
  PrimExpr i = make_var("i"), j = make_var("j");
  PrimFunc f;
  f.name = "rows", f.params = {in, out};
  f.body = make_for(i, make_int(0), make_int(32),
                    make_for(j, make_int(0), make_int(32),
                             store(out, i * 32 + j, load(in, floormod(i * 7 + 3, 32) * 32 + j) * make_float(2.0f))));
  const stackvm::Program program = byte_code_of(f).value();
  size_t inner = 0, ends = 0;
  for (const auto& n : program.code) {
    if (n.op == stackvm::Op::kEndLoop) ++ends;
    if (n.op == stackvm::Op::kLoop) inner = 0;
    if (ends == 0) ++inner;
  }
  EXPECT_LE(inner, 6u) << stackvm::to_text(program);  // the loop, two sums, load, product, store
}

stackvm::Program small_program() {
  using stackvm::Op;
  stackvm::Program p;
  p.name = "small", p.parameters = 1, p.frame_bytes = 64, p.tid = 0, p.nthreads = 8;
  p.memories = {{64, false, true}};
  auto add = [&](Op op, uint32_t to, uint32_t a, uint32_t b, uint32_t c, int64_t value) {
    stackvm::Instruction n;
    n.op = op, n.to = to, n.a = a, n.b = b, n.c = c, n.value = value;
    p.code.push_back(n);
  };
  add(Op::kConstQ, 16, 0, 0, 0, 0);
  add(Op::kConstQ, 24, 0, 0, 0, 16);
  add(Op::kLoop, 32, 16, 24, 40, 5);
  add(Op::kLoad, 48, 32, 0, 0, 0);
  add(Op::kStore, 48, 32, 0, 0, 0);
  add(Op::kEndLoop, 32, 0, 0, 40, 2);
  add(Op::kEnd, 0, 0, 0, 0, 0);
  return p;
}

std::string refusal(const stackvm::Program& p) {
  auto read = stackvm::read_program(stackvm::write_program(p));
  return read.ok() ? "" : read.error().message;
}

TEST(ByteCode, ProgramsAreCheckedWhenTheyAreRead) {
  ASSERT_EQ(refusal(small_program()), "");
  auto wrong = [](auto change) {
    stackvm::Program p = small_program();
    change(&p);
    return refusal(p);
  };
  EXPECT_NE(wrong([](auto* p) { p->code[3].to = 64; }).find("outside of the frame"), std::string::npos);
  EXPECT_NE(wrong([](auto* p) { p->code[3].to = 49; }).find("outside of the frame"), std::string::npos);
  EXPECT_NE(wrong([](auto* p) { p->code[3].c = 1; }).find("not there"), std::string::npos);
  EXPECT_NE(wrong([](auto* p) { p->memories[0].written = false; }).find("writes into"), std::string::npos);
  EXPECT_NE(wrong([](auto* p) { p->code[3].lanes = 0; }).find("lanes"), std::string::npos);
  EXPECT_NE(wrong([](auto* p) { p->code[2].value = 6; }).find("no end"), std::string::npos);
  EXPECT_NE(wrong([](auto* p) { p->code[5].value = 4; }).find("no end"), std::string::npos);
  EXPECT_NE(wrong([](auto* p) { p->code.pop_back(); }).find("no end"), std::string::npos);
  EXPECT_NE(wrong([](auto* p) { p->frame_bytes = 1u << 30; }).find("frame"), std::string::npos);
}

TEST(ByteCode, AccessesAndLoopsAreBoundedWhenTheyRun) {
  std::vector<float> memory(16, 1.0f);
  void* buffers[] = {memory.data()};
  ASSERT_TRUE(stackvm::Code(small_program()).run(buffers, nullptr, 0, 1).ok());
  for (auto [value, count] : {std::pair<int64_t, int64_t>{1, 16}, {-1, 16}, {INT64_MAX, 2}, {INT64_MIN, 2}, {0, 17}}) {
    stackvm::Program p = small_program();
    p.code[3].value = value, p.code[1].value = count;
    const Status status = stackvm::Code(std::move(p)).run(buffers, nullptr, 0, 1);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kBadArtifact);
    EXPECT_NE(status.error().message.find("outside of its memory"), std::string::npos);
  }
  const Status late = stackvm::Code(small_program()).run(buffers, nullptr, 0, 1, 10);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, ErrorCode::kLimitExceeded);
  const uint64_t less[] = {60};
  EXPECT_FALSE(stackvm::Code(small_program()).run(buffers, less, 0, 1).ok());
}

TEST(ByteCode, WhatItHasNotIsRefusedByName) {
  using namespace tir;
  Buffer out = make_buffer("out", kFloat32, 4);
  PrimFunc f;
  f.name = "calls", f.params = {out};
  f.body = store(out, make_int(0), extern_value(kFloat32, "powf", {make_float(2.0f), make_float(3.0f)}));
  auto program = byte_code_of(f);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().code, ErrorCode::kUnsupportedModel);
  EXPECT_NE(program.error().message.find("powf"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::codegen
