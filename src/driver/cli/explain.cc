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

// An applicable kernel in its actual or best configuration.
struct Row {
  std::string implementation;
  int plevel = 0;
  lower::Config config;
  bool chosen = false;
  std::vector<lower::Config> others;  // other configurations that were considered
};

// Best first; the chosen one can be lower if the other has a smaller priority.
std::vector<Row> rows_by_priority(const lower::Choice& choice) {
  std::vector<Row> out;
  const lower::Config chosen_config{choice.configuration, choice.cost};
  if (choice.candidates.empty()) out.push_back({choice.implementation, 0, chosen_config, true, {}});  // no alternatives
  for (const lower::Candidate& c : choice.candidates) {
    Row row{c.implementation->name, c.implementation->plevel, c.configs[0], c.implementation == choice.kernel, {}};
    if (row.chosen) {
      row.config = chosen_config;
      for (const lower::Config& other : c.configs)
        if (other.text != chosen_config.text && row.others.size() < kShownConfigurations) row.others.push_back(other);
    }
    out.push_back(std::move(row));
  }
  std::stable_sort(out.begin(), out.end(), [](const Row& a, const Row& b) {
    return a.plevel != b.plevel ? a.plevel > b.plevel : a.config.cost.weighed() < b.config.cost.weighed();
  });
  return out;
}

const tune::Record* record_of(const tune::RecordChooser* records, const lower::StepTrace& trace) {
  return records ? records->record_of(trace.function.get()) : nullptr;
}

}  // namespace

std::string explain_text(const lower::Lowered& lowered, const tune::RecordChooser* records) {
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
    if (const tune::Record* record = record_of(records, lowered.traces[i]))
      out += format("      record  {} {}, measured {:.2f} us\n", record->name, record->entity.dump(),
                    record->cost() * 1e6);
    for (const Row& row : rows_by_priority(choice)) {
      out += format("    {} {:<28} {:>10.2f} us  priority {:<3} {}\n", row.chosen ? "*" : " ", row.implementation,
                    row.config.cost.microseconds, row.plevel, row.config.text);
      for (const lower::Config& other : row.others)
        out += format("        instead of               {:>10.2f} us  {}\n", other.cost.microseconds, other.text);
    }
  }
  return out;
}

nlohmann::json explain_json(const lower::Lowered& lowered, const tune::RecordChooser* records) {
  nlohmann::json out = nlohmann::json::array();
  for (size_t i = 0; i < lowered.plan.steps.size(); ++i) {
    const plan::Step& step = lowered.plan.steps[i];
    const lower::Choice& choice = *lowered.traces[i].choice;
    nlohmann::json candidates = nlohmann::json::array();
    for (const Row& row : rows_by_priority(choice)) {
      const topi::Cost& cost = row.config.cost;
      nlohmann::json j{{"implementation", row.implementation},
                       {"configuration", row.config.text},
                       {"priority", row.plevel},
                       {"predicted_us", cost.microseconds},
                       {"flops", cost.flops},
                       {"bytes", cost.bytes},
                       {"chosen", row.chosen}};
      for (const lower::Config& other : row.others)
        j["other_configurations"].push_back({{"configuration", other.text}, {"predicted_us", other.cost.microseconds}});
      candidates.push_back(std::move(j));
    }
    out.push_back({{"name", step.name},
                   {"nodes", step.source},
                   {"kernel", plan::callee_of(lowered.plan, step)},
                   {"shapes", shapes_of(lowered.plan, step)},
                   {"predicted_us", step.predicted_us},
                   {"candidates", std::move(candidates)}});
    if (const tune::Record* record = record_of(records, lowered.traces[i]))
      out.back()["record"] = nlohmann::json::parse(tune::to_line(*record));
  }
  return out;
}

}  // namespace tilewright::driver
