// SPDX-License-Identifier: Apache-2.0
// Optimiser steps of the training preview domain, and operators of ai.onnx.ml that are plain tensor arithmetic.
#include "base/format.h"
#include "frontend/onnx/convert.h"
#include "relay/passes/training/first_order_gradient.h"

namespace tilewright::onnx {
namespace {

constexpr char kTraining[] = "ai.onnx.preview.training", kMl[] = "ai.onnx.ml";

// Inputs: learning rate, step count, then `groups` lists of equally many tensors. Calls `step` for each tensor; results
// are returned list by list.
template <class Step>
Values optimiser(NodeContext& c, size_t groups, Step&& step) {
  size_t rest = c.input_count() < 2 ? 0 : c.input_count() - 2;
  if (rest == 0 || rest % groups != 0)
    c.fail(format("{} inputs are not {} lists of one length", c.input_count(), groups));
  size_t n = rest / groups;
  std::vector<Values> results;
  for (size_t i = 0; i < n; ++i) {
    std::vector<Expr> tensors;
    for (size_t g = 0; g < groups; ++g) tensors.push_back(c.input(2 + g * n + i));
    results.push_back(step(tensors));
  }
  Values out;
  for (size_t k = 0; k < results[0].size(); ++k)
    for (size_t i = 0; i < n; ++i) out.push_back(results[i][k]);
  return out;
}

// gradient + norm_coefficient * x
Expr regularised(NodeContext& c, const Expr& x, const Expr& gradient) {
  double norm = c.float_attr("norm_coefficient", 0);
  return norm == 0 ? gradient : c.add(c.mul(x, c.scalar_like(norm, x)), gradient);
}
Expr after_first_step(NodeContext& c, const Expr& yes, const Expr& no) {
  return c.where(c.call("greater", {c.input(1), c.scalar(0, c.dtype(c.input(1)))}), yes, no);
}

Values adagrad(NodeContext& c) {
  Expr rate = c.input(0), step = c.cast(c.input(1), c.dtype(rate));
  Expr adjusted =
      c.div(rate, c.add(c.mul(step, c.scalar_like(c.float_attr("decay_factor", 0), rate)), c.scalar_like(1, rate)));
  return optimiser(c, 3, [&](const std::vector<Expr>& t) -> Values {
    Expr g = regularised(c, t[0], t[1]), h = c.add(t[2], c.mul(g, g));
    Expr root = c.add(c.call("sqrt", {h}), c.scalar_like(c.float_attr("epsilon", 0), h));
    return {c.sub(t[0], c.div(c.mul(adjusted, g), root)), h};
  });
}

Values momentum(NodeContext& c) {
  std::string mode = c.string_attr("mode", "standard");
  if (mode != "standard" && mode != "nesterov") c.fail(format("its mode '{}' is unknown", mode));
  Expr rate = c.input(0);
  return optimiser(c, 3, [&](const std::vector<Expr>& t) -> Values {
    Expr g = regularised(c, t[0], t[1]), alpha = c.scalar_like(c.float_attr("alpha", 0), t[0]);
    // In the first step the gradient counts in full.
    Expr beta = after_first_step(c, c.scalar_like(c.float_attr("beta", 0), t[0]), c.scalar_like(1, t[0]));
    Expr v = c.add(c.mul(alpha, t[2]), c.mul(beta, g));
    Expr move = mode == "nesterov" ? c.add(g, c.mul(alpha, v)) : v;
    return {c.sub(t[0], c.mul(rate, move)), v};
  });
}

Values adam(NodeContext& c) {
  double alpha = c.float_attr("alpha", 0.9f), beta = c.float_attr("beta", 0.999f);
  Expr rate = c.input(0), step = c.cast(c.input(1), c.dtype(rate)), one = c.scalar_like(1, rate);
  auto left = [&](double base) { return c.sub(one, c.call("power", {c.scalar_like(base, rate), step})); };
  Expr corrected = after_first_step(c, c.div(c.mul(rate, c.call("sqrt", {left(beta)})), left(alpha)), rate);
  return optimiser(c, 4, [&](const std::vector<Expr>& t) -> Values {
    auto mix = [&](const Expr& old, const Expr& fresh, double keep) {
      return c.add(c.mul(old, c.scalar_like(keep, old)), c.mul(fresh, c.scalar_like(1 - keep, old)));
    };
    Expr g = regularised(c, t[0], t[1]), v = mix(t[2], g, alpha), h = mix(t[3], c.mul(g, g), beta);
    Expr root = c.add(c.call("sqrt", {h}), c.scalar_like(c.float_attr("epsilon", 0), h));
    Expr x = c.sub(t[0], c.mul(corrected, c.div(v, root)));
    double post = c.float_attr("norm_coefficient_post", 0);
    return {post == 0 ? x : c.mul(x, c.scalar_like(1 - post, x)), v, h};
  });
}

// Gradients of y, a value of the surrounding graph, with respect to the node's first inputs (`xs`).
Values gradient(NodeContext& c) {
  const size_t count = c.strings_attr("xs").size();
  const std::string name = c.string_attr("y", "");
  const Value* y = c.outer(name);
  if (!y || !y->expr) c.fail(format("its y '{}' is no tensor that is made beside it", name));
  if (count == 0 || count > c.input_count()) c.fail(format("it has {} inputs for {} xs", c.input_count(), count));
  std::vector<Expr> xs;
  for (size_t i = 0; i < count; ++i) xs.push_back(c.input(i));
  auto gradients = relay::gradients_of(y->expr, xs);
  if (!gradients.ok()) c.unsupported(gradients.error().message);
  return {gradients->begin(), gradients->end()};
}

Values binarizer(NodeContext& c) {
  Expr x = c.input(0);
  return {c.cast(c.call("greater", {x, c.scalar_like(c.float_attr("threshold", 0), x)}), c.dtype(x))};
}

// Selects columns of the last axis; a vector becomes one row.
Values array_feature_extractor(NodeContext& c) {
  Expr x = c.input(0), index = c.reshape(c.input(1), {-1});
  if (c.rank(x) == 1) x = c.expand(x, 0);
  int64_t last = c.rank(x) - 1;
  return {c.call("take", {x, index}, make_attrs<relay::TakeAttrs>([&](auto& a) {
                   a.axis = last;
                   a.mode = "fast";
                 }))};
}

Values scaler(NodeContext& c) {
  Expr x = c.cast(c.input(0), kFloat32);
  auto vector = [&](const char* name, double fallback) {
    auto values = c.floats_attr(name, {fallback});
    std::vector<float> narrow(values.begin(), values.end());
    return c.constant_of(Tensor::from<float>(kFloat32, {static_cast<int64_t>(narrow.size())}, narrow));
  };
  return {c.mul(c.sub(x, vector("offset", 0)), vector("scale", 1))};
}

constexpr ConverterEntry kTrainingConverters[] = {
    {"Adagrad", 1, adagrad, kTraining}, {"Momentum", 1, momentum, kTraining},
    {"Adam", 1, adam, kTraining},       {"Gradient", 1, gradient, kTraining},
    {"Binarizer", 1, binarizer, kMl},   {"ArrayFeatureExtractor", 1, array_feature_extractor, kMl},
    {"Scaler", 1, scaler, kMl},
};

}  // namespace

std::span<const ConverterEntry> training_converters() { return kTrainingConverters; }

}  // namespace tilewright::onnx
