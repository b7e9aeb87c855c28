// SPDX-License-Identifier: Apache-2.0
#include "runtime/stackvm/machine.h"

#include <algorithm>
#include <cstdlib>

#include "base/format.h"
#include "runtime/stackvm/step.h"

namespace tilewright::stackvm {
namespace {

const Step* begin_loop(State& s, const Step* step) {
  const int64_t first = *s.at<int64_t>(step->a), count = *s.at<int64_t>(step->b);
  if (count <= 0) return step + step->jump + 1;
  *s.at<int64_t>(step->to) = first;
  *s.at<int64_t>(step->c) = static_cast<int64_t>(static_cast<uint64_t>(first) + static_cast<uint64_t>(count));
  return step + 1;
}
const Step* end_loop(State& s, const Step* step) {
  int64_t& i = *s.at<int64_t>(step->to);
  i = static_cast<int64_t>(static_cast<uint64_t>(i) + 1);
  if (i >= *s.at<int64_t>(step->c)) return step + 1;
  if (s.turns-- == 0) return s.stop(step, "it turns its loops more often than any kernel does");
  return step - step->jump + 1;
}
const Step* jump_if_zero(State& s, const Step* step) {
  return *s.at<int64_t>(step->a) == 0 ? step + step->jump : step + 1;
}
const Step* jump(State&, const Step* step) { return step + step->jump; }
const Step* end(State&, const Step*) { return nullptr; }

Handler control_handler(const Instruction& n) {
  switch (n.op) {
    case Op::kLoop:
      return begin_loop;
    case Op::kEndLoop:
      return end_loop;
    case Op::kJumpIfZero:
      return jump_if_zero;
    case Op::kJump:
      return jump;
    default:
      return end;
  }
}

Handler handler_of(const Instruction& n) {
  for (auto* find : {arithmetic_handler, integer_handler, conversion_handler, math_handler, memory_handler})
    if (Handler found = find(n)) return found;
  return control_handler(n);
}

[[gnu::noinline]] Diagnostic fault(ErrorCode code, const char* why, const std::string& where) {
  return Diagnostic(code, format("the byte code cannot be run: {}", why), format("kernel {}", where),
                    "compile the model again");
}

// A thread's working memory, kept between calls.
struct Workspace {
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  ~Workspace() { std::free(data); }
  bool grow(uint64_t wanted) {
    if (wanted <= bytes) return true;
    std::free(data);
    bytes = 0;
    data = static_cast<std::byte*>(std::aligned_alloc(64, wanted));
    if (!data) return false;
    bytes = wanted;
    std::memset(data, 0, bytes);
    return true;
  }
};

}  // namespace

Code::Code(Program program) : program_(std::move(program)) {
  steps_.reserve(program_.code.size());
  for (size_t i = 0; i < program_.code.size(); ++i) {
    const Instruction& n = program_.code[i];
    const uint64_t away = static_cast<uint64_t>(n.value) - i;  // means something where it is a jump
    Step step{handler_of(n), n.to, n.a, n.b, n.c, n.lanes, n.element, n.other};
    step.jump = static_cast<uint32_t>(n.op == Op::kEndLoop ? -away : away) & 0xffffff;
    step.many = n.op == Op::kGather || n.op == Op::kScatter || n.op == Op::kGatherMasked || n.op == Op::kScatterMasked;
    step.masked =
        n.op == Op::kLoadMasked || n.op == Op::kStoreMasked || n.op == Op::kGatherMasked || n.op == Op::kScatterMasked;
    step.value = n.value;
    steps_.push_back(step);
  }
  for (size_t i = program_.parameters; i < program_.memories.size(); ++i)
    local_bytes_ += (program_.memories[i].bytes + 63) / 64 * 64;
  program_.code.clear();
  program_.code.shrink_to_fit();
}

Code::~Code() = default;

Status Code::run(void* const* buffers, const uint64_t* extents, int64_t tid, int64_t nthreads,
                 uint64_t most_turns) const {
  if (!program_.shared && tid != 0) return Ok{};
  thread_local Workspace workspace;
  thread_local std::vector<Extent> memories;
  const uint64_t frame_bytes = (program_.frame_bytes + 63) / 64 * 64;
  if (!workspace.grow(std::max<uint64_t>(64, frame_bytes + local_bytes_)))
    return fault(ErrorCode::kLimitExceeded, "there is no memory for a kernel's own values", program_.name);
  memories.clear();
  uint64_t next = frame_bytes;
  for (size_t i = 0; i < program_.memories.size(); ++i) {
    const Memory& m = program_.memories[i];
    if (i >= program_.parameters) {
      memories.push_back({workspace.data + next, m.bytes});
      next += (m.bytes + 63) / 64 * 64;
      continue;
    }
    if (extents && extents[i] < m.bytes)
      return fault(ErrorCode::kBadArtifact, "a buffer has fewer bytes than the kernel takes", program_.name);
    memories.push_back({static_cast<std::byte*>(buffers[i]), m.unknown ? (extents ? extents[i] : 0) : m.bytes});
  }
  State state{workspace.data, memories.data(), program_.offsets.data(), most_turns, nullptr, nullptr};
  *state.at<int64_t>(program_.tid) = tid;
  *state.at<int64_t>(program_.nthreads) = nthreads;
  for (const Step* step = steps_.data(); step;) step = step->run(state, step);
  if (!state.fault) return Ok{};
  return fault(state.turns > most_turns ? ErrorCode::kLimitExceeded : ErrorCode::kBadArtifact, state.why,
               format("{}, instruction {}", program_.name, state.fault - steps_.data()));
}

}  // namespace tilewright::stackvm
