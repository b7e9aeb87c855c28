// SPDX-License-Identifier: Apache-2.0
// Which configurations to try next. A search sees numbers only: how many values each knob has, which indices are
// kernels, and what the tried ones cost.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "tune/space.h"

namespace tilewright::tune {

// Branches, each a list of knobs; an index counts through them in mixed radix, the first knob fastest, one branch after
// the other.
struct SearchSpace {
  std::vector<std::vector<size_t>> branches;  // how many values each knob has
  std::function<bool(uint64_t)> legal;        // null: every index is
  std::vector<uint64_t> ranked;               // a guess, the best first; may be empty or leave some out
  uint64_t size() const;
  bool is_legal(uint64_t index) const { return !legal || legal(index); }
  std::vector<size_t> digits(uint64_t index, size_t* branch) const;
  uint64_t index(size_t branch, const std::vector<size_t>& digits) const;
};
// The space must outlive what is made of it.
SearchSpace search_space(const KnobSpace& space);

class Search {
 public:
  Search(SearchSpace space, uint64_t seed) : space_(std::move(space)), random_(seed) {}
  virtual ~Search() = default;
  // At most so many indices that it has not given and not been told of; fewer or none where there are no more.
  std::vector<uint64_t> propose(size_t most);
  // What one costs, in seconds; huge where it failed. Also of indices that others tried.
  void learn(uint64_t index, double cost);
  bool seen(uint64_t index) const { return seen_.count(index) > 0; }
  const SearchSpace& space() const { return space_; }

 protected:
  // Adds what should come next by `take`, which says whether there is room for more.
  using Take = std::function<bool(uint64_t)>;
  virtual void choose(size_t most, const Take& take) = 0;
  // A legal index that was not seen, by chance; then by count. Nothing when there is none.
  std::optional<uint64_t> any();
  struct Known {
    uint64_t index;
    double cost;
  };
  // The best that are known, the best first.
  std::vector<Known> best(size_t most) const;
  // One knob, or a few, of it are others.
  uint64_t mutated(uint64_t index);
  uint64_t crossed(uint64_t a, uint64_t b);

  SearchSpace space_;
  std::mt19937_64 random_;
  std::unordered_set<uint64_t> seen_;
  std::vector<Known> known_;
  uint64_t counter_ = 0;
};

// "random"; "grid" (every index in turn); "genetic" (the best known, crossed and changed); "guided" (the cost model's
// guesses and what lies around the best known, by turns). Error: InvalidArgument.
Result<std::unique_ptr<Search>> make_search(const std::string& name, SearchSpace space, uint64_t seed);

}  // namespace tilewright::tune
