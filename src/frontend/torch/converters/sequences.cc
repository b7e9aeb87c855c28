// SPDX-License-Identifier: Apache-2.0
// The loss of connectionist temporal classification (Graves et al., 2006): the probability of a sequence of labels,
// summed over every way to stretch it over the steps with blanks in between.
#include <cmath>

#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace sequences {
namespace {

using Ints = std::vector<int64_t>;
constexpr int64_t kMostSteps = 4096;  // each is a dozen operators

class CtcLoss {
 public:
  explicit CtcLoss(NodeContext& c) : c_(c), log_probs_(c.real(c.tensor("log_probs"))) {
    alone_ = c.rank(log_probs_) == 2;
    if (alone_) log_probs_ = c.expand(log_probs_, 1);
    steps_ = c.dims(log_probs_).at(0);
    if (steps_ < 1 || steps_ > kMostSteps) c.unsupported(format("{} steps", steps_));
    batch_ = c.dims(log_probs_).at(1);
    steps_of_ = lengths("input_lengths");
    labels_of_ = lengths("target_lengths");
    labels_ = labels();
    blank_ = c.integer("blank", 0);
  }

  Values run() {
    const int64_t states = 2 * c_.dims(labels_).at(1) + 1;
    const Expr extended = with_blanks(states);
    Expr all = step(extended, 0, states);
    const Expr place = c_.counting(states);
    all = c_.where(c_.call("less", {place, c_.scalar(2, kInt64)}), all, nothing(all));
    const Expr skips = may_skip(extended, states);
    for (int64_t t = 1; t < steps_; ++t) {
      const Expr one = moved(all, 1, states), two = c_.where(skips, moved(all, 2, states), nothing(all));
      const Expr next = c_.add(sum_of_powers({all, one, two}), step(extended, t, states));
      const Expr goes_on = c_.call("less", {c_.scalar(static_cast<double>(t), kInt64), steps_of_});
      all = c_.where(c_.expand(goes_on, 1), next, all);
    }
    // Of the last label, or the blank behind it.
    const Expr last = c_.mul(labels_of_, c_.scalar(2, kInt64));
    auto at = [&](int64_t before) {
      const Expr is_there =
          c_.call("equal", {place, c_.expand(c_.sub(last, c_.scalar(static_cast<double>(before), kInt64)), 1)});
      return c_.reduce("max", c_.where(is_there, all, nothing(all)), {1}, false);
    };
    Expr each = c_.call("negative", {sum_of_powers({at(0), at(1)})});
    const Expr endless = c_.scalar_like(HUGE_VAL, each);
    if (c_.flag("zero_infinity", false)) each = c_.where(c_.call("equal", {each, endless}), c_.zero_like(each), each);
    return reduced(each);
  }

 private:
  Expr nothing(const Expr& like) { return c_.scalar_like(-HUGE_VAL, like); }
  // (batch), from a tensor or a list of numbers.
  Expr lengths(const char* name) {
    const Value& v = c_.value(name);
    const Expr e = v.list ? c_.ints_constant(c_.ints(name)) : c_.cast(v.expr, kInt64);
    return c_.rank(e) == 0 ? c_.expand(e, 0) : e;
  }
  // (batch, labels); given so, or one behind the other.
  Expr labels() {
    Expr given = c_.cast(c_.tensor("targets"), kInt64);
    if (c_.rank(given) == 2) return given;
    if (batch_ == 1) return c_.expand(given, 0);
    const Tensor counts = c_.constant(labels_of_, "lengths of targets");
    int64_t most = 0, from = 0;
    for (int64_t i = 0; i < counts.size(); ++i) most = std::max(most, counts.at_int(i));
    std::vector<Expr> rows;
    for (int64_t i = 0; i < counts.size(); from += counts.at_int(i++)) {
      Expr row = c_.slice(given, 0, from, from + counts.at_int(i));
      if (counts.at_int(i) < most) row = c_.concat({row, c_.zeros(kInt64, {most - counts.at_int(i)})}, 0);
      rows.push_back(c_.expand(row, 0));
    }
    return c_.concat(std::move(rows), 0);
  }
  // A blank before each label and at the end.
  Expr with_blanks(int64_t states) {
    const Ints d = c_.dims(labels_);
    const Expr blanks = c_.broadcast_to(c_.scalar(static_cast<double>(blank_), kInt64), {d[0], d[1], 1});
    const Expr pairs = c_.reshaped(c_.concat({blanks, c_.expand(labels_, 2)}, 2), {d[0], states - 1});
    return c_.concat({pairs, c_.broadcast_to(c_.scalar(static_cast<double>(blank_), kInt64), {d[0], 1})}, 1);
  }
  // What each state's label has at a step.
  Expr step(const Expr& extended, int64_t t, int64_t states) {
    const Expr row = c_.squeeze(c_.slice(log_probs_, 0, t, t + 1), {0});
    return c_.call("gather", {row, c_.broadcast_to(extended, {batch_, states})},
                   make_attrs<relay::GatherAttrs>([](auto& a) { a.axis = 1; }));
  }
  // Blanks between labels that differ may be left out.
  Expr may_skip(const Expr& extended, int64_t states) {
    if (states < 3) return c_.call("less", {c_.counting(states), c_.scalar(0, kInt64)});
    const Expr before = c_.slice(extended, 1, 0, states - 2), here = c_.slice(extended, 1, 2, states);
    const Expr differs =
        c_.call("logical_and", {c_.call("not_equal", {here, before}),
                                c_.call("not_equal", {here, c_.scalar(static_cast<double>(blank_), kInt64)})});
    return c_.concat({c_.cast(c_.zeros(kInt64, {c_.dims(extended)[0], 2}), kBool), differs}, 1);
  }
  Expr moved(const Expr& all, int64_t by, int64_t states) {
    by = std::min(by, states);
    const Expr before = c_.broadcast_to(nothing(all), {batch_, by});
    return by == states ? before : c_.concat({before, c_.slice(all, 1, 0, states - by)}, 1);
  }
  // The logarithm of the sum of powers of e; what is -infinity stays so.
  Expr sum_of_powers(const std::vector<Expr>& all) {
    Expr most = all[0];
    for (size_t i = 1; i < all.size(); ++i) most = c_.call("maximum", {most, all[i]});
    const Expr none = c_.call("equal", {most, nothing(most)}), from = c_.where(none, c_.zero_like(most), most);
    Expr sum;
    for (const Expr& e : all) {
      const Expr power = c_.call("exp", {c_.sub(e, from)});
      sum = sum ? c_.add(sum, power) : power;
    }
    const Expr made = c_.add(c_.call("log", {c_.where(none, c_.scalar_like(1, sum), sum)}), from);
    return c_.where(none, nothing(most), made);
  }
  Values reduced(const Expr& each) {
    const int64_t how = c_.integer("reduction", 1);
    if (how == 0) return {alone_ ? c_.reshape(each, {}) : each};
    if (how == 2) return {c_.reduce("sum", each, {0}, false)};
    const Expr counts = c_.call("maximum", {labels_of_, c_.scalar(1, kInt64)});
    return {c_.reduce("mean", c_.div(each, c_.cast(counts, c_.dtype(each))), {0}, false)};
  }

  NodeContext& c_;
  Expr log_probs_, steps_of_, labels_of_, labels_;
  int64_t steps_ = 0, batch_ = 0, blank_ = 0;
  bool alone_ = false;
};
Values ctc_loss(NodeContext& c) { return CtcLoss(c).run(); }

constexpr ConverterEntry kTable[] = {
    {"aten.ctc_loss", ctc_loss},
};

}  // namespace
}  // namespace sequences

std::span<const ConverterEntry> sequences_converters() { return sequences::kTable; }

}  // namespace tilewright::torch
