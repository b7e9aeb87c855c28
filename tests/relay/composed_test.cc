// SPDX-License-Identifier: Apache-2.0
// Composed operators: what they refuse and say, what their types are while sizes are unknown, and who knows them by
// name. Their values: op_cases_test.cc; compiled: tests/driver/composed_test.cc.
#include "relay/dataflow_pattern.h"
#include "relay/op_testing.h"
#include "relay/ops/tensor/attrs_random.h"
#include "relay/ops/training/attrs_training.h"
#include "relay/passes/pipeline/expand_composed.h"
#include "relay/text.h"

namespace tilewright::relay {
namespace {

template <class A, class F>
std::string refused(const char* op, std::vector<Value> inputs, F&& fill) {
  return failure(op, std::move(inputs), make_attrs<A>(std::forward<F>(fill)));
}
void expect_says(const std::string& error, const char* text) {
  EXPECT_NE(error.find(text), std::string::npos) << error;
}

TEST(ComposedRefuses, IndicesAndSizesThatDoNotFit) {
  expect_says(refused<SlidingWindowAttrs>("sliding_window", {ramp({2, 3})},
                                          [](auto& a) {
                                            a.window_shape = {2, 9};
                                            a.strides = {1, 1};
                                          }),
              "a window of 9 with stride 1 does not fit an axis of 3");
  expect_says(failure("unravel_index", {ramp({2}), iota({2})}), "not integers");
  expect_says(failure("adv_index", {ramp({2, 2}), ramp({2})}, {}, true), "an index is float32");
  expect_says(failure("invert_permutation", {iota({2, 2})}), "not a list of places");
  expect_says(refused<SparseToDenseAttrs>("sparse_to_dense", {iota({3, 2}), ramp({3}), ramp({})},
                                          [](auto& a) { a.output_shape = {4}; }),
              "do not name places");
  expect_says(failure("strided_set", {ramp({4}), ramp({2}), ints({1}, {0}), ints({1}, {4}), ints({1}, {0})}),
              "a stride is 0");
  expect_says(refused<MatrixSetDiagAttrs>("matrix_set_diag", {ramp({3, 3}), ramp({2})}, [](auto&) {}),
              "the diagonals are");
  expect_says(refused<SequenceMaskAttrs>("sequence_mask", {ramp({4, 2}), iota({3})}, [](auto&) {}), "other batches");
  expect_says(failure("sparse_reshape", {iota({2, 3}), iota({2}), iota({1})}), "do not fit 2 axes");
  expect_says(failure("collapse_sum_like", {ramp({2, 3}), ramp({2})}), "does not collapse");
  EXPECT_NE(failure("broadcast_to_like", {ramp({2, 3}), ramp({2})}), "no error");
}

TEST(ComposedRefuses, NetworksAndRandomNumbers) {
  expect_says(refused<DilateAttrs>("nn.dilate", {ramp({2, 2})}, [](auto& a) { a.strides = {2}; }), "1 strides for");
  expect_says(refused<NLLLossAttrs>("nn.nll_loss", {ramp({2, 3}), iota({2}), ramp({3})},
                                    [](auto& a) { a.reduction = "median"; }),
              "not mean, sum or none");
  expect_says(failure("nn.cross_entropy", {ramp({2, 3}), ramp({2, 4})}), "(batch, classes) both");
  expect_says(refused<CorrelationAttrs>("nn.correlation", {ramp({1, 2, 4, 4}), ramp({1, 2, 4, 4})},
                                        [](auto& a) { a.max_displacement = 9; }),
              "pad more");
  expect_says(refused<MaxPool2DAttrs>("nn.max_pool2d_grad", {ramp({1, 1, 3, 3}), ramp({1, 1, 4, 4})},
                                      [](auto& a) {
                                        a.pool_size = {2, 2};
                                        a.strides = {2, 2};
                                      }),
              "the pool's result");
  expect_says(refused<Conv2DAttrs>("nn.conv2d_backward_weight", {ramp({1, 2, 3, 3}), ramp({1, 2, 4, 4})},
                                   [](auto& a) { a.kernel_layout = "NHWC"; }),
              "NCHW");
  expect_says(refused<StftAttrs>("stft", {ramp({1, 8}), ramp({16})}, [](auto& a) { a.n_fft = 16; }), "does not fit");
  expect_says(
      refused<FixedPointMultiplyAttrs>("fixed_point_multiply", {iota({2}, kInt32)}, [](auto& a) { a.shift = 40; }),
      "out of range");
  expect_says(refused<ThreefryGenerateAttrs>("random.threefry_generate", {iota({4}, kUInt64)},
                                             [](auto& a) { a.out_shape = {2}; }),
              "no generator");
  expect_says(refused<ThreefryGenerateAttrs>("random.threefry_generate", {iota({10}, kUInt64)},
                                             [](auto& a) { a.out_shape = {int64_t{1} << 40}; }),
              "at most");
  expect_says(refused<UniformAttrs>("random.uniform", {iota({10}, kUInt64), ramp({}), ramp({})},
                                    [](auto& a) {
                                      a.out_shape = {2};
                                      a.out_dtype = kInt32;
                                    }),
              "not int32");
}

TEST(Composed, TypesWhileSizesAreUnknown) {
  const Type free = tensor_type({Dim::symbol("N"), Dim(4)}, kFloat32);
  Expr x = make_var("x", free), row = make_var("row", tensor_type({Dim(1), Dim(4)}, kFloat32));
  auto type = [](const char* op, std::vector<Expr> args, AttrsRef attrs = {}) {
    auto made = try_call(op, std::move(args), std::move(attrs));
    return made.ok() ? type_str((*made)->type) : made.error().str();
  };
  EXPECT_EQ(type("reshape_like", {x, x}), "Tensor[(N, 4), float32]");
  EXPECT_EQ(type("broadcast_to_like", {row, x}), "Tensor[(N, 4), float32]");
  EXPECT_EQ(type("slice_like", {x, row}), "Tensor[(1, 4), float32]");
  EXPECT_EQ(type("collapse_sum_like", {x, row}), "Tensor[(1, 4), float32]");
  EXPECT_EQ(type("sequence_mask", {x, make_var("n", tensor_type({Dim(4)}, kInt32))}), "Tensor[(N, 4), float32]");
  EXPECT_NE(type("stft", {x, row}, make_default_attrs<StftAttrs>()).find("E204"), std::string::npos);
}

TEST(Composed, PatternsAndExpansionKnowThemByName) {
  auto module = parse_module(
      "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2, 3), float32], %y: Tensor[(3), float32]) {\n"
      "  collapse_sum_like(nn.dilate(%x, strides=[2, 1]), %y)\n}\n");
  ASSERT_TRUE(module.ok()) << module.error().str();
  const Expr body = module->main_function()->body;
  auto pattern = is_op("collapse_sum_like")({is_op("nn.dilate")({wildcard()}), wildcard()});
  EXPECT_TRUE(match(pattern, body));
  PassContext context;
  auto expanded = expand_composed(*module, context);
  ASSERT_TRUE(expanded.ok());
  for (const Expr& e : post_order(expanded->main_function()->body)) {
    const OpDef* op = called_op(e);
    EXPECT_FALSE(op && op->expand) << print_expr(e);
  }
  EXPECT_TRUE(type_equal(expanded->main_function()->body->type, body->type));
}

}  // namespace
}  // namespace tilewright::relay
