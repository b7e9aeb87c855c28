// SPDX-License-Identifier: Apache-2.0
// Relay VM programs: the file that the classic stack wrote, damaged ones, and what the machine does.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

#include "base/format.h"
#include "runtime/vm/host_functions.h"
#include "runtime/vm/machine.h"
#include "runtime/vm/program.h"
#include "test_folders.h"

namespace tilewright::runtime::vm {
namespace {

std::string file_text(const std::string& name) {
  std::ifstream in(std::string(TW_TEST_DATA) + "/classic/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
Value scalar(int64_t v) { return make_tensor(Tensor::scalar<int64_t>(kInt64, v)); }

// int64 arithmetic on scalars: what the programs here call.
class Arithmetic : public PackedFunctions {
 public:
  Status call(size_t index, std::span<const Value> inputs, std::span<Value> outputs) override {
    const int64_t a = inputs[0]->tensor.at_int(0), b = inputs.size() > 1 ? inputs[1]->tensor.at_int(0) : 0;
    const int64_t v = index == 0 ? a - b : index == 1 ? a * b : index == 2 ? a <= b : a + b;
    if (outputs[0])
      std::memcpy(const_cast<std::byte*>(outputs[0]->tensor.raw()), &v, sizeof v);
    else
      outputs[0] = scalar(v);
    return Ok{};
  }
};

Executable arithmetic() {
  Executable e;
  e.primitives = {"subtract", "multiply", "less_equal", "add"};
  return e;
}
Result<Value> run(const Executable& e, std::vector<Value> arguments, const MachineOptions& options = {}) {
  TW_TRY_STATUS(verify_executable(e));
  auto vm = TW_TRY(VirtualMachine::create(std::make_shared<Executable>(e), std::make_shared<Arithmetic>(), options));
  return vm->invoke("main", std::move(arguments));
}

// main(n) = n <= 1 ? 1 : n * main(n - 1)
Executable factorial() {
  Executable e = arithmetic();
  e.functions = {{"main",
                  {"n"},
                  {0},
                  6,
                  {
                      {Opcode::kLoadConsti, {1, 1}},
                      {Opcode::kInvokePacked, {2, 3, 1, 0, 1, 2}},
                      {Opcode::kIf, {2, 1, 1, 3}},
                      {Opcode::kMove, {1, 3}},
                      {Opcode::kGoto, {4}},
                      {Opcode::kInvokePacked, {0, 3, 1, 0, 1, 4}},
                      {Opcode::kInvoke, {0, 1, 5, 4}},
                      {Opcode::kInvokePacked, {1, 3, 1, 0, 5, 3}},
                      {Opcode::kRet, {3}},
                  }}};
  return e;
}

TEST(VmExecutable, ReadsAndWritesWhatTheClassicStackWrote) {
  const std::string bytes = file_text("vm.ro");
  ASSERT_FALSE(bytes.empty());
  auto e = read_executable(bytes_of(bytes));
  ASSERT_TRUE(e.ok()) << e.error().str();
  EXPECT_EQ(e->functions.size(), 1u);
  EXPECT_EQ(e->primitives.size(), 10u);
  EXPECT_EQ(e->constants.size(), 27u);
  EXPECT_TRUE(write_executable(*e) == bytes);
  // Each instruction as the classic listing has it (before its comment).
  std::istringstream ours(bytecode_text(*e)), theirs(file_text("vm_bytecode.txt"));
  std::string a, b;
  int lines = 0;
  while (std::getline(theirs, b)) {
    if (b.empty()) continue;
    ASSERT_TRUE(std::getline(ours, a)) << b;
    auto code = [](const std::string& s) {
      std::string head = s.substr(0, s.rfind(" #") == std::string::npos || s[0] == '#' ? s.size() : s.find(" # "));
      while (!head.empty() && head.back() == ' ') head.pop_back();
      return head;
    };
    EXPECT_EQ(code(a), code(b));
    ++lines;
  }
  EXPECT_GT(lines, 100);
}

TEST(VmExecutable, DamagedFilesAreRefused) {
  const std::string bytes = file_text("vm.ro");
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(read_executable(bytes_of(bytes.substr(0, n))).ok()) << n;
  // A flipped bit is refused, or gives another program that has passed every check and is written as it was read.
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
    auto e = read_executable(bytes_of(flipped));
    if (e.ok()) {
      EXPECT_TRUE(verify_executable(*e).ok()) << i;
    }
  }
  EXPECT_EQ(read_executable(bytes_of("nothing of the kind")).error().code, ErrorCode::kBadArtifact);
  std::string newer = bytes;
  newer[newer.find("0.9.0")] = '1';
  EXPECT_EQ(read_executable(bytes_of(newer)).error().code, ErrorCode::kArtifactVersion);
}

TEST(VmExecutable, WhatDoesNotExistIsRefused) {
  auto refused = [](Instruction in, const char* why) {
    Executable e = factorial();
    e.functions[0].code.insert(e.functions[0].code.begin(), std::move(in));
    auto status = verify_executable(e);
    ASSERT_FALSE(status.ok()) << why;
    EXPECT_NE(status.error().message.find(why), std::string::npos) << status.error().str();
  };
  refused({Opcode::kMove, {0, 6}}, "register 6 of 6");
  refused({Opcode::kMove, {-1, 0}}, "register -1");
  refused({Opcode::kMove, {0}}, "1 operands where 2");
  refused({Opcode::kLoadConst, {0, 1}}, "constant 0 of 0");
  refused({Opcode::kInvoke, {1, 0, 0}}, "function 1 of 1");
  refused({Opcode::kInvoke, {0, 2, 1, 0, 0}}, "2 arguments for a function of 1");
  refused({Opcode::kInvokePacked, {4, 0, 0}}, "packed function 4 of 4");
  refused({Opcode::kInvokePacked, {0, 2, 3, 0, 0}}, "3 of its 2 arguments are outputs");
  refused({Opcode::kInvokePacked, {0, 3, 1, 0, 0}}, "2 further operands where 3");
  refused({Opcode::kGoto, {-1}}, "leaves the function");
  refused({Opcode::kGoto, {INT64_MAX}}, "leaves the function");
  refused({Opcode::kIf, {0, 0, 1, 100}}, "leaves the function");
  refused({Opcode::kAllocStorage, {0, 3, 0, 64, 1, 0, 1}}, "alignment is 3");
  refused({Opcode::kAllocStorage, {0, 64, 0, 64, 1, 1, 1}}, "device 1 of 1");
  refused({Opcode::kAllocTensor, {0, 1, 9, 64, 1, 0, 2}}, "dtype");
  refused({Opcode::kAllocTensor, {0, 1, 0, 64, 1, 33, 2}}, "rank is 33");
  refused({Opcode::kGetField, {0, -1, 1}}, "field -1");
  Executable open = factorial();
  open.functions[0].code.back() = {Opcode::kMove, {0, 1}};
  EXPECT_NE(verify_executable(open).error().message.find("runs past its end"), std::string::npos);
}

TEST(VmMachine, RecursionAndBranches) {
  auto result = run(factorial(), {scalar(10)});
  ASSERT_TRUE(result.ok()) << result.error().str();
  EXPECT_EQ((*result)->tensor.at_int(0), 3628800);
  MachineOptions shallow;
  shallow.max_depth = 8;
  EXPECT_EQ(run(factorial(), {scalar(10)}, shallow).error().code, ErrorCode::kLimitExceeded);
  EXPECT_EQ(run(factorial(), {}).error().code, ErrorCode::kInvalidArgument);
}

// A list by constructors, summed by a loop over its tags; a closure that has captured a number is applied to the sum.
TEST(VmMachine, DataTypesAndClosures) {
  Executable e = arithmetic();
  e.functions = {
      {"main",
       {"a", "b"},
       {0, 0},
       9,
       {
           {Opcode::kAllocADT, {0, 0, 2}},        // Nil
           {Opcode::kAllocADT, {1, 2, 3, 1, 2}},  // Cons(b, Nil)
           {Opcode::kAllocADT, {1, 2, 3, 0, 3}},  // Cons(a, Cons(b, Nil))
           {Opcode::kLoadConsti, {0, 4}},         // the sum
           {Opcode::kGetTag, {3, 5}},             // while the list is a Cons
           {Opcode::kLoadConsti, {1, 6}},
           {Opcode::kIf, {5, 6, 1, 7}},
           {Opcode::kGetField, {3, 0, 7}},
           {Opcode::kKillRegister, {8}},  // an output that is to be made anew
           {Opcode::kInvokePacked, {3, 3, 1, 4, 7, 8}},
           {Opcode::kMove, {8, 4}},
           {Opcode::kGetField, {3, 1, 3}},
           {Opcode::kGoto, {-8}},
           {Opcode::kAllocClosure, {1, 1, 5, 4}},
           {Opcode::kKillRegister, {6}},
           {Opcode::kInvokeClosure, {5, 1, 6, 4}},
           {Opcode::kRet, {6}},
       }},
      {"lambda", {"captured", "x"}, {0, 0}, 3, {{Opcode::kInvokePacked, {1, 3, 1, 0, 1, 2}}, {Opcode::kRet, {2}}}}};
  auto result = run(e, {scalar(30), scalar(12)});
  ASSERT_TRUE(result.ok()) << result.error().str();
  EXPECT_EQ((*result)->tensor.at_int(0), 42 * 42);
}

TEST(VmMachine, MemoryShapesAndFaults) {
  Executable e = arithmetic();
  e.functions = {{"main",
                  {"bytes", "offset"},
                  {0, 0},
                  7,
                  {
                      {Opcode::kAllocStorage, {0, 64, 0, 64, 1, 0, 2}},
                      {Opcode::kAllocTensor, {2, 1, 0, 64, 1, 2, 3, 2, 3}},
                      {Opcode::kShapeOf, {3, 4}},
                      {Opcode::kAllocTensorReg, {2, 1, 4, 2, 32, 1, 5}},
                      {Opcode::kReshapeTensor, {3, 4, 6}},
                      {Opcode::kDeviceCopy, {5, 0, 0, 6}},
                      {Opcode::kRet, {6}},
                  }}};
  auto result = run(e, {scalar(48), scalar(0)});
  ASSERT_TRUE(result.ok()) << result.error().str();
  EXPECT_EQ((*result)->tensor.shape(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ((*result)->tensor.dtype(), kFloat32);
  EXPECT_FALSE(run(e, {scalar(47), scalar(0)}).ok());
  EXPECT_FALSE(run(e, {scalar(48), scalar(1)}).ok());
  EXPECT_FALSE(run(e, {scalar(48), scalar(-8)}).ok());
  EXPECT_FALSE(run(e, {scalar(-1), scalar(0)}).ok());
  EXPECT_EQ(run(e, {scalar(INT64_MAX), scalar(0)}).error().code, ErrorCode::kLimitExceeded);
  Executable fatal = arithmetic();
  fatal.functions = {{"main", {}, {}, 1, {{Opcode::kFatal, {}}}}};
  EXPECT_NE(run(fatal, {}).error().message.find("no clause"), std::string::npos);
}

TEST(VmMachine, PoolStaysFlat) {
  auto pool = std::make_shared<MemoryPool>(uint64_t{1} << 20);
  for (int64_t i = 1; i < 10000; ++i) {
    auto t = pool->allocate(kFloat32, {i % 97 + 1, i % 1013 + 1});
    ASSERT_TRUE(t.ok());
    EXPECT_GE(pool->used_bytes(), t->bytes());
    t->mutable_raw()[t->bytes() - 1] = std::byte{1};
  }
  EXPECT_EQ(pool->used_bytes(), 0u);
  EXPECT_LE(pool->kept_bytes(), uint64_t{1} << 20);
}

// A program that runs again finds the memory that it ran with, even beyond what is kept otherwise.
TEST(VmMachine, PoolKeepsWhatWasInUseAtOnce) {
  auto pool = std::make_shared<MemoryPool>(uint64_t{1} << 20);
  for (int run = 0; run < 3; ++run) {
    auto a = pool->allocate(kFloat32, {1 << 20}), b = pool->allocate(kFloat32, {1 << 19});
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(pool->kept_bytes(), 0u);
  }
  const uint64_t together = pool->kept_bytes();
  EXPECT_GT(together, uint64_t{6} << 20);
  // Other sizes push them out.
  for (int64_t n : {100000, 300000, 700000}) ASSERT_TRUE(pool->allocate(kFloat64, {n}).ok());
  EXPECT_LE(pool->kept_bytes(), together);
}

TEST(VmExecutable, LateBoundConstants) {
  auto e = read_executable(bytes_of(file_text("vm.ro")));
  ASSERT_TRUE(e.ok());
  const std::string params = move_late_bound_constants(&*e, 100);
  const std::string without = write_executable(*e);
  EXPECT_LT(without.size(), file_text("vm.ro").size());
  auto again = read_executable(bytes_of(without));
  ASSERT_TRUE(again.ok()) << again.error().str();
  EXPECT_FALSE(VirtualMachine::create(std::make_shared<Executable>(*again), std::make_shared<Arithmetic>()).ok());
  ASSERT_TRUE(load_late_bound_constants(&*again, bytes_of(params)).ok());
  EXPECT_TRUE(write_executable(*again) == file_text("vm.ro"));
}

TEST(VmProgram, WhatRegionsMayBe) {
  Program p;
  p.executable = factorial();
  p.inputs = {{"n", kInt64, {}}};
  p.outputs = {"y"};
  p.regions.resize(4, {"relay", {"a", "b"}, "source"});
  p.shared = std::string("12345678");
  auto reads = [](const Program& program) { return read_program(bytes_of(write_program(program))).ok(); };
  ASSERT_TRUE(reads(p));
  auto with = [&](Region r) {
    Program q = p;
    q.regions[3] = std::move(r);
    return reads(q);
  };
  EXPECT_TRUE(with({"host", {"a"}, "NonZero"}));
  EXPECT_FALSE(with({"host", {"a"}, "NoSuchFunction"}));
  EXPECT_FALSE(with({"host", {"a"}, "NonZero\nno attribute"}));
  EXPECT_FALSE(with({"other", {"a"}, ""}));
  EXPECT_TRUE(with({"relay", {"a"}, "", {{2, 6}, {0, 2}}}));
  EXPECT_FALSE(with({"relay", {"a"}, "", {{2, 7}}}));
  EXPECT_FALSE(with({"relay", {"a"}, "", {{9, 0}}}));
  EXPECT_FALSE(with({"relay", {"a"}, "", {{UINT64_MAX, 2}}}));
  EXPECT_FALSE(with({"relay", {"a"}, "", {{0, 8}, {0, 8}}}));  // more bytes than there are
}

// Runs one function of the runtime.
Result<std::vector<Value>> host(const char* name, std::vector<Value> inputs, size_t outputs,
                                const std::map<std::string, std::string>& attributes = {},
                                uint64_t limit = uint64_t{1} << 30) {
  auto pool = std::make_shared<MemoryPool>(uint64_t{1} << 20, limit);
  std::vector<Value> out(outputs);
  HostCall call{inputs, out, attributes, *pool};
  TW_TRY_STATUS(find_host_function(name)(call));
  return out;
}
Value ints(std::vector<int64_t> v) {
  return make_tensor(Tensor::from<int64_t>(kInt64, {static_cast<int64_t>(v.size())}, v));
}
Value matrix() { return make_tensor(Tensor::from<float>(kFloat32, {2, 3}, std::vector<float>{0, 1, 2, 3, 4, 5})); }
std::vector<double> numbers(const Value& v) {
  std::vector<double> out;
  for (int64_t i = 0; i < v->tensor.size(); ++i) out.push_back(v->tensor.at_double(i));
  return out;
}
std::vector<double> result(const char* name, std::vector<Value> inputs,
                           const std::map<std::string, std::string>& attributes = {}) {
  auto r = host(name, std::move(inputs), 1, attributes);
  EXPECT_TRUE(r.ok()) << r.error().str();
  return r.ok() ? numbers((*r)[0]) : std::vector<double>();
}
using Numbers = std::vector<double>;

TEST(VmHostFunctions, ChooseTexts) {
  const Value words = make_tensor(Tensor::strings({3, 2}, {"b", "a", "a", "c", "b", "a"}));
  using Texts = std::vector<std::string>;
  auto all = host("Unique", {words}, 4, {});
  ASSERT_TRUE(all.ok()) << all.error().str();
  EXPECT_EQ((*all)[0]->tensor.string_values(), (Texts{"a", "b", "c"}));
  EXPECT_EQ(numbers((*all)[1]), (Numbers{1, 0, 3}));
  EXPECT_EQ(numbers((*all)[2]), (Numbers{1, 0, 0, 2, 1, 0}));
  EXPECT_EQ(numbers((*all)[3]), (Numbers{3, 2, 1}));
  auto rows = host("Unique", {words}, 4, {{"axis", "0"}, {"sorted", "0"}});
  ASSERT_TRUE(rows.ok()) << rows.error().str();
  EXPECT_EQ((*rows)[0]->tensor.shape(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ((*rows)[0]->tensor.string_values(), (Texts{"b", "a", "a", "c"}));
  EXPECT_EQ(numbers((*rows)[3]), (Numbers{2, 1}));
  Tensor second(kBool, {2});
  second.set_int(1, 1);
  auto column = host("Compress", {words, make_tensor(second)}, 1, {{"axis", "1"}});
  ASSERT_TRUE(column.ok()) << column.error().str();
  EXPECT_EQ((*column)[0]->tensor.string_values(), (Texts{"a", "c", "a"}));
}

TEST(VmHostFunctions, MoveData) {
  EXPECT_EQ(result("Slice", {matrix(), ints({2}), ints({-100}), ints({1}), ints({-2})}), (Numbers{2, 0, 5, 3}));
  EXPECT_EQ(result("Slice", {matrix(), ints({1}), ints({INT64_MAX}), ints({0})}), (Numbers{3, 4, 5}));
  EXPECT_EQ(result("Slice", {matrix(), ints({5}), ints({7}), ints({0})}), Numbers());
  EXPECT_EQ(result("Pad", {matrix(), ints({0, 1, 0, -1})}), (Numbers{0, 0, 1, 0, 3, 4}));
  EXPECT_EQ(result("Tile", {matrix(), ints({1, 2})}), (Numbers{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  EXPECT_EQ(result("Expand", {ints({7, 8}), ints({2, 1})}), (Numbers{7, 8, 7, 8}));
  EXPECT_EQ(result("Range", {scalar(5), scalar(-2), scalar(-3)}), (Numbers{5, 2, -1}));
  EXPECT_EQ(result("ConstantOfShape", {ints({2, 2}), scalar(3)}), (Numbers{3, 3, 3, 3}));
  EXPECT_EQ(result("NonZero", {matrix()}), (Numbers{0, 0, 1, 1, 1, 1, 2, 0, 1, 2}));
  // -0 is zero, in narrow floats, too; a row of 64 and more without a zero.
  for (DataType dtype : {kFloat16, kBFloat16, kFloat32}) {
    Tensor halves(dtype, {2, 70});
    Numbers places(278);
    for (int64_t i = 0; i < 140; ++i) halves.set_double(i, i == 1 ? -0.0 : 0.5);
    for (int64_t i = 0, k = 0; i < 140; ++i)
      if (i != 1) places[k] = i / 70, places[139 + k++] = i % 70;
    EXPECT_EQ(result("NonZero", {make_tensor(halves)}), places) << dtype.str();
  }
  Tensor kept(kBool, {2});
  kept.set_int(1, 1);
  EXPECT_EQ(result("Compress", {matrix(), make_tensor(kept)}, {{"axis", "0"}}), (Numbers{3, 4, 5}));
  Tensor both(kBool, {3});
  both.set_int(0, 1), both.set_int(1, 1);
  EXPECT_EQ(result("Compress", {matrix(), make_tensor(both)}, {{"axis", "1"}}), (Numbers{0, 1, 3, 4}));
  EXPECT_EQ(result("Unique", {ints({3, 1, 3, 2, 1})}, {{"sorted", "0"}}), (Numbers{3, 1, 2}));
  EXPECT_EQ(result("element", {matrix(), scalar(0)}, {{"axis", "1"}, {"reverse", "1"}}), (Numbers{2, 5}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(result("TopK", {matrix(), scalar(2)}), (Numbers{2, 1, 5, 4}));
  EXPECT_EQ(result("TopK", {matrix(), ints({1})}, {{"axis", "0"}, {"largest", "0"}}), (Numbers{0, 1, 2}));
  auto first =
      host("TopK", {make_tensor(Tensor::from<float>(kFloat32, {4}, std::vector<float>{2, nan, 5, 5})), scalar(3)}, 2);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(numbers((*first)[1]), (Numbers{1, 2, 3}));
  EXPECT_FALSE(host("TopK", {matrix(), scalar(4)}, 2).ok());
  EXPECT_FALSE(host("TopK", {matrix(), scalar(-1)}, 2).ok());
  auto reshaped = host("Reshape", {matrix(), ints({0, -1, 1})}, 1);
  ASSERT_TRUE(reshaped.ok());
  EXPECT_EQ((*reshaped)[0]->tensor.shape(), (std::vector<int64_t>{2, 3, 1}));
}

TEST(VmHostFunctions, WhatCannotBeIsAnError) {
  auto refused = [](const char* name, std::vector<Value> inputs,
                    const std::map<std::string, std::string>& attributes = {}) {
    return !host(name, std::move(inputs), 1, attributes).ok();
  };
  EXPECT_TRUE(refused("Reshape", {matrix(), ints({-1, -1})}));
  EXPECT_TRUE(refused("Reshape", {matrix(), ints({4, -1})}));
  EXPECT_TRUE(refused("Reshape", {matrix(), ints({0, 0, 0})}));
  EXPECT_TRUE(refused("Reshape", {matrix(), ints({INT64_MAX, INT64_MAX})}));
  EXPECT_TRUE(refused("Reshape", {matrix(), ints({0, -1})}, {{"allowzero", "1"}}));  // nothing times what?
  EXPECT_TRUE(refused("Slice", {matrix(), ints({0}), ints({1}), ints({0}), ints({0})}));
  EXPECT_TRUE(refused("Slice", {matrix(), ints({0, 0}), ints({1, 1}), ints({0, -2})}));
  EXPECT_TRUE(refused("Slice", {matrix(), ints({0}), ints({1}), ints({2})}));
  EXPECT_TRUE(refused("Pad", {matrix(), ints({-3, 0, 0, 0})}));
  EXPECT_TRUE(refused("Pad", {matrix(), ints({INT64_MAX, 0, INT64_MAX, 0})}));
  EXPECT_TRUE(refused("Tile", {matrix(), ints({-1, 1})}));
  EXPECT_TRUE(refused("Tile", {matrix(), ints({INT64_MAX, 2})}));
  EXPECT_TRUE(refused("Expand", {matrix(), ints({5})}));
  EXPECT_TRUE(refused("Range", {scalar(0), scalar(5), scalar(0)}));
  EXPECT_TRUE(refused("Range", {scalar(0), scalar(INT64_MAX), scalar(1)}));
  EXPECT_TRUE(refused("ConstantOfShape", {ints({-1}), scalar(0)}));
  EXPECT_TRUE(refused("ConstantOfShape", {ints({1 << 20, 1 << 20}), scalar(0)}));  // a terabyte
  EXPECT_TRUE(refused("SequenceAt", {make_adt(0, {matrix()}), scalar(1)}));
  EXPECT_TRUE(refused("SequenceAt", {make_adt(kNoneTag, {}), scalar(0)}));
  EXPECT_TRUE(refused("SequenceErase", {make_adt(0, {})}));
  EXPECT_TRUE(refused("OptionalGetElement", {make_adt(kNoneTag, {})}));
  EXPECT_TRUE(refused("ConcatFromSequence", {make_adt(0, {matrix(), ints({1})})}));
  EXPECT_TRUE(refused("SplitToSequence", {matrix(), ints({1, 2})}));
  EXPECT_TRUE(refused("NonMaxSuppression", {matrix(), matrix()}));
  EXPECT_TRUE(refused("Compress", {matrix(), ints({1})}));
  for (const char* name : {"Slice", "Pad", "Tile", "Expand", "Range", "NonZero", "Unique", "list_stack", "list_append",
                           "ref_read", "ref_write", "more_steps", "element", "dimension"}) {
    EXPECT_TRUE(refused(name, {})) << name;
    EXPECT_TRUE(refused(name, {make_adt(0, {}), make_adt(0, {}), make_adt(0, {})})) << name;
  }
}

TEST(VmMachine, LongListsDieWithoutRecursion) {
  Value list = make_adt(0, {});
  for (int i = 0; i < 1'000'000; ++i) list = make_adt(1, {scalar(1), std::move(list)});
  list.reset();
}

TEST(VmProgram, TruncatedAndFlippedBytes) {
  Program p;
  p.executable = factorial();
  p.executable.primitives = {"region_0", "region_1", "region_2", "region_3"};
  p.inputs = {{"n", kInt64, {}}};
  p.outputs = {"y"};
  p.target = "llvm";
  p.regions.resize(4, {"relay", {"a", "b"}, "source"});
  p.regions[1] = {"host", {"a0", "a1"}, "Slice\naxis=0"};
  p.regions[2].pieces = {{0, 4}, {6, 2}};
  p.shared = std::string("12345678");
  const std::string bytes = write_program(p);
  auto read = read_program(bytes_of(bytes));
  ASSERT_TRUE(read.ok()) << read.error().str();
  EXPECT_TRUE(write_program(*read) == bytes);
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(read_program(bytes_of(bytes.substr(0, n))).ok()) << n;
  for (size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string flipped = bytes;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << (i % 8)));
    if (auto e = read_program(bytes_of(flipped)); e.ok()) {
      EXPECT_TRUE(verify_executable(e->executable).ok()) << i;
    }
  }
}

}  // namespace
}  // namespace tilewright::runtime::vm
