// SPDX-License-Identifier: Apache-2.0
#include "ir/pass_context.h"

#include <algorithm>

#include "base/format.h"
#include "base/near_match.h"

namespace tilewright {
namespace {

constexpr const char *kBoolType = "bool", *kIntType = "int", *kFloatType = "float", *kStringType = "string",
                     *kListType = "list of strings", *kObjectType = "object";

// The classic keys and our own, sorted. An object is given as the text of a JSON object. Keys of what another tool or
// device does are accepted so that scripts run; their line says that they have no effect.
constexpr ConfigKeyInfo kKeys[] = {
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
    {"relay.SimplifyFCTranspose.target_weight_name", kListType, "weights that SimplifyFCTranspose replaces"},
    {"relay.SplitArgs.max_function_args", kIntType, "fields of one concatenate, at most (default -1: any number)"},
    {"relay.ToMixedPrecision.keep_orig_output_dtype", kBoolType, "outputs keep their dtype under mixed precision"},
    {"relay.backend.use_auto_scheduler", kBoolType,
     "take layouts from auto-scheduler records (no effect: the cost model chooses)"},
    {"relay.backend.use_meta_schedule", kBoolType,
     "take layouts from meta-schedule records (no effect: the cost model chooses)"},
    {"relay.ext.cmsisnn.options", kObjectType, "an external code generator's options (no effect)"},
    {"relay.ext.ethos-n.options", kObjectType, "an external code generator's options (no effect)"},
    {"relay.ext.ethos-u.options", kObjectType, "an external code generator's options (no effect)"},
    {"relay.ext.tensorrt.options", kObjectType, "an external code generator's options (no effect)"},
    {"relay.ext.verilator.options", kObjectType, "an external code generator's options (no effect)"},
    {"relay.ext.vitis_ai.options", kObjectType, "an external code generator's options (no effect)"},
    {"relay.ext.vitis_ai.options.build_dir", kStringType, "an external code generator's option (no effect)"},
    {"relay.ext.vitis_ai.options.export_runtime_module", kStringType,
     "an external code generator's option (no effect)"},
    {"relay.ext.vitis_ai.options.load_runtime_module", kStringType, "an external code generator's option (no effect)"},
    {"relay.ext.vitis_ai.options.target", kStringType, "an external code generator's option (no effect)"},
    {"relay.ext.vitis_ai.options.work_dir", kStringType, "an external code generator's option (no effect)"},
    {"relay.fallback_device_type", kIntType, "device of parts without an annotation"},
    {"testing.immutable_module", kBoolType,
     "check that passes leave their input as it was (always so: modules are immutable)"},
    {"tir.HoistExpression", kObjectType, "what to hoist out of loops (no effect: kernels are written hoisted)"},
    {"tir.HoistIfThenElse", kObjectType, "how far to hoist conditions (no effect: kernels have none inside)"},
    {"tir.InjectDoubleBuffer", kObjectType, "double buffering (no effect on processors)"},
    {"tir.LoopPartition", kObjectType, "splitting of loops at conditions (no effect: kernels are written split)"},
    {"tir.UnrollLoop", kObjectType, "automatic unrolling (no effect: kernels are written unrolled)"},
    {"tir.add_lower_pass", kListType, "user passes of the loop level (no effect)"},
    {"tir.contrib.ethos-u.copy_compute_reordering_max_copy_movements", kIntType, "another device's option (no effect)"},
    {"tir.debug_keep_trivial_loop", kBoolType, "keep loops of extent 1 (no effect)"},
    {"tir.detect_global_barrier", kBoolType, "synchronisation of graphics processors (no effect)"},
    {"tir.disable_assert", kBoolType,
     "leave out run-time checks of arguments (no effect: the executor checks once, when they are set)"},
    {"tir.disable_cse_tir", kBoolType, "no common subexpression elimination at the loop level (no effect)"},
    {"tir.disable_storage_rewrite", kBoolType, "no buffer reuse inside kernels (no effect)"},
    {"tir.disable_vectorize", kBoolType, "turn vector loops into scalar ones (no effect)"},
    {"tir.enable_equiv_terms_in_cse_tir", kBoolType, "merge algebraically equal terms (no effect)"},
    {"tir.instrument_bound_checkers", kBoolType,
     "check every access at run time (no effect; 'tilewright verify' compares every kernel)"},
    {"tir.is_entry_func", kBoolType, "marks the entry function (no effect)"},
    {"tir.noalias", kBoolType, "assume that buffers do not overlap (always so)"},
    {"tir.use_ptx_async_copy", kBoolType, "asynchronous copies of graphics processors (no effect)"},
    {"tir.usmp.algorithm", kStringType,
     "memory planner of all kernels together (no effect: one planner does it always)"},
    {"tir.usmp.custom_algorithm", kStringType, "a planner of the user's (no effect)"},
    {"tir.usmp.enable", kBoolType, "plan workspace memory of all kernels together (always so)"},
    {"tir.usmp.use_workspace_io", kBoolType, "inputs and outputs in the workspace (no effect)"},
};

const char* type_of(const ConfigValue& value) {
  static constexpr const char* kNames[] = {kBoolType, kIntType, kFloatType, kStringType, kListType};
  return kNames[value.index()];
}

}  // namespace

std::span<const ConfigKeyInfo> all_config_keys() { return kKeys; }

Status PassContext::set_config(const std::string& key, ConfigValue value) {
  auto found = std::find_if(std::begin(kKeys), std::end(kKeys), [&](auto& info) { return key == info.name; });
  if (found == std::end(kKeys)) {
    std::vector<std::string> names;
    for (auto& info : kKeys) names.emplace_back(info.name);
    return Diagnostic(ErrorCode::kInvalidArgument, format("no pass option is called '{}'", key), {},
                      did_you_mean(key, names));
  }
  // The classic front ends pass booleans as integers.
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
