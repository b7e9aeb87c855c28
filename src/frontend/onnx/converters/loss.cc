// SPDX-License-Identifier: Apache-2.0
// Losses over classes.
#include "base/format.h"
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {
namespace {

// Negative log likelihood: minus the score of each target's class, weighted and reduced. scores (N, C, ...), targets
// (N, ...).
Expr class_loss(NodeContext& c, const Expr& scores, size_t weight_input) {
  Expr target = c.cast(c.input(1), kInt64), safe = target, valid;
  DataType dtype = c.dtype(scores);
  if (c.has_attr("ignore_index")) {
    valid = c.call("not_equal", {target, c.scalar(static_cast<double>(c.int_attr("ignore_index")), kInt64)});
    safe = c.where(valid, target, c.scalar(0, kInt64));
  }
  Expr picked =
      c.call("gather", {scores, c.expand(safe, 1)}, make_attrs<relay::GatherAttrs>([](auto& a) { a.axis = 1; }));
  Expr loss = c.call("negative", {c.squeeze(picked, {1})});
  Expr weight;
  if (c.has(weight_input))
    weight = c.call("take", {c.input(weight_input), safe}, make_attrs<relay::TakeAttrs>([](auto& a) {
                      a.axis = 0;
                      a.mode = "clip";
                    }));
  if (valid) {
    Expr one = weight ? weight : c.scalar(1, dtype);
    weight = c.where(valid, one, c.scalar(0, dtype));
  }
  if (weight) loss = c.mul(loss, weight);
  std::string reduction = c.string_attr("reduction", "mean");
  if (reduction == "none") return loss;
  if (reduction != "mean" && reduction != "sum") c.fail(format("its reduction '{}' is unknown", reduction));
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < c.rank(loss); ++i) axes.push_back(i);
  if (reduction == "sum") return c.reduce("sum", loss, axes, false);
  if (!weight) return c.reduce("mean", loss, axes, false);
  return c.div(c.reduce("sum", loss, axes, false), c.reduce("sum", weight, axes, false));
}

Values negative_log_likelihood(NodeContext& c) { return {class_loss(c, c.input(0), 2)}; }

Values softmax_cross_entropy(NodeContext& c) {
  Expr log = c.call("nn.log_softmax", {c.input(0)}, make_attrs<relay::SoftmaxAttrs>([](auto& a) { a.axis = 1; }));
  return {class_loss(c, log, 2), log};
}

constexpr ConverterEntry kLossConverters[] = {
    {"NegativeLogLikelihoodLoss", 12, negative_log_likelihood},
    {"SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy},
};

}  // namespace

std::span<const ConverterEntry> loss_converters() { return kLossConverters; }

}  // namespace tilewright::onnx
