// SPDX-License-Identifier: Apache-2.0
// How and when the elements of tensor expressions are computed: one stage for each operation, its loops as relations
// (split, fuse) over the operation's axes. Each step is recorded, or refused with a sentence that says why; lower
// (te/lower.h) makes loops of what was recorded. Tests: tests/te/schedule_test.cc, random_test.cc
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "te/tensor.h"
#include "tir/stmt.h"

namespace tilewright::te {

// A computation that one piece of a script's code does: `operation` says what, over placeholders, whose elements are
// arrays in the statements. `reset` and `update` (may be null) are its parts where the reduction goes on outside of it.
struct TensorIntrinsic {
  std::string name;
  Operation operation;
  std::vector<tir::Array> inputs, outputs;  // of operation->inputs() and of its outputs
  tir::Stmt body, reset, update;
};

struct Relation {
  bool fuses;  // outer and inner become parent; otherwise parent becomes outer and inner
  IterVar parent, outer, inner;
  int64_t factor = 0;  // of the inner loop; 0: see parts
  int64_t parts = 0;   // of the outer loop
};

// Errors of all steps: InvalidArgument.
class Stage {
 public:
  explicit Stage(Operation op);
  const Operation& op() const { return op_; }
  const std::vector<IterVar>& leaves() const { return leaves_; }  // the loops, outermost first
  const std::vector<Relation>& relations() const { return relations_; }
  tir::ForKind kind_of(const IterVar& leaf) const;
  bool is_output() const { return is_output_; }
  bool is_inline() const { return inline_; }
  const Stage* attached_to() const { return attached_; }  // null: by itself, before its consumers
  const IterVar& attached_at() const { return attached_at_; }

  struct Pair {
    IterVar outer, inner;
  };
  // Exactly one of factor (of the inner loop) and parts (of the outer loop) is positive.
  Result<Pair> split(const IterVar& parent, int64_t factor, int64_t parts = 0);
  // Of two loops, the second directly in the first.
  Result<IterVar> fuse(const IterVar& outer, const IterVar& inner);
  struct Tile {
    IterVar x_outer, y_outer, x_inner, y_inner;
  };
  Result<Tile> tile(const IterVar& x, const IterVar& y, int64_t x_factor, int64_t y_factor);
  // These loops in this order, in the places that they have together.
  Status reorder(const std::vector<IterVar>& order);
  Status vectorize(const IterVar& leaf) { return annotate(leaf, tir::ForKind::kVectorized); }
  Status unroll(const IterVar& leaf) { return annotate(leaf, tir::ForKind::kUnrolled); }
  Status parallel(const IterVar& leaf) { return annotate(leaf, tir::ForKind::kParallel); }
  // To a thread of a device ("blockIdx.x"): no processor of ours has those, see Lowered::bound.
  Status bind(const IterVar& leaf, std::string thread);
  const std::string* bound_to(const IterVar& leaf) const;  // null: to none
  // The loop and all inside of it are this code; lower says whether it computes the same.
  Status tensorize(const IterVar& leaf, std::shared_ptr<const TensorIntrinsic> by);
  const IterVar& tensorized_at() const { return tensorized_at_; }
  const std::shared_ptr<const TensorIntrinsic>& tensorized_by() const { return tensorized_by_; }
  // Elements are stored only where this holds, a condition over the stage's loops and axes.
  Status set_store_predicate(PrimExpr condition);
  const PrimExpr& store_predicate() const { return store_predicate_; }
  // LLVM IR that goes into the library of what is built.
  void import_llvm(std::string text) { imports_.push_back(std::move(text)); }
  const std::vector<std::string>& imports() const { return imports_; }
  // That the loop is one of the stage's: what else is said of it has no effect on a processor.
  Status check_loop(const IterVar& leaf) const;

  // Inside the consumer's loop, as much as one iteration needs.
  Status compute_at(const Stage& consumer, const IterVar& leaf);
  // In the consumers' expressions.
  Status compute_inline();
  Status compute_root();

 private:
  friend class Schedule;
  Result<size_t> place_of(const IterVar& leaf) const;
  Status annotate(const IterVar& leaf, tir::ForKind kind);
  Diagnostic refused(std::string what, std::string hint = {}) const;

  Operation op_;
  std::vector<IterVar> leaves_;
  std::vector<Relation> relations_;
  std::map<const IterVarNode*, tir::ForKind> kinds_;
  std::map<const IterVarNode*, std::string> threads_;
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
  // Of these operations and all they need.
  explicit Schedule(const std::vector<Operation>& outputs);
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  // Producers before consumers.
  const std::vector<std::unique_ptr<Stage>>& stages() const { return stages_; }
  // Of an operation, also of one that a cache took the place of. Error: InvalidArgument (another schedule's).
  Result<Stage*> stage(const Operation& op) const;

  // A copy of a tensor, in a stage of its own, which these operations read in its place; none: all that read it.
  Result<Tensor> cache_read(const Tensor& tensor, const std::vector<Operation>& readers, std::string suffix = "local");
  // The computation in a stage of its own; what was the tensor's stage copies from it. Before the stage's loops change.
  Result<Tensor> cache_write(const Tensor& tensor, std::string suffix = "local");
  // A reduction in two steps: partial results for each value of `leaf`, a loop of the reduction, in a stage of their
  // own, whose dimension number `factor_axis` (from the end where negative) is that loop; and their combination, which
  // stays where the reduction was. One tensor for each output. Before the stage is computed inside another's loop.
  Result<std::vector<Tensor>> rfactor(const Tensor& tensor, const IterVar& leaf, int factor_axis = 0);

 private:
  void replace(Stage& stage, Operation with);  // and in all that read its outputs
  std::vector<std::unique_ptr<Stage>> stages_;
  std::map<const OperationNode*, Stage*> by_op_;
  std::vector<Operation> kept_;  // operations that were replaced, whose addresses are keys
};

}  // namespace tilewright::te
