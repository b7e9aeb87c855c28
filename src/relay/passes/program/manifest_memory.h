// SPDX-License-Identifier: Apache-2.0
// ManifestAlloc: makes allocation explicit: fused functions write their results to allocated tensors.
// What: let y = fn(...)(x) -> let storage = memory.alloc_storage(..); let tensor = memory.alloc_tensor(storage, ..);
// let _ = vm.invoke_tvm_op(fn, (x,), (tensor,)); let y = tensor. Functions that only reshape become vm.reshape_tensor.
// Results of free sizes stay calls.
// ManifestLifetimes: let _ = memory.kill(y) behind the last use of an operator's result, unless it is part of the
// function's; aliases extend its lifetime.
// ElideMemory: reverses both.
// Requires: bindings (ToANormalForm); fused functions where they are called, bound or global.
// Ensures: the same results.
// Why here: not in the default pipeline, which plans memory when the graph is lowered; ElideMemory begins it, so that
// such programs compile.
// Test: tests/relay/passes/manifest_*.txt, elide_memory.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> manifest_alloc(const Module& module, PassContext& context);
Result<Module> manifest_lifetimes(const Module& module, PassContext& context);
Result<Module> elide_memory(const Module& module, PassContext& context);
}  // namespace tilewright::relay
