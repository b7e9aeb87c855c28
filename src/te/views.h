// SPDX-License-Identifier: Apache-2.0
// Memory under a second name: a let of a variable that is an address (tir.address_of), and in its body the array that
// has the variable's name. An array with strides is a region of the other (T.match_buffer of a region); one without
// lies row after row from the address on, also as elements of another type in memory of bytes.
#pragma once
#include "tir/block.h"

namespace tilewright::te {

// A value of type handle: the address of an element, its only argument.
inline constexpr const char* kAddressOf = "tir.address_of";
// The same: the weight of the name that follows.
inline constexpr const char* kLookupParam = "tir.lookup_param:";

struct View {
  const tir::ArrayNode* array = nullptr;   // null: only the variable is used
  const tir::ReadNode* element = nullptr;  // whose address the variable is; null: it is no such let
  const tir::ArrayNode* source = nullptr;  // the element's memory
  bool is_region = false;
};
View view_of(const tir::LetStmtNode& let);

// The statement with accesses to regions replaced by those to the arrays that they are of.
tir::Stmt resolve_regions(const tir::Stmt& s);

}  // namespace tilewright::te
