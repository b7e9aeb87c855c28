// SPDX-License-Identifier: Apache-2.0
// One model lowered for several input shapes, as one: kernels and weights that are the same are kept once.
#pragma once
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "lower/lower.h"

namespace tilewright::lower {

class VariantMerger {
 public:
  // What the variants are added to; it stays where it is, and nobody else changes it meanwhile.
  explicit VariantMerger(Lowered* into);
  // Adds `variant` (the same model for other shapes) to into->plan.variants; its kernels and weights join those that
  // are there, except those that are equal to one of them. Traces of the variant are dropped.
  void add(Lowered variant);

 private:
  Lowered* into_;
  std::unordered_map<std::string, uint32_t> kernel_of_;  // by device and text
  std::set<std::string> names_;
  std::multimap<uint64_t, size_t> param_of_;  // by what it holds
  uint64_t params_end_ = 0;
};

}  // namespace tilewright::lower
