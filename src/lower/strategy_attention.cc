// SPDX-License-Identifier: Apache-2.0
// Fused attention.
#include <algorithm>

#include "lower/implementation.h"
#include "relay/ops/nn/attrs_attention.h"
#include "topi/attention.h"

namespace tilewright::lower {
namespace {
using namespace relay;

constexpr std::string_view kAxes = "BHSD";

std::vector<int64_t> permuted(const std::vector<int64_t>& dims, const std::string& layout) {
  std::vector<int64_t> out;
  for (char c : kAxes) out.push_back(dims[layout.find(c)]);
  return out;
}

// The view in the order (batch, head, position, element), beginning at head `first`.
topi::View in_order(const topi::View& view, const std::string& layout, int64_t first) {
  topi::View out = view;
  out.shape = permuted(view.shape, layout);
  out.strides = permuted(view.strides, layout);
  out.offset += first * out.strides[1];
  return out;
}

std::shared_ptr<Choice> attention(const Problem& p) {
  if (!p.anchor.direct() || p.arg_dtype(0) != kFloat32) return nullptr;
  const auto attrs = p.attrs<AttentionAttrs>();
  auto q = permuted(p.arg_shape(0), attrs.query_layout), k = permuted(p.arg_shape(1), attrs.key_layout),
       v = permuted(p.arg_shape(2), attrs.value_layout);
  if (attrs.query_layout.back() != 'D' || attrs.out_layout.back() != 'D') return nullptr;
  topi::AttentionProblem problem;
  problem.batch = q[0], problem.heads = attrs.num_heads, problem.queries = q[2], problem.keys = k[2],
  problem.size = q[3];
  problem.value_size = v[3], problem.group = attrs.group, problem.scale = attrs.scale;
  const bool masked = p.anchor.call->args.size() == 4;
  auto choice = std::make_shared<Choice>();
  choice->cost = topi::estimate(problem, p.target);
  Anchor anchor = p.anchor;
  choice->emit = [=](const GroupScope& scope, const topi::KernelContext& context) {
    auto input = [&](size_t i) -> const topi::View& { return scope.input(static_cast<size_t>(anchor.inputs[i])); };
    topi::Epilogue epilogue = [&, inner = scope.epilogue(anchor)](tir::PrimExpr value, const topi::Index& index,
                                                                  const tir::PrimExpr& mask) {
      topi::Index own;
      for (char c : attrs.out_layout) own.push_back(index[kAxes.find(c)]);
      return inner(std::move(value), own, mask);
    };
    return topi::attention(problem, in_order(input(0), attrs.query_layout, attrs.query_head),
                           in_order(input(1), attrs.key_layout, attrs.key_head),
                           in_order(input(2), attrs.value_layout, attrs.value_head), masked ? input(3) : topi::View(),
                           in_order(scope.output(), attrs.out_layout, 0), epilogue, context);
  };
  return choice;
}

constexpr Implementation kAttentionImplementations[] = {
    fixed<attention>("nn.attention", "attention.query_lanes", 10),
};

}  // namespace

std::span<const Implementation> attention_implementations() { return kAttentionImplementations; }

}  // namespace tilewright::lower
