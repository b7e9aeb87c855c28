// SPDX-License-Identifier: Apache-2.0
// A product whose weight is quantised in blocks along a row, each with a scale and a zero point.
#include <cmath>

#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/reference.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

Result<Type> block_dense_type(const TypeArgs& args) {
  const auto& a = *attrs_as<BlockDenseAttrs>(args.attrs);
  if ((a.bits != 4 && a.bits != 8) || a.block < 16 || a.block > (1 << 16) || a.block % 16 != 0)
    return type_error(format("numbers of {} bits in blocks of {} are not 4 or 8 in a multiple of 16", a.bits, a.block));
  const auto &data = args.tensor(0), &weight = args.tensor(1);
  if (data.dtype != kFloat32 || data.shape.size() < 2 || weight.dtype != kUInt8 || weight.shape.size() != 3)
    return type_error(format("{} and {} are not float32 (..., M, K) and uint8 (N, blocks, bytes)",
                             type_str(args.types[0]), type_str(args.types[1])));
  if (dims_differ(weight.shape[2], Dim(a.block * a.bits / 8)))
    return type_error(
        format("blocks of {} bytes are not {} numbers of {} bits", weight.shape[2].str(), a.block, a.bits));
  const Dim& depth = data.shape.back();
  if (depth.is_const() && dims_differ(weight.shape[1], Dim((depth.value() - 1 + a.block) / a.block)))
    return type_error(
        format("{} blocks of {} are not the {} columns of the data", weight.shape[1].str(), a.block, depth.str()));
  for (size_t i : {size_t{2}, size_t{3}}) {
    const auto& t = args.tensor(i);
    if (t.dtype != kFloat32 || t.shape.size() != 2 || dims_differ(t.shape[0], weight.shape[0]) ||
        dims_differ(t.shape[1], weight.shape[1]))
      return type_error(format("{} is not a float32 for each block", type_str(args.types[i])));
  }
  Shape out(data.shape.begin(), data.shape.end() - 1);
  out.push_back(weight.shape[0]);
  return tensor_type(out, kFloat32);
}

Result<std::vector<Value>> eval_block_dense(const EvalArgs& args) {
  const auto& a = args.as<BlockDenseAttrs>();
  const Value &x = args.inputs[0], &weight = args.inputs[1], &scales = args.inputs[2], &zeros = args.inputs[3];
  const int64_t n = weight.shape[0], blocks = weight.shape[1], bytes = weight.shape[2], k = x.shape.back();
  Value out = out_value(args);
  out.bound.assign(static_cast<size_t>(out.size()), 0.0);
  const double u = unit_roundoff(kFloat32) * kSumSlack;
  for (int64_t i = 0; i < out.size(); ++i) {
    const int64_t row = i / n, column = i % n;
    double sum = 0, squares = 0, spread = 0;
    for (int64_t at = 0; at < k; ++at) {
      const auto block = static_cast<size_t>(column * blocks + at / a.block);
      const int64_t inside = at % a.block, byte = inside * a.bits / 8;
      int64_t number = weight.i[block * static_cast<size_t>(bytes) + static_cast<size_t>(byte)];
      if (a.bits == 4) number = number >> (inside % 2 * 4) & 15;
      const auto from = static_cast<size_t>(row * k + at);
      const double exact = static_cast<double>(number) - zeros.f[block], scale = scales.f[block];
      // The kernel subtracts two sums, with and without the zero point, so the bound must cover cancellation between
      // them.
      const double size = (static_cast<double>(number) + std::fabs(zeros.f[block])) * scale * x.f[from];
      const double error = bound_at(x, row * k + at) * exact * scale;
      sum += exact * scale * x.f[from];
      squares += size * size;
      spread += error * error;
    }
    out.f[static_cast<size_t>(i)] = sum;
    out.bound[static_cast<size_t>(i)] = u * std::sqrt(squares) + std::sqrt(spread);
  }
  return one(std::move(out));
}

}  // namespace

std::vector<OpDef> block_dense_ops() {
  return {
      define_op("nn.block_dense",
                "(..., M, K) x (N, K) -> (..., M, N), the weight's numbers being (number - zero) * scale of its block.",
                {{"data", "(..., M, K), float32"},
                 {"weight", "(N, blocks, bytes of a block), uint8, the lowest bits first"},
                 {"scales", "(N, blocks)"},
                 {"zeros", "(N, blocks)"}},
                OpPattern::kOutEWiseFusable, block_dense_type, eval_block_dense, make_default_attrs<BlockDenseAttrs>)};
}

}  // namespace tilewright::relay
