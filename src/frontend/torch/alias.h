// SPDX-License-Identifier: Apache-2.0
// Views and in-place operators as functions of values. A tensor lies in a memory, whole or seen through a chain of
// views; an in-place operator changes the memory, and whoever reads another view of it later sees the change.
#pragma once
#include <string>
#include <vector>

#include "frontend/torch/convert.h"

namespace tilewright::torch {

// What tensors that share storage share.
struct Memory {
  Expr whole;
  int64_t version = 0;  // counts changes
  std::string owner;    // the buffer, parameter or input that it is; empty for results
  int owner_kind = 0;   // InputSpec::Kind
};

// One step from a tensor to a view of it: the node, its arguments, which of its results.
struct ViewStep {
  const Node* node = nullptr;
  NamedValues arguments;  // the viewed tensor comes first
  size_t result = 0;
};

struct View {
  std::shared_ptr<Memory> memory;
  std::vector<ViewStep> steps;
  int64_t version = 0;  // of the memory when `now` was computed
  Expr now;
};

// A tensor with a memory of its own.
Value in_own_memory(Value v, const std::string& owner = {}, int owner_kind = 0);

// Whether an operator's result shares the memory of its first argument.
bool is_view(std::string_view target);
// The results of a view operator share what they see.
void share_memory(const Place& place, const Node& node, const NamedValues& arguments, Values* results);

// The tensor as its memory is now.
Expr current(const Place& place, const View& view);
// Puts `content` where the view looks; every other view of the memory changes with it. Fails where the view shows an
// element more than once.
void write_through(const Place& place, View* view, Expr content);

}  // namespace tilewright::torch
