// SPDX-License-Identifier: Apache-2.0
// What the steps on blocks (te/block_schedule.h) ask of statements.
#pragma once
#include <string>
#include <vector>

#include "tir/block.h"

namespace tilewright::te {

const std::string& variable_name(const tir::PrimExpr& var);
bool uses_variable(const tir::PrimExpr& e, const tir::ExprNode* var);
bool writes_array(const tir::Stmt& s, const Node* array);
bool reads_array(const tir::Stmt& s, const Node* array);
// Arrays that the statement reads and does not write, in the order of their first use.
std::vector<Ref<Node>> inputs_of(const tir::Stmt& s);
tir::Stmt replaced(const tir::Stmt& whole, const tir::Stmt& old, const tir::Stmt& with);
tir::Stmt with_loop_body(const tir::ForNode& loop, tir::Stmt body);

// Blocks that compute something, in the order of the program, and the loops around each of them.
struct PlacedBlock {
  const tir::BlockNode* block;
  std::vector<const tir::ForNode*> loops;
};
std::vector<PlacedBlock> blocks_in(const tir::Stmt& s);

}  // namespace tilewright::te
