// SPDX-License-Identifier: Apache-2.0
#include "tune/database.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <sstream>

#include "base/format.h"

namespace tilewright::tune {

void Database::add(Record record) {
  auto& of_key = by_key_[record.key()];
  of_key[record.target + "\n" + record.entity.dump()] = std::move(record);
}

void Database::add(std::vector<Record> records) {
  for (Record& record : records) add(std::move(record));
}

std::vector<const Record*> Database::of(const std::string& key) const {
  std::vector<const Record*> out;
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return out;
  for (const auto& [entity, record] : found->second)
    if (record.ok()) out.push_back(&record);
  std::stable_sort(out.begin(), out.end(), [](const Record* a, const Record* b) { return a->cost() < b->cost(); });
  return out;
}

bool is_about(const Record& record, const Target& target) {
  std::istringstream words(record.target);
  for (std::string word; words >> word;)
    if (word.rfind("-mcpu=", 0) == 0) return word.substr(6) == target.mcpu;
  return true;
}

std::string RecordUse::line() const {
  std::string out;
  auto say = [&](size_t count, const std::string& what) {
    if (count) out += format("{}{} {}", out.empty() ? "" : "; ", count, what);
  };
  say(used, used == 1 ? "kernel by a record" : "kernels by records");
  say(untuned.size(), untuned.size() == 1 ? "workload without one" : "workloads without one");
  say(other_machines, "records are of other processors and were left out");
  say(unknown, "records name configurations that these kernels do not have and were left out");
  return out;
}

struct RecordChooser::Seen {
  std::mutex lock;
  std::set<const Record*> other_machines, unknown;
  std::set<std::string> untuned;
  struct Use {
    relay::Expr function;  // keeps the group's address from being reused
    const Record* record{};
  };
  std::map<const relay::ExprNode*, Use> used;  // null record: the cost model, so far
};

RecordChooser::RecordChooser(std::vector<Record> records) : seen_(std::make_shared<Seen>()) {
  database_.add(std::move(records));
}

lower::Decision RecordChooser::choose(const lower::Problem& problem,
                                      std::span<const lower::Candidate> candidates) const {
  std::map<std::string, std::vector<const lower::Implementation*>> implementations;
  for (const lower::Candidate& candidate : candidates)
    implementations[workload_of(problem, *candidate.implementation).key()].push_back(candidate.implementation);
  const lower::Decision by_cost = KernelChooser::choose(problem, candidates);
  const lower::Implementation* usual = candidates[by_cost.candidate].implementation;
  const relay::ExprNode* group = problem.group.function;
  const std::lock_guard lock(seen_->lock);
  // Called again, with the chosen implementation, once halos are known.
  const bool again = seen_->used.count(group) > 0;
  const Record *best = nullptr, *of_usual = nullptr;
  lower::Decision decision = by_cost;
  std::vector<std::string> untuned;
  for (const auto& [key, of_key] : implementations) {
    const std::vector<const Record*> records = database_.of(key);
    // The space depends on the problem's weights and neighbours, not only on its workload.
    const KnobSpace space = KnobSpace(problem, of_key);
    if (records.empty() && !again && space.worth_tuning()) untuned.push_back(key);
    for (const Record* record : records) {
      if (!is_about(*record, problem.target)) {
        seen_->other_machines.insert(record);
        continue;
      }
      const auto index = space.index_of_entity(record->entity);
      const auto configuration = index ? space.get(*index) : std::nullopt;
      if (!configuration || !configuration->implementation->instantiate(problem, configuration->text)) {
        if (!again) seen_->unknown.insert(record);
        continue;
      }
      if (configuration->implementation == usual && configuration->text == by_cost.config) of_usual = record;
      if (best && best->cost() <= record->cost()) continue;
      const auto candidate = std::find_if(candidates.begin(), candidates.end(), [&](const lower::Candidate& c) {
        return c.implementation == configuration->implementation;
      });
      best = record;
      decision = {static_cast<size_t>(candidate - candidates.begin()), configuration->text};
    }
  }
  if (best && of_usual && of_usual->cost() < kLeastGain * best->cost()) best = of_usual, decision = by_cost;
  seen_->used[group] = {relay::Expr(problem.group.function), best};
  if (best) untuned.clear();
  seen_->untuned.insert(untuned.begin(), untuned.end());
  return decision;
}

RecordUse RecordChooser::use() const {
  const std::lock_guard lock(seen_->lock);
  const auto used =
      std::count_if(seen_->used.begin(), seen_->used.end(), [](const auto& u) { return u.second.record; });
  return {static_cast<size_t>(used),
          seen_->other_machines.size(),
          seen_->unknown.size(),
          {seen_->untuned.begin(), seen_->untuned.end()}};
}

const Record* RecordChooser::record_of(const relay::ExprNode* function) const {
  const std::lock_guard lock(seen_->lock);
  const auto found = seen_->used.find(function);
  return found == seen_->used.end() ? nullptr : found->second.record;
}

}  // namespace tilewright::tune
