// SPDX-License-Identifier: Apache-2.0
// Loads and stores: every one is checked against its memory.
#include "runtime/stackvm/step.h"

namespace tilewright::stackvm {
namespace {

template <bool kStore>
void transfer(State& s, const Step* step, std::byte* place, uint32_t lane, uint32_t lanes) {
  std::byte* own = s.at<std::byte>(step->to) + lane * lane_bytes_of(step->element);
  if constexpr (kStore)
    write_elements(step->element, own, place, lanes);
  else
    read_elements(step->element, place, own, lanes);
}

template <bool kStore>
const Step* contiguous(State& s, const Step* step) {
  std::byte* place = place_of(s, step, *s.at<int64_t>(step->a), step->lanes, bytes_of(step->element));
  if (!place) return s.stop(step, kOutside);
  transfer<kStore>(s, step, place, 0, step->lanes);
  return step + 1;
}

// Most of what a model moves; kLanes 0: what the instruction says.
template <bool kStore, class T, unsigned kLanes>
const Step* plain(State& s, const Step* step) {
  const unsigned lanes = kLanes ? kLanes : step->lanes;
  std::byte* place = place_of(s, step, *s.at<int64_t>(step->a), lanes, sizeof(T));
  if (!place) return s.stop(step, kOutside);
  if constexpr (kStore)
    std::memcpy(place, s.at<T>(step->to), lanes * sizeof(T));
  else
    std::memcpy(s.at<T>(step->to), place, lanes * sizeof(T));
  return step + 1;
}

// Lane by lane, each at a place of its own (many) or behind the last; with a mask lanes that are off are not touched,
// and load 0.
template <bool kStore>
const Step* scattered(State& s, const Step* step) {
  const int64_t* index = s.at<int64_t>(step->a);
  const int64_t* mask = s.at<int64_t>(step->b);
  const uint32_t bytes = bytes_of(step->element), lane_bytes = lane_bytes_of(step->element);
  const int64_t first = *index;
  std::byte out[kMostLanes * 8];  // a load may write over its indices
  for (uint32_t i = 0; i < step->lanes; ++i) {
    if (step->masked && mask[i] == 0) {
      if constexpr (!kStore) std::memset(out + i * lane_bytes, 0, lane_bytes);
      continue;
    }
    int64_t at = 0;
    if (!step->many && __builtin_add_overflow(first, static_cast<int64_t>(i), &at)) return s.stop(step, kOutside);
    if (step->many) at = index[i];
    std::byte* place = place_of(s, step, at, 1, bytes);
    if (!place) return s.stop(step, kOutside);
    if constexpr (kStore)
      transfer<true>(s, step, place, i, 1);
    else if (step->element == Element::kF32)
      std::memcpy(out + i * sizeof(float), place, sizeof(float));
    else
      read_elements(step->element, place, out + i * lane_bytes, 1);
  }
  if constexpr (!kStore) std::memcpy(s.at<std::byte>(step->to), out, step->lanes * lane_bytes);
  return step + 1;
}

template <bool kStore>
Handler contiguous_handler(const Instruction& n) {
  switch (n.element) {
    case Element::kF32:
      return n.lanes == 1    ? plain<kStore, float, 1>
             : n.lanes == 16 ? plain<kStore, float, 16>
                             : plain<kStore, float, 0>;
    case Element::kF64:
    case Element::kI64:
    case Element::kU64:
      return n.lanes == 1 ? plain<kStore, int64_t, 1> : plain<kStore, int64_t, 0>;
    default:
      return contiguous<kStore>;
  }
}

}  // namespace

Handler memory_handler(const Instruction& n) {
  switch (n.op) {
    case Op::kLoad:
      return contiguous_handler<false>(n);
    case Op::kStore:
      return contiguous_handler<true>(n);
    case Op::kLoadMasked:
    case Op::kGather:
    case Op::kGatherMasked:
      return scattered<false>;
    case Op::kStoreMasked:
    case Op::kScatter:
    case Op::kScatterMasked:
      return scattered<true>;
    default:
      return nullptr;
  }
}

}  // namespace tilewright::stackvm
