// SPDX-License-Identifier: Apache-2.0
// fuzz-room: runtime
// A VM program that the reader accepts has been verified and is written to bytes that it accepts, too.
#include <span>
#include <string>
#include <vector>

#include "runtime/vm/program.h"

using namespace tilewright;
using namespace tilewright::runtime::vm;

namespace {
Program seed() {
  Program p;
  p.executable.primitives = {"region_0"};
  p.executable.constants = {{Tensor::scalar<int64_t>(kInt64, 3), "", 0}, {Tensor(), "const_1", 0}};
  p.executable.attributes[0]["hash"] = "0";
  p.executable.functions = {{"main",
                             {"x"},
                             {0},
                             4,
                             {{Opcode::kLoadConsti, {7, 1}},
                              {Opcode::kIf, {0, 1, 1, 2}},
                              {Opcode::kInvokePacked, {0, 2, 1, 0, 2}},
                              {Opcode::kRet, {2}}}}};
  p.inputs = {{"x", kFloat32, {-1, 3}}};
  p.outputs = {"y"};
  p.regions = {{"relay", {"x"}, "source"}};
  p.target = "llvm";
  return p;
}
}  // namespace

extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  seeds->push_back(write_program(seed()));
  seeds->push_back(write_executable(seed().executable));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (auto p = read_program(bytes); p.ok()) {
    const std::string written = write_program(*p);
    auto again = read_program(std::as_bytes(std::span(written)));
    if (!again.ok() || write_program(*again) != written) __builtin_trap();
  }
  if (auto e = read_executable(bytes); e.ok() && !verify_executable(*e).ok()) __builtin_trap();
  return 0;
}
