// SPDX-License-Identifier: Apache-2.0
// Packed functions that are compiled when called with new shapes (or new values, for the few arguments that shapes
// depend on), and cached for later calls.
#pragma once
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/executor.h"
#include "runtime/vm/host_functions.h"
#include "runtime/vm/machine.h"
#include "runtime/vm/program.h"
#include "runtime/vm/trace.h"

namespace tilewright::runtime::vm {

struct Specialization {
  std::shared_ptr<const Artifact> artifact;  // inputs have the region's names, without those compiled in
  std::vector<size_t> by_value;              // arguments whose values are compiled in
};
// Compiles region `index` for these arguments.
using Specialize = std::function<Result<Specialization>(size_t index, std::span<const Tensor> arguments)>;

// Evaluates region `index` on these arguments without compiling it. LimitExceeded: too much work for that, unless it is
// to be evaluated `however_long`.
struct Evaluation {
  std::vector<Tensor> results;
  std::vector<size_t> by_value;  // as Specialization's
};
using Evaluate = std::function<Result<Evaluation>(size_t index, std::span<const Tensor> arguments, bool however_long)>;

struct SpecializedOptions {
  int threads = 0;
  size_t keep = 64;  // cached specialisations; least recently used ones are dropped
  uint64_t keep_bytes = uint64_t{64} << 20;
  // For regions of format "evaluate" (text, image files), for evaluate_first, and without a compiler for all that have
  // no kernels.
  Evaluate evaluate;
  // A cheap region is evaluated instead of compiled for its first calls with the same sizes; the more sizes it is
  // cached for, the more calls. So a region whose sizes change with every call (remaining boxes, a growing text) does
  // not wait for the compiler.
  int evaluate_first = 2;
  const std::atomic<bool>* interrupt = nullptr;  // MachineOptions'
};

class SpecializedFunctions : public PackedFunctions {
 public:
  // The program must come from read_program, which checks it.
  SpecializedFunctions(std::shared_ptr<const Program> program, Specialize specialize,
                       const SpecializedOptions& options = {});
  Status call(size_t index, std::span<const Value> inputs, std::span<Value> outputs) override;
  size_t compiled() const { return compiled_; }    // since construction
  size_t evaluated() const { return evaluated_; }  // calls evaluated instead of compiled
  // Regions that are computed by the interpreter only because there is no compiler.
  size_t interpreted_regions() const;
  // From now on every step of every call is timed and appended here; null: stop.
  void set_trace(std::vector<TraceEvent>* events) { trace_ = events; }
  size_t kept() const { return entries_.size(); }

 private:
  struct Entry {
    size_t index;
    std::vector<std::vector<int64_t>> shapes;
    std::vector<std::pair<size_t, std::string>> values;  // (argument, its bytes)
    std::unique_ptr<Executor> executor;
    std::vector<size_t> arguments;  // the arguments that are the executor's inputs
  };
  Result<Entry*> entry_for(size_t index, std::span<const Tensor> arguments);
  // The region's own kernels, or newly compiled ones.
  Result<Specialization> kernels_for(size_t index, std::span<const Tensor> arguments);
  Entry* find_entry(size_t index, std::span<const Value> inputs);
  Status run_compiled(size_t index, std::span<const Value> inputs, std::span<Value> outputs);
  // Whether the call was evaluated without compiling.
  bool evaluate_early(size_t index, std::span<const Tensor> arguments, std::span<Value> outputs);
  Status evaluate(size_t index, std::span<const Tensor> arguments, std::span<Value> outputs);
  void note(std::string name, std::string source, int64_t begin_ns);

  std::shared_ptr<const Program> program_;
  Specialize specialize_;
  SpecializedOptions options_;
  std::shared_ptr<ThreadTeam> alone_, team_;  // shared by all executors, of which one runs at a time
  std::shared_ptr<Arena> arena_;
  std::shared_ptr<MemoryPool> pool_;
  std::vector<HostRegion> host_;                   // by region; without a function for other formats
  std::list<Entry> entries_;                       // most recently used first
  std::vector<std::list<Entry>::iterator> last_;   // by region: the last used, or the end
  std::unordered_map<size_t, int64_t> early_;      // evaluated calls, by region, sizes and what would be compiled in
  std::vector<int> kept_of_;                       // number of cached specialisations by region
  std::vector<std::vector<size_t>> early_values_;  // by region: arguments whose values were needed
  std::vector<bool> large_;                        // by region: too many weights to evaluate, or kernels exist
  std::vector<std::shared_ptr<const Artifact>> ready_;  // by region: its own kernels, once loaded
  size_t compiled_ = 0, evaluated_ = 0;
  std::vector<TraceEvent>* trace_ = nullptr;
};

// Checks inputs against the program's description, runs main, and returns one tensor per output.
class ProgramRunner {
 public:
  static Result<std::unique_ptr<ProgramRunner>> create(const std::shared_ptr<const Program>& program,
                                                       Specialize specialize, const SpecializedOptions& options = {});
  const Program& program() const { return *program_; }
  const SpecializedFunctions& functions() const { return *functions_; }
  void set_trace(std::vector<TraceEvent>* events) { functions_->set_trace(events); }
  // Errors: UnknownInput, ShapeMismatch, DtypeMismatch, those of compiling a specialisation.
  Result<std::vector<Tensor>> run(std::vector<Tensor> inputs);
  // The same with values of any kind, one per output: a sequence is a data type with tag 0, an empty optional one with
  // tag kNoneTag. `run` returns the tensors of a sequence one after another.
  Result<std::vector<Value>> run_values(std::vector<Value> inputs);

 private:
  std::shared_ptr<const Program> program_;
  std::shared_ptr<SpecializedFunctions> functions_;
  std::unique_ptr<VirtualMachine> machine_;
};

// The program in an artifact, or null if it is an ordinary model. Errors: BadArtifact.
Result<std::shared_ptr<const Program>> program_of(const std::shared_ptr<const Artifact>& artifact);
// `params` is used in place while `owner` keeps it alive, or copied.
Result<std::shared_ptr<const Program>> program_of(const plan::Plan& plan, const std::byte* params,
                                                  const std::shared_ptr<const void>& owner = nullptr);

}  // namespace tilewright::runtime::vm
