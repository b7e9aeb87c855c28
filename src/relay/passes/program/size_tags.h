// SPDX-License-Identifier: Apache-2.0
// Tracks which tensor dimensions hold a free size, and where reshapes and transposes move them.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace tilewright::relay {

// A dimension of `outer` * (the largest size) * `inner` elements: element i belongs to index i / inner % largest of the
// size. If both are 1, the dimension is the size.
struct SizeTag {
  int size = -1;  // index of the size; -1: the dimension is fixed
  int64_t outer = 1, inner = 1;
  bool operator==(const SizeTag& o) const {
    return size == o.size && (size < 0 || (outer == o.outer && inner == o.inner));
  }
};
using SizeTags = std::vector<SizeTag>;  // for each dimension

// Where dimension `axis` of `from` ends up in `to`, a reshape of it; nothing if the size is spread over several
// dimensions.
struct MovedTag {
  size_t axis = 0;
  SizeTag tag;
};
std::optional<MovedTag> reshaped_tag(const std::vector<int64_t>& from, size_t axis, const SizeTag& tag,
                                     const std::vector<int64_t>& to, int64_t largest);
// The tags of a reshaped tensor; nothing if one is lost or two would share a dimension.
std::optional<SizeTags> reshaped_tags(const std::vector<int64_t>& from, const SizeTags& tags,
                                      const std::vector<int64_t>& to, const std::vector<int64_t>& largest);

}  // namespace tilewright::relay
