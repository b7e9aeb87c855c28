// SPDX-License-Identifier: Apache-2.0
// The configuration space of a task: each field of an implementation's configuration is a knob, and an index enumerates
// them in mixed radix, the first knob fastest, implementation after implementation. Not every index is a kernel: tile
// sizes are restricted to those that fit the registers (as listed by the implementation), unrolling and splitting are
// free.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tune/workload.h"

namespace tilewright::tune {

// A kernel that can be requested.
struct Configuration {
  const lower::Implementation* implementation = nullptr;
  std::string text;  // lower::Config::text
};

struct Knob {
  std::string name;                 // the classic name if there is one: "tile_ow"
  std::string kind;                 // "sp": the inner size of a split, "ot": another value
  std::string field;                // field of the configuration: "tile_width"
  std::vector<std::string> values;  // as in the configuration's text
  int64_t scale = 1;                // elements per unit, if the classic knob counts elements
  nlohmann::json value(size_t i) const;
};

class KnobSpace {
 public:
  KnobSpace() = default;
  // The space over applicable implementations with a common workload.
  KnobSpace(const lower::Problem& problem, const std::vector<const lower::Implementation*>& implementations);

  uint64_t size() const;
  // Whether there is more than one kernel.
  bool worth_tuning() const;
  // Nothing if the index is not a kernel. (Creating it can still fail because of unrolling.)
  std::optional<Configuration> get(uint64_t index) const;
  std::optional<uint64_t> index_of(const Configuration& configuration) const;
  // The classic form: [["tile_ic", "sp", [-1, 4]], ...]
  nlohmann::json entity(uint64_t index) const;
  // Nothing for unknown knobs or values, as in another stack's record.
  std::optional<uint64_t> index_of_entity(const nlohmann::json& entity) const;

  // Indices ranked by the cost model, best first, over all implementations; the first is its choice.
  const std::vector<uint64_t>& ranked() const { return ranked_; }
  // The knobs of each implementation, in index order.
  struct Branch {
    const lower::Implementation* implementation = nullptr;
    std::vector<Knob> knobs;
    std::vector<size_t> units;            // knob indices at which another part of the configuration begins ("; ")
    std::set<std::vector<size_t>> tiles;  // combinations listed by the implementation, with free knobs 0
    std::vector<bool> free;               // by knob
    uint64_t size = 1;
  };
  const std::vector<Branch>& branches() const { return branches_; }
  // The knob values of an index, and its branch.
  std::vector<size_t> digits(uint64_t index, size_t* branch) const;
  uint64_t index(size_t branch, const std::vector<size_t>& digits) const;

 private:
  std::string text_of(const Branch& branch, const std::vector<size_t>& digits) const;
  std::vector<Branch> branches_;
  std::vector<uint64_t> ranked_;
};

}  // namespace tilewright::tune
