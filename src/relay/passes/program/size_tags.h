// SPDX-License-Identifier: Apache-2.0
// Which dimensions of a tensor hold one of the sizes that are free, and where those go when operators move them.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace tilewright::relay {

// A dimension of `outer` * (the size's largest) * `inner` elements: element i belongs to place i / inner % largest of
// the size. With both 1 the dimension is the size.
struct SizeTag {
  int size = -1;  // which; -1: the dimension is fixed
  int64_t outer = 1, inner = 1;
  bool operator==(const SizeTag& o) const {
    return size == o.size && (size < 0 || (outer == o.outer && inner == o.inner));
  }
};
using SizeTags = std::vector<SizeTag>;  // by dimension

// Where dimension `axis` of `from` lies in `to`, a shape of the same elements in the same order; nothing where the size
// is spread over several dimensions.
struct MovedTag {
  size_t axis = 0;
  SizeTag tag;
};
std::optional<MovedTag> reshaped_tag(const std::vector<int64_t>& from, size_t axis, const SizeTag& tag,
                                     const std::vector<int64_t>& to, int64_t largest);
// All of a tensor's; nothing where one has no place or two would share one.
std::optional<SizeTags> reshaped_tags(const std::vector<int64_t>& from, const SizeTags& tags,
                                      const std::vector<int64_t>& to, const std::vector<int64_t>& largest);

}  // namespace tilewright::relay
