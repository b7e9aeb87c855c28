// SPDX-License-Identifier: Apache-2.0
// Memory placement: views instead of copies (reshape, concat, split), and halos around tensors that padded convolutions
// read.
#pragma once
#include "lower/graph.h"
#include "topi/view.h"

namespace tilewright::lower {

// Sets Group::renaming, GraphTensor::halo and slotted from the halos of the chosen kernels. May insert copying groups
// (for a concat operand that cannot be written in place, an input that needs a halo), which have no choice yet, and
// redirects their consumers.
void place(Graph* graph);

// A tensor's window of memory, halo included; offsets and strides in elements of its dtype.
struct Window {
  int64_t bytes = 0;
  int64_t offset = 0;  // offset of element (0,...,0) in the window, behind the leading halo
  std::vector<int64_t> strides, halo_before, halo_after;
};
Window window_of(const GraphTensor& tensor);
// The tensor's view in a buffer that begins with its window.
topi::View view_of(const GraphTensor& tensor, const tir::Buffer& buffer);
// The view without a buffer: shape and strides only.
topi::View view_of(const GraphTensor& tensor);

}  // namespace tilewright::lower
