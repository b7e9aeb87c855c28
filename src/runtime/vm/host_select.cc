// SPDX-License-Identifier: Apache-2.0
// Operators with data-dependent result sizes, and TopK, for which a sort is better than a kernel.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/checked.h"
#include "base/format.h"
#include "runtime/vm/host_functions.h"

namespace tilewright::runtime::vm {
namespace {

bool is_number(const Tensor& t) { return !t.dtype().is_string() && t.dtype().code != TypeCode::kComplex; }

struct Half {  // float16 or bfloat16
  uint16_t bits;
};
bool is_set(Half x) { return (x.bits & 0x7fff) != 0; }  // -0 is 0
template <class T>
bool is_set(T x) {
  return x != T(0);
}

// A 64-bit mask of non-zero elements: branch-free, so that it vectorises.
template <class T>
uint64_t not_zero(const T* x, int64_t n) {
  uint64_t word = 0;
  for (int64_t i = 0; i < n; ++i) word |= static_cast<uint64_t>(is_set(x[i])) << i;
  return word;
}
// Masks for rows of `length` elements.
template <class T>
void mark_non_zero(const Tensor& x, int64_t length, std::vector<uint64_t>* words) {
  const T* from = reinterpret_cast<const T*>(x.raw());
  size_t w = 0;
  for (const T *row = from, *end = from + x.size(); row != end; row += length)
    for (int64_t i = 0; i < length; i += 64) (*words)[w++] = not_zero(row + i, std::min<int64_t>(64, length - i));
}
void mark_any(const Tensor& x, int64_t length, std::vector<uint64_t>* words) {
  const DataType t = x.dtype();
  if (t == kFloat32) return mark_non_zero<float>(x, length, words);
  if (t == kFloat64) return mark_non_zero<double>(x, length, words);
  if (t.is_float() && t.bits == 16) return mark_non_zero<Half>(x, length, words);
  if (t.is_integral() || t.is_bool()) {
    if (t.bits == 8 || t.is_bool()) return mark_non_zero<uint8_t>(x, length, words);
    if (t.bits == 16) return mark_non_zero<uint16_t>(x, length, words);
    if (t.bits == 32) return mark_non_zero<uint32_t>(x, length, words);
    if (t.bits == 64) return mark_non_zero<uint64_t>(x, length, words);
  }
  size_t w = 0;
  for (int64_t row = 0; row < x.size(); row += length)
    for (int64_t i = 0; i < length; i += 64) {
      uint64_t word = 0;
      for (int64_t j = 0; j < std::min<int64_t>(64, length - i); ++j) {
        const int64_t at = row + i + j;
        const bool set = t.is_float() ? x.at_double(at) != 0 : x.at_int(at) != 0;
        word |= static_cast<uint64_t>(set) << j;
      }
      (*words)[w++] = word;
    }
}

// Coordinates of non-zero elements, one element per column
// or per row: masks and counts first, then the output.
Status coordinates(HostCall& c, bool rows) {
  const Tensor x = TW_TRY(c.tensor(0));
  if (!is_number(x)) return host_error(format("the coordinates of {}", x.dtype().str()));
  // For columns, a scalar counts as a vector of one element.
  const std::vector<int64_t> shape = x.rank() == 0 && !rows ? std::vector<int64_t>{1} : x.shape();
  const size_t axes = shape.size();
  const int64_t length = axes == 0 ? 1 : std::max<int64_t>(shape.back(), 1), per_row = (length + 63) / 64;
  std::vector<uint64_t> words(static_cast<size_t>(x.size() / length * per_row));
  mark_any(x, length, &words);
  int64_t n = 0;
  for (uint64_t word : words) n += std::popcount(word);
  const auto width = static_cast<int64_t>(axes);
  Tensor out = TW_TRY(c.pool.allocate(kInt64, rows ? std::vector{n, width} : std::vector{width, n}));
  int64_t* to = out.as_mutable<int64_t>().data();
  std::vector<int64_t> at(axes, 0);  // coordinates of the row; the last is the element's
  int64_t k = 0;
  for (size_t w = 0; w < words.size() && axes > 0; ++w) {
    const int64_t first = static_cast<int64_t>(w) % per_row * 64;
    if (w > 0 && first == 0)
      for (size_t d = axes - 1; d-- > 0 && ++at[d] == shape[d];) at[d] = 0;
    const int64_t found = std::popcount(words[w]);
    if (found == 0) continue;
    for (size_t d = 0; d + 1 < axes; ++d)
      for (int64_t i = 0; i < found; ++i)
        to[rows ? (k + i) * width + static_cast<int64_t>(d) : static_cast<int64_t>(d) * n + k + i] = at[d];
    int64_t* last = rows ? to + k * width + width - 1 : to + (width - 1) * n + k;
    if (found == 64 && !rows) {
      for (int64_t i = 0; i < 64; ++i) last[i] = first + i;
    } else {
      for (uint64_t word = words[w]; word != 0; word &= word - 1, last += rows ? width : 1)
        *last = first + std::countr_zero(word);
    }
    k += found;
  }
  c.give(0, make_tensor(std::move(out)));
  return Ok{};
}
Status non_zero(HostCall& c) { return coordinates(c, false); }
Status argwhere(HostCall& c) { return coordinates(c, true); }

// The slices along an axis (or the elements, without one) listed in `kept`.
Result<Tensor> take_slices(HostCall& c, const Tensor& x, int64_t axis, const std::vector<int64_t>& kept) {
  auto shape = x.shape();
  const auto at = static_cast<size_t>(axis);
  const bool text = x.dtype().is_string();
  if (!text) TW_TRY_STATUS(check_copyable(x));
  int64_t outer = 1, inner = text ? 1 : static_cast<int64_t>(x.dtype().bytes());
  for (size_t d = 0; d < at; ++d) outer *= shape[d];
  for (size_t d = at + 1; d < shape.size(); ++d) inner *= shape[d];
  const int64_t size = shape[at];
  shape[at] = static_cast<int64_t>(kept.size());
  if (text) {
    std::vector<std::string> taken;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t k : kept) {
        const auto from = x.string_values().begin() + (o * size + k) * inner;
        taken.insert(taken.end(), from, from + inner);
      }
    return Tensor::strings(shape, std::move(taken));
  }
  Tensor out = TW_TRY(c.pool.allocate(x.dtype(), shape));
  std::byte* to = out.mutable_raw();
  for (int64_t o = 0; o < outer && inner > 0; ++o)
    for (size_t i = 0; i < kept.size();) {
      size_t end = i + 1;  // neighbours are one copy
      while (end < kept.size() && kept[end] == kept[end - 1] + 1) ++end;
      const int64_t bytes = static_cast<int64_t>(end - i) * inner;
      std::memcpy(to, x.raw() + (o * size + kept[i]) * inner, static_cast<size_t>(bytes));
      to += bytes, i = end;
    }
  return out;
}
// The operand, flattened unless an axis is given.
Result<std::pair<Tensor, int64_t>> along(HostCall& c) {
  Tensor x = TW_TRY(c.tensor(0));
  if (!c.attributes.count("axis")) return std::pair(x.reshaped({x.size()}), int64_t{0});
  int64_t axis = TW_TRY(c.attribute("axis", 0));
  const int64_t rank = x.rank();
  if (axis < -rank || axis >= rank) return host_error(format("axis {} of a tensor with {} axes", axis, rank));
  return std::pair(x, axis < 0 ? axis + rank : axis);
}

Status compress(HostCall& c) {
  auto [x, axis] = TW_TRY(along(c));
  const Tensor condition = TW_TRY(c.tensor(1));
  if (condition.rank() != 1 || !condition.dtype().is_bool())
    return host_error("the condition is not a list of booleans");
  std::vector<uint64_t> words(static_cast<size_t>((condition.size() + 63) / 64));
  if (condition.size() > 0) mark_any(condition, condition.size(), &words);
  std::vector<int64_t> kept;
  for (size_t w = 0; w < words.size(); ++w)
    for (uint64_t word = words[w]; word != 0; word &= word - 1)
      kept.push_back(static_cast<int64_t>(w) * 64 + std::countr_zero(word));
  if (!kept.empty() && kept.back() >= x.shape()[static_cast<size_t>(axis)])
    return host_error(
        format("the condition keeps element {} of {}", kept.back(), x.shape()[static_cast<size_t>(axis)]));
  c.give(0, make_tensor(TW_TRY(take_slices(c, x, axis, kept))));
  return Ok{};
}

constexpr uint64_t kSign = uint64_t{1} << 63;

// Unsigned keys in the order of the elements: both zeros are equal, NaN is largest, texts are in the order of their
// bytes.
std::vector<uint64_t> ordered_keys(const Tensor& x) {
  std::vector<uint64_t> keys(static_cast<size_t>(x.size()));
  if (x.dtype().is_string()) {
    std::vector<std::string_view> sorted(x.string_values().begin(), x.string_values().end());
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < keys.size(); ++i)
      keys[i] =
          static_cast<uint64_t>(std::lower_bound(sorted.begin(), sorted.end(), x.string_values()[i]) - sorted.begin());
    return keys;
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!x.dtype().is_float()) {
      keys[i] = static_cast<uint64_t>(x.at_int(static_cast<int64_t>(i))) ^ (x.dtype() == kUInt64 ? 0 : kSign);
      continue;
    }
    const double v = x.at_double(static_cast<int64_t>(i));
    const auto bits = std::bit_cast<uint64_t>(v == 0 ? 0.0 : v);
    keys[i] = std::isnan(v) ? UINT64_MAX : bits & kSign ? ~bits : bits | kSign;
  }
  return keys;
}

// The indices that sort the keys, stably: a radix sort over the digits in which any keys differ.
std::vector<int64_t> sorted_places(const std::vector<uint64_t>& keys) {
  constexpr int kDigit = 11;
  constexpr uint64_t kMask = (uint64_t{1} << kDigit) - 1;
  struct Place {
    uint64_t key;
    int64_t at;
  };
  std::vector<Place> places(keys.size()), next(keys.size());
  uint64_t differ = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    places[i] = {keys[i], static_cast<int64_t>(i)};
    differ |= keys[i] ^ keys[0];
  }
  std::vector<size_t> begin;
  for (int shift = 0; shift < 64; shift += kDigit) {
    if (((differ >> shift) & kMask) == 0) continue;
    begin.assign(kMask + 2, 0);
    for (const Place& p : places) ++begin[(p.key >> shift & kMask) + 1];
    for (size_t d = 1; d < begin.size(); ++d) begin[d] += begin[d - 1];
    for (const Place& p : places) next[begin[p.key >> shift & kMask]++] = p;
    std::swap(places, next);
  }
  std::vector<int64_t> sorted;
  sorted.reserve(places.size());
  for (const Place& p : places) sorted.push_back(p.at);
  return sorted;
}

// Outputs: the distinct slices, their first indices, for each slice the index of its distinct one, and counts.
Status unique(HostCall& c) {
  auto [x, axis] = TW_TRY(along(c));
  if (!is_number(x) && !x.dtype().is_string()) return host_error(format("Unique of {}", x.dtype().str()));
  const auto& shape = x.shape();
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < static_cast<size_t>(axis); ++d) outer *= shape[d];
  for (size_t d = static_cast<size_t>(axis) + 1; d < shape.size(); ++d) inner *= shape[d];
  const int64_t n = shape[static_cast<size_t>(axis)];
  const std::vector<uint64_t> keys = ordered_keys(x);
  auto compare = [&](int64_t a, int64_t b) {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        const uint64_t u = keys[static_cast<size_t>((o * n + a) * inner + i)];
        const uint64_t v = keys[static_cast<size_t>((o * n + b) * inner + i)];
        if (u != v) return u < v ? -1 : 1;
      }
    return 0;
  };
  std::vector<int64_t> sorted;
  if (outer * inner == 1) {
    sorted = sorted_places(keys);
  } else {
    sorted.resize(static_cast<size_t>(n));
    std::iota(sorted.begin(), sorted.end(), 0);
    std::stable_sort(sorted.begin(), sorted.end(), [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
  }
  std::vector<int64_t> first, inverse(static_cast<size_t>(n)), counts;
  for (size_t k = 0; k < sorted.size(); ++k) {
    if (k == 0 || compare(sorted[k - 1], sorted[k]) != 0) {
      first.push_back(sorted[k]);  // the sort is stable
      counts.push_back(0);
    }
    inverse[static_cast<size_t>(sorted[k])] = static_cast<int64_t>(first.size()) - 1;
    ++counts.back();
  }
  if (TW_TRY(c.attribute("sorted", 1)) == 0) {
    std::vector<int64_t> by_place(first.size()), rank(first.size());
    std::iota(by_place.begin(), by_place.end(), 0);
    std::sort(by_place.begin(), by_place.end(),
              [&](int64_t a, int64_t b) { return first[static_cast<size_t>(a)] < first[static_cast<size_t>(b)]; });
    std::vector<int64_t> f, k;
    for (size_t i = 0; i < by_place.size(); ++i) {
      rank[static_cast<size_t>(by_place[i])] = static_cast<int64_t>(i);
      f.push_back(first[static_cast<size_t>(by_place[i])]);
      k.push_back(counts[static_cast<size_t>(by_place[i])]);
    }
    for (int64_t& v : inverse) v = rank[static_cast<size_t>(v)];
    first = std::move(f), counts = std::move(k);
  }
  c.give(0, make_tensor(TW_TRY(take_slices(c, x, axis, first))));
  auto list = [](const std::vector<int64_t>& v) {
    return make_tensor(Tensor::from<int64_t>(kInt64, {static_cast<int64_t>(v.size())}, v));
  };
  c.give(1, list(first));
  c.give(2, list(inverse));
  c.give(3, list(counts));
  return Ok{};
}

struct Box {
  Box(float top, float left, float bottom, float right)
      : y0(top), x0(left), y1(bottom), x1(right), area((bottom - top) * (right - left)) {}
  float y0, x0, y1, x1, area;
};

// Operands: boxes (batch, boxes, 4), scores (batch, classes, boxes), limit per class, overlap and score thresholds;
// result (count, 3): batch, class, box. Of equal scores the box with the lower index wins.
Status non_max_suppression(HostCall& c) {
  const Tensor boxes = TW_TRY(c.tensor(0));
  const Tensor scores = TW_TRY(c.tensor(1));
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes.dtype() != kFloat32 || scores.dtype() != kFloat32 ||
      boxes.shape()[2] != 4 || boxes.shape()[0] != scores.shape()[0] || boxes.shape()[1] != scores.shape()[2])
    return host_error(format("boxes {} {} and scores {} {} do not fit each other", boxes.dtype().str(),
                             shape_str(boxes.shape()), scores.dtype().str(), shape_str(scores.shape())));
  const int64_t limit = c.has(2) ? TW_TRY(c.integer(2)) : 0;
  auto number = [&](size_t i, float fallback) -> Result<float> {
    if (!c.has(i)) return fallback;
    const Tensor t = TW_TRY(c.tensor(i));
    if (t.size() != 1) return host_error("a threshold is not one number");
    return static_cast<float>(t.at_double(0));
  };
  const float overlap = TW_TRY(number(3, 0)), least = TW_TRY(number(4, -INFINITY));
  const bool thresholded = c.has(4), centers = TW_TRY(c.attribute("center_point_box", 0)) != 0;
  const int64_t batches = scores.shape()[0], classes = scores.shape()[1], n = scores.shape()[2];
  if (n > int64_t{UINT32_MAX}) return host_error(format("{} boxes; {} at most", n, UINT32_MAX));
  std::vector<int64_t> selected;
  std::vector<Box> chosen;
  std::vector<uint64_t> candidates;  // a heap: descending score as an unsigned key, then the index
  for (int64_t b = 0; b < batches && limit > 0; ++b) {
    const float* coordinates = boxes.as<float>().data() + b * n * 4;
    for (int64_t k = 0; k < classes; ++k) {
      const float* s = scores.as<float>().data() + (b * classes + k) * n;
      candidates.clear();
      for (int64_t i = 0; i < n; ++i)
        if (thresholded ? s[i] > least : !std::isnan(s[i])) {
          const auto bits = std::bit_cast<uint32_t>(s[i] == 0 ? 0.0F : s[i]);
          const uint32_t falling = bits & 0x80000000U ? bits : ~(bits | 0x80000000U);
          candidates.push_back(uint64_t{falling} << 32 | static_cast<uint64_t>(i));
        }
      // Extracts the best from a heap, as many as the limit needs: cheaper than a full sort.
      std::make_heap(candidates.begin(), candidates.end(), std::greater<>());
      chosen.clear();
      while (!candidates.empty() && static_cast<int64_t>(chosen.size()) < limit) {
        std::pop_heap(candidates.begin(), candidates.end(), std::greater<>());
        const auto i = static_cast<int64_t>(candidates.back() & UINT32_MAX);
        candidates.pop_back();
        const float* p = coordinates + i * 4;
        const Box box =
            centers ? Box{p[1] - p[3] / 2, p[0] - p[2] / 2, p[1] + p[3] / 2, p[0] + p[2] / 2}
                    : Box{std::min(p[0], p[2]), std::min(p[1], p[3]), std::max(p[0], p[2]), std::max(p[1], p[3])};
        const bool covered = std::any_of(chosen.begin(), chosen.end(), [&](const Box& o) {
          const float h = std::min(box.y1, o.y1) - std::max(box.y0, o.y0),
                      w = std::min(box.x1, o.x1) - std::max(box.x0, o.x0);
          if (h <= 0 || w <= 0) return false;
          const float both = h * w, together = box.area + o.area - both;
          return together > 0 && both / together > overlap;
        });
        if (covered) continue;
        chosen.push_back(box);
        selected.insert(selected.end(), {b, k, i});
      }
    }
  }
  c.give(0, make_tensor(Tensor::from<int64_t>(kInt64, {static_cast<int64_t>(selected.size() / 3), 3}, selected)));
  return Ok{};
}

// The indices of the k largest (smallest) of n keys, stably; NaN is largest.
template <class Key>
std::vector<int64_t> top_indices(const std::vector<Key>& keys, int64_t k, bool largest) {
  std::vector<int64_t> places(keys.size());
  std::iota(places.begin(), places.end(), 0);
  auto before = [&](int64_t a, int64_t b) {
    const Key u = keys[static_cast<size_t>(a)], v = keys[static_cast<size_t>(b)];
    if constexpr (std::is_floating_point_v<Key>)
      if (std::isnan(u) || std::isnan(v)) return std::isnan(u) == std::isnan(v) ? a < b : std::isnan(u) == largest;
    return u != v ? (largest ? u > v : u < v) : a < b;
  };
  std::partial_sort(places.begin(), places.begin() + k, places.end(), before);
  places.resize(static_cast<size_t>(k));
  return places;
}

// Outputs: the first k elements along an axis in order, and their indices.
Status top_k(HostCall& c) {
  const Tensor x = TW_TRY(c.tensor(0));
  if (!is_number(x)) return host_error(format("TopK of {}", x.dtype().str()));
  TW_TRY_STATUS(check_copyable(x));
  const int64_t k = TW_TRY(c.integer(1)), rank = x.rank();
  int64_t axis = TW_TRY(c.attribute("axis", -1));
  if (axis < -rank || axis >= rank) return host_error(format("axis {} of a tensor with {} axes", axis, rank));
  if (axis < 0) axis += rank;
  auto shape = x.shape();
  const int64_t n = shape[static_cast<size_t>(axis)];
  if (k < 0 || k > n) return host_error(format("the first {} of {} elements", k, n));
  const bool largest = TW_TRY(c.attribute("largest", 1)) != 0;
  shape[static_cast<size_t>(axis)] = k;
  Tensor values = TW_TRY(c.pool.allocate(x.dtype(), shape)), indices = TW_TRY(c.pool.allocate(kInt64, shape));
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < static_cast<size_t>(axis); ++d) outer *= shape[d];
  for (size_t d = static_cast<size_t>(axis) + 1; d < shape.size(); ++d) inner *= shape[d];
  const auto width = static_cast<int64_t>(x.dtype().bytes());
  std::vector<double> real(x.dtype().is_float() ? static_cast<size_t>(n) : 0);
  std::vector<int64_t> whole(x.dtype().is_float() ? 0 : static_cast<size_t>(n));
  auto places_of = indices.as_mutable<int64_t>();
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      const int64_t first = o * n * inner + i;
      // Flipping the top bit keeps the order of unsigned 64-bit numbers.
      for (int64_t e = 0; e < n; ++e) {
        if (!real.empty())
          real[static_cast<size_t>(e)] = x.at_double(first + e * inner);
        else
          whole[static_cast<size_t>(e)] =
              x.dtype() == kUInt64 ? x.at_int(first + e * inner) ^ INT64_MIN : x.at_int(first + e * inner);
      }
      const std::vector<int64_t> places =
          x.dtype().is_float() ? top_indices(real, k, largest) : top_indices(whole, k, largest);
      for (int64_t e = 0; e < k; ++e) {
        const int64_t to = o * k * inner + e * inner + i, from = places[static_cast<size_t>(e)];
        places_of[static_cast<size_t>(to)] = from;
        std::memcpy(values.mutable_raw() + to * width, x.raw() + (first + from * inner) * width,
                    static_cast<size_t>(width));
      }
    }
  c.give(0, make_tensor(std::move(values)));
  c.give(1, make_tensor(std::move(indices)));
  return Ok{};
}

constexpr HostEntry kSelectFunctions[] = {{"TopK", top_k},        {"NonZero", non_zero},
                                          {"argwhere", argwhere}, {"Compress", compress},
                                          {"Unique", unique},     {"NonMaxSuppression", non_max_suppression}};

}  // namespace

std::span<const HostEntry> select_functions() { return kSelectFunctions; }

}  // namespace tilewright::runtime::vm
