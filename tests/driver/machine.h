// SPDX-License-Identifier: Apache-2.0
// What the machine of the tests can run.
#pragma once
#include <initializer_list>
#include <vector>

#include "codegen/codegen.h"
#include "runtime/cpu.h"

namespace tilewright::driver::testing {

// Those of the list whose code this machine can run.
inline std::vector<const char*> runnable(std::initializer_list<const char*> targets) {
  std::vector<const char*> out;
  for (const char* name : targets) {
    const Target target = codegen::resolve_target(parse_target(name).value()).value();
    if (runtime::missing_cpu_features(target.cpu_features).empty()) out.push_back(name);
  }
  return out;
}

}  // namespace tilewright::driver::testing
