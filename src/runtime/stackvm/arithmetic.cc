// SPDX-License-Identifier: Apache-2.0
// Arithmetic on floats: four lanes at a time, as every processor with vectors takes them.
#include <type_traits>

#include "runtime/stackvm/step.h"

namespace tilewright::stackvm {
namespace {

template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float type __attribute__((vector_size(16)));
};
template <>
struct VectorOf<double> {
  typedef double type __attribute__((vector_size(16)));
};

template <class V>
V loaded(const void* from) {
  V out;
  std::memcpy(&out, from, sizeof out);
  return out;
}

struct Add {
  template <class V>
  static V of(V a, V b) {
    return a + b;
  }
};
struct Sub {
  template <class V>
  static V of(V a, V b) {
    return a - b;
  }
};
struct Mul {
  template <class V>
  static V of(V a, V b) {
    return a * b;
  }
};
struct Div {
  template <class V>
  static V of(V a, V b) {
    return a / b;
  }
};
// Both give the second where either is NaN (tir/expr.h).
struct Min {
  template <class V>
  static V of(V a, V b) {
    return a < b ? a : b;
  }
};
struct Max {
  template <class V>
  static V of(V a, V b) {
    return a > b ? a : b;
  }
};

// Lanes of a kernel's vectors: 16 floats and 8 doubles are nearly all there are, and have code of their own.
template <class T, class F, unsigned kLanes>
const Step* binary(State& s, const Step* step) {
  using V = typename VectorOf<T>::type;
  constexpr unsigned kOne = sizeof(V) / sizeof(T);
  T* to = s.at<T>(step->to);
  const T *a = s.at<T>(step->a), *b = s.at<T>(step->b);
  const unsigned n = kLanes ? kLanes : step->lanes;
  unsigned i = 0;
  if constexpr (kLanes != 1)
#pragma GCC unroll 4
    for (; i + kOne <= n; i += kOne) {
      const V out = F::of(loaded<V>(a + i), loaded<V>(b + i));
      std::memcpy(to + i, &out, sizeof out);
    }
  for (; i < n; ++i) to[i] = F::of(a[i], b[i]);
  return step + 1;
}

template <class T, bool kSplat, unsigned kLanes>
const Step* multiply_add(State& s, const Step* step) {
  using V = typename VectorOf<T>::type;
  constexpr unsigned kOne = sizeof(V) / sizeof(T);
  T* to = s.at<T>(step->to);
  const T *a = s.at<T>(step->a), *b = s.at<T>(step->b), *c = s.at<T>(step->c);
  const T first = *a;
  const unsigned n = kLanes ? kLanes : step->lanes;
  unsigned i = 0;
  if constexpr (kLanes != 1)
#pragma GCC unroll 4
    for (; i + kOne <= n; i += kOne) {
      const V out = (kSplat ? first - V{} : loaded<V>(a + i)) * loaded<V>(b + i) + loaded<V>(c + i);
      std::memcpy(to + i, &out, sizeof out);
    }
  for (; i < n; ++i) to[i] = (kSplat ? first : a[i]) * b[i] + c[i];
  return step + 1;
}

// to += b * what is loaded: the inner loop of products by rows of memory.
template <unsigned kLanes>
const Step* multiply_add_load(State& s, const Step* step) {
  using V = typename VectorOf<float>::type;
  const std::byte* place = place_of(s, step, *s.at<int64_t>(step->a), 1, sizeof(float));
  if (!place) return s.stop(step, kOutside);
  float first;
  std::memcpy(&first, place, sizeof first);
  float* to = s.at<float>(step->to);
  const float* b = s.at<float>(step->b);
  const unsigned n = kLanes ? kLanes : step->lanes;
  const V many = V{first, first, first, first};
  unsigned i = 0;
#pragma GCC unroll 4
  for (; i + 4 <= n; i += 4) {
    const V out = many * loaded<V>(b + i) + loaded<V>(to + i);
    std::memcpy(to + i, &out, sizeof out);
  }
  for (; i < n; ++i) to[i] = first * b[i] + to[i];
  return step + 1;
}

template <class T, int kKind>
const Step* compare(State& s, const Step* step) {
  int64_t* to = s.at<int64_t>(step->to);
  const T *a = s.at<T>(step->a), *b = s.at<T>(step->b);
  for (unsigned i = 0; i < step->lanes; ++i)
    to[i] = kKind == 0 ? a[i] == b[i] : kKind == 1 ? a[i] < b[i] : a[i] <= b[i];
  return step + 1;
}

template <class T>
const Step* splat(State& s, const Step* step) {
  const T value = *s.at<T>(step->a);
  T* to = s.at<T>(step->to);
  for (unsigned i = 0; i < step->lanes; ++i) to[i] = value;
  return step + 1;
}
template <class T>
const Step* move(State& s, const Step* step) {
  std::memmove(s.at<T>(step->to), s.at<T>(step->a), step->lanes * sizeof(T));
  return step + 1;
}
template <class T>
const Step* select(State& s, const Step* step) {
  T* to = s.at<T>(step->to);
  const int64_t* condition = s.at<int64_t>(step->a);
  const T *b = s.at<T>(step->b), *c = s.at<T>(step->c);
  for (unsigned i = 0; i < step->lanes; ++i) to[i] = condition[i] ? b[i] : c[i];
  return step + 1;
}
template <class T>
const Step* constant(State& s, const Step* step) {
  std::memcpy(s.at<T>(step->to), &step->value, sizeof(T));
  return step + 1;
}
// Through a copy: it may shuffle what it writes over.
template <class T>
const Step* shuffle(State& s, const Step* step) {
  T out[kMostLanes];
  for (unsigned i = 0; i < step->lanes; ++i) out[i] = *s.at<T>(s.offsets[static_cast<size_t>(step->value) + i]);
  std::memcpy(s.at<T>(step->to), out, step->lanes * sizeof(T));
  return step + 1;
}

// tir/expr.h says the order: halves while the lanes are even in number, then from first to last.
template <class T, class F>
const Step* reduce(State& s, const Step* step) {
  T x[kMostLanes];
  unsigned n = step->lanes;
  std::memcpy(x, s.at<T>(step->a), n * sizeof(T));
  for (; n % 2 == 0; n /= 2)
    for (unsigned i = 0; i < n / 2; ++i) x[i] = F::of(x[i], x[i + n / 2]);
  for (unsigned i = 1; i < n; ++i) x[0] = F::of(x[0], x[i]);
  *s.at<T>(step->to) = x[0];
  return step + 1;
}
struct AddWrapping {
  static int64_t of(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
};

template <class T, class F>
Handler by_lanes(const Instruction& n) {
  constexpr unsigned kUsual = 64 / sizeof(T);
  return n.lanes == 1 ? binary<T, F, 1> : n.lanes == kUsual ? binary<T, F, kUsual> : binary<T, F, 0>;
}
template <class T, bool kSplat>
Handler multiply_add_by_lanes(const Instruction& n) {
  constexpr unsigned kUsual = 64 / sizeof(T);
  return n.lanes == 1        ? multiply_add<T, kSplat, 1>
         : n.lanes == kUsual ? multiply_add<T, kSplat, kUsual>
                             : multiply_add<T, kSplat, 0>;
}

Handler reduction(Op op) {
  switch (op) {
    case Op::kReduceAddF:
      return reduce<float, Add>;
    case Op::kReduceMinF:
      return reduce<float, Min>;
    case Op::kReduceMaxF:
      return reduce<float, Max>;
    case Op::kReduceAddD:
      return reduce<double, Add>;
    case Op::kReduceMinD:
      return reduce<double, Min>;
    case Op::kReduceMaxD:
      return reduce<double, Max>;
    case Op::kReduceAddI:
      return reduce<int64_t, AddWrapping>;
    case Op::kReduceMinI:
      return reduce<int64_t, Min>;
    case Op::kReduceMaxI:
      return reduce<int64_t, Max>;
    case Op::kReduceMinU:
      return reduce<uint64_t, Min>;
    case Op::kReduceMaxU:
      return reduce<uint64_t, Max>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler arithmetic_handler(const Instruction& n) {
  switch (n.op) {
    case Op::kAddF:
      return by_lanes<float, Add>(n);
    case Op::kSubF:
      return by_lanes<float, Sub>(n);
    case Op::kMulF:
      return by_lanes<float, Mul>(n);
    case Op::kDivF:
      return by_lanes<float, Div>(n);
    case Op::kMinF:
      return by_lanes<float, Min>(n);
    case Op::kMaxF:
      return by_lanes<float, Max>(n);
    case Op::kFmaF:
      return multiply_add_by_lanes<float, false>(n);
    case Op::kFmaSplatF:
      return multiply_add_by_lanes<float, true>(n);
    case Op::kFmaLoadF:
      return n.lanes == 16 ? multiply_add_load<16> : multiply_add_load<0>;
    case Op::kAddD:
      return binary<double, Add, 0>;
    case Op::kSubD:
      return binary<double, Sub, 0>;
    case Op::kMulD:
      return binary<double, Mul, 0>;
    case Op::kDivD:
      return binary<double, Div, 0>;
    case Op::kMinD:
      return binary<double, Min, 0>;
    case Op::kMaxD:
      return binary<double, Max, 0>;
    case Op::kFmaD:
      return multiply_add<double, false, 0>;
    case Op::kEqF:
      return compare<float, 0>;
    case Op::kLtF:
      return compare<float, 1>;
    case Op::kLeF:
      return compare<float, 2>;
    case Op::kEqD:
      return compare<double, 0>;
    case Op::kLtD:
      return compare<double, 1>;
    case Op::kLeD:
      return compare<double, 2>;
    case Op::kSplatF:
      return splat<float>;
    case Op::kSplatQ:
      return splat<int64_t>;
    case Op::kMoveF:
      return move<float>;
    case Op::kMoveQ:
      return move<int64_t>;
    case Op::kSelectF:
      return select<float>;
    case Op::kSelectQ:
      return select<int64_t>;
    case Op::kConstF:
      return constant<float>;
    case Op::kConstQ:
      return constant<int64_t>;
    case Op::kShuffleF:
      return shuffle<float>;
    case Op::kShuffleQ:
      return shuffle<int64_t>;
    default:
      return reduction(n.op);
  }
}

}  // namespace tilewright::stackvm
