// SPDX-License-Identifier: Apache-2.0
// Everything that lowering decides before emitting loops: the bounds of stages' loops, the region of a tensor that one
// consumer iteration needs, memory layouts, and remaining conditions.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "te/flatten.h"
#include "te/lower.h"
#include "te/region.h"

namespace tilewright::te {

// The memory and values of an intrinsic's arrays and variables in a stage (te/tensorize.h).
struct IntrinsicPlaces {
  std::vector<std::pair<tir::Array, Placed>> places;
  std::vector<std::pair<PrimExpr, PrimExpr>> values;
};

struct Loop {
  PrimExpr var, extent;
};

// A stage's loops and memory.
struct StagePlan {
  Operation body;  // with inlined expressions
  bool alive = false;
  std::vector<Loop> path;                                 // the loops around the stage, outermost first
  std::vector<PrimExpr> lo;                               // for each dimension: the first index computed
  std::vector<std::vector<PrimExpr>> strides;             // of the buffers, by output
  std::vector<PrimExpr> origin;                           // for each dimension: the first index stored
  std::map<const IterVarNode*, PrimExpr> extent, offset;  // offset: from the start, over the loop variables
  std::map<const IterVarNode*, PrimExpr> base;            // the start of each axis
  std::map<const IterVarNode*, PrimExpr> loop;            // the variable of each leaf loop
  std::vector<PrimExpr> guards;
  std::vector<tir::Buffer> buffers;                  // by output
  std::shared_ptr<const IntrinsicPlaces> intrinsic;  // of a tensorized stage

  PrimExpr value(const IterVar& axis) const { return base.at(axis.get()) + offset.at(axis.get()); }
};

bool uses_any(const PrimExpr& e, const std::vector<Loop>& loops);

class Planning {
 public:
  Planning(const Schedule& schedule, const std::vector<Tensor>& arguments, const std::vector<PrimExpr>& scalars,
           std::string name)
      : schedule_(schedule), arguments_(arguments), scalars_(scalars), name_(std::move(name)) {}
  // Errors: those of lower.
  Status run();

  const Schedule& schedule() const { return schedule_; }
  const std::string& name() const { return name_; }
  const StagePlan& of(const Stage& s) const { return plans_.at(&s); }
  Stage* stage_of(const tir::ReadNode& read) const;
  static int output_of(const tir::ReadNode& read) { return static_cast<const TensorNode&>(*read.source).index; }
  PrimExpr place(const StagePlan& p, int output, const std::vector<PrimExpr>& indices) const;
  PrimExpr simplified(const PrimExpr& e) const { return scopes_.simplify(e); }
  // Where a stage is computed: as requested, or within the scan that it belongs to.
  const Stage* home_of(const Stage& s) const;
  const IterVar& home_loop_of(const Stage& s) const;
  // The size that an index or extent expression over sizes equals.
  PrimExpr size(const PrimExpr& e) const;
  const std::vector<std::pair<PrimExpr, PrimExpr>>& sizes() const { return sizes_; }
  Scopes& scopes() { return scopes_; }
  Widening widening(Widening::OnRead on_read) const;
  const std::vector<tir::Buffer>& argument_buffers() const { return argument_buffers_; }
  // The loops, offsets and conditions that the stage's relations make of its axes, whose extents are known.
  // `uneven`: what was split with a remainder.
  void relate(const Stage& s, StagePlan& p, std::vector<IterVar>* uneven);
  // Sizes, arguments and workspaces; kernels are added later.
  Lowered take() { return std::move(out_); }

 private:
  Diagnostic wrong(const std::string& where, std::string what, std::string hint = {}) const;
  void inline_stages();
  Status find_arguments();
  Status find_sizes();
  void describe_arguments();
  Status check_whole_tensors() const;
  Status find_scans();
  Status plan(const Stage& s);
  void plan_placeholder(const Stage& s);
  void plan_memory(const Stage& s, const std::vector<PrimExpr>& dims, const std::vector<PrimExpr>& allocated);
  std::vector<const Stage*> readers_of(const Stage& s) const;
  Status find_path(const Stage& s, const std::vector<const Stage*>& readers);
  Running running_beside(const StagePlan& k, const Stage& reader, const std::vector<Loop>& path, bool* known) const;
  void find_region(const Stage& s, const std::vector<const Stage*>& readers, const std::vector<PrimExpr>& dims,
                   std::vector<PrimExpr>* extents, std::vector<PrimExpr>* allocated);
  bool covers(const Stage& s, const std::vector<PrimExpr>& dims, const std::vector<PrimExpr>& extents) const;
  void set_loops(const Stage& s, const std::vector<PrimExpr>& dims, const std::vector<PrimExpr>& extents);
  void set_script_loops(const Stage& s);
  void split_extents(const Relation& r, StagePlan& p, std::vector<IterVar>* uneven);
  tir::Buffer memory(const Stage& s, int output, const PrimExpr& elements);

  const Schedule& schedule_;
  const std::vector<Tensor>& arguments_;
  const std::vector<PrimExpr>& scalars_;
  const std::string name_;
  Lowered out_;
  Scopes scopes_;
  std::map<const Stage*, StagePlan> plans_;
  // For stages inside scans: the scan; and for each output (of init and update) or placeholder its state.
  struct InScan {
    const Stage* scan = nullptr;
    enum class Role : uint8_t { kInit, kUpdate, kState, kBetween } role = Role::kBetween;
    std::map<int, int> state;
  };
  std::map<const Stage*, InScan> scans_;
  std::map<std::pair<const Stage*, int>, tir::Buffer> given_;
  std::vector<tir::Buffer> argument_buffers_;
  std::vector<std::pair<PrimExpr, PrimExpr>> sizes_;
  std::vector<PrimExpr> roots_;  // keeps variables alive that are keys of regions
  int64_t stack_bytes_ = 0;
};

}  // namespace tilewright::te
