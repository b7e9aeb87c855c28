// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/default_pipeline.h"

namespace tilewright::relay {

const Pipeline& default_pipeline() {
  static const Pipeline kPipeline = {
      // Kernels and plans need pure graphs: bindings and local functions are removed first.
      "ElideMemory",
      "ToGraphNormalForm",
      "Inline",
      "RemoveUnusedFunctions",
      "ExpandComposed",
      "DynamicToStatic",
      // Constant folding may have given sizes and values that expansions waited for.
      "ExpandComposed",
      "IntegerArithmetic",
      "CanonicalizeQnn",
      "WidenSmallFloats",
      "FlattenAtrousConv",
      "IntegerProducts",
      "Legalize",
      // Canonical forms: plain arithmetic instead of batch_norm,
      // add instead of bias_add, dense for constant weights.
      "ExpandNormalization",
      "SplitRecurrent",
      "CanonicalizeOps",
      "ConvertTransposedMatmul",
      "FoldExplicitPadding",
      "EliminateCommonSubexpr",
      // Constant scales and shifts of batch_norm, which the next passes fold into weights and merge.
      "FoldConstant",
      "SimplifyExpr",
      "FuseComposites",
      "FoldScaleAxis",
      "SimplifyExpr",
      "CombineParallelConv2D",
      "CombineParallelDense",
      "CombineParallelBatchMatmul",
      "EliminateCommonSubexpr",
      "FuseAttention",
      "FoldConstant",
      // Layouts last: all passes above assume plain ones. The packing of weights is folded at once.
      "Conv1DToConv2D",
      "FoldStride",
      "BFloat16Products",
      "AlterOpLayout",
      "FoldConstant",
      "SimplifyExpr",
      "FastMath",
      "DeadCodeElimination",
      "PlanDevices",
      "FuseOps",
      "LabelOps",
  };
  return kPipeline;
}

Result<Module> optimize(const Module& module, PassContext& context, const Target& target,
                        std::span<const Pass<Module>> user_passes) {
  std::vector<std::string> names = pass_names(all_passes());
  TW_TRY_STATUS(context.check_names(names));
  context.target = target;
  // Kernels are made of groups: without FuseOps each operator is one by itself.
  if (context.disabled.erase("FuseOps") > 0) TW_TRY_STATUS(context.set_config("relay.FuseOps.max_depth", int64_t{1}));
  return run_passes(module, default_pipeline(), context, user_passes);
}

}  // namespace tilewright::relay
