// SPDX-License-Identifier: Apache-2.0
// Steps on functions over arrays: each is done and no element of an argument changes, or it is refused with a sentence
// that says why. Blocks are named, loops are their variables. Tests: tests/te/block_schedule_test.cc
//
// What a step needs to know of a block: its one statement writes the element that its data axes name and reads no other
// of that array, and its loops take each combination of its axes once. Blocks of te.create_prim_func are so; of a
// script's blocks it is looked at when the schedule is made, and kept by every step.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "te/region.h"
#include "te/tensor.h"
#include "tir/walk.h"

namespace tilewright::te {

// Builds the function of these operations and all that they need, each in plain loops; `arguments` and `scalars` as in
// lower.
Result<tir::BlockFunction> block_function(const std::vector<Tensor>& arguments, const std::vector<PrimExpr>& scalars,
                                          const std::vector<bool>& is_scalar, const std::string& name);
// The function for given values of variables; those that were parameters are none any more.
tir::BlockFunction specialized(const tir::BlockFunction& function, const tir::Substitution& values);

// An intrinsic: what it computes, as one nest of loops around one assignment, and code that computes the same. Arrays
// are parameters, in the same order.
struct TensorCode {
  std::string name;
  tir::BlockFunction description, code;
};

class BlockIndices;
// The part of an axis that one loop iteration covers: its begin and length, by the axis' variable.
struct BlockPiece {
  PrimExpr lo;
  int64_t length = 0;
};
using BlockPieces = std::map<const tir::ExprNode*, BlockPiece>;

class BlockSchedule {
 public:
  explicit BlockSchedule(tir::BlockFunction function);
  const tir::BlockFunction& function() const { return function_; }

  // Errors of all members: InvalidArgument.
  Status find_block(const std::string& name) const;
  Result<std::vector<PrimExpr>> loops(const std::string& block) const;  // the loops around it, outermost first
  // Splits into as many loops as factors; one factor may be 0 and is then computed. Remainders are guarded by the
  // blocks' predicates.
  Result<std::vector<PrimExpr>> split(const PrimExpr& loop, const std::vector<int64_t>& factors);
  Result<PrimExpr> fuse(const std::vector<PrimExpr>& loops);  // perfectly nested, outermost first
  Status reorder(const std::vector<PrimExpr>& loops);
  Status set_kind(const PrimExpr& loop, tir::ForKind kind);
  Status bind(const PrimExpr& loop, const std::string& thread);
  Status annotate(const PrimExpr& loop, const std::string& key, const std::string& value);
  Status annotate(const std::string& block, const std::string& key, const std::string& value);
  Status unannotate(const PrimExpr& loop, const std::string& key);
  Status unannotate(const std::string& block, const std::string& key);
  Status compute_inline(const std::string& block);
  Status reverse_compute_inline(const std::string& block);
  Status compute_at(const std::string& block, const PrimExpr& loop);
  Status reverse_compute_at(const std::string& block, const PrimExpr& loop);
  // Inserts a copy of the block's input (output) number `index`, which the block then reads (writes).
  Result<std::string> cache_read(const std::string& block, size_t index, const std::string& scope);
  Result<std::string> cache_write(const std::string& block, size_t index, const std::string& scope);
  // Splits a reduction's initialisation into a block of its own in front of the loop.
  struct Parts {
    std::string start, update;
  };
  Result<Parts> decompose_reduction(const std::string& block, const PrimExpr& loop);
  // Factors a reduction loop out into a dimension `factor_axis` of partial results (negative: from the end), which the
  // block then combines; returns the name of the block that computes them.
  Result<std::string> rfactor(const std::string& block, const PrimExpr& loop, int64_t factor_axis);
  // Makes the loop with its block one unit; returns the name of the block around it.
  Result<std::string> blockize(const PrimExpr& loop);
  // Replaces a loop, or a block that blockize made, by an intrinsic's code, if it does what the description says: loop
  // by loop, the same expression of pieces of arrays. That the code computes the same is the caller's word.
  Status tensorize(const PrimExpr& loop, const TensorCode& by);
  Status tensorize(const std::string& block, const TensorCode& by);
  Status set_scope(const std::string& block, size_t index, const std::string& scope);  // of the array it writes
  // The blocks that write what the block reads, or read what it writes.
  Result<std::vector<std::string>> producers(const std::string& block) const;
  Result<std::vector<std::string>> consumers(const std::string& block) const;

 private:
  struct Site {  // the path from the function's body to a statement
    std::vector<tir::Stmt> path;
    const tir::Stmt& stmt() const { return path.back(); }
  };
  // What steps need to know about a block.
  struct Plain {
    const tir::BlockNode* block;
    tir::Array array;                  // the array it writes
    std::vector<tir::PrimExpr> index;  // at these of its axis variables
    tir::PrimExpr value;
    bool accumulates = false;  // adds to previous content: instances cannot be repeated
  };
  Diagnostic refused(const std::string& where, std::string what, std::string hint = {}) const;
  Result<Site> site_of(const std::string& block) const;
  Result<Site> site_of(const PrimExpr& loop) const;
  Result<Plain> plain(const std::string& block) const;
  Status movable(const tir::Stmt& body, const PrimExpr& loop) const;  // whether the loop's iterations can be reordered
  bool is_argument(const tir::ArrayNode* array) const;
  void replace(const tir::Stmt& old, const tir::Stmt& with);
  void tidy();  // removes empty statements and unused arrays
  tir::Stmt top_level(const Site& site) const;
  std::string fresh_name(const std::string& name) const;
  void add_array(const tir::Array& array);
  std::vector<tir::Stmt> statements() const;  // the function's statements in order
  Status only_writer(const Plain& p) const;
  Status alone(const Site& site, const std::string& block, const char* step) const;
  Status whole_array(const Plain& p) const;  // checks that it writes the whole array
  Status no_vectors(const Site& to, const std::string& block) const;
  Status nothing_between(const tir::Stmt& first, const tir::Stmt& second, const Plain& p, bool up) const;
  // The part of q's result that one iteration of the loops `within` computes, as pieces of p's axes.
  Status finished_piece(const Plain& p, const Plain& q, const std::vector<const tir::ForNode*>& within,
                        BlockIndices* indices, BlockPieces* pieces) const;
  Status tensorize(const tir::Stmt& nest, const std::string& where, const TensorCode& by);
  Status edit_notes(const PrimExpr& loop, const std::string& key, const std::string* value);
  Status edit_notes(const std::string& block, const std::string& key, const std::string* value);
  Result<std::string> cached(const std::string& block, const tir::Array& array, const std::string& scope, bool reads);

  tir::BlockFunction function_;
  std::set<std::string> trusted_;
};

}  // namespace tilewright::te
