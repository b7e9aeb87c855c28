// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/classic/split_args.h"

#include <algorithm>

#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

constexpr ConfigKey<int64_t> kMaxArgs{"relay.SplitArgs.max_function_args", -1};

Expr split(const Expr& e, size_t limit) {
  const CallNode* join = as_call(e, "concatenate");
  const auto* tuple = join ? as<TupleNode>(join->args[0]) : nullptr;
  if (!tuple || tuple->fields.size() <= limit) return e;
  std::vector<Expr> fields = tuple->fields;
  // Each round replaces `limit` fields by one.
  while (fields.size() > limit) {
    std::vector<Expr> next;
    for (size_t at = 0; at < fields.size(); at += limit) {
      std::vector<Expr> part(fields.begin() + static_cast<int64_t>(at),
                             fields.begin() + static_cast<int64_t>(std::min(at + limit, fields.size())));
      if (part.size() == 1)
        next.push_back(part[0]);
      else
        next.push_back(call("annotation.stop_fusion",
                            {call("concatenate", {make_tuple(part, tuple->span)}, join->attrs, e->span)}, {}, e->span));
    }
    fields = std::move(next);
  }
  return call("concatenate", {make_tuple(std::move(fields), tuple->span)}, join->attrs, e->span);
}

}  // namespace

Result<Module> split_args(const Module& module, PassContext& context) {
  int64_t limit = context.get(kMaxArgs);
  if (limit < 0) return module;
  if (limit < 2)
    return Diagnostic(ErrorCode::kInvalidArgument, "relay.SplitArgs.max_function_args must be -1 or at least 2");
  return rewrite_module(module, [&](const Expr&, const Expr& e) { return split(e, static_cast<size_t>(limit)); });
}

}  // namespace tilewright::relay
