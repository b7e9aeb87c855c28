// SPDX-License-Identifier: Apache-2.0
// com.microsoft: weight-only quantisation, in blocks along a row with a scale each. Weights are dequantised to the
// operand's type at import, except in products with few rows.
#include <array>
#include <functional>

#include "base/format.h"
#include "frontend/onnx/converters/attention.h"
#include "frontend/onnx/converters/quant.h"
#include "frontend/onnx/converters/weight_blocks.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

// Element i of a bit-packed array of `bits`-wide numbers, the lowest bits of a byte first.
int64_t packed_at(const Tensor& bytes, int64_t i, int64_t bits) {
  const int64_t each = 8 / bits;
  return (bytes.at_int(i / each) >> (bits * (i % each))) & ((int64_t{1} << bits) - 1);
}

void check_bits(NodeContext& c, int64_t bits) {
  if (bits != 2 && bits != 4 && bits != 8) c.unsupported(format("numbers of {} bits", bits));
}
int64_t bits_of(NodeContext& c) {
  const int64_t bits = c.int_attr("bits", 4);
  check_bits(c, bits);
  return bits;
}

Tensor bytes_of(NodeContext& c, size_t input, const char* what, int64_t least) {
  Tensor t = c.constant(input, what);
  if (t.dtype() != kUInt8 || t.size() < least)
    c.fail_type(
        format("its {} are {} elements of {} where {} bytes are needed", what, t.size(), t.dtype().str(), least));
  return t;
}

struct BlockedWeight {
  int64_t rows = 0, columns = 0, block = 0, blocks = 0;  // blocks: per row
};
BlockedWeight blocked_weight(NodeContext& c) {
  BlockedWeight w{c.int_attr("N"), c.int_attr("K"), c.int_attr("block_size"), 0};
  constexpr int64_t kMost = int64_t{1} << 31;
  if (w.rows < 1 || w.rows > kMost || w.columns < 1 || w.columns > kMost || w.block < 1 || w.block > kMost)
    c.fail(format("its weight of {} by {} in blocks of {} is impossible", w.rows, w.columns, w.block));
  c.product({w.rows, w.columns, 4});
  w.blocks = (w.columns + w.block - 1) / w.block;
  return w;
}

// a * transpose(weight), plus the bias.
Values product_with(NodeContext& c, const Expr& a, const Tensor& weight, size_t bias) {
  const int64_t rows = weight.shape()[0];
  Expr x = a;
  const bool vector = c.rank(a) == 1;
  if (vector) x = c.expand(x, 0);
  Expr y = c.call("nn.dense", {x, c.cast(c.constant_of(weight), c.dtype(a))},
                  make_attrs<relay::DenseAttrs>([&](auto& attrs) { attrs.units = rows; }));
  if (c.has(bias)) y = c.add(y, c.input(bias));
  return {vector ? c.squeeze(y, {0}) : y};
}

// With few rows the product is bound by reading the weight from memory, so it stays packed.
constexpr int64_t kFewRows = 8;
bool stays_packed(NodeContext& c, const BlockedWeight& w, const Tensor& packed, int64_t bits, bool ordered) {
  const int64_t blob = w.block * bits / 8;
  if (ordered || bits == 2 || w.block % 16 != 0 || w.block > (1 << 16) || c.dtype(c.input(0)) != kFloat32) return false;
  const Ints dims = c.dims(c.input(0));
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < dims.size(); ++i) rows *= dims[i];
  return packed.size() == w.rows * w.blocks * blob && rows >= 1 && rows <= kFewRows && !dims.empty() &&
         dims.back() == w.columns;
}

// A tensor of `of(row, block)` for every block.
Tensor of_blocks(const BlockedWeight& w, const std::function<double(int64_t, int64_t)>& of) {
  Tensor out(kFloat32, {w.rows, w.blocks});
  for (int64_t n = 0; n < w.rows; ++n)
    for (int64_t b = 0; b < w.blocks; ++b) out.set_double(n * w.blocks + b, of(n, b));
  return out;
}

Values matmul_n_bits(NodeContext& c) {
  const int64_t bits = bits_of(c);
  const BlockedWeight w = blocked_weight(c);
  if (c.int_attr("weight_prepacked", 0) != 0) c.unsupported("a weight that is packed for one kind of processor");
  const int64_t blob = (w.block * bits + 7) / 8, count = w.rows * w.blocks;
  const Tensor packed = bytes_of(c, 1, "weights", c.product({count, blob}));
  const Tensor scales = c.constant(2, "scales");
  if (scales.size() != count) c.fail_type(format("it has {} scales for {} blocks", scales.size(), count));
  const int64_t zero_row = (w.blocks * bits + 7) / 8;  // bytes; each row starts on a byte
  Tensor zeros;
  const bool has_zeros = c.has(3);
  if (has_zeros) zeros = c.constant(3, "zero points");
  const bool packed_zeros = has_zeros && zeros.dtype() == kUInt8;
  if (has_zeros && zeros.size() < (packed_zeros ? w.rows * zero_row : count))
    c.fail_type(format("it has {} zero points for {} blocks", zeros.size(), count));
  const auto middle = static_cast<double>(int64_t{1} << (bits - 1));
  auto zero_of = [&](int64_t n, int64_t b) {
    if (packed_zeros) return static_cast<double>(packed_at(zeros, n * zero_row * (8 / bits) + b, bits));
    return has_zeros ? zeros.at_double(n * w.blocks + b) : middle;
  };
  const bool ordered = c.has(4) && c.dims(c.input(4)) != Ints{0};
  if (stays_packed(c, w, packed, bits, ordered)) {
    const Tensor bytes = packed.reshaped({w.rows, w.blocks, blob});
    const Tensor factors = of_blocks(w, [&](int64_t n, int64_t b) { return scales.at_double(n * w.blocks + b); });
    const bool vector = c.rank(c.input(0)) == 1;
    const Expr x = vector ? c.expand(c.input(0), 0) : c.input(0);
    Expr y = c.call("nn.block_dense",
                    {x, c.constant_of(bytes), c.constant_of(factors), c.constant_of(of_blocks(w, zero_of))},
                    make_attrs<relay::BlockDenseAttrs>([&](auto& a) { a.bits = bits, a.block = w.block; }));
    if (c.has(5)) y = c.add(y, c.input(5));
    return {vector ? c.squeeze(y, {0}) : y};
  }
  Ints block_of(static_cast<size_t>(w.columns));
  const Ints order = ordered ? c.ints(4, "blocks of the columns") : Ints();
  if (ordered && static_cast<int64_t>(order.size()) < w.columns) c.fail_type("it has too few blocks of the columns");
  for (int64_t k = 0; k < w.columns; ++k) {
    int64_t& block = block_of[static_cast<size_t>(k)];
    block = ordered ? order[static_cast<size_t>(k)] : k / w.block;
    if (block < 0 || block >= w.blocks) c.fail(format("column {} is of block {}, there are {}", k, block, w.blocks));
  }
  Tensor weight(kFloat32, {w.rows, w.columns});
  auto* out = reinterpret_cast<float*>(weight.mutable_raw());
  std::vector<double> scale(static_cast<size_t>(w.blocks)), zero(static_cast<size_t>(w.blocks));
  for (int64_t n = 0; n < w.rows; ++n) {
    for (int64_t b = 0; b < w.blocks; ++b) {
      const auto at = static_cast<size_t>(b);
      scale[at] = scales.at_double(n * w.blocks + b), zero[at] = zero_of(n, b);
    }
    for (int64_t k = 0; k < w.columns; ++k) {
      const int64_t place = ((n * w.blocks + k / w.block) * blob) * (8 / bits) + k % w.block;
      const auto block = static_cast<size_t>(block_of[static_cast<size_t>(k)]);
      out[n * w.columns + k] =
          static_cast<float>((static_cast<double>(packed_at(packed, place, bits)) - zero[block]) * scale[block]);
    }
  }
  return product_with(c, c.input(0), weight, 5);
}

// By code: the sixteen values of four-bit floats (1 sign, 2
// exponent, 1 mantissa bit) and of NF4's normal quantiles.
constexpr std::array<double, 16> kFloat4 = {
    0,   0.00520833333,  0.66666667,  1,  0.33333333,  0.5,  0.16666667,  0.25,
    -0., -0.00520833333, -0.66666667, -1, -0.33333333, -0.5, -0.16666667, -0.25};
constexpr std::array<double, 16> kNormal4 = {-1,
                                             -0.6961928009986877,
                                             -0.5250730514526367,
                                             -0.39491748809814453,
                                             -0.28444138169288635,
                                             -0.18477343022823334,
                                             -0.09105003625154495,
                                             0,
                                             0.07958029955625534,
                                             0.16093020141124725,
                                             0.24611230194568634,
                                             0.33791524171829224,
                                             0.44070982933044434,
                                             0.5626170039176941,
                                             0.7229568362236023,
                                             1};

Values matmul_four_bit_floats(NodeContext& c) {
  const BlockedWeight w = blocked_weight(c);
  if (c.int_attr("transB", 1) == 0) c.unsupported("a weight that is not transposed");
  const int64_t kind = c.int_attr("quant_type", 1), count = w.rows * w.columns;
  if (kind != 0 && kind != 1) c.fail(format("its quant_type is {}", kind));
  const Tensor packed = bytes_of(c, 1, "weights", (count + 1) / 2);
  const Tensor largest = c.constant(2, "largest values");
  if (largest.size() < (count + w.block - 1) / w.block) c.fail_type("it has too few largest values of blocks");
  const auto& values = kind == 0 ? kFloat4 : kNormal4;
  Tensor weight(kFloat32, {w.rows, w.columns});
  auto* out = reinterpret_cast<float*>(weight.mutable_raw());
  for (int64_t i = 0; i < count; ++i) {
    const auto code = static_cast<size_t>(packed_at(packed, i ^ 1, 4));  // the high nibble comes first
    out[i] = static_cast<float>(values[code] * largest.at_double(i / w.block));
  }
  return product_with(c, c.input(0), weight, SIZE_MAX);
}

// Unpacks small integers of any type to one per byte; packed ones lie along the last axis.
Tensor one_per_byte(const Tensor& t, int64_t bits) {
  const bool packed = t.dtype() == kUInt8 && bits < 8;
  const bool is_signed = t.dtype().is_integral() && !t.dtype().is_uint();
  Ints shape = t.shape();
  if (packed) shape.back() *= 8 / bits;
  Tensor out(is_signed ? kInt8 : kUInt8, shape);
  for (int64_t i = 0; i < out.size(); ++i) out.set_int(i, packed ? packed_at(t, i, bits) : t.at_int(i));
  return out;
}

Values gather_block_quantized(NodeContext& c) {
  const int64_t bits = bits_of(c);
  const Tensor stored = c.constant(0, "data");
  if (stored.rank() < 1 || !stored.dtype().is_integral()) c.unsupported("data of " + stored.dtype().str());
  const Expr data = c.constant_of(one_per_byte(stored, bits)), scales = c.input(2);
  const int64_t rank = c.rank(data), from = c.axis(c.int_attr("gather_axis", 0), rank);
  const int64_t axis = c.axis(c.int_attr("quantize_axis", 1), rank), block = c.int_attr("block_size", 128);
  if (axis == from) c.unsupported("blocks along the axis it gathers from");
  auto rows = [&](const Expr& e) {
    return c.call("take", {e, c.input(1)}, make_attrs<relay::TakeAttrs>([&](auto& a) {
                    a.axis = from;
                    a.mode = "fast";
                  }));
  };
  Expr zero = c.has(3) ? rows(c.constant_of(one_per_byte(c.constant(3, "zero points"), bits))) : Expr();
  // Unsigned values without zero points are centred on the middle of their range.
  if (!zero && stored.dtype() == kUInt8)
    zero = c.broadcast_to(c.scalar(static_cast<double>(int64_t{1} << (bits - 1)), kUInt8), c.dims(rows(scales)));
  const int64_t along = axis > from ? axis + c.rank(c.input(1)) - 1 : axis;
  return {dequantized(c, rows(data), rows(scales), zero, along, block, c.dtype(scales))};
}

}  // namespace

Tensor expert_weights(NodeContext& c, const QuantizedExperts& stored) {
  check_bits(c, stored.bits);
  const Tensor packed = bytes_of(c, stored.weights, "weights", 0), scales = c.constant(stored.scales, "scales");
  if (packed.rank() != 3) c.fail_type("its weights must be (experts, rows, columns)");
  const int64_t each = 8 / stored.bits, count = packed.shape()[0] * packed.shape()[1];
  const int64_t columns = packed.shape()[2] * each, block = stored.block > 0 ? stored.block : columns;
  const int64_t blocks = block > 0 ? (columns + block - 1) / block : 0;
  if (scales.size() != count * blocks) c.fail_type(format("it has {} scales for {} rows", scales.size(), count));
  // Zero points of blocks begin on a byte in each row, those of whole rows in each expert.
  const int64_t rows = blocks == 1 && stored.block == 0 ? packed.shape()[1] : 1;
  const int64_t zero_row = (rows * blocks + each - 1) / each;
  Tensor zeros;
  if (c.has(stored.zeros))
    zeros = bytes_of(c, stored.zeros, "zero points", count / std::max<int64_t>(rows, 1) * zero_row);
  const auto middle = static_cast<double>(int64_t{1} << (stored.bits - 1));
  Tensor out(kFloat32, {packed.shape()[0], packed.shape()[1], columns});
  auto* value = reinterpret_cast<float*>(out.mutable_raw());
  for (int64_t n = 0; n < count; ++n)
    for (int64_t k = 0; k < columns; ++k) {
      const int64_t b = k / block, place = (n / rows) * zero_row * each + n % rows * blocks + b;
      const double zero = c.has(stored.zeros) ? static_cast<double>(packed_at(zeros, place, stored.bits)) : middle;
      const auto code = static_cast<double>(packed_at(packed, n * columns + k, stored.bits));
      value[n * columns + k] = static_cast<float>((code - zero) * scales.at_double(n * blocks + b));
    }
  return out;
}

namespace {

constexpr ConverterEntry kWeightBlocks[] = {
    {"MatMulNBits", 1, matmul_n_bits, "com.microsoft"},
    {"MatMulBnb4", 1, matmul_four_bit_floats, "com.microsoft"},
    {"GatherBlockQuantized", 1, gather_block_quantized, "com.microsoft"},
};

}  // namespace

std::span<const ConverterEntry> weight_blocks_converters() { return kWeightBlocks; }

}  // namespace tilewright::onnx
