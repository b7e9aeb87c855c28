// SPDX-License-Identifier: Apache-2.0
// Packed functions that are compiled when they are called with shapes (or, for the few arguments on which shapes depend,
// values) they have not met, and kept for the next call with the same.
#pragma once
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "runtime/executor.h"
#include "runtime/vm/machine.h"
#include "runtime/vm/program.h"

namespace tilewright::runtime::vm {

struct Specialization {
  std::shared_ptr<const Artifact> artifact;  // its inputs carry the region's names; those compiled in are missing
  std::vector<size_t> by_value;              // arguments whose values are compiled in
};
// Compiles region `index` for these arguments.
using Specialize = std::function<Result<Specialization>(size_t index, std::span<const Tensor> arguments)>;

struct SpecializedOptions {
  int threads = 0;
  size_t keep = 32;  // specialisations; the one used longest ago goes first
  uint64_t keep_bytes = uint64_t{64} << 20;
};

class SpecializedFunctions : public PackedFunctions {
 public:
  SpecializedFunctions(std::shared_ptr<const Program> program, Specialize specialize, const SpecializedOptions& options = {});
  Status call(size_t index, std::span<const Value> inputs, std::span<Value> outputs) override;
  size_t compiled() const { return compiled_; }  // since it was made
  size_t kept() const { return entries_.size(); }

 private:
  struct Entry {
    size_t index;
    std::vector<std::vector<int64_t>> shapes;
    std::vector<std::pair<size_t, std::string>> values;  // argument, its bytes
    std::unique_ptr<Executor> executor;
    std::vector<size_t> arguments;  // of the executor's inputs
  };
  Result<Entry*> entry_for(size_t index, std::span<const Tensor> arguments);

  std::shared_ptr<const Program> program_;
  Specialize specialize_;
  SpecializedOptions options_;
  std::shared_ptr<MemoryPool> pool_;
  std::list<Entry> entries_;  // most recently used first
  size_t compiled_ = 0;
};

// The inputs checked against what the program says, main run, its result as one tensor per output.
class ProgramRunner {
 public:
  static Result<std::unique_ptr<ProgramRunner>> create(const std::shared_ptr<const Program>& program, Specialize specialize, const SpecializedOptions& options = {});
  const Program& program() const { return *program_; }
  const SpecializedFunctions& functions() const { return *functions_; }
  // Errors: UnknownInput, ShapeMismatch, DtypeMismatch, those of compiling a specialisation.
  Result<std::vector<Tensor>> run(std::vector<Tensor> inputs);

 private:
  std::shared_ptr<const Program> program_;
  std::shared_ptr<SpecializedFunctions> functions_;
  std::unique_ptr<VirtualMachine> machine_;
};

// The program in an artifact, or null when it is an ordinary one. Errors: BadArtifact.
Result<std::shared_ptr<const Program>> program_of(const Artifact& artifact);

}  // namespace tilewright::runtime::vm
