// SPDX-License-Identifier: Apache-2.0
#include "base/plugin.h"

#include <dlfcn.h>

#include <cstdlib>

#include "base/format.h"

namespace tilewright {

std::string absolute_path(const std::string& path) {
  char* absolute = realpath(path.c_str(), nullptr);
  std::string file = absolute ? absolute : "";
  std::free(absolute);
  return file;
}

Result<void*> open_plugin(const std::string& path) {
  const std::string file = absolute_path(path);
  if (file.empty()) return Diagnostic(ErrorCode::kFileNotFound, "there is no such plug-in", path, "check the path");
  if (void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  const char* why = dlerror();
  return Diagnostic(ErrorCode::kLinkFailed, format("the plug-in cannot be loaded: {}", why ? why : "unknown reason"),
                    path);
}

}  // namespace tilewright
