// SPDX-License-Identifier: Apache-2.0
#include "driver/cli/explain.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/tensor.h"

namespace tilewright::driver {
namespace {

constexpr size_t kShownConfigurations = 4;

std::string shapes_of(const plan::Plan& plan, const plan::Step& step) {
  std::string out;
  for (uint32_t b : step.buffers)
    out += (out.empty() ? "" : " ") + plan.buffers[b].dtype.str() + "[" + shape_str(plan.buffers[b].shape) + "]";
  return out;
}

// The best configurations that were weighed besides the one taken.
std::vector<topi::RankedConfig> others(const lower::Choice& choice) {
  std::vector<topi::RankedConfig> out;
  if (!choice.configurations) return out;
  for (topi::RankedConfig& c : choice.configurations())
    if (c.config != choice.configuration && out.size() < kShownConfigurations) out.push_back(std::move(c));
  return out;
}

// Best first; the one taken may stand lower when another had a smaller priority.
std::vector<lower::Candidate> ranked(const lower::Choice& choice) {
  std::vector<lower::Candidate> out = choice.candidates;
  if (out.empty())
    out.push_back({choice.implementation, choice.configuration, 0, choice.cost});  // nothing to choose from
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return a.plevel != b.plevel ? a.plevel > b.plevel : a.cost.weighed() < b.cost.weighed();
  });
  return out;
}

}  // namespace

std::string explain_text(const lower::Lowered& lowered) {
  const plan::Plan& plan = lowered.plan;
  double total = 0;
  for (const auto& step : plan.steps) total += step.predicted_us;
  std::string out = format("{} steps, predicted {:.1f} us on one thread\n", plan.steps.size(), total);
  if (!lowered.taken_apart.empty())
    out += format("{} groups have no kernel as a whole and were taken apart (slower; please report it):\n",
                  lowered.taken_apart.size());
  for (const std::string& group : lowered.taken_apart) out += format("    {}\n", group);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const plan::Step& step = plan.steps[i];
    const lower::Choice& choice = *lowered.traces[i].choice;
    out +=
        format("\n{:>4}  {}  {:.2f} us, {:.1f}% of the whole; {:.2f} MFLOP, {:.1f} KiB\n", i, step.name,
               step.predicted_us, total > 0 ? 100 * step.predicted_us / total : 0, step.flops / 1e6, step.bytes / 1024);
    if (!step.source.empty()) out += format("      nodes   {}\n", step.source);
    out += format("      shapes  {}\n", shapes_of(plan, step));
    for (const lower::Candidate& c : ranked(choice)) {
      const bool chosen = c.implementation == choice.implementation;
      out += format("    {} {:<28} {:>10.2f} us  priority {:<3} {}\n", chosen ? "*" : " ", c.implementation,
                    c.cost.microseconds, c.plevel, c.configuration);
      if (!chosen) continue;
      for (const topi::RankedConfig& other : others(choice))
        out += format("        instead of               {:>10.2f} us  {}\n", other.microseconds, other.config);
    }
  }
  return out;
}

nlohmann::json explain_json(const lower::Lowered& lowered) {
  nlohmann::json out = nlohmann::json::array();
  for (size_t i = 0; i < lowered.plan.steps.size(); ++i) {
    const plan::Step& step = lowered.plan.steps[i];
    const lower::Choice& choice = *lowered.traces[i].choice;
    nlohmann::json candidates = nlohmann::json::array();
    for (const lower::Candidate& c : ranked(choice)) {
      nlohmann::json j{{"implementation", c.implementation},
                       {"configuration", c.configuration},
                       {"priority", c.plevel},
                       {"predicted_us", c.cost.microseconds},
                       {"flops", c.cost.flops},
                       {"bytes", c.cost.bytes},
                       {"chosen", c.implementation == choice.implementation}};
      if (j["chosen"])
        for (const topi::RankedConfig& other : others(choice))
          j["other_configurations"].push_back({{"configuration", other.config}, {"predicted_us", other.microseconds}});
      candidates.push_back(std::move(j));
    }
    out.push_back({{"name", step.name},
                   {"nodes", step.source},
                   {"kernel", plan::callee_of(lowered.plan, step)},
                   {"shapes", shapes_of(lowered.plan, step)},
                   {"predicted_us", step.predicted_us},
                   {"candidates", std::move(candidates)}});
  }
  return out;
}

}  // namespace tilewright::driver
