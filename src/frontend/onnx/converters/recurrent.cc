// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN, each kept as one graph operator.
#include "base/format.h"
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {
namespace {

struct Layer {
  const char* op;
  int64_t gates;
  bool cell;  // has a cell state
};

Values recurrent(NodeContext& c, const Layer& layer) {
  Expr x = c.input(0), w = c.input(1), r = c.input(2);
  if (c.rank(x) != 3 || c.rank(w) != 3 || c.rank(r) != 3) c.fail_type("its input and weights must have rank 3");
  std::string direction = c.string_attr("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    c.fail(format("its direction '{}' is unknown", direction));
  int64_t directions = direction == "bidirectional" ? 2 : 1;
  int64_t hidden = c.dims(r)[2];
  if (c.has_attr("hidden_size") && c.int_attr("hidden_size") != hidden)
    c.fail(format("its hidden_size {} is not its weight's {}", c.int_attr("hidden_size"), hidden));
  // layout 1: the batch axis comes first.
  bool batch_first = c.int_attr("layout", 0) != 0;
  if (batch_first) x = c.transpose(x, {1, 0, 2});
  DataType dtype = c.dtype(x);
  auto zeros = [&](std::vector<int64_t> shape) { return c.zeros(dtype, std::move(shape)); };
  int64_t batch = c.dims(x)[1];
  auto state = [&](size_t i) {
    if (!c.has(i)) return zeros({directions, batch, hidden});
    return batch_first ? c.transpose(c.input(i), {1, 0, 2}) : c.input(i);
  };
  std::vector<Expr> args = {x, w, r, c.has(3) ? c.input(3) : zeros({directions, 2 * layer.gates * hidden}), state(5)};
  if (layer.cell) args.push_back(state(6));
  bool peephole = layer.cell && c.has(7), lengths = c.has(4);
  if (peephole) args.push_back(c.input(7));
  if (lengths) args.push_back(c.cast(c.input(4), kInt32));
  Expr out = c.call(layer.op, args, make_attrs<relay::RecurrentAttrs>([&](auto& a) {
                      a.hidden_size = hidden;
                      a.direction = direction;
                      a.activations = c.strings_attr("activations");
                      a.activation_alpha = c.floats_attr("activation_alpha");
                      a.activation_beta = c.floats_attr("activation_beta");
                      a.clip = c.float_attr("clip", 0);
                      a.linear_before_reset = c.int_attr("linear_before_reset", 0) != 0;
                      a.input_forget = c.int_attr("input_forget", 0) != 0;
                      a.has_peephole = peephole;
                      a.has_lengths = lengths;
                    }));
  Values results = {c.get(out, 0), c.get(out, 1)};
  if (layer.cell) results.push_back(c.get(out, 2));
  if (batch_first) {
    results[0] = c.transpose(results[0].expr, {2, 0, 1, 3});
    for (size_t i = 1; i < results.size(); ++i) results[i] = c.transpose(results[i].expr, {1, 0, 2});
  }
  return results;
}

Values lstm(NodeContext& c) { return recurrent(c, {"nn.lstm", 4, true}); }
Values gru(NodeContext& c) { return recurrent(c, {"nn.gru", 3, false}); }
Values rnn(NodeContext& c) { return recurrent(c, {"nn.rnn", 1, false}); }

constexpr ConverterEntry kRecurrentConverters[] = {{"LSTM", 1, lstm}, {"GRU", 1, gru}, {"RNN", 1, rnn}};

}  // namespace

std::span<const ConverterEntry> recurrent_converters() { return kRecurrentConverters; }

}  // namespace tilewright::onnx
