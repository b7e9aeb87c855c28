// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/split_recurrent.h"

#include "relay/calls.h"
#include "relay/op.h"
#include "relay/ops/attrs.h"

namespace tilewright::relay {
namespace {

Expr columns(const Expr& x, int64_t begin, int64_t end) { return sliced(x, 1, begin, end, x->span); }

Expr add(const Expr& a, const Expr& b, const Span& span) { return call("add", {a, b}, {}, span); }

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
  return call(std::string(called_op(e)->name) + "_scan", operands, as<CallNode>(e)->attrs, e->span);
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
