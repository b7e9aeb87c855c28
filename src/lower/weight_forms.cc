// SPDX-License-Identifier: Apache-2.0
#include "lower/weight_forms.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/hash.h"
#include "lower/strategy.h"

namespace tilewright::lower {
namespace {
// On a hash collision two weights merely share a form.
uint64_t key_of(const Tensor& weight) { return hash_bytes(weight.raw(), weight.bytes()); }

// How much of its convolutions' best time a plan may lose before another form is stored for it.
constexpr double kMostLost = 0.03;
}  // namespace

Status WeightForms::add(const relay::Module& fused, const Target& target) {
  const relay::Module module = split_groups(fused);
  const Graph graph = TW_TRY(extract_graph(module));
  for (const Group& group : graph.groups) {
    if (group.plain()) continue;
    const Anchor anchor = find_anchor(*group.function);
    if (!anchor.call) continue;
    const Problem problem{graph, group, anchor, target};
    if (auto product = packed_product(problem))
      products_[key_of(problem.input(1).data)].push_back({*product, target, is_looked_up(problem)});
    add_forms(problem);
  }
  ++plans_;
  return Ok{};
}

int WeightForms::panel_vectors(const Tensor& weight) const {
  auto found = products_.find(key_of(weight));
  if (found == products_.end()) return 0;
  std::set<int> widths;  // preferred by at least one of the products
  for (const auto& [problem, target, looked_up] : found->second)
    widths.insert(topi::default_config(problem, target).nr);
  int best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int width : widths) {
    double sum = 0;
    for (const auto& [product, target, looked_up] : found->second) {
      topi::GemmProblem problem = product;
      problem.panel = width;
      const double taken = topi::estimate(problem, topi::default_config(problem, target), target).microseconds;
      // Time relative to the processor's peak, so that slow processors do not count more.
      sum += taken * target.machine.gflops;
    }
    if (sum < least) best = width, least = sum;
  }
  return best;
}

bool WeightForms::as_dots(const Tensor& weight) const {
  auto found = products_.find(key_of(weight));
  return found == products_.end() || std::all_of(found->second.begin(), found->second.end(), [&](const Product& p) {
           return topi::packed_as_dots(p.problem, p.target, p.looked_up);
         });
}

void WeightForms::add_forms(const Problem& problem) {
  const auto all = implementations_of(problem.anchor.op);
  if (std::none_of(all.begin(), all.end(), [](const Implementation* i) { return i->forms != nullptr; })) return;
  if (!problem.constant(1)) return;
  Reader reader{plans_, {}};
  int plevel = std::numeric_limits<int>::min();
  for (const Implementation* i : all) {
    const std::vector<FormedConfig> formed = formed_configs(*i, problem);
    if (formed.empty() || i->plevel < plevel) continue;
    if (i->plevel > plevel) reader.forms.clear(), plevel = i->plevel;
    for (const FormedConfig& one : formed) {
      const FormCost cost{one.time, one.config.cost.bytes};
      auto [at, fresh] = reader.forms.emplace(one.form, cost);
      if (!fresh && cost.time < at->second.time) at->second = cost;
    }
  }
  if (reader.forms.empty()) return;
  // The traffic of everything but the weight is common to all forms.
  double least = std::numeric_limits<double>::max();
  for (const auto& [form, cost] : reader.forms) least = std::min(least, cost.bytes);
  const Tensor& weight = problem.input(1).data;
  for (auto& [form, cost] : reader.forms) cost.bytes += static_cast<double>(weight.bytes()) - least;
  readers_[key_of(weight)].push_back(std::move(reader));
}

double WeightForms::Reader::time(const std::set<std::string>& taken) const {
  double least = 1e6 * best();  // no form that it can read yet
  for (const std::string& form : taken)
    if (const auto at = forms.find(form); at != forms.end()) least = std::min(least, at->second.time);
  return least;
}

double WeightForms::Reader::best() const {
  double least = std::numeric_limits<double>::max();
  for (const auto& [form, cost] : forms) least = std::min(least, cost.time);
  return least;
}

// The form with the best benefit per byte over the plans that count; empty if none helps.
std::string WeightForms::best_addition(const std::vector<Reader>& readers, const std::set<std::string>& taken,
                                       const std::vector<double>& worth, double* score) {
  std::map<std::string, std::pair<double, double>> gain_and_bytes;
  for (const Reader& r : readers) {
    const double now = r.time(taken);
    for (const auto& [form, cost] : r.forms) {
      auto& [gain, bytes] = gain_and_bytes[form];
      gain += std::max(0.0, now - cost.time) * worth[r.plan];
      bytes = std::max({bytes, cost.bytes, 1.0});
    }
  }
  std::string best;
  for (const auto& [form, one] : gain_and_bytes)
    if (one.first > 1e-9 && one.first / one.second > *score) best = form, *score = one.first / one.second;
  return best;
}

void WeightForms::agree() {
  // Shares of each plan's time, so that slow processors and large batches do not count more.
  std::vector<double> worth(plans_, 0), lost(plans_, 0);
  for (const auto& [key, readers] : readers_)
    for (const Reader& r : readers) worth[r.plan] += r.best();
  for (double& w : worth) w = w > 0 ? 1 / w : 0;
  for (const auto& [key, readers] : readers_) {
    std::map<std::string, double> sums;
    for (const Reader& r : readers)
      for (const auto& [form, cost] : r.forms) sums[form];
    for (auto& [form, sum] : sums)
      for (const Reader& r : readers) sum += r.time({form}) * worth[r.plan];
    const auto least =
        std::min_element(sums.begin(), sums.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    agreed_[key] = {least->first};
    for (const Reader& r : readers) lost[r.plan] += (r.time(agreed_[key]) - r.best()) * worth[r.plan];
  }
  // Add forms as long as a plan loses too much.
  for (;;) {
    std::vector<double> counting = worth;
    for (size_t i = 0; i < plans_; ++i)
      if (lost[i] <= kMostLost) counting[i] = 0;
    double score = 0;
    uint64_t where = 0;
    std::string next;
    bool any = false;
    for (const auto& [key, readers] : readers_) {
      const double before = score;
      std::string form = best_addition(readers, agreed_[key], counting, &score);
      if (score > before) next = std::move(form), where = key, any = true;
    }
    if (!any) return;
    for (const Reader& r : readers_[where]) lost[r.plan] -= r.time(agreed_[where]) * worth[r.plan];
    agreed_[where].insert(next);
    for (const Reader& r : readers_[where]) lost[r.plan] += r.time(agreed_[where]) * worth[r.plan];
  }
}

std::set<std::string> WeightForms::agreed(const Tensor& weight) const {
  const auto found = agreed_.find(key_of(weight));
  return found == agreed_.end() ? std::set<std::string>() : found->second;
}

}  // namespace tilewright::lower
