// SPDX-License-Identifier: Apache-2.0
// Modules some of whose values have types that only a run has: results of onnx.node and vm.host, and what is computed
// from them. Their expressions are typed as far as they can be when they are made.
#pragma once
#include "relay/expr.h"

namespace tilewright::relay {

bool has_run_time_values(const Module& module);

}  // namespace tilewright::relay
