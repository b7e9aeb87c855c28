// SPDX-License-Identifier: Apache-2.0
// Tensor creation.
#include <algorithm>
#include <cmath>
#include <functional>

#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace creation {
namespace {

using Ints = std::vector<int64_t>;

Expr filled(NodeContext& c, const Expr& value, const Ints& sizes) {
  for (int64_t s : sizes)
    if (s < 0) c.fail(format("its shape {} is impossible", shape_str(sizes)));
  if (c.product(sizes) > (int64_t{1} << 40)) c.fail(format("its shape {} is impossible", shape_str(sizes)));
  return c.call("full", {value}, make_attrs<relay::InitOpAttrs>([&](auto& a) {
                  a.shape = sizes;
                  a.dtype = c.dtype(value).str();
                }));
}
// The dtype that PyTorch gives a Python number: int64, float32 or bool.
DataType default_dtype(NodeContext& c, const Value& v) {
  const DataType dtype = c.dtype(v.expr);
  return v.kind == Value::kNumber && dtype.is_float() ? kFloat32 : dtype;
}

template <int kValue>
Values constant(NodeContext& c) {
  return {filled(c, c.scalar(kValue, c.dtype_arg("dtype", kFloat32)), c.ints("size"))};
}
template <int kValue>
Values constant_like(NodeContext& c) {
  Expr x = c.tensor("self");
  return {filled(c, c.scalar(kValue, c.dtype_arg("dtype", c.dtype(x))), c.dims(x))};
}
template <int kValue>
Values constant_of_its_type(NodeContext& c) {
  return {filled(c, c.scalar(kValue, c.dtype_arg("dtype", c.dtype(c.tensor("self")))), c.ints("size"))};
}
Values full(NodeContext& c) {
  const Value& v = c.value("fill_value");
  return {filled(c, c.as_tensor(v, c.dtype_arg("dtype", default_dtype(c, v))), c.ints("size"))};
}
Values full_like(NodeContext& c) {
  Expr x = c.tensor("self");
  return {filled(c, c.as_tensor(c.value("fill_value"), c.dtype_arg("dtype", c.dtype(x))), c.dims(x))};
}
Values new_full(NodeContext& c) {
  const DataType dtype = c.dtype_arg("dtype", c.dtype(c.tensor("self")));
  return {filled(c, c.as_tensor(c.value("fill_value"), dtype), c.ints("size"))};
}
Values scalar_tensor(NodeContext& c) {
  const Value& v = c.value("s");
  return {c.as_tensor(v, c.dtype_arg("dtype", kFloat32))};
}

// start, start + step, ..., up to but excluding end.
Values arange(NodeContext& c) {
  std::vector<const Value*> given = {c.find("start"), &c.value("end"), c.find("step")};
  bool real = false;
  for (const Value* v : given) real = real || (v && c.dtype(v->expr).is_float());
  const DataType dtype = c.dtype_arg("dtype", real ? kFloat32 : kInt64);
  const double start = c.number("start", 0), end = c.number("end"), step = c.number("step", 1);
  const double count = std::ceil((end - start) / step);
  if (step == 0 || !(count < 1e9) || (end - start) / step < 0)
    c.fail(format("{} steps of {} are impossible", count, step));
  // For integers, count and elements are computed in integers.
  // Long ranges are computed by the model, not stored in it.
  if (count > (1 << 16)) {
    const DataType wide = real ? kFloat64 : kInt64;
    auto at = [&](double v) { return c.scalar(v, wide); };
    return {c.cast(c.call("arange", {at(start), at(end), at(step)},
                          make_attrs<relay::ArangeAttrs>([&](auto& a) { a.dtype = wide; })),
                   dtype)};
  }
  Tensor t = Tensor::zeros(dtype, {static_cast<int64_t>(count)});
  for (int64_t i = 0; i < t.size(); ++i) {
    if (real)
      t.set_double(i, start + static_cast<double>(i) * step);
    else if (dtype.is_float())
      t.set_double(i, static_cast<double>(c.integer("start", 0) + i * c.integer("step", 1)));
    else
      t.set_int(i, c.integer("start", 0) + i * c.integer("step", 1));
  }
  return {c.constant_of(t)};
}
Values linspace(NodeContext& c) {
  const double start = c.number("start"), end = c.number("end");
  const int64_t steps = c.integer("steps");
  if (steps < 0 || steps > (1 << 20)) c.fail(format("{} steps are impossible", steps));
  Tensor t = Tensor::zeros(c.dtype_arg("dtype", kFloat32), {steps});
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  // Counts from both ends, so that the last element is exactly `end`.
  for (int64_t i = 0; i < steps; ++i)
    t.set_double(i, i < steps / 2 ? start + step * static_cast<double>(i)
                    : steps == 1  ? start
                                  : end - step * static_cast<double>(steps - 1 - i));
  return {c.constant_of(t)};
}
Values eye(NodeContext& c) {
  const int64_t rows = c.integer("n"), columns = c.integer("m", rows);
  if (rows < 0 || columns < 0 || c.product({rows, columns}) > (1 << 26)) c.fail("its sizes are impossible");
  Expr row = c.expand(c.counting(rows), 1), column = c.expand(c.counting(columns), 0);
  return {c.cast(c.call("equal", {row, column}), c.dtype_arg("dtype", kFloat32))};
}

// ---- windows of signals, and frequencies

Expr sampled(NodeContext& c, int64_t count, const std::function<double(int64_t)>& at) {
  if (count < 0 || count > (1 << 24)) c.fail(format("its length {} is impossible", count));
  Tensor t = Tensor::zeros(c.dtype_arg("dtype", kFloat32), {count});
  for (int64_t i = 0; i < count; ++i) t.set_double(i, at(i));
  return c.constant_of(t);
}
// A function of the way through the window; a periodic one leaves its last point out.
Expr window(NodeContext& c, const std::function<double(double)>& shape) {
  const int64_t count = c.integer("window_length");
  const int64_t steps = count - (c.flag("periodic", true) ? 0 : 1);
  return sampled(
      c, count, [&](int64_t i) { return count == 1 ? 1 : shape(static_cast<double>(i) / static_cast<double>(steps)); });
}
Values hann(NodeContext& c) {
  return {window(c, [](double t) { return 0.5 - 0.5 * std::cos(2 * M_PI * t); })};
}
Values hamming(NodeContext& c) {
  const double alpha = c.number("alpha", 0.54), beta = c.number("beta", 0.46);
  return {window(c, [&](double t) { return alpha - beta * std::cos(2 * M_PI * t); })};
}
Values blackman(NodeContext& c) {
  return {window(c, [](double t) { return 0.42 - 0.5 * std::cos(2 * M_PI * t) + 0.08 * std::cos(4 * M_PI * t); })};
}
Values bartlett(NodeContext& c) {
  return {window(c, [](double t) { return 1 - std::abs(2 * t - 1); })};
}
Values kaiser(NodeContext& c) {
  const double beta = c.number("beta", 12);
  auto bessel = [](double x) {  // of the first kind, modified, order 0
    double sum = 1, term = 1;
    for (int k = 1; k < 500 && term > sum * 1e-17; ++k) sum += term *= x * x / (4.0 * k * k);
    return sum;
  };
  return {window(c, [&](double t) {
    const double side = 2 * t - 1;
    return bessel(beta * std::sqrt(std::max(0.0, 1 - side * side))) / bessel(beta);
  })};
}
template <bool kOneSided>
Values frequencies(NodeContext& c) {
  const int64_t n = c.integer("n");
  const double width = static_cast<double>(n) * c.number("d", 1);
  return {sampled(c, kOneSided ? n / 2 + 1 : n,
                  [&](int64_t i) { return static_cast<double>(!kOneSided && i >= (n + 1) / 2 ? i - n : i) / width; })};
}
Values logspace(NodeContext& c) {
  const double start = c.number("start"), end = c.number("end"), base = c.number("base", 10);
  const int64_t steps = c.integer("steps");
  return {sampled(c, steps, [&](int64_t i) {
    return std::pow(
        base, steps == 1 ? start : start + (end - start) * static_cast<double>(i) / static_cast<double>(steps - 1));
  })};
}

Values random(NodeContext& c) { c.unsupported("random numbers"); }

constexpr ConverterEntry kTable[] = {
    {"aten.zeros", constant<0>},
    {"aten.ones", constant<1>},
    {"aten.empty", constant<0>},
    {"aten.empty_strided", constant<0>},
    {"aten.empty_permuted", constant<0>},
    {"aten.zeros_like", constant_like<0>},
    {"aten.ones_like", constant_like<1>},
    {"aten.empty_like", constant_like<0>},
    {"aten.new_zeros", constant_of_its_type<0>},
    {"aten.new_ones", constant_of_its_type<1>},
    {"aten.new_empty", constant_of_its_type<0>},
    {"aten.new_empty_strided", constant_of_its_type<0>},
    {"aten.full", full},
    {"aten.full_like", full_like},
    {"aten.new_full", new_full},
    {"aten.scalar_tensor", scalar_tensor},
    {"aten.arange", arange},
    {"aten.linspace", linspace},
    {"aten.eye", eye},
    {"aten.hann_window", hann},
    {"aten.hamming_window", hamming},
    {"aten.blackman_window", blackman},
    {"aten.bartlett_window", bartlett},
    {"aten.kaiser_window", kaiser},
    {"aten.fft_fftfreq", frequencies<false>},
    {"aten.fft_rfftfreq", frequencies<true>},
    {"aten.logspace", logspace},
    {"aten.rand", random},
    {"aten.randn", random},
    {"aten.rand_like", random},
    {"aten.randn_like", random},
    {"aten.randint", random},
    {"aten.bernoulli", random},
    {"aten.multinomial", random},
};

}  // namespace
}  // namespace creation

std::span<const ConverterEntry> creation_converters() { return creation::kTable; }

}  // namespace tilewright::torch
