// SPDX-License-Identifier: Apache-2.0
// VM programs through tilewright/vm.h.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runtime/artifact_maker.h"
#include "test_folders.h"
#include "tilewright/vm.h"

namespace tilewright {
namespace {

using namespace tilewright::testing;
const std::string kData = TW_TEST_DATA "/onnx/";

template <class F>
int code_of(F&& body) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_FALSE(e.hint().empty()) << e.what();
    EXPECT_NE(std::string(e.what()).find(std::to_string(e.code()) + " " + e.name()), std::string::npos) << e.what();
    return e.code();
  }
  return 0;
}

TEST(VmCApi, FreeSizes) {
  TempFolder folder;
  compile(kData + "free_sizes.onnx", folder / "m.so");
  uint64_t compiled_before = 0;
  for (bool always_compile : {false, true}) {
    VmOptions options;
    options.threads = 2;
    options.always_compile = always_compile;
    VirtualMachine vm(folder / "m.so", options);
    ASSERT_EQ(vm.inputs().size(), 4u);
    EXPECT_EQ(vm.inputs()[0].shape, (std::vector<int64_t>{-1, -1}));
    EXPECT_EQ(vm.inputs()[0].dtype, "float32");
    EXPECT_EQ(vm.outputs(), (std::vector<std::string>{"y", "total"}));
    for (int64_t n : {2, 5, 2}) {
      std::vector<float> x(static_cast<size_t>(n) * 3);
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 2;
      const bool positive = true;
      vm.set_input("x", x, {n, 3});
      vm.set_input("positive", &positive, {});
      vm.set_input("trips", std::vector<int64_t>{2}, {});
      vm.set_input("shape", std::vector<int64_t>{3, n}, {2});
      vm.run();
      EXPECT_EQ(vm.shape(0), (std::vector<int64_t>{3, n}));
      float sum = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_EQ(vm.output<float>(0)[i], 4 * std::max(x[i], 0.f));
        sum += 4 * std::max(x[i], 0.f);
      }
      EXPECT_FLOAT_EQ(vm.output<float>(1)[0], sum);
    }
    EXPECT_TRUE(!always_compile || vm.compiled() > compiled_before);
    compiled_before = vm.compiled();
  }
}

TEST(VmCApi, TextsAndSequences) {
  TempFolder folder;
  compile(kData + "texts_and_lists.onnx", folder / "m.so");
  VirtualMachine vm(folder / "m.so");
  EXPECT_EQ(vm.inputs()[1].dtype, "sequence or optional");
  vm.set_input("texts", {std::string("a\0b", 3), "", "longer than a short text"}, {3});
  std::vector<float> first{1, 2}, second{3};
  int64_t two = 2, one = 1;
  vm.set_sequence("list", {{first.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &two, nullptr, 0},
                           {second.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &one, nullptr, 0}});
  vm.set_input("x", std::vector<float>{4, 5, 6}, {3});
  vm.run();
  EXPECT_EQ(vm.texts(0), (std::vector<std::string>{std::string("a\0b!", 4), "!", "longer than a short text!"}));
  ASSERT_EQ(vm.kind(1), TW_VM_SEQUENCE);
  ASSERT_EQ(vm.items(1), 3u);
  EXPECT_EQ(vm.output<float>(1, 1)[0], 3);
  EXPECT_EQ(vm.output<float>(1, 2)[2], 6);
  EXPECT_EQ(vm.output<int64_t>(2)[0], 3);
  vm.set_sequence("list", {});
  vm.run();
  EXPECT_EQ(vm.items(1), 1u);
  EXPECT_EQ(code_of([&] { vm.output(0); }), 506);
  EXPECT_EQ(code_of([&] { vm.output(1, 1); }), 504);
  EXPECT_EQ(code_of([&] { vm.set_sequence("x", {}); }), 301);
}

TEST(VmCApi, Profile) {
  TempFolder folder;
  compile(kData + "computed_control.onnx", folder / "m.so");
  VirtualMachine vm(folder / "m.so", {1, true, 8});
  vm.set_input(vm.inputs()[0].name, std::vector<float>{0.5f, 1, 2}, {3});
  vm.set_input(vm.inputs()[1].name, std::vector<float>{50}, {});
  EXPECT_NE(vm.profile().find("compile region"), std::string::npos);
  const std::string table = vm.profile();
  EXPECT_EQ(table.find("compile region"), std::string::npos) << table;
  EXPECT_NE(table.find("argwhere"), std::string::npos) << table;
  EXPECT_NE(vm.profile("json").find("\"steps\""), std::string::npos);
  EXPECT_NE(vm.profile("trace").find("traceEvents"), std::string::npos);
  EXPECT_EQ(code_of([&] { vm.profile("picture"); }), 101);
}

TEST(VmCApi, InterruptedFromAnotherThread) {
  TempFolder folder;
  compile(kData + "free_sizes.onnx", folder / "m.so");
  VirtualMachine vm(folder / "m.so");
  const bool positive = true;
  vm.set_input("x", std::vector<float>{0}, {1, 1});
  vm.set_input("positive", &positive, {});
  vm.set_input("trips", std::vector<int64_t>{INT64_MAX}, {});
  vm.set_input("shape", std::vector<int64_t>{1, 1}, {2});
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) vm.interrupt(), std::this_thread::sleep_for(std::chrono::milliseconds(2));
  });
  EXPECT_EQ(code_of([&] { vm.run(); }), 603);
  done = true;
  other.join();
  vm.set_input("trips", std::vector<int64_t>{1}, {});
  if (code_of([&] { vm.run(); }) == 603) vm.run();  // it was interrupted once more after the end
  EXPECT_EQ(vm.output<float>(0)[0], 0);
}

TEST(VmCApi, WrongUse) {
  TempFolder folder;
  compile(kData + "free_sizes.onnx", folder / "m.so");
  compile(kData + "convnet.onnx", folder / "fixed.so", [] {
    CompileOptions o;
    o.shapes = {"x=1x3x8x8"};
    return o;
  }());
  write_file(folder / "damaged.so", read_file(folder / "m.so").substr(0, 3000));
  EXPECT_EQ(code_of([&] { VirtualMachine vm(folder / "none.so"); }), 102);
  EXPECT_EQ(code_of([&] { VirtualMachine vm(folder / "damaged.so"); }), 501);
  EXPECT_EQ(code_of([&] { VirtualMachine vm(folder / "fixed.so"); }), 203);
  EXPECT_EQ(code_of([&] { Executor executor(Model(folder / "m.so")); }), 203);
  VirtualMachine vm(folder / "m.so");
  EXPECT_EQ(code_of([&] { vm.run(); }), 101);
  EXPECT_EQ(code_of([&] { vm.output(0); }), 101);
  EXPECT_EQ(code_of([&] { vm.output(7); }), 504);
  EXPECT_EQ(code_of([&] { vm.set_input("z", std::vector<float>{1}, {1, 1}); }), 504);
  EXPECT_EQ(code_of([&] { vm.set_input("x", std::vector<float>{1}, {1}); }), 505);
  EXPECT_EQ(code_of([&] { vm.set_input("x", std::vector<float>{1}, {2, 2}); }), 505);
  EXPECT_EQ(code_of([&] { vm.set_input("x", std::vector<double>{1}, {1, 1}); }), 506);
  EXPECT_EQ(code_of([&] { vm.set_input("x", std::vector<std::string>{"a"}, {1, 1}); }), 506);
  DLTensor odd{nullptr, {kDLCPU, 0}, -3, {kDLFloat, 32, 1}, nullptr, nullptr, 0};
  EXPECT_EQ(code_of([&] { vm.set_input("x", odd); }), 101);
  odd.device.device_type = kDLCUDA, odd.ndim = 0;
  EXPECT_NE(code_of([&] { vm.set_input("x", odd); }), 0);
  EXPECT_NE(tw_vm_load(nullptr, nullptr, nullptr), 0);
  EXPECT_NE(tw_vm_run(nullptr), 0);
  EXPECT_NE(tw_vm_set_input(nullptr, "x", &odd), 0);
  tw_vm_free(nullptr);
}

}  // namespace
}  // namespace tilewright
