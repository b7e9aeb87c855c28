// SPDX-License-Identifier: Apache-2.0
// TorchScript's lists whose length only a run knows: sequences of the virtual machine. Such a list has one item, of
// kind kGrown, which holds the sequence; all names of the list share it, so that what is appended is seen by them all.
#pragma once
#include <optional>

#include "frontend/torch/importer.h"

namespace tilewright::torch {

bool is_grown(const Value& v);
// The list as one whose length only a run knows, for all its names. Fails for lists of lists.
void grow(Importer& importer, const Value& list);
Expr sequence_of(const Value& list);
// The list is this sequence from now on.
void set_sequence(const Value& list, Expr sequence);

// A node one of whose arguments is such a list.
Values convert_grown(Importer& importer, const Node& node, const NamedValues& arguments);
// Whether the operator changes the list that is its first argument.
bool changes_list(std::string_view target);

}  // namespace tilewright::torch
