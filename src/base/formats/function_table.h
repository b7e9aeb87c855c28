// SPDX-License-Identifier: Apache-2.0
// Artifact functions that are called with their own tensors, compiled from
// tensor expressions: arguments, kernels, memory. One definition for writer
// and reader; the bytes are in the plan's metadata under kFunctionsKey.
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
inline constexpr int64_t kMaxFunctionSize = INT32_MAX;  // of a size given by a call

// An integer expression over a call's sizes, in postfix order. Comparisons give 0 or 1; kSelect takes a condition and
// two values. kConstant and kSize take no operands and use `value`.
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
// Nothing on overflow or division by zero.
std::optional<int64_t> evaluate(const SizeProgram& program, std::span<const int64_t> sizes);
// As text with these names of sizes: "n * 4 + 1".
std::string to_text(const SizeProgram& program, std::span<const std::string> names);

// A tensor, or (scalar) the value of a size, or (returned, the last one) one element that no call gives: its value
// after the call is the result.
struct FunctionArgument {
  std::string name;
  bool scalar = false, returned = false;
  uint32_t size = 0;  // scalar: index of the size
  DataType dtype;     // scalar: kFloat64 if the place has a float64's bits, kInt32 if any integer, kInt64 if a size
  std::vector<SizeProgram> shape;
};
struct FunctionKernel {
  uint32_t kernel = 0;  // index into Plan::kernels
  bool parallel = false;
};
struct FunctionWorkspace {
  SizeProgram bytes;
  bool per_thread = false;
};
// A call of a process-wide function by name, on one thread, with numbers and tensors as arguments.
struct FunctionCall {
  uint32_t before = 0;  // number of the function's kernels that run before it
  std::string name;
  enum class Kind : uint8_t { kTensor, kInteger, kFloat };
  struct Argument {
    Kind kind = Kind::kInteger;
    uint32_t memory = 0;  // index into `tensors`, followed by the workspaces (of all threads)
    DataType dtype;
    std::vector<SizeProgram> shape;
    SizeProgram integer;
    double number = 0;
  };
  std::vector<Argument> arguments;
};
// Each kernel gets the sizes (int64, if any), the tensors in the order of `tensors`, then the workspaces.
struct Function {
  std::string name;
  std::vector<std::string> sizes;  // names; each is a scalar argument or a tensor dimension
  std::vector<FunctionArgument> arguments;
  std::vector<uint32_t> tensors;  // indices into arguments
  std::vector<FunctionKernel> kernels;
  std::vector<FunctionWorkspace> workspaces;
  std::vector<FunctionCall> calls;
  bool returns() const { return !arguments.empty() && arguments.back().returned; }
};

// "A: float32[n, 32]", "n"; "f(n, A: float32[n, 32])".
std::string to_text(const Function& function, const FunctionArgument& argument);
std::string to_text(const Function& function);

// Errors: InvalidArgument (a size that no argument determines).
Status check_function(const Function& function);
std::string write_functions(std::span<const Function> functions);
// Errors: BadArtifact (an index out of range, a malformed program).
Result<std::vector<Function>> read_functions(std::string_view bytes, uint64_t kernels);

}  // namespace tilewright::plan
