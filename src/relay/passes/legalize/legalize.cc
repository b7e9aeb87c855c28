// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/legalize/legalize.h"

#include "relay/ops/attrs.h"
#include "relay/passes/layout/convert_layout.h"
#include "relay/passes/legalize/legalize_rules.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

bool has_other_layouts(const Module& module) {
  for (const auto& [name, function] : module.functions)
    for (const Expr& e : post_order(function))
      if (const auto* conv = as_call(e, "nn.conv2d")) {
        const auto* attrs = attrs_as<Conv2DAttrs>(conv->attrs);
        if (attrs->data_layout == "NHWC" || attrs->kernel_layout != "OIHW") return true;
      }
  return false;
}

}  // namespace

Result<Module> legalize(const Module& module, PassContext&) {
  Module usual = module;
  // Convert whole islands first, so that transposes are needed at their borders only.
  if (has_other_layouts(module)) usual = TW_TRY(convert_layout(module, {{"nn.conv2d", {"NCHW", "OIHW"}}}));
  auto legal = [](const Expr&, const Expr& e) {
    Expr out = in_usual_layout(e);
    return out == e ? legalize_operator(e) : out;
  };
  return rewrite_module(usual, legal);
}

}  // namespace tilewright::relay
