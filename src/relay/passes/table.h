// SPDX-License-Identifier: Apache-2.0
// Every graph pass, under its classic name where it has one.
#pragma once
#include "ir/pass.h"
#include "relay/expr.h"

namespace tilewright::relay {

std::span<const Pass<Module>> all_passes();
// How the runner prints, verifies and compares graph modules.
const PassLevel<Module>& pass_level();
// Runs named passes of the table; `user_passes` extend it (and take precedence over built-in passes of the same name).
Result<Module> run_passes(const Module& module, const Pipeline& pipeline, PassContext& context,
                          std::span<const Pass<Module>> user_passes = {});

}  // namespace tilewright::relay
