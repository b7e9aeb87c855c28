// SPDX-License-Identifier: Apache-2.0
// Groups that need no kernel because their results can be windows of what is there: reshapes, concatenations and
// slices of the outermost dimension that matters.
#pragma once
#include "lower/graph.h"

namespace tilewright::lower {

Renaming renaming_of(const Graph& graph, const Group& group);

}  // namespace tilewright::lower
