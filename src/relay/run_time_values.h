// SPDX-License-Identifier: Apache-2.0
// Modules with values whose types are known only at run time: results of onnx.node and vm.host, and what is computed
// from them. Their expressions are typed as far as possible when they are built.
#pragma once
#include "relay/expr.h"

namespace tilewright::relay {

bool has_run_time_values(const Module& module);

}  // namespace tilewright::relay
