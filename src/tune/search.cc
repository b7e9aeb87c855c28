// SPDX-License-Identifier: Apache-2.0
#include "tune/search.h"

#include <algorithm>

#include "base/format.h"

namespace tilewright::tune {
namespace {

// Random draws before falling back to enumeration.
constexpr int kDraws = 200;

class RandomSearch : public Search {
 public:
  using Search::Search;

 private:
  void choose(size_t, const Take& take) override {
    for (auto next = any(); next && take(*next); next = any()) {
    }
  }
};

class GridSearch : public Search {
 public:
  using Search::Search;

 private:
  void choose(size_t, const Take& take) override {
    for (; at_ < space_.size(); ++at_)
      if (!seen(at_) && space_.is_legal(at_) && !take(at_)) return;
  }
  uint64_t at_ = 0;
};

class GeneticSearch : public Search {
 public:
  using Search::Search;

 private:
  static constexpr size_t kPopulation = 32, kElite = 8;
  void choose(size_t most, const Take& take) override {
    const auto parents = best(kElite);
    size_t given = 0;
    if (known_.size() >= std::min<size_t>(kPopulation, space_.size() / 4)) {
      for (int draws = 0; draws < kDraws && given < most; ++draws) {
        const uint64_t a = parents[random_() % parents.size()].index, b = parents[random_() % parents.size()].index;
        const uint64_t child = mutated(crossed(a, b));
        if (seen(child) || !space_.is_legal(child)) continue;
        ++given;
        if (!take(child)) return;
      }
    }
    for (auto next = any(); next && take(*next); next = any()) {
    }
  }
};

class GuidedSearch : public Search {
 public:
  // The ranking compares implementations less well than configurations of one: the best few of each are guessed first.
  GuidedSearch(SearchSpace space, uint64_t seed) : Search(std::move(space), seed) {
    std::vector<size_t> given(space_.branches.size());
    std::vector<uint64_t> later;
    for (const uint64_t index : space_.ranked) {
      size_t branch = 0;
      (void)space_.digits(index, &branch);
      (given[branch]++ < kOfEach ? guesses_ : later).push_back(index);
    }
    guesses_.insert(guesses_.end(), later.begin(), later.end());
  }

 private:
  static constexpr size_t kParents = 4, kOfEach = 2;
  void choose(size_t most, const Take& take) override {
    const auto parents = best(kParents);
    for (size_t i = 0; i < most; ++i) {
      // The first batch follows the ranking; then every other proposal is a neighbour of the best.
      std::optional<uint64_t> next = !parents.empty() && i % 2 == 0 ? near(parents) : guess();
      if (!next) next = parents.empty() ? std::nullopt : near(parents);
      if (!next) next = any();
      if (!next || !take(*next)) return;
    }
  }
  std::optional<uint64_t> guess() {
    for (; at_ < guesses_.size(); ++at_)
      if (!seen(guesses_[at_])) return guesses_[at_];
    return std::nullopt;
  }
  std::optional<uint64_t> near(const std::vector<Known>& parents) {
    for (int draws = 0; draws < kDraws; ++draws) {
      const uint64_t child = mutated(parents[random_() % parents.size()].index);
      if (!seen(child) && space_.is_legal(child)) return child;
    }
    return std::nullopt;
  }
  std::vector<uint64_t> guesses_;
  size_t at_ = 0;
};

}  // namespace

uint64_t SearchSpace::size() const {
  uint64_t all = 0;
  for (const auto& knobs : branches) {
    uint64_t of_branch = 1;
    for (size_t values : knobs) of_branch *= values;
    all += of_branch;
  }
  return all;
}

std::vector<size_t> SearchSpace::digits(uint64_t index, size_t* branch) const {
  for (*branch = 0; *branch < branches.size(); ++*branch) {
    uint64_t size = 1;
    for (size_t values : branches[*branch]) size *= values;
    if (index >= size) {
      index -= size;
      continue;
    }
    std::vector<size_t> out;
    for (size_t values : branches[*branch]) out.push_back(index % values), index /= values;
    return out;
  }
  return {};
}

uint64_t SearchSpace::index(size_t branch, const std::vector<size_t>& digits) const {
  uint64_t out = 0;
  for (size_t k = digits.size(); k-- > 0;) out = out * branches[branch][k] + digits[k];
  for (size_t b = 0; b < branch; ++b) {
    uint64_t size = 1;
    for (size_t values : branches[b]) size *= values;
    out += size;
  }
  return out;
}

SearchSpace search_space(const KnobSpace& space) {
  SearchSpace out;
  for (const KnobSpace::Branch& branch : space.branches()) {
    out.branches.emplace_back();
    for (const Knob& knob : branch.knobs) out.branches.back().push_back(knob.values.size());
  }
  out.legal = [&space](uint64_t index) { return space.get(index).has_value(); };
  out.ranked = space.ranked();
  return out;
}

std::vector<uint64_t> Search::propose(size_t most) {
  std::vector<uint64_t> out;
  if (most == 0) return out;
  choose(most, [&](uint64_t index) {
    if (seen_.insert(index).second) out.push_back(index);
    return out.size() < most;
  });
  return out;
}

void Search::learn(uint64_t index, double cost) {
  seen_.insert(index);
  known_.push_back({index, cost});
}

std::optional<uint64_t> Search::any() {
  const uint64_t size = space_.size();
  for (int draws = 0; draws < kDraws && size > 0; ++draws) {
    const uint64_t index = random_() % size;
    if (!seen(index) && space_.is_legal(index)) return index;
  }
  for (; counter_ < size; ++counter_)
    if (!seen(counter_) && space_.is_legal(counter_)) return counter_;
  return std::nullopt;
}

std::vector<Search::Known> Search::best(size_t most) const {
  std::vector<Known> out = known_;
  std::stable_sort(out.begin(), out.end(), [](const Known& a, const Known& b) { return a.cost < b.cost; });
  if (out.size() > most) out.resize(most);
  return out;
}

uint64_t Search::mutated(uint64_t index) {
  size_t branch = 0;
  std::vector<size_t> all = space_.digits(index, &branch);
  const size_t changes = 1 + random_() % 3;
  for (size_t i = 0; i < changes && !all.empty(); ++i) {
    const size_t knob = random_() % all.size();
    all[knob] = random_() % space_.branches[branch][knob];
  }
  return space_.index(branch, all);
}

uint64_t Search::crossed(uint64_t a, uint64_t b) {
  size_t of_a = 0, of_b = 0;
  std::vector<size_t> mine = space_.digits(a, &of_a);
  const std::vector<size_t> other = space_.digits(b, &of_b);
  if (of_a != of_b) return a;
  for (size_t k = 0; k < mine.size(); ++k)
    if (random_() % 2) mine[k] = other[k];
  return space_.index(of_a, mine);
}

Result<std::unique_ptr<Search>> make_search(const std::string& name, SearchSpace space, uint64_t seed) {
  if (name == "random") return std::unique_ptr<Search>(std::make_unique<RandomSearch>(std::move(space), seed));
  if (name == "grid") return std::unique_ptr<Search>(std::make_unique<GridSearch>(std::move(space), seed));
  if (name == "genetic") return std::unique_ptr<Search>(std::make_unique<GeneticSearch>(std::move(space), seed));
  if (name == "guided") return std::unique_ptr<Search>(std::make_unique<GuidedSearch>(std::move(space), seed));
  return Diagnostic(ErrorCode::kInvalidArgument, format("there is no search '{}'", name), {},
                    "there are guided, genetic, random and grid");
}

}  // namespace tilewright::tune
