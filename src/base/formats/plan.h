// SPDX-License-Identifier: Apache-2.0
// The execution plan of a compiled model, written by the compiler into an artifact and executed by the runtime. One
// definition for writer and reader; the bytes are versioned, little-endian, and checked when read.
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

// Plan metadata of a model compiled for all sizes within bounds: "batch=1..8 length=1..64".
inline constexpr const char* kBoundsKey = "bounds";

// An input or output of the model; shapes are logical (not those of blocked layouts).
struct TensorInfo {
  std::string name;
  DataType dtype;
  std::vector<int64_t> shape;
};

// kScratch: memory private to the calling thread, undefined when a kernel starts.
enum class Space : uint8_t { kArena, kParams, kInput, kOutput, kScratch };
const char* name_of(Space space);  // "arena", "weights", "input", "output", "scratch"

// A byte range that a kernel gets as one argument. Offsets in arena and params are multiples of 64, except for views
// into another tensor (slices, concat slots), which begin at any element; inputs and outputs are the user's memory with
// any alignment. Buffers may overlap (views, memory reuse).
struct Buffer {
  Space space = Space::kArena;
  uint32_t index = 0;   // kInput, kOutput: its index; else 0
  uint64_t offset = 0;  // bytes from the start of the space (or of the input/output)
  uint64_t bytes = 0;   // bytes that a kernel may access, halo included
  DataType dtype;
  std::vector<int64_t> shape;  // physical, for reports ("1x4x56x56x16")
  std::string layout;          // "NCHW16c", "NCHW"; "" if irrelevant
  std::string name;            // the tensor's name, for reports
  uint32_t device = 0;         // index into Plan::devices; kArena: whose arena
};

// kKernel: calls a kernel of the library. kExternal: calls a function of an imported module. kCopy: copies the first
// buffer to the second, between devices.
enum class StepKind : uint8_t { kKernel, kExternal, kCopy };
const char* name_of(StepKind kind);  // "kernel", "external", "copy"

struct Step {
  uint32_t kernel = 0;            // kKernel: into Plan::kernels; kExternal: into Plan::externals; kCopy: 0
  std::vector<uint32_t> buffers;  // the arguments, as indices into Plan::buffers
  bool parallel = false;          // false: only thread 0 runs it
  std::string name;               // "nn.conv2d+add+nn.relu"
  std::string source;             // names of the model's nodes that it computes
  double flops = 0, bytes = 0;    // operations, and minimum memory traffic, for reports
  double predicted_us = 0;        // the cost model's one-thread time
  std::string implementation;     // "conv2d.direct": which kernel the cost model chose
  uint32_t outputs = 1;           // number of written buffers: the last ones before scratch; all before them are read
  StepKind kind = StepKind::kKernel;
};

struct Param {  // a constant in the params space, in its packed layout
  std::string name;
  DataType dtype;
  std::vector<int64_t> shape;
  std::string layout;
  uint64_t offset = 0, bytes = 0;
  uint64_t hash = 0;  // of the bytes, as in weights_file.h; 0 if they are in the artifact
};

// A free size of a plan: shapes have the largest value, a run any from `low` to that. Kernels read the actual value as
// an additional int64 input behind the model's own.
struct FreeSize {
  std::string name;
  int64_t low = 1, largest = 1;
  struct Dim {
    bool output = false;
    uint32_t tensor = 0, axis = 0;
    int64_t add = 0, divide = 1;  // for outputs: (size + add) / divide, rounded down
  };
  std::vector<Dim> dims;  // inputs' and outputs' dimensions with this size
};

struct Plan {
  std::string model_name, compiler_version;
  std::string target;                     // the target string the kernels were built for
  std::vector<std::string> cpu_features;  // features the kernels need ("avx512f", ...)
  std::vector<TensorInfo> inputs, outputs;
  std::vector<FreeSize> free_sizes;
  std::vector<std::string> kernels;    // symbol names, in the function table's order
  std::vector<std::string> externals;  // functions that imported modules must provide
  // Device types of buffers (DLPack's numbers); the first is the CPU.
  std::vector<int32_t> devices = {1};
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<Param> params;
  uint64_t arena_bytes = 0, params_bytes = 0;
  // The arena ends with the first thread's scratch; the other threads' follows.
  uint64_t scratch_bytes = 0;
  std::vector<uint64_t> device_arena_bytes;     // for the devices after the first, in order
  std::map<std::string, std::string> metadata;  // the model's own (labels, vocabularies)
  // Path of a separate weights file (base/formats/weights_file.h), relative to the artifact's folder, which is then the
  // params space. Empty: weights are in the artifact.
  std::string weights_file;
  std::string imports;  // imported modules (runtime/module.h); empty: none
  // The model for other input shapes, with their own inputs, outputs, buffers, steps and memory; all else is shared
  // with this plan and filled in when read (kernels, external functions, devices, weights, metadata). Names and dtypes
  // of inputs and outputs are the same.
  std::vector<Plan> variants;
};

// The plan of variant i: 0 is `plan` itself, i is variants[i - 1].
const Plan& variant_of(const Plan& plan, size_t i);
// Size of the model's own weights; a shared weights file may be larger.
uint64_t weight_bytes(const Plan& plan);
// The callee of a step: a kernel's symbol, an external function's name, or "__copy".
const std::string& callee_of(const Plan& plan, const Step& step);

std::string write_plan(const Plan& plan);
// Errors: BadArtifact (damaged: bounds, counts, an index out of range), ArtifactVersion.
Result<Plan> read_plan(std::span<const std::byte> bytes);

}  // namespace tilewright::plan
