// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/split_recurrent.h"

#include "relay/calls.h"
#include "relay/op.h"
#include "relay/ops/attrs.h"

namespace tilewright::relay {
namespace {

Expr columns(const Expr& x, int64_t begin, int64_t end) { return sliced(x, 1, begin, end, x->span); }

Expr add(const Expr& a, const Expr& b, const Span& span) { return call("add", {a, b}, {}, span); }

// Whether the steps of a scan become scans of one step each, which threads share: there is one sample and one
// direction, so that no thread but one has work otherwise, and a step reads enough weights to be worth sharing.
bool steps_apart(const std::string& op, const RecurrentAttrs& attrs, const std::vector<int64_t>& x, int64_t directions,
                 int64_t weights) {
  constexpr int64_t kMostSteps = 128, kLeastWeights = 256 << 10;
  const bool two_passes = op == "nn.gru" && !attrs.linear_before_reset;
  return x[0] > 1 && x[0] <= kMostSteps && x[1] == 1 && directions == 1 && !attrs.has_lengths && !two_passes &&
         weights >= kLeastWeights;
}

// A scan over `operands` whose steps are calls of their own. `states`: the place of the first state in the operands,
// and how many there are.
Expr scan_of_steps(const std::string& op, std::vector<Expr> operands, const AttrsRef& attrs, int64_t steps,
                   std::pair<size_t, size_t> states, bool reverse, const Span& span) {
  const Expr inputs = operands[0];
  std::vector<Expr> ys(static_cast<size_t>(steps));
  for (int64_t s = 0; s < steps; ++s) {
    const int64_t t = reverse ? steps - 1 - s : s;
    operands[0] = sliced(inputs, 0, t, t + 1, span);
    const Expr one = call(op, operands, attrs, span);
    ys[static_cast<size_t>(t)] = make_get(one, 0, span);
    for (size_t i = 0; i < states.second; ++i)
      operands[states.first + i] = make_get(one, static_cast<int64_t>(i) + 1, span);
  }
  std::vector<Expr> results{
      call("concatenate", {make_tuple(std::move(ys), span)}, make_default_attrs<ConcatenateAttrs>(), span)};
  for (size_t i = 0; i < states.second; ++i) results.push_back(operands[states.first + i]);
  return make_tuple(std::move(results), span);
}

// Splits layer `e` with `gates` gates.
Expr split_weights(const Expr& e, int64_t gates) {
  const auto& args = as<CallNode>(e)->args;
  const auto& attrs = attrs_of<RecurrentAttrs>(e);
  for (const Expr& operand : args)
    if (!as_tensor(operand->type) || !static_shape(as_tensor(operand->type)->shape)) return e;
  auto x = *static_shape(tensor_of(args[0]).shape), w = *static_shape(tensor_of(args[1]).shape);
  const int64_t directions = w[0], hidden = attrs.hidden_size, width = gates * hidden;
  const bool gru = gates == 3;
  Expr input_bias = columns(args[3], 0, width), state_bias = columns(args[3], width, 2 * width);
  // GRU's reset gate multiplies the product including its recurrent bias; all other biases can be summed in advance.
  Expr inner = gru ? columns(state_bias, 2 * hidden, width) : Expr();
  if (gru && attrs.linear_before_reset) {
    Expr zeros = full_constant(0, tensor_of(args[0]).dtype, {directions, hidden});
    Expr outer = make_tuple({columns(state_bias, 0, 2 * hidden), zeros}, e->span);
    state_bias = call("concatenate", {outer}, make_attrs<ConcatenateAttrs>([](auto& a) { a.axis = 1; }), e->span);
  } else if (gru) {
    inner = full_constant(0, tensor_of(args[0]).dtype, {directions, hidden});
  }
  Expr bias = reshape_to(add(input_bias, state_bias, e->span), {directions * width});
  auto product =
      try_call("nn.dense", {reshape_to(args[0], {x[0] * x[1], x[2]}), reshape_to(args[1], {directions * width, x[2]})},
               make_default_attrs<DenseAttrs>(), e->span);
  if (!product.ok()) return e;  // the gates of all steps exceed a tensor's limit, though the states do not
  Expr inputs = reshape_to(add(*product, bias, e->span), {x[0], x[1], directions * width});
  std::vector<Expr> operands{inputs, args[2]};
  if (gru) operands.push_back(inner);
  operands.insert(operands.end(), args.begin() + 4, args.end());
  const std::string op(called_op(e)->name);
  const AttrsRef& same = as<CallNode>(e)->attrs;
  if (steps_apart(op, attrs, x, directions, width * hidden))
    return scan_of_steps(op + "_scan", std::move(operands), same, x[0], {gru ? 3 : 2, gates == 4 ? 2 : 1},
                         attrs.direction == "reverse", e->span);
  return call(op + "_scan", operands, same, e->span);
}

}  // namespace

Result<Module> split_recurrent(const Module& module, PassContext&) {
  return rewrite_module(module, [](const Expr&, const Expr& e) -> Expr {
    if (is_call_to(e, "nn.lstm")) return split_weights(e, 4);
    if (is_call_to(e, "nn.gru")) return split_weights(e, 3);
    if (is_call_to(e, "nn.rnn")) return split_weights(e, 1);
    return e;
  });
}

}  // namespace tilewright::relay
