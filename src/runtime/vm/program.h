// SPDX-License-Identifier: Apache-2.0
// A compiled VM model's content besides bytecode: the description of main, and the source of each region, which is
// compiled once the shapes of its arguments are known.
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
  // The kind of input: a tensor of this shape, a tensor of
  // any shape, or another value (a sequence, an optional).
  enum class Kind : uint8_t { kTensor, kUnranked, kOther } kind = Kind::kTensor;
};

// Bytes owned by the program, or views of the file that it was read from.
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

// Formats: "relay" is compiled for the shapes it meets, "evaluate" runs in the reference interpreter on the arguments'
// values, "host" is a function of the runtime: its name, then key=value lines.
struct Region {
  std::string format;
  std::vector<std::string> inputs;  // names, in the order of the packed function's arguments
  std::string source;
  std::vector<std::pair<uint64_t, uint64_t>> pieces = {};  // offset and size in Program::shared: appended to the source
  // A "relay" region with fixed argument shapes may contain its kernels, a library like a model's. It then has no
  // pieces, and its source is informative only.
  StoredBytes library = {};
};

struct Program {
  Executable executable;
  std::vector<TensorSpec> inputs;
  std::vector<std::string> outputs;
  std::vector<Region> regions;  // by packed function
  std::string target;           // target that regions are compiled for
  StoredBytes shared;           // contains the regions' pieces: weights are stored once

  std::string source_of(size_t region) const;
  // Whether a region waits for sizes that only a run supplies: it is compiled then, or interpreted without a compiler.
  bool is_open(size_t region) const { return regions[region].format == "relay" && regions[region].library.empty(); }
  size_t open_regions() const;
  // Whether the runtime needs neither compiler nor interpreter for it.
  bool runs_alone() const;
};

// Checks a tensor for an input. Errors: ShapeMismatch, DtypeMismatch.
Status check_input(const TensorSpec& input, const Tensor& given);
// "1x?x8"
std::string free_shape_str(std::span<const int64_t> shape);

std::string write_program(const Program& program);
// Kernels and weights are used in place while `owner` keeps them alive; without an owner they are copied. Errors:
// BadArtifact, ArtifactVersion.
Result<Program> read_program(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner = nullptr);

}  // namespace tilewright::runtime::vm
