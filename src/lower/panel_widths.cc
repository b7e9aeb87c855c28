// SPDX-License-Identifier: Apache-2.0
#include "lower/panel_widths.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/hash.h"
#include "lower/strategy.h"

namespace tilewright::lower {
namespace {
// Two weights of one hash would only share a width.
uint64_t key_of(const Tensor& weight) { return hash_bytes(weight.raw(), weight.bytes()); }
}  // namespace

Status PanelWidths::add(const relay::Module& fused, const Target& target) {
  const relay::Module module = split_groups(fused);
  const Graph graph = TW_TRY(extract_graph(module));
  for (const Group& group : graph.groups) {
    if (group.plain()) continue;
    const Anchor anchor = find_anchor(*group.function);
    if (!anchor.call) continue;
    const Problem problem{graph, group, anchor, target};
    if (auto product = packed_product(problem)) products_[key_of(problem.input(1).data)].push_back({*product, target});
  }
  return Ok{};
}

int PanelWidths::vectors(const Tensor& weight) const {
  auto found = products_.find(key_of(weight));
  if (found == products_.end()) return 0;
  std::set<int> widths;  // that one of the products would take by itself
  for (const auto& [problem, target] : found->second) widths.insert(topi::default_config(problem, target).nr);
  int best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int width : widths) {
    double sum = 0;
    for (const auto& [product, target] : found->second) {
      topi::GemmProblem problem = product;
      problem.panel = width;
      const double taken = topi::estimate(problem, topi::default_config(problem, target), target).microseconds;
      // A processor's time beside what it could do: a slow one counts no more than a fast one.
      sum += taken * target.machine.gflops;
    }
    if (sum < least) best = width, least = sum;
  }
  return best;
}

bool PanelWidths::as_dots(const Tensor& weight) const {
  auto found = products_.find(key_of(weight));
  return found == products_.end() || std::all_of(found->second.begin(), found->second.end(), [&](const Product& p) {
           return topi::packed_as_dots(p.problem, p.target);
         });
}

}  // namespace tilewright::lower
