// SPDX-License-Identifier: Apache-2.0
// Passes are functions from module to module, listed in one table per level; pipelines are lists of names. One runner
// for all levels skips, times, verifies, dumps, bisects and calls instruments.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/pass_context.h"

namespace tilewright {

template <class M>
struct Pass {
  PassInfo info;
  std::function<Result<M>(const M&, PassContext&)> run;
};

// What the runner needs for a kind of module.
template <class M>
struct PassLevel {
  std::function<std::string(const M&)> print;
  // Verifies the module after a pass; the one before has already been verified.
  std::function<Status(const M& after, const M& before)> verify;
  // Whether a pass left the module unchanged; by identity, so it is cheap.
  std::function<bool(const M&, const M&)> same;
  // The complete text for reading the module back, including constants: saved when a pass fails. Null for modules that
  // cannot be read back.
  std::function<std::string(const M&)> print_whole;
};

using Pipeline = std::vector<std::string>;

// The parts of a run that do not depend on the kind of module.
namespace pass_detail {
using Text = std::function<std::string()>;
// Runs `body` as one pass: decides whether to, times it, records it and calls instruments. `body` returns whether the
// module changed; `verify` and `text` refer to the module after it, `text_before` and `whole_before` to the one before.
Status run_one(const PassInfo& pass, PassContext& context, const std::function<Result<bool>()>& body,
               const std::function<Status()>& verify, const Text& text_before, const Text& whole_before,
               const Text& text);
Status dump_input(PassContext& context, const Text& text);
}  // namespace pass_detail

template <class M>
std::vector<std::string> pass_names(std::span<const Pass<M>> table) {
  std::vector<std::string> names;
  for (const Pass<M>& pass : table) names.push_back(pass.info.name);
  return names;
}

// The pass of this name, or null.
template <class M>
const Pass<M>* find_pass(std::span<const Pass<M>> table, const std::string& name) {
  for (const Pass<M>& pass : table)
    if (pass.info.name == name) return &pass;
  return nullptr;
}

// Runs the named passes in order. Errors: UnknownPass before anything runs; a pass's own error, or VerifyFailed,
// located at the pass.
template <class M>
Result<M> run_passes(const M& module, const Pipeline& pipeline, std::span<const Pass<M>> table,
                     const PassLevel<M>& level, PassContext& context) {
  std::vector<const Pass<M>*> passes;
  for (const std::string& name : pipeline) {
    const Pass<M>* pass = find_pass(table, name);
    if (!pass) return unknown_pass(name, pass_names(table));
    passes.push_back(pass);
  }
  M current = module;
  TW_TRY_STATUS(pass_detail::dump_input(context, [&] { return level.print(current); }));
  for (const Pass<M>* pass : passes) {
    M before = current;
    auto body = [&]() -> Result<bool> {
      current = TW_TRY(pass->run(before, context));
      return !level.same(before, current);
    };
    TW_TRY_STATUS(pass_detail::run_one(
        pass->info, context, body, [&] { return level.verify(current, before); }, [&] { return level.print(before); },
        [&] { return level.print_whole ? level.print_whole(before) : std::string(); },
        [&] { return level.print(current); }));
  }
  return current;
}

}  // namespace tilewright
