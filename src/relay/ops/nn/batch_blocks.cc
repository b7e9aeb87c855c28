// SPDX-License-Identifier: Apache-2.0
// space_to_batch_nd and batch_to_space_nd. The Legalize pass expresses both by pads, reshapes and transposes, so they
// need no kernel.
#include "relay/ops/define.h"
#include "relay/ops/nn/attrs_batch_blocks.h"
#include "relay/ops/reference.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

using Pairs = std::vector<std::vector<int64_t>>;
constexpr int64_t kLargestBlock = int64_t{1} << 20;

Result<int64_t> checked_blocks(const Shape& in, const std::vector<int64_t>& block, const Pairs& pairs,
                               const char* what) {
  if (block.empty() || block.size() + 1 > in.size() || pairs.size() != block.size())
    return type_error(
        format("block_shape has {} values and {} {} for data {}", block.size(), what, pairs.size(), shape_str(in)));
  int64_t product = 1;
  for (size_t i = 0; i < block.size(); ++i) {
    if (block[i] < 1 || block[i] > kLargestBlock || (product *= block[i]) > kLargestBlock)
      return type_error(format("the block size {} is out of range", block[i]));
    if (pairs[i].size() != 2 || pairs[i][0] < 0 || pairs[i][1] < 0 || pairs[i][0] > (int64_t{1} << 40) ||
        pairs[i][1] > (int64_t{1} << 40))
      return type_error(format("{} {} is not two numbers from 0 on", what, i));
  }
  return product;
}

Result<Type> space_to_batch_type(const TypeArgs& args) {
  const auto& t = args.tensor(0);
  const auto& a = attrs_of<SpaceToBatchNDAttrs>(args);
  int64_t blocks = TW_TRY(checked_blocks(t.shape, a.block_shape, a.paddings, "paddings"));
  Shape out = t.shape;
  out[0] = out[0] * Dim(blocks);
  for (size_t i = 0; i < a.block_shape.size(); ++i) {
    Dim padded = out[i + 1] + Dim(a.paddings[i][0] + a.paddings[i][1]);
    if (padded.is_const() && padded.value() % a.block_shape[i])
      return type_error(format("axis {} has {} elements with its padding, not a multiple of {}", i + 1, padded.value(),
                               a.block_shape[i]));
    out[i + 1] = floordiv(padded, Dim(a.block_shape[i]));
  }
  return tensor_type(std::move(out), t.dtype);
}

Result<Type> batch_to_space_type(const TypeArgs& args) {
  const auto& t = args.tensor(0);
  const auto& a = attrs_of<BatchToSpaceNDAttrs>(args);
  int64_t blocks = TW_TRY(checked_blocks(t.shape, a.block_shape, a.crops, "crops"));
  Shape out = t.shape;
  if (out[0].is_const() && out[0].value() % blocks)
    return type_error(format("the batch {} is not a multiple of {}", out[0].value(), blocks));
  out[0] = floordiv(out[0], Dim(blocks));
  for (size_t i = 0; i < a.block_shape.size(); ++i) {
    out[i + 1] = out[i + 1] * Dim(a.block_shape[i]) - Dim(a.crops[i][0] + a.crops[i][1]);
    if (out[i + 1].is_const() && out[i + 1].value() < 0)
      return type_error(format("crops leave nothing of axis {}", i + 1));
  }
  return tensor_type(std::move(out), t.dtype);
}

// For every element of the blocked tensor its source in the plain one, or -1 for padding.
std::vector<int64_t> blocked_sources(const std::vector<int64_t>& plain, const std::vector<int64_t>& blocked,
                                     const std::vector<int64_t>& block, const Pairs& before) {
  std::vector<int64_t> strides = row_major_strides(plain), counter(blocked.size(), 0), out;
  const int64_t total = product(blocked, 0, blocked.size());
  out.reserve(static_cast<size_t>(total));
  for (int64_t k = 0; k < total; ++k) {
    int64_t index = counter[0] % plain[0] * strides[0], rest = counter[0] / plain[0];
    bool inside = true;
    for (size_t i = block.size(); i-- > 0;) {
      int64_t at = counter[i + 1] * block[i] + rest % block[i] - before[i][0];
      rest /= block[i];
      inside &= at >= 0 && at < plain[i + 1];
      index += at * strides[i + 1];
    }
    for (size_t d = block.size() + 1; d < blocked.size(); ++d) index += counter[d] * strides[d];
    out.push_back(inside ? index : -1);
    for (size_t d = blocked.size(); d-- > 0;) {
      if (++counter[d] < blocked[d]) break;
      counter[d] = 0;
    }
  }
  return out;
}

Result<std::vector<Value>> eval_space_to_batch(const EvalArgs& args) {
  const auto& a = args.as<SpaceToBatchNDAttrs>();
  const Value& in = args.inputs[0];
  std::vector<int64_t> shape = out_shape(args), index = blocked_sources(in.shape, shape, a.block_shape, a.paddings);
  Value out = pick(in, shape, index);
  for (size_t k = 0; k < index.size(); ++k)
    if (index[k] < 0 && in.is_float())
      out.f[k] = a.pad_value;
    else if (index[k] < 0 && !out.i.empty())
      out.i[k] = static_cast<int64_t>(a.pad_value);
  return one(std::move(out));
}

Result<std::vector<Value>> eval_batch_to_space(const EvalArgs& args) {
  const auto& a = args.as<BatchToSpaceNDAttrs>();
  const Value& in = args.inputs[0];
  std::vector<int64_t> shape = out_shape(args), inverse(static_cast<size_t>(product(shape, 0, shape.size())), 0);
  std::vector<int64_t> sources = blocked_sources(shape, in.shape, a.block_shape, a.crops);
  for (size_t k = 0; k < sources.size(); ++k)
    if (sources[k] >= 0) inverse[static_cast<size_t>(sources[k])] = static_cast<int64_t>(k);
  return one(pick(in, shape, inverse));
}

}  // namespace

std::vector<OpDef> batch_blocks_ops() {
  const std::vector<ArgDoc> data = {{"data", "(N, ...)"}};
  return {
      define_op("nn.batch_to_space_nd", "Blocks of the batch laid side by side along the axes after it, cropped.", data,
                OpPattern::kInjective, batch_to_space_type, eval_batch_to_space,
                make_default_attrs<BatchToSpaceNDAttrs>)
          .with({.elements = Elements::kRepeated}),
      define_op("nn.space_to_batch_nd",
                "The axes after the batch, padded and cut into blocks that move into the batch.", data,
                OpPattern::kInjective, space_to_batch_type, eval_space_to_batch,
                make_default_attrs<SpaceToBatchNDAttrs>)
          .with({.elements = Elements::kMoved}),
  };
}

}  // namespace tilewright::relay
