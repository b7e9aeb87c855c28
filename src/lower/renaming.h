// SPDX-License-Identifier: Apache-2.0
// Groups that need no kernel, because their results can be windows of existing memory: reshapes, and concatenations and
// slices along the outermost dimension with extent > 1.
#pragma once
#include "lower/graph.h"

namespace tilewright::lower {

Renaming renaming_of(const Graph& graph, const Group& group);

}  // namespace tilewright::lower
