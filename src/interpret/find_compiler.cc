// SPDX-License-Identifier: Apache-2.0
#include "interpret/find_compiler.h"

#include <dlfcn.h>

#include <string>

#include "tilewright/compiler.h"

// Null in a library that is linked without the compiler.
extern "C" __attribute__((weak)) decltype(tw_compiler_specialize) tw_compiler_specialize;

namespace tilewright::interpret {
namespace {

Compiler open_compiler() {
  Dl_info own{};
  std::string folder;
  if (dladdr(reinterpret_cast<const void*>(&find_compiler), &own) != 0 && own.dli_fname) folder = own.dli_fname;
  folder.resize(folder.rfind('/') == std::string::npos ? 0 : folder.rfind('/') + 1);
  for (const std::string& place :
       {folder + runtime::vm::kCompilerLibrary, std::string(runtime::vm::kCompilerLibrary)}) {
    void* library = dlopen(place.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (!library) continue;
    void* specialize = dlsym(library, "tw_compiler_specialize");
    void* message = dlsym(library, "tw_compiler_last_error_message");
    if (specialize && message)
      return {reinterpret_cast<runtime::vm::SpecializeFunction>(specialize),
              reinterpret_cast<runtime::vm::MessageFunction>(message)};
    dlclose(library);
  }
  return {};
}

}  // namespace

Compiler find_compiler() {
  if (tw_compiler_specialize) return {tw_compiler_specialize, tw_compiler_last_error_message};
  static const Compiler found = open_compiler();
  return found;
}

}  // namespace tilewright::interpret
