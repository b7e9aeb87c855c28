// SPDX-License-Identifier: Apache-2.0
// Makes real artifacts for tests: a plan and a few kernels in C, compiled to a shared library by the system's compiler.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "base/format.h"
#include "base/formats/artifact.h"
#include "base/formats/plan.h"
#include "base/formats/seal.h"
#include "base/hash.h"

namespace tilewright::testing {

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// A folder that lives as long as the object.
class TempFolder {
 public:
  TempFolder() {
    char name[] = "/tmp/tw_test_XXXXXX";
    path_ = mkdtemp(name);
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

struct ArtifactSource {
  plan::Plan plan;
  std::string kernels;  // C functions named as in plan.kernels
  std::vector<float> params;
  bool seal = true;
  std::string symbol = kArtifactSymbol;
  unsigned abi = kArtifactAbi;
  unsigned long long hash_error = 0;
};

inline std::string byte_list(const void* data, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += format("{},", static_cast<const unsigned char*>(data)[i]);
  return out.empty() ? "0" : out;
}

inline void make_artifact(const ArtifactSource& a, const std::string& path) {
  std::string plan = plan::write_plan(a.plan);
  std::string c = "#include <stdint.h>\n" + a.kernels;
  c += "\ntypedef void (*kernel)(void* const*, int64_t, int64_t);\nstatic const kernel kernels[] = {";
  for (const auto& k : a.plan.kernels) c += k + ",";
  c += "};\n__attribute__((aligned(64))) const unsigned char tw_plan[] = {" + byte_list(plan.data(), plan.size()) +
       "};\n";
  size_t listed = a.params.size();  // zeros at the end go without saying
  while (listed > 0 && a.params[listed - 1] == 0) --listed;
  c += format("__attribute__((aligned(4096), section(\".tw_params\"))) const unsigned char tw_params[{}] = {{{}}};\n",
              std::max<size_t>(a.params.size() * 4, 1), byte_list(a.params.data(), listed * 4));
  c += format(
      "const struct {{ char magic[8]; uint32_t abi, table_bytes; const void* plan; uint64_t plan_bytes; const void* "
      "params;"
      " uint64_t params_bytes; const kernel* kernels; uint64_t kernel_count, plan_hash; const void* sets; uint64_t "
      "set_count; }} {} = {{ {{{}}}, {}, {}, "
      "tw_plan, {},"
      " tw_params, {}, kernels, {}, {}ull, 0, 0 }};\n",
      a.symbol, byte_list(kArtifactMagic, 8), a.abi, sizeof(ArtifactTable), plan.size(), a.params.size() * 4,
      a.plan.kernels.size(), hash_bytes(plan.data(), plan.size()) + a.hash_error);
  write_file(path + ".c", c);
  std::string made = path + ".tmp";  // renamed at the end: a loaded library must never be written to
  std::string command = format("cc -O1 -w -shared -fPIC -nostdlib -o {} {}.c", made, path);
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  if (a.seal) {
    Status sealed = append_artifact_seal(made);
    ASSERT_TRUE(sealed.ok()) << sealed.error().str();
  }
  std::filesystem::rename(made, path);
}

// y = (x + 1) * w, in two steps: a parallel one into the arena and a serial one; x and y are float32 4x16, w 16 floats.
inline ArtifactSource small_model() {
  ArtifactSource a;
  plan::Plan& p = a.plan;
  p.model_name = "small";
  p.compiler_version = "0.1.0";
  p.target = "llvm";
  p.inputs = {{"x", kFloat32, {4, 16}}};
  p.outputs = {{"y", kFloat32, {4, 16}}};
  p.kernels = {"add_one", "scale"};
  p.arena_bytes = 256;
  p.params_bytes = 64;
  p.buffers = {{plan::Space::kInput, 0, 0, 256, kFloat32, {4, 16}, "", "x"},
               {plan::Space::kArena, 0, 0, 256, kFloat32, {4, 16}, "", "t"},
               {plan::Space::kParams, 0, 0, 64, kFloat32, {16}, "", "w"},
               {plan::Space::kOutput, 0, 0, 256, kFloat32, {4, 16}, "", "y"}};
  p.steps = {{0, {0, 1}, true, "add", "Add_0", 64, 512, 0.1}, {1, {1, 2, 3}, false, "multiply", "Mul_1", 64, 576, 0.1}};
  p.params = {{"w", kFloat32, {16}, "", 0, 64}};
  p.metadata = {{"labels", "cat\ndog"}};
  for (int i = 0; i < 16; ++i) a.params.push_back(static_cast<float>(i) * 0.5f);
  a.kernels = R"(
void add_one(void* const* b, int64_t tid, int64_t n) {
  const float* x = b[0]; float* t = b[1];
  for (int64_t r = 4 * tid / n; r < 4 * (tid + 1) / n; ++r) for (int i = 0; i < 16; ++i) t[r * 16 + i] = x[r * 16 + i] + 1;
}
void scale(void* const* b, int64_t tid, int64_t n) {
  const float* t = b[0]; const float* w = b[1]; float* y = b[2];
  for (int i = 0; i < 64; ++i) y[i] = t[i] * w[i % 16];
})";
  return a;
}

}  // namespace tilewright::testing
