// SPDX-License-Identifier: Apache-2.0
// The default pipeline, from an imported module to a fused one.
#pragma once
#include "relay/passes/table.h"

namespace tilewright::relay {

// The passes in order; the context's level, required and disabled passes decide which of them run.
const Pipeline& default_pipeline();

// Runs the default pipeline for `target`, which stays in the context. Errors: UnknownPass when the context requires or
// disables a pass that is not in the table; a pass's own error; VerifyFailed.
Result<Module> optimize(const Module& module, PassContext& context, const Target& target,
                        std::span<const Pass<Module>> user_passes = {});

}  // namespace tilewright::relay
