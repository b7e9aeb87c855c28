// SPDX-License-Identifier: Apache-2.0
// Records by what they are about, and the chooser that builds with them.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tune/formats/autotvm_log.h"
#include "tune/space.h"

namespace tilewright::tune {

// A win counts from here on: times of one kernel differ by as much.
constexpr double kLeastGain = 1.02;

class Database {
 public:
  // What was measured of a configuration later takes the place of what was measured before.
  void add(Record record);
  void add(std::vector<Record> records);
  // Of a workload, the least cost first; failed trials are left out.
  std::vector<const Record*> of(const std::string& key) const;

 private:
  std::map<std::string, std::map<std::string, Record>> by_key_;  // then by target and entity
};

// Whether what was measured for a record's target says something about this one: the same processor, or none named.
bool is_about(const Record& record, const Target& target);

// What became of the records of a build.
struct RecordUse {
  size_t used = 0;                   // kernels that a record decided
  size_t other_machines = 0;         // records that were measured for another processor
  size_t unknown = 0;                // records of a workload here that name no configuration of ours
  std::vector<std::string> untuned;  // workloads that could be tuned and have no record
  std::string line() const;          // one sentence; empty when every record is used
};

// Takes, of all the records that name a configuration of the problem's, the one of least cost; the cost model where
// there is none, and where the records say that its choice is as good (kLeastGain).
class RecordChooser : public lower::KernelChooser {
 public:
  explicit RecordChooser(std::vector<Record> records);
  lower::Decision choose(const lower::Problem& problem, std::span<const lower::Candidate> candidates) const override;
  // Of the build that was made with it.
  RecordUse use() const;
  // What decided the kernel of a group; null: the cost model.
  const Record* record_of(const relay::ExprNode* function) const;

 private:
  struct Seen;
  Database database_;
  std::shared_ptr<Seen> seen_;
};

}  // namespace tilewright::tune
