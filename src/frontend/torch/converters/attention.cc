// SPDX-License-Identifier: Apache-2.0
// Attention, written out as matrix products and softmax, the form that the compiler's attention matching recognises;
// recurrent layers; subgraphs that run in place; non-maximum suppression.
#include <cmath>

#include "base/format.h"
#include "frontend/torch/importer.h"

namespace tilewright::torch {
namespace attention {
namespace {

using Ints = std::vector<int64_t>;

Expr attended(NodeContext& c) {
  Expr q = c.tensor("query"), k = c.tensor("key"), v = c.tensor("value");
  const int64_t rank = c.rank(q);
  if (rank < 2 || c.rank(k) != rank || c.rank(v) != rank) c.fail_type("its operands have other ranks");
  const DataType dtype = c.dtype(q);
  const Ints qd = c.dims(q), kd = c.dims(k);
  if (c.number("dropout_p", 0) != 0) c.unsupported("with dropout; call model.eval() before the export");
  const double scale = c.number("scale", 1 / std::sqrt(static_cast<double>(qd.back())));
  // Grouped queries: each key/value head is shared by several query heads.
  if (rank >= 3 && c.flag("enable_gqa", false)) {
    const int64_t axis = rank - 3, heads = qd[static_cast<size_t>(axis)], shared = kd[static_cast<size_t>(axis)];
    if (shared < 1 || heads % shared != 0) c.fail_type(format("{} heads do not share {}", heads, shared));
    auto repeated = [&](const Expr& e) {
      return c.call("repeat", {e}, make_attrs<relay::RepeatAttrs>([&](auto& a) {
                      a.repeats = heads / shared;
                      a.axis = axis;
                    }));
    };
    if (heads != shared) k = repeated(k), v = repeated(v);
  }
  // The products need rank 4: (batch, heads, length, size).
  auto lifted = [&](const Expr& e) { return rank < 4 ? c.expand(e, 0, 4 - rank) : e; };
  auto product = [&](const Expr& a, const Expr& b, bool transpose) {
    return c.call("nn.batch_matmul", {a, b},
                  make_attrs<relay::BatchMatmulAttrs>([&](auto& at) { at.transpose_b = transpose; }));
  };
  q = lifted(q), k = lifted(k), v = lifted(v);
  Expr scores = product(c.mul(q, c.scalar(scale, dtype)), k, true);
  Expr low = c.scalar(-HUGE_VAL, dtype), zero = c.scalar(0, dtype);
  bool hides = false;
  if (c.has("attn_mask")) {
    Expr mask = c.tensor("attn_mask");
    hides = c.dtype(mask).is_bool();
    scores = c.add(scores, hides ? c.where(mask, zero, low) : c.cast(mask, dtype));
  }
  if (c.flag("is_causal", false)) {
    const int64_t queries = qd[qd.size() - 2], keys = kd[kd.size() - 2];
    Expr seen = c.call("greater_equal", {c.expand(c.counting(queries), 1), c.expand(c.counting(keys), 0)});
    scores = c.add(scores, c.where(seen, zero, low));
  }
  Expr weights = c.call("nn.softmax", {scores}, make_attrs<relay::SoftmaxAttrs>([](auto& a) { a.axis = -1; }));
  Expr y = product(weights, v, false);
  if (rank < 4) {
    Ints gone;
    for (int64_t i = 0; i < 4 - rank; ++i) gone.push_back(i);
    y = c.squeeze(y, gone);
  }
  return y;
}
Values scaled_dot_product(NodeContext& c) { return {attended(c)}; }
// The further results are read by training only: they have no value here.
Values flash_for_cpu(NodeContext& c) {
  Expr y = attended(c);
  const Ints d = c.dims(y);
  return {y, c.zeros(kFloat32, {d.at(0), d.at(2), d.at(1)})};
}

enum class Cell { kLstm, kGru, kTanh, kRelu };

// Reorders gates from PyTorch's order to ONNX's: LSTM i f c o to i o f c, GRU r z n to z r n.
Expr reordered(NodeContext& c, const Expr& e, Cell cell) {
  const int64_t gates = cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1;
  if (gates == 1) return e;
  const int64_t size = c.dims(e).at(0) / gates;
  std::vector<Expr> parts;
  const Ints order = cell == Cell::kLstm ? Ints{0, 3, 1, 2} : Ints{1, 0, 2};
  for (int64_t g : order) parts.push_back(c.slice(e, 0, g * size, (g + 1) * size));
  return c.concat(parts, 0);
}

// One direction of an LSTM whose hidden state is projected, step by step. Weights: input, hidden, their biases if there
// are any, projection; x is (time, batch, features), the states (1, batch, size).
struct ProjectedLayer {
  std::vector<Expr> outputs;  // by time, (1, batch, projected)
  Expr hidden, cell;
};
ProjectedLayer projected_layer(NodeContext& c, const Expr& x, const std::vector<Expr>& weights, Expr hidden, Expr cell,
                               bool backward) {
  constexpr int64_t kMostSteps = 1024;
  const int64_t steps = c.dims(x).at(0);
  if (steps > kMostSteps) c.unsupported(format("{} steps with projections of its hidden state", steps));
  const Expr& projection = weights.back();
  auto times = [&](const Expr& e, const Expr& weight) {
    return c.aten("aten.linear.default", {{"input", Value(e)}, {"weight", Value(weight)}}).at(0).expr;
  };
  Expr gates_of_input = times(x, weights[0]);
  if (weights.size() > 3) gates_of_input = c.add(gates_of_input, c.add(weights[2], weights[3]));
  ProjectedLayer out{std::vector<Expr>(static_cast<size_t>(steps)), {}, {}};
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = backward ? steps - 1 - i : i;
    const Expr gates = c.add(c.slice(gates_of_input, 0, t, t + 1), times(hidden, weights[1]));
    const int64_t size = c.dims(gates).back() / 4;
    auto gate = [&](int64_t g, const char* op) { return c.call(op, {c.slice(gates, 2, g * size, (g + 1) * size)}); };
    cell = c.add(c.mul(gate(1, "sigmoid"), cell), c.mul(gate(0, "sigmoid"), gate(2, "tanh")));
    hidden = times(c.mul(gate(3, "sigmoid"), c.call("tanh", {cell})), projection);
    out.outputs[static_cast<size_t>(t)] = hidden;
  }
  out.hidden = hidden, out.cell = cell;
  return out;
}

// ---- packed sequences: their data are padded ones (time, batch, ...) here, with zeros behind each end; the numbers of
// sequences by time are PyTorch's, with zeros behind the longest

// (n): how many of `counts` are larger than 0, 1, ..., n - 1: lengths from the numbers of sequences by time, and back.
Expr larger_ones(NodeContext& c, const Expr& counts, int64_t n) {
  const Expr larger = c.call("less", {c.expand(c.counting(n), 1), c.cast(counts, kInt64)});
  return c.reduce("sum", c.cast(larger, kInt64), {1}, false);
}
// `data` (time, batch, ...) where its sequence goes on, else a number.
Expr inside_lengths(NodeContext& c, const Expr& data, const Expr& lengths, double outside) {
  const Expr on = c.call("less", {c.expand(c.counting(c.dims(data).at(0)), 1), lengths});
  return c.where(c.expand(on, 2, c.rank(data) - 2), data, c.scalar_like(outside, data));
}
Expr first_axes_exchanged(NodeContext& c, const Expr& e) {
  Ints order = {1, 0};
  for (int64_t i = 2; i < c.rank(e); ++i) order.push_back(i);
  return c.transpose(e, order);
}
Values pack_sequence(NodeContext& c) {
  Expr x = c.tensor("input");
  if (c.rank(x) < 2) c.fail_type("its input has no axes of time and sequences");
  if (c.flag("batch_first", false)) x = first_axes_exchanged(c, x);
  const Expr lengths = c.cast(c.tensor("lengths"), kInt64);
  Value data(inside_lengths(c, x, lengths, 0));
  data.packed = true;
  return {data, larger_ones(c, lengths, c.dims(x)[0])};
}
Values pad_sequence(NodeContext& c) {
  Expr data = c.tensor("data");
  const Ints d = c.dims(data);
  const Expr lengths = larger_ones(c, c.tensor("batch_sizes"), d.at(1));
  // As long as the longest, which may be shorter than what was packed.
  int64_t longest = 0;
  const Tensor known = c.constant(lengths, "lengths of sequences");
  for (int64_t i = 0; i < known.size(); ++i) longest = std::max(longest, known.at_int(i));
  const int64_t asked = c.integer("total_length", -1), total = asked > 0 ? asked : longest;
  if (total < longest) c.fail(format("its total_length {} is less than {}", total, longest));
  data = c.slice(data, 0, 0, std::min(total, d[0]));
  if (total > d[0]) {
    Ints more = d;
    more[0] = total - d[0];
    data = c.concat({data, c.zeros(c.dtype(data), more)}, 0);
  }
  data = inside_lengths(c, data, lengths, c.number("padding_value", 0));
  return {c.flag("batch_first", false) ? first_axes_exchanged(c, data) : data, lengths};
}

// Stacked layers. The weights of a direction: input, hidden, and optionally their biases.
template <Cell kCell>
Values recurrent(NodeContext& c) {
  const bool packed = c.has("batch_sizes");
  Expr x = c.tensor(packed ? "data" : "input");
  Expr lengths;
  if (packed) lengths = c.cast(larger_ones(c, c.tensor("batch_sizes"), c.dims(x).at(1)), kInt32);
  if (c.flag("train", false) && c.number("dropout", 0) > 0) c.unsupported("in training mode");
  const bool lstm = kCell == Cell::kLstm, biases = c.flag("has_biases", true);
  const std::vector<Expr> states = lstm ? c.tensors("hx") : std::vector<Expr>{c.tensor("hx")};
  const std::vector<Expr> params = c.tensors("params");
  const int64_t layers = c.integer("num_layers"), directions = c.flag("bidirectional", false) ? 2 : 1;
  size_t each = biases ? 4 : 2;
  if (layers < 1 || layers > 1024 || states.size() != (lstm ? 2 : 1)) c.fail("its layers and states do not fit");
  const bool projects = lstm && params.size() == (each + 1) * static_cast<size_t>(layers * directions);
  if (projects) ++each;
  if (params.size() != each * static_cast<size_t>(layers * directions)) c.fail("its layers and weights do not fit");
  const bool batch_first = c.flag("batch_first", false), alone = c.rank(x) == 2;
  if (alone)
    x = c.expand(x, 1);
  else if (batch_first)
    x = c.transpose(x, {1, 0, 2});
  std::vector<Expr> hidden, cells;
  for (int64_t layer = 0; layer < layers; ++layer) {
    auto state = [&](size_t i) {
      Expr all = alone && c.rank(states[i]) == 2 ? c.expand(states[i], 1) : states[i];
      return c.slice(all, 0, layer * directions, (layer + 1) * directions);
    };
    if (projects) {
      if (packed) c.unsupported("packed sequences with projections of the hidden state");
      std::vector<Expr> sides;
      for (int64_t d = 0; d < directions; ++d) {
        const auto first = params.begin() + (layer * directions + d) * static_cast<int64_t>(each);
        ProjectedLayer made = projected_layer(c, x, {first, first + static_cast<int64_t>(each)},
                                              c.slice(state(0), 0, d, d + 1), c.slice(state(1), 0, d, d + 1), d == 1);
        sides.push_back(c.concat(std::move(made.outputs), 0));
        hidden.push_back(made.hidden);
        cells.push_back(made.cell);
      }
      x = c.concat(std::move(sides), 2);
      continue;
    }
    std::vector<Expr> w, r, b;
    for (int64_t d = 0; d < directions; ++d) {
      const size_t at = static_cast<size_t>(layer * directions + d) * each;
      w.push_back(c.expand(reordered(c, params[at], kCell), 0));
      r.push_back(c.expand(reordered(c, params[at + 1], kCell), 0));
      if (biases)
        b.push_back(
            c.expand(c.concat({reordered(c, params[at + 2], kCell), reordered(c, params[at + 3], kCell)}, 0), 0));
    }
    std::vector<Expr> inputs = {x, c.concat(w, 0), c.concat(r, 0), biases ? c.concat(b, 0) : Expr(), lengths, state(0)};
    if (lstm) inputs.push_back(state(1));
    std::vector<NodeContext::OnnxAttribute> attributes = {
        {"hidden_size", c.dims(params.at(1)).at(1)},
        {"direction", std::string(directions == 2 ? "bidirectional" : "forward")}};
    if (kCell == Cell::kGru) attributes.push_back({"linear_before_reset", int64_t{1}});
    if (kCell == Cell::kRelu)
      attributes.push_back({"activations", std::vector<std::string>(static_cast<size_t>(directions), "Relu")});
    const char* op = lstm ? "LSTM" : kCell == Cell::kGru ? "GRU" : "RNN";
    std::vector<Expr> made = c.onnx(op, 14, inputs, attributes, lstm ? 3 : 2);
    // (time, directions, batch, hidden)
    const Ints d = c.dims(made[0]);
    x = c.reshaped(c.transpose(made[0], {0, 2, 1, 3}), {d[0], d[2], d[1] * d[3]});
    hidden.push_back(made[1]);
    if (lstm) cells.push_back(made[2]);
  }
  Expr y = alone ? c.squeeze(x, {1}) : batch_first ? c.transpose(x, {1, 0, 2}) : x;
  auto joined = [&](const std::vector<Expr>& all) {
    Expr e = c.concat(all, 0);
    return alone ? c.squeeze(e, {1}) : e;
  };
  if (lstm) return {y, joined(hidden), joined(cells)};
  return {y, joined(hidden)};
}

// Runs a subgraph in place: no_grad and autocast regions.
Values run_graph(NodeContext& c, size_t graph_at) {
  const Value& graph = c.positional(graph_at);
  if (!graph.graph || !c.place().torch) c.fail_type("it has no graph");
  Values arguments;
  for (size_t i = graph_at + 1; i < c.argument_count(); ++i) {
    const Value& v = c.positional(i);
    if (v.list)
      arguments.insert(arguments.end(), v.list->begin(), v.list->end());
    else
      arguments.push_back(v);
  }
  return c.place().torch->import_graph(*graph.graph, std::move(arguments));
}
size_t graph_position(NodeContext& c) {
  for (size_t i = 0; i < c.argument_count(); ++i)
    if (c.positional(i).kind == Value::kGraph) return i;
  c.fail_type("it has no graph");
}
Values wrapped(NodeContext& c) { return run_graph(c, graph_position(c)); }

// (token, operator, its arguments...): an operator whose order counts, a check or a print. The token is no value.
Values with_effects(NodeContext& c) {
  if (c.argument_count() < 2 || c.positional(1).kind != Value::kText) c.fail_type("it names no operator");
  constexpr std::string_view kSpace = "torch.ops.";
  std::string_view target = c.positional(1).text;
  if (target.starts_with(kSpace)) target.remove_prefix(kSpace.size());
  if (!find_converter(target)) c.unsupported(format("the operator {}, whose effects count", target));
  Values out = c.aten(std::string(target), {c.arguments().begin() + 2, c.arguments().end()});
  out.insert(out.begin(), Value());
  out.resize(std::max(out.size(), c.output_count()));
  return out;
}

// What a model prints it does not print when it is compiled, as in TorchScript.
Values nothing(NodeContext&) { return {Value()}; }

// Programs have them from a run (data_sized.cc).
Values nms(NodeContext&) {
  throw ConversionFailure{Diagnostic(ErrorCode::kUnsupportedModel, "how many boxes are kept is known only at run time",
                                     "", "compile it to a shared library, which may be a program (docs/vm.md)")};
}
Values roi_align(NodeContext& c) {
  Expr x = c.tensor("input"), rois = c.tensor("rois");
  Expr batch = c.cast(c.squeeze(c.slice(rois, 1, 0, 1), {1}), kInt64);
  return {c.onnx("RoiAlign", 16, {x, c.slice(rois, 1, 1, 5), batch},
                 {{"output_height", c.integer("pooled_height")},
                  {"output_width", c.integer("pooled_width")},
                  {"spatial_scale", c.number("spatial_scale")},
                  {"sampling_ratio", std::max<int64_t>(0, c.integer("sampling_ratio", -1))},
                  {"coordinate_transformation_mode",
                   std::string(c.flag("aligned", false) ? "half_pixel" : "output_half_pixel")}})[0]};
}

constexpr ConverterEntry kTable[] = {
    {"aten.scaled_dot_product_attention", scaled_dot_product},
    {"aten._scaled_dot_product_flash_attention_for_cpu", flash_for_cpu},
    {"aten.lstm", recurrent<Cell::kLstm>},
    {"aten.gru", recurrent<Cell::kGru>},
    {"aten._pack_padded_sequence", pack_sequence},
    {"aten._pad_packed_sequence", pad_sequence},
    {"aten.rnn_tanh", recurrent<Cell::kTanh>},
    {"aten.rnn_relu", recurrent<Cell::kRelu>},
    {"higher_order.wrap_with_set_grad_enabled", wrapped},
    {"higher_order.wrap_with_autocast", wrapped},
    {"higher_order.with_effects", with_effects},
    {"higher_order.print", nothing},
    {"torchvision.nms", nms},
    {"torchvision.roi_align", roi_align},
};

}  // namespace
}  // namespace attention

std::span<const ConverterEntry> attention_converters() { return attention::kTable; }

}  // namespace tilewright::torch
