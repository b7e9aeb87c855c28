// SPDX-License-Identifier: Apache-2.0
#include "runtime/vm/machine.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "base/checked.h"
#include "base/format.h"

namespace tilewright::runtime::vm {
namespace {

constexpr size_t kAlignment = 128, kSmallestClass = 12;  // 4 KiB
constexpr uint64_t kHugePage = uint64_t{2} << 20;

// Class 2k holds blocks of 2^(12+k) bytes, class 2k+1 of 1.5 times that.
size_t class_of(uint64_t bytes) {
  if (bytes <= (uint64_t{1} << kSmallestClass)) return 0;
  const auto log = static_cast<size_t>(std::bit_width(bytes - 1)) - 1;  // 2^log < bytes <= 2^(log+1)
  return 2 * (log - kSmallestClass) + (bytes <= (uint64_t{3} << (log - 1)) ? 1 : 2);
}
uint64_t class_bytes(size_t c) { return (uint64_t{1} << (kSmallestClass + c / 2)) / 2 * (c % 2 ? 3 : 2); }

Diagnostic wrong(std::string what) {
  return Diagnostic(ErrorCode::kTypeMismatch, std::move(what), {}, "the program does not fit its arguments");
}

Result<const Object*> object_in(const Value& v, Object::Kind kind, const char* what) {
  if (!v || v->kind != kind)
    return wrong(format("a register holds {} where {} is needed", v ? "another kind of object" : "nothing", what));
  return v.get();
}
Result<int64_t> integer_in(const Value& v) {
  const Tensor& t = TW_TRY(object_in(v, Object::Kind::kTensor, "an integer"))->tensor;
  if (t.size() != 1 || !(t.dtype().is_integral() || t.dtype().is_bool()))
    return wrong(format("a register holds {} {} where an integer is needed", t.dtype().str(), shape_str(t.shape())));
  return t.at_int(0);
}
Result<std::vector<int64_t>> integers_in(const Value& v) {
  const Tensor& t = TW_TRY(object_in(v, Object::Kind::kTensor, "a shape"))->tensor;
  if (!t.dtype().is_integral() || t.rank() > 1 || t.size() > 32)
    return wrong(format("a register holds {} {} where a shape is needed", t.dtype().str(), shape_str(t.shape())));
  std::vector<int64_t> out;
  for (int64_t i = 0; i < t.size(); ++i) out.push_back(t.at_int(i));
  return out;
}
DataType dtype_of(const int64_t* fields) {
  constexpr TypeCode kCodes[] = {TypeCode::kInt, TypeCode::kUInt, TypeCode::kFloat, TypeCode::kHandle,
                                 TypeCode::kBFloat};
  DataType t{kCodes[fields[0]], static_cast<uint8_t>(fields[1]), 1};  // checked by the verifier
  return t == DataType{TypeCode::kUInt, 1, 1} ? kBool : t;
}
// A tensor inside a storage, which it keeps alive.
Result<Value> tensor_within(const Value& storage, int64_t offset, DataType dtype, std::vector<int64_t> shape) {
  const Tensor& bytes = TW_TRY(object_in(storage, Object::Kind::kStorage, "a storage"))->tensor;
  auto count = checked_element_count(shape);
  int64_t end;
  if (!count.ok() || offset < 0 ||
      !checked_add(offset, static_cast<int64_t>(dtype.bytes_for(static_cast<uint64_t>(*count))), &end) ||
      end > bytes.size())
    return wrong(
        format("a tensor {} at byte {} does not fit its storage of {} bytes", shape_str(shape), offset, bytes.size()));
  return make_tensor(Tensor::view(dtype, std::move(shape), bytes.raw() + offset, storage));
}

Result<Value> field_of(const Value& value, size_t index) {
  const Object* o = TW_TRY(object_in(value, Object::Kind::kAdt, "a tuple or data type"));
  if (index >= o->fields.size()) return wrong(format("field {} of a value with {}", index, o->fields.size()));
  return o->fields[index];
}
Result<Value> shape_of(const Value& value) {
  const auto& shape = TW_TRY(object_in(value, Object::Kind::kTensor, "a tensor"))->tensor.shape();
  return make_tensor(Tensor::from<int64_t>(kInt64, {static_cast<int64_t>(shape.size())}, shape));
}
Result<Value> tag_of(const Value& value) {
  const int64_t tag = TW_TRY(object_in(value, Object::Kind::kAdt, "a data type"))->tag;
  return make_tensor(Tensor::scalar<int32_t>(kInt32, static_cast<int32_t>(tag)));
}
Result<Value> reshaped(const Value& value, const Value& new_shape) {
  const Tensor& t = TW_TRY(object_in(value, Object::Kind::kTensor, "a tensor"))->tensor;
  auto shape = TW_TRY(integers_in(new_shape));
  auto count = checked_element_count(shape);
  if (!count.ok() || *count != t.size())
    return wrong(format("a tensor {} cannot become {}", shape_str(t.shape()), shape_str(shape)));
  return make_tensor(t.reshaped(std::move(shape)));
}
Result<Value> storage_of(MemoryPool& pool, int64_t bytes) {
  if (bytes < 0) return wrong(format("a storage of {} bytes", bytes));
  auto storage = std::make_shared<Object>();
  storage->kind = Object::Kind::kStorage;
  storage->tensor = TW_TRY(pool.allocate(kUInt8, {bytes}));
  return Value(std::move(storage));
}
Value closure_of(int64_t function, std::vector<Value> captured) {
  auto closure = std::make_shared<Object>();
  closure->kind = Object::Kind::kClosure;
  closure->tag = function;
  closure->fields = std::move(captured);
  return closure;
}

Value make_constant(Tensor tensor) {
  auto o = std::make_shared<Object>();
  o->tensor = std::move(tensor);
  o->constant = true;
  return o;
}

}  // namespace

Object::~Object() {
  // Before the last reference to an object goes, its fields are moved out, so that destruction does not recurse.
  std::vector<Value> dying;
  auto take = [&dying](std::vector<Value>& fields) {
    for (Value& v : fields)
      if (v && v->kind != Kind::kTensor && v.use_count() == 1) dying.push_back(std::move(v));
    fields.clear();
  };
  take(fields);
  while (!dying.empty()) {
    Value v = std::move(dying.back());
    dying.pop_back();
    take(const_cast<Object*>(v.get())->fields);
  }
}

Value make_tensor(Tensor tensor) {
  auto o = std::make_shared<Object>();
  o->tensor = std::move(tensor);
  return o;
}
Value make_adt(int64_t tag, std::vector<Value> fields) {
  auto o = std::make_shared<Object>();
  o->kind = Object::Kind::kAdt;
  o->tag = tag;
  o->fields = std::move(fields);
  return o;
}

MemoryPool::~MemoryPool() {
  for (auto& list : free_)
    for (void* block : list) std::free(block);
}

Result<Tensor> MemoryPool::allocate(DataType dtype, std::vector<int64_t> shape) {
  auto count = TW_TRY(checked_element_count(shape));
  const uint64_t bytes =
      dtype.bytes_for(static_cast<uint64_t>(count)) + 64;  // kernels may load a vector at the last element
  const size_t c = class_of(bytes);
  const uint64_t size = class_bytes(c);
  auto full = [&] {
    return Diagnostic(ErrorCode::kLimitExceeded,
                      format("a tensor {} of {} does not fit into memory", dtype.str(), shape_str(shape)), {},
                      "use smaller inputs");
  };
  if (size > limit_ - std::min(used_, limit_)) return full();
  if (free_.size() <= c) free_.resize(c + 1);
  void* block = nullptr;
  if (!free_[c].empty()) {
    block = free_[c].back();
    free_[c].pop_back();
    kept_ -= size;
  } else {
    const uint64_t alignment = size >= kHugePage ? kHugePage : kAlignment;
    block = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    if (!block) return full();
    // Fewer page faults, and fewer entries of the address translation for the kernels.
    if (size >= kHugePage) madvise(block, size, MADV_HUGEPAGE);
  }
  used_ += size;
  most_used_ = std::max(most_used_, used_);
  std::shared_ptr<const void> owner(
      block, [pool = shared_from_this(), c](const void* p) { pool->give_back(const_cast<void*>(p), c); });
  return Tensor::view(dtype, std::move(shape), block, std::move(owner));
}

void MemoryPool::give_back(void* block, size_t c) {
  const uint64_t size = class_bytes(c);
  used_ -= size;
  if (kept_ + size > keep_bytes_ && used_ + kept_ + size > most_used_) return std::free(block);
  kept_ += size;
  free_[c].push_back(block);
}

Result<std::unique_ptr<VirtualMachine>> VirtualMachine::create(std::shared_ptr<const Executable> executable,
                                                               std::shared_ptr<PackedFunctions> functions,
                                                               const MachineOptions& options) {
  std::unique_ptr<VirtualMachine> vm(new VirtualMachine);
  for (const Constant& c : executable->constants) {
    if (!c.data.defined())
      return Diagnostic(ErrorCode::kBadArtifact, format("the constant '{}' has not been bound", c.late_name), {},
                        "load the late-bound constants first");
    vm->constants_.push_back(make_constant(c.data));
  }
  for (const Function& f : executable->functions) {
    auto& loads = vm->immediates_.emplace_back(f.code.size());
    for (size_t i = 0; i < f.code.size(); ++i)
      if (f.code[i].op == Opcode::kLoadConsti)
        loads[i] = make_constant(Tensor::scalar<int64_t>(kInt64, f.code[i].fields[0]));
  }
  vm->executable_ = std::move(executable);
  vm->functions_ = std::move(functions);
  vm->pool_ = std::make_shared<MemoryPool>(options.keep_bytes);
  vm->options_ = options;
  return vm;
}

Status VirtualMachine::enter(std::vector<Frame>& frames, size_t function, std::vector<Value> arguments,
                             int64_t result) {
  const Function& f = executable_->functions[function];
  if (interrupted()) return Diagnostic(ErrorCode::kInterrupted, "the program was interrupted");
  if (static_cast<int64_t>(frames.size()) >= options_.max_depth)
    return Diagnostic(ErrorCode::kLimitExceeded, format("calls nest deeper than {}", options_.max_depth), f.name,
                      "the program recurses without end");
  if (arguments.size() != f.params.size())
    return Diagnostic(ErrorCode::kInvalidArgument, format("function '{}' takes {} arguments, {} are given", f.name,
                                                          f.params.size(), arguments.size()));
  Frame frame{&f, immediates_[function].data(), 0, std::move(arguments), result};
  frame.registers.resize(static_cast<size_t>(f.registers));
  frames.push_back(std::move(frame));
  return Ok{};
}

void VirtualMachine::leave(std::vector<Frame>& frames, Value value, Value* result) {
  const int64_t to = frames.back().result;
  frames.pop_back();
  if (frames.empty())
    *result = std::move(value);
  else
    frames.back().registers[static_cast<size_t>(to)] = std::move(value);
}

Result<Value> VirtualMachine::invoke(std::string_view name, std::vector<Value> arguments) {
  const Function* f = executable_->find(name);
  if (!f) return Diagnostic(ErrorCode::kUnknownFunction, format("the program has no function '{}'", name));
  std::vector<Frame> frames;
  TW_TRY_STATUS(enter(frames, static_cast<size_t>(f - executable_->functions.data()), std::move(arguments), -1));
  Value result;
  while (!frames.empty()) {
    auto status = step(frames, &result);
    if (!status.ok())
      return std::move(status).error().at(frames.empty() ? std::string(name) : frames.back().function->name);
  }
  return result;
}

// Executes one instruction. Indices were verified when the program was read; register contents are checked here.
Status VirtualMachine::step(std::vector<Frame>& frames, Value* result) {
  Frame& frame = frames.back();
  const Instruction& in = frame.function->code[frame.pc];
  const int64_t* at = in.fields.data();
  auto& r = frame.registers;
  auto put = [&](int64_t i, Value v) { r[static_cast<size_t>(i)] = std::move(v); };
  auto get = [&](int64_t i) -> const Value& { return r[static_cast<size_t>(i)]; };
  auto many = [&](size_t from) {
    std::vector<Value> out;
    out.reserve(in.fields.size() - from);
    for (size_t i = from; i < in.fields.size(); ++i) out.push_back(get(at[i]));
    return out;
  };
  ++frame.pc;
  switch (in.op) {
    case Opcode::kMove:
      put(at[1], get(at[0]));
      return Ok{};
    case Opcode::kRet:
      leave(frames, get(at[0]), result);
      return Ok{};
    case Opcode::kInvoke:
      return enter(frames, static_cast<size_t>(at[0]), many(3), at[2]);
    case Opcode::kInvokeClosure: {
      const Value& closure = get(at[0]);
      TW_TRY(object_in(closure, Object::Kind::kClosure, "a closure"));
      std::vector<Value> arguments = closure->fields;
      for (Value& v : many(3)) arguments.push_back(std::move(v));
      return enter(frames, static_cast<size_t>(closure->tag), std::move(arguments), at[2]);
    }
    case Opcode::kInvokePacked: {
      std::vector<Value> arguments = many(3);
      const auto outputs = static_cast<size_t>(at[2]), inputs = arguments.size() - outputs;
      for (size_t i = inputs; i < arguments.size(); ++i)
        if (arguments[i] && arguments[i]->constant) arguments[i] = nullptr;
      TW_TRY_STATUS(functions_->call(static_cast<size_t>(at[0]), std::span(arguments).first(inputs),
                                     std::span(arguments).subspan(inputs)));
      for (size_t i = 0; i < outputs; ++i) put(at[3 + inputs + i], std::move(arguments[inputs + i]));
      return Ok{};
    }
    case Opcode::kAllocTensor:
      put(at[6], TW_TRY(tensor_within(get(at[0]), TW_TRY(integer_in(get(at[1]))), dtype_of(at + 2),
                                      {at + 7, at + in.fields.size()})));
      return Ok{};
    case Opcode::kAllocTensorReg:
      put(at[6], TW_TRY(tensor_within(get(at[0]), TW_TRY(integer_in(get(at[1]))), dtype_of(at + 3),
                                      TW_TRY(integers_in(get(at[2]))))));
      return Ok{};
    case Opcode::kAllocADT:
      put(at[2], make_adt(at[0], many(3)));
      return Ok{};
    case Opcode::kAllocClosure:
      put(at[2], closure_of(at[0], many(3)));
      return Ok{};
    case Opcode::kGetField:
      put(at[2], TW_TRY(field_of(get(at[0]), static_cast<size_t>(at[1]))));
      return Ok{};
    case Opcode::kIf: {
      const bool equal = TW_TRY(integer_in(get(at[0]))) == TW_TRY(integer_in(get(at[1])));
      frame.pc = static_cast<size_t>(static_cast<int64_t>(frame.pc) - 1 + (equal ? at[2] : at[3]));
      return Ok{};
    }
    case Opcode::kLoadConst:
      put(at[1], constants_[static_cast<size_t>(at[0])]);
      return Ok{};
    case Opcode::kGoto:
      if (at[0] < 0 && interrupted()) return Diagnostic(ErrorCode::kInterrupted, "the program was interrupted");
      frame.pc = static_cast<size_t>(static_cast<int64_t>(frame.pc) - 1 + at[0]);
      return Ok{};
    case Opcode::kGetTag:
      put(at[1], TW_TRY(tag_of(get(at[0]))));
      return Ok{};
    case Opcode::kLoadConsti:
      put(at[1], frame.immediates[frame.pc - 1]);
      return Ok{};
    case Opcode::kFatal:
      return Diagnostic(ErrorCode::kInvalidArgument, "no clause of a match fits the value");
    case Opcode::kAllocStorage:
      put(at[6], TW_TRY(storage_of(*pool_, TW_TRY(integer_in(get(at[0]))))));
      return Ok{};
    case Opcode::kShapeOf:
      put(at[1], TW_TRY(shape_of(get(at[0]))));
      return Ok{};
    case Opcode::kReshapeTensor:
      put(at[2], TW_TRY(reshaped(get(at[0]), get(at[1]))));
      return Ok{};
    case Opcode::kDeviceCopy:  // one kind of device: shares the memory
      put(at[3], get(at[0]));
      return Ok{};
    case Opcode::kKillRegister:
      put(at[0], nullptr);
      return Ok{};
  }
  return Ok{};
}

}  // namespace tilewright::runtime::vm
