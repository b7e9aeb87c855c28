// SPDX-License-Identifier: Apache-2.0
#include "base/cache_folder.h"

#include <cstdlib>

namespace tilewright {

std::string cache_folder(const std::string& name) {
  auto variable = [](const char* of) {
    const char* value = std::getenv(of);
    return std::string(value ? value : "");
  };
  if (std::string own = variable("TILEWRIGHT_CACHE_DIR"); !own.empty()) return own + "/" + name;
  // The XDG base directory specification: a relative path is to be ignored.
  if (std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty() && xdg[0] == '/') return xdg + "/tilewright/" + name;
  if (std::string home = variable("HOME"); !home.empty() && home[0] == '/') return home + "/.cache/tilewright/" + name;
  return {};
}

}  // namespace tilewright
