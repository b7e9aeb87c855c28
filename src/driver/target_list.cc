// SPDX-License-Identifier: Apache-2.0
#include "driver/target_list.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/format.h"
#include "base/formats/artifact.h"
#include "codegen/codegen.h"
#include "lower/merge.h"
#include "runtime/cpu.h"
#include "runtime/instruction_set.h"

namespace tilewright::driver {
namespace {

Diagnostic bad_list(const std::string& text, const std::string& why) {
  return Diagnostic(ErrorCode::kUnknownTarget, format("the target '{}' {}", text, why), {},
                    "write \"llvm -mcpu=x86-64-v2,x86-64-v3,x86-64-v4\", or \"portable\", which is the same");
}

Status check_list(const std::string& text, const std::vector<ListedTarget>& list) {
  if (list.size() > kMostInstructionSets)
    return bad_list(text, format("lists more than {} processors", kMostInstructionSets));
  for (size_t i = 0; i < list.size(); ++i) {
    const Target& target = list[i].target;
    if (target.kind != "llvm" || target.mtriple.rfind("x86_64", 0) != 0)
      return bad_list(text, "lists processors, which is for machine code of x86-64");
    for (size_t k = 0; k < i; ++k)
      if (list[k].target.mcpu == target.mcpu) return bad_list(text, format("lists '{}' twice", target.mcpu));
  }
  return Ok{};
}

}  // namespace

Result<std::vector<ListedTarget>> targets_of(const std::string& text) {
  std::vector<ListedTarget> out;
  const std::vector<std::string> texts = split_targets(text);
  for (const std::string& one : texts) {
    Target target = TW_TRY(parse_target(one));
    if (texts.size() > 1 && target.mcpu.empty()) return bad_list(text, "lists a processor without a name");
    target = TW_TRY(codegen::resolve_target(std::move(target)));
    out.push_back({one, std::move(target)});
  }
  if (texts.size() == 1) return out;
  TW_TRY_STATUS(check_list(text, out));
  std::reverse(out.begin(), out.end());  // of equally good ones, the later one
  std::stable_sort(out.begin(), out.end(), [](const ListedTarget& a, const ListedTarget& b) {
    const Target &x = a.target, &y = b.target;
    return x.vector_bits != y.vector_bits ? x.vector_bits > y.vector_bits
                                          : x.cpu_features.size() > y.cpu_features.size();
  });
  const int widest = out[0].target.vector_bits;
  for (ListedTarget& one : out) {
    if (one.target.vector_bits == widest) continue;
    one.text += format(" -vector-width={}", widest);
    one.target = TW_TRY(codegen::resolve_target(TW_TRY(parse_target(one.text))));
  }
  return out;
}

Result<std::string> target_here(const std::string& text) {
  const auto list = TW_TRY(targets_of(text));
  if (list.size() == 1) return list[0].text;
  std::vector<runtime::InstructionSetChoice> choices;
  for (const ListedTarget& one : list)
    choices.push_back({one.target.mcpu, runtime::missing_cpu_features(one.target.cpu_features)});
  const std::string& cpu = list[TW_TRY(runtime::choose_instruction_set(choices))].target.mcpu;
  // A single processor uses its own vector width.
  for (const std::string& one : split_targets(text))
    if (TW_TRY(codegen::resolve_target(TW_TRY(parse_target(one)))).mcpu == cpu) return one;
  return Diagnostic(ErrorCode::kInternal, "a target left its list");
}

void name_kernels_for(const Target& target, lower::Lowered* lowered) {
  std::string suffix = "_" + target.mcpu;
  for (char& c : suffix)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  for (tir::PrimFunc& kernel : lowered->kernels) kernel.name += suffix;
  for (std::string& name : lowered->plan.kernels) name += suffix;
}

void add_instruction_sets(Built* into, std::vector<Built> others) {
  for (Built& other : others) lower::merge_weights(&into->lowered, &other.lowered);
  for (Built& other : others) {
    other.lowered.plan.params = into->lowered.plan.params;
    other.lowered.plan.params_bytes = into->lowered.plan.params_bytes;
  }
  into->others = std::move(others);
}

}  // namespace tilewright::driver
