// SPDX-License-Identifier: Apache-2.0
// com.microsoft: the operators that onnxruntime's quantisation adds to ONNX's own.
#include "base/format.h"
#include "frontend/onnx/converters/conv.h"
#include "frontend/onnx/converters/linear.h"
#include "frontend/onnx/converters/quant.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

Expr optional(NodeContext& c, int64_t i) {
  const auto at = static_cast<size_t>(i);
  return c.has(at) ? c.input(at) : Expr();
}
Expr operand(NodeContext& c, int64_t i) { return c.input(static_cast<size_t>(i)); }

// Dequantises the value at operand `first` by its scale and optional zero point, the two operands behind it.
Expr real_operand(NodeContext& c, int64_t first) {
  return dequantized(c, operand(c, first), operand(c, first + 1), optional(c, first + 2), 0, 0, kFloat32);
}
// Quantises y by operands `scale` and `scale` + 1 (the zero point).
Values quantized_result(NodeContext& c, const Expr& y, int64_t scale, DataType like) {
  Expr ratio = c.div(y, c.cast(operand(c, scale), kFloat32));
  return {to_integers(c, ratio, optional(c, scale + 1), like)};
}
template <Expr (frontend::ExpressionBuilder::*op)(const Expr&, const Expr&) const>
Values qlinear_binary(NodeContext& c) {
  Expr y = (c.*op)(real_operand(c, 0), real_operand(c, 3));
  return quantized_result(c, y, 6, c.dtype(c.input(0)));
}
Values qlinear_sigmoid(NodeContext& c) {
  return quantized_result(c, c.call("sigmoid", {real_operand(c, 0)}), 3, c.dtype(c.input(0)));
}
Values qlinear_leaky_relu(NodeContext& c) {
  const double alpha = c.float_attr("alpha", 0.01f);
  Expr y = c.call("nn.leaky_relu", {real_operand(c, 0)},
                  make_attrs<relay::LeakyReluAttrs>([&](auto& a) { a.alpha = alpha; }));
  return quantized_result(c, y, 3, c.dtype(c.input(0)));
}
// Softmax along the axis; below opset 13, over all axes from `axis` on.
Values qlinear_softmax(NodeContext& c) {
  const Expr x = real_operand(c, 0);
  const int64_t rank = c.rank(x), version = c.int_attr("opset");
  const int64_t axis = c.axis(c.int_attr("axis", -1), rank);
  auto along = [&](const Expr& e, int64_t a) {
    return c.call("nn.softmax", {e}, make_attrs<relay::SoftmaxAttrs>([&](auto& attrs) { attrs.axis = a; }));
  };
  if (version >= 13) return quantized_result(c, along(x, axis), 3, c.dtype(c.input(0)));
  const Ints d = c.dims(x);
  const Expr rows = c.reshape(x, {c.product(d, 0, axis), c.product(d, axis)});
  return quantized_result(c, c.reshape(along(rows, 1), d), 3, c.dtype(c.input(0)));
}
Values qlinear_where(NodeContext& c) {
  return quantized_result(c, c.where(c.input(0), real_operand(c, 1), real_operand(c, 4)), 7, c.dtype(c.input(1)));
}
Values qlinear_reduce_mean(NodeContext& c) {
  const Expr x = real_operand(c, 0);
  Ints axes = c.ints_attr("axes");
  for (int64_t& a : axes) a = c.axis(a, c.rank(x));
  for (int64_t i = 0; axes.empty() && i < c.rank(x); ++i) axes.push_back(i);
  return quantized_result(c, c.reduce("mean", x, axes, c.int_attr("keepdims", 1) != 0), 3, c.dtype(c.input(0)));
}

bool has_channels_last(NodeContext& c) { return c.int_attr("channels_last", 0) != 0; }
// Pools dequantised values, channels first whatever the node's layout is.
template <class Pool>
Values qlinear_pool(NodeContext& c, Pool&& pool) {
  const Expr x = real_operand(c, 0);
  const Expr y = has_channels_last(c) ? channels_last(c, pool(channels_first(c, x))) : pool(x);
  return quantized_result(c, y, 3, c.dtype(c.input(0)));
}
Values qlinear_global_average_pool(NodeContext& c) {
  return qlinear_pool(c, [&](const Expr& x) {
    Ints axes;
    for (int64_t i = 2; i < c.rank(x); ++i) axes.push_back(i);
    return c.reduce("mean", x, axes, true);
  });
}
Values qlinear_average_pool(NodeContext& c) {
  return qlinear_pool(c, [&](const Expr& x) { return average_of_windows(c, x); });
}
Values nhwc_max_pool(NodeContext& c) {
  return {channels_last(c, largest_of_windows(c, channels_first(c, c.input(0))))};
}
Values qlinear_conv_any_layout(NodeContext& c) {
  if (!has_channels_last(c)) return {quantized_convolution(c, c.input(0))};
  return {channels_last(c, quantized_convolution(c, channels_first(c, c.input(0))))};
}

// Operands: the result's scale and zero point, then triples of value, scale and zero point.
Values qlinear_concat(NodeContext& c) {
  const auto count = static_cast<int64_t>(c.all_inputs().size());
  if (count < 5 || count % 3 != 2) c.fail("it takes a scale, a zero point and triples of value, scale and zero point");
  std::vector<Expr> parts;
  for (int64_t i = 2; i < count; i += 3) parts.push_back(real_operand(c, i));
  const int64_t axis = c.axis(c.int_attr("axis", 1), c.rank(parts[0]));
  return quantized_result(c, c.concat(std::move(parts), axis), 0, c.dtype(c.input(2)));
}
Values qgemm(NodeContext& c) {
  const bool trans_a = c.int_attr("transA", 0) != 0, trans_b = c.int_attr("transB", 0) != 0;
  auto turned = [&](const Expr& e, bool turn) { return turn ? transposed_matrix(c, e) : e; };
  // B's zero points may be per column of the product.
  Expr a = turned(without_zero_point(c, c.input(0), c.input(2), -1), trans_a);
  Expr b = turned(without_zero_point(c, c.input(3), c.input(5), trans_b ? 0 : -1), trans_b);
  Expr sum = matmul_of(c, a, b);
  if (c.has(6)) sum = c.add(sum, c.cast(c.input(6), kInt32));
  Expr scale = c.mul(c.cast(c.input(1), kFloat64), c.cast(along_axis(c, c.input(4), sum, -1), kFloat64));
  Expr y = c.mul(c.cast(sum, kFloat64), c.mul(scale, c.scalar(c.float_attr("alpha", 1), kFloat64)));
  if (!c.has(7)) return {c.cast(y, kFloat32)};
  return {to_integers(c, c.div(y, c.cast(c.input(7), kFloat64)), optional(c, 8),
                      c.has(8) ? c.dtype(c.input(8)) : c.dtype(c.input(0)))};
}
// A float32 result from an integer product: times both scales, plus the bias.
Values scaled_product(NodeContext& c, const Expr& sum, const Expr& a_scale, const Expr& b_scale, const Expr& bias) {
  Expr y = c.mul(c.cast(sum, kFloat32), c.mul(a_scale, along_axis(c, b_scale, sum, -1)));
  return {bias ? c.add(y, bias) : y};
}
Values matmul_integer_to_float(NodeContext& c) {
  Expr a = without_zero_point(c, c.input(0), optional(c, 4), -1);
  Expr b = without_zero_point(c, c.input(1), optional(c, 5), -1);
  return scaled_product(c, matmul_of(c, a, b), c.input(2), c.input(3), optional(c, 6));
}
Values dynamic_quantize_matmul(NodeContext& c) {
  const auto [a, a_scale, a_zero] = dynamically_quantized(c, c.input(0));
  Expr sum = matmul_of(c, without_zero_point(c, a, a_zero, -1), without_zero_point(c, c.input(1), optional(c, 3), -1));
  return scaled_product(c, sum, a_scale, c.input(2), optional(c, 4));
}

// DynamicQuantizeLSTM: an LSTM whose weights are quantised and whose operands are as they come: the input once for all
// steps, the state in every step. Gates lie in the order input, output, forget, cell.
class QuantizedLstm {
 public:
  explicit QuantizedLstm(NodeContext& c) : c_(c) {
    for (const std::string& name : c.strings_attr("activations"))
      if (name != "Sigmoid" && name != "Tanh") c.unsupported(format("the activation {}", name));
    const auto names = c.strings_attr("activations");
    for (size_t i = 0; i < names.size(); ++i)
      if ((names[i] == "Sigmoid") != (i % 3 == 0)) c.unsupported("activations in another order");
    if (c.int_attr("input_forget", 0) != 0) c.unsupported("coupled input and forget gates");
    const auto d = c.dims(c.input(0)), w = c.dims(c.input(1)), r = c.dims(c.input(2));
    if (d.size() != 3 || w.size() != 3 || r.size() != 3) c.fail_type("its input and weights must have rank 3");
    directions_ = w[0], steps_ = d[0], batch_ = d[1], hidden_ = r[1];
    if (directions_ < 1 || directions_ > 2 || r[2] != 4 * hidden_ || w[2] != 4 * hidden_)
      c.fail_type(format("weights {} and {} do not fit each other", shape_str(w), shape_str(r)));
    constexpr int64_t kMostSteps = 4096;
    if (steps_ > kMostSteps || steps_ < 1) c.unsupported(format("{} steps", steps_));
  }
  Values run() {
    std::vector<Expr> all, hidden, cells;
    for (int64_t side = 0; side < directions_; ++side) {
      const bool backwards = side == 1 || c_.string_attr("direction", "forward") == "reverse";
      State s{initial(5, side), initial(6, side)};
      all.push_back(c_.expand(one_direction(side, backwards, s), 1));
      hidden.push_back(c_.expand(s.hidden, 0)), cells.push_back(c_.expand(s.cell, 0));
    }
    return {c_.concat(std::move(all), 1), c_.concat(std::move(hidden), 0), c_.concat(std::move(cells), 0)};
  }

 private:
  struct State {
    Expr hidden, cell;
  };
  // Row i of the leading axis, which goes.
  Expr at(const Expr& e, int64_t i) { return c_.squeeze(c_.slice(e, 0, i, i + 1), {0}); }
  Expr initial(size_t input, int64_t side) {
    return c_.has(input) ? at(c_.input(input), side) : c_.zeros(kFloat32, {batch_, hidden_});
  }
  // x, quantised, by the weight of a side; scale and zero point follow at `scale`.
  Expr product(const Expr& x, size_t weight, size_t scale, int64_t side) {
    const auto [a, a_scale, a_zero] = dynamically_quantized(c_, x);
    const Expr b = without_zero_point(c_, at(c_.input(weight), side), at(c_.input(scale + 1), side), -1);
    const Expr sum = matmul_of(c_, without_zero_point(c_, a, a_zero, -1), b);
    return c_.mul(c_.cast(sum, kFloat32), c_.mul(a_scale, along_axis(c_, at(c_.input(scale), side), sum, -1)));
  }
  Expr gate(const Expr& gates, int64_t i) { return c_.slice(gates, 1, i * hidden_, (i + 1) * hidden_); }
  // What the cell adds to a gate.
  Expr peeped(const Expr& e, const Expr& cell, int64_t side, int64_t i) {
    if (!c_.has(7)) return e;
    const Expr weight = c_.slice(at(c_.input(7), side), 0, i * hidden_, (i + 1) * hidden_);
    return c_.add(e, c_.mul(weight, cell));
  }
  Expr clipped(const Expr& e) {
    const double most = c_.float_attr("clip", 0);
    if (most <= 0) return e;
    return c_.call("clip", {e}, make_attrs<relay::ClipAttrs>([&](auto& a) { a.a_min = -most, a.a_max = most; }));
  }
  Expr sigmoid(const Expr& e) { return c_.call("sigmoid", {clipped(e)}); }
  State step(const Expr& gates, const State& s, int64_t side) {
    const Expr in = sigmoid(peeped(gate(gates, 0), s.cell, side, 0));
    const Expr forget = sigmoid(peeped(gate(gates, 2), s.cell, side, 2));
    const Expr fresh = c_.call("tanh", {clipped(gate(gates, 3))});
    const Expr cell = c_.add(c_.mul(forget, s.cell), c_.mul(in, fresh));
    const Expr out = sigmoid(peeped(gate(gates, 1), cell, side, 1));
    return {c_.mul(out, c_.call("tanh", {cell})), cell};
  }
  // Each sequence of (steps, batch, ...) turned round, up to its end.
  Expr turned(const Expr& e) {
    return c_.call("reverse_sequence", {e, c_.cast(c_.input(4), kInt64)},
                   make_attrs<relay::ReverseSequenceAttrs>([](auto& a) { a.seq_axis = 0, a.batch_axis = 1; }));
  }
  // (steps, batch, size) with zeros behind the ends of sequences.
  Expr ended(const Expr& e) {
    const Expr places = c_.expand(c_.cast(c_.counting(steps_), c_.dtype(c_.input(4))), 1);
    return c_.where(c_.expand(c_.call("less", {places, c_.input(4)}), 2), e, c_.scalar_like(0, e));
  }
  // As onnxruntime does, sequences of several lengths begin together, and the state of one that has ended counts as 0
  // where the next state is quantised with the others'.
  Expr one_direction(int64_t side, bool backwards, State& s) {
    const bool turns = backwards && c_.has(4);
    const Expr x = turns ? ended(turned(c_.input(0))) : c_.input(0);
    Expr of_input = product(c_.reshape(x, {steps_ * batch_, c_.dims(x)[2]}), 1, 8, side);
    if (c_.has(3)) {
      const Expr bias = at(c_.input(3), side);
      of_input =
          c_.add(of_input, c_.add(c_.slice(bias, 0, 0, 4 * hidden_), c_.slice(bias, 0, 4 * hidden_, 8 * hidden_)));
    }
    of_input = c_.reshape(of_input, {steps_, batch_, 4 * hidden_});
    std::vector<Expr> out(static_cast<size_t>(steps_));
    Expr given = s.hidden;
    for (int64_t i = 0; i < steps_; ++i) {
      const int64_t t = backwards && !turns ? steps_ - 1 - i : i;
      State now = step(c_.add(at(of_input, t), product(given, 2, 10, side)), s, side);
      given = now.hidden;
      if (c_.has(4)) {
        const Expr place = c_.scalar(static_cast<double>(t), c_.dtype(c_.input(4)));
        const Expr on = c_.expand(c_.call("greater", {c_.input(4), place}), 1);
        given = c_.where(on, now.hidden, c_.scalar(0, kFloat32));
        now = {c_.where(on, now.hidden, s.hidden), c_.where(on, now.cell, s.cell)};
      }
      s = now;
      out[static_cast<size_t>(t)] = c_.expand(given, 0);
    }
    const Expr all = c_.concat(std::move(out), 0);
    return turns ? turned(all) : all;
  }

  NodeContext& c_;
  int64_t directions_ = 1, steps_ = 0, batch_ = 0, hidden_ = 0;
};
Values dynamic_quantize_lstm(NodeContext& c) { return QuantizedLstm(c).run(); }

constexpr ConverterEntry kMicrosoftQuant[] = {
    {"DynamicQuantizeLSTM", 1, dynamic_quantize_lstm, "com.microsoft"},
    {"DynamicQuantizeMatMul", 1, dynamic_quantize_matmul, "com.microsoft"},
    {"MatMulIntegerToFloat", 1, matmul_integer_to_float, "com.microsoft"},
    {"NhwcMaxPool", 1, nhwc_max_pool, "com.microsoft"},
    {"QGemm", 1, qgemm, "com.microsoft"},
    {"QLinearAdd", 1, qlinear_binary<&NodeContext::add>, "com.microsoft"},
    {"QLinearAveragePool", 1, qlinear_average_pool, "com.microsoft"},
    {"QLinearConcat", 1, qlinear_concat, "com.microsoft"},
    {"QLinearConv", 1, qlinear_conv_any_layout, "com.microsoft"},
    {"QLinearGlobalAveragePool", 1, qlinear_global_average_pool, "com.microsoft"},
    {"QLinearLeakyRelu", 1, qlinear_leaky_relu, "com.microsoft"},
    {"QLinearMul", 1, qlinear_binary<&NodeContext::mul>, "com.microsoft"},
    {"QLinearReduceMean", 1, qlinear_reduce_mean, "com.microsoft"},
    {"QLinearSigmoid", 1, qlinear_sigmoid, "com.microsoft"},
    {"QLinearSoftmax", 1, qlinear_softmax, "com.microsoft"},
    {"QLinearWhere", 1, qlinear_where, "com.microsoft"},
};

}  // namespace

std::span<const ConverterEntry> quant_microsoft_converters() { return kMicrosoftQuant; }

}  // namespace tilewright::onnx
