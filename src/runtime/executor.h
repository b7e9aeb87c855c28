// SPDX-License-Identifier: Apache-2.0
// Runs an artifact: owns the arena, the thread team and the tensors that were not bound by the caller.
// One caller at a time; several executors of one artifact are independent.
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
      false;  // run() calls the artifact's generated entry, on the caller's thread, in place of walking the plan
  std::vector<FunctionRef> externals;  // one for each of Plan::externals (LibraryModule::externals)
  // Shared by executors that never run at once; null: its own. The arena grows as needed, the team has its threads.
  std::shared_ptr<Arena> arena = {};
  std::shared_ptr<ThreadTeam> team = {};
};

// Threads as the options say.
std::shared_ptr<ThreadTeam> make_team(const ExecutorOptions& options);

class Executor {
 public:
  static Result<std::unique_ptr<Executor>> create(std::shared_ptr<const Artifact> artifact,
                                                  const ExecutorOptions& options = {});

  // The plan for the input shapes in use.
  const plan::Plan& plan() const { return *now_->plan; }
  const std::shared_ptr<const Artifact>& artifact() const { return artifact_; }
  int threads() const { return team_->size(); }

  // Takes the plan of variant `index` (plan::variant_of) into use. Inputs whose shape it does not change stay set.
  // Error: InvalidArgument.
  Status select_variant(size_t index);
  // Copies into the executor's own memory. With variants, the tensor's shape picks one. Errors: UnknownInput,
  // ShapeMismatch, DtypeMismatch, InvalidArgument.
  Status set_input(uint64_t index, const DLTensor* tensor);
  // Reads from (writes to) the caller's memory until bound or set anew.
  Status bind_input(uint64_t index, const DLTensor* tensor);
  Status bind_output(uint64_t index, const DLTensor* tensor);
  Status run();
  // Only the steps from `first` to before `last`; with all of them, a run.
  Status run_steps(size_t first, size_t last);
  // Views; the first look at an input that was never set sets it to zeros, so that a caller can fill it in place.
  Result<DLTensor> input(uint64_t index);
  Result<DLTensor> output(uint64_t index) const;
  // The executor's own memory behind a checked index, to be kept by whoever keeps a view; undefined where the caller's
  // is bound.
  const Tensor& own_input(uint64_t index) const { return now_->inputs[index].own; }
  const Tensor& own_output(uint64_t index) const { return now_->outputs[index].own; }
  Status copy_output(uint64_t index, const DLTensor* destination) const;
  // Weights by name; -1 when there is none. Another tensor of the same dtype and shape takes a weight's place in this
  // executor.
  int64_t param_index(std::string_view name) const;
  Status set_param(uint64_t index, const DLTensor* tensor);
  const void* param_data(uint64_t index) const;
  // Where a buffer of the plan lies now. Error: InvalidArgument (it belongs to an input that has not been set).
  Result<const void*> buffer_data(uint32_t buffer);
  // Runs with a clock around every step.
  Result<std::unique_ptr<Profile>> profile(uint64_t repeats);

  // Classic names: inputs and weights named in a .params file are set (or bound to another executor's); other names are
  // ignored.
  Status load_params(std::span<const std::byte> bytes);
  Status share_params(const Executor& other, std::span<const std::byte> bytes);

 private:
  struct Slot {
    Tensor own;
    void* data = nullptr;
    bool set = false;
  };
  struct Call {
    KernelFunction kernel;    // null: a special step
    uint32_t first_argument;  // or which special step
    bool parallel;
    bool meet_before;  // false only between two steps of thread 0
  };

  // What belongs to one of the artifact's plans.
  struct Variant {
    const plan::Plan* plan = nullptr;   // with free sizes: as it is shown
    const plan::Plan* whole = nullptr;  // as it is in the artifact
    std::unique_ptr<SizedPlan> sized;   // made when it is first used
    std::vector<Slot> inputs, outputs;
    std::vector<Call> calls;
    std::vector<SpecialStep> specials;
    // Pointers that kernels take, call by call; with scratch repeated for each thread at this distance (else 0).
    std::vector<void*> arguments;
    size_t arguments_per_thread = 0;
    bool stale = true;  // the arguments
  };

  Executor(std::shared_ptr<const Artifact> artifact, const ExecutorOptions& options);
  void allocate(Slot& slot, const plan::TensorInfo& info);
  void prepare_variant(Variant& variant, const plan::Plan& plan, const std::vector<FunctionRef>& externals);
  // With free sizes: at these.
  void enter(Variant& variant, const std::vector<int64_t>& sizes);
  Status fit_variant(uint64_t index, const DLTensor* tensor);  // takes one into use whose input has the tensor's shape
  std::byte* address(const plan::Buffer& buffer, size_t thread) const;
  Status prepare();  // inputs are set, arguments point where they should
  void call_entry();
  void walk(int tid, int threads);
  void walk_timed(int tid, int threads);
  void run_special(const Call& call, void* const* arguments);  // thread 0
  Status finish();  // outputs where callers want them; what a special step of the run reported

  std::shared_ptr<const Artifact> artifact_;
  std::shared_ptr<ThreadTeam> team_;
  std::shared_ptr<Arena> arena_;
  const std::byte* arena_start_ = nullptr;  // that the arguments were made for
  std::vector<Arena> device_arenas_;        // of the devices after the first
  std::vector<Variant> variants_;
  Variant* now_ = nullptr;
  std::map<uint64_t, Tensor> params_;      // that took the place of compiled ones
  size_t first_call_ = 0, last_call_ = 0;  // of the run
  std::atomic<bool> running_{false};
  const bool generated_entry_;
  // Set by thread 0 when a special step failed: kernels behind it are left out, for they would read what was not
  // written.
  std::atomic<bool> failed_{false};
  Diagnostic failure_{ErrorCode::kInternal, ""};
  Interval* times_ = nullptr;  // of the repeat being profiled
};

// "input 'x'", with what the model has when there is no such index. Errors: UnknownInput.
Result<uint64_t> find_tensor(const std::vector<plan::TensorInfo>& tensors, std::string_view name, const char* kind);
Status check_index(const std::vector<plan::TensorInfo>& tensors, uint64_t index, const char* kind);

}  // namespace tilewright::runtime
