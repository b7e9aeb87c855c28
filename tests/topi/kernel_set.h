// SPDX-License-Identifier: Apache-2.0
// Compiles kernels in memory order, loads them, and runs them on buffers of floats.
#pragma once
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>

#include "base/format.h"
#include "base/formats/artifact.h"
#include "base/formats/plan.h"
#include "codegen/codegen.h"
#include "topi/view.h"

namespace tilewright::topi::testing {

// The host, or what TW_TEST_TARGET says: narrower vectors and fewer registers run on wider machines.
inline const Target& host_target() {
  static const Target target = [] {
    const char* text = std::getenv("TW_TEST_TARGET");
    return codegen::resolve_target(parse_target(text ? text : "llvm").value()).value();
  }();
  return target;
}

// 64-byte aligned storage with guard bands that must stay untouched.
class Memory {
 public:
  explicit Memory(int64_t elements, float fill = 0) : size_(elements), storage_(elements + 2 * kGuard + 16) {
    auto address = reinterpret_cast<uintptr_t>(storage_.data() + kGuard);
    base_ = reinterpret_cast<float*>((address + 63) / 64 * 64);
    std::fill(storage_.begin(), storage_.end(), kCanary);
    std::fill(base_, base_ + size_, fill);
  }
  float* data() { return base_; }
  float& operator[](int64_t i) { return base_[i]; }
  float operator[](int64_t i) const { return base_[i]; }
  int64_t size() const { return size_; }
  bool intact() const {
    for (const float* p = storage_.data(); p < base_; ++p)
      if (*p != kCanary) return false;
    for (const float* p = base_ + size_; p < storage_.data() + storage_.size(); ++p)
      if (*p != kCanary) return false;
    return true;
  }
  void randomize(uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int64_t i = 0; i < size_; ++i) base_[i] = uniform(random);
  }

 private:
  static constexpr int64_t kGuard = 64;
  static constexpr float kCanary = -12345.5f;
  int64_t size_;
  std::vector<float> storage_;
  float* base_;
};

// A view with a halo of `before`/`after` zeros around some dimensions, in a buffer of its own.
inline View view_with_halo(const char* name, const std::vector<int64_t>& shape, const std::vector<int64_t>& before,
                           const std::vector<int64_t>& after, DataType dtype = kFloat32, bool read_only = false) {
  std::vector<int64_t> physical = shape;
  for (size_t i = 0; i < shape.size(); ++i) physical[i] += before[i] + after[i];
  View view = make_view(tir::make_buffer(name, dtype, product(physical), tir::Scope::kGlobal, 64, read_only), physical);
  view.shape = shape;
  for (size_t i = 0; i < shape.size(); ++i) view.offset += before[i] * view.strides[i];
  view.halo_before = before, view.halo_after = after;
  return view;
}

inline int64_t flat_at(const View& view, const std::vector<int64_t>& index) {
  int64_t at = view.offset;
  for (size_t i = 0; i < index.size(); ++i) at += index[i] * view.strides[i];
  return at;
}

// Every index of `shape` in row-major order.
inline void for_each_index(const std::vector<int64_t>& shape,
                           const std::function<void(const std::vector<int64_t>&)>& f) {
  std::vector<int64_t> index(shape.size(), 0);
  if (product(shape) == 0) return;
  while (true) {
    f(index);
    int d = static_cast<int>(shape.size()) - 1;
    for (; d >= 0; --d) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

// A set of kernels compiled together: compile once, then run each.
class KernelSet {
 public:
  explicit KernelSet(Target target = host_target()) : target_(std::move(target)) {}
  ~KernelSet() {
    if (library_) dlclose(library_);
  }
  const Target& target() const { return target_; }
  // `body` builds the kernel from a context; returns its number.
  int add(const std::vector<tir::Buffer>& params, const std::function<tir::Stmt(const KernelContext&)>& body) {
    tir::PrimExpr tid = tir::make_var("tid"), nthreads = tir::make_var("nthreads");
    KernelContext context{&target_, tid, nthreads};
    functions_.push_back({format("kernel_{}", functions_.size()), params, tid, nthreads, body(context)});
    return static_cast<int>(functions_.size()) - 1;
  }
  void build() {
    auto kernels = codegen::compile_kernels(functions_, target_, 2);
    TW_ICHECK(kernels.ok(), kernels.ok() ? "" : kernels.error().str());
    char path[] = "/tmp/topi_test_XXXXXX";
    int file = mkstemp(path);
    TW_ICHECK(file >= 0, path);
    close(file);
    plan::Plan plan;
    for (const auto& f : functions_) plan.kernels.push_back(f.name);
    auto glue = codegen::compile_glue(plan, target_);
    TW_ICHECK(glue.ok(), glue.ok() ? "" : glue.error().str());
    std::vector<std::string> objects = std::move(kernels->objects);
    objects.push_back(std::move(*glue));
    const codegen::WeightPieces no_weights;
    Status linked = codegen::link_shared(objects, path, target_, &no_weights);
    TW_ICHECK(linked.ok(), linked.ok() ? "" : linked.error().str());
    library_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    TW_ICHECK(library_, dlerror());
    table_ = static_cast<const ArtifactTable*>(dlsym(library_, kArtifactSymbol));
    TW_ICHECK(table_ && table_->kernel_count == functions_.size(), "kernel table");
  }
  KernelFunction function(int number) const { return table_->kernels[number]; }
  const tir::PrimFunc& prim_func(int number) const { return functions_[number]; }
  // Runs all shares of a team of `threads`, one after another in reverse order.
  void run(int number, const std::vector<void*>& buffers, int threads) const {
    KernelFunction f = function(number);
    for (int t = threads - 1; t >= 0; --t) f(buffers.data(), t, threads);
  }

 private:
  Target target_;
  std::vector<tir::PrimFunc> functions_;
  void* library_ = nullptr;
  const ArtifactTable* table_ = nullptr;
};

}  // namespace tilewright::topi::testing
