// SPDX-License-Identifier: Apache-2.0
// Helpers for tables of implementations: an entry is a function if there is nothing to configure, or a class with
// configurations of one type.
#pragma once
#include <algorithm>

#include "lower/strategy.h"
#include "topi/config.h"

namespace tilewright::lower {

// `make` returns the Choice, or null where it does not apply.
template <std::shared_ptr<Choice> (*make)(const Problem&)>
constexpr Implementation fixed(const char* op, const char* name, int plevel) {
  return {op, name, plevel,
          [](const Problem& p, size_t) {
            const auto choice = make(p);
            return choice ? std::vector<Config>{{"", choice->cost}} : std::vector<Config>();
          },
          [](const Problem& p, const std::string& config) { return config.empty() ? make(p) : nullptr; }};
}

template <topi::Configuration C>
std::optional<C> read_config(const std::string& text, const C*) {
  return topi::parse_config<C>(text);
}
template <topi::Configuration C>
std::optional<std::vector<C>> read_config(const std::string& text, const std::vector<C>*) {
  return topi::parse_configs<C>(text);
}

// K is a class of static members:
// Config                        a topi::Configuration, or a vector of them
// site(problem)                 optional: the anchor as the kernel sees it; nothing where it does not apply
// configs(problem, site, most)  the best guess first
// fits(problem, site, config)   whether such a kernel exists (a configuration may come from a record)
// cost(problem, site, config)
// make(problem, site, config)   the Choice except its cost
// and, if a weight can be packed in several forms,
// forms(problem, site)          the best configuration for each form (Formed)
template <class C>
struct Formed {
  std::string form;
  C config;
  double weighed = 1;  // the figure it is ranked by, which may include more than its cost
};
template <class K>
constexpr auto forms_of() -> std::vector<FormedConfig> (*)(const Problem&) {
  if constexpr (requires(const Problem& p) { K::forms(p, *K::site(p)); })
    return [](const Problem& p) {
      std::vector<FormedConfig> out;
      const auto site = K::site(p);
      if (!site) return out;
      const auto formed = K::forms(p, *site);
      // The best configuration keeps its own cost; the others are scaled by their relative weights.
      const auto best = std::min_element(formed.begin(), formed.end(),
                                         [](const auto& a, const auto& b) { return a.weighed < b.weighed; });
      if (best == formed.end()) return out;
      const double time = K::cost(p, *site, best->config).weighed() / best->weighed;
      for (const auto& one : formed)
        out.push_back({one.form, {topi::to_text(one.config), K::cost(p, *site, one.config)}, time * one.weighed});
      return out;
    };
  else
    return nullptr;
}
template <class K>
constexpr Implementation tuned(const char* op, const char* name, int plevel, bool by_place = false) {
  return {op,
          name,
          plevel,
          [](const Problem& p, size_t most) {
            std::vector<Config> out;
            if (const auto site = K::site(p))
              for (const auto& config : K::configs(p, *site, most))
                out.push_back({topi::to_text(config), K::cost(p, *site, config)});
            return out;
          },
          [](const Problem& p, const std::string& text) {
            const auto config = read_config(text, static_cast<typename K::Config*>(nullptr));
            const auto site = config ? K::site(p) : decltype(K::site(p))();
            if (!site || !K::fits(p, *site, *config)) return std::shared_ptr<Choice>();
            std::shared_ptr<Choice> choice = K::make(p, *site, *config);
            choice->cost = K::cost(p, *site, *config);
            return choice;
          },
          by_place,
          forms_of<K>()};
}

}  // namespace tilewright::lower
