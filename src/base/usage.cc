// SPDX-License-Identifier: Apache-2.0
#include "base/usage.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "base/near_match.h"

namespace tilewright {

Diagnostic usage_error(std::string what, const std::string& verb, std::span<const std::string> options,
                       std::span<const char* const> words) {
  while (!what.empty() && (what.back() == '\n' || what.back() == '.')) what.pop_back();
  std::string hint = format("try 'tilewright{}{} --help'", verb.empty() ? "" : " ", verb);
  for (const char* word : words) {
    const std::string_view text = word;
    if (!text.starts_with("--") || text.size() == 2) continue;
    const std::string name(text.substr(0, text.find('=')));
    if (std::find(options.begin(), options.end(), name) != options.end()) continue;
    if (const std::string near = did_you_mean(name, options); !near.empty()) hint = near + " " + hint + " for all";
    break;
  }
  return Diagnostic(ErrorCode::kInvalidArgument, std::move(what), {}, std::move(hint));
}

}  // namespace tilewright
