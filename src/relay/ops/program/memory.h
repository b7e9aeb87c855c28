// SPDX-License-Identifier: Apache-2.0
// Operators that write memory down in a program: their operands and results may be any values, and they have effects.
#pragma once
#include <string_view>

namespace tilewright::relay {

inline bool is_memory_op(std::string_view op) { return op.starts_with("memory.") || op == "vm.invoke_tvm_op"; }

}  // namespace tilewright::relay
