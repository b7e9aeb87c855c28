// SPDX-License-Identifier: Apache-2.0
// Control flow: a condition known at import selects one branch; one known only at run time becomes Relay's `if`, and a
// loop a tail-recursive function.
#include <algorithm>

#include "base/format.h"
#include "frontend/lets.h"
#include "frontend/torch/graphs.h"
#include "frontend/torch/run_time_control.h"
#include "frontend/torch/wait.h"

namespace tilewright::torch {
namespace control {
namespace {

constexpr int64_t kMostSteps = 4096;
// A loop's graphs are imported again until the types of its carried values reach a fixed point; at most so often.
constexpr int kMostImports = 4;

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

// A while_loop as a function that calls itself, which takes and gives the carried values.
struct CarriedLoop {
  NodeContext& c;
  const Graph &test, &body;
  Values outside;
  std::vector<Type> types;  // of the carried values
  Expr self, function;

  // Imports test and body for carried values of these types, whose common types with the next step's become `types`.
  // False where that cannot be.
  bool import(const Values& carried) {
    Importer& importer = importer_of(c);
    std::vector<Expr> params;
    Values arguments;
    for (size_t i = 0; i < carried.size(); ++i) {
      params.push_back(relay::make_var("carried", types[i]));
      Value param = carried[i];
      param.like = known_of(carried[i]);
      param.expr = params.back();
      arguments.push_back(param);
    }
    arguments.insert(arguments.end(), outside.begin(), outside.end());
    self = relay::make_var("loop", func_type(types, types.size() == 1 ? types[0] : tuple_type(types)));
    const Values goes_on = importer.import_graph(test, arguments), made = importer.import_graph(body, arguments);
    if (any_poisoned(goes_on) || any_poisoned(made)) return false;
    const std::vector<Expr> next = tensors_of(c, made);
    if (goes_on.size() != 1 || !goes_on[0].expr || next.size() != types.size()) c.fail("its graphs do not fit");
    const Expr again = relay::call_function(self, next);
    function =
        relay::make_function(params, make_node<relay::IfNode>(truth_of(c, goes_on[0].expr), again, whole(params)));
    for (size_t i = 0; i < next.size(); ++i) types[i] = frontend::common_type(types[i], next[i]->type);
    return true;
  }
};

Values while_loop(NodeContext& c) {
  const Graph &test = *graph_of(c, c.positional(0)), &body = *graph_of(c, c.positional(1));
  const Values initial = operands_of(c, 2), more = c.argument_count() > 3 ? operands_of(c, 3) : Values();
  if (!importer_of(c).programs())
    throw ConversionFailure{Diagnostic(ErrorCode::kUnsupportedModel, "how often it runs is known only at run time", "",
                                       "compile it to a shared library, which may be a program (docs/vm.md)")};
  Lets lets;
  const Values carried = bound(lets, initial);
  CarriedLoop loop{c, test, body, bound(lets, more), {}, {}, {}};
  for (const Expr& e : tensors_of(c, carried)) loop.types.push_back(e->type);
  if (carried.empty()) c.fail("it carries nothing");
  // With free sizes less may be known of a step's result than of what it begins with.
  for (int round = 0;; ++round) {
    const std::vector<Type> before = loop.types;
    if (!loop.import(carried)) return poisoned(carried.size());
    if (round == kMostImports || std::equal(before.begin(), before.end(), loop.types.begin(), type_equal)) break;
    if (round + 1 == kMostImports) loop.types.assign(carried.size(), incomplete_type());
  }
  const Expr call =
      make_node<relay::LetNode>(loop.self, loop.function, relay::call_function(loop.self, tensors_of(c, carried)));
  return fields_of(lets.around(call), carried.size());
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
