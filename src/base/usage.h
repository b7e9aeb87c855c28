// SPDX-License-Identifier: Apache-2.0
// Errors of invalid command lines.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tilewright {

// The error for `what` the parser reported about `words`, for `verb` (may be empty) and its long options: the hint
// suggests an option with a similar name, else the help.
Diagnostic usage_error(std::string what, const std::string& verb, std::span<const std::string> options,
                       std::span<const char* const> words);

// The same for a CLI::App that could not parse `argv`; this room does not know CLI11.
template <class App>
Diagnostic usage_error(const App& app, std::string what, int argc, const char* const* argv) {
  const App* verb = app.get_subcommands().empty() ? &app : app.get_subcommands()[0];
  std::vector<std::string> options;
  for (const auto* option : verb->get_options())
    for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  return usage_error(std::move(what), verb == &app ? "" : verb->get_name(), options,
                     std::span(argv + 1, static_cast<size_t>(argc - 1)));
}

}  // namespace tilewright
