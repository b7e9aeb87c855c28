// SPDX-License-Identifier: Apache-2.0
// Type rules: symbolic sizes come out as expressions, and wrong calls say what is wrong.
#include "relay/op_testing.h"

namespace tilewright::relay {
namespace {

Expr var(Shape shape, DataType t = kFloat32) { return make_var("x", tensor_type(std::move(shape), t)); }
std::string type_of(const char* op, std::vector<Expr> args, AttrsRef attrs = {}) {
  auto r = try_call(op, std::move(args), std::move(attrs));
  return r.ok() ? type_str((*r)->type) : r.error().where + ": " + r.error().message;
}
template <class A, class F>
AttrsRef with(F&& fill) {
  return make_attrs<A>(std::forward<F>(fill));
}

TEST(OpTyping, ConvolutionsKeepSymbols) {
  Dim n = Dim::symbol("N"), h = Dim::symbol("H");
  auto attrs = with<Conv2DAttrs>([](auto& a) {
    a.strides = {2, 1};
    a.padding = {1, 1, 1, 1};
    a.kernel_size = {{3, 3}};
  });
  EXPECT_EQ(type_of("nn.conv2d", {var({n, 3, h, 9}), var({8, 3, 3, 3})}, attrs),
            "Tensor[(N, 8, (H + -1)//2 + 1, 9), float32]");
  auto blocked = with<Conv2DNCHWcAttrs>([](auto& a) {
    a.channels = 24;
    a.in_channels = 20;
    a.padding = {1};
  });
  EXPECT_EQ(type_of("nn.contrib_conv2d_NCHWc", {var({n, 2, 8, 8, 16}), var({2, 2, 3, 3, 16, 16})}, blocked),
            "Tensor[(N, 2, 8, 8, 16), float32]");
  EXPECT_EQ(type_of("nn.global_avg_pool2d", {var({n, 8, h, h})}), "Tensor[(N, 8, 1, 1), float32]");
}

TEST(OpTyping, ConvolutionErrors) {
  EXPECT_EQ(type_of("nn.conv2d", {var({1, 3, 8, 8}), var({8, 4, 3, 3})}),
            "nn.conv2d: data (1, 3, 8, 8) has 3 channels in 1 group, but the kernel (8, 4, 3, 3) takes 4");
  EXPECT_EQ(type_of("nn.conv2d", {var({1, 3, 8}), var({8, 3, 3, 3})}),
            "nn.conv2d: data (1, 3, 8) is not in layout NCHW");
  EXPECT_EQ(type_of("nn.conv2d", {var({1, 3, 2, 8}), var({8, 3, 3, 3})}),
            "nn.conv2d: a window of 3 does not fit an axis of 2 with padding 0 and 0");
  EXPECT_EQ(type_of("nn.conv2d", {var({1, 3, 8, 8}), var({8, 3, 3, 3}, kFloat16)}),
            "nn.conv2d: operands are Tensor[(1, 3, 8, 8), float32] and Tensor[(8, 3, 3, 3), float16]");
  auto failing = [&](auto fill) {
    return type_of("nn.conv2d", {var({1, 4, 8, 8}), var({6, 4, 3, 3})}, with<Conv2DAttrs>(fill));
  };
  EXPECT_EQ(failing([](auto& a) { a.groups = 4; }),
            "nn.conv2d: 4 input and 6 output channels do not divide into 4 groups");
  EXPECT_EQ(failing([](auto& a) { a.channels = 7; }), "nn.conv2d: channels is 7, but the kernel (6, 4, 3, 3) has 6");
  EXPECT_EQ(failing([](auto& a) {
              a.kernel_size = {{3, 5}};
            }),
            "nn.conv2d: kernel_size 5 differs from the kernel (6, 4, 3, 3) in axis W");
  EXPECT_EQ(failing([](auto& a) { a.strides = {1}; }), "nn.conv2d: strides has 1 values for 2 spatial axes");
  EXPECT_EQ(failing([](auto& a) { a.strides = {1, 0}; }), "nn.conv2d: strides 0 is out of range");
  EXPECT_EQ(failing([](auto& a) {
              a.padding = {1, 2, 3};
            }),
            "nn.conv2d: padding has 3 values; 2 spatial axes need 1, 2 or 4");
  EXPECT_EQ(failing([](auto& a) { a.data_layout = "NCHW8"; }), "nn.conv2d: layout \"NCHW8\" is incomplete");
  EXPECT_EQ(failing([](auto& a) { a.data_layout = "NCWW"; }), "nn.conv2d: layout \"NCWW\" names an axis twice");
  EXPECT_EQ(failing([](auto& a) { a.data_layout = "NC"; }),
            "nn.conv2d: data_layout \"NC\" does not have the axes NCHW");
  EXPECT_EQ(failing([](auto& a) { a.groups = 0; }), "nn.conv2d: groups is 0");
  EXPECT_EQ(failing([](auto& a) { a.out_dtype = "float33"; }).substr(0, 9), "nn.conv2d");
  EXPECT_EQ(type_of("nn.conv2d_transpose", {var({1, 4, 8, 8}), var({5, 4, 3, 3})}),
            "nn.conv2d_transpose: data (1, 4, 8, 8) has 4 channels, but the kernel (5, 4, 3, 3) takes 5 in 1 groups");
}

TEST(OpTyping, PoolsThatRoundUp) {
  auto pooled = [](int64_t size, int64_t window, int64_t stride, bool up, int64_t before = 0) {
    return type_of("nn.max_pool2d", {var({1, 3, size, 8})}, with<MaxPool2DAttrs>([&](auto& a) {
                     a.pool_size = {window, 2};
                     a.strides = {stride, 2};
                     a.padding = {before, 0, 0, 0};
                     a.ceil_mode = up;
                   }));
  };
  EXPECT_EQ(pooled(1, 2, 2, true), "Tensor[(1, 3, 1, 4), float32]");
  EXPECT_EQ(pooled(1, 3, 3, true, 1), "Tensor[(1, 3, 1, 4), float32]");
  EXPECT_EQ(pooled(3, 2, 2, true), "Tensor[(1, 3, 2, 4), float32]");
  EXPECT_EQ(pooled(1, 2, 2, false), "nn.max_pool2d: a window of 2 does not fit an axis of 1 with padding 0 and 0");
  EXPECT_EQ(pooled(1, 2, 1, true), "nn.max_pool2d: a window of 2 does not fit an axis of 1 with padding 0 and 0");
  EXPECT_EQ(pooled(1, 3, 2, true), "nn.max_pool2d: a window of 3 does not fit an axis of 1 with padding 0 and 0");
}

TEST(OpTyping, Products) {
  Dim n = Dim::symbol("N");
  EXPECT_EQ(type_of("nn.dense", {var({n, 7, 4}), var({5, 4})}), "Tensor[(N, 7, 5), float32]");
  EXPECT_EQ(type_of("nn.dense", {var({2, 3}), var({5, 4})}),
            "nn.dense: the inner sizes of Tensor[(2, 3), float32] and Tensor[(5, 4), float32] are 3 and 4");
  EXPECT_EQ(type_of("nn.batch_matmul", {var({n, 1, 2, 3}), var({6, 4, 3})}), "Tensor[(N, 6, 2, 4), float32]");
  EXPECT_EQ(type_of("nn.batch_matmul", {var({2, 2, 3}), var({3, 4, 3})}),
            "nn.batch_matmul: shapes (2,) and (3,) do not broadcast");
  EXPECT_EQ(type_of("nn.matmul", {var({2, 3}), var({4, 3})}),
            "nn.matmul: the inner sizes of Tensor[(2, 3), float32] and Tensor[(4, 3), float32] are 3 and 4");
}

TEST(OpTyping, ReshapeCodes) {
  Dim n = Dim::symbol("N"), c = Dim::symbol("C");
  auto reshape = [&](Shape s, std::vector<int64_t> to) {
    return type_of("reshape", {var(std::move(s))}, with<ReshapeAttrs>([&](auto& a) { a.newshape = to; }));
  };
  EXPECT_EQ(reshape({n, 4, 6}, {0, -1}), "Tensor[(N, 24), float32]");
  EXPECT_EQ(reshape({n, 4, 6}, {-1, 24}), "Tensor[(N, 24), float32]");
  EXPECT_EQ(reshape({n, 4, 6}, {-1, 8}), "Tensor[(N*3, 8), float32]");
  EXPECT_EQ(reshape({n, c, 6}, {0, 0, 3, -1}), "Tensor[(N, C, 3, 2), float32]");
  EXPECT_EQ(reshape({2, 3}, {4, -1}), "reshape: (2, 3) cannot be reshaped to (4, -1): the sizes do not divide");
  EXPECT_EQ(reshape({2, 3}, {7}), "reshape: (2, 3) cannot be reshaped to (7,): the number of elements differs");
  EXPECT_EQ(reshape({2, 3}, {-1, -1}), "reshape: (2, 3) cannot be reshaped to (-1, -1): -1 appears twice");
  EXPECT_EQ(reshape({2}, {2, 0}), "reshape: (2,) cannot be reshaped to (2, 0): 0 has no dim to copy");
  EXPECT_EQ(reshape({2, 3}, {-9}), "reshape: (2, 3) cannot be reshaped to (-9,): unknown code -9");
}

TEST(OpTyping, TransformsKeepSymbols) {
  Dim n = Dim::symbol("N");
  auto slice = [&](std::vector<int64_t> b, std::vector<int64_t> e) {
    return type_of("strided_slice", {var({n, 4})}, with<StridedSliceAttrs>([&](auto& a) {
                     a.begin = b;
                     a.end = e;
                     a.axes = {{0}};
                   }));
  };
  EXPECT_EQ(slice({1}, {INT64_MAX}), "Tensor[(N + -1, 4), float32]");
  EXPECT_EQ(slice({0}, {-1}), "Tensor[(N + -1, 4), float32]");
  EXPECT_EQ(slice({0}, {8}), "Tensor[(min(N, 8), 4), float32]");
  EXPECT_EQ(type_of("concatenate", {make_tuple({var({n, 2}), var({n, 3})})},
                    with<ConcatenateAttrs>([](auto& a) { a.axis = 1; })),
            "Tensor[(N, 5), float32]");
  EXPECT_EQ(type_of("split", {var({n, 6})}, with<SplitAttrs>([](auto& a) { a.sections = 2, a.axis = 1; })),
            "(Tensor[(N, 3), float32], Tensor[(N, 3), float32])");
  EXPECT_EQ(type_of("topk", {var({n, 6})}, with<TopKAttrs>([](auto& a) { a.k = 2, a.ret_type = "values"; })),
            "Tensor[(N, 2), float32]");
  EXPECT_EQ(type_of("argwhere", {var({n, 6})}), "Tensor[(?, 2), int64]");
  EXPECT_EQ(type_of("arange", {make_scalar(0, kInt64), make_var("n", tensor_type({}, kInt64)), make_scalar(1, kInt64)}),
            "Tensor[(?), float32]");
}

TEST(OpTyping, TransformErrors) {
  Expr x = var({2, 3});
  EXPECT_EQ(type_of("transpose", {x}, with<TransposeAttrs>([](auto& a) {
                      a.axes = {{0, 0}};
                    })),
            "transpose: axis 0 is listed twice");
  EXPECT_EQ(type_of("transpose", {x}, with<TransposeAttrs>([](auto& a) { a.axes = {{0}}; })),
            "transpose: axes has 1 values for rank 2");
  EXPECT_EQ(type_of("squeeze", {x}, with<SqueezeAttrs>([](auto& a) { a.axis = {{1}}; })),
            "squeeze: axis 1 of (2, 3) is not 1");
  EXPECT_EQ(type_of("concatenate", {make_tuple({x, var({3, 3})})}, with<ConcatenateAttrs>([](auto& a) { a.axis = 1; })),
            "concatenate: Tensor[(2, 3), float32] and Tensor[(3, 3), float32] do not join along axis 1");
  EXPECT_EQ(type_of("concatenate", {make_tuple({})}), "concatenate: it needs at least one tensor");
  EXPECT_EQ(type_of("split", {x}, with<SplitAttrs>([](auto& a) { a.sections = 2, a.axis = 1; })),
            "split: axis 1 of (2, 3) does not divide into 2");
  EXPECT_EQ(type_of("strided_slice", {x},
                    with<StridedSliceAttrs>([](auto& a) { a.begin = {0}, a.end = {1}, a.strides = {0}; })),
            "strided_slice: stride 0 of axis 0");
  EXPECT_EQ(type_of("expand_dims", {x}, with<ExpandDimsAttrs>([](auto& a) { a.axis = 4; })),
            "expand_dims: axis 4 is outside a tensor of rank 3");
  EXPECT_EQ(type_of("broadcast_to", {x}, with<InitOpAttrs>([](auto& a) {
                      a.shape = {2, 4};
                    })),
            "broadcast_to: (2, 3) does not broadcast to (2, 4)");
  EXPECT_EQ(type_of("layout_transform", {var({1, 20, 4, 4})},
                    with<LayoutTransformAttrs>([](auto& a) { a.src_layout = "NCHW", a.dst_layout = "NHW"; })),
            "layout_transform: layouts NCHW and NHW have other axes");
  EXPECT_EQ(type_of("zeros", {}, with<InitOpAttrs>([](auto& a) { a.shape = {INT64_MAX}; })),
            "zeros: shape has 9223372036854775807");
}

TEST(OpTyping, IndexErrors) {
  Expr x = var({2, 3}), i = var({2}, kInt64);
  EXPECT_EQ(type_of("take", {x, x}, with<TakeAttrs>([](auto& a) { a.axis = 0; })),
            "take: the indices are float32, not integers");
  EXPECT_EQ(type_of("gather", {x, i}), "gather: data (2, 3) and indices (2,) differ in rank");
  EXPECT_EQ(type_of("gather_nd", {x, var({3, 4}, kInt64)}),
            "gather_nd: 3 coordinates after 0 batch axes do not index data (2, 3)");
  EXPECT_EQ(
      type_of("gather_nd", {x, var({1, 4}, kInt64)}, with<GatherNDAttrs>([](auto& a) { a.batch_dims = INT64_MAX; }))
          .substr(0, 10),
      "gather_nd:");
  EXPECT_EQ(type_of("scatter_nd", {x, var({1, 4}, kInt64), var({4, 2})}),
            "scatter_nd: updates are (4, 2), but data (2, 3) and indices (1, 4) need (4, 3)");
  EXPECT_EQ(type_of("topk", {x}, with<TopKAttrs>([](auto& a) { a.k = 9; })), "topk: k 9 is outside axis 1 of (2, 3)");
  EXPECT_EQ(type_of("topk", {make_tuple({x})}), "topk: operand 0 is (Tensor[(2, 3), float32],), not a tensor");
  EXPECT_EQ(type_of("sum", {x}, with<ReduceAttrs>([](auto& a) { a.axis = {{2}}; })),
            "sum: axis 2 is outside a tensor of rank 2");
  EXPECT_EQ(type_of("argmax", {var({2, 3, 4})}, with<ArgReduceAttrs>([](auto& a) {
                      a.axis = {{0, 1}};
                    })),
            "Tensor[(4), int32]");
  EXPECT_EQ(type_of("einsum", {make_tuple({x, x})}, with<EinsumAttrs>([](auto& a) { a.equation = "ij,jk->ik"; })),
            "einsum: axis j is 3 and 2");
  EXPECT_EQ(type_of("einsum", {make_tuple({x})}, with<EinsumAttrs>([](auto& a) { a.equation = "ij->ik"; })),
            "einsum: equation \"ij->ik\" has a result axis that no operand has");
}

TEST(OpTyping, NormAndImageErrors) {
  Expr x = var({2, 3, 4, 4});
  EXPECT_EQ(type_of("nn.batch_norm", {x, var({3}), var({4}), var({3}), var({3})}),
            "nn.batch_norm: beta is (4,), but axis 1 of the data (2, 3, 4, 4) has 3");
  EXPECT_EQ(type_of("nn.softmax", {var({2}, kInt32)}), "nn.softmax: it needs a floating dtype, not int32");
  EXPECT_EQ(type_of("image.resize2d", {x}, with<Resize2DAttrs>([](auto& a) {
                      a.size = {1, 1}, a.method = "magic";
                    })),
            "image.resize2d: method is \"magic\", not nearest_neighbor, linear or cubic");
  EXPECT_EQ(type_of("nn.pad", {x, make_scalar(0)}, with<PadAttrs>([](auto& a) {
                      a.pad_width = {{1, 1}};
                    })),
            "nn.pad: pad_width has 1 pairs for data (2, 3, 4, 4)");
  EXPECT_EQ(type_of("nn.lstm", {x}, with<RecurrentAttrs>([](auto& a) { a.hidden_size = 2; })),
            "nn.lstm: it takes 6 operands, not 1");
  EXPECT_EQ(type_of("nn.depth_to_space", {x}, with<SubPixelAttrs>([](auto& a) { a.block_size = 2; })),
            "nn.depth_to_space: axis C of (2, 3, 4, 4) does not divide by 4");
}

TEST(OpEvaluation, WrongValuesAreErrors) {
  auto axis0 = with<TakeAttrs>([](auto& a) { a.axis = 0, a.mode = "fast"; });
  EXPECT_EQ(failure("take", {ramp({3}), ints({1}, {3})}, axis0), "take: index 3 is outside an axis of 3");
  EXPECT_EQ(failure("gather", {ramp({3}), ints({1}, {-4})}), "gather: index -4 is outside an axis of 3");
  EXPECT_EQ(failure("gather_nd", {ramp({3, 2}), ints({1, 1}, {7})}), "gather_nd: index 7 is outside an axis of 3");
  EXPECT_EQ(failure("scatter_elements", {ramp({3}), ints({1}, {5}), ramp({1})}),
            "scatter_elements: index 5 is outside an axis of 3");
  EXPECT_EQ(failure("floor_mod", {ints({1}, {5}), ints({1}, {0})}), "floor_mod: integer division by zero");
}

TEST(OpEvaluation, IntegerProductsAreExact) {
  const int64_t big = (int64_t{1} << 31) + 1;
  Value y = apply("nn.dense", {ints({1, 2}, {big, 1}), ints({1, 2}, {big, 0})})[0];
  EXPECT_EQ(y.i[0], big * big);
}

}  // namespace
}  // namespace tilewright::relay
