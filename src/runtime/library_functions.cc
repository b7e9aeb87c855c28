// SPDX-License-Identifier: Apache-2.0
#include "runtime/library_functions.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>

#include "base/format.h"
#include "runtime/arena.h"
#include "runtime/cpu.h"
#include "runtime/dltensor.h"
#include "runtime/thread_team.h"

namespace tilewright::runtime {

// Created by the first call that needs it.
struct LibraryFunctions::Team {
  std::mutex busy;
  std::unique_ptr<ThreadTeam> threads;
  Arena arena;
};

// One call of a function.
class LibraryFunctions::Call {
 public:
  Call(const plan::Function& function, const Artifact& artifact) : function_(function), artifact_(artifact) {}

  // Sizes first, since other dimensions may depend on them.
  Status take(const Arguments& args) {
    const size_t taken = function_.arguments.size() - (function_.returns() ? 1 : 0);
    if (args.size() != taken)
      return wrong(format("{} arguments were given, and it takes {}", args.size(), taken),
                   "'tilewright inspect' shows what they are");
    sizes_.assign(function_.sizes.size(), -1);
    for (size_t i = 0; i < args.size(); ++i) TW_TRY_STATUS(take_sizes(args, i));
    for (uint32_t i : function_.tensors) {
      if (function_.arguments[i].returned) {
        data_.push_back(&returned_), data_bytes_.push_back(sizeof returned_);
        continue;
      }
      const DLTensor* tensor = TW_TRY(args.tensor(i));
      TW_TRY_STATUS(check(i, tensor));
      data_.push_back(data_of(*tensor));
      uint64_t elements = 1;
      for (int32_t d = 0; d < tensor->ndim; ++d) elements *= static_cast<uint64_t>(tensor->shape[d]);
      data_bytes_.push_back(function_.arguments[i].dtype.bytes_for(elements));
    }
    return Ok{};
  }

  // Runs on the team's threads; null: on the caller's.
  Status run(ThreadTeam* team, Arena* arena) {
    team_ = team;
    const size_t threads = team ? static_cast<size_t>(team->size()) : 1;
    TW_TRY_STATUS(place_workspaces(threads, arena));
    const size_t first = sizes_.empty() ? 0 : 1;
    if (first) extents_.push_back(sizes_.size() * sizeof(int64_t));
    extents_.insert(extents_.end(), data_bytes_.begin(), data_bytes_.end());
    for (const Place& place : places_) extents_.push_back(place.bytes);
    for (size_t t = 0; t < threads; ++t) {
      std::vector<void*>& list = buffers_.emplace_back();
      if (first) list.push_back(sizes_.data());
      list.insert(list.end(), data_.begin(), data_.end());
      for (const Place& place : places_) list.push_back(arena->data() + place.offset + place.per_thread * t);
    }
    if (team)
      team->run([](void* self, int tid, int n) { static_cast<Call*>(self)->walk(tid, n); }, this);
    else
      walk(0, 1);
    if (failed_) return std::move(*failed_);
    return Ok{};
  }

  // What the function returned.
  Value result() const {
    if (!function_.returns()) return {};
    const DataType t = function_.arguments.back().dtype;
    if (t == kFloat32) return Value(double{std::bit_cast<float>(static_cast<uint32_t>(returned_))});
    if (t == kFloat64) return Value(std::bit_cast<double>(returned_));
    const int unused = 64 - t.bits;
    const uint64_t high = returned_ << unused;
    return Value(t.is_uint() ? static_cast<int64_t>(high >> unused) : static_cast<int64_t>(high) >> unused);
  }

  bool is_parallel() const {
    return std::any_of(function_.kernels.begin(), function_.kernels.end(), [](const auto& k) { return k.parallel; });
  }

 private:
  Diagnostic wrong(std::string what, std::string hint = {}) const {
    return Diagnostic(ErrorCode::kInvalidArgument, std::move(what), format("function {}", function_.name),
                      std::move(hint));
  }
  Status set_size(size_t which, int64_t value, const std::string& where) {
    if (value < 0 || value > plan::kMaxFunctionSize)
      return Diagnostic(
          ErrorCode::kLimitExceeded,
          format("the size '{}' is {}, and sizes are 0 to {}", function_.sizes[which], value, plan::kMaxFunctionSize),
          where);
    if (sizes_[which] < 0) sizes_[which] = value;
    return Ok{};
  }

  Status take_sizes(const Arguments& args, size_t i) {
    const plan::FunctionArgument& a = function_.arguments[i];
    if (a.scalar && a.dtype == kFloat64) {
      sizes_[a.size] = std::bit_cast<int64_t>(TW_TRY(args.number(i)));
      return Ok{};
    }
    if (a.scalar && a.dtype == kInt32) {
      sizes_[a.size] = TW_TRY(args.integer(i));
      return Ok{};
    }
    if (a.scalar) return set_size(a.size, TW_TRY(args.integer(i)), format("argument '{}'", a.name));
    const DLTensor* tensor = TW_TRY(args.tensor(i));
    if (tensor->ndim < 0 || static_cast<size_t>(tensor->ndim) != a.shape.size() || (tensor->ndim > 0 && !tensor->shape))
      return Diagnostic(
          ErrorCode::kShapeMismatch,
          format("expected {} of {} dimensions, got {}", a.dtype.str(), a.shape.size(), describe(*tensor)),
          format("argument '{}' of {}", a.name, function_.name), "reshape the tensor");
    for (size_t d = 0; d < a.shape.size(); ++d)
      if (a.shape[d].size() == 1 && a.shape[d][0].op == plan::SizeOp::kSize)
        TW_TRY_STATUS(
            set_size(static_cast<size_t>(a.shape[d][0].value), tensor->shape[d], format("argument '{}'", a.name)));
    return Ok{};
  }

  Status check(uint32_t i, const DLTensor* tensor) const {
    const plan::FunctionArgument& a = function_.arguments[i];
    plan::TensorInfo info{a.name, a.dtype, {}};
    for (const plan::SizeProgram& p : a.shape) {
      const auto extent = plan::evaluate(p, sizes_);
      if (!extent || *extent < 0)
        return wrong(format("dimension {} of argument '{}' is none for these sizes", info.shape.size(), a.name));
      info.shape.push_back(*extent);
    }
    TW_TRY_STATUS(check_tensor(tensor, info, format("argument '{}' of {}", a.name, function_.name)));
    if (!is_compact(*tensor))
      return wrong(format("argument '{}' has strides", a.name), "give a tensor whose elements lie one after another");
    if (reinterpret_cast<uintptr_t>(data_of(*tensor)) % std::max<uint64_t>(1, a.dtype.element().bytes()) != 0)
      return wrong(format("the elements of argument '{}' are not aligned", a.name), "copy the tensor");
    return Ok{};
  }

  Status place_workspaces(size_t threads, Arena* arena) {
    uint64_t total = 0;
    for (const plan::FunctionWorkspace& w : function_.workspaces) {
      const auto bytes = plan::evaluate(w.bytes, sizes_);
      uint64_t one = 0, all = 0;
      const bool fits = bytes && !__builtin_add_overflow(static_cast<uint64_t>(std::max<int64_t>(*bytes, 0)), 63, &one);
      one = one / 64 * 64;
      if (!fits || __builtin_mul_overflow(one, w.per_thread ? threads : 1, &all) ||
          __builtin_add_overflow(total, all, &all))
        return Diagnostic(ErrorCode::kLimitExceeded, "the working memory for these sizes is beyond any machine",
                          format("function {}", function_.name));
      places_.push_back({total, w.per_thread ? one : 0, one});
      total = all;
    }
    return total ? arena->grow(total) : Ok{};
  }

  void walk(int tid, int threads) {
    void* const* buffers = buffers_[static_cast<size_t>(tid)].data();
    auto call = function_.calls.begin();
    for (size_t i = 0; i <= function_.kernels.size(); ++i) {
      if (i > 0 && threads > 1) team_->barrier(tid);
      const auto first = call;
      for (; call != function_.calls.end() && call->before == i; ++call)
        if (tid == 0 && !failing_.load(std::memory_order_relaxed)) make_call(*call);
      if (call != first && threads > 1) team_->barrier(tid);
      if (i == function_.kernels.size()) return;
      // What failed ends no thread: the others would wait for it.
      if (failing_.load(std::memory_order_relaxed)) continue;
      const plan::FunctionKernel& k = function_.kernels[i];
      if (k.parallel || tid == 0) run_kernel(artifact_.kernels()[k.kernel], buffers, tid, k.parallel ? threads : 1);
    }
  }

  // On thread 0, while the others wait.
  void make_call(const plan::FunctionCall& c) {
    std::vector<DLTensor> tensors(c.arguments.size());
    std::vector<std::vector<int64_t>> shapes(c.arguments.size());
    std::vector<tw_value> values;
    for (size_t i = 0; i < c.arguments.size(); ++i) {
      const plan::FunctionCall::Argument& a = c.arguments[i];
      tw_value& v = values.emplace_back();
      v = {};
      if (a.kind == plan::FunctionCall::Kind::kFloat) {
        v.kind = TW_FLOAT, v.as.f = a.number;
        continue;
      }
      const std::vector<plan::SizeProgram> integer = {a.integer};
      for (const plan::SizeProgram& p : a.kind == plan::FunctionCall::Kind::kTensor ? a.shape : integer) {
        const auto n = plan::evaluate(p, sizes_);
        if (!n) return fail_call(wrong(format("an argument of '{}' is none for these sizes", c.name)));
        shapes[i].push_back(*n);
      }
      if (a.kind == plan::FunctionCall::Kind::kInteger) {
        v.kind = TW_INT, v.as.i = shapes[i][0];
        continue;
      }
      const size_t first = sizes_.empty() ? 0 : 1;
      DLTensor& t = tensors[i] = {};
      t.data = buffers_[0][first + a.memory];
      t.device = {kDLCPU, 0}, t.dtype = to_dlpack(a.dtype);
      t.ndim = static_cast<int32_t>(shapes[i].size()), t.shape = shapes[i].data();
      v.kind = TW_TENSOR, v.as.tensor = &t;
    }
    const FunctionRef function = find_global(c.name);
    if (!function)
      return fail_call(wrong(format("it calls the function '{}', and none is registered by that name", c.name),
                             "register it, or import the package that brings it"));
    if (auto result = runtime::call(function.get(), values); !result.ok()) fail_call(std::move(result).error());
  }
  void run_kernel(const Kernel& kernel, void* const* buffers, int tid, int threads) {
    Status status = kernel.run(buffers, tid, threads, extents_.data());
    if (!status.ok()) fail_call(std::move(status).error());
  }
  void fail_call(Diagnostic d) {
    if (!failing_.exchange(true, std::memory_order_relaxed)) failed_ = std::move(d);
  }

  struct Place {
    uint64_t offset, per_thread, bytes;  // of one thread's
  };
  const plan::Function& function_;
  const Artifact& artifact_;
  ThreadTeam* team_ = nullptr;
  std::vector<int64_t> sizes_;
  uint64_t returned_ = 0;  // the first bytes of it
  std::vector<void*> data_;
  std::vector<uint64_t> data_bytes_;
  std::vector<Place> places_;
  std::vector<std::vector<void*>> buffers_;  // by thread
  std::vector<uint64_t> extents_;            // bytes of the buffers
  std::atomic<bool> failing_{false};         // set by the first thread that fails, which says why
  std::optional<Diagnostic> failed_;
};

// Byte code says how many buffers it takes; code of the processor is trusted.
static Status check_parameters(const plan::Function& f, const Artifact& artifact) {
  const size_t given = (f.sizes.empty() ? 0 : 1) + f.tensors.size() + f.workspaces.size();
  for (const plan::FunctionKernel& k : f.kernels)
    if (const stackvm::Program* program = artifact.kernels()[k.kernel].program();
        program && program->parameters != given)
      return Diagnostic(ErrorCode::kBadArtifact,
                        format("kernel {} takes {} buffers, and the function '{}' gives it {}", program->name,
                               program->parameters, f.name, given),
                        artifact.path(), "compile the model again");
  return Ok{};
}

Result<std::shared_ptr<const LibraryFunctions>> LibraryFunctions::of(const std::shared_ptr<const Artifact>& artifact) {
  auto out = std::make_shared<LibraryFunctions>();
  out->artifact_ = artifact;
  out->team_ = std::make_shared<Team>();
  const auto& metadata = artifact->plan().metadata;
  if (auto found = metadata.find(plan::kFunctionsKey); found != metadata.end())
    for (plan::Function& f : TW_TRY(plan::read_functions(found->second, artifact->kernels().size()))) {
      TW_TRY_STATUS(check_parameters(f, *artifact));
      out->functions_.push_back(std::make_shared<const plan::Function>(std::move(f)));
    }
  return std::shared_ptr<const LibraryFunctions>(std::move(out));
}

std::vector<std::string> LibraryFunctions::names() const {
  std::vector<std::string> out;
  for (const auto& f : functions_) out.push_back(f->name);
  return out;
}

FunctionRef LibraryFunctions::find(const std::string& name) const {
  auto found = std::find_if(functions_.begin(), functions_.end(), [&](const auto& f) { return f->name == name; });
  if (found == functions_.end() && name == kEntryFunction) found = functions_.begin();
  if (found == functions_.end()) return {};
  return make_function((*found)->name,
                       [function = *found, artifact = artifact_, team = team_](const Arguments& args) -> Result<Value> {
                         Call call(*function, *artifact);
                         TW_TRY_STATUS(call.take(args));
                         std::unique_lock<std::mutex> lock(team->busy, std::try_to_lock);
                         if (!lock.owns_lock()) {
                           Arena own;
                           TW_TRY_STATUS(call.run(nullptr, &own));
                           return call.result();
                         }
                         const int threads = default_thread_count();
                         if (call.is_parallel() && threads > 1 && !team->threads)
                           team->threads = std::make_unique<ThreadTeam>(threads, 100);
                         TW_TRY_STATUS(call.run(call.is_parallel() ? team->threads.get() : nullptr, &team->arena));
                         return call.result();
                       });
}

}  // namespace tilewright::runtime
