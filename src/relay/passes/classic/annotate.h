// SPDX-License-Identifier: Apache-2.0
// Passes that only annotate.
// AnnotateSpans: every expression's span becomes its place in the module's own text ("GeneratedSource:3:7"), so that
// messages about generated modules can point somewhere. Model node names are lost by that; it is not in the default
// pipeline.
// AnnotateMemoryScope: calls of fused functions whose results a texture could hold would be marked on devices with
// textures. The targets here have one kind of memory, so the module is unchanged.
// Requires: typed module.
// Ensures: an equal module.
// Test: tests/relay/passes/annotate_*.txt, tests/relay/passes_test.cc (AnnotateSpans)
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> annotate_spans(const Module& module, PassContext& context);
Result<Module> annotate_memory_scope(const Module& module, PassContext& context);
}  // namespace tilewright::relay
