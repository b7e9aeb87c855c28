// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/fusion/partition_external.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <unordered_map>

#include "base/format.h"
#include "base/near_match.h"
#include "relay/dataflow_pattern.h"
#include "relay/op.h"

namespace tilewright::relay {
namespace {

DFPattern link_pattern(const std::string& op, const DFPattern& before) {
  const int inputs = find_op(op)->num_inputs;
  std::vector<DFPattern> args;
  for (int i = 0; i < std::max(1, inputs); ++i) args.push_back(i == 0 && before ? before : wildcard());
  return is_op(op)(std::move(args));
}

DFPattern chain_pattern(const CompositePattern& chain) {
  DFPattern out;
  for (const auto& link : chain.links)
    out = link.optional && out ? out.optional([&](const DFPattern& x) { return link_pattern(link.op, x); })
                               : link_pattern(link.op, out);
  return out;
}

const FunctionNode* composite_of(const Expr& e) {
  const auto* call = as<CallNode>(e);
  const auto* function = call ? as<FunctionNode>(call->callee) : nullptr;
  return function && function->attrs.count("Composite") ? function : nullptr;
}

// Parts of the graph: which composite calls are compiled together.
class Regions {
 public:
  Regions(const Expr& body, const std::set<std::string>& names) {
    for (const Expr& e : post_order(body)) {
      std::set<size_t> below;  // the regions that its operands come from
      for (const Expr& kid : operands(e)) {
        if (auto region = region_of_.find(kid.get()); region != region_of_.end())
          below.insert(region->second);
        else if (auto base = base_.find(kid.get()); base != base_.end())
          below.insert(base->second.begin(), base->second.end());
      }
      const FunctionNode* composite = composite_of(e);
      if (!composite || !names.count(std::get<std::string>(composite->attrs.at("Composite")))) {
        base_[e.get()] = std::move(below);
        continue;
      }
      size_t home = members_.size();
      for (const Expr& kid : operands(e))
        if (auto region = region_of_.find(kid.get()); region != region_of_.end() && joins(e, region->second)) {
          home = region->second;
          break;
        }
      if (home == members_.size()) members_.emplace_back(), depends_.emplace_back();
      region_of_[e.get()] = home;
      members_[home].push_back(e);
      below.erase(home);
      depends_[home].insert(below.begin(), below.end());
    }
  }
  const std::vector<std::vector<Expr>>& members() const { return members_; }
  // The region of a call, or -1.
  std::ptrdiff_t of(const Expr& e) const {
    auto found = region_of_.find(e.get());
    return found == region_of_.end() ? -1 : static_cast<std::ptrdiff_t>(found->second);
  }
  // A composite's callee is part of it.
  static std::vector<Expr> operands(const Expr& e) {
    return composite_of(e) ? as<CallNode>(e)->args : as<FunctionNode>(e) ? std::vector<Expr>() : children(e);
  }

 private:
  bool reaches(size_t from, size_t to) const {
    std::vector<size_t> waiting{from};
    std::set<size_t> seen{from};
    while (!waiting.empty()) {
      const size_t at = waiting.back();
      waiting.pop_back();
      if (at == to) return true;
      for (size_t next : depends_[at])
        if (seen.insert(next).second) waiting.push_back(next);
    }
    return false;
  }
  // Whether `e` may become part of `region`: no operand of it leaves the region and comes back.
  bool joins(const Expr& e, size_t region) const {
    for (const Expr& kid : operands(e)) {
      auto own = region_of_.find(kid.get());
      if (own != region_of_.end()) {
        if (own->second != region && reaches(own->second, region)) return false;
        continue;
      }
      if (auto base = base_.find(kid.get()); base != base_.end())
        for (size_t other : base->second)
          if (reaches(other, region)) return false;
    }
    return true;
  }
  std::unordered_map<const ExprNode*, size_t> region_of_;
  std::unordered_map<const ExprNode*, std::set<size_t>> base_;  // of what is in no region
  std::vector<std::vector<Expr>> members_;
  std::vector<std::set<size_t>> depends_;
};

// main over calls of global functions, one for each region.
class Partitioner {
 public:
  Partitioner(const Module& module, const ExternalCompiler& compiler, const Expr& body, const Regions& regions,
              std::string prefix)
      : out_(module),
        compiler_(compiler),
        body_(body),
        regions_(regions),
        prefix_(std::move(prefix)),
        parts_(regions.members().size()) {}

  Module run() {
    const FunctionNode* main = out_.main_function();
    for (size_t r = 0; r < parts_.size(); ++r) describe(r);
    // Operands first; a region is one unit, whose operands are those of all its members.
    std::vector<std::pair<Expr, bool>> stack{{body_, false}};
    while (!stack.empty()) {
      auto [e, ready] = stack.back();
      if (done_.count(e.get())) {
        stack.pop_back();
        continue;
      }
      const std::ptrdiff_t region = regions_.of(e);
      if (!ready) {
        stack.back().second = true;
        for (const Expr& kid : region < 0 ? Regions::operands(e) : parts_[static_cast<size_t>(region)].inputs)
          if (!done_.count(kid.get())) stack.emplace_back(kid, false);
        continue;
      }
      stack.pop_back();
      if (region < 0)
        rebuild(e);
      else
        call_region(static_cast<size_t>(region));
    }
    return out_.with_main(with_body(*main, done_.at(body_.get())));
  }

 private:
  struct Part {
    std::vector<Expr> inputs, outputs;
  };

  void describe(size_t region) {
    Part& part = parts_[region];
    for (const Expr& e : regions_.members()[region])
      for (const Expr& arg : as<CallNode>(e)->args)
        if (regions_.of(arg) != static_cast<std::ptrdiff_t>(region) && !as<ConstantNode>(arg) &&
            std::find(part.inputs.begin(), part.inputs.end(), arg) == part.inputs.end())
          part.inputs.push_back(arg);
    auto outside = [&](const Expr& member) {
      if (member == body_) return true;
      for (const Expr& user : users(member))
        if (regions_.of(user) != static_cast<std::ptrdiff_t>(region)) return true;
      return false;
    };
    for (const Expr& e : regions_.members()[region])
      if (outside(e)) part.outputs.push_back(e);
  }

  const std::vector<Expr>& users(const Expr& e) {
    if (users_.empty())
      for (const Expr& user : post_order(body_))
        for (const Expr& kid : Regions::operands(user)) users_[kid.get()].push_back(user);
    return users_[e.get()];
  }

  void rebuild(const Expr& e) {
    std::vector<Expr> kids = children(e);
    for (Expr& kid : kids)
      if (auto now = done_.find(kid.get()); now != done_.end()) kid = now->second;
    done_[e.get()] = with_children(e, kids);
  }

  void call_region(size_t region) {
    const Part& part = parts_[region];
    std::vector<Expr> params, arguments;
    std::unordered_map<const ExprNode*, Expr> inside;
    for (const Expr& input : part.inputs) {
      Expr param = make_var(format("{}_{}_i{}", compiler_.name, region, params.size()), input->type);
      inside[input.get()] = param;
      params.push_back(param);
      arguments.push_back(done_.at(input.get()));
    }
    for (const Expr& e : regions_.members()[region]) {  // operands first
      const auto* call = as<CallNode>(e);
      std::vector<Expr> args;
      for (const Expr& arg : call->args) args.push_back(as<ConstantNode>(arg) ? arg : inside.at(arg.get()));
      inside[e.get()] = call_function(call->callee, args, e->span);
    }
    std::vector<Expr> results;
    for (const Expr& output : part.outputs) results.push_back(inside.at(output.get()));
    const std::string symbol = format("{}_{}", prefix_, region);
    Expr function = make_function(params, results.size() == 1 ? results[0] : make_tuple(results),
                                  {{"Primitive", int64_t{1}}, {"Compiler", compiler_.name}, {"global_symbol", symbol}});
    out_.functions[symbol] = function;
    Expr made =
        call_function(make_global_var(symbol, function->type), arguments, regions_.members()[region].back()->span);
    for (size_t i = 0; i < part.outputs.size(); ++i)
      done_[part.outputs[i].get()] =
          results.size() == 1 ? made : make_get(made, static_cast<int64_t>(i), part.outputs[i]->span);
  }

  Module out_;
  const ExternalCompiler& compiler_;
  const Expr body_;
  const Regions& regions_;
  const std::string prefix_;
  std::vector<Part> parts_;
  std::unordered_map<const ExprNode*, Expr> done_;
  std::unordered_map<const ExprNode*, std::vector<Expr>> users_;
};

std::string symbol_text(std::string text) {
  for (char& c : text)
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

}  // namespace

Result<std::vector<CompositePattern>> parse_composite_patterns(const std::string& text) {
  std::vector<CompositePattern> out;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line);
    std::string word;
    if (!(words >> word)) continue;
    auto bad = [&](std::string why, std::string hint = "write \"vecunit.dense: nn.dense add? nn.relu?\"") {
      return Diagnostic(ErrorCode::kInvalidArgument, std::move(why), format("patterns, line {}", number),
                        std::move(hint));
    };
    if (word.size() < 2 || word.back() != ':')
      return bad(format("'{}' is no pattern's name followed by a colon", word));
    CompositePattern pattern;
    pattern.name = word.substr(0, word.size() - 1);
    while (words >> word) {
      CompositePattern::Link link{word, word.back() == '?'};
      if (link.optional) link.op.pop_back();
      if (!find_op(link.op)) {
        std::vector<std::string> names;
        for (const OpDef& op : all_ops()) names.push_back(op.name);
        return Diagnostic(ErrorCode::kUnknownOp, format("there is no operator '{}'", link.op),
                          format("patterns, line {}", number), did_you_mean(link.op, names));
      }
      if (link.optional && pattern.links.empty()) return bad("the first operator of a pattern cannot be missing");
      pattern.links.push_back(std::move(link));
    }
    if (pattern.links.empty()) return bad(format("the pattern '{}' has no operators", pattern.name));
    out.push_back(std::move(pattern));
  }
  return out;
}

Result<Module> partition_external(const Module& module, const ExternalCompiler& compiler, const std::string& mod_name) {
  const FunctionNode* main = module.main_function();
  if (!main) return module;
  std::set<std::string> names;
  Expr body = main->body;
  for (const CompositePattern& pattern : compiler.patterns) {
    names.insert(pattern.name);
    const DFPattern chain = chain_pattern(pattern);
    // What a match would be as a function, for the generator to judge.
    auto accept = [&](const Expr& root) {
      if (!compiler.supports) return true;
      Expr alone = partition(chain, root, {{"Composite", pattern.name}});
      const FunctionNode* function = composite_of(alone);
      return function && compiler.supports(*function);
    };
    body = partition(chain, body, {{"Composite", pattern.name}}, accept);
  }
  if (body == main->body) return module;
  Regions regions(body, names);
  const std::string prefix =
      format("tvmgen_{}_{}_main", symbol_text(mod_name.empty() ? "default" : mod_name), symbol_text(compiler.name));
  const Module changed = module.with_main(with_body(*main, body));
  return Partitioner(changed, compiler, body, regions, prefix).run();
}

}  // namespace tilewright::relay
