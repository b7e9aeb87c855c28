// SPDX-License-Identifier: Apache-2.0
// Lowers statements over arrays (tir/block.h) to kernel statements: indices become int64 addresses, blocks their
// bodies, block arrays memory.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "te/region.h"
#include "te/views.h"
#include "te/widen.h"
#include "tir/block.h"

namespace tilewright::te {

// The memory of an array.
struct Placed {
  tir::Buffer buffer;
  std::vector<tir::PrimExpr> strides;
  tir::PrimExpr offset;
  int element_bytes = 0;  // of a view of memory of bytes: those of an element; `offset` is in bytes
};
// Row-major strides; the number of elements goes to `elements`.
std::vector<tir::PrimExpr> compact_strides(const std::vector<tir::PrimExpr>& dims, const Scopes& scopes,
                                           tir::PrimExpr* elements);
// Variables bound by the statement's loops, lets and blocks.
std::vector<tir::PrimExpr> bound_variables(const tir::Stmt& s);

class Flatten {
 public:
  using PrimExpr = tir::PrimExpr;
  // Provides memory for arrays too large for the stack, or with an extent known only at a call.
  using Workspace = std::function<tir::Buffer(const tir::ArrayNode& array, const PrimExpr& elements)>;
  // `sizes`: variables and their int64 values.
  Flatten(Scopes& scopes, const std::vector<std::pair<PrimExpr, PrimExpr>>& sizes, std::string where,
          Workspace workspace);
  void place(const tir::Array& array, Placed placed);
  void bind(const PrimExpr& var, PrimExpr value) { widening_.bind(var, std::move(value)); }
  // What stands for a variable of the statements.
  PrimExpr value_of(const PrimExpr& var) { return widening_.index(var); }
  PrimExpr index(const PrimExpr& e) { return scopes_.simplify(widening_.index(e)); }
  // Errors: InvalidArgument (unknown memory, a wrong number of indices, a runtime function inside a loop).
  Result<tir::Stmt> run(const tir::Stmt& s);
  const Placed* placed(const tir::ArrayNode* array) const;

 private:
  tir::Stmt stmt(const tir::Stmt& s);
  tir::Stmt loop(const tir::ForNode& n);
  tir::Stmt block(const tir::BlockNode& n);
  tir::Stmt write_stmt(const tir::WriteNode& n);
  tir::Stmt view(const tir::LetStmtNode& n);
  PrimExpr load(const tir::ReadNode& n);
  tir::Stmt call(const tir::CallExternNode& n);
  PrimExpr index_of(const PrimExpr& e);
  // The address of an element; null on failure, with the reason in `problem_`.
  PrimExpr address(const Ref<Node>& source, const std::string& name, const std::vector<PrimExpr>& indices,
                   tir::Buffer* buffer);
  tir::Stmt wrong(std::string what, std::string hint = {});

  Scopes& scopes_;
  Widening widening_;
  const std::string where_;
  const Workspace workspace_;
  std::map<const tir::ArrayNode*, Placed> places_;
  std::map<const tir::ExprNode*, tir::ExternArgument> addresses_;  // of variables
  std::vector<tir::Array> kept_;
  std::optional<Diagnostic> problem_;
};

}  // namespace tilewright::te
