// SPDX-License-Identifier: Apache-2.0
// Schedules of tensor expressions: one stage per operation, its loops as relations (split, fuse) over the operation's
// axes. Each step is recorded, or refused with an error that says why; lower (te/lower.h) then generates the loops.
// Tests: tests/te/schedule_test.cc, random_test.cc
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "te/tensor.h"
#include "tir/stmt.h"

namespace tilewright::te {

// A tensor intrinsic: `operation` defines what it computes, over placeholders; the statements access arrays. `reset`
// and `update` (may be null) are for reductions that continue outside of it.
struct TensorIntrinsic {
  std::string name;
  Operation operation;
  std::vector<tir::Array> inputs, outputs;  // for operation->inputs(), and for its outputs
  tir::Stmt body, reset, update;
};

struct Relation {
  bool fuses;  // fuse: outer and inner become parent; else split: parent becomes outer and inner
  IterVar parent, outer, inner;
  int64_t factor = 0;  // extent of the inner loop; 0: see parts
  int64_t parts = 0;   // extent of the outer loop
};

// Errors of all steps: InvalidArgument.
class Stage {
 public:
  explicit Stage(Operation op);
  const Operation& op() const { return op_; }
  const std::vector<IterVar>& leaves() const { return leaves_; }  // the loops, outermost first
  const std::vector<Relation>& relations() const { return relations_; }
  // Of a script's loop, also if split or fused from others; -1 if it is none.
  int nest_of(const IterVar& loop) const;
  const IterVar& single_loop() const { return single_; }  // null: `singleton` made none
  tir::ForKind kind_of(const IterVar& leaf) const;
  bool is_output() const { return is_output_; }
  bool is_inline() const { return inline_; }
  const Stage* attached_to() const { return attached_; }  // null: at the root, before its consumers
  const IterVar& attached_at() const { return attached_at_; }

  struct Pair {
    IterVar outer, inner;
  };
  // Exactly one of factor (inner extent) and parts (outer extent) is positive.
  Result<Pair> split(const IterVar& parent, int64_t factor, int64_t parts = 0);
  // Two loops, the second directly inside the first.
  Result<IterVar> fuse(const IterVar& outer, const IterVar& inner);
  // A loop of one iteration around a stage that has none.
  Result<IterVar> singleton();
  struct Tile {
    IterVar x_outer, y_outer, x_inner, y_inner;
  };
  Result<Tile> tile(const IterVar& x, const IterVar& y, int64_t x_factor, int64_t y_factor);
  // Permutes these loops among their current positions.
  Status reorder(const std::vector<IterVar>& order);
  Status vectorize(const IterVar& leaf) { return annotate(leaf, tir::ForKind::kVectorized); }
  Status unroll(const IterVar& leaf) { return annotate(leaf, tir::ForKind::kUnrolled); }
  Status parallel(const IterVar& leaf) { return annotate(leaf, tir::ForKind::kParallel); }
  // Binds to a device thread ("blockIdx.x"); our processors have none, see Lowered::bound.
  Status bind(const IterVar& leaf, std::string thread);
  const std::string* bound_to(const IterVar& leaf) const;  // null: not bound
  // Replaces the loop and everything inside by the intrinsic; lower checks that it computes the same.
  Status tensorize(const IterVar& leaf, std::shared_ptr<const TensorIntrinsic> by);
  const IterVar& tensorized_at() const { return tensorized_at_; }
  const std::shared_ptr<const TensorIntrinsic>& tensorized_by() const { return tensorized_by_; }
  // Stores elements only where this condition over the stage's loops and axes holds.
  Status set_store_predicate(PrimExpr condition);
  const PrimExpr& store_predicate() const { return store_predicate_; }
  // Links LLVM IR into the built library.
  void import_llvm(std::string text) { imports_.push_back(std::move(text)); }
  const std::vector<std::string>& imports() const { return imports_; }
  // Checks that the loop belongs to the stage; such annotations have no effect on a CPU.
  Status check_loop(const IterVar& leaf) const;
  // What a script says of a loop or of the stage's memory and reads back; it changes nothing here.
  struct Pragma {
    std::string name;
    Ref<Node> value;
  };
  Status add_pragma(const IterVar& leaf, Pragma pragma);
  const std::vector<Pragma>& pragmas(const IterVar& leaf) const;
  void set_scope(std::string scope) { scope_ = std::move(scope); }
  const std::string& scope() const { return scope_; }

  // Computes the stage inside the consumer's loop, as much as one iteration needs.
  Status compute_at(const Stage& consumer, const IterVar& leaf);
  // Inlines it into the consumers' expressions.
  Status compute_inline();
  Status compute_root();

 private:
  friend class Schedule;
  Result<size_t> place_of(const IterVar& leaf) const;
  Status check_nest(const IterVar& a, const IterVar& b) const;
  Status annotate(const IterVar& leaf, tir::ForKind kind);
  Diagnostic refused(std::string what, std::string hint = {}) const;

  Operation op_;
  std::vector<IterVar> leaves_;
  std::vector<Relation> relations_;
  std::map<const IterVarNode*, tir::ForKind> kinds_;
  std::map<const IterVarNode*, int> nests_;  // of a script's loops
  std::map<const IterVarNode*, std::string> threads_;
  std::map<const IterVarNode*, std::vector<Pragma>> pragmas_;
  std::string scope_ = "global";
  IterVar single_;
  bool is_output_ = false, inline_ = false;
  IterVar tensorized_at_;
  std::shared_ptr<const TensorIntrinsic> tensorized_by_;
  PrimExpr store_predicate_;
  std::vector<std::string> imports_;
  const Stage* attached_ = nullptr;
  IterVar attached_at_;
};

class Schedule {
 public:
  // A schedule of these operations and all that they need.
  explicit Schedule(const std::vector<Operation>& outputs);
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  // Producers before consumers.
  const std::vector<std::unique_ptr<Stage>>& stages() const { return stages_; }
  // The stage of an operation, even if a cache replaced it. Error: InvalidArgument (another schedule's).
  Result<Stage*> stage(const Operation& op) const;

  // A copy of a tensor in a stage of its own, which these operations (none given: all) read instead.
  Result<Tensor> cache_read(const Tensor& tensor, const std::vector<Operation>& readers, std::string suffix = "local");
  // Moves the computation to a stage of its own, from which the tensor's stage copies. Must precede changes to the
  // stage's loops.
  Result<Tensor> cache_write(const Tensor& tensor, std::string suffix = "local");
  // Splits a reduction in two: partial results for each value of `leaf`, a loop of the reduction, in a stage of their
  // own with that loop as dimension `factor_axis` (negative: from the end); and their combination in the original
  // stage. One tensor per output. Must precede computing the stage inside another's loop.
  Result<std::vector<Tensor>> rfactor(const Tensor& tensor, const IterVar& leaf, int factor_axis = 0);

 private:
  void replace(Stage& stage, Operation with);  // also in all operations that read its outputs
  std::vector<std::unique_ptr<Stage>> stages_;
  std::map<const OperationNode*, Stage*> by_op_;
  std::vector<Operation> kept_;  // replaced operations, whose addresses are keys
};

}  // namespace tilewright::te
