// SPDX-License-Identifier: Apache-2.0
#include "relay/run_time_values.h"

#include <algorithm>

#include "relay/op.h"
#include "relay/ops/program/attrs_program.h"

namespace tilewright::relay {

bool has_run_time_values(const Module& module) {
  auto made_at_run_time = [](const Expr& e) {
    const auto* call = as<CallNode>(e);
    return call && (attrs_as<OnnxNodeAttrs>(call->attrs) || attrs_as<HostAttrs>(call->attrs));
  };
  for (const auto& [name, function] : module.functions) {
    const auto* f = as<FunctionNode>(function);
    if (f && f->attrs.count("input_kinds")) return true;
    const auto all = post_order(function, true);
    if (std::any_of(all.begin(), all.end(), made_at_run_time)) return true;
  }
  return false;
}

}  // namespace tilewright::relay
