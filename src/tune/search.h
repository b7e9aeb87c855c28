// SPDX-License-Identifier: Apache-2.0
// Search strategies: which configurations to try next. A search only sees numbers: values per knob, legal indices, and
// costs of tried ones.
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

// Branches, each a list of knobs; an index enumerates them in
// mixed radix, the first knob fastest, branch after branch.
struct SearchSpace {
  std::vector<std::vector<size_t>> branches;  // number of values of each knob
  std::function<bool(uint64_t)> legal;        // null: all indices are
  std::vector<uint64_t> ranked;               // the cost model's ranking, best first; may be empty or incomplete
  uint64_t size() const;
  bool is_legal(uint64_t index) const { return !legal || legal(index); }
  std::vector<size_t> digits(uint64_t index, size_t* branch) const;
  uint64_t index(size_t branch, const std::vector<size_t>& digits) const;
};
// The space must outlive the result.
SearchSpace search_space(const KnobSpace& space);

class Search {
 public:
  Search(SearchSpace space, uint64_t seed) : space_(std::move(space)), random_(seed) {}
  virtual ~Search() = default;
  // Up to `most` indices that were neither proposed nor reported before; fewer if there are no more.
  std::vector<uint64_t> propose(size_t most);
  // Reports a cost in seconds (huge if failed), also of indices from elsewhere.
  void learn(uint64_t index, double cost);
  bool seen(uint64_t index) const { return seen_.count(index) > 0; }
  const SearchSpace& space() const { return space_; }

 protected:
  // Proposes indices through `take`, which returns whether there is room for more.
  using Take = std::function<bool(uint64_t)>;
  virtual void choose(size_t most, const Take& take) = 0;
  // A random legal index that was not seen; if draws fail, the next in order. Nothing if there is none.
  std::optional<uint64_t> any();
  struct Known {
    uint64_t index;
    double cost;
  };
  // The best known ones, best first.
  std::vector<Known> best(size_t most) const;
  // Changes one or a few knobs.
  uint64_t mutated(uint64_t index);
  uint64_t crossed(uint64_t a, uint64_t b);

  SearchSpace space_;
  std::mt19937_64 random_;
  std::unordered_set<uint64_t> seen_;
  std::vector<Known> known_;
  uint64_t counter_ = 0;
};

// "random"; "grid" (exhaustive); "genetic" (crossover and mutation of the best); "guided" (alternates between the cost
// model's ranking and neighbours of the best). Error: InvalidArgument.
Result<std::unique_ptr<Search>> make_search(const std::string& name, SearchSpace space, uint64_t seed);

}  // namespace tilewright::tune
