// SPDX-License-Identifier: Apache-2.0
// Losses and distances, as models compute them in evaluation.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace losses {
namespace {

using Ints = std::vector<int64_t>;

Ints all_axes(NodeContext& c, const Expr& e) {
  Ints out;
  for (int64_t i = 0; i < c.rank(e); ++i) out.push_back(i);
  return out;
}
Expr number(NodeContext& c, double value, const Expr& like) { return c.scalar_like(value, like); }
Expr whole_sum(NodeContext& c, const Expr& e) { return c.rank(e) == 0 ? e : c.reduce("sum", e, all_axes(c, e), false); }
// By `reduction`: 0 each element, 1 their mean, 2 their sum.
Values reduced(NodeContext& c, const Expr& each) {
  const int64_t how = c.integer("reduction", 1);
  if (how == 0) return {each};
  const Expr sum = whole_sum(c, each);
  if (how == 2) return {sum};
  return {c.div(sum, number(c, static_cast<double>(c.product(c.dims(each))), each))};
}
Expr apart(NodeContext& c) { return c.sub(c.real(c.tensor("self")), c.real(c.tensor("target"))); }

Values squared(NodeContext& c) {
  const Expr d = apart(c);
  return reduced(c, c.mul(d, d));
}
Values absolute(NodeContext& c) { return reduced(c, c.call("abs", {apart(c)})); }
// Squares up to a distance and lines beyond: Huber's is the smooth one times that distance.
Values rounded_off(NodeContext& c, double edge, bool scaled) {
  const Expr d = c.call("abs", {apart(c)});
  if (edge == 0) return reduced(c, d);
  const Expr square = c.mul(c.mul(d, d), number(c, scaled ? 0.5 : 0.5 / edge, d));
  const Expr line = c.mul(c.sub(d, number(c, edge / 2, d)), number(c, scaled ? edge : 1, d));
  return reduced(c, c.where(c.call("less", {d, number(c, edge, d)}), square, line));
}
Values smooth(NodeContext& c) { return rounded_off(c, c.number("beta", 1), false); }
Values huber(NodeContext& c) { return rounded_off(c, c.number("delta", 1), true); }

Expr at_least(NodeContext& c, const Expr& e, double least) { return c.call("maximum", {e, number(c, least, e)}); }
Expr softplus(NodeContext& c, const Expr& x) {  // log(1 + exp(x)) without overflow
  const Expr tail = c.call("log", {c.add(c.call("exp", {c.call("negative", {c.call("abs", {x})})}), number(c, 1, x))});
  return c.add(at_least(c, x, 0), tail);
}
Values cross_entropy_of_two(NodeContext& c) {
  const Expr p = c.real(c.tensor("self")), t = c.real(c.tensor("target"));
  auto log = [&](const Expr& e) { return at_least(c, c.call("log", {e}), -100); };  // PyTorch's least logarithm
  const Expr rest = c.sub(number(c, 1, t), t);
  Expr each = c.add(c.mul(t, log(p)), c.mul(rest, log(c.sub(number(c, 1, p), p))));
  each = c.call("negative", {each});
  return reduced(c, c.has("weight") ? c.mul(each, c.tensor("weight")) : each);
}
Values cross_entropy_of_two_with_logits(NodeContext& c) {
  const Expr x = c.real(c.tensor("self")), t = c.real(c.tensor("target"));
  const Expr below = softplus(c, c.call("negative", {x}));
  Expr factor = number(c, 1, t);
  if (c.has("pos_weight")) factor = c.add(c.mul(c.sub(c.tensor("pos_weight"), number(c, 1, t)), t), factor);
  Expr each = c.add(c.mul(c.sub(number(c, 1, t), t), x), c.mul(factor, below));
  return reduced(c, c.has("weight") ? c.mul(each, c.tensor("weight")) : each);
}
Values divergence(NodeContext& c) {
  const Expr x = c.real(c.tensor("self")), t = c.real(c.tensor("target"));
  if (c.flag("log_target", false)) return reduced(c, c.mul(c.call("exp", {t}), c.sub(t, x)));
  const Expr none = number(c, 0, t), positive = c.call("greater", {t, none});
  const Expr log = c.call("log", {c.where(positive, t, number(c, 1, t))});
  return reduced(c, c.sub(c.mul(t, log), c.mul(t, x)));
}

// Of scores (N, C, ...) or (C): the class axis.
int64_t class_axis(NodeContext& c, const Expr& scores) { return c.rank(scores) == 1 ? 0 : 1; }
// The weight of each target: its class's, and 0 where it is to be ignored.
Expr weight_of_targets(NodeContext& c, const Expr& target, const Expr& like, const Expr& safe) {
  const Expr counts = c.call("not_equal", {target, c.scalar(c.number("ignore_index", -100), kInt64)});
  const Expr weight = c.has("weight") ? c.call("take", {c.tensor("weight"), safe},
                                               make_attrs<relay::TakeAttrs>([](auto& a) { a.axis = 0; }))
                                      : number(c, 1, like);
  return c.where(counts, weight, number(c, 0, like));
}
Values by_weights(NodeContext& c, const Expr& each, const Expr& weights) {
  const int64_t how = c.integer("reduction", 1);
  if (how == 0) return {each};
  const Expr sum = whole_sum(c, each);
  return {how == 2 ? sum : c.div(sum, whole_sum(c, weights))};
}
Values nll(NodeContext& c, const Expr& logs, const Expr& given) {
  const Expr target = c.cast(given, kInt64);
  const int64_t axis = class_axis(c, logs);
  const Expr safe = c.call("maximum", {target, c.scalar(0, kInt64)});
  const Expr weights = weight_of_targets(c, target, logs, safe);
  const Expr own = c.squeeze(c.call("gather", {logs, c.expand(safe, axis)},
                                    make_attrs<relay::GatherAttrs>([&](auto& a) { a.axis = static_cast<int>(axis); })),
                             {axis});
  const Expr each = c.mul(c.call("negative", {own}), weights);
  const double smoothing = c.number("label_smoothing", 0);
  if (smoothing == 0) return by_weights(c, each, c.broadcast_to(weights, c.dims(each)));
  if (c.has("weight")) c.unsupported("smoothed labels with weights of classes");
  const Expr all = c.mul(c.call("negative", {c.reduce("mean", logs, {axis}, false)}), weights);
  const Expr both = c.add(c.mul(each, number(c, 1 - smoothing, logs)), c.mul(all, number(c, smoothing, logs)));
  return by_weights(c, both, c.broadcast_to(weights, c.dims(both)));
}
Values negative_log_likelihood(NodeContext& c) { return nll(c, c.real(c.tensor("self")), c.tensor("target")); }
Values cross_entropy(NodeContext& c) {
  const Expr x = c.real(c.tensor("self")), target = c.tensor("target");
  const int64_t axis = class_axis(c, x);
  const Expr logs =
      c.call("nn.log_softmax", {x}, make_attrs<relay::SoftmaxAttrs>([&](auto& a) { a.axis = static_cast<int>(axis); }));
  if (!c.dtype(target).is_float()) return nll(c, logs, target);
  if (c.has("weight") || c.number("label_smoothing", 0) != 0) c.unsupported("probabilities with weights or smoothing");
  const Expr each = c.call("negative", {c.reduce("sum", c.mul(logs, target), {axis}, false)});
  return reduced(c, each);
}

Expr length_along(NodeContext& c, const Expr& e, int64_t axis, double power, bool keep) {
  if (power == 2) return c.call("sqrt", {c.reduce("sum", c.mul(e, e), {axis}, keep)});
  const Expr size = c.call("abs", {e});
  if (power == 1) return c.reduce("sum", size, {axis}, keep);
  if (std::isinf(power)) return c.reduce(power > 0 ? "max" : "min", size, {axis}, keep);
  const Expr sum = c.reduce("sum", c.call("power", {size, number(c, power, e)}), {axis}, keep);
  return c.call("power", {sum, number(c, 1 / power, e)});
}
Values cosine_similarity(NodeContext& c) {
  const Expr x = c.real(c.tensor("x1")), y = c.real(c.tensor("x2"));
  const double least = c.number("eps", 1e-8);
  auto both = c.mul(x, y);
  const int64_t axis = c.dim(c.integer("dim", 1), c.rank(both));
  auto unit = [&](const Expr& e) {
    return c.div(e, at_least(c, length_along(c, e, c.dim(c.integer("dim", 1), c.rank(e)), 2, true), least));
  };
  return {c.reduce("sum", c.mul(unit(x), unit(y)), {axis}, false)};
}
Expr row_distance(NodeContext& c, const Expr& x, const Expr& y, double power, double slack, bool keep) {
  const Expr d = c.sub(x, y);
  return length_along(c, c.add(d, number(c, slack, d)), c.rank(d) - 1, power, keep);
}
Values pairwise_distance(NodeContext& c) {
  return {row_distance(c, c.real(c.tensor("x1")), c.real(c.tensor("x2")), c.number("p", 2), c.number("eps", 1e-6),
                       c.flag("keepdim", false))};
}
Values triplet(NodeContext& c) {
  const Expr a = c.real(c.tensor("anchor")), near = c.real(c.tensor("positive")), far = c.real(c.tensor("negative"));
  const double power = c.number("p", 2), slack = c.number("eps", 1e-6);
  Expr other = row_distance(c, a, far, power, slack, false);
  if (c.flag("swap", false)) other = c.call("minimum", {other, row_distance(c, near, far, power, slack, false)});
  const Expr d = c.sub(row_distance(c, a, near, power, slack, false), other);
  return reduced(c, at_least(c, c.add(d, number(c, c.number("margin", 1), d)), 0));
}
Expr positive_part(NodeContext& c, const Expr& e) { return at_least(c, e, 0); }
// Of scores that should lie on either side of a margin.
Values soft_margin(NodeContext& c) {
  const Expr x = c.real(c.tensor("self")), t = c.real(c.tensor("target"));
  return reduced(c, softplus(c, c.call("negative", {c.mul(t, x)})));
}
Values margin_ranking(NodeContext& c) {
  const Expr x = c.real(c.tensor("input1")), y = c.real(c.tensor("input2")), t = c.tensor("target");
  const Expr d = c.mul(c.sub(y, x), c.cast(t, c.dtype(x)));
  return reduced(c, positive_part(c, c.add(d, number(c, c.number("margin", 0), d))));
}
Values hinge_embedding(NodeContext& c) {
  const Expr x = c.real(c.tensor("self")), t = c.real(c.tensor("target"));
  const Expr far = positive_part(c, c.sub(number(c, c.number("margin", 1), x), x)), none = number(c, 0, x);
  auto chosen = [&](double side, const Expr& e) { return c.where(c.call("equal", {t, number(c, side, t)}), none, e); };
  return reduced(c, c.add(chosen(1, far), chosen(-1, x)));
}
Values cosine_embedding(NodeContext& c) {
  const Expr x = c.real(c.tensor("input1")), y = c.real(c.tensor("input2")), t = c.real(c.tensor("target"));
  const int64_t axis = std::max(c.rank(x), c.rank(y)) - 1;
  auto dot = [&](const Expr& a, const Expr& b) { return c.reduce("sum", c.mul(a, b), {axis}, false); };
  const double slack = 1e-12;
  auto square = [&](const Expr& e) { return c.add(dot(e, e), number(c, slack, e)); };
  const Expr cosine = c.div(dot(x, y), c.call("sqrt", {c.mul(square(x), square(y))}));
  const Expr same = c.sub(number(c, 1, cosine), cosine);
  const Expr other = positive_part(c, c.sub(cosine, number(c, c.number("margin", 0), cosine)));
  const Expr none = number(c, 0, cosine);
  auto chosen = [&](double side, const Expr& e) { return c.where(c.call("equal", {t, number(c, side, t)}), e, none); };
  return reduced(c, c.add(chosen(1, same), chosen(-1, other)));
}
// How far the scores of other classes come within a margin of the target's.
Values multi_margin(NodeContext& c) {
  Expr x = c.real(c.tensor("self")), target = c.cast(c.tensor("target"), kInt64);
  const bool alone = c.rank(x) == 1;
  if (alone) x = c.expand(x, 0), target = c.reshape(target, {1});
  const int64_t classes = c.dims(x).at(1);
  const Expr own =
      c.call("gather", {x, c.expand(target, 1)}, make_attrs<relay::GatherAttrs>([](auto& a) { a.axis = 1; }));
  Expr each = positive_part(c, c.sub(c.add(x, number(c, c.number("margin", 1), x)), own));
  const double power = c.number("p", 1);
  if (power != 1 && power != 2) c.fail(format("its p is {}", power));
  if (power == 2) each = c.mul(each, each);
  if (c.has("weight")) {
    const Expr of_targets =
        c.call("take", {c.tensor("weight"), target}, make_attrs<relay::TakeAttrs>([](auto& a) { a.axis = 0; }));
    each = c.mul(each, c.expand(of_targets, 1));
  }
  const Expr is_own = c.call("equal", {c.expand(c.counting(classes), 0), c.expand(target, 1)});
  each = c.where(is_own, number(c, 0, each), each);
  const Expr sum = c.div(c.reduce("sum", each, {1}, false), number(c, static_cast<double>(classes), each));
  return reduced(c, alone ? c.reshape(sum, {}) : sum);
}
// Each sample's targets are the classes before the first -1; all others lie a margin below each of them.
Values multilabel_margin(NodeContext& c) {
  Expr x = c.real(c.tensor("self")), target = c.cast(c.tensor("target"), kInt64);
  const bool alone = c.rank(x) == 1;
  if (alone) x = c.expand(x, 0), target = c.expand(target, 0);
  const int64_t classes = c.dims(x).at(1);
  const Expr zero = c.scalar(0, kInt64);
  const Expr ended = c.cast(c.call("less", {target, zero}), kInt64);
  const Expr ends = c.one_of("aten.cumsum.default", {{"self", Value(ended)}, {"dim", whole(1)}});
  const Expr named = c.call("equal", {ends, zero});  // (samples, targets)
  const Expr is_class =
      c.call("logical_and", {c.expand(named, 2), c.call("equal", {c.expand(target, 2), c.counting(classes)})});
  const Expr is_target = c.reduce("any", is_class, {1}, false);  // (samples, classes)
  const Expr own = c.call("gather", {x, c.call("maximum", {target, zero})},
                          make_attrs<relay::GatherAttrs>([](auto& a) { a.axis = 1; }));
  const Expr below = positive_part(c, c.sub(number(c, 1, x), c.sub(c.expand(own, 2), c.expand(x, 1))));
  const Expr counts = c.call("logical_and", {c.expand(named, 2), c.call("logical_not", {c.expand(is_target, 1)})});
  const Expr sum = c.reduce("sum", c.where(counts, below, number(c, 0, below)), {1, 2}, false);
  const Expr each = c.div(sum, number(c, static_cast<double>(classes), sum));
  return reduced(c, alone ? c.reshape(each, {}) : each);
}
Values poisson(NodeContext& c) {
  const Expr x = c.real(c.tensor("input")), t = c.real(c.tensor("target"));
  Expr each = c.flag("log_input", true)
                  ? c.sub(c.call("exp", {x}), c.mul(t, x))
                  : c.sub(x, c.mul(t, c.call("log", {c.add(x, number(c, c.number("eps", 1e-8), x))})));
  if (c.flag("full", false)) {  // Stirling's approximation of the target's factorial
    const Expr safe = at_least(c, t, 1);
    const Expr half = c.mul(c.call("log", {c.mul(safe, number(c, 2 * M_PI, t))}), number(c, 0.5, t));
    const Expr stirling = c.add(c.sub(c.mul(safe, c.call("log", {safe})), safe), half);
    each = c.add(each, c.where(c.call("greater", {t, number(c, 1, t)}), stirling, number(c, 0, t)));
  }
  return reduced(c, each);
}
// Distances between all rows of one and all of the other.
Values distances(NodeContext& c) {
  const Expr x = c.real(c.tensor("x1")), y = c.real(c.tensor("x2"));
  const Expr d = c.sub(c.expand(x, c.rank(x) - 1), c.expand(y, c.rank(y) - 2));
  const double power = c.number("p", 2);
  if (power == 0) c.unsupported("counts of what differs");
  return {length_along(c, d, c.rank(d) - 1, power, false)};
}

constexpr ConverterEntry kTable[] = {
    {"aten.mse_loss", squared},
    {"aten.l1_loss", absolute},
    {"aten.smooth_l1_loss", smooth},
    {"aten.huber_loss", huber},
    {"aten.binary_cross_entropy", cross_entropy_of_two},
    {"aten.binary_cross_entropy_with_logits", cross_entropy_of_two_with_logits},
    {"aten.kl_div", divergence},
    {"aten.nll_loss", negative_log_likelihood},
    {"aten.nll_loss_nd", negative_log_likelihood},
    {"aten.nll_loss2d", negative_log_likelihood},
    {"aten.nll_loss_forward", negative_log_likelihood},
    {"aten.cross_entropy_loss", cross_entropy},
    {"aten.cosine_similarity", cosine_similarity},
    {"aten.pairwise_distance", pairwise_distance},
    {"aten.triplet_margin_loss", triplet},
    {"aten.soft_margin_loss", soft_margin},
    {"aten.margin_ranking_loss", margin_ranking},
    {"aten.hinge_embedding_loss", hinge_embedding},
    {"aten.cosine_embedding_loss", cosine_embedding},
    {"aten.multi_margin_loss", multi_margin},
    {"aten.multilabel_margin_loss", multilabel_margin},
    {"aten.poisson_nll_loss", poisson},
    {"aten.cdist", distances},
    {"aten._cdist_forward", distances},
};

}  // namespace
}  // namespace losses

std::span<const ConverterEntry> losses_converters() { return losses::kTable; }

}  // namespace tilewright::torch
