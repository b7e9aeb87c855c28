// SPDX-License-Identifier: Apache-2.0
// Finds the stages that belong to scans, and where they are computed.
#include "base/format.h"
#include "te/stage_plan.h"

namespace tilewright::te {

// Externs and scans need tensors that are stored in memory.
Status Planning::check_whole_tensors() const {
  for (const auto& s : schedule_.stages()) {
    if (s->op()->is_compute()) continue;
    for (const Tensor& t : s->op()->inputs()) {
      const Stage* from = TW_TRY(schedule_.stage(t->op));
      if (from->is_inline())
        return wrong(format("stage {}", t->op->name),
                     format("it is inlined, and '{}' takes the whole tensor", s->op()->name), "do not inline it");
    }
  }
  return Ok{};
}

// Finds stages inside scans: inits, updates, and whatever an update needs that depends on a state.
Status Planning::find_scans() {
  for (const auto& s : schedule_.stages()) {
    if (!s->op()->scan) continue;
    const ScanBody& scan = *s->op()->scan;
    auto add = [&](const Tensor& t, InScan::Role role, size_t i) -> Status {
      auto stage = schedule_.stage(t->op);
      if (!stage.ok()) return Ok{};  // a state that no update reads
      InScan& in = scans_[*stage];
      if (in.scan && (in.scan != s.get() || in.role != role))
        return wrong(format("stage {}", t->op->name), "it is in two places of scans", "compute it for each of them");
      in.scan = s.get(), in.role = role, in.state[t->index] = static_cast<int>(i);
      if ((*stage)->attached_to())
        return wrong(format("stage {}", t->op->name), format("it is computed where the scan '{}' is", s->op()->name),
                     "leave it there: compute_at is for what it reads");
      return Ok{};
    };
    for (size_t i = 0; i < scan.state.size(); ++i) {
      TW_TRY_STATUS(add(scan.state[i], InScan::Role::kState, i));
      TW_TRY_STATUS(add(scan.init[i], InScan::Role::kInit, i));
      TW_TRY_STATUS(add(scan.update[i], InScan::Role::kUpdate, i));
    }
  }
  for (const auto& s : schedule_.stages()) {  // producers first, so that one pass finds all in between
    if (s->op()->scan || s->op()->is_placeholder() || scans_.count(s.get())) continue;
    for (const Tensor& t : plans_.at(s.get()).body->inputs()) {
      auto found = scans_.find(schedule_.stage(t->op).value());
      if (found == scans_.end() || found->second.role == InScan::Role::kInit) continue;
      if (found->second.role != InScan::Role::kUpdate)
        scans_[s.get()] = {found->second.scan, InScan::Role::kBetween, {}};
    }
  }
  for (const auto& [s, in] : scans_)
    for (size_t i = 0; i < s->op()->dtypes.size(); ++i)
      if ((in.role == InScan::Role::kInit || in.role == InScan::Role::kUpdate) && !in.state.count(static_cast<int>(i)))
        return wrong(format("stage {}", s->op()->name), format("its output {} is no state of the scan", i),
                     "give the scan all outputs of init and update");
  return Ok{};
}

const Stage* Planning::home_of(const Stage& s) const {
  if (s.attached_to()) return s.attached_to();
  auto found = scans_.find(&s);
  const bool inside = found != scans_.end() && found->second.role != InScan::Role::kInit;
  return inside && !s.op()->is_placeholder() ? found->second.scan : nullptr;
}
const IterVar& Planning::home_loop_of(const Stage& s) const {
  if (s.attached_to()) return s.attached_at();
  return home_of(s)->leaves().back();
}

}  // namespace tilewright::te
