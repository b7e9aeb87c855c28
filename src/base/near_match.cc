// SPDX-License-Identifier: Apache-2.0
#include "base/near_match.h"

#include <algorithm>
#include <cctype>

namespace tilewright {
namespace {

// Longer names are compared by their beginnings only: the algorithm is quadratic.
constexpr size_t kLongestName = 64;

std::string folded(std::string_view text) {
  std::string out(text.substr(0, kLongestName));
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// The edit distance of two names: insertions, deletions, replacements, and transpositions of neighbours.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

std::vector<std::string> near_matches(std::string_view name, std::span<const std::string> known, size_t limit) {
  std::vector<std::pair<size_t, std::string>> scored;
  std::string wanted = folded(name);
  for (const std::string& candidate : known) {
    std::string other = folded(candidate);
    size_t distance = edit_distance(wanted, other);
    bool contains =
        wanted.size() >= 3 && (other.find(wanted) != std::string::npos || wanted.find(other) != std::string::npos);
    if (distance <= std::max<size_t>(1, wanted.size() / 3))
      scored.emplace_back(distance, candidate);
    else if (contains)
      scored.emplace_back(wanted.size() + distance, candidate);
  }
  std::sort(scored.begin(), scored.end());
  std::vector<std::string> out;
  for (auto& [distance, candidate] : scored)
    if (out.size() < limit) out.push_back(candidate);
  return out;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> known, std::string otherwise) {
  auto close = near_matches(name, known);
  if (close.empty()) return otherwise;
  std::string out = "did you mean ";
  for (size_t i = 0; i < close.size(); ++i) out += (i == 0 ? "" : i + 1 == close.size() ? " or " : ", ") + close[i];
  return out + "?";
}

}  // namespace tilewright
