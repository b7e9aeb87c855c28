// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/default_pipeline.h"

namespace tilewright::relay {

const Pipeline& default_pipeline() {
  static const Pipeline kPipeline = {
      // Kernels and plans know graphs only: programs with bindings and local functions become them first.
      "ElideMemory",
      "ToGraphNormalForm",
      "Inline",
      "RemoveUnusedFunctions",
      "ExpandComposed",
      "DynamicToStatic",
      // What became static, and what was waiting for values that are constants now.
      "ExpandComposed",
      "IntegerArithmetic",
      "CanonicalizeQnn",
      "WidenSmallFloats",
      "FlattenAtrousConv",
      "IntegerProducts",
      "Legalize",
      // One form of everything: plain arithmetic instead of batch_norm, add instead of bias_add, dense for constant
      // weights.
      "ExpandNormalization",
      "SplitRecurrent",
      "CanonicalizeOps",
      "ConvertTransposedMatmul",
      "FoldExplicitPadding",
      "EliminateCommonSubexpr",
      // batch_norm's scale and shift become constants, which the next passes move into weights and merge.
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
      // Layouts last: every pass above knows plain ones only. Its packing of weights is folded right away.
      "Conv1DToConv2D",
      "FoldStride",
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
  return run_passes(module, default_pipeline(), context, user_passes);
}

}  // namespace tilewright::relay
