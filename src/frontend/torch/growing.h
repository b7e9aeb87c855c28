// SPDX-License-Identifier: Apache-2.0
// TorchScript's lists whose length is known only at run time become sequences of the virtual machine. Such a list has
// one item, of kind kGrown, which holds the sequence; all names share the list, so that all see what is appended.
#pragma once
#include <optional>

#include "frontend/torch/importer.h"

namespace tilewright::torch {

bool is_grown(const Value& v);
// Turns the list into such a sequence, for all its names. Fails for lists of lists.
void grow(Importer& importer, const Value& list);
Expr sequence_of(const Value& list);
// Replaces the list's sequence.
void set_sequence(const Value& list, Expr sequence);

// Converts a node that has such a list among its arguments.
Values convert_grown(Importer& importer, const Node& node, const NamedValues& arguments);
// Whether the operator mutates the list that is its first argument.
bool changes_list(std::string_view target);

}  // namespace tilewright::torch
