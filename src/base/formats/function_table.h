// SPDX-License-Identifier: Apache-2.0
// Functions of an artifact that are called with tensors of their own, as tensor expressions become them: what their
// arguments are, which kernels run, and which memory those need. One definition for writer and reader; the bytes lie in
// the plan's metadata under kFunctionsKey.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"

namespace tilewright::plan {

inline constexpr const char* kFunctionsKey = "functions";
inline constexpr int64_t kMaxFunctionSize = INT32_MAX;  // of a size that a call brings

// A number over the sizes of a call, in postfix order. Comparisons give 0 or 1; kSelect takes a condition and two
// values. kConstant and kSize take none and use `value`.
enum class SizeOp : uint8_t {
  kConstant,
  kSize,
  kAdd,
  kSub,
  kMul,
  kFloorDiv,
  kFloorMod,
  kMin,
  kMax,
  kEqual,
  kLess,
  kLessEqual,
  kAnd,
  kOr,
  kNot,
  kSelect,
};
struct SizeStep {
  SizeOp op = SizeOp::kConstant;
  int64_t value = 0;
};
using SizeProgram = std::vector<SizeStep>;
// Nothing: overflow, or a division by zero.
std::optional<int64_t> evaluate(const SizeProgram& program, std::span<const int64_t> sizes);
// "n * 4 + 1", with the sizes by these names.
std::string to_text(const SizeProgram& program, std::span<const std::string> names);

// A tensor, or (scalar) the value of one size.
struct FunctionArgument {
  std::string name;
  bool scalar = false;
  uint32_t size = 0;  // scalar: which one
  DataType dtype;
  std::vector<SizeProgram> shape;
};
struct FunctionKernel {
  uint32_t kernel = 0;  // into Plan::kernels
  bool parallel = false;
};
struct FunctionWorkspace {
  SizeProgram bytes;
  bool per_thread = false;
};
// A function of the process by name, called on one thread. Its arguments are numbers and tensors.
struct FunctionCall {
  uint32_t before = 0;  // how many of the function's kernels run before it
  std::string name;
  enum class Kind : uint8_t { kTensor, kInteger, kFloat };
  struct Argument {
    Kind kind = Kind::kInteger;
    uint32_t memory = 0;  // which of `tensors`, and behind them which workspace (of all threads)
    DataType dtype;
    std::vector<SizeProgram> shape;
    SizeProgram integer;
    double number = 0;
  };
  std::vector<Argument> arguments;
};
// Each kernel gets the sizes (int64; when there are any), the tensors in the order of `tensors`, the workspaces.
struct Function {
  std::string name;
  std::vector<std::string> sizes;  // names; each is a scalar argument or a dimension of a tensor
  std::vector<FunctionArgument> arguments;
  std::vector<uint32_t> tensors;  // into arguments
  std::vector<FunctionKernel> kernels;
  std::vector<FunctionWorkspace> workspaces;
  std::vector<FunctionCall> calls;
};

// "A: float32[n, 32]", "n"; "f(n, A: float32[n, 32])".
std::string to_text(const Function& function, const FunctionArgument& argument);
std::string to_text(const Function& function);

// Errors: InvalidArgument (a size that no argument says).
Status check_function(const Function& function);
std::string write_functions(std::span<const Function> functions);
// Errors: BadArtifact (damaged: an index out of range, a program that is none).
Result<std::vector<Function>> read_functions(std::string_view bytes, uint64_t kernels);

}  // namespace tilewright::plan
