// SPDX-License-Identifier: Apache-2.0
#include "runtime/vm/specialized.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/format.h"
#include "runtime/dltensor.h"

namespace tilewright::runtime::vm {
namespace {

DLTensor view_of(const Tensor& t, std::vector<int64_t>* shape) {
  *shape = t.shape();
  return {const_cast<std::byte*>(t.raw()),
          {kDLCPU, 0},
          static_cast<int32_t>(shape->size()),
          to_dlpack(t.dtype()),
          shape->data(),
          nullptr,
          0};
}

constexpr uint64_t kLargestEarlyBytes = 256 << 10;
constexpr double kLeastParallelWork = 1e6;  // operations plus bytes
constexpr size_t kEarlyKeys = 4096;
constexpr int64_t kAlwaysCompiled = INT64_MAX;  // of a key's calls

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string bytes_of(const Tensor& t) {
  return {reinterpret_cast<const char*>(t.raw()), static_cast<size_t>(t.bytes())};
}

// The system may promise more memory than this, but then kills the process.
uint64_t physical_memory() {
  const auto pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && bytes > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(bytes) : uint64_t{1} << 36;
}

Diagnostic no_place(const char* what) {
  return Diagnostic(ErrorCode::kCannotWrite, format("a program's kernels cannot be put into memory: {}", what), {},
                    "free some memory");
}

// Loads a library from memory, through an anonymous file.
Result<std::shared_ptr<const Artifact>> load_library(std::string_view bytes) {
  const int file = memfd_create("tilewright-region", MFD_CLOEXEC);
  if (file < 0) return no_place(std::strerror(errno));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write(file, bytes.data() + done, bytes.size() - done);
    if (n <= 0 && errno != EINTR) break;
    done += static_cast<size_t>(std::max<ssize_t>(n, 0));
  }
  Result<std::shared_ptr<const Artifact>> artifact = no_place(std::strerror(errno));
  if (done == bytes.size()) artifact = Artifact::load(format("/proc/self/fd/{}", file));
  close(file);
  return artifact;
}

std::vector<Tensor> tensors_of(std::span<const Value> values) {
  std::vector<Tensor> out;
  for (const Value& v : values) out.push_back(v->tensor);
  return out;
}

}  // namespace

SpecializedFunctions::SpecializedFunctions(std::shared_ptr<const Program> program, Specialize specialize,
                                           const SpecializedOptions& options)
    : program_(std::move(program)),
      specialize_(std::move(specialize)),
      options_(options),
      arena_(std::make_shared<Arena>()),
      pool_(std::make_shared<MemoryPool>(options.keep_bytes, physical_memory())) {
  early_values_.resize(program_->regions.size());
  last_.resize(program_->regions.size(), entries_.end());
  kept_of_.resize(program_->regions.size(), 0);
  large_.resize(program_->regions.size(), false);
  ready_.resize(program_->regions.size());
  for (size_t i = 0; i < program_->regions.size(); ++i) {
    const Region& r = program_->regions[i];
    uint64_t bytes = r.source.size();
    for (const auto& piece : r.pieces) bytes += piece.second;
    large_[i] = bytes > kLargestEarlyBytes || !r.library.empty();  // by the size of its weights alone
    host_.emplace_back();
    if (r.format != "host") continue;
    if (auto made = host_function_of(r); made.ok()) host_.back() = std::move(*made);
  }
}

SpecializedFunctions::Entry* SpecializedFunctions::find_entry(size_t index, std::span<const Value> inputs) {
  auto fits = [&](const Entry& e) {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (e.shapes[i] != inputs[i]->tensor.shape()) return false;
    for (const auto& [argument, kept] : e.values) {
      const Tensor& t = inputs[argument]->tensor;
      if (t.bytes() != kept.size() || (!kept.empty() && std::memcmp(t.raw(), kept.data(), kept.size()) != 0))
        return false;
    }
    return true;
  };
  auto found = last_[index];
  if (found == entries_.end() || !fits(*found))
    found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.index == index && fits(e); });
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  last_[index] = found;
  return &*found;
}

Result<Specialization> SpecializedFunctions::kernels_for(size_t index, std::span<const Tensor> arguments) {
  const Region& region = program_->regions[index];
  if (!region.library.empty()) {
    if (!ready_[index]) ready_[index] = TW_TRY(load_library(region.library.view()));
    for (const plan::TensorInfo& input : ready_[index]->plan().inputs) {
      const auto at = static_cast<size_t>(std::find(region.inputs.begin(), region.inputs.end(), input.name) -
                                          region.inputs.begin());
      if (at < arguments.size() && (arguments[at].shape() != input.shape || !(arguments[at].dtype() == input.dtype)))
        return Diagnostic(ErrorCode::kShapeMismatch,
                          format("a region was compiled for {}, and meets {}", shape_str(input.shape),
                                 shape_str(arguments[at].shape())),
                          {}, "compile the model again");
    }
    return Specialization{ready_[index], {}};
  }
  if (!specialize_)
    return Diagnostic(
        ErrorCode::kUnsupportedModel, "the program has to be compiled for these shapes, and there is no compiler here",
        {},
        "install the compiler, or libtilewright_vm.so, which interprets, beside the runtime; or compile the "
        "model for fixed shapes with --shape");
  const int64_t begin = trace_ ? now_ns() : 0;
  auto made = TW_TRY(specialize_(index, arguments));
  ++compiled_;
  if (trace_) note(format("compile region_{}", index), "", begin);
  return made;
}

Result<SpecializedFunctions::Entry*> SpecializedFunctions::entry_for(size_t index, std::span<const Tensor> arguments) {
  auto made = TW_TRY(kernels_for(index, arguments));
  Entry entry{index, {}, {}, nullptr, {}};
  for (const Tensor& t : arguments) entry.shapes.push_back(t.shape());
  for (size_t i : made.by_value) entry.values.emplace_back(i, bytes_of(arguments[i]));
  const auto& names = program_->regions[index].inputs;
  for (const auto& info : made.artifact->plan().inputs) {
    auto at = std::find(names.begin(), names.end(), info.name);
    if (at == names.end())
      return Diagnostic(ErrorCode::kInternal,
                        format("the specialisation has an input '{}' that its region lacks", info.name));
    entry.arguments.push_back(static_cast<size_t>(at - names.begin()));
  }
  // Each step costs threads some microseconds: short steps stay on one thread.
  double work = 0;
  for (const auto& step : made.artifact->plan().steps) work += step.flops + step.bytes;
  ExecutorOptions with;
  with.threads = work < kLeastParallelWork ? 1 : options_.threads;
  auto& team = with.threads == 1 ? alone_ : team_;
  if (!team) team = make_team(with);
  with.team = team;
  with.arena = arena_;
  entry.executor = TW_TRY(Executor::create(made.artifact, with));
  entries_.push_front(std::move(entry));
  last_[index] = entries_.begin();
  ++kept_of_[index];
  while (entries_.size() > std::max<size_t>(1, options_.keep)) {
    auto oldest = std::prev(entries_.end());
    if (last_[oldest->index] == oldest) last_[oldest->index] = entries_.end();
    --kept_of_[oldest->index];
    entries_.erase(oldest);
  }
  return &entries_.front();
}

Status SpecializedFunctions::call(size_t index, std::span<const Value> inputs, std::span<Value> outputs) {
  if (index >= program_->regions.size())
    return Diagnostic(ErrorCode::kBadArtifact, format("region {} does not exist", index));
  const Region& region = program_->regions[index];
  if (inputs.size() != region.inputs.size())
    return Diagnostic(ErrorCode::kBadArtifact, format("region {} does not take {} arguments", index, inputs.size()));
  const int64_t begin = trace_ ? now_ns() : 0;
  if (const HostRegion& host = host_[index]; host.function) {
    for (Value& v : outputs) v = nullptr;
    HostCall call{inputs, outputs, host.attributes, *pool_};
    if (auto status = host.function(call); !status.ok())
      return std::move(status).error().at(region.source.substr(0, region.source.find('\n')));
    for (const Value& v : outputs)
      if (!v) return Diagnostic(ErrorCode::kBadArtifact, format("a function does not make {} results", outputs.size()));
    if (trace_) note(region.source.substr(0, region.source.find('\n')), "", begin);
    return Ok{};
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i] || inputs[i]->kind != Object::Kind::kTensor)
      return Diagnostic(ErrorCode::kTypeMismatch, format("'{}' is not a tensor", region.inputs[i]));
  if (region.format != "evaluate") return run_compiled(index, inputs, outputs);
  return evaluate(index, tensors_of(inputs), outputs);
}

Status SpecializedFunctions::evaluate(size_t index, std::span<const Tensor> arguments, std::span<Value> outputs) {
  if (!options_.evaluate)
    return Diagnostic(ErrorCode::kUnsupportedModel,
                      "the program computes with texts or files, and there is no interpreter here", {},
                      "install libtilewright_vm.so or the compiler beside the runtime");
  const int64_t begin = trace_ ? now_ns() : 0;
  auto made = TW_TRY(options_.evaluate(index, arguments, true)).results;
  if (trace_) note(format("evaluate region_{}", index), "", begin);
  if (made.size() != outputs.size())
    return Diagnostic(ErrorCode::kBadArtifact,
                      format("a region makes {} tensors where {} are expected", made.size(), outputs.size()));
  for (size_t i = 0; i < made.size(); ++i) {
    if (!outputs[i] || outputs[i]->kind != Object::Kind::kTensor || made[i].dtype().is_string()) {
      outputs[i] = make_tensor(std::move(made[i]));
      continue;
    }
    const Tensor& given = outputs[i]->tensor;
    if (given.dtype() != made[i].dtype() || given.shape() != made[i].shape())
      return Diagnostic(ErrorCode::kShapeMismatch,
                        format("a region makes {} {} where {} {} is expected", made[i].dtype().str(),
                               shape_str(made[i].shape()), given.dtype().str(), shape_str(given.shape())));
    if (given.bytes() > 0)
      std::memcpy(const_cast<std::byte*>(given.raw()), made[i].raw(), static_cast<size_t>(given.bytes()));
  }
  return Ok{};
}

size_t SpecializedFunctions::interpreted_regions() const { return specialize_ ? 0 : program_->open_regions(); }

Status SpecializedFunctions::run_compiled(size_t index, std::span<const Value> inputs, std::span<Value> outputs) {
  Entry* entry = find_entry(index, inputs);
  if (!entry) {
    const std::vector<Tensor> arguments = tensors_of(inputs);
    for (const Tensor& t : arguments)
      if (t.dtype().is_string()) return Diagnostic(ErrorCode::kTypeMismatch, "texts cannot be given to compiled code");
    if (!specialize_ && options_.evaluate && program_->is_open(index)) return evaluate(index, arguments, outputs);
    if (evaluate_early(index, arguments, outputs)) return Ok{};
    entry = TW_TRY(entry_for(index, arguments));
  }
  const plan::Plan& plan = entry->executor->plan();
  if (plan.outputs.size() != outputs.size())
    return Diagnostic(ErrorCode::kBadArtifact,
                      format("a region makes {} tensors where {} are expected", plan.outputs.size(), outputs.size()));
  std::vector<int64_t> shape;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    DLTensor view = view_of(inputs[entry->arguments[i]]->tensor, &shape);
    TW_TRY_STATUS(entry->executor->bind_input(i, &view));
  }
  std::vector<Tensor> made;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool given = outputs[i] && outputs[i]->kind == Object::Kind::kTensor;
    made.push_back(given ? outputs[i]->tensor : TW_TRY(pool_->allocate(plan.outputs[i].dtype, plan.outputs[i].shape)));
    DLTensor view = view_of(made.back(), &shape);
    TW_TRY_STATUS(entry->executor->bind_output(i, &view));
  }
  if (!trace_) {
    TW_TRY_STATUS(entry->executor->run());
  } else {
    const auto profile = TW_TRY(entry->executor->profile(1));
    for (const StepProfile& step : profile->steps()) {
      Interval all;
      for (const Interval& i : step.last) {
        if (i.end_ns == 0) continue;
        all.begin_ns = all.begin_ns == 0 ? i.begin_ns : std::min(all.begin_ns, i.begin_ns);
        all.end_ns = std::max(all.end_ns, i.end_ns);
      }
      trace_->push_back({step.name, step.source, all});
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i]) outputs[i] = make_tensor(std::move(made[i]));
  return Ok{};
}

void SpecializedFunctions::note(std::string name, std::string source, int64_t begin_ns) {
  trace_->push_back({std::move(name), std::move(source), {begin_ns, now_ns()}});
}

bool SpecializedFunctions::evaluate_early(size_t index, std::span<const Tensor> arguments, std::span<Value> outputs) {
  if (!options_.evaluate || options_.evaluate_first <= 0 || large_[index]) return false;
  for (const Value& v : outputs)
    if (v) return false;  // output to be filled
  size_t hash = index;
  auto mix = [&hash](size_t v) { hash = (hash ^ v) * 0x9e3779b97f4a7c15u; };
  for (const Tensor& t : arguments) {
    mix(t.shape().size());
    for (int64_t d : t.shape()) mix(static_cast<size_t>(d));
  }
  for (size_t i : early_values_[index]) mix(std::hash<std::string>()(bytes_of(arguments[i])));
  if (early_.size() >= kEarlyKeys) early_.clear();
  int64_t& calls = early_[hash];
  if (calls >= int64_t{options_.evaluate_first} << std::min(kept_of_[index] / 4, 30)) return false;
  const int64_t begin = trace_ ? now_ns() : 0;
  auto made = options_.evaluate(index, arguments, false);
  if (!made.ok() || made->results.size() != outputs.size()) {
    // If it is invalid, the compiler will report that. What is too much work at these sizes may be little at others.
    if (!made.ok() && made.error().code == ErrorCode::kLimitExceeded) calls = kAlwaysCompiled;
    return false;
  }
  ++calls;
  ++evaluated_;
  early_values_[index] = made->by_value;
  if (trace_) note(format("evaluate region_{}", index), "", begin);
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = make_tensor(std::move(made->results[i]));
  return true;
}

Result<std::unique_ptr<ProgramRunner>> ProgramRunner::create(const std::shared_ptr<const Program>& program,
                                                             Specialize specialize, const SpecializedOptions& options) {
  std::unique_ptr<ProgramRunner> runner(new ProgramRunner);
  runner->program_ = program;
  runner->functions_ = std::make_shared<SpecializedFunctions>(program, std::move(specialize), options);
  MachineOptions machine;
  machine.keep_bytes = options.keep_bytes;
  machine.interrupt = options.interrupt;
  runner->machine_ = TW_TRY(VirtualMachine::create(std::shared_ptr<const Executable>(program, &program->executable),
                                                   runner->functions_, machine));
  return runner;
}

Result<std::vector<Value>> ProgramRunner::run_values(std::vector<Value> inputs) {
  const auto& specs = program_->inputs;
  if (inputs.size() != specs.size())
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("the program takes {} inputs, {} are given", specs.size(), inputs.size()));
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!inputs[i])
      return Diagnostic(ErrorCode::kInvalidArgument, "nothing is given", format("input '{}'", specs[i].name));
    if (specs[i].kind == TensorSpec::Kind::kOther) continue;
    if (inputs[i]->kind != Object::Kind::kTensor)
      return Diagnostic(ErrorCode::kTypeMismatch, "it is not a tensor", format("input '{}'", specs[i].name));
    TW_TRY_STATUS(check_input(specs[i], inputs[i]->tensor));
  }
  Value result = TW_TRY(machine_->invoke("main", std::move(inputs)));
  if (program_->outputs.size() == 1) return std::vector<Value>{std::move(result)};
  if (!result || result->kind != Object::Kind::kAdt || result->fields.size() != program_->outputs.size())
    return Diagnostic(ErrorCode::kTypeMismatch,
                      format("the program's result is not a tuple of {} values", program_->outputs.size()));
  return result->fields;
}

Result<std::vector<Tensor>> ProgramRunner::run(std::vector<Tensor> inputs) {
  std::vector<Value> arguments;
  for (Tensor& t : inputs) arguments.push_back(make_tensor(std::move(t)));
  std::vector<Value> open = TW_TRY(run_values(std::move(arguments)));
  std::reverse(open.begin(), open.end());
  std::vector<Tensor> out;
  while (!open.empty()) {
    Value v = std::move(open.back());
    open.pop_back();
    if (v && v->kind == Object::Kind::kAdt)
      open.insert(open.end(), v->fields.rbegin(), v->fields.rend());
    else if (v && v->kind == Object::Kind::kTensor)
      out.push_back(v->tensor);
    else
      return Diagnostic(ErrorCode::kTypeMismatch, "the program's result is not made of tensors");
  }
  return out;
}

Result<std::shared_ptr<const Program>> program_of(const std::shared_ptr<const Artifact>& artifact) {
  auto program = program_of(artifact->plan(), artifact->params(), artifact);
  return program.ok() ? std::move(program) : std::move(program).error().at(artifact->path());
}

Result<std::shared_ptr<const Program>> program_of(const plan::Plan& plan, const std::byte* params,
                                                  const std::shared_ptr<const void>& owner) {
  auto kind = plan.metadata.find("kind");
  if (kind == plan.metadata.end() || kind->second != kProgramKind) return std::shared_ptr<const Program>();
  if (plan.params.size() != 1)
    return Diagnostic(ErrorCode::kBadArtifact, "the artifact lacks its VM program", {}, "compile the model again");
  Program program =
      TW_TRY(read_program({params + plan.params[0].offset, static_cast<size_t>(plan.params[0].bytes)}, owner));
  return std::shared_ptr<const Program>(std::make_shared<Program>(std::move(program)));
}

}  // namespace tilewright::runtime::vm
