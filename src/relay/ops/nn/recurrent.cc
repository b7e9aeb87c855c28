// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and plain recurrent layers as whole operators. Equations: the ONNX specification.
#include <algorithm>

#include "relay/ops/attrs.h"
#include "relay/ops/reference.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

enum class Cell { kLstm, kGru, kRnn };
constexpr int64_t gates_of(Cell cell) { return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1; }
constexpr size_t activations_of(Cell cell) { return cell == Cell::kLstm ? 3 : cell == Cell::kGru ? 2 : 1; }

// An activation with its constants and its Lipschitz bound, by which errors may grow.
struct Activation {
  std::string name;
  double alpha, beta;
  double operator()(double x) const {
    if (name == "Sigmoid") return 1 / (1 + std::exp(-x));
    if (name == "Tanh") return std::tanh(x);
    if (name == "Relu") return x > 0 ? x : 0;
    if (name == "Affine") return alpha * x + beta;
    if (name == "LeakyRelu") return x >= 0 ? x : alpha * x;
    if (name == "ThresholdedRelu") return x > alpha ? x : 0;
    if (name == "ScaledTanh") return alpha * std::tanh(beta * x);
    if (name == "HardSigmoid") return std::clamp(alpha * x + beta, 0.0, 1.0);
    if (name == "Elu") return x >= 0 ? x : alpha * std::expm1(x);
    if (name == "Softsign") return x / (1 + std::fabs(x));
    return std::log1p(std::exp(-std::fabs(x))) + std::fmax(x, 0);  // Softplus
  }
  double slope() const {
    if (name == "Sigmoid") return 0.25;
    if (name == "Affine" || name == "HardSigmoid") return std::fabs(alpha);
    if (name == "ScaledTanh") return std::fabs(alpha * beta);
    if (name == "LeakyRelu" || name == "Elu") return std::fmax(1, std::fabs(alpha));
    return 1;
  }
};

struct KnownActivation {
  const char* name;
  double alpha, beta;  // ONNX defaults
};
constexpr KnownActivation kActivations[] = {{"Sigmoid", 0, 0},      {"Tanh", 0, 0},
                                            {"Relu", 0, 0},         {"Affine", 1, 0},
                                            {"LeakyRelu", 0.01, 0}, {"ThresholdedRelu", 1, 0},
                                            {"ScaledTanh", 1, 1},   {"HardSigmoid", 0.2, 0.5},
                                            {"Elu", 1, 0},          {"Softsign", 0, 0},
                                            {"Softplus", 0, 0}};

int64_t directions(const RecurrentAttrs& a) { return a.direction == "bidirectional" ? 2 : 1; }

Result<std::vector<Activation>> activations(const RecurrentAttrs& a, Cell cell) {
  const size_t each = activations_of(cell), count = each * static_cast<size_t>(directions(a));
  std::vector<std::string> names = a.activations;
  if (names.empty())
    for (size_t i = 0; i < count; ++i) names.push_back(cell == Cell::kRnn || i % each ? "Tanh" : "Sigmoid");
  if (names.size() != count) return type_error(format("activations has {} names, not {}", names.size(), count));
  std::vector<Activation> out;
  for (size_t i = 0; i < count; ++i) {
    const auto* known = std::find_if(std::begin(kActivations), std::end(kActivations),
                                     [&](const KnownActivation& k) { return names[i] == k.name; });
    if (known == std::end(kActivations)) return type_error(format("no activation is named \"{}\"", names[i]));
    out.push_back({names[i], i < a.activation_alpha.size() ? a.activation_alpha[i] : known->alpha,
                   i < a.activation_beta.size() ? a.activation_beta[i] : known->beta});
  }
  return out;
}

// The index of the first initial state among the operands of a layer, or of its scan, whose X holds the gates' inputs.
constexpr size_t state_operand(Cell cell, bool scan) { return scan ? (cell == Cell::kGru ? 3 : 2) : 4; }
size_t operand_count(const RecurrentAttrs& a, Cell cell, bool scan) {
  return state_operand(cell, scan) + (cell == Cell::kLstm ? 2 : 1) + (a.has_peephole ? 1 : 0) + (a.has_lengths ? 1 : 0);
}

template <Cell kCell, bool kScan>
Result<Type> recurrent_type(const TypeArgs& args) {
  const auto& a = attrs_of<RecurrentAttrs>(args);
  if (a.direction != "forward" && a.direction != "reverse" && a.direction != "bidirectional")
    return type_error(format("direction is \"{}\", not forward, reverse or bidirectional", a.direction));
  if (a.has_peephole && kCell != Cell::kLstm) return type_error("only an LSTM has peepholes");
  if (size_t count = operand_count(a, kCell, kScan); args.types.size() != count)
    return type_error(format("it takes {} operands, not {}", count, args.types.size()));
  for (size_t i = 0; i < args.types.size(); ++i)
    if (!as_tensor(args.types[i]))
      return type_error(format("operand {} is {}, not a tensor", i, type_str(args.types[i])));
  TW_TRY(activations(a, kCell));
  const auto& x = args.tensor(0);
  const int64_t d = directions(a), h = a.hidden_size, gates = gates_of(kCell);
  if (h < 1 || h > (1 << 24)) return type_error(format("hidden_size is {}", h));
  if (x.shape.size() != 3 || !x.dtype.is_float())
    return type_error(format("X is {}, not (T, N, I) floats", type_str(args.types[0])));
  const Dim n = x.shape[1];
  std::vector<std::pair<const char*, Shape>> want;
  if (kScan) {
    want = {{"X", {x.shape[0], n, d * gates * h}}, {"R", {d, gates * h, h}}};
    if (kCell == Cell::kGru) want.push_back({"B", {d, h}});
  } else {
    want = {{"X", x.shape}, {"W", {d, gates * h, x.shape[2]}}, {"R", {d, gates * h, h}}, {"B", {d, 2 * gates * h}}};
  }
  want.push_back({"h0", {d, n, h}});
  if (kCell == Cell::kLstm) want.push_back({"c0", {d, n, h}});
  if (a.has_peephole) want.push_back({"P", {d, 3 * h}});
  if (a.has_lengths) want.push_back({"lengths", {n}});
  for (size_t i = 0; i < want.size(); ++i) {
    const auto& t = args.tensor(i);
    const auto& [name, shape] = want[i];
    bool same = t.shape.size() == shape.size();
    for (size_t k = 0; same && k < shape.size(); ++k) same = !dims_differ(t.shape[k], shape[k]);
    bool lengths = std::string_view(name) == "lengths";
    if (!same || (lengths ? !t.dtype.is_integral() : t.dtype != x.dtype))
      return type_error(format("{} is {}, not {}", name, type_str(args.types[i]), shape_str(shape)));
  }
  Type state = tensor_type({d, n, h}, x.dtype), all = tensor_type({x.shape[0], d, n, h}, x.dtype);
  if (kCell == Cell::kLstm) return tuple_type({all, state, state});
  return tuple_type({all, state});
}

// A value with its error bound.
struct Pair {
  double v = 0, b = 0;
};
double norm_of(const double* p, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += p[i] * p[i];
  return std::sqrt(sum);
}

// One direction of one layer; gate rows are rows of W and R.
struct Layer {
  const RecurrentAttrs& a;
  const Value& x;
  const double *w, *r, *peephole;  // w is null when x holds the gates' inputs; those of this direction begin at `first`
  int64_t first;
  std::vector<double> input_bias, state_bias, w_norm, r_norm;
  int64_t n, in, h, gates;
  double u;

  // One gate row: w . x_t + (with_state: r . h) + biases, with its bound.
  Pair input(int64_t row, int64_t t, int64_t sample) const {
    const double* xs = x.f.data() + (t * n + sample) * in;
    if (!w) return {xs[first + row], bound_at(x, (t * n + sample) * in + first + row)};
    Pair p{input_bias[row], 0};
    for (int64_t i = 0; i < in; ++i) p.v += w[row * in + i] * xs[i];
    const double moved = x.bound.empty() || in == 0
                             ? 0
                             : norm_of(x.bound.data() + (t * n + sample) * in, in) / std::sqrt(static_cast<double>(in));
    p.b = w_norm[row] * (moved + u * norm_of(xs, in)) + u * std::fabs(input_bias[row]);
    return p;
  }
  Pair state(int64_t row, const std::vector<Pair>& s) const {
    Pair p{state_bias[row], 0};
    double energy = 0, spread = 0;
    for (int64_t i = 0; i < h; ++i) {
      p.v += r[row * h + i] * s[i].v;
      energy += s[i].v * s[i].v;
      spread += s[i].b * s[i].b;
    }
    p.b = r_norm[row] * (std::sqrt(spread / static_cast<double>(h)) + u * std::sqrt(energy)) + u * std::fabs(p.v);
    return p;
  }
  Pair activate(const Activation& f, Pair p) const {
    if (a.clip > 0) p.v = std::clamp(p.v, -a.clip, a.clip);
    const double y = f(p.v);
    return {y, f.slope() * p.b + u * std::fabs(y)};
  }
};
Pair operator+(Pair a, Pair b) { return {a.v + b.v, a.b + b.b}; }
Pair operator*(Pair a, Pair b) { return {a.v * b.v, std::fabs(a.v) * b.b + std::fabs(b.v) * a.b}; }
Pair operator-(double one, Pair a) { return {one - a.v, a.b}; }

void lstm_step(const Layer& l, const Activation* f, int64_t t, int64_t sample, std::vector<Pair>* hs,
               std::vector<Pair>* cs) {
  const int64_t h = l.h;
  std::vector<Pair> next(static_cast<size_t>(h));
  auto peep = [&](int64_t which, int64_t j, Pair c) {
    return l.peephole ? Pair{l.peephole[which * h + j], 0} * c : Pair{};
  };
  for (int64_t j = 0; j < h; ++j) {
    auto gate = [&](int64_t g) { return l.input(g * h + j, t, sample) + l.state(g * h + j, *hs); };
    const Pair c0 = (*cs)[j];
    const Pair i = l.activate(f[0], gate(0) + peep(0, j, c0));
    const Pair forget = l.a.input_forget ? 1 - i : l.activate(f[0], gate(2) + peep(2, j, c0));
    const Pair cell = l.activate(f[1], gate(3));
    const Pair c = forget * c0 + i * cell;
    const Pair o = l.activate(f[0], gate(1) + peep(1, j, c));
    const double y = f[2](c.v);
    next[j] = o * Pair{y, f[2].slope() * c.b + l.u * std::fabs(y)};
    (*cs)[j] = c;
  }
  *hs = std::move(next);
}

void gru_step(const Layer& l, const Activation* f, int64_t t, int64_t sample, std::vector<Pair>* hs) {
  const int64_t h = l.h;
  std::vector<Pair> z(static_cast<size_t>(h)), reset(z.size()), scaled(z.size()), next(z.size());
  for (int64_t j = 0; j < h; ++j) {
    z[j] = l.activate(f[0], l.input(j, t, sample) + l.state(j, *hs));
    reset[j] = l.activate(f[0], l.input(h + j, t, sample) + l.state(h + j, *hs));
    scaled[j] = reset[j] * (*hs)[j];
  }
  for (int64_t j = 0; j < h; ++j) {
    const Pair inner = l.a.linear_before_reset ? reset[j] * l.state(2 * h + j, *hs) : l.state(2 * h + j, scaled);
    const Pair candidate = l.activate(f[1], l.input(2 * h + j, t, sample) + inner);
    next[j] = (1 - z[j]) * candidate + z[j] * (*hs)[j];
  }
  *hs = std::move(next);
}

void rnn_step(const Layer& l, const Activation* f, int64_t t, int64_t sample, std::vector<Pair>* hs) {
  std::vector<Pair> next(static_cast<size_t>(l.h));
  for (int64_t j = 0; j < l.h; ++j) next[j] = l.activate(f[0], l.input(j, t, sample) + l.state(j, *hs));
  *hs = std::move(next);
}

template <Cell kCell, bool kScan>
Result<std::vector<Value>> eval_recurrent(const EvalArgs& args) {
  const auto& a = args.as<RecurrentAttrs>();
  const Value& x = args.inputs[0];
  const int64_t steps = x.shape[0], n = x.shape[1], in = x.shape[2], h = a.hidden_size, gates = gates_of(kCell),
                d = directions(a);
  std::vector<Activation> f = TW_TRY(activations(a, kCell));
  const bool lstm = kCell == Cell::kLstm;
  const size_t state = state_operand(kCell, kScan);
  const Value* peephole = a.has_peephole ? &args.inputs[state + 2] : nullptr;
  const Value* lengths = a.has_lengths ? &args.inputs.back() : nullptr;
  std::vector<Value> out;
  for (size_t i = 0; i < (lstm ? 3u : 2u); ++i) {
    out.push_back(out_value(args, i));
    out.back().bound.resize(out.back().f.size());
  }
  for (int64_t dir = 0; dir < d; ++dir) {
    Layer l{a,
            x,
            kScan ? nullptr : args.inputs[1].f.data() + dir * gates * h * in,
            args.inputs[kScan ? 1 : 2].f.data() + dir * gates * h * h,
            peephole ? peephole->f.data() + dir * 3 * h : nullptr,
            dir * gates * h,
            {},
            {},
            {},
            {},
            n,
            in,
            h,
            gates,
            4 * unit_roundoff(x.dtype)};
    for (int64_t row = 0; row < gates * h; ++row) {
      if (!kScan) l.w_norm.push_back(norm_of(l.w + row * in, in));
      l.r_norm.push_back(norm_of(l.r + row * h, h));
      l.input_bias.push_back(kScan ? 0 : args.inputs[3].f[dir * 2 * gates * h + row]);
      const bool scan_bias = kScan && kCell == Cell::kGru && row >= 2 * h;
      l.state_bias.push_back(scan_bias ? args.inputs[2].f[dir * h + row - 2 * h]
                             : kScan   ? 0
                                       : args.inputs[3].f[(dir * 2 + 1) * gates * h + row]);
    }
    const bool backward = a.direction == "reverse" || dir == 1;
    const Activation* fs = f.data() + static_cast<size_t>(dir) * activations_of(kCell);
    for (int64_t sample = 0; sample < n; ++sample) {
      auto initial = [&](const Value& v) {
        std::vector<Pair> s;
        for (int64_t j = 0; j < h; ++j)
          s.push_back({v.f[(dir * n + sample) * h + j], bound_at(v, (dir * n + sample) * h + j)});
        return s;
      };
      std::vector<Pair> hs = initial(args.inputs[state]), cs;
      if (lstm) cs = initial(args.inputs[state + 1]);
      const int64_t length = lengths ? std::clamp<int64_t>(lengths->i[sample], 0, steps) : steps;
      for (int64_t step = 0; step < length; ++step) {
        const int64_t t = backward ? length - 1 - step : step;
        if constexpr (kCell == Cell::kLstm) lstm_step(l, fs, t, sample, &hs, &cs);
        if constexpr (kCell == Cell::kGru) gru_step(l, fs, t, sample, &hs);
        if constexpr (kCell == Cell::kRnn) rnn_step(l, fs, t, sample, &hs);
        for (int64_t j = 0; j < h; ++j) {
          const int64_t at = ((t * d + dir) * n + sample) * h + j;
          out[0].f[at] = hs[j].v;
          out[0].bound[at] = hs[j].b;
        }
      }
      auto finish = [&](Value* v, const std::vector<Pair>& s) {
        for (int64_t j = 0; j < h; ++j) {
          v->f[(dir * n + sample) * h + j] = s[j].v;
          v->bound[(dir * n + sample) * h + j] = s[j].b;
        }
      };
      finish(&out[1], hs);
      if (lstm) finish(&out[2], cs);
    }
  }
  return out;
}

OpDef op(const char* name, const char* doc, Result<Type> (*type)(const TypeArgs&),
         Result<std::vector<Value>> (*eval)(const EvalArgs&), Cell cell, bool scan) {
  OpDef d;
  d.name = name;
  d.num_inputs = -1;
  d.doc = doc;
  if (scan)
    d.args = {{"X", "(T, N, D*G*H): what the gates get besides the state"}, {"R", "(D, G*H, H)"}};
  else
    d.args = {{"X", "(T, N, I)"}, {"W", "(D, G*H, I)"}, {"R", "(D, G*H, H)"}, {"B", "(D, 2*G*H)"}};
  if (scan && cell == Cell::kGru) d.args.push_back({"B", "(D, H): added to the state's product with the third gate"});
  d.args.push_back({"h0", "(D, N, H)"});
  if (cell == Cell::kLstm) {
    d.args.push_back({"c0", "(D, N, H)"});
    d.args.push_back({"P", "(D, 3*H) when has_peephole"});
  }
  d.args.push_back({"lengths", "(N) integers when has_lengths"});
  d.infer_type = type;
  d.evaluate = eval;
  d.make_attrs = make_default_attrs<RecurrentAttrs>;
  return d;
}

template <Cell kCell, bool kScan>
OpDef op(const char* name, const char* doc) {
  return op(name, doc, recurrent_type<kCell, kScan>, eval_recurrent<kCell, kScan>, kCell, kScan);
}

}  // namespace

std::vector<OpDef> recurrent_ops() {
  return {
      op<Cell::kLstm, false>("nn.lstm", "A long short-term memory layer: (Y (T, D, N, H), Yh, Yc (D, N, H))."),
      op<Cell::kGru, false>("nn.gru", "A gated recurrent layer: (Y (T, D, N, H), Yh (D, N, H))."),
      op<Cell::kRnn, false>("nn.rnn", "A plain recurrent layer: (Y (T, D, N, H), Yh (D, N, H))."),
      op<Cell::kLstm, true>("nn.lstm_scan",
                            "The steps of nn.lstm, the input's products done: (Y (T, D, N, H), Yh, Yc (D, N, H))."),
      op<Cell::kGru, true>("nn.gru_scan",
                           "The steps of nn.gru, the input's products done: (Y (T, D, N, H), Yh (D, N, H))."),
      op<Cell::kRnn, true>("nn.rnn_scan",
                           "The steps of nn.rnn, the input's products done: (Y (T, D, N, H), Yh (D, N, H))."),
  };
}

}  // namespace tilewright::relay
