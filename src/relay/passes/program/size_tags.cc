// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/program/size_tags.h"

namespace tilewright::relay {

std::optional<MovedTag> reshaped_tag(const std::vector<int64_t>& from, size_t axis, const SizeTag& tag,
                                     const std::vector<int64_t>& to, int64_t largest) {
  // Indices of the size are `stride` elements apart and repeat after `span` elements.
  int64_t stride = tag.inner;
  for (size_t d = axis + 1; d < from.size(); ++d) stride *= from[d];
  const int64_t span = stride * largest;
  int64_t behind = 1;  // number of elements in the dimensions behind `d`
  for (size_t d = to.size(); d-- > 0; behind *= to[d]) {
    const int64_t all = behind * to[d];
    if (behind > stride || all < span) continue;
    if (stride % behind != 0 || all % span != 0) return {};
    return MovedTag{d, {tag.size, all / span, stride / behind}};
  }
  return {};
}

std::optional<SizeTags> reshaped_tags(const std::vector<int64_t>& from, const SizeTags& tags,
                                      const std::vector<int64_t>& to, const std::vector<int64_t>& largest) {
  SizeTags out(to.size());
  for (size_t d = 0; d < from.size(); ++d) {
    if (tags[d].size < 0) continue;
    auto moved = reshaped_tag(from, d, tags[d], to, largest[static_cast<size_t>(tags[d].size)]);
    if (!moved || out[moved->axis].size >= 0) return {};
    out[moved->axis] = moved->tag;
  }
  return out;
}

}  // namespace tilewright::relay
