// SPDX-License-Identifier: Apache-2.0
// Programs as bytes, and what is checked of them before they run.
#include <cstring>

#include "base/checked.h"
#include "base/format.h"
#include "base/formats/stackvm.h"

namespace tilewright::stackvm {
namespace {

constexpr uint64_t kInstructionBytes = 32, kMemoryBytes = 16;
constexpr uint64_t kMostCode = 1u << 24, kMostMemories = 1u << 16;
constexpr uint64_t kMostMemoryBytes = uint64_t{1} << 48, kMostLocalBytes = uint64_t{1} << 28;
constexpr size_t kElements = 0
#define TW_ELEMENT(name, bytes, lane) +1
    TW_STACKVM_ELEMENTS(TW_ELEMENT)
#undef TW_ELEMENT
    ;

// As it lies in a file.
struct PackedInstruction {
  uint16_t op, lanes;
  uint8_t element, other;
  uint16_t zero;
  uint32_t to, a, b, c;
  int64_t value;
};
static_assert(sizeof(PackedInstruction) == kInstructionBytes);

// Of one program; the first fault found stays.
class ProgramCheck {
 public:
  explicit ProgramCheck(const Program& program) : program_(program) {}

  Status run() {
    uint64_t local = 0;
    if (program_.frame_bytes > kMostFrameBytes || program_.frame_bytes % 16 != 0) fail("has an impossible frame");
    if (program_.parameters > program_.memories.size()) fail("has fewer memories than parameters");
    for (size_t i = 0; i < program_.memories.size() && !fault_; ++i) {
      const Memory& m = program_.memories[i];
      const bool parameter = i < program_.parameters;
      if (m.bytes > kMostMemoryBytes || (m.unknown && !parameter)) fail("has an impossible memory");
      if (!parameter) local += m.bytes;
      if (local > kMostLocalBytes) fail("has arrays that are too large");
    }
    slot(program_.tid, 8, 1), slot(program_.nthreads, 8, 1);
    const auto& code = program_.code;
    if (code.empty() || code.back().op != Op::kEnd) fail("has no end");
    while (!fault_ && at_ < code.size()) {
      check(code[at_]);
      if (!fault_) ++at_;
    }
    if (!fault_) return Ok{};
    return Diagnostic(ErrorCode::kBadArtifact, format("the byte code cannot be run: instruction {} {}", at_, fault_),
                      format("kernel {}", program_.name), "compile the model again");
  }

 private:
  void fail(const char* what) {
    if (!fault_) fault_ = what;
  }
  // `lanes` lanes of so many bytes at an offset of the frame.
  void slot(uint32_t offset, uint32_t bytes, uint32_t lanes) {
    if (offset % bytes != 0 || uint64_t{offset} + uint64_t{bytes} * lanes > program_.frame_bytes)
      fail("has an operand outside of the frame");
  }
  void operand(char kind, uint32_t offset, uint32_t lanes) {
    const bool one = kind >= 'a' && kind <= 'z';
    if (kind != '.') slot(offset, kind == 'F' || kind == 'f' ? 4 : 8, one ? 1 : lanes);
  }
  void number(int64_t value, int64_t below) {
    if (value < 0 || value >= below) fail("has a number that means nothing");
  }
  void bits(int64_t value, int64_t flags) {
    number(value, 256 * flags);
    if (value % 256 < 1 || value % 256 > 64) fail("has integers of no width");
  }
  bool is_small_float(Element e) const { return e >= Element::kF16; }

  void check(const Instruction& n) {
    if (n.lanes == 0 || n.lanes > kMostLanes) fail("has no such number of lanes");
    const char* kinds = operands_of(n.op);
    const uint32_t offsets[] = {n.to, n.a, n.b, n.c};
    for (int i = 0; i < 4; ++i) operand(kinds[i], offsets[i], n.lanes);
    switch (n.op) {
      case Op::kLoad:
      case Op::kStore:
      case Op::kLoadMasked:
      case Op::kStoreMasked:
      case Op::kGather:
      case Op::kScatter:
      case Op::kGatherMasked:
      case Op::kScatterMasked:
        return access(n);
      case Op::kFmaLoadF:
        if (n.c >= program_.memories.size()) fail("uses a memory that is not there");
        return;
      case Op::kReinterpret:
        number(n.value, kMostLanes + 1);
        if (fault_) return;
        slot(n.a, lane_bytes_of(n.element), n.lanes);
        slot(n.to, lane_bytes_of(n.other), static_cast<uint32_t>(n.value));
        if (bytes_of(n.element) * n.lanes != bytes_of(n.other) * static_cast<uint64_t>(n.value))
          fail("reinterprets other numbers of bytes");
        return;
      case Op::kShuffleF:
      case Op::kShuffleQ:
        number(n.value, static_cast<int64_t>(program_.offsets.size()) - n.lanes + 1);
        for (uint32_t i = 0; i < n.lanes && !fault_; ++i)
          slot(program_.offsets[static_cast<size_t>(n.value) + i], n.op == Op::kShuffleF ? 4 : 8, 1);
        return;
      case Op::kRoundF:
      case Op::kRoundD:
        if (!is_small_float(n.element)) fail("rounds to no small float");
        return;
      case Op::kWrap:
        if (lane_bytes_of(n.element) != 8 || n.element == Element::kF64) fail("wraps to no integer");
        return;
      case Op::kWrapBits:
      case Op::kFToInt:
      case Op::kDToInt:
        return bits(n.value, 2);
      case Op::kPopcount:
      case Op::kClz:
        return bits(n.value, 1);
      case Op::kMathF:
      case Op::kMathD:
        return number(n.value, kMathCount);
      case Op::kWord:
        return number(n.value, kWordCount);
      case Op::kClassF:
      case Op::kClassD:
        return number(n.value, 3);
      default:
        return jump(n);
    }
  }

  void access(const Instruction& n) {
    if (n.c >= program_.memories.size()) return fail("uses a memory that is not there");
    slot(n.to, lane_bytes_of(n.element), n.lanes);
    const bool store =
        n.op == Op::kStore || n.op == Op::kStoreMasked || n.op == Op::kScatter || n.op == Op::kScatterMasked;
    if (store && !program_.memories[n.c].written) fail("writes into memory that is read");
    if (n.element == Element::kF4E2M1) fail("accesses half a byte");
  }

  void jump(const Instruction& n) {
    const auto here = static_cast<int64_t>(at_);
    const auto& code = program_.code;
    if (n.op == Op::kLoop || n.op == Op::kJumpIfZero || n.op == Op::kJump) {
      if (n.value <= here || n.value >= static_cast<int64_t>(code.size())) return fail("jumps to where it may not");
      const Instruction& there = code[static_cast<size_t>(n.value)];
      if (n.op == Op::kLoop && (there.op != Op::kEndLoop || there.value != here || there.to != n.to || there.c != n.c))
        fail("begins a loop that has no end");
    } else if (n.op == Op::kEndLoop) {
      if (n.value < 0 || n.value >= here || code[static_cast<size_t>(n.value)].op != Op::kLoop) fail("ends no loop");
    }
  }

  const Program& program_;
  size_t at_ = 0;
  const char* fault_ = nullptr;
};

}  // namespace

std::string write_program(const Program& program) {
  ByteWriter out;
  out.write_string(program.name);
  out.write<uint32_t>(program.parameters);
  out.write<uint32_t>(program.frame_bytes);
  out.write<uint32_t>(program.tid);
  out.write<uint32_t>(program.nthreads);
  out.write<uint64_t>(program.shared ? 1 : 0);
  out.write<uint64_t>(program.memories.size());
  for (const Memory& m : program.memories) {
    out.write<uint64_t>(m.bytes);
    out.write<uint64_t>((m.unknown ? 1 : 0) + (m.written ? 2 : 0));
  }
  out.write<uint64_t>(program.offsets.size());
  for (uint32_t offset : program.offsets) out.write<uint32_t>(offset);
  out.write<uint64_t>(program.code.size());
  for (const Instruction& n : program.code) {
    out.write(PackedInstruction{static_cast<uint16_t>(n.op), n.lanes, static_cast<uint8_t>(n.element),
                                static_cast<uint8_t>(n.other), 0, n.to, n.a, n.b, n.c, n.value});
  }
  return out.take();
}

Result<Program> read_program(std::string_view bytes) {
  ByteReader in(std::as_bytes(std::span(bytes)));
  Program out;
  bool known = true;
  out.name = in.read_string(4096);
  out.parameters = in.read<uint32_t>();
  out.frame_bytes = in.read<uint32_t>();
  out.tid = in.read<uint32_t>();
  out.nthreads = in.read<uint32_t>();
  const auto shared = in.read<uint64_t>();
  out.shared = shared == 1, known = shared <= 1;
  const uint64_t memories = in.read_count(kMemoryBytes);
  for (uint64_t i = 0; i < memories && in.ok() && i <= kMostMemories; ++i) {
    Memory& m = out.memories.emplace_back();
    m.bytes = in.read<uint64_t>();
    const auto flags = in.read<uint64_t>();
    m.unknown = (flags & 1) != 0, m.written = (flags & 2) != 0;
    known = known && flags < 4;
  }
  const uint64_t offsets = in.read_count(4);
  for (uint64_t i = 0; i < offsets && in.ok(); ++i) out.offsets.push_back(in.read<uint32_t>());
  const uint64_t code = in.read_count(kInstructionBytes);
  const auto packed = in.take(code <= kMostCode ? code * kInstructionBytes : 0);
  for (uint64_t i = 0; i * kInstructionBytes < packed.size() && known; ++i) {
    PackedInstruction p;
    std::memcpy(&p, packed.data() + i * kInstructionBytes, sizeof p);
    known = p.op <= static_cast<uint16_t>(Op::kEnd) && p.element < kElements && p.other < kElements && p.zero == 0;
    out.code.push_back({static_cast<Op>(p.op), p.lanes, static_cast<Element>(p.element), static_cast<Element>(p.other),
                        p.to, p.a, p.b, p.c, p.value});
  }
  if (!in.ok() || !known || in.remaining() != 0 || code > kMostCode || memories > kMostMemories)
    return Diagnostic(ErrorCode::kBadArtifact, "a program's byte code is damaged", {}, "compile the model again");
  TW_TRY_STATUS(ProgramCheck(out).run());
  return out;
}

}  // namespace tilewright::stackvm
