// SPDX-License-Identifier: Apache-2.0
// Tuning records by workload, and the chooser that applies them.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tune/formats/autotvm_log.h"
#include "tune/space.h"

namespace tilewright::tune {

// The smallest relevant gain: measurements of one kernel vary by as much.
constexpr double kLeastGain = 1.02;

class Database {
 public:
  // A later measurement of a configuration replaces an earlier one.
  void add(Record record);
  void add(std::vector<Record> records);
  // A workload's records, cheapest first, without failed trials.
  std::vector<const Record*> of(const std::string& key) const;

 private:
  std::map<std::string, std::map<std::string, Record>> by_key_;  // then by target and entity
};

// Whether a record's target applies to this one: the same processor, or none given.
bool is_about(const Record& record, const Target& target);

// How the records were used in a build.
struct RecordUse {
  size_t used = 0;                   // kernels decided by a record
  size_t other_machines = 0;         // records for another processor
  size_t unknown = 0;                // records of workloads in this model whose configuration is unknown here
  std::vector<std::string> untuned;  // tunable workloads without a record
  std::string line() const;          // one sentence; empty if every record was used
};

// Chooses the cheapest recorded configuration of a problem; without a valid record, or if the default is as good
// (kLeastGain), the cost model's choice.
class RecordChooser : public lower::KernelChooser {
 public:
  explicit RecordChooser(std::vector<Record> records);
  lower::Decision choose(const lower::Problem& problem, std::span<const lower::Candidate> candidates) const override;
  // For the build made with it.
  RecordUse use() const;
  // The record that decided a group's kernel; null: the cost model did.
  const Record* record_of(const relay::ExprNode* function) const;

 private:
  struct Seen;
  Database database_;
  std::shared_ptr<Seen> seen_;
};

}  // namespace tilewright::tune
