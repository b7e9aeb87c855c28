// SPDX-License-Identifier: Apache-2.0
// What lies in what, and with which zeros around it: views instead of copies (reshape, concat, split), halos around
// tensors that padded convolutions read.
#pragma once
#include "lower/graph.h"
#include "topi/view.h"

namespace tilewright::lower {

// Fills in Group::renaming, GraphTensor::halo and slotted from the halos of the chosen kernels. May add copying groups
// (a concat operand that cannot be written in place, an input that needs a halo), which have no choice yet, and rewires
// their consumers.
void place(Graph* graph);

// A tensor's window of memory, halo included; offsets and strides in elements of its dtype.
struct Window {
  int64_t bytes = 0;
  int64_t offset = 0;  // element (0,...,0) from the window's start: what the halo in front takes
  std::vector<int64_t> strides, halo_before, halo_after;
};
Window window_of(const GraphTensor& tensor);
// The tensor in a buffer that begins with its window.
topi::View view_of(const GraphTensor& tensor, const tir::Buffer& buffer);
// The same without memory: how its elements lie.
topi::View view_of(const GraphTensor& tensor);

}  // namespace tilewright::lower
