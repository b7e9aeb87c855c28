// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/table.h"

#include <algorithm>

#include "relay/infer_type.h"
#include "relay/passes/classic/annotate.h"
#include "relay/passes/classic/canonicalize_cast.h"
#include "relay/passes/classic/capture_post_dfs_index.h"
#include "relay/passes/classic/div_to_mul.h"
#include "relay/passes/classic/simplify_fc_transpose.h"
#include "relay/passes/classic/sparse_weights.h"
#include "relay/passes/classic/split_args.h"
#include "relay/passes/classic/to_mixed_precision.h"
#include "relay/passes/fusion/compiler_functions.h"
#include "relay/passes/fusion/compiler_regions.h"
#include "relay/passes/fusion/fuse_ops.h"
#include "relay/passes/layout/alter_op_layout.h"
#include "relay/passes/layout/conv1d_to_conv2d.h"
#include "relay/passes/layout/convert_layout.h"
#include "relay/passes/layout/fold_stride.h"
#include "relay/passes/legalize/legalize.h"
#include "relay/passes/pipeline/bfloat16_products.h"
#include "relay/passes/pipeline/canonicalize_ops.h"
#include "relay/passes/pipeline/combine_parallel.h"
#include "relay/passes/pipeline/convert_transposed_matmul.h"
#include "relay/passes/pipeline/dead_code.h"
#include "relay/passes/pipeline/dynamic_to_static.h"
#include "relay/passes/pipeline/eliminate_common_subexpr.h"
#include "relay/passes/pipeline/expand_composed.h"
#include "relay/passes/pipeline/fast_math.h"
#include "relay/passes/pipeline/flatten_atrous_conv.h"
#include "relay/passes/pipeline/fold_constant.h"
#include "relay/passes/pipeline/fold_explicit_padding.h"
#include "relay/passes/pipeline/fold_scale_axis.h"
#include "relay/passes/pipeline/fuse_attention.h"
#include "relay/passes/pipeline/fuse_composites.h"
#include "relay/passes/pipeline/plan_devices.h"
#include "relay/passes/pipeline/simplify_expr.h"
#include "relay/passes/pipeline/simplify_inference.h"
#include "relay/passes/pipeline/split_recurrent.h"
#include "relay/passes/pipeline/widen_small_floats.h"
#include "relay/passes/program/continuations.h"
#include "relay/passes/program/defunctionalization.h"
#include "relay/passes/program/functions.h"
#include "relay/passes/program/inline_primitives.h"
#include "relay/passes/program/lambda_lift.h"
#include "relay/passes/program/manifest_memory.h"
#include "relay/passes/program/normal_forms.h"
#include "relay/passes/program/partial_evaluate.h"
#include "relay/passes/quantize/canonicalize_qnn.h"
#include "relay/passes/quantize/fake_quantization_to_integer.h"
#include "relay/passes/quantize/integer_products.h"
#include "relay/passes/quantize/quantize.h"
#include "relay/passes/training/first_order_gradient.h"
#include "relay/passes/training/lazy_gradient_init.h"
#include "relay/run_time_values.h"
#include "relay/text.h"
#include "relay/verifier.h"

namespace tilewright::relay {

// The one list of all passes, by name; long because there are many.
std::span<const Pass<Module>> all_passes() {
  static const std::vector<Pass<Module>> kPasses = {
      {{"AlterOpLayout", 1, "activations of convolution networks into channel blocks"}, alter_op_layout},
      {{"AnnotateMemoryScope", 0, "marks values that a texture could hold (processors have none)"},
       annotate_memory_scope},
      {{"AnnotateSpans", 0, "spans become places in the module's own text"}, annotate_spans},
      {{"AnnotateTarget", 0, "operators stand between marks of the external code generator that takes them"},
       static_cast<Result<Module> (*)(const Module&, PassContext&)>(annotate_target)},
      {{"BFloat16Products", 0, "products by constant weights take bfloat16 operands, where -math=bf16 says so"},
       bfloat16_products},
      {{"BackwardFoldScaleAxis", 1, "multiplications after a convolution move into its weights"},
       backward_fold_scale_axis},
      {{"CanonicalizeCast", 3, "a shared widening cast becomes one for each user"}, canonicalize_cast},
      {{"CanonicalizeOps", 0, "bias_add becomes add"}, canonicalize_ops},
      {{"CanonicalizeQnn", 0, "quantised operators become plain ones", true}, canonicalize_qnn},
      {{"CapturePostDfsIndexInSpans", 0, "spans become places in post order and what dominates them"},
       capture_post_dfs_index_in_spans},
      {{"CombineParallelBatchMatmul", 4, "sibling batch_matmuls of one input become one"},
       combine_parallel_batch_matmul},
      {{"CombineParallelConv2D", 4, "sibling convolutions of one input become one"}, combine_parallel_conv2d},
      {{"CombineParallelDense", 4, "sibling dense layers of one input become one"}, combine_parallel_dense},
      {{"Conv1DToConv2D", 1, "1-D convolutions and pools become 2-D ones of height 1"}, conv1d_to_conv2d},
      {{"Conv2dToSparse", 4, "convolutions take named weights as blocks"}, conv2d_to_sparse},
      {{"Conv2dToSparse2", 5, "convolutions take constants that are mostly zero as blocks"}, conv2d_to_sparse2},
      {{"ConvertLayout", 3, "convolutions and what is around them in another layout"},
       static_cast<Result<Module> (*)(const Module&, PassContext&)>(convert_layout)},
      {{"ConvertTransposedMatmul", 1, "transposes disappear into matrix products"}, convert_transposed_matmul},
      {{"DeadCodeElimination", 1, "unused bindings disappear"},
       static_cast<Result<Module> (*)(const Module&, PassContext&)>(dead_code_elimination)},
      {{"Defunctionalization", 1, "functions as values become data types with an apply function each"},
       defunctionalization},
      {{"DefuseOps", 0, "calls of fused functions become their bodies"}, defuse_ops},
      {{"DenseToSparse", 4, "dense layers take named weights as blocks"}, dense_to_sparse},
      {{"DivToMul", 0, "divisions by constants become multiplications"}, div_to_mul},
      {{"DynamicToStatic", 1, "dyn.* operators with constant shapes become static ones"}, dynamic_to_static},
      {{"EliminateCommonSubexpr", 1, "equal expressions become one"}, eliminate_common_subexpr},
      {{"ExpandComposed", 0, "composed operators become the operators they are made of", true}, expand_composed},
      {{"ExpandNormalization", 0, "batch_norm, dropout and norms without a kernel become arithmetic", true},
       expand_normalization},
      {{"ElideMemory", 0, "storage and tensors that a program writes down become values", true}, elide_memory},
      {{"EtaExpand", 1, "globals and constructors used as values become functions"},
       static_cast<Result<Module> (*)(const Module&, PassContext&)>(eta_expand)},
      {{"FakeQuantizationToInteger", 0, "real arithmetic between dequantize and quantize becomes integer arithmetic"},
       static_cast<Result<Module> (*)(const Module&, PassContext&)>(fake_quantization_to_integer)},
      {{"FastMath", 4, "exp, tanh, erf and softmax approximated"}, fast_math},
      {{"FirstOrderGradient", 0, "functions give their result and its gradient by each parameter"},
       first_order_gradient},
      {{"FlattenAtrousConv", 0, "a convolution between space_to_batch_nd and batch_to_space_nd becomes a dilated one"},
       flatten_atrous_conv},
      {{"FoldConstant", 1, "calls of constants become constants"}, fold_constant},
      {{"FoldExplicitPadding", 1, "zero padding joins the convolution behind it; taps that meet only padding go"},
       fold_explicit_padding},
      {{"FoldScaleAxis", 1, "per-channel multiplications move into weights"}, fold_scale_axis},
      {{"FoldStride", 3, "strided convolutions of few channels see the stride's phases as channels"}, fold_stride},
      {{"ForwardFoldScaleAxis", 1, "multiplications before a convolution move into its weights"},
       forward_fold_scale_axis},
      {{"FuseAttention", 1, "products around a softmax become one attention operator"}, fuse_attention},
      {{"FuseComposites", 1, "exported layer normalisations become one operator"}, fuse_composites},
      {{"FuseOps", 0, "groups operators into the functions that become kernels", true}, fuse_ops},
      {{"InferType", 0, "completes missing types"}, infer_type},
      {{"Inline", 1, "calls of functions marked Inline become their bodies"}, inline_functions},
      {{"InlineCompilerFunctionsBoundTo", 0, "named functions of external code generators become their bodies"},
       inline_compiler_functions},
      {{"InlinePrimitives", 0, "fused functions that are bound or global stand where they are called"},
       inline_primitives},
      {{"IntegerArithmetic", 0, "products of dequantized bytes become those of integers"}, integer_arithmetic},
      {{"IntegerProducts", 0, "products of integers become those of bytes, or exact ones of floats"}, integer_products},
      {{"LabelOps", 1, "fused functions get a hash and their layouts as attributes"}, label_ops},
      {{"LambdaLift", 1, "functions inside functions become global"}, lambda_lift},
      {{"LazyGradientInit", 1, "zeros and ones are made where they are needed"}, lazy_gradient_init},
      {{"Legalize", 1, "operators without a kernel become ones that have it", true}, legalize},
      {{"ManifestAlloc", 0, "results of fused functions get storage and tensors of their own"}, manifest_alloc},
      {{"ManifestLifetimes", 0, "values end behind their last use"}, manifest_lifetimes},
      {{"MarkCompilerFunctionsAsExtern", 0, "the code of external functions comes with an imported module"},
       mark_compiler_functions_extern},
      {{"MergeCompilerRegions", 0, "neighbouring marked parts of one code generator become one"},
       merge_compiler_regions},
      {{"OutlineCompilerFunctionsWithExistingGlobalSymbols", 0,
        "function literals of external code generators become global"},
       outline_compiler_functions},
      {{"PartialEvaluate", 1, "what is known at compile time is computed then"}, partial_evaluate},
      {{"PartitionGraph", 0, "marked parts become global functions for external code generators"},
       static_cast<Result<Module> (*)(const Module&, PassContext&)>(partition_graph)},
      {{"PlanDevices", 0, "every value gets a device, copies stand where it changes"}, plan_devices},
      {{"QuantizeAnnotate", 0, "simulated quantisation stands where values become small integers"},
       static_cast<Result<Module> (*)(const Module&, PassContext&)>(quantize_annotate)},
      {{"QuantizeCalibrate", 0, "simulated quantisations get their scales"},
       static_cast<Result<Module> (*)(const Module&, PassContext&)>(quantize_calibrate)},
      {{"QuantizeRealize", 0, "simulated quantisation becomes integer arithmetic"},
       static_cast<Result<Module> (*)(const Module&, PassContext&)>(quantize_realize)},
      {{"RemoveUnusedFunctions", 1, "global functions main does not reach disappear"}, remove_unused_functions},
      {{"SimplifyExpr", 1, "local rewrites to fewer or cheaper operators"}, simplify_expr},
      {{"SimplifyExprPostAlterOp", 0, "the same once more behind AlterOpLayout"}, simplify_expr},
      {{"SimplifyFCTranspose", 4, "dense layers take named weights transposed already"}, simplify_fc_transpose},
      {{"SimplifyInference", 0, "training-time operators become arithmetic"}, simplify_inference},
      {{"SplitArgs", 1, "a concatenate of too many fields becomes several"}, split_args},
      {{"SplitRecurrent", 0, "recurrent layers become one product and a scan over their steps", true}, split_recurrent},
      {{"ToANormalForm", 1, "every operation is bound by a let"}, to_a_normal_form},
      {{"ToBasicBlockNormalForm", 1, "values used across scopes are bound by a let"}, to_basic_block_normal_form},
      {{"ToCPS", 1, "main gives its result to a function it is passed, and so does what it calls"}, to_cps},
      {{"ToGraphNormalForm", 1, "let bindings become the values themselves", true}, to_graph_normal_form},
      {{"ToMixedPrecision", 0, "arithmetic in float16 where that is safe"},
       static_cast<Result<Module> (*)(const Module&, PassContext&)>(to_mixed_precision)},
      {{"UnCPS", 1, "a main that ToCPS made returns its result again"}, un_cps},
      {{"WidenSmallFloats", 0, "operators of float16 and bfloat16 compute in float32", true}, widen_small_floats},
  };
  return kPasses;
}

const PassLevel<Module>& pass_level() {
  static const PassLevel<Module> kLevel = {
      [](const Module& m) { return print_module(m).text; },
      [](const Module& after, const Module& before) { return verify_module(after, &before); },
      [](const Module& a, const Module& b) {
        return a.functions == b.functions && a.metadata == b.metadata && a.types.size() == b.types.size();
      },
      [](const Module& m) { return print_module(m, {.metadata = true}).text; },
  };
  return kLevel;
}

Result<Module> run_passes(const Module& module, const Pipeline& pipeline, PassContext& context,
                          std::span<const Pass<Module>> user_passes) {
  // Passes need types. A region's types are known once it has arguments, and passes run on it then.
  const bool typing_only =
      std::all_of(pipeline.begin(), pipeline.end(), [](const auto& name) { return name == "InferType"; });
  if (!typing_only && has_run_time_values(module))
    return Diagnostic(ErrorCode::kUnsupportedModel, "the module has values whose sizes only a run knows", "",
                      "compile it for the virtual machine: relay.vm.compile, or `tilewright compile` to a .so");
  if (user_passes.empty()) return run_passes<Module>(module, pipeline, all_passes(), pass_level(), context);
  std::vector<Pass<Module>> table(user_passes.begin(), user_passes.end());
  table.insert(table.end(), all_passes().begin(), all_passes().end());
  return run_passes<Module>(module, pipeline, table, pass_level(), context);
}

}  // namespace tilewright::relay
