// SPDX-License-Identifier: Apache-2.0
#include "frontend/unsupported.h"

#include <map>
#include <tuple>

#include "base/format.h"

namespace tilewright::frontend {

Diagnostic UnsupportedNodes::report(std::string hint) const {
  struct Group {
    std::string detail;
    std::vector<std::string> places;
  };
  std::map<std::pair<std::string, std::string>, Group> groups;
  for (const Unsupported& u : nodes_) {
    Group& g = groups[{u.op, u.why}];
    g.detail = u.detail;
    g.places.push_back(u.where);
  }
  std::string text = format("{} of the model's nodes cannot be compiled yet", nodes_.size());
  for (const auto& [key, g] : groups) {
    const auto& [op, why] = key;
    const std::string about = g.detail + (g.detail.empty() || why.empty() ? "" : "; ") + why;
    text += format("\n  {}{} x{}: ", op, about.empty() ? "" : " (" + about + ")", g.places.size());
    for (size_t i = 0; i < g.places.size() && i < 4; ++i) text += (i ? ", " : "") + g.places[i];
    if (g.places.size() > 4) text += ", ...";
  }
  return Diagnostic(ErrorCode::kUnsupportedOp, text, "", std::move(hint));
}

}  // namespace tilewright::frontend
