// SPDX-License-Identifier: Apache-2.0
// What the machine's files share: instructions ready to run, and what they work on.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/formats/stackvm.h"

namespace tilewright::stackvm {

struct State;
struct Step;
// Does the instruction and says which is next; null ends the run.
using Handler = const Step* (*)(State& state, const Step* step);

struct Step {
  Handler run = nullptr;
  uint32_t to = 0, a = 0, b = 0, c = 0;
  uint16_t lanes = 1;
  Element element = Element::kF32, other = Element::kF32;
  uint32_t jump : 24 = 0;   // how many instructions away a jump goes, forward or (EndLoop) back
  uint32_t many : 1 = 0;    // of an access: each lane has a place of its own,
  uint32_t masked : 1 = 0;  // and a mask
  int64_t value = 0;
};

struct Extent {
  std::byte* data;
  uint64_t bytes;
};

struct State {
  std::byte* frame;
  const Extent* memories;
  const uint32_t* offsets;
  uint64_t turns;     // that loops may still make
  const Step* fault;  // that could not be done
  const char* why;
  template <class T>
  T* at(uint32_t offset) const {
    return reinterpret_cast<T*>(frame + offset);
  }
  const Step* stop(const Step* step, const char* reason) {
    fault = step, why = reason;
    return nullptr;
  }
};

// Where element `index` + value lies, with `count` elements from there on; null where that is not all inside.
inline std::byte* place_of(const State& s, const Step* step, int64_t index, uint64_t count, uint32_t bytes) {
  const Extent& memory = s.memories[step->c];
  int64_t first = 0;
  if (__builtin_add_overflow(index, step->value, &first) || first < 0) return nullptr;
  const uint64_t elements = memory.bytes / bytes;
  if (count > elements || static_cast<uint64_t>(first) > elements - count) return nullptr;
  return memory.data + static_cast<uint64_t>(first) * bytes;
}
inline constexpr const char* kOutside = "it reads or writes outside of its memory";

// Elements of memory as lanes, and back. `from` and `to` of elements need no alignment.
void read_elements(Element element, const std::byte* from, void* to, uint32_t lanes);
void write_elements(Element element, const void* from, std::byte* to, uint32_t lanes);
// The nearest value of a small float.
float small_float_of(Element element, double value);

// The handlers of each kind of instructions; null where it is none of them.
Handler arithmetic_handler(const Instruction& n);
Handler integer_handler(const Instruction& n);
Handler conversion_handler(const Instruction& n);
Handler math_handler(const Instruction& n);
Handler memory_handler(const Instruction& n);

}  // namespace tilewright::stackvm
