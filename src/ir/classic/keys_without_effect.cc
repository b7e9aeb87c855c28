// SPDX-License-Identifier: Apache-2.0
#include "ir/classic/keys_without_effect.h"

namespace tilewright::classic {
namespace {

constexpr ConfigKeyInfo kKeysWithoutEffect[] = {
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
};

}  // namespace

std::span<const ConfigKeyInfo> keys_without_effect() { return kKeysWithoutEffect; }

}  // namespace tilewright::classic
