// SPDX-License-Identifier: Apache-2.0
// Makes views and in-place operators purely functional. A tensor is a memory, or a chain of views of one; an in-place
// operator gives the memory a new value, and reads through other views of it see the change.
#pragma once
#include <string>
#include <vector>

#include "frontend/torch/convert.h"

namespace tilewright::torch {

// Storage that tensors share.
struct Memory {
  Expr whole;
  int64_t version = 0;  // number of changes so far
  std::string owner;    // name of the buffer, parameter or input it belongs to; empty for results
  int owner_kind = 0;   // InputSpec::Kind
  bool complex = false;
};

// One step of a chain of views: the view operator's node, its arguments, and the index of its result.
struct ViewStep {
  const Node* node = nullptr;
  NamedValues arguments;  // the viewed tensor comes first
  size_t result = 0;
};

struct View {
  std::shared_ptr<Memory> memory;
  std::vector<ViewStep> steps;
  int64_t version = 0;  // the memory's version for which `now` was computed
  Expr now;
};

// A tensor with a memory of its own.
Value in_own_memory(Value v, const std::string& owner = {}, int owner_kind = 0);

// Whether the elements that a view shows lie in memory one after another, so that any reshape is a view.
bool lies_in_order(const View& view);
// Whether its first element is the first in its memory, in whatever order the others are shown.
bool begins_its_memory(const View& view);

// Whether an operator's result shares the memory of its first argument.
bool is_view(std::string_view target);
// Makes the results of a view operator share the memory of its operand.
void share_memory(const Place& place, const Node& node, const NamedValues& arguments, Values* results);

// The tensor's value in the current version of its memory.
Expr current(const Place& place, const View& view);
// Writes `content` through the view into its memory, so that all other views see it. Fails where the view shows an
// element more than once (expanded dimensions).
void write_through(const Place& place, View* view, Expr content);

}  // namespace tilewright::torch
