// SPDX-License-Identifier: Apache-2.0
// Control flow: a condition known at import selects one branch; one known only at run time becomes Relay's `if`, and a
// loop a tail-recursive function.
#include "base/format.h"
#include "frontend/lets.h"
#include "frontend/torch/graphs.h"
#include "frontend/torch/run_time_control.h"

namespace tilewright::torch {
namespace control {
namespace {

constexpr int64_t kMostSteps = 4096;

bool any_poisoned(const Values& values) {
  for (const Value& v : values)
    if (v.poisoned || (v.list && any_poisoned(*v.list))) return true;
  return false;
}
Values poisoned(size_t count) {
  Value bad;
  bad.poisoned = true;
  return Values(std::max<size_t>(count, 1), bad);
}

using frontend::Lets;

Value bound(Lets& lets, const Value& v) {
  Value out = v;
  if (v.expr) out.expr = lets.bound("outside", v.expr);
  return out;
}
Values bound(Lets& lets, const Values& values) {
  Values out;
  for (const Value& v : values) out.push_back(bound(lets, v));
  return out;
}

std::vector<Expr> tensors_of(NodeContext& c, const Values& values) {
  std::vector<Expr> out;
  for (const Value& v : values) {
    if (!v.expr) c.unsupported("a result that is no tensor");
    out.push_back(v.expr);
  }
  return out;
}
Expr whole(const std::vector<Expr>& fields) { return fields.size() == 1 ? fields[0] : relay::make_tuple(fields); }
Values fields_of(const Expr& e, size_t count) {
  if (count == 1) return {e};
  Values out;
  for (size_t i = 0; i < count; ++i) out.emplace_back(relay::make_get(e, static_cast<int64_t>(i)));
  return out;
}
Values cond(NodeContext& c) {
  Importer& importer = importer_of(c);
  const Value& predicate = c.positional(0);
  const Graph &then_graph = *graph_of(c, c.positional(1)), &else_graph = *graph_of(c, c.positional(2));
  const Values operands = c.argument_count() > 3 ? operands_of(c, 3) : Values();
  const bool decided = !importer.programs() || NodeContext::known(predicate.expr);
  if (decided) {
    const bool taken = c.constant(predicate.expr, "condition").at_int(0) != 0;
    return importer.import_graph(taken ? then_graph : else_graph, operands);
  }
  Lets lets;
  const Values arguments = bound(lets, operands);
  const Values first = importer.import_graph(then_graph, arguments);
  const Values second = importer.import_graph(else_graph, arguments);
  if (any_poisoned(first) || any_poisoned(second)) return poisoned(first.size());
  std::vector<Expr> a = tensors_of(c, first), b = tensors_of(c, second);
  if (a.size() != b.size() || a.empty()) c.fail("its branches have other results");
  agree_on_types(c, &a, &b);
  Expr branch = make_node<relay::IfNode>(truth_of(c, predicate.expr), whole(a), whole(b));
  return fields_of(lets.around(branch), a.size());
}

Values while_loop(NodeContext& c) {
  Importer& importer = importer_of(c);
  const Graph &test = *graph_of(c, c.positional(0)), &body = *graph_of(c, c.positional(1));
  const Values initial = operands_of(c, 2), more = c.argument_count() > 3 ? operands_of(c, 3) : Values();
  if (!importer.programs())
    throw ConversionFailure{Diagnostic(ErrorCode::kUnsupportedModel, "how often it runs is known only at run time", "",
                                       "compile it to a shared library, which may be a program (docs/vm.md)")};
  Lets lets;
  const Values carried = bound(lets, initial), outside = bound(lets, more);
  std::vector<Expr> params;
  std::vector<Type> types;
  Values inside;
  for (const Value& v : carried) {
    if (!v.expr) c.unsupported("a carried value that is no tensor");
    params.push_back(relay::make_var("carried", v.expr->type));
    types.push_back(v.expr->type);
    Value param = v;
    param.expr = params.back();
    inside.push_back(param);
  }
  if (params.empty()) c.fail("it carries nothing");
  Values arguments = inside;
  arguments.insert(arguments.end(), outside.begin(), outside.end());
  const Type result = types.size() == 1 ? types[0] : tuple_type(types);
  const Expr self = relay::make_var("loop", func_type(types, result));
  const Values goes_on = importer.import_graph(test, arguments), made = importer.import_graph(body, arguments);
  if (any_poisoned(goes_on) || any_poisoned(made)) return poisoned(types.size());
  const std::vector<Expr> next = tensors_of(c, made);
  if (goes_on.size() != 1 || !goes_on[0].expr || next.size() != types.size()) c.fail("its graphs do not fit");
  for (size_t i = 0; i < next.size(); ++i)
    if (!type_equal(next[i]->type, types[i])) c.unsupported("a carried value that changes its type");
  const Expr step =
      make_node<relay::IfNode>(truth_of(c, goes_on[0].expr), relay::call_function(self, next), whole(params));
  const Expr call = make_node<relay::LetNode>(self, relay::make_function(params, step),
                                              relay::call_function(self, tensors_of(c, carried)));
  return fields_of(lets.around(call), types.size());
}

// TorchScript's forms: their graphs see the surrounding names, and are the last arguments.
bool is_decided(NodeContext& c, const Expr& condition) {
  return !importer_of(c).programs() || NodeContext::known(condition);
}
Values script_if(NodeContext& c) {
  Importer& importer = importer_of(c);
  const Expr condition = c.positional(0).expr;
  if (!condition) c.fail_type("its condition is no truth value");
  if (!is_decided(c, condition))
    return branch_at_run_time(c, condition, *graph_of(c, c.positional(1)), *graph_of(c, c.positional(2)));
  const bool taken = c.constant(condition, "condition").at_int(0) != 0;
  return importer.import_graph(*graph_of(c, c.positional(taken ? 1 : 2)), {}, importer.scope());
}
// Iterations are unrolled as long as their conditions are known at import.
Values script_loop(NodeContext& c) {
  Importer& importer = importer_of(c);
  const Scope* around = importer.scope();
  const size_t last = c.argument_count() - 1;
  const Graph& body = *graph_of(c, c.positional(last));
  const Expr limit = c.positional(0).expr;
  Expr goes_on = c.positional(1).expr;
  if (!limit || !goes_on) c.fail_type("its number of steps is no number");
  const bool limited = is_decided(c, limit);
  const int64_t most = limited ? c.integer_of(c.positional(0), "trip count") : 0;
  Values carried;
  for (size_t i = 2; i < last; ++i) carried.push_back(c.positional(i));
  for (int64_t step = 0; !limited || step < most; ++step) {
    if (!limited || !is_decided(c, goes_on))
      return loop_at_run_time(c, {body, limited && most == INT64_MAX ? Expr() : limit, goes_on, step}, carried);
    if (c.constant(goes_on, "condition").at_int(0) == 0) break;
    if (step >= kMostSteps) c.unsupported(format("more than {} steps", kMostSteps));
    Values arguments = {Value::number(c.constant_of(Tensor::scalar<int64_t>(kInt64, step)))};
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    Values made = importer.import_graph(body, std::move(arguments), around);
    if (any_poisoned(made) || made.empty() || !made[0].expr) return poisoned(carried.size());
    goes_on = made[0].expr;
    carried.assign(made.begin() + 1, made.end());
  }
  return carried;
}

constexpr ConverterEntry kTable[] = {
    {"higher_order.cond", cond},
    {"higher_order.while_loop", while_loop},
    {"prim.If", script_if},
    {"prim.Loop", script_loop},
};

}  // namespace
}  // namespace control

std::span<const ConverterEntry> control_converters() { return control::kTable; }

}  // namespace tilewright::torch
