// SPDX-License-Identifier: Apache-2.0
// Statements over arrays (tir/block.h) as statements of a kernel: indices become addresses in int64, blocks what they
// do, arrays of blocks memory.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "te/region.h"
#include "te/widen.h"
#include "tir/block.h"

namespace tilewright::te {

// Where an array's elements lie.
struct Placed {
  tir::Buffer buffer;
  std::vector<tir::PrimExpr> strides;
  tir::PrimExpr offset;
};
// Of rows one after another; the number of all elements goes to `elements`.
std::vector<tir::PrimExpr> compact_strides(const std::vector<tir::PrimExpr>& dims, const Scopes& scopes,
                                           tir::PrimExpr* elements);
// Variables that the statement's loops, lets and blocks bind.
std::vector<tir::PrimExpr> bound_variables(const tir::Stmt& s);

class Flatten {
 public:
  using PrimExpr = tir::PrimExpr;
  // Memory for an array that is too large for the stack, or of an extent that only a call knows.
  using Workspace = std::function<tir::Buffer(const tir::ArrayNode& array, const PrimExpr& elements)>;
  // `sizes`: variables and the int64 values that stand for them.
  Flatten(Scopes& scopes, const std::vector<std::pair<PrimExpr, PrimExpr>>& sizes, std::string where,
          Workspace workspace);
  void place(const tir::Array& array, Placed placed);
  void bind(const PrimExpr& var, PrimExpr value) { widening_.bind(var, std::move(value)); }
  PrimExpr index(const PrimExpr& e) { return scopes_.simplify(widening_.index(e)); }
  // Errors: InvalidArgument (memory that is not there, another number of indices, a runtime's function in a loop).
  Result<tir::Stmt> run(const tir::Stmt& s);
  const Placed* placed(const tir::ArrayNode* array) const;

 private:
  tir::Stmt stmt(const tir::Stmt& s);
  tir::Stmt loop(const tir::ForNode& n);
  tir::Stmt block(const tir::BlockNode& n);
  tir::Stmt write_stmt(const tir::WriteNode& n);
  tir::Stmt call(const tir::CallExternNode& n);
  PrimExpr index_of(const PrimExpr& e);
  // The place of an element; null where there is none, and `problem_` says why.
  PrimExpr address(const Ref<Node>& source, const std::string& name, const std::vector<PrimExpr>& indices,
                   tir::Buffer* buffer);
  tir::Stmt wrong(std::string what, std::string hint = {});

  Scopes& scopes_;
  Widening widening_;
  const std::string where_;
  const Workspace workspace_;
  std::map<const tir::ArrayNode*, Placed> places_;
  std::vector<tir::Array> kept_;
  std::optional<Diagnostic> problem_;
};

}  // namespace tilewright::te
