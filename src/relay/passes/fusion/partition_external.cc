// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/fusion/partition_external.h"

#include <set>
#include <sstream>

#include "base/format.h"
#include "base/near_match.h"
#include "relay/dataflow_pattern.h"
#include "relay/op.h"
#include "relay/passes/fusion/compiler_regions.h"

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
    // Shows the generator a candidate match as a function.
    auto accept = [&](const Expr& root) {
      if (!compiler.supports) return true;
      Expr alone = partition(chain, root, {{"Composite", pattern.name}});
      const FunctionNode* function = composite_of(alone);
      return function && compiler.supports(*function);
    };
    body = partition(chain, body, {{"Composite", pattern.name}}, accept);
  }
  if (body == main->body) return module;
  TargetRules rules;
  rules.targets = {compiler.name};
  rules.takes = [&](const std::string&, const Expr& call) {
    const FunctionNode* composite = composite_of(call);
    return composite && names.count(std::get<std::string>(composite->attrs.at("Composite"))) > 0;
  };
  PassContext context;
  const Module marked = TW_TRY(annotate_target(module.with_main(with_body(*main, body)), rules));
  return partition_graph(TW_TRY(merge_compiler_regions(marked, context)), mod_name);
}

}  // namespace tilewright::relay
