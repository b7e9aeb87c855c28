// SPDX-License-Identifier: Apache-2.0
// What a compiled VM model holds beside its bytecode: the description of main, and the source of every region of the
// model that becomes machine code when its arguments' shapes are known.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/vm/executable.h"

namespace tilewright::runtime::vm {

inline constexpr const char* kProgramKind = "vm";  // an artifact's metadata "kind"

struct TensorSpec {
  std::string name;
  DataType dtype;
  std::vector<int64_t> shape;  // -1: free
  // What the input is: a tensor of this shape, a tensor of any shape, or a value of another kind (a sequence, an
  // optional).
  enum class Kind : uint8_t { kTensor, kUnranked, kOther } kind = Kind::kTensor;
};

// Bytes that are a program's own, or lie in the file that it was read from.
class StoredBytes {
 public:
  StoredBytes() = default;
  StoredBytes(std::string own) : StoredBytes(std::make_shared<const std::string>(std::move(own))) {}
  StoredBytes(std::string_view bytes, std::shared_ptr<const void> owner) : owner_(std::move(owner)), view_(bytes) {}
  std::string_view view() const { return view_; }
  size_t size() const { return view_.size(); }
  bool empty() const { return view_.empty(); }

 private:
  explicit StoredBytes(const std::shared_ptr<const std::string>& own) : owner_(own), view_(*own) {}
  std::shared_ptr<const void> owner_;
  std::string_view view_;
};

// Formats: "relay" is compiled for the arguments it meets, "evaluate" is computed by the reference interpreter on the
// arguments' values, "host" is a function of the runtime: its name, then key=value lines.
struct Region {
  std::string format;
  std::vector<std::string> inputs;  // names, in the order of the packed function's arguments
  std::string source;
  std::vector<std::pair<uint64_t, uint64_t>> pieces =
      {};  // offset and bytes in Program::shared: they follow the source
  // A "relay" region whose arguments have one shape each may come with its kernels: a library like that of a model. Its
  // pieces are gone then, and the source is there to be read.
  StoredBytes library = {};
};

struct Program {
  Executable executable;
  std::vector<TensorSpec> inputs;
  std::vector<std::string> outputs;
  std::vector<Region> regions;  // by packed function
  std::string target;           // what the regions are compiled for
  StoredBytes shared;           // of which regions have pieces: weights are stored once

  std::string source_of(size_t region) const;
};

// A tensor for an input. Errors: ShapeMismatch, DtypeMismatch.
Status check_input(const TensorSpec& input, const Tensor& given);
// "1x?x8"
std::string free_shape_str(std::span<const int64_t> shape);

std::string write_program(const Program& program);
// Kernels and weights stay where they are while `owner` keeps them; without one they are copied. Errors: BadArtifact,
// ArtifactVersion.
Result<Program> read_program(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner = nullptr);

}  // namespace tilewright::runtime::vm
