// SPDX-License-Identifier: Apache-2.0
// Each step of a profiled run beside its roofline and beside what the compiler's cost model predicted.
#pragma once
#include <string>
#include <vector>

#include "runtime/machine_peak.h"
#include "tilewright/runtime.h"

namespace tilewright::cli {

using runtime::MachinePeak, runtime::MemoryLevel, runtime::measure_peak;

struct KernelRow {
  const StepProfile* step = nullptr;
  double roofline_us = 0;  // the step cannot be faster, unless it saves arithmetic (Winograd)
  const char* bound = "";  // "fma", or the level whose bandwidth binds
  bool saves_arithmetic = false;
  double share_of_roofline() const { return step->min_us > 0 ? roofline_us / step->min_us : 0; }
};

// The peaks of one thread, for steps that one thread runs, and of all.
std::vector<KernelRow> kernel_rows(const Profile& profile, const ModelInfo& model, const MachinePeak& one,
                                   const MachinePeak& all);

// Spearman's rank correlation of predicted and measured times; 0 with fewer than two predicted steps. Ties
// get their mean rank.
double prediction_rank_correlation(const std::vector<KernelRow>& rows, int threads);

// The table, most expensive first, and totals; or the same as JSON: {"peak": ..., "steps": [...], "total":
// ...}.
std::string kernel_table(const std::vector<KernelRow>& rows, const MachinePeak& peak);
std::string kernel_json(const std::vector<KernelRow>& rows, const MachinePeak& peak);

}  // namespace tilewright::cli
