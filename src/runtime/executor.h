// SPDX-License-Identifier: Apache-2.0
// Runs an artifact: owns the arena, the thread team, and memory for tensors that the caller did not bind. One caller at
// a time; executors of one artifact are independent.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/tensor.h"
#include "runtime/arena.h"
#include "runtime/artifact.h"
#include "runtime/profile.h"
#include "runtime/sized_plan.h"
#include "runtime/special_step.h"
#include "runtime/thread_team.h"
#include "tilewright/dlpack.h"

namespace tilewright::runtime {

struct ExecutorOptions {
  int threads = 0;   // 0: default_thread_count()
  int spin_us = -1;  // -1: 100
  bool generated_entry =
      false;  // run() calls the artifact's generated entry on the caller's thread instead of interpreting the plan
  // Runs whose parallel steps are predicted to take less than this on one thread, besides a microsecond each for
  // threads to meet, do not wake others.
  double least_shared_us = 2;
  std::vector<FunctionRef> externals;  // one for each of Plan::externals (LibraryModule::externals)
  // Shared among executors that never run concurrently; null: private. The arena grows as needed; the team does not.
  std::shared_ptr<Arena> arena = {};
  std::shared_ptr<ThreadTeam> team = {};
};

// A team of the size that the options give.
std::shared_ptr<ThreadTeam> make_team(const ExecutorOptions& options);

class Executor {
 public:
  static Result<std::unique_ptr<Executor>> create(std::shared_ptr<const Artifact> artifact,
                                                  const ExecutorOptions& options = {});

  // The plan for the input shapes in use.
  const plan::Plan& plan() const { return *now_->plan; }
  const std::shared_ptr<const Artifact>& artifact() const { return artifact_; }
  int threads() const { return team_->size(); }

  // Switches to the plan of variant `index` (plan::variant_of). Inputs whose shape is unchanged stay set. Error:
  // InvalidArgument.
  Status select_variant(size_t index);
  // Copies into the executor's own memory. With variants, the tensor's shape selects one. Errors: UnknownInput,
  // ShapeMismatch, DtypeMismatch, InvalidArgument.
  Status set_input(uint64_t index, const DLTensor* tensor);
  // Uses the caller's memory directly, until it is bound or set again.
  Status bind_input(uint64_t index, const DLTensor* tensor);
  Status bind_output(uint64_t index, const DLTensor* tensor);
  Status run();
  // Runs the steps [first, last); all of them are a complete run.
  Status run_steps(size_t first, size_t last);
  // Views. The first view of an input that was never set zeroes it, so that the caller can fill it in place.
  Result<DLTensor> input(uint64_t index);
  Result<DLTensor> output(uint64_t index) const;
  // The executor's own memory of a valid input or output, which views keep alive; undefined if the caller's memory is
  // bound.
  const Tensor& own_input(uint64_t index) const { return now_->inputs[index].own; }
  const Tensor& own_output(uint64_t index) const { return now_->outputs[index].own; }
  Status copy_output(uint64_t index, const DLTensor* destination) const;
  // Weights by name; -1 if there is none. Replaces a weight, in this executor only, by a tensor of the same dtype and
  // shape.
  int64_t param_index(std::string_view name) const;
  Status set_param(uint64_t index, const DLTensor* tensor);
  const void* param_data(uint64_t index) const;
  // The current address of a buffer of the plan. Error: InvalidArgument (it belongs to an input that has not been set).
  Result<const void*> buffer_data(uint32_t buffer);
  // Runs with time measurement around every step.
  Result<std::unique_ptr<Profile>> profile(uint64_t repeats);

  // Classic behaviour: sets the inputs and weights named in a .params file (or binds another executor's); other names
  // are ignored.
  Status load_params(std::span<const std::byte> bytes);
  Status share_params(const Executor& other, std::span<const std::byte> bytes);

 private:
  struct Slot {
    Tensor own;
    void* data = nullptr;
    bool set = false;
  };
  struct Call {
    Kernel kernel{};              // none: a special step
    uint32_t first_argument = 0;  // or the index of the special step
    bool parallel = false;
    bool meet_before = true;  // barrier before the step; false only between two steps of thread 0
  };

  // State for one of the artifact's plans.
  struct Variant {
    const plan::Plan* plan = nullptr;   // with free sizes: with the actual sizes
    const plan::Plan* whole = nullptr;  // as stored in the artifact
    std::unique_ptr<SizedPlan> sized;   // created on first use
    std::vector<Slot> inputs, outputs;
    std::vector<Call> calls;
    std::vector<SpecialStep> specials;
    // Kernels' argument pointers, call by call; with per-thread scratch repeated for each thread (distance, else 0).
    std::vector<void*> arguments;
    size_t arguments_per_thread = 0;
    bool shares = false;  // whether runs need more threads than the caller's
    bool stale = true;    // arguments must be recomputed
  };

  Executor(std::shared_ptr<const Artifact> artifact, const ExecutorOptions& options);
  void allocate(Slot& slot, const plan::TensorInfo& info);
  void prepare_variant(Variant& variant, const plan::Plan& plan, const ExecutorOptions& options);
  // With free sizes: switches to these sizes.
  void enter(Variant& variant, const std::vector<int64_t>& sizes);
  Status fit_variant(uint64_t index, const DLTensor* tensor);  // switches to a variant with the tensor's shape
  std::byte* address(const plan::Buffer& buffer, size_t thread) const;
  Status prepare();  // checks inputs and updates argument pointers
  void call_entry();
  void walk(int tid, int threads);
  void walk_timed(int tid, int threads);
  void run_kernel(const Call& call, void* const* arguments, int tid, int threads);
  void run_special(const Call& call, void* const* arguments);  // on thread 0
  void fail(Diagnostic why);
  Status finish();  // copies outputs to callers, and returns errors of steps

  std::shared_ptr<const Artifact> artifact_;
  std::shared_ptr<ThreadTeam> team_;
  std::shared_ptr<Arena> arena_;
  const std::byte* arena_start_ = nullptr;  // for which the arguments were computed
  std::vector<Arena> device_arenas_;        // of the devices after the first
  std::vector<Variant> variants_;
  Variant* now_ = nullptr;
  std::map<uint64_t, Tensor> params_;      // that replace compiled weights
  size_t first_call_ = 0, last_call_ = 0;  // of the current run
  std::atomic<bool> running_{false};
  const bool generated_entry_;
  // Set when a step failed: kernels behind it are left out, for they would read what was not written. The first thread
  // that fails says why.
  std::atomic<bool> failed_{false}, failing_{false};
  Diagnostic failure_{ErrorCode::kInternal, ""};
  Interval* times_ = nullptr;  // of the repeat being profiled
};

// "input 'x'", with what the model has when there is no such index. Errors: UnknownInput.
Result<uint64_t> find_tensor(const std::vector<plan::TensorInfo>& tensors, std::string_view name, const char* kind);
Status check_index(const std::vector<plan::TensorInfo>& tensors, uint64_t index, const char* kind);

}  // namespace tilewright::runtime
