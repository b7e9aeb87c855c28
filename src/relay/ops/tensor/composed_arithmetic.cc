// SPDX-License-Identifier: Apache-2.0
// Composed arithmetic operators, Fourier transforms, and identity marks.
#include <cmath>
#include <numbers>

#include "relay/ops/composition.h"
#include "relay/ops/training/attrs_training.h"

namespace tilewright::relay {
namespace {

using Ints = std::vector<int64_t>;

Result<Expr> expand_hardswish(const TypeArgs& args) {
  Composition c(args);
  if (!args.tensor(0).dtype.is_float()) return type_error(format("{} holds no floats", type_str(args.types[0])));
  return c.result(c.divide(c.times(c[0], c.clip(c.plus(c[0], 3), 0, 6)), 6));
}

// round(data * multiplier * 2^(shift - 31)), ties towards plus infinity.
Result<Expr> expand_fixed_point_multiply(const TypeArgs& args) {
  const auto& a = attrs_of<FixedPointMultiplyAttrs>(args);
  Composition c(args);
  if (args.tensor(0).dtype != kInt32) return type_error(format("{} is not int32", type_str(args.types[0])));
  if (a.shift < -31 || a.shift > 31 || a.multiplier < INT32_MIN || a.multiplier > INT32_MAX)
    return type_error(format("multiplier {} and shift {} are out of range", a.multiplier, a.shift));
  const int64_t right = 31 - a.shift;
  auto whole = [&](int64_t v) { return c.indices({v}, {}); };
  Expr wide = c.times(c.cast(c[0], kInt64), whole(a.multiplier));
  if (right > 0) wide = c.call("right_shift", {c.plus(wide, whole(int64_t{1} << (right - 1))), whole(right)});
  return c.result(c.cast(wide, kInt32));
}

// The DFT as two real matrices: scale * cos and scale * sin of sign * 2 pi i j / n, (rows, n).
struct DftMatrices {
  Expr cos, sin;
};
DftMatrices dft_matrices(Composition* c, int64_t rows, int64_t n, double sign, double scale, DataType dtype) {
  std::vector<double> cos, sin;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const double angle = sign * 2 * std::numbers::pi * static_cast<double>(i * j % n) / static_cast<double>(n);
      cos.push_back(scale * std::cos(angle));
      sin.push_back(scale * std::sin(angle));
    }
  return {c->numbers(cos, {rows, n}, dtype), c->numbers(sin, {rows, n}, dtype)};
}
Expr dense(Composition* c, const Expr& x, const Expr& weight) {
  return c->call("nn.dense", {x, weight}, make_default_attrs<DenseAttrs>());
}

Result<Expr> expand_dft(const TypeArgs& args) {
  const bool inverse = attrs_of<DFTAttrs>(args).inverse;
  Composition c(args);
  const Ints shape = TW_TRY(known_sizes(args, 0));
  const DataType dtype = args.tensor(0).dtype;
  if (!dtype.is_float() || shape.empty() || !type_equal(args.types[0], args.types[1]))
    return type_error(format("the real part {} and the imaginary part {} are not floats of one shape",
                             type_str(args.types[0]), type_str(args.types[1])));
  const int64_t n = shape.back();
  if (n < 1) return type_error("there is nothing to transform");
  TW_TRY_STATUS(fits_constant({n, n}));
  const DftMatrices w = dft_matrices(&c, n, n, inverse ? 1 : -1, inverse ? 1 / static_cast<double>(n) : 1, dtype);
  return c.result(c.tuple({c.minus(dense(&c, c[0], w.cos), dense(&c, c[1], w.sin)),
                           c.plus(dense(&c, c[0], w.sin), dense(&c, c[1], w.cos))}));
}

// (batch, time) -> (batch, frequencies, frames, 2)
Result<Expr> expand_stft(const TypeArgs& args) {
  const auto& a = attrs_of<StftAttrs>(args);
  Composition c(args);
  const Ints shape = TW_TRY(known_sizes(args, 0)), window = TW_TRY(known_sizes(args, 1));
  const DataType dtype = args.tensor(0).dtype;
  if (shape.size() != 2 || !dtype.is_float() || args.tensor(1).dtype != dtype)
    return type_error(format("{} is not (batch, time) floats, with a window {} of them", type_str(args.types[0]),
                             type_str(args.types[1])));
  const int64_t n = a.n_fft, hop = a.hop_length < 0 ? n / 4 : a.hop_length,
                length = a.win_length < 0 ? n : a.win_length;
  if (n < 1 || n > shape[1] || hop < 1 || length < 1 || length > n || window != Ints{length})
    return type_error(format("a transform of {} every {} samples with a window of {} ({}) does not fit {}", n, hop,
                             length, shape_str(window), shape_str(shape)));
  const int64_t frames = (shape[1] - n) / hop + 1, bins = a.onesided ? n / 2 + 1 : n;
  TW_TRY_STATUS(fits_constant({frames, n}));
  TW_TRY_STATUS(fits_constant({bins, n}));
  Ints from;
  for (int64_t f = 0; f < frames; ++f)
    for (int64_t i = 0; i < n; ++i) from.push_back(f * hop + i);
  const int64_t before = (n - length) / 2;
  Expr framed = c.times(c.take(c[0], c.indices(from, {frames, n}), 1),
                        c.pad(c[1], {{before, n - length - before}}, c.number(0, dtype)));
  const DftMatrices w = dft_matrices(&c, bins, n, -1, a.normalized ? 1 / std::sqrt(static_cast<double>(n)) : 1, dtype);
  auto part = [&](const Expr& wave) { return c.expand_dims(c.transpose(dense(&c, framed, wave), {0, 2, 1}), 3); };
  return c.result(c.concatenate({part(w.cos), part(w.sin)}, 3));
}

// Marks for other code generators and for debugging do not change the value.
Result<Expr> expand_identity(const TypeArgs& args) { return args.args[0]; }
OpDef mark(const char* name, const char* doc, AttrsRef (*make)() = nullptr) {
  return define_composed(name, doc, {{"data", "any tensor"}}, OpPattern::kOpaque, expand_identity, make);
}

}  // namespace

std::vector<OpDef> composed_arithmetic_ops() {
  return {
      define_composed("hardswish", "x * clip(x + 3, 0, 6) / 6.", {{"data", "floats"}}, OpPattern::kElemWise,
                      expand_hardswish),
      define_composed("fixed_point_multiply",
                      "round(data * multiplier * 2^(shift - 31)), halves towards plus infinity.", {{"data", "int32"}},
                      OpPattern::kElemWise, expand_fixed_point_multiply, make_default_attrs<FixedPointMultiplyAttrs>),
      define_composed("dft", "The discrete Fourier transform of the last axis: (real part, imaginary part).",
                      {{"re_data", "floats"}, {"im_data", "the same shape"}}, OpPattern::kOpaque, expand_dft,
                      make_default_attrs<DFTAttrs>),
      define_composed("stft", "The short-time Fourier transform: (batch, frequencies, frames, 2).",
                      {{"data", "(batch, time) floats"}, {"window", "(win_length)"}}, OpPattern::kOpaque, expand_stft,
                      make_default_attrs<StftAttrs>),
      mark("debug", "data; contrib.debugger.debug_executor shows every tensor.", make_default_attrs<DebugAttrs>),
      mark("annotation.checkpoint", "data; a mark for gradients that compute parts again."),
      mark("annotation.cast_hint", "data; a mark for other code generators.", make_default_attrs<CastHintAttrs>),
      mark("annotation.bitpack_start", "data; a mark for other code generators."),
      mark("annotation.bitpack_end", "data; a mark for other code generators."),
      mark("annotation.with_funcid", "data; a mark for other code generators."),
  };
}

}  // namespace tilewright::relay
