// SPDX-License-Identifier: Apache-2.0
// One model lowered for several input shapes or processors, as one: kernels and weights that are the same are kept
// once.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "lower/lower.h"

namespace tilewright::lower {

// Weights that joined so far, by what they hold.
class JoinedWeights {
 public:
  // Where each of other's weights lies among those of `into`, which it joins unless an equal one is there.
  std::vector<uint64_t> join(Lowered* into, const Lowered& other);

 private:
  std::multimap<uint64_t, size_t> param_of_;
  size_t known_ = 0;  // of into's weights
  uint64_t end_ = 0;  // of the last of them
};

// Variants of one model join it one by one.
class Variants {
 public:
  // Adds `variant` (the same model for other shapes) to into->plan.variants; its kernels and weights join those that
  // are there, except those that are equal to one of them. Traces of the variant are dropped. `into` is the same
  // each time, and changed by nothing else.
  void add(Lowered* into, Lowered variant);

 private:
  // Known by now, in the order they joined: a library of many variants looks at each of its kernels once.
  void know_kernels(const Lowered& into);
  // The name itself, or with the next number where another kernel has it.
  std::string free_name(const std::string& base);
  std::multimap<uint64_t, uint32_t> kernel_of_;  // by device and text but for the name
  std::map<std::string, int> names_;             // of kernels, with the last number that a namesake got
  size_t known_ = 0;
  JoinedWeights weights_;
};

// The weights of `other` (the same model for another processor, variants and all) join those of `into`, except those
// that are equal to one of them, and its buffers are where they are now.
void merge_weights(Lowered* into, Lowered* other);

}  // namespace tilewright::lower
