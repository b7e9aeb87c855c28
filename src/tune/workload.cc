// SPDX-License-Identifier: Apache-2.0
#include "tune/workload.h"

#include <string_view>

#include "base/format.h"
#include "lower/conv_problem.h"
#include "relay/ops/attrs.h"
#include "tune/folded_stride.h"

namespace tilewright::tune {
namespace {
using nlohmann::json;

json tensor_arg(const std::vector<int64_t>& shape, DataType dtype) { return {"TENSOR", shape, dtype.str()}; }

std::string suffix_of(const Target& target) { return target.mtriple.rfind("aarch64", 0) == 0 ? ".arm_cpu" : ".x86"; }

// A convolution over channel blocks, described without blocks: classic tasks refer to the model before layouts.
Workload blocked_conv(const lower::Problem& p) {
  const topi::Conv2dProblem c = unfold_stride(p, lower::conv2d_problem(p));
  const json data = tensor_arg({c.batch, c.in_channels, c.in_height, c.in_width}, p.arg_dtype(0));
  const json kernel =
      tensor_arg({c.out_channels, c.in_channels / c.groups, c.kernel_height, c.kernel_width}, p.arg_dtype(1));
  const json strides = {c.stride_height, c.stride_width}, dilation = {c.dilation_height, c.dilation_width};
  const json padding = {c.pad_top, c.pad_left, c.pad_bottom, c.pad_right};
  const std::string out = p.graph.tensors[p.group.outputs[0]].dtype.str();
  if (c.groups > 1)
    return {"group_conv2d_nchw" + suffix_of(p.target), {data, kernel, strides, padding, dilation, c.groups, out}};
  return {"conv2d_NCHWc" + suffix_of(p.target), {data, kernel, strides, padding, dilation, "NCHW", "NCHW", out}};
}

Workload blocked_depthwise(const lower::Problem& p) {
  const topi::DepthwiseProblem d = lower::depthwise2d_problem(p);
  return {"depthwise_conv2d_NCHWc" + suffix_of(p.target),
          {tensor_arg({d.batch, d.channels, d.in_height, d.in_width}, p.arg_dtype(0)),
           tensor_arg({d.channels, 1, d.kernel_height, d.kernel_width}, p.arg_dtype(1)),
           {d.stride_height, d.stride_width},
           {d.pad_top, d.pad_left, d.pad_bottom, d.pad_right},
           {d.dilation_height, d.dilation_width},
           "NCHW",
           "NCHW",
           p.graph.tensors[p.group.outputs[0]].dtype.str()}};
}

// The number of rows when leading dimensions are merged.
int64_t rows_of(const std::vector<int64_t>& shape) {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return rows;
}

// C[M, N] = A[M, K] x B[N, K]; nn.matmul with a transposed B is the same product.
Workload product(const lower::Problem& p, const char* name) {
  const auto a = p.arg_shape(0), out = p.out_shape();
  return {name + suffix_of(p.target),
          {tensor_arg({rows_of(a), a.back()}, p.arg_dtype(0)), tensor_arg({out.back(), a.back()}, p.arg_dtype(1)),
           json(), p.graph.tensors[p.group.outputs[0]].dtype.str()}};
}

Workload batch_product(const lower::Problem& p) {
  const auto& attrs = p.attrs<relay::BatchMatmulAttrs>();
  return {"batch_matmul" + suffix_of(p.target),
          {tensor_arg(p.arg_shape(0), p.arg_dtype(0)), tensor_arg(p.arg_shape(1), p.arg_dtype(1)), p.out_shape(),
           p.graph.tensors[p.group.outputs[0]].dtype.str(), attrs.transpose_a, attrs.transpose_b}};
}

// Operators without a classic template: the operator's name, its tensors and its attributes.
Workload general(const lower::Problem& p) {
  std::string name(p.anchor.op);
  if (name.rfind("nn.", 0) == 0) name.erase(0, 3);
  json args = json::array();
  for (size_t i = 0; i < p.anchor.inputs.size(); ++i) args.push_back(tensor_arg(p.arg_shape(i), p.arg_dtype(i)));
  args.push_back(attrs_str(p.anchor.call->attrs));
  args.push_back(p.graph.tensors[p.group.outputs[0]].dtype.str());
  return {name + suffix_of(p.target), std::move(args)};
}

}  // namespace

Workload workload_of(const lower::Problem& p, const lower::Implementation& implementation) {
  const std::string_view name = implementation.name;
  auto is = [&](std::string_view prefix) { return name.substr(0, prefix.size()) == prefix; };
  if (is("conv2d_nchwc.")) return blocked_conv(p);
  if (is("depthwise_conv2d_nchwc.")) return blocked_depthwise(p);
  if (is("batch_matmul.")) return batch_product(p);
  // A constant B is packed, transposed or not; another's rows are read in place.
  if (is("dense.packed") || is("matmul.packed")) return product(p, "dense_pack");
  if (is("dense.gemm")) return product(p, "dense_nopack");
  return general(p);
}

std::string algorithm_of(const lower::Implementation& implementation) {
  const std::string name = implementation.name;
  return name.substr(name.find('.') + 1);
}

}  // namespace tilewright::tune
