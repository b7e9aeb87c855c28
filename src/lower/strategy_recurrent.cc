// SPDX-License-Identifier: Apache-2.0
// The recurrence of recurrent layers.
#include <algorithm>

#include "lower/implementation.h"
#include "relay/ops/nn/attrs_recurrent.h"
#include "topi/recurrent.h"

namespace tilewright::lower {
namespace {
using namespace relay;
using topi::RecurrentCell;

// The layer's activations with ONNX's defaults filled in.
std::vector<topi::RecurrentActivation> activations(const RecurrentAttrs& a, RecurrentCell cell, int64_t directions) {
  const size_t each = cell == RecurrentCell::kLstm ? 3 : cell == RecurrentCell::kGru ? 2 : 1;
  std::vector<topi::RecurrentActivation> out;
  for (size_t i = 0; i < each * static_cast<size_t>(directions); ++i) {
    topi::RecurrentActivation f;
    f.name = i < a.activations.size() ? a.activations[i] : each == 1 || i % each ? "Tanh" : "Sigmoid";
    struct Constants {
      const char* name;
      double alpha, beta;
    };
    for (const Constants& known : {Constants{"Affine", 1, 0},
                                   {"LeakyRelu", 0.01, 0},
                                   {"ThresholdedRelu", 1, 0},
                                   {"ScaledTanh", 1, 1},
                                   {"HardSigmoid", 0.2, 0.5},
                                   {"Elu", 1, 0}})
      if (f.name == known.name) f.alpha = known.alpha, f.beta = known.beta;
    if (i < a.activation_alpha.size()) f.alpha = a.activation_alpha[i];
    if (i < a.activation_beta.size()) f.beta = a.activation_beta[i];
    out.push_back(f);
  }
  return out;
}

template <RecurrentCell kCell>
struct RecurrentScan {
  using Config = topi::RecurrentConfig;
  static std::optional<topi::RecurrentProblem> site(const Problem& p) {
    if (!p.anchor.direct() || (p.arg_dtype(0) != kFloat32 && p.arg_dtype(0) != kFloat64)) return std::nullopt;
    const auto& attrs = p.attrs<RecurrentAttrs>();
    auto x = p.arg_shape(0), r = p.arg_shape(1);
    topi::RecurrentProblem problem;
    problem.cell = kCell;
    problem.dtype = p.arg_dtype(0);
    problem.steps = x[0], problem.batch = x[1], problem.hidden = r[2], problem.directions = r[0];
    problem.reverse = attrs.direction == "reverse";
    problem.packed = p.constant(1);
    problem.linear_before_reset = attrs.linear_before_reset;
    problem.input_forget = attrs.input_forget;
    problem.clip = attrs.clip;
    problem.activations = activations(attrs, kCell, problem.directions);
    for (const auto& f : problem.activations)
      if (!topi::has_recurrent_activation(f.name)) return std::nullopt;
    if (problem.steps < 1 || problem.batch < 1) return std::nullopt;
    return problem;
  }
  static std::vector<Config> configs(const Problem& p, topi::RecurrentProblem problem, size_t most) {
    if (p.attrs<RecurrentAttrs>().has_lengths) problem.batch = 1;  // samples end at different steps
    return topi::configs(problem, p.target, most);
  }
  static bool fits(const Problem& p, const topi::RecurrentProblem& problem, const Config& c) {
    const auto all = configs(p, problem, SIZE_MAX);
    return std::find(all.begin(), all.end(), c) != all.end();
  }
  static topi::Cost cost(const Problem& p, const topi::RecurrentProblem& problem, const Config&) {
    return topi::estimate(problem, p.target);
  }
  static std::shared_ptr<Choice> make(const Problem& p, const topi::RecurrentProblem& problem, const Config& config) {
    const int lanes = p.target.lanes(problem.dtype.bits);
    auto choice = std::make_shared<Choice>();
    if (problem.packed)
      choice->repacks.emplace_back(p.anchor.inputs[1],
                                   [=](const Tensor& t) { return topi::pack_recurrent(t, problem, config, lanes); });
    choice->parallel = problem.directions * topi::ceil_div(problem.batch, config.rows) > 1 || problem.steps == 1;
    const auto& attrs = p.attrs<RecurrentAttrs>();
    choice->emit = [=, anchor = p.anchor, has_peephole = attrs.has_peephole, has_lengths = attrs.has_lengths](
                       const GroupScope& scope, const topi::KernelContext& context) {
      size_t next = 0;
      auto input = [&] { return scope.input(static_cast<size_t>(anchor.inputs[next++])); };
      topi::RecurrentOperands o;
      o.gates = input();
      if (!problem.packed)
        o.r = input();
      else
        o.r =
            topi::flattened(topi::make_view(input().buffer, {problem.directions * problem.gates() *
                                                             topi::round_up(problem.hidden, lanes) * problem.hidden}));
      if (kCell == RecurrentCell::kGru) o.bias = input();
      o.h0 = input();
      if (kCell == RecurrentCell::kLstm) o.c0 = input();
      if (has_peephole) o.peephole = input();
      if (has_lengths) o.lengths = input();
      o.y = scope.output(0), o.yh = scope.output(1);
      if (kCell == RecurrentCell::kLstm) o.yc = scope.output(2);
      return topi::recurrent(problem, config, o, context);
    };
    return choice;
  }
};

constexpr Implementation kRecurrentImplementations[] = {
    tuned<RecurrentScan<RecurrentCell::kGru>>("nn.gru_scan", "gru_scan", 10),
    tuned<RecurrentScan<RecurrentCell::kLstm>>("nn.lstm_scan", "lstm_scan", 10),
    tuned<RecurrentScan<RecurrentCell::kRnn>>("nn.rnn_scan", "rnn_scan", 10),
};

}  // namespace

std::span<const Implementation> recurrent_implementations() { return kRecurrentImplementations; }

}  // namespace tilewright::lower
