// SPDX-License-Identifier: Apache-2.0
#include "ir/pass_context.h"

#include <algorithm>

#include "base/format.h"
#include "base/near_match.h"
#include "ir/classic/keys_without_effect.h"

namespace tilewright {
namespace {

// Keys that passes or builds read; ir/classic has those
// without effect. An object is given as JSON text.
constexpr ConfigKeyInfo kKeys[] = {
    {"relay.AnnotateTarget.targets", kListType,
     "generators that AnnotateTarget marks operators for: name, or name=operator,operator"},
    {"relay.Conv2dToSparse.kernel_size", kIntType, "height and width of Conv2dToSparse's kernels (default 1)"},
    {"relay.Conv2dToSparse.layout", kStringType, "layout of Conv2dToSparse's convolutions (default NHWC)"},
    {"relay.Conv2dToSparse.weights", kListType,
     "weights that Conv2dToSparse replaces, with the sizes of data, indices and indptr: name=4,16,1,4,3"},
    {"relay.Conv2dToSparse2.blocksize", kListType, "rows and columns of Conv2dToSparse2's blocks (default 1 and 1)"},
    {"relay.Conv2dToSparse2.kernel_size", kIntType, "height and width of Conv2dToSparse2's kernels (default 1)"},
    {"relay.Conv2dToSparse2.layout", kStringType, "layout of Conv2dToSparse2's convolutions (default NHWC)"},
    {"relay.Conv2dToSparse2.sparsity_threshold", kFloatType,
     "the part of a weight that must be left out, at least (default 0)"},
    {"relay.ConvertLayout.desired_layouts", kListType,
     "layouts wanted by ConvertLayout, for instance nn.conv2d=NHWC,HWIO"},
    {"relay.DenseToSparse.weights", kListType,
     "weights that DenseToSparse replaces, with the sizes of data, indices and indptr: name=4,16,1,4,3"},
    {"relay.FoldConstant.fold_qnn", kBoolType, "calls of quantised operators fold, too (default off)"},
    {"relay.FoldConstant.max_bytes", kIntType, "folded results larger than this stay calls (default 256 MiB)"},
    {"relay.FuseOps.in_place", kBoolType,
     "concatenations that their operands are written straight into stay apart (default true)"},
    {"relay.FuseOps.link_params", kBoolType, "constants stay inside fused functions instead of becoming arguments"},
    {"relay.FuseOps.max_depth", kIntType, "largest number of operators in one fused function (default 256)"},
    {"relay.InlineCompilerFunctionsBoundTo.global_vars", kListType,
     "functions that InlineCompilerFunctionsBoundTo puts where they are called"},
    {"relay.MarkCompilerFunctionsAsExtern.compiler_filter", kStringType,
     "the one generator whose functions are marked (default: all)"},
    {"relay.OutlineCompilerFunctions.compiler_filter", kStringType,
     "the one generator whose functions become global (default: all)"},
    {"relay.PartitionGraph.bind_constants", kBoolType, "constants stay inside of what generators get (default on)"},
    {"relay.PartitionGraph.mod_name", kStringType, "the model's name in the names of the functions (default: default)"},
    {"relay.SimplifyFCTranspose.target_weight_name", kListType, "weights that SimplifyFCTranspose replaces"},
    {"relay.SplitArgs.max_function_args", kIntType, "fields of one concatenate, at most (default -1: any number)"},
    {"relay.ToMixedPrecision.keep_orig_output_dtype", kBoolType, "outputs keep their dtype under mixed precision"},
    {"relay.ext.dnnl.options", kObjectType, "how oneDNN's functions are generated: codegen=json or c_src"},
    {"relay.fallback_device_type", kIntType, "device of parts without an annotation"},
    {"tir.usmp.algorithm", kStringType,
     "memory planner of a program in C: greedy_by_size, greedy_by_conflicts, hill_climb"},
    {"tir.usmp.custom_algorithm", kStringType, "the same, a function tir.usmp.algo.NAME of the script's"},
    {"tir.usmp.enable", kBoolType, "plan workspace memory of all kernels together (always so)"},
    {"tir.usmp.use_workspace_io", kBoolType, "inputs and outputs of a program in C lie in its memory pools"},
};

const std::vector<ConfigKeyInfo>& config_keys() {
  static const std::vector<ConfigKeyInfo> kSorted = [] {
    std::vector<ConfigKeyInfo> keys(std::begin(kKeys), std::end(kKeys));
    const auto accepted = classic::keys_without_effect();
    keys.insert(keys.end(), accepted.begin(), accepted.end());
    std::sort(keys.begin(), keys.end(), [](const ConfigKeyInfo& a, const ConfigKeyInfo& b) {
      return std::string_view(a.name) < std::string_view(b.name);
    });
    return keys;
  }();
  return kSorted;
}

const char* type_of(const ConfigValue& value) {
  static constexpr const char* kNames[] = {kBoolType, kIntType, kFloatType, kStringType, kListType};
  return kNames[value.index()];
}

}  // namespace

std::span<const ConfigKeyInfo> all_config_keys() { return config_keys(); }

Status PassContext::set_config(const std::string& key, ConfigValue value) {
  const auto& keys = config_keys();
  auto found = std::find_if(keys.begin(), keys.end(), [&](auto& info) { return key == info.name; });
  if (found == keys.end()) {
    std::vector<std::string> names;
    for (auto& info : keys) names.emplace_back(info.name);
    return Diagnostic(ErrorCode::kInvalidArgument, format("no pass option is called '{}'", key), {},
                      did_you_mean(key, names));
  }
  // Classic front ends pass booleans as integers.
  if (found->type == std::string_view(kBoolType))
    if (const int64_t* number = std::get_if<int64_t>(&value)) value = *number != 0;
  if (found->type == std::string_view(kObjectType)) {
    const std::string* text = std::get_if<std::string>(&value);
    if (!text || text->size() < 2 || text->front() != '{' || text->back() != '}')
      return Diagnostic(ErrorCode::kInvalidArgument,
                        format("pass option '{}' takes an object, not {}", key, type_of(value)), {},
                        "give the text of a JSON object, {\"field\": value}");
    config[key] = std::move(value);
    return Ok{};
  }
  if (found->type != std::string_view(type_of(value)))
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("pass option '{}' takes a value of type {}, not {}", key, found->type, type_of(value)));
  config[key] = std::move(value);
  return Ok{};
}

Diagnostic unknown_pass(const std::string& name, std::span<const std::string> known) {
  return Diagnostic(ErrorCode::kUnknownPass, format("no pass is called '{}'", name), {},
                    did_you_mean(name, known, "'tilewright passes' lists them all"));
}

Status PassContext::check_names(std::span<const std::string> known) const {
  for (const auto* names : {&required, &disabled})
    for (const std::string& name : *names)
      if (std::find(known.begin(), known.end(), name) == known.end()) return unknown_pass(name, known);
  return Ok{};
}

std::string PassContext::skip_reason(const PassInfo& pass) const {
  if (disabled.count(pass.name)) return "disabled";
  if (!pass.mandatory && !required.count(pass.name) && opt_level < pass.opt_level)
    return format("opt level {}", pass.opt_level);
  if (!pass.mandatory && stop_after >= 0 && optional_passes_run >= stop_after) return "bisection";
  for (const auto& instrument : instruments)
    if (!instrument->should_run(pass)) return "instrument";
  return {};
}

std::string PassContext::timing_report() const {
  std::vector<const PassRecord*> ran;
  for (const PassRecord& record : log)
    if (record.ran) ran.push_back(&record);
  std::stable_sort(ran.begin(), ran.end(), [](auto* a, auto* b) { return a->milliseconds > b->milliseconds; });
  std::string out;
  for (const PassRecord* record : ran)
    out += format("{:10.3f} ms  {}{}\n", record->milliseconds, record->name, record->changed ? "" : "  (no change)");
  return out;
}

}  // namespace tilewright
