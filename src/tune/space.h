// SPDX-License-Identifier: Apache-2.0
// The configurations of a task as knobs: each field of an implementation's configuration is one, and an index counts
// through them in mixed radix, the first knob fastest, one implementation after the other. Not every index is a kernel:
// tiles are those that fit the registers (what the implementation lists), while unrolling and splitting are free.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tune/workload.h"

namespace tilewright::tune {

// A kernel that can be asked for.
struct Configuration {
  const lower::Implementation* implementation = nullptr;
  std::string text;  // lower::Config::text
};

struct Knob {
  std::string name;                 // the classic one where there is one: "tile_ow"
  std::string kind;                 // "sp": the inner size of a split, "ot": a value
  std::string field;                // the configuration's: "tile_width"
  std::vector<std::string> values;  // as the configuration's text has them
  int64_t scale = 1;                // elements of one unit, where the classic knob counts elements
  nlohmann::json value(size_t i) const;
};

class KnobSpace {
 public:
  KnobSpace() = default;
  // Over implementations that share a workload and apply to the problem.
  KnobSpace(const lower::Problem& problem, const std::vector<const lower::Implementation*>& implementations);

  uint64_t size() const;
  // Whether there is more than one kernel.
  bool worth_tuning() const;
  // Nothing where no kernel has this index. (What unrolling does to a kernel may still refuse it when it is made.)
  std::optional<Configuration> get(uint64_t index) const;
  std::optional<uint64_t> index_of(const Configuration& configuration) const;
  // [["tile_ic", "sp", [-1, 4]], ...]
  nlohmann::json entity(uint64_t index) const;
  // Nothing for knobs or values that this space has not: another stack's record.
  std::optional<uint64_t> index_of_entity(const nlohmann::json& entity) const;

  // What the cost model would try, the best first, all implementations together; the first is its choice.
  const std::vector<uint64_t>& ranked() const { return ranked_; }
  // The knobs of each implementation, in the order of the index.
  struct Branch {
    const lower::Implementation* implementation = nullptr;
    std::vector<Knob> knobs;
    std::vector<size_t> units;            // into the knobs: where another part of the configuration begins ("; ")
    std::set<std::vector<size_t>> tiles;  // what the implementation lists, free knobs as 0
    std::vector<bool> free;               // by knob
    uint64_t size = 1;
  };
  const std::vector<Branch>& branches() const { return branches_; }
  // The knobs' values of an index within its branch.
  std::vector<size_t> digits(uint64_t index, size_t* branch) const;
  uint64_t index(size_t branch, const std::vector<size_t>& digits) const;

 private:
  std::string text_of(const Branch& branch, const std::vector<size_t>& digits) const;
  std::vector<Branch> branches_;
  std::vector<uint64_t> ranked_;
};

}  // namespace tilewright::tune
