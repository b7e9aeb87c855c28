// SPDX-License-Identifier: Apache-2.0
// Queries about statements for schedule steps on blocks (te/block_schedule.h).
#pragma once
#include <string>
#include <vector>

#include "tir/block.h"

namespace tilewright::te {

const std::string& variable_name(const tir::PrimExpr& var);
bool writes_array(const tir::Stmt& s, const Node* array);
bool reads_array(const tir::Stmt& s, const Node* array);
// Arrays that the statement reads but does not write, in order of first use.
std::vector<Ref<Node>> inputs_of(const tir::Stmt& s);
tir::Stmt replaced(const tir::Stmt& whole, const tir::Stmt& old, const tir::Stmt& with);
tir::Stmt with_loop_body(const tir::ForNode& loop, tir::Stmt body);

// Computing blocks in program order, each with the loops around it.
struct PlacedBlock {
  const tir::BlockNode* block;
  std::vector<const tir::ForNode*> loops;
};
std::vector<PlacedBlock> blocks_in(const tir::Stmt& s);

}  // namespace tilewright::te
