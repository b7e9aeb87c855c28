// SPDX-License-Identifier: Apache-2.0
// Kernels compiled, linked and loaded into the test, the way a user's artifact is.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/formats/artifact.h"
#include "codegen/codegen.h"

namespace tilewright::codegen {

inline Target host_target() {
  static const Target target = resolve_target({}).value();
  return target;
}
inline Target named_target(const std::string& text) { return resolve_target(parse_target(text).value()).value(); }

inline bool runs_here(const Target& target) {
  for (const std::string& f : target.cpu_features)
    if (std::find(host_target().cpu_features.begin(), host_target().cpu_features.end(), f) ==
        host_target().cpu_features.end())
      return false;
  return target.mtriple == host_target().mtriple;
}

// This machine and older ones whose code it runs.
inline std::vector<Target> targets() {
  std::vector<Target> out{host_target()};
  for (const char* text : {"llvm -mcpu=x86-64-v2", "llvm -mcpu=x86-64-v3"})
    if (Target t = named_target(text); runs_here(t)) out.push_back(t);
  return out;
}

struct TempFolder {
  std::string path;
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tw_codegen_XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path); }
};

class Library {
 public:
  explicit Library(const std::vector<tir::PrimFunc>& functions, const Target& target = host_target()) {
    plan::Plan plan;
    for (const auto& f : functions) plan.kernels.push_back(f.name);
    load(functions, plan, {}, target);
  }
  Library(const std::vector<tir::PrimFunc>& functions, const plan::Plan& plan, WeightPieces params,
          const Target& target = host_target()) {
    load(functions, plan, params, target);
  }
  ~Library() {
    if (handle_) dlclose(handle_);
  }
  void run(size_t kernel, std::vector<void*> buffers, int64_t tid = 0, int64_t threads = 1) const {
    table().kernels[kernel](buffers.data(), tid, threads);
  }
  const ArtifactTable& table() const { return *static_cast<const ArtifactTable*>(dlsym(handle_, kArtifactSymbol)); }
  void* symbol(const char* name) const { return dlsym(handle_, name); }

 private:
  void load(const std::vector<tir::PrimFunc>& functions, const plan::Plan& plan, WeightPieces params,
            const Target& target) {
    auto kernels = compile_kernels(functions, target, 1);
    ASSERT_TRUE(kernels.ok()) << kernels.error().str();
    auto glue = compile_glue(plan, target);
    ASSERT_TRUE(glue.ok()) << glue.error().str();
    kernels->objects.push_back(*glue);
    TempFolder folder;
    const std::string path = folder.path + "/kernels.so";
    Status linked = link_shared(kernels->objects, path, target, &params);
    ASSERT_TRUE(linked.ok()) << linked.error().str();
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle_, nullptr) << dlerror();
  }
  void* handle_ = nullptr;
};

// A vector over 64-byte aligned memory.
template <class T>
struct Aligned {
  explicit Aligned(size_t n, T value = {})
      : size(n), data(static_cast<T*>(std::aligned_alloc(64, (n * sizeof(T) + 127) / 64 * 64))) {
    for (size_t i = 0; i < n; ++i) data[i] = value;
  }
  Aligned(const Aligned&) = delete;
  ~Aligned() { std::free(data); }
  T& operator[](size_t i) { return data[i]; }
  size_t size;
  T* data;
};

// out[i] = f(in0[i], in1[i], ...) over n elements, `lanes` at a time.
template <class F>
tir::PrimFunc elementwise(const std::string& name, std::vector<DataType> inputs, DataType output, int64_t n, int lanes,
                          F f) {
  tir::PrimFunc out;
  out.name = name;
  std::vector<tir::PrimExpr> loads;
  tir::PrimExpr i = tir::make_var("i");
  tir::PrimExpr index = tir::ramp(i * lanes, 1, lanes);
  for (size_t k = 0; k < inputs.size(); ++k) {
    tir::Buffer buffer = tir::make_buffer("in" + std::to_string(k), inputs[k], n, tir::Scope::kGlobal, 64, true);
    out.params.push_back(buffer);
    loads.push_back(tir::load(buffer, index));
  }
  tir::Buffer result = tir::make_buffer("out", output, n, tir::Scope::kGlobal, 64);
  out.params.push_back(result);
  out.body = tir::make_for(i, tir::make_int(0), tir::make_int(n / lanes), tir::store(result, index, f(loads)));
  return out;
}

}  // namespace tilewright::codegen
