// SPDX-License-Identifier: Apache-2.0
// Random numbers. The generator is counter-based; its seed is the node's, or is made of the node's name. The numbers
// are thus the same in every run, on every machine and with any number of threads.
#include <bit>
#include <limits>

#include "base/format.h"
#include "frontend/onnx/convert.h"
#include "relay/ops/tensor/attrs_random.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

// A Threefry generator in the form of relay.random.threefry_key: four words of key, then the counter and the path of
// splits.
Expr generator(NodeContext& c) {
  uint64_t seed = 0;
  if (c.has_attr("seed")) {
    seed = std::bit_cast<uint32_t>(static_cast<float>(c.float_attr("seed", 0)));
  } else {
    seed = 0xcbf29ce484222325;  // FNV-1a hash of the first result's name, which is unique in the model
    for (char ch : c.node().outputs.empty() ? c.node().name : c.node().outputs[0])
      seed = (seed ^ static_cast<unsigned char>(ch)) * 0x100000001b3;
  }
  Tensor key = Tensor::zeros(kUInt64, {10});
  key.set_int(0, static_cast<int64_t>(seed));
  key.set_int(8, std::numeric_limits<int64_t>::min());
  return c.constant_of(key);
}

template <class A>
Expr drawn(NodeContext& c, const char* op, double a, double b, const Ints& shape, DataType dtype) {
  for (int64_t d : shape)
    if (d < 0) c.fail(format("its shape holds {}", d));
  if (c.product(shape) == 0) return c.zeros(dtype, shape);
  const DataType exact = dtype == kFloat64 ? kFloat64 : kFloat32;
  if (!dtype.is_float()) c.fail_type(format("it draws numbers of {}", dtype.str()));
  const Expr both = c.call(op, {generator(c), c.scalar(a, exact), c.scalar(b, exact)},
                           make_attrs<A>([&](auto& attrs) { attrs.out_shape = shape, attrs.out_dtype = exact; }));
  return c.cast(c.get(both, 1), dtype);
}
Expr uniform(NodeContext& c, double low, double high, const Ints& shape, DataType dtype) {
  return drawn<relay::UniformAttrs>(c, "random.uniform", low, high, shape, dtype);
}

// The shape is an attribute, or that of operand 0.
Values random_uniform_of(NodeContext& c, const Ints& shape, DataType like) {
  return {uniform(c, c.float_attr("low", 0), c.float_attr("high", 1), shape, c.dtype_attr("dtype", like))};
}
Values random_normal_of(NodeContext& c, const Ints& shape, DataType like) {
  return {drawn<relay::NormalAttrs>(c, "random.normal", c.float_attr("mean", 0), c.float_attr("scale", 1), shape,
                                    c.dtype_attr("dtype", like))};
}
Values random_uniform(NodeContext& c) { return random_uniform_of(c, c.ints_attr("shape"), kFloat32); }
Values random_normal(NodeContext& c) { return random_normal_of(c, c.ints_attr("shape"), kFloat32); }
Values random_uniform_like(NodeContext& c) { return random_uniform_of(c, c.dims(c.input(0)), c.dtype(c.input(0))); }
Values random_normal_like(NodeContext& c) { return random_normal_of(c, c.dims(c.input(0)), c.dtype(c.input(0))); }

// 1 with the probability given by the element, else 0.
Values bernoulli(NodeContext& c) {
  const Expr p = c.input(0);
  const DataType dtype = c.dtype_attr("dtype", c.dtype(p)), exact = c.dtype(p) == kFloat64 ? kFloat64 : kFloat32;
  return {c.cast(c.call("less", {uniform(c, 0, 1, c.dims(p), exact), c.cast(p, exact)}), dtype)};
}

// Draws classes by log weights: the class is the number of cumulative sums below a uniform number.
Values multinomial(NodeContext& c) {
  const Expr logits = c.cast(c.input(0), kFloat32);
  if (c.rank(logits) != 2) c.fail_type("its input must be (batch, classes)");
  const Ints d = c.dims(logits);
  const int64_t samples = c.int_attr("sample_size", 1);
  if (samples < 0 || samples > (1 << 24) || d[1] < 1) c.fail(format("{} samples of {} classes", samples, d[1]));
  const Expr weights = c.call("nn.softmax", {logits}, make_attrs<relay::SoftmaxAttrs>([](auto& a) { a.axis = -1; }));
  const Expr sums = c.call("cumsum", {weights}, make_attrs<relay::ScanopAttrs>([](auto& a) { a.axis = 1; }));
  const Expr number = uniform(c, 0, 1, {d[0], samples}, kFloat32);
  // The last cumulative sum is 1 up to rounding, so it is not compared.
  const Expr below = c.call("less_equal", {c.expand(c.slice(sums, 1, 0, d[1] - 1), 1), c.expand(number, 2)});
  const Expr place = c.reduce("sum", c.cast(below, kInt32), {2}, false);
  return {c.cast(place, c.dtype_attr("dtype", kInt32))};
}

constexpr ConverterEntry kRandomConverters[] = {
    {"Bernoulli", 15, bernoulli},         {"Multinomial", 7, multinomial},
    {"RandomNormal", 1, random_normal},   {"RandomNormalLike", 1, random_normal_like},
    {"RandomUniform", 1, random_uniform}, {"RandomUniformLike", 1, random_uniform_like},
};

}  // namespace

std::span<const ConverterEntry> random_converters() { return kRandomConverters; }

}  // namespace tilewright::onnx
