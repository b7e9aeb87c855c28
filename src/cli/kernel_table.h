// SPDX-License-Identifier: Apache-2.0
// Compares each step of a profiled run with its roofline and the cost model's prediction.
#pragma once
#include <string>
#include <vector>

#include "runtime/machine_peak.h"
#include "tilewright/runtime.h"

namespace tilewright::cli {

using runtime::MachinePeak, runtime::MemoryLevel, runtime::measure_peak;

struct KernelRow {
  const StepProfile* step = nullptr;
  double roofline_us = 0;  // lower bound of the time, unless the algorithm saves arithmetic (Winograd)
  const char* bound = "";  // "fma", or the memory level that limits
  bool saves_arithmetic = false;
  double share_of_roofline() const { return step->min_us > 0 ? roofline_us / step->min_us : 0; }
};

// `one` and the other peak are for one thread (for steps that run on one) and for all threads.
std::vector<KernelRow> kernel_rows(const Profile& profile, const ModelInfo& model, const MachinePeak& one,
                                   const MachinePeak& all);

// Spearman's rank correlation of predicted and measured times; 0 with fewer than two predicted steps. Ties get their
// mean rank.
double prediction_rank_correlation(const std::vector<KernelRow>& rows, int threads);

// The table, most expensive first, and totals; or the same as JSON: {"peak": ..., "steps": [...], "total":
// ...}.
std::string kernel_table(const std::vector<KernelRow>& rows, const MachinePeak& peak);
std::string kernel_json(const std::vector<KernelRow>& rows, const MachinePeak& peak);

}  // namespace tilewright::cli
