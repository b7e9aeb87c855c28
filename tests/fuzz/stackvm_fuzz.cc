// SPDX-License-Identifier: Apache-2.0
// fuzz-room: runtime
// Byte code of any content: a diagnostic, or a run that stays inside its memory and ends.
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/formats/stackvm.h"
#include "runtime/stackvm/machine.h"

using namespace tilewright;

namespace {

constexpr uint64_t kTurns = 2000, kMostBytes = 1 << 16;

// Two loops around one instruction of each kind, with operands that are there.
stackvm::Program program_of(stackvm::Op op) {
  using stackvm::Op;
  stackvm::Program p;
  p.name = stackvm::name_of(op);
  p.parameters = 2, p.frame_bytes = 4096, p.tid = 0, p.nthreads = 8, p.shared = true;
  p.memories = {{256, false, false}, {256, false, true}, {64, false, true}};
  auto add = [&](Op what, uint32_t to, uint32_t a, uint32_t b, uint32_t c, int64_t value) {
    stackvm::Instruction n;
    n.op = what, n.to = to, n.a = a, n.b = b, n.c = c, n.value = value;
    p.code.push_back(n);
    return p.code.size() - 1;
  };
  add(Op::kConstQ, 16, 0, 0, 0, 0);
  add(Op::kConstQ, 24, 0, 0, 0, 8);
  const size_t outer = add(Op::kLoop, 32, 16, 24, 40, 0), inner = add(Op::kLoop, 48, 16, 24, 56, 0);
  const char* operands = stackvm::operands_of(op);
  const bool control = op >= Op::kLoop;
  for (uint16_t lanes : {1, 16}) {
    if (control) break;
    stackvm::Instruction n;
    n.op = op, n.lanes = lanes, n.to = 1024, n.a = 64, n.b = 256, n.c = 512, n.value = 1;
    if (std::strcmp(operands, ".i..") == 0 || std::strncmp(operands, ".i", 2) == 0) n.a = 48, n.c = 1;
    if (std::strncmp(operands, ".I", 2) == 0) n.c = 1;
    if (op == Op::kLoad || op == Op::kLoadMasked) n.c = 0;
    if (op == Op::kFmaLoadF) n.a = 48, n.c = 0;
    if (op == Op::kWrapBits || op == Op::kFToInt || op == Op::kDToInt) n.value = 256 + 7;
    if (op == Op::kPopcount || op == Op::kClz) n.value = 16;
    if (op == Op::kReinterpret) n.value = lanes, n.other = stackvm::Element::kI32;
    if (op == Op::kWrap) n.element = stackvm::Element::kI8;
    if (op == Op::kRoundF || op == Op::kRoundD) n.element = stackvm::Element::kF16;
    if (op == Op::kShuffleF || op == Op::kShuffleQ) {
      n.value = 0;
      p.offsets.assign(16, 128);
    }
    p.code.push_back(n);
  }
  if (op == Op::kJumpIfZero || op == Op::kJump) add(op, 0, 48, 0, 0, static_cast<int64_t>(p.code.size()) + 1);
  add(Op::kStore, 48, 48, 0, 1, 0);
  p.code.back().element = stackvm::Element::kI64;
  p.code[inner].value = static_cast<int64_t>(add(Op::kEndLoop, 48, 0, 0, 56, static_cast<int64_t>(inner)));
  p.code[outer].value = static_cast<int64_t>(add(Op::kEndLoop, 32, 0, 0, 40, static_cast<int64_t>(outer)));
  add(Op::kEnd, 0, 0, 0, 0, 0);
  return p;
}

// Exactly as much memory as the program says: a sanitizer sees what lies beyond.
void run(stackvm::Program program) {
  std::vector<std::unique_ptr<std::byte[]>> owned;
  std::vector<void*> buffers;
  std::vector<uint64_t> extents;
  for (size_t i = 0; i < program.memories.size(); ++i) {
    const uint64_t bytes = program.memories[i].bytes + (program.memories[i].unknown ? 24 : 0);
    if (bytes > kMostBytes) return;
    if (i >= program.parameters) continue;
    owned.push_back(std::make_unique<std::byte[]>(bytes));
    buffers.push_back(owned.back().get());
    extents.push_back(bytes);
  }
  const stackvm::Code code(std::move(program));
  for (int tid : {0, 1}) {
    const Status status = code.run(buffers.data(), extents.data(), tid, 2, kTurns);
    if (!status.ok() && status.error().code != ErrorCode::kBadArtifact &&
        status.error().code != ErrorCode::kLimitExceeded)
      __builtin_trap();
  }
}

}  // namespace

extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  for (int op = 0; op <= static_cast<int>(stackvm::Op::kEnd); ++op) {
    const std::string bytes = stackvm::write_program(program_of(static_cast<stackvm::Op>(op)));
    if (!stackvm::read_program(bytes).ok()) __builtin_trap();
    seeds->push_back(bytes);
  }
  const std::vector<std::string> programs(seeds->begin(), seeds->begin() + 3);
  const stackvm::FileHead head = stackvm::write_file_head("a plan", programs, 0, 0);
  if (!stackvm::read_file(std::as_bytes(std::span(head.bytes)), false).ok()) __builtin_trap();
  seeds->push_back(head.bytes);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (stackvm::is_file(bytes)) {
    if (auto file = stackvm::read_file(bytes, true); file.ok()) (void)stackvm::read_programs(file->programs).ok();
    return 0;
  }
  auto program = stackvm::read_program({reinterpret_cast<const char*>(data), size});
  if (!program.ok()) return 0;
  if (stackvm::write_program(*program) != std::string_view(reinterpret_cast<const char*>(data), size)) __builtin_trap();
  run(std::move(*program));
  return 0;
}
