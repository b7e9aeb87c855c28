// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/format.h"
#include "relay/passes/fusion/compiler_marks.h"
#include "relay/passes/fusion/compiler_regions.h"

namespace tilewright::relay {
namespace {

const ConfigKey<std::string> kModName{"relay.PartitionGraph.mod_name", "default"};
constexpr ConfigKey<bool> kBindConstants{"relay.PartitionGraph.bind_constants", true};

std::string symbol_text(std::string text) {
  for (char& c : text)
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

// Rewrites a function so that it calls one global function per region.
class RegionOutliner {
 public:
  RegionOutliner(Module* module, const std::string& name, const Expr& body, std::string mod_name, bool bind_constants)
      : module_(*module),
        function_(name),
        mod_name_(std::move(mod_name)),
        bind_constants_(bind_constants),
        body_(body),
        regions_(body_),
        parts_(regions_.count()) {
    for (const Expr& e : regions_.order())
      if (const std::ptrdiff_t region = regions_.of(e); region >= 0)
        (is_call_to(e, kCompilerEnd) ? part(region).ends : part(region).members).push_back(e);
    for (Part& p : parts_) find_inputs(&p);
  }

  Result<Expr> run() {
    // In post order; a region is visited as a unit, whose operands are those of all its members.
    std::vector<std::pair<Expr, bool>> stack{{body_, false}};
    while (!stack.empty()) {
      auto [e, ready] = stack.back();
      if (done_.count(e.get())) {
        stack.pop_back();
        continue;
      }
      const std::ptrdiff_t region = is_call_to(e, kCompilerEnd) ? regions_.of(e) : -1;
      if (ready) {
        stack.pop_back();
        if (region < 0)
          rebuild(e);
        else
          call_region(static_cast<size_t>(region));
        continue;
      }
      stack.back().second = true;
      if (region >= 0 && std::exchange(part(region).busy, true))
        return Diagnostic(ErrorCode::kInvalidArgument,
                          format("a part for the code generator '{}' depends on itself",
                                 regions_.compiler(static_cast<size_t>(region))),
                          format("function '{}'", function_),
                          "a path leads out of the marked part and back: mark what lies on it, too, or end the part");
      for (const Expr& kid : region < 0 ? CompilerRegions::operands(e) : part(region).inputs)
        if (!done_.count(kid.get())) stack.emplace_back(kid, false);
    }
    return done_.at(body_.get());
  }

 private:
  struct Part {
    std::vector<Expr> members, ends;  // members: in post order, begins included
    std::vector<Expr> inputs;         // values from outside
    bool busy = false;
  };
  Part& part(std::ptrdiff_t region) { return parts_[static_cast<size_t>(region)]; }

  static bool is_begin(const Expr& e) { return is_call_to(e, kCompilerBegin); }

  void find_inputs(Part* p) {
    auto add = [&](const Expr& e) {
      if (as<ConstantNode>(e) && bind_constants_) return;
      if (std::find(p->inputs.begin(), p->inputs.end(), e) == p->inputs.end()) p->inputs.push_back(e);
    };
    const std::ptrdiff_t region = p->ends.empty() ? -1 : regions_.of(p->ends[0]);
    for (const Expr& e : p->members) {
      if (is_begin(e)) {
        add(as<CallNode>(e)->args[0]);
        continue;
      }
      for (const Expr& kid : CompilerRegions::operands(e))
        if (regions_.of(kid) != region) add(kid);
    }
    for (const Expr& e : p->ends)
      if (const Expr& value = as<CallNode>(e)->args[0]; regions_.of(value) != region) add(value);
  }

  void rebuild(const Expr& e) {
    if (is_begin(e) || is_call_to(e, kCompilerEnd)) {
      done_[e.get()] = done_.at(as<CallNode>(e)->args[0].get());
      return;
    }
    std::vector<Expr> kids = children(e);
    for (Expr& kid : kids)
      if (auto now = done_.find(kid.get()); now != done_.end()) kid = now->second;
    done_[e.get()] = with_children(e, kids);
  }

  std::string fresh_symbol(const std::string& compiler) {
    const std::string prefix =
        format("tvmgen_{}_{}_{}", symbol_text(mod_name_), symbol_text(compiler), symbol_text(function_));
    std::string symbol;
    do symbol = format("{}_{}", prefix, next_++);
    while (module_.functions.count(symbol));
    return symbol;
  }

  // Flattens a value to its tensors.
  static void flatten(const Expr& value, std::vector<Expr>* out) {
    const auto* tuple = as_tuple(value->type);
    if (!tuple) return out->push_back(value);
    const auto* made = as<TupleNode>(value);
    for (size_t i = 0; i < tuple->fields.size(); ++i)
      flatten(made ? made->fields[i] : make_get(value, static_cast<int64_t>(i)), out);
  }
  // Rebuilds a value of `type` from the results beginning at `next`.
  static Expr gathered(const Type& type, const std::vector<Expr>& results, size_t* next) {
    const auto* tuple = as_tuple(type);
    if (!tuple) return results[(*next)++];
    std::vector<Expr> fields;
    for (const Type& field : tuple->fields) fields.push_back(gathered(field, results, next));
    return make_tuple(std::move(fields));
  }

  void call_region(size_t region) {
    const Part& p = parts_[region];
    const std::string& compiler = regions_.compiler(region);
    std::vector<Expr> params, arguments;
    std::unordered_map<const ExprNode*, Expr> inside;
    for (const Expr& input : p.inputs) {
      Expr param = make_var(format("{}_{}_i{}", symbol_text(compiler), next_, params.size()), input->type);
      inside[input.get()] = param;
      params.push_back(param);
      arguments.push_back(done_.at(input.get()));
    }
    auto now = [&](const Expr& e) {
      auto found = inside.find(e.get());
      return found == inside.end() ? e : found->second;
    };
    for (const Expr& e : p.members) {
      if (is_begin(e)) {
        inside[e.get()] = now(as<CallNode>(e)->args[0]);
        continue;
      }
      std::vector<Expr> kids = children(e);
      for (Expr& kid : kids) kid = now(kid);
      inside[e.get()] = with_children(e, kids);
    }
    // The results of each end, tensor by tensor; an argument that is only passed through is used directly.
    std::vector<Expr> values, flat, results;
    std::vector<size_t> first;  // for each end, its first index in `flat`
    for (const Expr& end : p.ends) {
      values.push_back(now(as<CallNode>(end)->args[0]));
      first.push_back(flat.size());
      flatten(values.back(), &flat);
    }
    auto outside = [&](const Expr& e) {
      const auto param = std::find(params.begin(), params.end(), e);
      return param != params.end() ? arguments[static_cast<size_t>(param - params.begin())]
             : as<ConstantNode>(e) ? e
                                   : Expr();
    };
    for (const Expr& e : flat)
      if (!outside(e) && std::find(results.begin(), results.end(), e) == results.end()) results.push_back(e);
    const Expr made = results.empty() ? Expr() : call_new_function(region, params, arguments, results);
    std::vector<Expr> fields;
    for (const Expr& e : flat) {
      const auto result = std::find(results.begin(), results.end(), e) - results.begin();
      fields.push_back(outside(e) ? outside(e) : results.size() == 1 ? made : make_get(made, result, e->span));
    }
    for (size_t i = 0; i < p.ends.size(); ++i) {
      size_t next = first[i];
      done_[p.ends[i].get()] = gathered(values[i]->type, fields, &next);
    }
  }

  Expr call_new_function(size_t region, const std::vector<Expr>& params, const std::vector<Expr>& arguments,
                         const std::vector<Expr>& results) {
    const std::string& compiler = regions_.compiler(region);
    const std::string symbol = fresh_symbol(compiler);
    const Expr body = results.size() == 1 ? results[0] : make_tuple(results);
    std::vector<Expr> used_params, used_arguments;  // without arguments that are only passed through
    const std::vector<Expr> inside = post_order(body);
    for (size_t i = 0; i < params.size(); ++i)
      if (std::find(inside.begin(), inside.end(), params[i]) != inside.end())
        used_params.push_back(params[i]), used_arguments.push_back(arguments[i]);
    Expr function = make_function(
        used_params, body,
        {{"Primitive", int64_t{1}}, {"Compiler", compiler}, {"global_symbol", symbol}, {"Inline", int64_t{1}}});
    module_.functions[symbol] = function;
    return call_function(make_global_var(symbol, function->type), used_arguments, parts_[region].ends[0]->span);
  }

  Module& module_;
  const std::string function_, mod_name_;
  const bool bind_constants_;
  const Expr body_;
  const CompilerRegions regions_;
  std::vector<Part> parts_;
  std::unordered_map<const ExprNode*, Expr> done_;
  size_t next_ = 0;
};

}  // namespace

Result<Module> partition_graph(const Module& module, const std::string& mod_name, bool bind_constants) {
  Module out = module;
  for (const auto& [name, function] : module.functions) {
    const auto* node = as<FunctionNode>(function);
    if (!node || is_closed_function(function)) continue;
    RegionOutliner outliner(&out, name, node->body, mod_name.empty() ? "default" : mod_name, bind_constants);
    const Expr body = TW_TRY(outliner.run());
    if (body != node->body) out.functions[name] = with_body(*node, body);
  }
  return out;
}

Result<Module> partition_graph(const Module& module, PassContext& context) {
  return partition_graph(module, context.get(kModName), context.get(kBindConstants));
}

}  // namespace tilewright::relay
