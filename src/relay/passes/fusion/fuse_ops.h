// SPDX-License-Identifier: Apache-2.0
// FuseOps: groups operator calls into functions with Primitive=1, each of which becomes one kernel.
// What: groups operators by the classic rules (fusion_groups.h) and outlines each group; a group's inputs become
// parameters (p0, p1 ...), scalar constants stay inside; a function of reshapes only gets relay.reshape_only=1.
// Requires: typed module, no Primitive function of an earlier run (run DefuseOps first).
// Ensures: each remaining call of an operator is inside a Primitive function; results are unchanged.
// Why here: after every pass that rewrites operators, before lowering. At level 0 every group has one operator.
// Options: relay.FuseOps.max_depth, relay.FuseOps.in_place, relay.FuseOps.link_params.
// Test: tests/relay/passes/fuse_ops*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> fuse_ops(const Module& module, PassContext& context);
}  // namespace tilewright::relay
