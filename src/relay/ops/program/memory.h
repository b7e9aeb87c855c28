// SPDX-License-Identifier: Apache-2.0
// Explicit memory operators of programs: operands and results may be any values, and they have side effects.
#pragma once
#include <string_view>

namespace tilewright::relay {

inline bool is_memory_op(std::string_view op) { return op.starts_with("memory.") || op == "vm.invoke_tvm_op"; }

}  // namespace tilewright::relay
