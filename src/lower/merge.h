// SPDX-License-Identifier: Apache-2.0
// Merges the lowerings of one model for several input shapes
// or processors; equal kernels and weights are kept once.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "lower/lower.h"

namespace tilewright::lower {

// Index of the weights merged so far, by content.
class JoinedWeights {
 public:
  // Appends other's weights to those of `into` unless an equal one exists; returns the new offset of each.
  std::vector<uint64_t> join(Lowered* into, const Lowered& other);

 private:
  std::multimap<uint64_t, size_t> param_of_;
  size_t known_ = 0;  // number of indexed weights of `into`
  uint64_t end_ = 0;  // end of the last of them
};

// Merges variants of one model, one at a time.
class Variants {
 public:
  // Adds `variant` (the same model for other shapes) to into->plan.variants, with those of its kernels and weights that
  // `into` does not have yet. Its traces are dropped. `into` must be the same object each time and not be modified in
  // between.
  void add(Lowered* into, Lowered variant);

 private:
  // Indexes new kernels incrementally, so that a library of many variants processes each kernel once.
  void know_kernels(const Lowered& into);
  // The name itself, or with a number if another kernel has it.
  std::string free_name(const std::string& base);
  std::multimap<uint64_t, uint32_t> kernel_of_;  // by hash of device and text without the name
  std::map<std::string, int> names_;             // kernel name -> last number appended to it
  size_t known_ = 0;
  JoinedWeights weights_;
};

// Merges the weights of `other` (the same model for another processor, with its variants) into `into`, equal ones once,
// and redirects its buffers.
void merge_weights(Lowered* into, Lowered* other);

}  // namespace tilewright::lower
