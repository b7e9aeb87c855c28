// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor.h"

#include <chrono>

#include "base/format.h"
#include "runtime/cpu.h"
#include "runtime/dltensor.h"
#include "runtime/params_file.h"

namespace tilewright::runtime {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Marks the executor as busy while a call lasts.
class Claim {
 public:
  explicit Claim(std::atomic<bool>& flag) : flag_(flag), mine_(!flag.exchange(true, std::memory_order_acquire)) {}
  ~Claim() {
    if (mine_) flag_.store(false, std::memory_order_release);
  }
  Status status() const {
    if (mine_) return Ok{};
    return Diagnostic(ErrorCode::kInvalidArgument, "the executor is running in another thread", {},
                      "make one executor for each thread; they share the module's weights");
  }

 private:
  std::atomic<bool>& flag_;
  bool mine_;
};

std::string role(const char* kind, const plan::TensorInfo& info) { return format("{} '{}'", kind, info.name); }

std::string listed(const std::vector<plan::TensorInfo>& tensors, const char* kind) {
  if (tensors.empty()) return format("the model has no {}s", kind);
  std::string out = format("the model's {}s are ", kind);
  for (size_t i = 0; i < tensors.size() && i < 8; ++i)
    out += format("{}'{}' ({})", i ? ", " : "", tensors[i].name, describe(tensors[i]));
  if (tensors.size() > 8) out += format(" and {} more", tensors.size() - 8);
  return out;
}

DLTensor view_of(const plan::TensorInfo& info, void* data) {
  return {data, {kDLCPU, 0}, static_cast<int32_t>(info.shape.size()), to_dlpack(info.dtype),
          const_cast<int64_t*>(info.shape.data()), nullptr, 0};
}

Status check_bound(const DLTensor* tensor, const plan::TensorInfo& info, const char* kind) {
  TW_TRY_STATUS(check_tensor(tensor, info, role(kind, info)));
  if (!is_compact(*tensor))
    return Diagnostic(ErrorCode::kInvalidArgument, "a bound tensor must be compact and row-major", role(kind, info),
                      "copy it, or use the call that copies");
  return Ok{};
}

}  // namespace

Result<uint64_t> find_tensor(const std::vector<plan::TensorInfo>& tensors, std::string_view name, const char* kind) {
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].name == name) return uint64_t{i};
  return Diagnostic(ErrorCode::kUnknownInput, format("no {} is named '{}'", kind, name), {}, listed(tensors, kind));
}

Status check_index(const std::vector<plan::TensorInfo>& tensors, uint64_t index, const char* kind) {
  if (index < tensors.size()) return Ok{};
  return Diagnostic(ErrorCode::kUnknownInput, format("{} {} does not exist", kind, index), {}, listed(tensors, kind));
}

Executor::Executor(std::shared_ptr<const Artifact> artifact, const ExecutorOptions& options)
    : artifact_(std::move(artifact)),
      team_(options.threads > 0 ? std::min(options.threads, 1024) : default_thread_count(),
            options.spin_us >= 0 ? options.spin_us : 100) {}

Result<std::unique_ptr<Executor>> Executor::create(std::shared_ptr<const Artifact> artifact, const ExecutorOptions& options) {
  std::unique_ptr<Executor> e(new Executor(std::move(artifact), options));
  const plan::Plan& plan = e->plan();
  const auto threads = static_cast<size_t>(e->threads());
  e->arena_ = TW_TRY(Arena::allocate(plan.arena_bytes + (threads - 1) * plan.scratch_bytes));
  e->inputs_.resize(plan.inputs.size());
  e->outputs_.resize(plan.outputs.size());
  for (size_t i = 0; i < plan.outputs.size(); ++i) e->allocate(e->outputs_[i], plan.outputs[i]);
  bool previous_parallel = false;
  for (const plan::Step& step : plan.steps) {
    e->calls_.push_back({e->artifact_->kernels()[step.kernel], static_cast<uint32_t>(e->arguments_.size()), step.parallel,
                         !e->calls_.empty() && (step.parallel || previous_parallel)});
    e->arguments_.resize(e->arguments_.size() + step.buffers.size());
    previous_parallel = step.parallel;
  }
  if (plan.scratch_bytes > 0) {
    e->arguments_per_thread_ = e->arguments_.size();
    e->arguments_.resize(e->arguments_.size() * threads);
  }
  return e;
}

void Executor::allocate(Slot& slot, const plan::TensorInfo& info) {
  if (!slot.own.defined()) slot.own = Tensor::zeros(info.dtype, info.shape);
  if (slot.data == slot.own.mutable_raw()) return;
  slot.data = slot.own.mutable_raw();
  arguments_stale_ = true;
}

Status Executor::set_input(uint64_t index, const DLTensor* tensor) {
  Claim claim(running_);
  TW_TRY_STATUS(claim.status());
  TW_TRY_STATUS(check_index(plan().inputs, index, "input"));
  const plan::TensorInfo& info = plan().inputs[index];
  TW_TRY_STATUS(check_tensor(tensor, info, role("input", info)));
  Slot& slot = inputs_[index];
  allocate(slot, info);
  auto copied = copy_from(*tensor, info.dtype, slot.data);
  if (!copied.ok()) return std::move(copied).error().at(role("input", info));
  slot.set = true;
  return Ok{};
}

Status Executor::bind_input(uint64_t index, const DLTensor* tensor) {
  Claim claim(running_);
  TW_TRY_STATUS(claim.status());
  TW_TRY_STATUS(check_index(plan().inputs, index, "input"));
  TW_TRY_STATUS(check_bound(tensor, plan().inputs[index], "input"));
  Slot& slot = inputs_[index];
  slot.data = data_of(*tensor);
  slot.set = true;
  slot.own = Tensor();
  arguments_stale_ = true;
  return Ok{};
}

Status Executor::bind_output(uint64_t index, const DLTensor* tensor) {
  Claim claim(running_);
  TW_TRY_STATUS(claim.status());
  TW_TRY_STATUS(check_index(plan().outputs, index, "output"));
  TW_TRY_STATUS(check_bound(tensor, plan().outputs[index], "output"));
  outputs_[index].data = data_of(*tensor);
  outputs_[index].own = Tensor();
  arguments_stale_ = true;
  return Ok{};
}

Status Executor::prepare() {
  const plan::Plan& p = plan();
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (!inputs_[i].set)
      return Diagnostic(ErrorCode::kInvalidArgument, format("input '{}' has not been set", p.inputs[i].name), {},
                        format("set it to a {} tensor first", describe(p.inputs[i])));
  if (!arguments_stale_) return Ok{};
  auto address = [&](const plan::Buffer& b, size_t thread) -> void* {
    std::byte* start = nullptr;
    switch (b.space) {
      case plan::Space::kArena:
        start = arena_.data();
        break;
      case plan::Space::kParams:  // mapped read-only: a kernel that wrote there would fault, which is a bug of the compiler
        start = const_cast<std::byte*>(artifact_->params());
        break;
      case plan::Space::kInput:
        start = static_cast<std::byte*>(inputs_[b.index].data);
        break;
      case plan::Space::kOutput:
        start = static_cast<std::byte*>(outputs_[b.index].data);
        break;
      case plan::Space::kScratch:
        start = arena_.data() + (p.arena_bytes - p.scratch_bytes) + thread * p.scratch_bytes;
        break;
    }
    return start ? start + b.offset : nullptr;
  };
  const size_t copies = arguments_per_thread_ > 0 ? static_cast<size_t>(team_.size()) : 1;
  size_t next = 0;
  for (size_t thread = 0; thread < copies; ++thread)
    for (const plan::Step& step : p.steps)
      for (uint32_t b : step.buffers) arguments_[next++] = address(p.buffers[b], thread);
  arguments_stale_ = false;
  return Ok{};
}

void Executor::walk(int tid, int threads) {
  FlushDenormals flush;
  void* const* arguments = arguments_.data() + static_cast<size_t>(tid) * arguments_per_thread_;
  for (const Call& call : calls_) {
    if (call.meet_before) team_.barrier();
    if (call.parallel) call.kernel(arguments + call.first_argument, tid, threads);
    else if (tid == 0) call.kernel(arguments + call.first_argument, 0, 1);
  }
}

void Executor::walk_timed(int tid, int threads) {
  FlushDenormals flush;
  void* const* arguments = arguments_.data() + static_cast<size_t>(tid) * arguments_per_thread_;
  for (size_t i = 0; i < calls_.size(); ++i) {
    const Call& call = calls_[i];
    team_.barrier();
    if (!call.parallel && tid != 0) continue;
    Interval& time = times_[i * static_cast<size_t>(team_.size()) + static_cast<size_t>(tid)];
    time.begin_ns = now_ns();
    call.kernel(arguments + call.first_argument, tid, call.parallel ? threads : 1);
    time.end_ns = now_ns();
  }
}

Status Executor::run() {
  Claim claim(running_);
  TW_TRY_STATUS(claim.status());
  TW_TRY_STATUS(prepare());
  team_.run([](void* self, int tid, int threads) { static_cast<Executor*>(self)->walk(tid, threads); }, this);
  return Ok{};
}

Result<std::unique_ptr<Profile>> Executor::profile(uint64_t repeats) {
  Claim claim(running_);
  TW_TRY_STATUS(claim.status());
  TW_TRY_STATUS(prepare());
  uint64_t per_repeat = calls_.size() * static_cast<uint64_t>(team_.size());
  if (repeats < 1 || repeats > (uint64_t{1} << 26) / std::max<uint64_t>(per_repeat, 1))
    return Diagnostic(ErrorCode::kInvalidArgument, format("{} repeats cannot be profiled", repeats), {}, "use 1 to some thousands");
  std::vector<Interval> times(repeats * per_repeat);
  for (uint64_t r = 0; r < repeats; ++r) {
    times_ = times.data() + r * per_repeat;
    team_.run([](void* self, int tid, int threads) { static_cast<Executor*>(self)->walk_timed(tid, threads); }, this);
  }
  times_ = nullptr;
  return std::make_unique<Profile>(plan(), times, repeats, team_.size());
}

Result<DLTensor> Executor::input(uint64_t index) {
  TW_TRY_STATUS(check_index(plan().inputs, index, "input"));
  const plan::TensorInfo& info = plan().inputs[index];
  Slot& slot = inputs_[index];
  if (!slot.set) {
    allocate(slot, info);
    slot.set = true;
  }
  return view_of(info, slot.data);
}

Result<DLTensor> Executor::output(uint64_t index) const {
  TW_TRY_STATUS(check_index(plan().outputs, index, "output"));
  return view_of(plan().outputs[index], outputs_[index].data);
}

Status Executor::copy_output(uint64_t index, const DLTensor* destination) const {
  TW_TRY_STATUS(check_index(plan().outputs, index, "output"));
  const plan::TensorInfo& info = plan().outputs[index];
  TW_TRY_STATUS(check_tensor(destination, info, role("output", info)));
  return copy_to(*destination, info.dtype, outputs_[index].data);
}

Status Executor::load_params(std::span<const std::byte> bytes) {
  auto params = TW_TRY(read_params_file(bytes));
  for (const NamedTensor& p : params) {
    auto index = find_tensor(plan().inputs, p.name, "input");
    if (!index.ok()) continue;
    plan::TensorInfo info{p.name, p.dtype, p.shape};
    DLTensor view = view_of(info, const_cast<std::byte*>(p.data.data()));
    TW_TRY_STATUS(set_input(*index, &view));
  }
  return Ok{};
}

Status Executor::share_params(const Executor& other, std::span<const std::byte> bytes) {
  auto params = TW_TRY(read_params_file(bytes));
  for (const NamedTensor& p : params) {
    auto mine = find_tensor(plan().inputs, p.name, "input"), theirs = find_tensor(other.plan().inputs, p.name, "input");
    if (!mine.ok() || !theirs.ok()) continue;
    const Slot& slot = other.inputs_[*theirs];
    if (!slot.set)
      return Diagnostic(ErrorCode::kInvalidArgument, format("the other executor's input '{}' has not been set", p.name));
    DLTensor view = view_of(other.plan().inputs[*theirs], slot.data);
    TW_TRY_STATUS(bind_input(*mine, &view));
  }
  return Ok{};
}

}  // namespace tilewright::runtime
