// SPDX-License-Identifier: Apache-2.0
// What converters of operators on graphs read of their arguments.
#pragma once
#include "base/format.h"
#include "frontend/torch/importer.h"

namespace tilewright::torch {

inline Importer& importer_of(NodeContext& c) {
  if (!c.place().torch) c.fail_type("control flow inside of a region");
  return *c.place().torch;
}
inline const std::shared_ptr<const Graph>& graph_of(NodeContext& c, const Value& v) {
  if (!v.graph) c.fail_type("an argument is not a graph");
  return v.graph;
}
// Copies of the operands of a branch or step, so that in-place changes inside stay inside.
inline Values operands_of(NodeContext& c, size_t position) {
  const Value& v = c.positional(position);
  if (!v.list) c.fail_type(format("its argument {} is not a list", position));
  Values out = *v.list;
  for (Value& item : out) item.view = nullptr;
  return out;
}

}  // namespace tilewright::torch
