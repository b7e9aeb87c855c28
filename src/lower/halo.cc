// SPDX-License-Identifier: Apache-2.0
#include "lower/halo.h"

#include <algorithm>

namespace tilewright::lower {

bool Halo::empty() const {
  auto zero = [](int64_t v) { return v == 0; };
  return std::all_of(before.begin(), before.end(), zero) && std::all_of(after.begin(), after.end(), zero);
}

void Halo::merge(const Halo& other) {
  if (other.before.empty()) return;
  before.resize(other.before.size());
  after.resize(other.after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    before[i] = std::max(before[i], other.before[i]);
    after[i] = std::max(after[i], other.after[i]);
  }
}

}  // namespace tilewright::lower
