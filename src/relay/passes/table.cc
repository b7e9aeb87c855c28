// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/table.h"

#include "relay/passes/fuse_ops.h"
#include "relay/text.h"
#include "relay/verifier.h"

namespace tilewright::relay {

std::span<const Pass<Module>> all_passes() {
  static const std::vector<Pass<Module>> kPasses = {
      {{"FuseOps", 0, "groups operators into the functions that become kernels", true}, fuse_ops},
  };
  return kPasses;
}

const PassLevel<Module>& pass_level() {
  static const PassLevel<Module> kLevel = {
      [](const Module& m) { return print_module(m).text; },
      [](const Module& after, const Module& before) { return verify_module(after, &before); },
      [](const Module& a, const Module& b) { return a.functions == b.functions && a.metadata == b.metadata; },
  };
  return kLevel;
}

Result<Module> run_passes(const Module& module, const Pipeline& pipeline, PassContext& context,
                          std::span<const Pass<Module>> user_passes) {
  if (user_passes.empty()) return run_passes<Module>(module, pipeline, all_passes(), pass_level(), context);
  std::vector<Pass<Module>> table(user_passes.begin(), user_passes.end());
  table.insert(table.end(), all_passes().begin(), all_passes().end());
  return run_passes<Module>(module, pipeline, table, pass_level(), context);
}

}  // namespace tilewright::relay
