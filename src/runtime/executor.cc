// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "runtime/claim.h"
#include "runtime/cpu.h"
#include "runtime/dltensor.h"
#include "runtime/params_file.h"
#include "runtime/vm/program.h"

namespace tilewright::runtime {
namespace {

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
  return {data,
          {kDLCPU, 0},
          static_cast<int32_t>(info.shape.size()),
          to_dlpack(info.dtype),
          const_cast<int64_t*>(info.shape.data()),
          nullptr,
          0};
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

std::shared_ptr<ThreadTeam> make_team(const ExecutorOptions& options) {
  const int threads = options.generated_entry ? 1
                      : options.threads > 0   ? std::min(options.threads, 1024)
                                              : default_thread_count();
  return std::make_shared<ThreadTeam>(threads, options.spin_us >= 0 ? options.spin_us : 100);
}

Executor::Executor(std::shared_ptr<const Artifact> artifact, const ExecutorOptions& options)
    : artifact_(std::move(artifact)),
      team_(options.team ? options.team : make_team(options)),
      arena_(options.arena ? options.arena : std::make_shared<Arena>()),
      // The generated entry cannot call functions of imported modules: such a plan is interpreted, on one thread as
      // well.
      generated_entry_(options.generated_entry && artifact_->plan().externals.empty()) {}

Result<std::unique_ptr<Executor>> Executor::create(std::shared_ptr<const Artifact> artifact,
                                                   const ExecutorOptions& options) {
  if (options.threads < 0)
    return Diagnostic(ErrorCode::kInvalidArgument, format("{} threads: a number from 0 on is needed", options.threads));
  if (auto kind = artifact->plan().metadata.find("kind");
      kind != artifact->plan().metadata.end() && kind->second == vm::kProgramKind)
    return Diagnostic(ErrorCode::kUnsupportedModel,
                      "the artifact is a VM program, whose sizes are known only when it runs", artifact->path(),
                      "run it with `tilewright run` or tilewright::VirtualMachine (tilewright/vm.h), or compile the "
                      "model for fixed sizes with --shape");
  if (options.generated_entry &&
      (!artifact->has_entry() || !artifact->plan().variants.empty() || !artifact->plan().free_sizes.empty()))
    return Diagnostic(ErrorCode::kUnsupportedModel,
                      artifact->has_entry() ? "the artifact has several shapes, and the generated entry runs one"
                                            : "the artifact has no generated entry",
                      artifact->path(), "use the graph executor");
  if (options.generated_entry && artifact->plan().devices.size() > 1)
    return Diagnostic(ErrorCode::kUnsupportedModel,
                      "the model runs on several devices, and the generated entry knows the processor alone",
                      artifact->path(), "use the graph executor");
  if (options.externals.size() != artifact->plan().externals.size())
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("the model calls {} functions of modules that it imports, and {} are known",
                             artifact->plan().externals.size(), options.externals.size()),
                      artifact->path(), "load the library as a module, with the loaders of its imports registered");
  std::unique_ptr<Executor> e(new Executor(std::move(artifact), options));
  const plan::Plan& first = e->artifact_->plan();
  uint64_t bytes = 0;
  std::vector<uint64_t> device_bytes(first.devices.size() - 1);
  for (size_t i = 0; i <= first.variants.size(); ++i) {
    const plan::Plan& plan = plan::variant_of(first, i);
    bytes = std::max(bytes, plan.arena_bytes + (static_cast<uint64_t>(e->threads()) - 1) * plan.scratch_bytes);
    for (size_t d = 0; d < device_bytes.size(); ++d)
      device_bytes[d] = std::max(device_bytes[d], plan.device_arena_bytes[d]);
  }
  TW_TRY_STATUS(e->arena_->grow(bytes));  // shared by variants, since only one runs at a time
  for (uint64_t n : device_bytes) e->device_arenas_.push_back(TW_TRY(Arena::allocate(n)));
  e->variants_.resize(1 + first.variants.size());
  e->now_ = e->variants_.data();
  for (size_t i = 0; i < e->variants_.size(); ++i)
    e->prepare_variant(e->variants_[i], plan::variant_of(first, i), options);
  e->enter(*e->now_, least_sizes(first));
  return e;
}

// The predicted time of a plan's parallel steps on one thread, as far as sharing can shorten it: threads wait for each
// other at each step. Without end where a step has no prediction, 0 where none is parallel.
static double shared_us(const plan::Plan& plan) {
  constexpr double kMeetingUs = 1;
  double sum = 0;
  for (const plan::Step& step : plan.steps)
    if (step.parallel) sum += step.predicted_us > 0 ? std::max(0.0, step.predicted_us - kMeetingUs) : HUGE_VAL;
  return sum;
}

void Executor::prepare_variant(Variant& v, const plan::Plan& plan, const ExecutorOptions& options) {
  v.plan = v.whole = &plan;
  v.inputs.resize(plan.inputs.size());
  v.outputs.resize(plan.outputs.size());
  bool previous_parallel = false;
  for (const plan::Step& step : plan.steps) {
    const bool kernel = step.kind == plan::StepKind::kKernel;
    v.calls.push_back({kernel ? artifact_->kernels()[step.kernel] : Kernel(),
                       static_cast<uint32_t>(kernel ? v.arguments.size() : v.specials.size()), step.parallel,
                       !v.calls.empty() && (step.parallel || previous_parallel)});
    if (!kernel)
      v.specials.emplace_back(plan, step, v.arguments.size(),
                              step.kind == plan::StepKind::kExternal ? options.externals[step.kernel] : FunctionRef());
    v.arguments.resize(v.arguments.size() + step.buffers.size());
    previous_parallel = step.parallel;
  }
  v.shares = threads() > 1 && shared_us(plan) >= options.least_shared_us;
  if (plan.scratch_bytes > 0) {
    v.arguments_per_thread = v.arguments.size();
    v.arguments.resize(v.arguments.size() * static_cast<size_t>(threads()));
  }
}

void Executor::enter(Variant& next, const std::vector<int64_t>& sizes) {
  const bool resized = !next.whole->free_sizes.empty() && (!next.sized || next.sized->sizes() != sizes);
  std::vector<std::vector<int64_t>> shapes;
  for (const plan::TensorInfo& input : now_->plan->inputs) shapes.push_back(input.shape);
  const std::vector<Slot> inputs = now_->inputs;
  if (resized) {
    if (!next.sized) next.sized = std::make_unique<SizedPlan>(*next.whole);
    next.sized->set_sizes(sizes);
    next.plan = &next.sized->shown();
  }
  for (size_t i = 0; i < next.inputs.size() && (resized || &next != now_); ++i) {
    if (next.plan->inputs[i].shape == shapes[i])
      next.inputs[i] = inputs[i];
    else if (resized)
      next.inputs[i] = {};
    else
      next.inputs[i].set = false;  // its content is from an earlier use
  }
  now_ = &next;
  next.stale = true;
  for (size_t i = 0; i < next.outputs.size(); ++i) {
    if (resized && next.sized->padded(true, i)) next.outputs[i] = {};
    if (!next.outputs[i].data) allocate(next.outputs[i], next.plan->outputs[i]);
  }
}

Status Executor::select_variant(size_t index) {
  Claim claim(running_);
  TW_TRY_STATUS(claim.status());
  if (index >= variants_.size())
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("there is no variant {}: the model was compiled for {} shape{}", index, variants_.size(),
                             variants_.size() == 1 ? "" : "s"));
  if (&variants_[index] != now_) enter(variants_[index], largest_sizes(*variants_[index].whole));
  return Ok{};
}

Status Executor::fit_variant(uint64_t index, const DLTensor* tensor) {
  auto has_shape = [&](const Variant& v) {
    const std::vector<int64_t>& shape = v.plan->inputs[index].shape;
    return tensor->ndim == static_cast<int32_t>(shape.size()) &&
           (shape.empty() || std::equal(shape.begin(), shape.end(), tensor->shape));
  };
  const bool one = variants_.size() == 1 && now_->whole->free_sizes.empty();
  if (one || !tensor || tensor->ndim < 0 || (tensor->ndim > 0 && !tensor->shape) || has_shape(*now_)) return Ok{};
  // The variant that keeps the most inputs set; the first of those.
  Variant* best = nullptr;
  int most = -1;
  std::vector<int64_t> best_sizes;
  for (Variant& v : variants_) {
    std::vector<int64_t> sizes = v.sized ? v.sized->sizes() : least_sizes(*v.whole);
    if (!(sizes.empty() ? has_shape(v) : sizes_for(*v.whole, index, *tensor, &sizes))) continue;
    int kept = 0;
    for (size_t i = 0; i < v.inputs.size(); ++i)
      kept += i != index && now_->inputs[i].set && shape_at(*v.whole, false, i, sizes) == now_->plan->inputs[i].shape;
    if (kept > most) best = &v, most = kept, best_sizes = std::move(sizes);
  }
  if (best) {
    enter(*best, best_sizes);
    return Ok{};
  }
  const auto& metadata = artifact_->plan().metadata;
  if (auto bounds = metadata.find(plan::kBoundsKey); bounds != metadata.end())
    return Diagnostic(ErrorCode::kShapeMismatch,
                      format("{} takes sizes within {}; the tensor is {}", role("input", plan().inputs[index]),
                             bounds->second, describe(*tensor)),
                      {}, "compile the model with wider bounds (--bound), or for this shape");
  std::string shapes;
  for (size_t i = 0; i < variants_.size() && i < 16; ++i)
    shapes += (i ? ", " : "") + describe(variants_[i].plan->inputs[index]);
  if (variants_.size() > 16) shapes += format(" and {} more", variants_.size() - 16);
  return Diagnostic(
      ErrorCode::kShapeMismatch,
      format("{} takes {}; the tensor is {}", role("input", plan().inputs[index]), shapes, describe(*tensor)), {},
      "pad or resize it to one of these, or compile the model for this shape, too");
}

void Executor::allocate(Slot& slot, const plan::TensorInfo& info) {
  if (!slot.own.defined()) slot.own = Tensor::zeros(info.dtype, info.shape);
  if (slot.data == slot.own.mutable_raw()) return;
  slot.data = slot.own.mutable_raw();
  now_->stale = true;
}

Status Executor::set_input(uint64_t index, const DLTensor* tensor) {
  Claim claim(running_);
  TW_TRY_STATUS(claim.status());
  TW_TRY_STATUS(check_index(plan().inputs, index, "input"));
  TW_TRY_STATUS(fit_variant(index, tensor));
  const plan::TensorInfo& info = plan().inputs[index];
  TW_TRY_STATUS(check_tensor(tensor, info, role("input", info)));
  Slot& slot = now_->inputs[index];
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
  TW_TRY_STATUS(fit_variant(index, tensor));
  TW_TRY_STATUS(check_bound(tensor, plan().inputs[index], "input"));
  Slot& slot = now_->inputs[index];
  slot.data = data_of(*tensor);
  slot.set = true;
  slot.own = Tensor();
  now_->stale = true;
  return Ok{};
}

Status Executor::bind_output(uint64_t index, const DLTensor* tensor) {
  Claim claim(running_);
  TW_TRY_STATUS(claim.status());
  TW_TRY_STATUS(check_index(plan().outputs, index, "output"));
  TW_TRY_STATUS(check_bound(tensor, plan().outputs[index], "output"));
  now_->outputs[index].data = data_of(*tensor);
  now_->outputs[index].own = Tensor();
  now_->stale = true;
  return Ok{};
}

std::byte* Executor::address(const plan::Buffer& b, size_t thread) const {
  std::byte* start = nullptr;
  switch (b.space) {
    case plan::Space::kArena:
      start = b.device == 0 ? arena_->data() : device_arenas_[b.device - 1].data();
      break;
    // mapped read-only: a kernel that wrote there would fault, which would be a defect of the
    case plan::Space::kParams:
      // compiler
      for (const auto& [index, tensor] : params_) {
        const plan::Param& p = plan().params[index];
        if (p.offset <= b.offset && b.offset < p.offset + p.bytes)
          return const_cast<std::byte*>(tensor.raw()) + (b.offset - p.offset);
      }
      start = const_cast<std::byte*>(artifact_->params());
      break;
    case plan::Space::kInput:
    case plan::Space::kOutput: {
      const bool output = b.space == plan::Space::kOutput;
      const std::vector<Slot>& slots = output ? now_->outputs : now_->inputs;
      if (b.index >= slots.size())  // a size
        return reinterpret_cast<std::byte*>(const_cast<int64_t*>(now_->sized->size(b.index - slots.size())));
      if (now_->sized) start = now_->sized->padded(output, b.index);
      if (!start) start = static_cast<std::byte*>(slots[b.index].data);
      break;
    }
    case plan::Space::kScratch:
      start = arena_->data() + (plan().arena_bytes - plan().scratch_bytes) + thread * plan().scratch_bytes;
      break;
  }
  return start ? start + b.offset : nullptr;
}

Status Executor::prepare() {
  const plan::Plan& p = plan();
  for (size_t i = 0; i < now_->inputs.size(); ++i)
    if (!now_->inputs[i].set)
      return Diagnostic(ErrorCode::kInvalidArgument, format("input '{}' has not been set", p.inputs[i].name), {},
                        format("set it to a {} tensor first", describe(p.inputs[i])));
  if (now_->sized)
    for (size_t i = 0; i < now_->inputs.size(); ++i) now_->sized->read(i, now_->inputs[i].data);
  if (!now_->stale && arena_->data() == arena_start_) return Ok{};
  const size_t copies = now_->arguments_per_thread > 0 ? static_cast<size_t>(team_->size()) : 1;
  size_t next = 0;
  for (size_t thread = 0; thread < copies; ++thread)
    for (const plan::Step& step : p.steps)
      for (uint32_t b : step.buffers) now_->arguments[next++] = address(p.buffers[b], thread);
  now_->stale = false;
  arena_start_ = arena_->data();
  arena_->touch(*team_);
  return Ok{};
}

Result<std::unique_ptr<Profile>> Executor::profile(uint64_t repeats) {
  Claim claim(running_);
  TW_TRY_STATUS(claim.status());
  TW_TRY_STATUS(prepare());
  uint64_t per_repeat = now_->calls.size() * static_cast<uint64_t>(team_->size());
  if (repeats < 1 || repeats > (uint64_t{1} << 26) / std::max<uint64_t>(per_repeat, 1))
    return Diagnostic(ErrorCode::kInvalidArgument, format("{} repeats cannot be profiled", repeats), {},
                      "use 1 to some thousands");
  std::vector<Interval> times(repeats * per_repeat);
  for (uint64_t r = 0; r < repeats; ++r) {
    times_ = times.data() + r * per_repeat;
    team_->run([](void* self, int tid, int threads) { static_cast<Executor*>(self)->walk_timed(tid, threads); }, this);
  }
  times_ = nullptr;
  TW_TRY_STATUS(finish());
  return std::make_unique<Profile>(plan(), times, repeats, team_->size());
}

Result<DLTensor> Executor::input(uint64_t index) {
  TW_TRY_STATUS(check_index(plan().inputs, index, "input"));
  const plan::TensorInfo& info = plan().inputs[index];
  Slot& slot = now_->inputs[index];
  if (!slot.set) {
    allocate(slot, info);
    slot.set = true;
  }
  return view_of(info, slot.data);
}

Result<DLTensor> Executor::output(uint64_t index) const {
  TW_TRY_STATUS(check_index(plan().outputs, index, "output"));
  return view_of(plan().outputs[index], now_->outputs[index].data);
}

Status Executor::copy_output(uint64_t index, const DLTensor* destination) const {
  TW_TRY_STATUS(check_index(plan().outputs, index, "output"));
  const plan::TensorInfo& info = plan().outputs[index];
  TW_TRY_STATUS(check_tensor(destination, info, role("output", info)));
  return copy_to(*destination, info.dtype, now_->outputs[index].data);
}

int64_t Executor::param_index(std::string_view name) const {
  const auto& params = plan().params;
  for (size_t i = 0; i < params.size(); ++i)
    if (params[i].name == name) return static_cast<int64_t>(i);
  return -1;
}

Status Executor::set_param(uint64_t index, const DLTensor* tensor) {
  if (generated_entry_)
    return Diagnostic(ErrorCode::kInvalidArgument,
                      "an ahead-of-time executor's weights are those of the library and cannot be set", {},
                      "build with Executor(\"graph\") to replace weights");
  Claim claim(running_);
  TW_TRY_STATUS(claim.status());
  const plan::Param& p = plan().params.at(index);
  auto where = format("weight '{}'", p.name);
  Status fits = check_tensor(tensor, {p.name, p.dtype, p.shape}, where);
  if (!fits.ok()) {
    Diagnostic d = std::move(fits).error();
    d.hint = "weights keep the shape and the packing they were compiled with; compile again to change them";
    return d;
  }
  // Padded like the library's weights: vector loads may read past the end.
  Tensor copy = Tensor::zeros(kUInt8, {static_cast<int64_t>(p.bytes + 64)});
  auto copied = copy_from(*tensor, p.dtype, copy.mutable_raw());
  if (!copied.ok()) return std::move(copied).error().at(where);
  params_[index] = std::move(copy);
  for (Variant& v : variants_) v.stale = true;
  return Ok{};
}

const void* Executor::param_data(uint64_t index) const {
  auto found = params_.find(index);
  return found == params_.end() ? artifact_->params() + plan().params.at(index).offset : found->second.raw();
}

Result<const void*> Executor::buffer_data(uint32_t buffer) {
  const std::byte* data = address(plan().buffers.at(buffer), 0);
  if (!data)
    return Diagnostic(ErrorCode::kInvalidArgument, format("buffer {} has no memory before its input is set", buffer));
  return static_cast<const void*>(data);
}

Status Executor::load_params(std::span<const std::byte> bytes) {
  auto params = TW_TRY(read_params_file(bytes));
  for (const NamedTensor& p : params) {
    auto index = find_tensor(plan().inputs, p.name, "input");
    int64_t param = index.ok() ? -1 : param_index(p.name);
    if (!index.ok() && param < 0) continue;
    plan::TensorInfo info{p.name, p.dtype, p.shape};
    DLTensor view = view_of(info, const_cast<std::byte*>(p.data.data()));
    if (index.ok())
      TW_TRY_STATUS(set_input(*index, &view));
    else
      TW_TRY_STATUS(set_param(static_cast<uint64_t>(param), &view));
  }
  return Ok{};
}

Status Executor::share_params(const Executor& other, std::span<const std::byte> bytes) {
  auto params = TW_TRY(read_params_file(bytes));
  for (const NamedTensor& p : params) {
    auto mine = find_tensor(plan().inputs, p.name, "input"), theirs = find_tensor(other.plan().inputs, p.name, "input");
    int64_t param = mine.ok() ? -1 : param_index(p.name), their_param = other.param_index(p.name);
    if (param >= 0 && their_param >= 0) {  // a weight replaced in the other executor is shared, not copied
      auto replaced = other.params_.find(static_cast<uint64_t>(their_param));
      const plan::Param &a = plan().params[static_cast<size_t>(param)],
                        &b = other.plan().params[static_cast<size_t>(their_param)];
      if (replaced == other.params_.end()) continue;
      if (a.shape != b.shape || !(a.dtype == b.dtype) || a.bytes != b.bytes)
        return Diagnostic(ErrorCode::kShapeMismatch, format("weight '{}' was compiled in another form there", p.name));
      params_[static_cast<uint64_t>(param)] = replaced->second;
      for (Variant& v : variants_) v.stale = true;
      continue;
    }
    if (!mine.ok() || !theirs.ok()) continue;
    const Slot& slot = other.now_->inputs[*theirs];
    if (!slot.set)
      return Diagnostic(ErrorCode::kInvalidArgument,
                        format("the other executor's input '{}' has not been set", p.name));
    DLTensor view = view_of(other.plan().inputs[*theirs], slot.data);
    TW_TRY_STATUS(bind_input(*mine, &view));
  }
  return Ok{};
}

}  // namespace tilewright::runtime
