// SPDX-License-Identifier: Apache-2.0
// The execution plan of a compiled model: what the compiler writes into an artifact and the runtime walks.
// One definition for writer and reader; the bytes are versioned, little-endian, and checked when read.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"

namespace tilewright::plan {

inline constexpr uint32_t kPlanVersion = 8;

// Metadata of a model that was compiled for all sizes within bounds: "batch=1..8 length=1..64".
inline constexpr const char* kBoundsKey = "bounds";

// What a user passes or receives; shapes are the model's own (not physical ones).
struct TensorInfo {
  std::string name;
  DataType dtype;
  std::vector<int64_t> shape;
};

// kScratch: memory of the calling thread's own, undefined when a kernel starts.
enum class Space : uint8_t { kArena, kParams, kInput, kOutput, kScratch };
const char* name_of(Space space);  // "arena", "weights", "input", "output", "scratch"

// A byte range a kernel sees as one argument. Arena and params offsets are multiples of 64 except for views into
// another tensor (slices, concat slots), which start at any element; inputs and outputs are the user's memory (any
// alignment). Several buffers may name the same bytes (views, memory reuse).
struct Buffer {
  Space space = Space::kArena;
  uint32_t index = 0;   // kInput/kOutput: which one; else 0
  uint64_t offset = 0;  // bytes from the start of the space (or of the input/output)
  uint64_t bytes = 0;   // extent a kernel may touch, halo included
  DataType dtype;
  std::vector<int64_t> shape;  // physical, for reports ("1x4x56x56x16")
  std::string layout;          // "NCHW16c", "NCHW", "" when it does not matter
  std::string name;            // the tensor's name, for reports
  uint32_t device = 0;         // into Plan::devices; kArena: whose memory
};

// kKernel: calls a kernel of the library. kExternal: calls a function of a module that the library imports. kCopy: the
// bytes of the first buffer into the second, from one device's memory to another's.
enum class StepKind : uint8_t { kKernel, kExternal, kCopy };
const char* name_of(StepKind kind);  // "kernel", "external", "copy"

struct Step {
  uint32_t kernel = 0;            // kKernel: into Plan::kernels; kExternal: into Plan::externals; kCopy: 0
  std::vector<uint32_t> buffers;  // kernel arguments, into Plan::buffers
  bool parallel = false;          // false: thread 0 alone runs it
  std::string name;               // "nn.conv2d+add+nn.relu"
  std::string source;             // the model's node names it came from
  double flops = 0, bytes = 0;    // work and compulsory traffic, for reports
  double predicted_us = 0;        // the cost model's one-thread time
  std::string implementation;     // "conv2d.direct": which kernel the cost model chose
  uint32_t outputs = 1;           // the last so many buffers before the scratch ones are written, those before are read
  StepKind kind = StepKind::kKernel;
};

struct Param {  // a constant in the params space, under its packed layout
  std::string name;
  DataType dtype;
  std::vector<int64_t> shape;
  std::string layout;
  uint64_t offset = 0, bytes = 0;
  uint64_t hash = 0;  // of the bytes, as weights_file.h has it; 0 where they lie in the artifact
};

// A size that is free in a plan: shapes say the largest, a run has any from `low` to that. Kernels read it, int64, as
// an input behind the model's own.
struct FreeSize {
  std::string name;
  int64_t low = 1, largest = 1;
  struct Dim {
    bool output = false;
    uint32_t tensor = 0, axis = 0;
    int64_t add = 0, divide = 1;  // of an output: (size + add) / divide, rounded down
  };
  std::vector<Dim> dims;  // of inputs and outputs
};

struct Plan {
  std::string model_name, compiler_version;
  std::string target;                     // the target string the kernels were built for
  std::vector<std::string> cpu_features;  // features the kernels need ("avx512f", ...)
  std::vector<TensorInfo> inputs, outputs;
  std::vector<FreeSize> free_sizes;
  std::vector<std::string> kernels;    // symbol names, in the order of the artifact's function table
  std::vector<std::string> externals;  // functions that imported modules must have
  std::vector<int32_t> devices = {
      1};  // types of the devices that buffers are on (DLPack's numbers); the first is the CPU
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<Param> params;
  uint64_t arena_bytes = 0, params_bytes = 0;
  // The last scratch_bytes of the arena are the first thread's scratch; each further thread's follows it.
  uint64_t scratch_bytes = 0;
  std::vector<uint64_t> device_arena_bytes;     // of the devices after the first, in order
  std::map<std::string, std::string> metadata;  // the model's own (labels, character lists)
  // A file that holds the weights (base/formats/weights_file.h), as a path from the artifact's folder; the params space
  // is then that file. Empty: they are in the artifact.
  std::string weights_file;
  std::string imports;  // modules the library imports (runtime/module.h); empty: none
  // The same model for other input shapes: inputs, outputs, buffers, steps and memory of their own, everything else as
  // here (kernels, external functions, devices, weights and metadata are shared, and filled in when read). Inputs and
  // outputs have the same names and dtypes.
  std::vector<Plan> variants;
};

// The plan for variant i: itself for 0, else variants[i - 1].
const Plan& variant_of(const Plan& plan, size_t i);
// The bytes of the model's own weights; a file that holds those of several models is larger.
uint64_t weight_bytes(const Plan& plan);
// What a step calls: a kernel's symbol, an external function's name, or "__copy".
const std::string& callee_of(const Plan& plan, const Step& step);

std::string write_plan(const Plan& plan);
// Errors: BadArtifact (damaged: bounds, counts, an index out of range), ArtifactVersion.
Result<Plan> read_plan(std::span<const std::byte> bytes);

}  // namespace tilewright::plan
