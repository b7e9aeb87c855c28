// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/bfloat16_products.h"

#include <algorithm>
#include <unordered_map>

#include "relay/calls.h"
#include "relay/ops/attrs.h"

namespace tilewright::relay {
namespace {

// Shorter reductions and fewer results do not pay for the conversion.
constexpr int64_t kLeastTerms = 16, kLeastResults = 8;

bool multiplies_bfloat16(const Target& target) {
  return std::any_of(target.cpu_features.begin(), target.cpu_features.end(),
                     [](const std::string& f) { return f == "avx512bf16" || f == "bf16"; });
}

// Whether the product takes less time: its arithmetic, or the weights' way where that is longer.
bool pays(const Expr& e, const Tensor& weight, const Target& target) {
  const MachineModel& machine = target.machine;
  const double rate = machine.bf16_rate;
  if (2 * rate > 1) return true;
  const auto shape = static_shape(tensor_of(e).shape);
  if (!shape) return false;
  double results = 1;
  for (int64_t d : *shape) results *= static_cast<double>(d);
  // Of dense layers and convolutions the weights' first dimension is the results', of matrices the one that is left.
  const bool last = is_call_to(e, "nn.matmul") && !attrs_of<MatmulAttrs>(e).transpose_b;
  const int64_t weights = weight.size(), outputs = weight.shape()[last ? 1 : 0], each_reads = weights / outputs;
  const double products = results * static_cast<double>(each_reads) * 32 / target.vector_bits;
  auto cycles = [&](double each, int64_t bytes) {
    const double way = bytes <= machine.l2_bytes ? machine.l2_rate : machine.l3_rate;
    return std::max(products * each / machine.fmas_per_cycle(target.vector_bits), static_cast<double>(bytes) / way);
  };
  return cycles(0.5 / rate, 2 * weights) < cycles(1, 4 * weights);
}

template <class A>
AttrsRef with_float32(const Expr& e) {
  AttrsRef copy(attrs_of<A>(e).clone());
  const_cast<A*>(attrs_as<A>(copy))->out_dtype = "float32";
  return copy;
}

// Attributes of the product with bfloat16 operands; null where it stays.
AttrsRef dense_product(const Expr& e, const std::vector<int64_t>& weight) {
  const bool dense = is_call_to(e, "nn.dense");
  if (!dense && (!is_call_to(e, "nn.matmul") || attrs_of<MatmulAttrs>(e).transpose_a)) return {};
  const size_t out = dense || attrs_of<MatmulAttrs>(e).transpose_b ? 0 : 1;
  if (weight.size() != 2 || weight[1 - out] < kLeastTerms || weight[out] < kLeastResults) return {};
  return dense ? with_float32<DenseAttrs>(e) : with_float32<MatmulAttrs>(e);
}

// A tile of four outputs along each axis takes (taps + 3) / 4 multiplications an output where there were `taps`; pairs
// halve them.
bool winograd_is_as_good(const Conv2DAttrs& a, const std::vector<int64_t>& weight) {
  const bool plain = std::all_of(a.strides.begin(), a.strides.end(), [](int64_t s) { return s == 1; });
  const auto rows = static_cast<double>(weight[2]), columns = static_cast<double>(weight[3]);
  auto share = [](double taps) { return taps == 1 ? 1.0 : (taps + 3) / (4 * taps); };
  return plain && rows <= 5 && columns <= 5 && share(rows) * share(columns) <= 0.5;
}

AttrsRef conv2d_product(const Expr& e, const std::vector<int64_t>& weight) {
  if (!is_call_to(e, "nn.conv2d")) return {};
  const auto& a = attrs_of<Conv2DAttrs>(e);
  if (a.data_layout != "NCHW" || a.kernel_layout != "OIHW" || !(a.out_layout.empty() || a.out_layout == "NCHW") ||
      a.groups != 1 || weight.size() != 4 || weight[1] < kLeastTerms || weight[1] % 2 != 0 ||
      weight[0] < kLeastResults || winograd_is_as_good(a, weight))
    return {};
  return with_float32<Conv2DAttrs>(e);
}

// What several products read is rounded once. Keys live as long as their expressions, which are kept beside.
using Rounded = std::unordered_map<const ExprNode*, std::pair<Expr, Expr>>;

Expr rounded_product(const Expr& e, const Target& target, Rounded* rounded_data) {
  const bool floats = called_op(e) && is_float_tensor(e) && tensor_of(e).dtype == kFloat32 &&
                      as<CallNode>(e)->args.size() == 2 && as_tensor(arg(e, 0)->type) && as_tensor(arg(e, 1)->type) &&
                      tensor_of(arg(e, 0)).dtype == kFloat32;
  const Tensor* weights = floats ? constant_data(arg(e, 1)) : nullptr;
  if (!weights || weights->dtype() != kFloat32) return e;
  AttrsRef attrs = dense_product(e, weights->shape());
  if (!attrs) attrs = conv2d_product(e, weights->shape());
  if (!attrs || !pays(e, *weights, target)) return e;
  Tensor rounded(kBFloat16, weights->shape());
  for (int64_t i = 0; i < weights->size(); ++i) rounded.set_double(i, weights->at_double(i));
  auto& [data, small] = (*rounded_data)[arg(e, 0).get()];
  if (!data) data = arg(e, 0), small = cast(data, kBFloat16);
  return call(called_op(e)->name, {small, make_constant(std::move(rounded), arg(e, 1)->span)}, attrs, e->span);
}

}  // namespace

Result<Module> bfloat16_products(const Module& module, PassContext& context) {
  if (!context.target || !context.target->bfloat16_products || !multiplies_bfloat16(*context.target)) return module;
  Rounded rounded;
  return rewrite_module(module,
                        [&](const Expr&, const Expr& e) { return rounded_product(e, *context.target, &rounded); });
}

}  // namespace tilewright::relay
