// SPDX-License-Identifier: Apache-2.0
// Layout strings: "NCHW", "NCHW16c", "OIHW16i16o", "NC16n". A capital is a whole axis; a number and a lower-case letter
// a block of that axis. A blocked axis whose size does not divide is padded with zeros.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/dim.h"
#include "relay/ops/reference.h"

namespace tilewright::relay {

struct Layout {
  struct Axis {
    char letter = 0;     // the capital letter of the axis
    int64_t factor = 0;  // block size; 0: the whole axis
  };
  std::vector<Axis> axes;
  std::string text;
  size_t rank() const { return axes.size(); }
  int find(char letter) const;        // index of the whole axis, or -1
  int find_block(char letter) const;  // index of its block, or -1
  int64_t block(char letter) const;   // block size, 1 when the axis is not blocked
  // The extent of an axis of a tensor in this layout, including padding.
  Dim extent(char letter, const Shape& shape) const;
  int64_t extent(char letter, const std::vector<int64_t>& shape) const;
};

// Errors: TypeMismatch for letters twice, a block without its axis, other characters.
Result<Layout> parse_layout(const std::string& text);

// The extents of axes without padding, by letter.
struct LogicalSizes {
  std::vector<std::pair<char, int64_t>> sizes;
  int64_t get(char letter, int64_t otherwise) const;
};

// A tensor's shape in `to`, given its shape in `from`. `logical` overrides padded extents.
Result<Shape> relayout_shape(const Layout& from, const Layout& to, const Shape& shape,
                             const LogicalSizes& logical = {});
// The sizes that layout_transform's attributes give: "channels" for the blocked axis C, O or N, in_channels for 'I'.
LogicalSizes logical_sizes(const Layout& from, std::optional<int64_t> channels, std::optional<int64_t> in_channels);

// For every element of the destination in order: the source's linear index, or -1 for padding.
class LayoutMap {
 public:
  LayoutMap(const Layout& from, const Layout& to, const std::vector<int64_t>& shape, const LogicalSizes& logical = {});
  const std::vector<int64_t>& shape() const { return shape_; }
  template <class F>
  void each(F&& fn) const;

 private:
  static constexpr int64_t kPadding = -(int64_t{1} << 60);
  struct Step {
    std::vector<int64_t> const* offsets;  // source offset for each logical index of the letter
    int64_t scale;                        // logical indices per step of this destination axis
    size_t letter;
  };
  std::vector<int64_t> shape_;
  std::vector<std::vector<int64_t>> offsets_;  // by letter
  std::vector<Step> steps_;                    // by destination axis
};

template <class F>
void LayoutMap::each(F&& fn) const {
  const size_t rank = shape_.size();
  int64_t total = 1;
  for (int64_t d : shape_) total *= d;
  if (total == 0) return;
  if (rank == 0) return fn(int64_t{0}, int64_t{0});
  std::vector<int64_t> counter(rank, 0), logical(offsets_.size(), 0);
  const Step& last = steps_[rank - 1];
  const int64_t inner = shape_[rank - 1];
  for (int64_t out = 0; out < total; out += inner) {
    int64_t base = 0;
    for (size_t l = 0; l < offsets_.size(); ++l)
      if (l != last.letter) base += offsets_[l][logical[l]];
    const int64_t* table = last.offsets->data() + logical[last.letter];
    for (int64_t i = 0; i < inner; ++i) {
      int64_t at = base + table[i * last.scale];
      fn(out + i, at < 0 ? -1 : at);
    }
    for (size_t d = rank - 1; d-- > 0;) {
      logical[steps_[d].letter] += steps_[d].scale;
      if (++counter[d] < shape_[d]) break;
      logical[steps_[d].letter] -= steps_[d].scale * shape_[d];
      counter[d] = 0;
    }
  }
}

Value relayout(const Value& in, const Layout& from, const Layout& to, const LogicalSizes& logical = {});

}  // namespace tilewright::relay
