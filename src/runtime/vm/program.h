// SPDX-License-Identifier: Apache-2.0
// What a compiled VM model holds beside its bytecode: the description of main, and the source of every region of the
// model that becomes machine code when its arguments' shapes are known.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/vm/executable.h"

namespace tilewright::runtime::vm {

inline constexpr const char* kProgramKind = "vm";  // an artifact's metadata "kind"

struct TensorSpec {
  std::string name;
  DataType dtype;
  std::vector<int64_t> shape;  // -1: free
};

struct Region {
  std::string format;               // "onnx"
  std::vector<std::string> inputs;  // names, in the order of the packed function's arguments
  std::string source;
};

struct Program {
  Executable executable;
  std::vector<TensorSpec> inputs;
  std::vector<std::string> outputs;
  std::vector<Region> regions;      // by packed function
  std::string target;               // what the regions are compiled for
};

// "1x?x8"
std::string free_shape_str(std::span<const int64_t> shape);

std::string write_program(const Program& program);
// Errors: BadArtifact, ArtifactVersion.
Result<Program> read_program(std::span<const std::byte> bytes);

}  // namespace tilewright::runtime::vm
