// SPDX-License-Identifier: Apache-2.0
// The dataflow pattern language: patterns, match, rewrite, partition.
#include "relay/dataflow_pattern.h"

#include "relay.h"
#include "relay/infer_type.h"
#include "relay/structural.h"

namespace tilewright::python {
namespace {

using namespace relay;

std::vector<DFPattern> patterns_of(nb::handle sequence) {
  std::vector<DFPattern> out;
  for (nb::handle p : sequence) out.push_back(nb::cast<const DFPattern&>(p));
  return out;
}

// The expressions matched by each pattern of the tree.
nb::dict found_by_pattern(const DFPattern& root, const MatchMap& found) {
  nb::dict out;
  for (const DFPattern& p : post_order(root)) out[nb::cast(p)] = wrap_all(found.all(p));
  return out;
}

// Infers types where possible; if a callback's graph is invalid, gaps remain.
Result<Expr> typed(const Expr& graph, const Module& module) {
  Module whole = module;
  const bool is_function = as<FunctionNode>(graph);
  whole.functions["main"] = is_function ? graph : make_function(free_variables(graph), graph);
  PassContext context;
  Module done = TW_TRY(infer_type(whole, context));
  return is_function ? done.main() : done.main_function()->body;
}

}  // namespace

void bind_patterns(nb::module_& m) {
  nb::class_<DFPattern>(m, "DFPattern", "What a subgraph looks like")
      .def(nb::init<const DFPattern&>())
      .def(
          "__eq__",
          [](const DFPattern& a, nb::handle b) {
            return nb::isinstance<DFPattern>(b) && a == nb::cast<const DFPattern&>(b);
          },
          any)
      .def("__hash__", [](const DFPattern& self) { return std::hash<const void*>()(self.get()); });
  m.def("pattern_wildcard", [] { return wildcard(); });
  m.def("pattern_redirect", [](const DFPattern& from, const DFPattern& to) { redirect(from, to); });
  m.def("pattern_var", [](const std::string& name) { return is_var(name); });
  m.def("pattern_constant", [] { return is_constant(); });
  m.def("pattern_expr", [](const Expr& e) { return is_expr(e); });
  m.def("pattern_op", [](const std::string& name) { return is_op(name); });
  m.def(
      "pattern_call",
      [](const DFPattern& callee, nb::object args) {
        return args.is_none() ? is_call(callee) : callee(patterns_of(args));
      },
      any, any);
  m.def(
      "pattern_tuple",
      [](nb::object fields) { return fields.is_none() ? is_any_tuple() : is_tuple(patterns_of(fields)); }, any);
  m.def("pattern_get", [](const DFPattern& tuple, int64_t index) { return is_tuple_get_item(tuple, index); });
  m.def(
      "pattern_function",
      [](nb::object params, const DFPattern& body) {
        return params.is_none() ? is_function_of(body) : is_function(patterns_of(params), body);
      },
      any, any);
  m.def("pattern_if", [](const DFPattern& c, const DFPattern& t, const DFPattern& e) { return is_if(c, t, e); });
  m.def("pattern_let", [](const DFPattern& v, const DFPattern& x, const DFPattern& b) { return is_let(v, x, b); });
  m.def("pattern_or", [](const DFPattern& a, const DFPattern& b) { return a | b; });
  m.def(
      "pattern_attr",
      [](const DFPattern& p, const std::string& name, nb::object value) {
        return p.has_attr(name, attr_value_of(value));
      },
      any, any, any);
  m.def(
      "pattern_type", [](const DFPattern& p, nb::object type) { return p.has_type(type_of(type)); }, any, any);
  m.def(
      "pattern_shape", [](const DFPattern& p, nb::object shape) { return p.has_shape(shape_of(shape)); }, any, any);
  m.def("pattern_dtype",
        [](const DFPattern& p, const std::string& dtype) { return p.has_dtype(unwrap(parse_dtype(dtype))); });
  m.def("pattern_dominates", [](const DFPattern& parent, const DFPattern& path, const DFPattern& child) {
    return child.dominates(parent, path);
  });

  m.def("pattern_match", [](const DFPattern& p, const Expr& e) { return match(p, e).has_value(); });
  // rules: (pattern, callback(pre, post, node_map), once, with types)
  m.def("pattern_rewrite", [](nb::list rules, const Expr& graph, const Module& module) {
    std::vector<RewriteRule> list;
    for (nb::handle r : rules) {
      DFPattern pattern = nb::cast<DFPattern>(r[0]);
      nb::object callback = r[1];
      RewriteRule rule{
          pattern,
          [pattern, callback](const Expr& before, const Expr& after, const MatchMap& found) -> Result<Expr> {
            nb::object made = callback(wrap(before), wrap(after), found_by_pattern(pattern, found));
            if (!nb::isinstance<Expr>(made)) throw nb::type_error("the callback of a pattern gives an expression");
            return nb::cast<Expr>(made);
          },
          nb::cast<bool>(r[2])};
      if (nb::cast<bool>(r[3])) rule.typed = [&module](const Expr& e) { return typed(e, module); };
      list.push_back(std::move(rule));
    }
    return wrap(unwrap(rewrite(list, graph)));
  });
  m.def(
      "pattern_partition",
      [](const DFPattern& p, const Expr& graph, nb::object attrs, nb::object accept) {
        return wrap(partition(p, graph, dict_attrs_of(attrs),
                              [&](const Expr& e) { return accept.is_none() || nb::cast<bool>(accept(wrap(e))); }));
      },
      any, any, any, any);
}

}  // namespace tilewright::python
