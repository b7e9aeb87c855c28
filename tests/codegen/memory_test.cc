// SPDX-License-Identifier: Apache-2.0
// Loads, stores, masks, scopes, loops and branches; and what has no code says so.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "codegen/library.h"

namespace tilewright::codegen {
namespace {

using namespace tir;

TEST(Memory, MaskedTail) {
  // out[i] = in[i] + 1 for i < n by vectors of 16 with a mask: nothing outside is read or written.
  for (const Target& target : targets())
    for (DataType dtype : {kFloat32, kInt8, kInt64, kBool}) {
      constexpr int64_t n = 21;
      PrimFunc f;
      f.name = "tail";
      Buffer in = make_buffer("in", dtype, n, Scope::kGlobal, 0, true), out = make_buffer("out", dtype, n);
      f.params = {in, out};
      PrimExpr i = make_var("i"), index = ramp(i * 16, 1, 16);
      PrimExpr mask = lt(index, make_int(n, index->dtype)), value = load(in, index, mask);
      PrimExpr stored = dtype.is_bool() ? logical_not(value) : value + 1;
      f.body = make_for(i, make_int(0), make_int(2), store(out, index, stored, mask));
      Library library({f}, target);
      const size_t bytes = dtype.bytes();
      std::vector<unsigned char> a(n * bytes + 64, 0), b(n * bytes + 64, 0xee);
      library.run(0, {a.data(), b.data()});
      for (size_t k = 0; k < 64; ++k) ASSERT_EQ(b[n * bytes + k], 0xee) << dtype.str();
      for (size_t k = 0; k < static_cast<size_t>(n); ++k) {
        double got = dtype == kFloat32 ? reinterpret_cast<float*>(b.data())[k]
                     : dtype == kInt64 ? double(reinterpret_cast<int64_t*>(b.data())[k])
                                       : b[k];
        ASSERT_EQ(got, 1) << dtype.str() << " on " << target.mcpu << " at " << k;
      }
    }
}

// Whole vectors go past the caches where memory is aligned; wherever it begins the bytes are the same.
TEST(Memory, StreamedStores) {
  for (const Target& target : targets())
    for (DataType dtype : {kFloat32, kFloat16, kInt8, kInt64, kFloat64, kBool})
      for (int lanes : {1, 4, 8, 16}) {
        constexpr int64_t n = 96;
        PrimFunc f;
        f.name = "streamed";
        Buffer in = make_buffer("in", dtype, n, Scope::kGlobal, 0, true),
               out = make_buffer("out", dtype, n, Scope::kGlobal, 0, false, true);
        f.params = {in, out};
        PrimExpr i = make_var("i"), index = lanes > 1 ? ramp(i * lanes, 1, lanes) : i;
        f.body = make_for(i, make_int(0), make_int(n / lanes), store(out, index, load(in, index)));
        Library library({f}, target);
        const size_t bytes = dtype.bytes();
        std::vector<unsigned char> a(n * bytes), memory(n * bytes + 256);
        for (size_t k = 0; k < a.size(); ++k) a[k] = static_cast<unsigned char>(dtype.is_bool() ? k % 2 : k * 37 % 100);
        unsigned char* aligned = memory.data() + (-reinterpret_cast<uintptr_t>(memory.data()) & 63);
        for (size_t offset : {size_t{0}, size_t{8}, size_t{16}, size_t{32}}) {
          std::fill(memory.begin(), memory.end(), 0xee);
          library.run(0, {a.data(), aligned + offset});
          ASSERT_EQ(std::memcmp(a.data(), aligned + offset, a.size()), 0)
              << dtype.str() << " x " << lanes << " at " << offset << " on " << target.mcpu;
          ASSERT_EQ(aligned[offset + a.size()], 0xee);
        }
      }
}

TEST(Memory, StoresOfKnownLanesTouchNoOthers) {
  for (const Target& target : targets())
    for (DataType dtype : {kFloat32, kInt8, kInt64, kBool}) {
      std::vector<PrimFunc> functions;
      auto on = [](int64_t valid, size_t lane) {
        return valid == 0 ? lane % 3 == 1 : lane < static_cast<size_t>(valid);
      };
      for (int64_t valid = 0; valid < 16; ++valid) {
        PrimFunc f;
        f.name = "store_" + std::to_string(valid);
        Buffer in = make_buffer("in", dtype, 16, Scope::kGlobal, 0, true), out = make_buffer("out", dtype, 16);
        f.params = {in, out};
        PrimExpr all = ramp(make_int(0), 1, 16);
        PrimExpr mask = valid > 0 ? lt(all, make_int(valid, all->dtype))
                                  : eq(floormod(all, make_int(3, all->dtype)), make_int(1, all->dtype));
        f.body = store(out, all, load(in, all), mask);
        functions.push_back(f);
      }
      Library library(functions, target);
      const size_t bytes = dtype.bytes();
      for (int valid = 0; valid < 16; ++valid) {
        std::vector<unsigned char> a(16 * bytes, 1), b(16 * bytes, 0xee);
        library.run(valid, {a.data(), b.data()});
        for (size_t i = 0; i < 16 * bytes; ++i)
          ASSERT_EQ(b[i], on(valid, i / bytes) ? 1 : 0xee)
              << dtype.str() << " on " << target.mcpu << ", " << valid << " lanes, byte " << i;
      }
    }
}

TEST(Memory, LoadsOfKnownLanesReadNoOthers) {
  // The buffer ends behind the last lane that is on; the others are zero. Bytes and halves are loaded in pieces without
  // AVX-512.
  for (const Target& target : targets())
    for (DataType dtype : {kInt8, kInt16, kFloat32, kBool}) {
      std::vector<PrimFunc> functions;
      for (int64_t valid = 1; valid < 32; ++valid) {
        PrimFunc f;
        f.name = "load_" + std::to_string(valid);
        Buffer in = make_buffer("in", dtype, valid, Scope::kGlobal, 0, true), out = make_buffer("out", dtype, 32);
        f.params = {in, out};
        PrimExpr all = ramp(make_int(0), 1, 32);
        f.body = store(out, all, load(in, all, lt(all, make_int(valid, all->dtype))));
        functions.push_back(f);
      }
      Library library(functions, target);
      const size_t bytes = dtype.bytes();
      for (size_t valid = 1; valid < 32; ++valid) {
        std::vector<unsigned char> a(valid * bytes), b(32 * bytes, 0xee);
        for (size_t i = 0; i < a.size(); ++i) a[i] = dtype.is_bool() ? i % 3 == 0 : static_cast<unsigned char>(i + 1);
        library.run(valid - 1, {a.data(), b.data()});
        for (size_t i = 0; i < b.size(); ++i)
          ASSERT_EQ(b[i], i < a.size() ? a[i] : 0)
              << dtype.str() << " on " << target.mcpu << ", " << valid << " lanes, byte " << i;
      }
    }
}

template <class From, class To>
void converts(DataType from, DataType to, const std::vector<From>& values) {
  for (const Target& target : targets()) {
    PrimFunc f;
    f.name = "convert";
    const auto n = static_cast<int64_t>(values.size());
    Buffer in = make_buffer("in", from, n, Scope::kGlobal, 0, true), out = make_buffer("out", to, n);
    f.params = {in, out};
    PrimExpr i = make_var("i"), index = ramp(i * 8, 1, 8);
    f.body = make_for(i, make_int(0), make_int(n / 8), store(out, index, cast(to.with_lanes(8), load(in, index))));
    Library library({f}, target);
    std::vector<From> a = values;
    std::vector<To> b(values.size());
    library.run(0, {a.data(), b.data()});
    for (size_t k = 0; k < a.size(); ++k)
      ASSERT_EQ(b[k], static_cast<To>(a[k])) << a[k] << " as " << to.str() << " on " << target.mcpu;
  }
}

TEST(Memory, FloatsBecomeWideIntegers) {
  // Around the powers of two where conversions by halves carry, and fractions on both sides of zero.
  std::vector<double> whole = {0, 0.5, 0.99, 1, 1.5, 2.5, 8388607.5, 16777215, 2147483520, 2147483648, 4294967040};
  std::vector<double> wide = {4294967295,       4294967296,
                              4294967297,       8589934591.5,
                              9007199254740991, 9007199254740994,
                              0x1p62,           9223372036854774784.0,
                              0x1.8p33,         1e15,
                              123456789012.75};
  auto filled = [](std::vector<double> v, double sign) {
    for (double& x : v) x *= sign;
    for (size_t i = 0; v.size() % 8 != 0; ++i) v.push_back(v[i]);
    return v;
  };
  auto narrow = [](const std::vector<double>& v) { return std::vector<float>(v.begin(), v.end()); };
  std::vector<double> all = whole;
  all.insert(all.end(), wide.begin(), wide.end());
  converts<float, uint32_t>(kFloat32, kUInt32, narrow(filled(whole, 1)));
  converts<double, uint32_t>(kFloat64, kUInt32, filled(whole, 1));
  converts<double, uint64_t>(kFloat64, kUInt64, filled(all, 1));
  for (double sign : {1, -1}) {
    converts<double, int64_t>(kFloat64, kInt64, filled(all, sign));
    converts<float, int64_t>(kFloat32, kInt64, narrow(filled(whole, sign)));
  }
  converts<double, uint64_t>(kFloat64, kUInt64, filled({0x1p63, 0x1.8p63, 18446744073709549568.0}, 1));
}

TEST(Memory, GatherAndScatterWithMasks) {
  for (const Target& target : targets()) {
    PrimFunc f;
    f.name = "permute";
    Buffer in = make_buffer("in", kFloat32, 16, Scope::kGlobal, 0, true),
           where = make_buffer("where", kInt64, 16, Scope::kGlobal, 0, true);
    Buffer out = make_buffer("out", kFloat32, 16), back = make_buffer("back", kFloat32, 16);
    f.params = {in, where, out, back};
    PrimExpr all = ramp(make_int(0), 1, 16), index = load(where, all);
    PrimExpr mask = ge(index, make_int(0, index->dtype));
    f.body = seq({store(out, all, load(in, index, mask)), store(back, index, load(in, all), mask)});
    Library library({f}, target);
    Aligned<float> a(16), b(16, 9), c(16, 9);
    Aligned<int64_t> w(16);
    for (size_t i = 0; i < 16; ++i)
      a[i] = static_cast<float>(i) + 1, w[i] = i % 3 == 0 ? -1000000 : static_cast<int64_t>((i * 5) % 16);
    library.run(0, {a.data, w.data, b.data, c.data});
    std::vector<float> scattered(16, 9);
    for (size_t i = 0; i < 16; ++i)
      if (w[i] >= 0) scattered[static_cast<size_t>(w[i])] = a[i];
    for (size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(b[i], w[i] < 0 ? 0 : a[static_cast<size_t>(w[i])]) << i;
      EXPECT_EQ(c[i], scattered[i]) << i;
    }
  }
}

TEST(Memory, StackScratchLoopsAndBranches) {
  // A prefix sum kept in scratch memory, rows of a triangle, a branch and a let per row, tid and nthreads.
  PrimFunc f;
  f.name = "triangle";
  f.tid = make_var("tid"), f.nthreads = make_var("nthreads");
  constexpr int64_t n = 13;
  Buffer out = make_buffer("out", kInt32, n), scratch = make_buffer("scratch", kInt32, n, Scope::kStack, 64);
  f.params = {out};
  PrimExpr r = make_var("r"), k = make_var("k"), s = make_var("s", kInt32), rows = make_var("rows");
  Stmt fill = make_for(k, make_int(0), make_int(n), store(scratch, k, cast(kInt32, k * k)));
  PrimExpr total = make_var("total");
  Buffer sum = make_buffer("sum", kInt32, 1, Scope::kRegister);
  Stmt add = make_for(k, make_int(0), r + 1, store(sum, make_int(0), load(sum, make_int(0)) + load(scratch, k)));
  Stmt finish =
      let_stmt(s, load(sum, make_int(0)),
               make_if(eq(floormod(r, 2), make_int(0)), store(out, r, s), store(out, r, make_int(0, kInt32) - s)));
  Stmt row = allocate(sum, seq({store(sum, make_int(0), make_int(0, kInt32)), add, finish}));
  Stmt mine = make_for(rows, make_int(0), floordiv(make_int(n) - f.tid + f.nthreads - 1, f.nthreads),
                       let_stmt(r, rows * f.nthreads + f.tid, row));
  f.body = allocate(scratch, seq({fill, mine}));
  Library library({f});
  for (int threads : {1, 2, 5}) {
    Aligned<int32_t> got(n, 77);
    for (int t = 0; t < threads; ++t) library.run(0, {got.data}, t, threads);
    int want = 0;
    for (int i = 0; i < n; ++i) {
      want += i * i;
      EXPECT_EQ(got[static_cast<size_t>(i)], i % 2 ? -want : want) << threads << " threads, row " << i;
    }
  }
}

TEST(Memory, ChoiceEvaluatesOneSide) {
  // if_then_else guards an access outside the buffer.
  PrimFunc f;
  f.name = "guarded";
  Buffer in = make_buffer("in", kFloat32, 4, Scope::kGlobal, 0, true), out = make_buffer("out", kFloat32, 8);
  f.params = {in, out};
  PrimExpr i = make_var("i");
  PrimExpr inside = load(in, i * (int64_t{1} << 40));
  f.body = make_for(i, make_int(0), make_int(8),
                    store(out, i, intrinsic(Intrinsic::k_if_then_else, {lt(i, make_int(1)), inside, make_float(-1)})));
  Library library({f});
  Aligned<float> a(4, 3), b(8);
  library.run(0, {a.data, b.data});
  EXPECT_EQ(b[0], 3);
  EXPECT_EQ(b[7], -1);
}

TEST(Memory, KernelWithoutShareRunsOnThreadZeroOnly) {
  PrimFunc f;
  f.name = "once";
  Buffer out = make_buffer("out", kInt32, 1);
  f.params = {out};
  f.body = store(out, make_int(0), load(out, make_int(0)) + 1);
  Library library({f});
  int32_t count = 0;
  library.run(0, {&count}, 0, 2);
  library.run(0, {&count}, 1, 2);
  EXPECT_EQ(count, 1);
}

std::string message(const PrimFunc& f) {
  auto result = compile_kernels(std::vector<PrimFunc>{f}, host_target(), 1);
  return result.ok() ? "compiled" : result.error().str();
}

TEST(Memory, WhatHasNoCodeSaysSo) {
  Buffer out = make_buffer("out", kFloat32, 4);
  PrimExpr i = make_var("i"), stray = make_var("stray");
  PrimFunc f{.name = "bad", .params = {out}};
  f.body = store(out, stray, make_float(1));
  EXPECT_NE(message(f).find("variable 'stray'"), std::string::npos) << message(f);
  Buffer tile = make_buffer("tile", kFloat32, 4, Scope::kRegister);
  f.body = allocate(tile, make_for(i, make_int(0), make_int(4), store(tile, i, make_float(0))));
  EXPECT_NE(message(f).find("register buffer 'tile' is indexed by a variable"), std::string::npos) << message(f);
  f.body = allocate(tile, make_for(i, make_int(0), make_int(4), store(tile, i, make_float(0)), ForKind::kUnrolled));
  EXPECT_EQ(message(f), "compiled");
  f.body = store(make_buffer("elsewhere", kFloat32, 4), make_int(0), make_float(1));
  EXPECT_NE(message(f).find("'elsewhere' is neither a parameter nor allocated"), std::string::npos) << message(f);
  Buffer text = make_buffer("text", kString, 4),
         low = make_buffer("low", {TypeCode::kComplex, 64, 1}, 4, Scope::kGlobal, 0, true);
  Buffer pairs = make_buffer("pairs", {TypeCode::kComplex, 64, 1}, 4);
  f.params = {pairs, low};
  f.body = store(pairs, make_int(0), load(low, make_int(0)));
  EXPECT_NE(message(f).find("no complex64"), std::string::npos) << message(f);
  f.params = {out};
  Buffer huge = make_buffer("huge", kFloat32, 1 << 20, Scope::kStack);
  f.body = allocate(huge, store(out, make_int(0), make_float(0)));
  EXPECT_NE(message(f).find("stack buffers up to 'huge'"), std::string::npos) << message(f);
  f.body = store(out, make_int(0), make_float(0));
  auto twice = compile_kernels(std::vector<PrimFunc>{f, f}, host_target(), 1);
  ASSERT_FALSE(twice.ok());
  EXPECT_NE(twice.error().message.find("two kernels are named 'bad'"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::codegen
