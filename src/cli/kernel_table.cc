// SPDX-License-Identifier: Apache-2.0
#include "cli/kernel_table.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/format.h"
#include "runtime/profile.h"

namespace tilewright::cli {
namespace {

std::string shortened(const std::string& text, size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 2) + "..";
}

struct Totals {
  double measured = 0, roofline = 0, predicted = 0;
  int steps = 0;
  void add(const KernelRow& row) {
    measured += row.step->min_us, roofline += row.roofline_us, predicted += row.step->predicted_us;
    ++steps;
  }
};

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> out(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (size_t k = i; k < end; ++k) out[order[k]] = static_cast<double>(i + end - 1) / 2;
    i = end;
  }
  return out;
}

// Predictions are for one thread.
double predicted_for(const StepProfile& step, int threads) { return step.predicted_us / (step.parallel ? threads : 1); }

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

}  // namespace

std::vector<KernelRow> kernel_rows(const Profile& profile, const ModelInfo& model, const MachinePeak& one,
                                   const MachinePeak& all) {
  std::vector<KernelRow> rows;
  // Weights were last used one inference ago: their level is that of an inference's whole working set.
  const double everything = static_cast<double>(model.params_bytes + model.arena_bytes);
  for (const StepProfile& step : profile.steps) {
    const MachinePeak& peak = step.parallel ? all : one;
    const double weights = std::min(step.weight_bytes, step.bytes), rest = step.bytes - weights;
    // The previous step's results are assumed to be in the level that fits their size.
    const MemoryLevel& far = peak.level_of(everything);
    const MemoryLevel& near = peak.level_of((step.bytes - weights) / (step.parallel ? peak.threads : 1));
    const double moving = (weights / far.gbps + rest / near.gbps) * 1e-3, computing = step.flops / peak.gflops * 1e-3;
    KernelRow row;
    row.step = &step;
    row.roofline_us = std::max(moving, computing);
    row.bound = computing >= moving ? "fma" : weights / far.gbps > rest / near.gbps ? far.name : near.name;
    row.saves_arithmetic = step.implementation.find("winograd") != std::string::npos;
    rows.push_back(row);
  }
  return rows;
}

double prediction_rank_correlation(const std::vector<KernelRow>& rows, int threads) {
  std::vector<double> predicted, measured;
  for (const KernelRow& row : rows)
    if (row.step->predicted_us > 0) {
      predicted.push_back(predicted_for(*row.step, threads));
      measured.push_back(row.step->min_us);
    }
  if (predicted.size() < 2) return 0;
  const std::vector<double> a = ranks(predicted), b = ranks(measured);
  const double mean = static_cast<double>(a.size() - 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean) * (b[i] - mean);
    aa += (a[i] - mean) * (a[i] - mean);
    bb += (b[i] - mean) * (b[i] - mean);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

std::string kernel_table(const std::vector<KernelRow>& rows, const MachinePeak& peak) {
  std::vector<const KernelRow*> order;
  for (const KernelRow& row : rows) order.push_back(&row);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->step->min_us > b->step->min_us; });
  std::string out =
      format("peak on {} thread{}: {:.0f} GFLOP/s", peak.threads, peak.threads == 1 ? "" : "s", peak.gflops);
  for (const MemoryLevel& level : peak.levels) out += format(", {} {:.0f} GB/s", level.name, level.gbps);
  out += format("\n\n{:>9} {:>9} {:>9} {:>8} {:>7} {:>6} {:>8} {:>9} {:>6}  {:<26} {:<34} {}\n", "us", "MFLOP", "KiB",
                "GFLOP/s", "GB/s", "bound", "roofline", "predicted", "ratio", "implementation", "operators", "nodes");
  Totals plain, saving;
  for (const KernelRow* row : order) {
    const StepProfile& s = *row->step;
    (row->saves_arithmetic ? saving : plain).add(*row);
    const double predicted = predicted_for(s, peak.threads);
    out += format("{:>9.2f} {:>9.2f} {:>9.1f} {:>8.1f} {:>7.1f} {:>6} {:>7.0f}% {:>9.2f} {:>6.2f}  {:<26} {:<34} {}\n",
                  s.min_us, s.flops * 1e-6, s.bytes / 1024, s.min_us > 0 ? s.flops / s.min_us * 1e-3 : 0,
                  s.min_us > 0 ? s.bytes / s.min_us * 1e-3 : 0, row->bound, 100 * row->share_of_roofline(), predicted,
                  s.min_us > 0 ? predicted / s.min_us : 0, shortened(s.implementation, 26), shortened(s.name, 34),
                  shortened(s.source, 50));
  }
  auto total = [&](const char* what, const Totals& t) {
    if (t.steps > 0)
      out += format("{}: {} steps, {:.1f} us, {:.0f}% of the roofline ({:.1f} us)\n", what, t.steps, t.measured,
                    percent(t.roofline, t.measured), t.roofline);
  };
  out += "\n";
  total("direct kernels", plain);
  total("kernels that save arithmetic (Winograd), against the direct roofline", saving);
  out += format("predicted {:.1f} us on one thread; rank correlation of predicted and measured {:.3f}\n",
                plain.predicted + saving.predicted, prediction_rank_correlation(rows, peak.threads));
  return out;
}

std::string kernel_json(const std::vector<KernelRow>& rows, const MachinePeak& peak) {
  using runtime::json_string;
  std::string out = format("{{\"peak\":{{\"threads\":{},\"gflops\":{:.2f}", peak.threads, peak.gflops);
  for (const MemoryLevel& level : peak.levels)
    out += format(",{}:{:.2f}", json_string(format("{}_gbps", level.name)), level.gbps);
  out += "},\"steps\":[";
  Totals all;
  for (size_t i = 0; i < rows.size(); ++i) {
    const StepProfile& s = *rows[i].step;
    all.add(rows[i]);
    out += format(
        "{}\n{{\"name\":{},\"source\":{},\"kernel\":{},\"implementation\":{},\"shapes\":{},\"parallel\":{},"
        "\"us\":{:.3f},\"flops\":{:.0f},\"bytes\":{:.0f},"
        "\"weight_bytes\":{:.0f},\"bound\":\"{}\",\"roofline_us\":{:.3f},\"share_of_roofline\":{:.4f},"
        "\"saves_arithmetic\":{},\"predicted_us\":{:.3f}}}",
        i ? "," : "", json_string(s.name), json_string(s.source), json_string(s.kernel), json_string(s.implementation),
        json_string(s.shapes), s.parallel, s.min_us, s.flops, s.bytes, s.weight_bytes, rows[i].bound,
        rows[i].roofline_us, rows[i].share_of_roofline(), rows[i].saves_arithmetic, predicted_for(s, peak.threads));
  }
  return out + format(
                   "\n],\"total\":{{\"us\":{:.3f},\"roofline_us\":{:.3f},\"predicted_one_thread_us\":{:.3f},"
                   "\"rank_correlation\":{:.4f}}}}}\n",
                   all.measured, all.roofline, all.predicted, prediction_rank_correlation(rows, peak.threads));
}

}  // namespace tilewright::cli
