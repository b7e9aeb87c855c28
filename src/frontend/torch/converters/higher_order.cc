// SPDX-License-Identifier: Apache-2.0
// Higher-order operators that are written by others: flex_attention by its scores, `scan` and `map` by a loop over
// slices, which is unrolled where its length is known and becomes a program's loop elsewhere.
#include <cmath>

#include "frontend/torch/graphs.h"
#include "frontend/torch/wait.h"

namespace tilewright::torch {
namespace higher_order {
namespace {

// Nothing where there is no such argument.
Values items(NodeContext& c, size_t position) {
  const bool given = position < c.argument_count() && c.positional(position).kind != Value::kNothing;
  return given ? operands_of(c, position) : Values();
}

// ---- loops over slices

Argument named(std::string name) {
  Argument a;
  a.kind = Argument::kValue;
  a.text = std::move(name);
  return a;
}
Argument number(int64_t i) {
  Argument a;
  a.kind = Argument::kInt;
  a.integer = i;
  return a;
}
Argument truth(bool b) {
  Argument a = number(b);
  a.kind = Argument::kBool;
  return a;
}
std::string numbered(const char* what, size_t i) { return format("{}{}", what, i); }

// The operators of one such loop; `carried` values go from step to step, `sliced` ones are read row by row.
struct Loop {
  std::shared_ptr<const Graph> body;
  size_t carried = 0, sliced = 0, more = 0;
  bool keeps_first = false;  // the lists of what is made begin with the first carried values
};

// One step: (step, carried...) -> (true, carried...). What else the body makes is appended to the lists around it.
std::shared_ptr<const Graph> step_of(const Loop& loop, const std::string& label) {
  auto step = std::make_shared<Graph>();
  step->inputs = {named("step")};
  Node body;
  body.target = "higher_order.wrap_with_set_grad_enabled";
  body.name = label;
  Argument graph;
  graph.kind = Argument::kGraph;
  graph.graph = loop.body;
  body.inputs = {{"", truth(false)}, {"", graph}};
  for (size_t i = 0; i < loop.carried; ++i) {
    step->inputs.push_back(named(numbered("carried", i)));
    body.inputs.push_back({"", named(numbered("carried", i))});
  }
  for (size_t i = 0; i < loop.sliced; ++i) {
    const std::string row = numbered("row", i);
    step->nodes.push_back({"aten.select.int",
                           label,
                           {{"self", named(numbered("sliced", i))}, {"dim", number(0)}, {"index", named("step")}},
                           {named(row)}});
    body.inputs.push_back({"", named(row)});
  }
  for (size_t i = 0; i < loop.more; ++i) body.inputs.push_back({"", named(numbered("more", i))});
  const size_t results = loop.body->outputs.size();
  for (size_t i = 0; i < results; ++i) body.outputs.push_back(named(numbered("made", i)));
  step->nodes.push_back(std::move(body));
  step->outputs = {truth(true)};
  for (size_t i = 0; i < loop.carried; ++i) step->outputs.push_back(named(numbered("made", i)));
  for (size_t i = loop.carried; i < results; ++i)
    step->nodes.push_back(
        {"aten.append.t", label, {{"self", named(numbered("list", i))}, {"el", named(numbered("made", i))}}, {}});
  return step;
}

// The whole loop, as TorchScript would have it; its results are the carried values, and what was appended, stacked.
std::shared_ptr<const Graph> graph_of_loop(const Loop& loop, const std::string& label) {
  auto all = std::make_shared<Graph>();
  const size_t results = loop.body->outputs.size();
  for (size_t i = 0; i < loop.carried; ++i) all->inputs.push_back(named(numbered("first", i)));
  for (size_t i = 0; i < loop.sliced; ++i) all->inputs.push_back(named(numbered("sliced", i)));
  for (size_t i = 0; i < loop.more; ++i) all->inputs.push_back(named(numbered("more", i)));
  all->nodes.push_back({"aten.size.int", label, {{"self", named("sliced0")}, {"dim", number(0)}}, {named("length")}});
  for (size_t i = loop.carried; i < results; ++i) {
    Node list{"prim.ListConstruct", label, {}, {named(numbered("list", i))}};
    if (loop.keeps_first) list.inputs.push_back({"", named(numbered("first", i - loop.carried))});
    all->nodes.push_back(std::move(list));
  }
  Node steps;
  steps.target = "prim.Loop";
  steps.name = label;
  steps.inputs = {{"", named("length")}, {"", truth(true)}};
  for (size_t i = 0; i < loop.carried; ++i) steps.inputs.push_back({"", named(numbered("first", i))});
  Argument body;
  body.kind = Argument::kGraph;
  body.graph = step_of(loop, label);
  steps.inputs.push_back({"", body});
  for (size_t i = 0; i < loop.carried; ++i) {
    steps.outputs.push_back(named(numbered("last", i)));
    all->outputs.push_back(named(numbered("last", i)));
  }
  all->nodes.push_back(std::move(steps));
  for (size_t i = loop.carried; i < results; ++i) {
    all->nodes.push_back({"aten.stack.default",
                          label,
                          {{"tensors", named(numbered("list", i))}, {"dim", number(0)}},
                          {named(numbered("stacked", i))}});
    all->outputs.push_back(named(numbered("stacked", i)));
  }
  return all;
}

Values looped(NodeContext& c, std::shared_ptr<const Graph> body, Values carried, const Values& sliced,
              const Values& more, bool keeps_first = false) {
  if (sliced.empty()) c.unsupported("a loop over nothing");
  const Loop loop{std::move(body), carried.size(), sliced.size(), more.size(), keeps_first};
  if (loop.body->outputs.size() < carried.size()) c.fail("its graph does not fit it");
  Values arguments = std::move(carried);
  arguments.insert(arguments.end(), sliced.begin(), sliced.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  return importer_of(c).import_made(graph_of_loop(loop, c.node().name), std::move(arguments));
}

// (graph, carried values, sliced tensors, further arguments)
Values scan(NodeContext& c) { return looped(c, graph_of(c, c.positional(0)), items(c, 1), items(c, 2), items(c, 3)); }
// (graph, sliced tensors, further arguments)
Values map(NodeContext& c) { return looped(c, graph_of(c, c.positional(0)), {}, items(c, 1), items(c, 2)); }

// (graph of elements, tensors, further arguments): rows 0 to i of the tensors combined, for each i. By doubling where
// their number is known: after step k each row is combined with the 2^k - 1 before it. By a loop elsewhere.
Values associative_scan(NodeContext& c) {
  Importer& importer = importer_of(c);
  const std::shared_ptr<const Graph> combine = graph_of(c, c.positional(0));
  Values all = items(c, 1);
  const Values more = items(c, 2);
  if (all.empty() || combine->outputs.size() != all.size()) c.fail("its graph does not fit it");
  auto made = [&](const char* target, const NamedValues& arguments) {
    return importer.made_by(target, c.node(), arguments);
  };
  auto rows = [&](const Value& v, const Value& from, const Value& to) {
    return made("aten.slice.Tensor", {{"self", v}, {"dim", whole(0)}, {"start", from}, {"end", to}});
  };
  const auto like = known_of(all[0]);
  const int64_t length = like && !like->sizes.empty() ? like->sizes[0] : -1;
  if (length < 0) {
    auto step = std::make_shared<Graph>(*combine);
    step->outputs.insert(step->outputs.end(), combine->outputs.begin(), combine->outputs.end());
    Values first, others;
    for (const Value& v : all) {
      first.push_back(made("aten.select.int", {{"self", v}, {"dim", whole(0)}, {"index", whole(0)}}));
      others.push_back(rows(v, whole(1), whole(INT64_MAX)));
    }
    Values out = looped(c, std::move(step), std::move(first), others, more, true);
    out.erase(out.begin(), out.begin() + static_cast<int64_t>(all.size()));
    return out;
  }
  for (int64_t apart = 1; apart < length; apart *= 2) {
    Values arguments;
    for (const Value& v : all) arguments.push_back(rows(v, whole(0), whole(length - apart)));
    for (const Value& v : all) arguments.push_back(rows(v, whole(apart), whole(length)));
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Values later = importer.import_made(combine, std::move(arguments));
    for (size_t i = 0; i < all.size(); ++i)
      all[i] =
          made("aten.cat.default",
               {{"tensors", Value::of_list({rows(all[i], whole(0), whole(apart)), later.at(i)})}, {"dim", whole(0)}});
  }
  return all;
}

// ---- attention with scores changed by a graph

class FlexAttention {
 public:
  explicit FlexAttention(NodeContext& c) : c_(c), importer_(importer_of(c)) {}

  // (query, key, value, graph of scores, (..., graph of the mask), scale, options, buffers of either graph)
  Values run() {
    const Value query = c_.positional(0);
    const Value key = repeated(c_.positional(1), query), value = repeated(c_.positional(2), query);
    const auto like = known_of(query);
    if (!like || like->rank != 4) c_.fail_type("its query is not of rank 4");
    const DataType wide = like->dtype == kFloat64 ? kFloat64 : kFloat32;
    Value scores = made(
        "aten.matmul.default",
        {{"self", cast(query, wide)},
         {"other", made("aten.transpose.int", {{"self", cast(key, wide)}, {"dim0", whole(-2)}, {"dim1", whole(-1)}})}});
    scores = made("aten.mul.Tensor", {{"self", scores}, {"other", c_.positional(5)}});
    Values places;
    for (int64_t axis = 0; axis < 4; ++axis) places.push_back(counted(scores, axis));
    const Values mask_parts = items(c_, 4);
    if (mask_parts.empty()) c_.fail("it has no mask");
    const Value changed = by_graph(c_.positional(3), {scores}, places, items(c_, 7));
    const Value kept = by_graph(mask_parts.back(), {}, places, items(c_, 8));
    const Value nothing = Value::number(c_.scalar(-INFINITY, kFloat64));
    const Value masked = made("aten.where.ScalarOther", {{"condition", kept}, {"self", changed}, {"other", nothing}});
    const Value weights =
        made("aten._safe_softmax.default",
             {{"self", made("aten.expand_as.default", {{"self", masked}, {"other", scores}})}, {"dim", whole(-1)}});
    return {made("aten.matmul.default", {{"self", cast(weights, like->dtype)}, {"other", cast(value, like->dtype)}})};
  }

 private:
  Value made(const char* target, const NamedValues& arguments) {
    return importer_.made_by(target, c_.node(), arguments);
  }
  Value cast(const Value& v, DataType dtype) {
    const auto like = known_of(v);
    if (like && like->dtype == dtype) return v;
    return made("aten.to.dtype", {{"self", v}, {"dtype", Value::of_dtype(dtype)}});
  }
  // Heads of keys that several of the query's share.
  Value repeated(const Value& v, const Value& query) {
    const auto own = known_of(v), wanted = known_of(query);
    if (!own || !wanted || own->sizes.size() != 4 || wanted->sizes.size() != 4) return v;
    const int64_t heads = own->sizes[1], all = wanted->sizes[1];
    if (heads < 1 || all <= heads) return v;
    return made("aten.repeat_interleave.self_int", {{"self", v}, {"repeats", whole(all / heads)}, {"dim", whole(1)}});
  }
  // 0, 1, ... along one axis of the scores.
  Value counted(const Value& scores, int64_t axis) {
    const Value size = made("aten.size.int", {{"self", scores}, {"dim", whole(axis)}});
    Value count = made("aten.arange.default", {{"end", size}});
    for (int64_t i = 0; i < 3 - axis; ++i)
      count = made("aten.unsqueeze.default", {{"self", count}, {"dim", whole(-1)}});
    return count;
  }
  // The graph is of one score: its operators, which are those of elements, are applied to all of them at once.
  Value by_graph(const Value& graph, Values arguments, const Values& places, const Values& buffers) {
    arguments.insert(arguments.end(), places.begin(), places.end());
    arguments.insert(arguments.end(), buffers.begin(), buffers.end());
    const Values out = importer_.import_made(graph_of(c_, graph), std::move(arguments));
    if (out.size() != 1) c_.fail("its graph has not one result");
    return out[0];
  }

  NodeContext& c_;
  Importer& importer_;
};
Values flex_attention(NodeContext& c) { return FlexAttention(c).run(); }

constexpr ConverterEntry kTable[] = {
    {"higher_order.scan", scan},
    {"higher_order.map_impl", map},
    {"higher_order.map", map},
    {"higher_order.associative_scan", associative_scan},
    {"higher_order.flex_attention", flex_attention},
};

}  // namespace
}  // namespace higher_order

std::span<const ConverterEntry> higher_order_converters() { return higher_order::kTable; }

}  // namespace tilewright::torch
