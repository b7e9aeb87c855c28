// SPDX-License-Identifier: Apache-2.0
// Where each register lies in the frame: two whose lives do not meet share a place, so that what a kernel works on
// stays in the processor's first cache.
#include <algorithm>
#include <map>

#include "base/format.h"
#include "codegen/stackvm/assembler.h"

namespace tilewright::codegen::bytecode {
namespace {

constexpr uint32_t kUnset = UINT32_MAX;
constexpr size_t kMostInstructions = size_t{1} << 22;

struct Life {
  uint32_t first = kUnset, last = 0;
};

class Allocation {
 public:
  Allocation(const Listing& listing, stackvm::Program* program)
      : listing_(listing), program_(*program), lives_(listing.registers.size()) {}

  Status run() {
    find_lives();
    stretch_over_loops();
    place();
    if (frame_ > stackvm::kMostFrameBytes || listing_.code.size() > kMostInstructions)
      return Diagnostic(
          ErrorCode::kUnsupportedModel,
          format("the kernel has {} instructions and values of {} bytes, which is more than byte code has "
                 "room for",
                 listing_.code.size(), frame_),
          format("kernel {}", program_.name), "compile for the target llvm or c");
    write();
    return Ok{};
  }

 private:
  static bool is_memory(Value v) { return v.offset == UINT32_MAX; }
  template <class F>
  void for_each_operand(const Draft& d, const F& f) const {
    for (const Value& v : {d.to, d.a, d.b, d.c})
      if (v != kNothing && !is_memory(v)) f(v);
    if (d.mark == Draft::kNone && (d.n.op == stackvm::Op::kShuffleF || d.n.op == stackvm::Op::kShuffleQ))
      for (const Value& v : listing_.shuffles[static_cast<size_t>(d.n.value)]) f(v);
  }

  void find_lives() {
    lives_[listing_.tid.reg] = lives_[listing_.nthreads.reg] = {0, 0};
    for (uint32_t at = 0; at < listing_.code.size(); ++at) {
      const Draft& d = listing_.code[at];
      for_each_operand(d, [&](Value v) {
        Life& life = lives_[v.reg];
        if (life.first == kUnset) life.first = at;
        life.last = at;
      });
      if (d.mark != Draft::kNone) continue;
      if (d.n.op == stackvm::Op::kLoop)
        open_.push_back(static_cast<uint32_t>(loops_.size())), loops_.push_back({at, at});
      if (d.n.op == stackvm::Op::kEndLoop) loops_[open_.back()].last = at, open_.pop_back();
    }
  }

  // What is known before a loop and needed in it is needed until its last turn ends. Inner loops come after the ones
  // around them, and what has been stretched over one may have to be over the next one out: from the last backwards.
  void stretch_over_loops() {
    std::vector<uint32_t> outer(loops_.size(), kUnset), of_place(listing_.code.size(), kUnset), stack;
    size_t next = 0;
    for (uint32_t at = 0; at < listing_.code.size(); ++at) {
      while (!stack.empty() && loops_[stack.back()].last < at) stack.pop_back();
      if (next < loops_.size() && loops_[next].first == at) {
        outer[next] = stack.empty() ? kUnset : stack.back();
        stack.push_back(static_cast<uint32_t>(next++));
      }
      of_place[at] = stack.empty() ? kUnset : stack.back();
    }
    for (Life& life : lives_) {
      if (life.first == kUnset) continue;
      for (uint32_t l = of_place[life.last]; l != kUnset && loops_[l].first > life.first; l = outer[l])
        life.last = std::max(life.last, loops_[l].last);
    }
  }

  void place() {
    std::vector<uint32_t> by_first, by_last;
    for (uint32_t r = 0; r < lives_.size(); ++r)
      if (lives_[r].first != kUnset) by_first.push_back(r);
    by_last = by_first;
    std::stable_sort(by_first.begin(), by_first.end(),
                     [&](uint32_t a, uint32_t b) { return lives_[a].first < lives_[b].first; });
    std::stable_sort(by_last.begin(), by_last.end(),
                     [&](uint32_t a, uint32_t b) { return lives_[a].last < lives_[b].last; });
    places_.assign(lives_.size(), 0);
    std::map<uint32_t, std::vector<uint32_t>> free;
    size_t ended = 0;
    for (const uint32_t r : by_first) {
      // An instruction that reads a register last may not write another in its place: it writes some lanes before it
      // reads others.
      for (; ended < by_last.size() && lives_[by_last[ended]].last < lives_[r].first; ++ended)
        free[size_of(by_last[ended])].push_back(places_[by_last[ended]]);
      auto& places = free[size_of(r)];
      if (places.empty()) {
        places_[r] = static_cast<uint32_t>(std::min<uint64_t>(frame_, stackvm::kMostFrameBytes));
        frame_ += size_of(r);
      } else {
        places_[r] = places.back();
        places.pop_back();
      }
    }
    frame_ = (frame_ + 15) / 16 * 16;
  }
  uint32_t size_of(uint32_t reg) const {
    const uint32_t bytes = listing_.registers[reg].bytes;
    return bytes <= 8 ? 8 : (bytes + 15) / 16 * 16;
  }

  uint32_t offset_of(Value v) const { return v == kNothing ? 0 : is_memory(v) ? v.reg : places_[v.reg] + v.offset; }

  void write() {
    std::vector<uint32_t> position(listing_.code.size() + 1, 0);
    std::map<uint32_t, uint32_t> begins, ends, labels;
    uint32_t next = 0;
    for (size_t at = 0; at < listing_.code.size(); ++at) {
      const Draft& d = listing_.code[at];
      if (d.mark == Draft::kLabel) labels[d.label] = next;
      if (d.mark != Draft::kNone) continue;
      if (d.n.op == stackvm::Op::kLoop) begins[d.label] = next;
      if (d.n.op == stackvm::Op::kEndLoop) ends[d.label] = next;
      ++next;
    }
    program_.frame_bytes = static_cast<uint32_t>(frame_);
    program_.tid = offset_of(listing_.tid), program_.nthreads = offset_of(listing_.nthreads);
    for (const Draft& d : listing_.code) {
      if (d.mark != Draft::kNone) continue;
      stackvm::Instruction& n = program_.code.emplace_back(d.n);
      n.to = offset_of(d.to), n.a = offset_of(d.a), n.b = offset_of(d.b), n.c = offset_of(d.c);
      if (n.op == stackvm::Op::kLoop) n.value = ends.at(d.label);
      if (n.op == stackvm::Op::kEndLoop) n.value = begins.at(d.label);
      if (n.op == stackvm::Op::kJump || n.op == stackvm::Op::kJumpIfZero) n.value = labels.at(d.label);
      if (n.op != stackvm::Op::kShuffleF && n.op != stackvm::Op::kShuffleQ) continue;
      n.value = static_cast<int64_t>(program_.offsets.size());
      for (const Value& v : listing_.shuffles[static_cast<size_t>(d.n.value)]) program_.offsets.push_back(offset_of(v));
    }
  }

  const Listing& listing_;
  stackvm::Program& program_;
  std::vector<Life> lives_;
  std::vector<Life> loops_;  // in the order in which they begin
  std::vector<uint32_t> open_;
  std::vector<uint32_t> places_;
  uint64_t frame_ = 0;
};

}  // namespace

Status allocate_registers(const Listing& listing, stackvm::Program* program) {
  return Allocation(listing, program).run();
}

}  // namespace tilewright::codegen::bytecode
