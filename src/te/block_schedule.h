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

namespace tilewright::te {

// Of these operations and all they need, each computed by itself in plain loops; `arguments` and `scalars` as in lower.
Result<tir::BlockFunction> block_function(const std::vector<Tensor>& arguments, const std::vector<PrimExpr>& scalars,
                                          const std::vector<bool>& is_scalar, const std::string& name);

class BlockIndices;
// Of an axis: where one iteration of a loop begins in it, and how much it takes. By the axis' variable.
struct BlockPiece {
  PrimExpr lo;
  int64_t length = 0;
};
using BlockPieces = std::map<const tir::ExprNode*, BlockPiece>;

class BlockSchedule {
 public:
  explicit BlockSchedule(tir::BlockFunction function);
  const tir::BlockFunction& function() const { return function_; }

  // Errors of all: InvalidArgument.
  Status find_block(const std::string& name) const;
  Result<std::vector<PrimExpr>> loops(const std::string& block) const;  // around it, outermost first
  // As many loops as factors; one of them may be 0: what is left. A rest is left to the blocks' predicates.
  Result<std::vector<PrimExpr>> split(const PrimExpr& loop, const std::vector<int64_t>& factors);
  Result<PrimExpr> fuse(const std::vector<PrimExpr>& loops);  // each directly in the one before
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
  // The block reads a copy of what it reads as number `index` (writes a copy, from which what it wrote is copied).
  Result<std::string> cache_read(const std::string& block, size_t index, const std::string& scope);
  Result<std::string> cache_write(const std::string& block, size_t index, const std::string& scope);
  // The start of a reduction as a block of its own before the loop.
  struct Parts {
    std::string start, update;
  };
  Result<Parts> decompose_reduction(const std::string& block, const PrimExpr& loop);
  // The loop's iterations of a reduction as elements of an array with one more dimension, `factor_axis` (negative: from
  // the end), which the block then combines; the name of the block that computes them.
  Result<std::string> rfactor(const std::string& block, const PrimExpr& loop, int64_t factor_axis);
  Status set_scope(const std::string& block, size_t index, const std::string& scope);  // of what it writes
  // Blocks that compute what the block reads (read what it computes).
  Result<std::vector<std::string>> producers(const std::string& block) const;
  Result<std::vector<std::string>> consumers(const std::string& block) const;

 private:
  struct Site {  // from the function's body to a statement
    std::vector<tir::Stmt> path;
    const tir::Stmt& stmt() const { return path.back(); }
  };
  // What the steps know of a block.
  struct Plain {
    const tir::BlockNode* block;
    tir::Array array;                  // that it writes
    std::vector<tir::PrimExpr> index;  // at these of its axes' variables
    tir::PrimExpr value;
    bool accumulates = false;  // on what was there before: its instances cannot be repeated
  };
  Diagnostic refused(const std::string& where, std::string what, std::string hint = {}) const;
  Result<Site> site_of(const std::string& block) const;
  Result<Site> site_of(const PrimExpr& loop) const;
  Result<Plain> plain(const std::string& block) const;
  Status movable(const tir::Stmt& body, const PrimExpr& loop) const;  // its iterations may change places
  bool is_argument(const tir::ArrayNode* array) const;
  void replace(const tir::Stmt& old, const tir::Stmt& with);
  void tidy();  // takes away what is empty, and arrays that nothing uses
  tir::Stmt top_level(const Site& site) const;
  std::string fresh_name(const std::string& name) const;
  void add_array(const tir::Array& array);
  std::vector<tir::Stmt> statements() const;  // of the function, one after another
  Status only_writer(const Plain& p) const;
  Status alone(const Site& site, const std::string& block, const char* step) const;
  Status whole_array(const Plain& p) const;  // it writes all of it
  Status no_vectors(const Site& to, const std::string& block) const;
  Status nothing_between(const tir::Stmt& first, const tir::Stmt& second, const Plain& p, bool up) const;
  // What one iteration, whose loops are `within`, computes of what q writes, as pieces of p's axes.
  Status finished_piece(const Plain& p, const Plain& q, const std::vector<const tir::ForNode*>& within,
                        BlockIndices* indices, BlockPieces* pieces) const;
  Status edit_notes(const PrimExpr& loop, const std::string& key, const std::string* value);
  Status edit_notes(const std::string& block, const std::string& key, const std::string* value);
  Result<std::string> cached(const std::string& block, const tir::Array& array, const std::string& scope, bool reads);

  tir::BlockFunction function_;
  std::set<std::string> trusted_;
};

}  // namespace tilewright::te
