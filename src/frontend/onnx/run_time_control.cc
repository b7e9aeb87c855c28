// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/run_time_control.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "frontend/lets.h"
#include "frontend/onnx/graph_order.h"
#include "frontend/onnx/importer.h"
#include "relay/ops/program/attrs_program.h"

namespace tilewright::onnx {
namespace {

// A body is imported again until the types of its carried values reach a fixed point; at most so often.
constexpr int kMostImports = 4;

// The type of a value as a function's parameter. Sequences
// in one place may differ in type, so theirs is left open.
Type value_type(const Expr& e) { return as_tensor(e->type) ? e->type : incomplete_type(); }

Expr let(const Expr& var, const Expr& value, const Expr& body) { return make_node<relay::LetNode>(var, value, body); }

// Hides the value's type, for branches whose results have different types.
Expr untyped(NodeContext& c, const Expr& e) {
  Node identity;
  identity.op_type = "Identity";
  identity.inputs = identity.outputs = {"value"};
  return c.importer().defer(identity, {}, 13, {e}).at(0).expr;
}

// Collects bindings to be wrapped around an expression as lets, each value bound once.
class LetScope {
 public:
  explicit LetScope(NodeContext& c) : c_(c) {}

  Expr bound(const std::string& name, const Expr& e) { return lets_.bound(name, e); }
  Value bound(const std::string& name, const Value& v) {
    if (v.expr) return bound(name, v.expr);
    if (!v.sequence) return v;
    std::vector<Value> elements;
    for (const Value& element : *v.sequence) elements.push_back(bound(name, element));
    Value out;
    out.sequence = std::make_shared<const std::vector<Value>>(std::move(elements));
    return out;
  }
  // The values that the graph captures from surrounding scopes.
  std::map<std::string, Value> outside(const Graph& graph) {
    std::map<std::string, Value> out;
    std::vector<std::string> reads;
    for (const Node& n : graph.nodes) collect_reads(n, &reads);
    for (const auto& o : graph.outputs) reads.push_back(o.name);
    std::set<std::string> own;
    for (const auto& i : graph.inputs) own.insert(i.name);
    for (const auto& t : graph.initializers) own.insert(t.name);
    for (const std::string& name : reads) {
      const Value* v = own.count(name) || out.count(name) ? nullptr : c_.outer(name);
      if (!v) continue;
      auto known = named_.find(name);
      if (known == named_.end()) known = named_.emplace(name, bound(name, *v)).first;
      out.insert(*known);
    }
    return out;
  }
  Expr put(Expr e) const { return lets_.around(std::move(e)); }

 private:
  NodeContext& c_;
  frontend::Lets lets_;
  std::map<std::string, Value> named_;
};

Expr host(NodeContext& c, const char* function, const std::vector<Expr>& operands,
          std::vector<std::string> settings = {}) {
  return c.call("vm.host", operands, make_attrs<relay::HostAttrs>([&](auto& a) {
                  a.function = function;
                  a.settings = std::move(settings);
                }));
}

bool any_poisoned(const Values& values) {
  return std::any_of(values.begin(), values.end(), [](const Value& v) { return v.poisoned; });
}
Values poisoned(size_t count) {
  Value bad;
  bad.poisoned = true;
  return Values(count, bad);
}

Values fields_of(const Expr& e, size_t count) {
  if (count == 1) return {e};
  Values out;
  for (size_t i = 0; i < count; ++i) out.emplace_back(relay::make_get(e, static_cast<int64_t>(i)));
  return out;
}

// The type of the empty result of a loop without iterations.
std::vector<std::string> stack_settings(const ValueInfo& info) {
  const auto& t = info.type;
  if (!t.elem || !t.shape) return {};
  std::string shape = "shape=0";
  for (const auto& d : *t.shape) shape += format("x{}", d.value.value_or(0));
  return {"dtype=" + t.elem->str(), shape};
}

// A loop as a tail-recursive function: (step, go, carried..., lists...) -> (carried..., lists...).
struct RecursiveLoop {
  NodeContext& c;
  LetScope lets;
  const Graph& body;
  std::map<std::string, Value> outside;
  std::vector<Type> types = {};  // types of the carried values

  RecursiveLoop(NodeContext& context, const Graph& graph)
      : c(context), lets(context), body(graph), outside(lets.outside(graph)) {}

  // The results of one iteration: whether to continue (null: until the steps are used up), carried values, collected
  // values.
  struct StepResults {
    Expr go;
    Values carried, collected;
  };
  using Step = std::function<StepResults(const Expr& step, const Values& carried)>;

  // The carried values after the last iteration and one list per collected value; nothing if the body cannot be
  // imported.
  std::optional<std::vector<Expr>> run(const std::vector<Expr>& initial, size_t lists, const Expr& limit,
                                       const Expr& go_first, const Step& one_step) {
    for (const Expr& e : initial) types.push_back(value_type(e));
    const size_t known_unsupported = c.importer().unsupported_count();
    Expr function;
    for (int round = 0; round < kMostImports; ++round) {
      c.importer().forget_unsupported(known_unsupported);
      const bool last = round + 1 == kMostImports;
      if (last) types.assign(types.size(), incomplete_type());
      bool same = true;
      function = once(lists, limit, one_step, &same);
      if (!function) return std::nullopt;
      if (same || last) break;
    }
    const Expr zero = c.constant_of(Tensor::scalar<int64_t>(kInt64, 0));
    std::vector<Expr> arguments = {zero, first_go(limit, go_first)};
    arguments.insert(arguments.end(), initial.begin(), initial.end());
    for (size_t i = 0; i < lists; ++i) arguments.push_back(host(c, "ref_create", {}));
    const Expr call = lets.put(let(self_, function, relay::call_function(self_, std::move(arguments))));
    std::vector<Expr> out;
    for (size_t i = 0; i < initial.size() + lists; ++i) out.push_back(relay::make_get(call, static_cast<int64_t>(i)));
    return out;
  }

 private:
  Expr below(const Expr& step, const Expr& limit) { return c.call("less", {step, limit}); }
  Expr scalar_bool(const Expr& e) {
    const auto* t = as_tensor(e->type);
    if (t && t->shape.size() == 1) return c.reshape(e, {});
    return e;
  }
  Expr both(const Expr& a, const Expr& b) {
    if (!a || !b) return a ? a : b;
    const Tensor* known = NodeContext::known(a);
    if (known && known->size() == 1) return known->at_int(0) ? b : a;
    return c.call("logical_and", {a, b});
  }
  Expr first_go(const Expr& limit, const Expr& go) {
    Expr more = limit ? below(c.constant_of(Tensor::scalar<int64_t>(kInt64, 0)), limit) : Expr();
    Expr out = both(go ? scalar_bool(go) : Expr(), more);
    return out ? out : c.scalar(1, kBool);
  }

  Expr once(size_t lists, const Expr& limit, const Step& one_step, bool* same) {
    const Expr step = relay::make_var("step", tensor_type({}, kInt64)),
               go = relay::make_var("go", tensor_type({}, kBool));
    std::vector<Expr> params = {step, go};
    std::vector<Type> results = types;
    Values carried;
    for (const Type& t : types) {
      params.push_back(relay::make_var("carried", t));
      carried.emplace_back(params.back());
    }
    for (size_t i = 0; i < lists; ++i) {
      params.push_back(relay::make_var("list", incomplete_type()));
      results.push_back(incomplete_type());
    }
    std::vector<Type> parameter_types;
    for (const Expr& p : params) parameter_types.push_back(p->type);
    self_ = relay::make_var("loop", func_type(parameter_types, tuple_type(results)));
    const StepResults made = one_step(step, carried);
    if (any_poisoned(made.carried) || any_poisoned(made.collected) || made.carried.size() != types.size() ||
        made.collected.size() != lists)
      return {};
    const Expr next = c.add(step, c.constant_of(Tensor::scalar<int64_t>(kInt64, 1)));
    Expr more = both(made.go ? scalar_bool(made.go) : Expr(), limit ? below(next, limit) : Expr());
    std::vector<Expr> arguments = {next, more ? more : c.scalar(1, kBool)}, last;
    for (size_t i = 0; i < types.size(); ++i) {
      arguments.push_back(c.importer().one_value(made.carried[i]));
      const Type common = frontend::common_type(types[i], value_type(arguments.back()));
      *same = *same && (type_equal(common, types[i]) || !is_complete(types[i]));
      types[i] = common;
    }
    for (size_t i = 0; i < lists; ++i)
      arguments.push_back(
          host(c, "list_append", {params[2 + types.size() + i], c.importer().one_value(made.collected[i])}));
    for (size_t i = 2; i < params.size(); ++i) last.push_back(params[i]);
    return relay::make_function(
        params, make_node<relay::IfNode>(go, relay::call_function(self_, arguments), relay::make_tuple(last)));
  }

  Expr self_;
};

}  // namespace

Values branch_at_run_time(NodeContext& c, const Graph& then_graph, const Graph& else_graph) {
  const size_t count = c.node().outputs.size();
  c.importer().is_program = true;
  LetScope lets(c);
  auto one = [&](const Graph& graph) -> std::vector<Expr> {
    Values made = c.inline_graph(graph, {}, lets.outside(graph));
    if (any_poisoned(made)) return {};
    if (made.size() < count) c.fail("its branch has fewer outputs than it");
    std::vector<Expr> fields;
    for (size_t i = 0; i < count; ++i) fields.push_back(c.importer().one_value(made[i]));
    return fields;
  };
  std::vector<Expr> first = one(then_graph), second = one(else_graph);
  if (first.size() != count || second.size() != count) return poisoned(count);
  for (size_t i = 0; i < count; ++i) {
    if (as_tensor(first[i]->type) && type_equal(first[i]->type, second[i]->type)) continue;
    first[i] = untyped(c, first[i]);
    second[i] = untyped(c, second[i]);
  }
  auto whole = [](const std::vector<Expr>& fields) {
    return fields.size() == 1 ? fields[0] : relay::make_tuple(fields);
  };
  const auto* tested = as_tensor(c.input(0)->type);
  const Expr condition = tested && tested->shape.size() == 1 ? c.reshape(c.input(0), {}) : c.input(0);
  return fields_of(lets.put(make_node<relay::IfNode>(condition, whole(first), whole(second))), count);
}

Values loop_at_run_time(NodeContext& c, const Graph& body) {
  c.importer().is_program = true;
  const size_t carried = c.input_count() > 2 ? c.input_count() - 2 : 0, lists = body.outputs.size() - 1 - carried;
  RecursiveLoop steps(c, body);
  std::vector<Expr> initial;
  for (size_t k = 0; k < carried; ++k)
    initial.push_back(steps.lets.bound("initial", c.importer().one_value(c.value(k + 2))));
  Expr limit;
  if (c.has(0)) {
    const auto* t = as_tensor(c.input(0)->type);
    limit = t && t->shape.size() == 1 ? c.reshape(c.input(0), {}) : c.input(0);
    limit = steps.lets.bound("limit", limit);
  }
  const auto made =
      steps.run(initial, lists, limit, c.has(1) ? c.input(1) : Expr(), [&](const Expr& step, const Values& state) {
        Values arguments = {step, c.scalar(1, kBool)};
        arguments.insert(arguments.end(), state.begin(), state.end());
        Values results = c.inline_graph(body, std::move(arguments), steps.outside);
        if (results.size() < 1 + carried || any_poisoned(results))
          return RecursiveLoop::StepResults{{}, poisoned(carried + 1), {}};
        const auto middle = results.begin() + 1 + static_cast<std::ptrdiff_t>(carried);
        return RecursiveLoop::StepResults{results[0].expr, Values(results.begin() + 1, middle),
                                          Values(middle, results.end())};
      });
  if (!made) return poisoned(c.node().outputs.size());
  Values out(made->begin(), made->begin() + static_cast<std::ptrdiff_t>(carried));
  for (size_t k = 0; k < lists; ++k)
    out.emplace_back(host(c, "list_stack", {(*made)[carried + k]}, stack_settings(body.outputs[1 + carried + k])));
  return out;
}

Values scan_at_run_time(NodeContext& c, const Graph& body, const ScanAxes& axes) {
  c.importer().is_program = true;
  const size_t slices = axes.in_axes.size(), collected = body.outputs.size() - axes.states;
  RecursiveLoop steps(c, body);
  std::vector<Expr> initial, sources;
  for (size_t k = 0; k < axes.states; ++k)
    initial.push_back(steps.lets.bound("initial", c.importer().one_value(c.value(k))));
  for (size_t k = 0; k < slices; ++k) sources.push_back(steps.lets.bound("source", c.input(axes.states + k)));
  const Expr limit =
      steps.lets.bound("limit", host(c, "dimension", {sources.at(0)}, {format("axis={}", axes.in_axes[0])}));
  const auto made = steps.run(initial, collected, limit, {}, [&](const Expr& step, const Values& state) {
    Values arguments = state;
    for (size_t k = 0; k < slices; ++k)
      arguments.emplace_back(host(c, "element", {sources[k], step},
                                  {format("axis={}", axes.in_axes[k]), format("reverse={}", axes.in_back[k])}));
    Values results = c.inline_graph(body, std::move(arguments), steps.outside);
    if (results.size() < axes.states || any_poisoned(results))
      return RecursiveLoop::StepResults{{}, poisoned(axes.states + 1), {}};
    const auto middle = results.begin() + static_cast<std::ptrdiff_t>(axes.states);
    return RecursiveLoop::StepResults{{}, Values(results.begin(), middle), Values(middle, results.end())};
  });
  if (!made) return poisoned(c.node().outputs.size());
  Values out(made->begin(), made->begin() + static_cast<std::ptrdiff_t>(axes.states));
  for (size_t k = 0; k < collected; ++k) {
    auto settings = stack_settings(body.outputs[axes.states + k]);
    settings.push_back(format("axis={}", axes.out_axes[k]));
    settings.push_back(format("reverse={}", axes.out_back[k]));
    out.emplace_back(host(c, "list_stack", {(*made)[axes.states + k]}, std::move(settings)));
  }
  return out;
}

Values map_at_run_time(NodeContext& c, const Graph& body) {
  c.importer().is_program = true;
  if (c.input_count() == 0 || body.inputs.size() != c.input_count() || body.outputs.size() != c.node().outputs.size())
    c.fail("its body does not fit it");
  RecursiveLoop steps(c, body);
  std::vector<Expr> sources;
  for (size_t k = 0; k < c.input_count(); ++k)
    sources.push_back(steps.lets.bound("source", c.importer().one_value(c.value(k))));
  const Expr limit = steps.lets.bound("limit", host(c, "SequenceLength", {sources[0]}));
  const auto made = steps.run({}, body.outputs.size(), limit, {}, [&](const Expr& step, const Values&) {
    Values items;
    for (const Expr& source : sources) items.emplace_back(host(c, "sequence_item", {source, step}));
    Values results = c.inline_graph(body, std::move(items), steps.outside);
    if (any_poisoned(results)) return RecursiveLoop::StepResults{{}, poisoned(1), {}};
    return RecursiveLoop::StepResults{{}, {}, std::move(results)};
  });
  if (!made) return poisoned(body.outputs.size());
  Values out;
  for (const Expr& list : *made) out.emplace_back(host(c, "list_sequence", {list}));
  return out;
}

}  // namespace tilewright::onnx
