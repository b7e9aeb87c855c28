// SPDX-License-Identifier: Apache-2.0
// The Relay VM: runs an executable's bytecode on registers that hold tensors, tuples and data types (one kind of
// object), closures and references. Packed functions are supplied by the caller.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/vm/executable.h"

namespace tilewright::runtime::vm {

struct Object;
using Value = std::shared_ptr<const Object>;
struct Object {
  enum class Kind { kTensor, kStorage, kAdt, kClosure, kRef } kind = Kind::kTensor;
  Tensor tensor;              // kTensor; the bytes of kStorage
  int64_t tag = 0;            // kAdt: 0 for a tuple; kClosure: the function
  std::vector<Value> fields;  // kAdt; a closure's captures; a reference's (mutable) content
  bool constant = false;      // a constant of the program: packed functions must not write it
  Object() = default;
  Object(const Object&) = default;
  ~Object();  // not recursive, for lists of any length
};
Value make_tensor(Tensor tensor);
Value make_adt(int64_t tag, std::vector<Value> fields);

// A pool of tensor memory in size classes (powers of two and midpoints). Of free blocks it keeps `keep_bytes`, and more
// as long as all blocks together take no more than was in use at once: memory stays bounded when shapes keep changing,
// and a program that runs again finds what it ran with, whose pages need not be mapped and cleared again.
class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  explicit MemoryPool(uint64_t keep_bytes = uint64_t{64} << 20, uint64_t limit = uint64_t{1} << 40)
      : keep_bytes_(keep_bytes), limit_(limit) {}
  ~MemoryPool();
  // A tensor whose memory returns to the pool. Errors: LimitExceeded.
  Result<Tensor> allocate(DataType dtype, std::vector<int64_t> shape);
  uint64_t used_bytes() const { return used_; }
  uint64_t kept_bytes() const { return kept_; }

 private:
  void give_back(void* block, size_t size_class);
  std::vector<std::vector<void*>> free_;
  uint64_t keep_bytes_, limit_, used_ = 0, kept_ = 0, most_used_ = 0;
};

// Implements InvokePacked. An output is a tensor to be filled, or null if the function creates it.
class PackedFunctions {
 public:
  virtual ~PackedFunctions() = default;
  virtual Status call(size_t index, std::span<const Value> inputs, std::span<Value> outputs) = 0;
};

struct MachineOptions {
  int64_t max_depth = 10000;  // nesting of calls
  uint64_t keep_bytes = uint64_t{64} << 20;
  // If set and true, the program stops at its next backward jump or call with Interrupted; for other threads and
  // signals.
  const std::atomic<bool>* interrupt = nullptr;
};

class VirtualMachine {
 public:
  // The executable must be verified, without unbound late-bound constants. Errors: BadArtifact.
  static Result<std::unique_ptr<VirtualMachine>> create(std::shared_ptr<const Executable> executable,
                                                        std::shared_ptr<PackedFunctions> functions,
                                                        const MachineOptions& options = {});
  const Executable& executable() const { return *executable_; }
  // Errors: UnknownFunction, InvalidArgument (wrong number of arguments), and those of the program's execution.
  Result<Value> invoke(std::string_view function, std::vector<Value> arguments);
  const MemoryPool& pool() const { return *pool_; }

 private:
  struct Frame {
    const Function* function;
    const Value* immediates;  // by instruction: constants of LoadConsti
    size_t pc = 0;
    std::vector<Value> registers;
    int64_t result = -1;  // the caller's register for the result
  };
  VirtualMachine() = default;
  bool interrupted() const { return options_.interrupt && options_.interrupt->load(std::memory_order_relaxed); }
  Status step(std::vector<Frame>& frames, Value* result);
  Status enter(std::vector<Frame>& frames, size_t function, std::vector<Value> arguments, int64_t result);
  // returns the value to the caller's frame, or as the result
  static void leave(std::vector<Frame>& frames, Value value, Value* result);

  std::shared_ptr<const Executable> executable_;
  std::shared_ptr<PackedFunctions> functions_;
  std::shared_ptr<MemoryPool> pool_;
  std::vector<Value> constants_;
  std::vector<std::vector<Value>> immediates_;  // by function
  MachineOptions options_;
};

}  // namespace tilewright::runtime::vm
