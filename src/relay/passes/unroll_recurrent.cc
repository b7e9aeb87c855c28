// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/unroll_recurrent.h"

#include <algorithm>

#include "base/format.h"
#include "relay/op.h"
#include "relay/ops/attrs.h"

namespace tilewright::relay {
namespace {

Expr slice(const Expr& x, int64_t axis, int64_t begin, int64_t end, const Span& span) {
  return call("strided_slice", {x}, make_attrs<StridedSliceAttrs>([&](auto& a) {
                a.begin = {begin};
                a.end = {end};
                a.strides = {1};
                a.axes = std::vector<int64_t>{axis};
              }),
              span);
}
Expr reshape(const Expr& x, std::vector<int64_t> shape, const Span& span) {
  return call("reshape", {x}, make_attrs<ReshapeAttrs>([&](auto& a) { a.newshape = std::move(shape); }), span);
}
Expr dense(const Expr& x, const Expr& w, const Span& span) { return call("nn.dense", {x, w}, make_default_attrs<DenseAttrs>(), span); }
Expr concatenate(std::vector<Expr> parts, int64_t axis, const Span& span) {
  if (parts.size() == 1) return parts[0];
  return call("concatenate", {make_tuple(std::move(parts), span)}, make_attrs<ConcatenateAttrs>([&](auto& a) { a.axis = axis; }), span);
}

// The layer's kind: how many gates, and one step from the gates' inputs to the next state.
enum class Cell { kLstm, kGru, kRnn };

class Unroller {
 public:
  Unroller(const CallNode& call, Cell cell, const Span& span)
      : c_(call), attrs_(*attrs_as<RecurrentAttrs>(call.attrs)), cell_(cell), span_(span) {
    auto x = *static_shape(as_tensor(call.args[0]->type)->shape);
    steps_ = x[0];
    batch_ = x[1];
    inputs_ = x[2];
    hidden_ = attrs_.hidden_size;
    gates_ = cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1;
  }

  // (Y, Yh[, Yc])
  Expr run() {
    int64_t directions = attrs_.direction == "bidirectional" ? 2 : 1;
    std::vector<Expr> ys, hs, cs;
    for (int64_t d = 0; d < directions; ++d) {
      bool backward = attrs_.direction == "reverse" || d == 1;
      auto out = direction(d, backward);
      ys.push_back(out.y);
      hs.push_back(out.h);
      cs.push_back(out.c);
    }
    std::vector<Expr> result{concatenate(ys, 1, span_), concatenate(hs, 0, span_)};
    if (cell_ == Cell::kLstm) result.push_back(concatenate(cs, 0, span_));
    return make_tuple(std::move(result), span_);
  }

 private:
  struct Direction {
    Expr y, h, c;  // (T, 1, N, H), (1, N, H), (1, N, H)
  };

  Expr add(const Expr& a, const Expr& b) { return call("add", {a, b}, {}, span_); }
  Expr mul(const Expr& a, const Expr& b) { return call("multiply", {a, b}, {}, span_); }
  Expr act(const char* op, const Expr& x) { return call(op, {x}, {}, span_); }
  Expr gate(const Expr& all, int64_t k) { return slice(all, 1, k * hidden_, (k + 1) * hidden_, span_); }
  // Operand i's part of a direction, shaped.
  Expr part(size_t i, int64_t d, std::vector<int64_t> shape) {
    return reshape(slice(c_.args[i], 0, d, d + 1, span_), std::move(shape), span_);
  }

  Direction direction(int64_t d, bool backward) {
    int64_t width = gates_ * hidden_;
    Expr w = part(1, d, {width, inputs_}), r = part(2, d, {width, hidden_}), b = part(3, d, {2 * width});
    Expr wb = slice(b, 0, 0, width, span_), rb = slice(b, 0, width, 2 * width, span_);
    // A GRU that resets after the product keeps the recurrent bias of its third gate inside the reset.
    bool split_bias = cell_ == Cell::kGru;
    Expr x = add(dense(reshape(c_.args[0], {steps_ * batch_, inputs_}, span_), w, span_), split_bias ? wb : add(wb, rb));
    Expr h = part(4, d, {batch_, hidden_});
    Expr c = cell_ == Cell::kLstm ? part(5, d, {batch_, hidden_}) : Expr();
    std::vector<Expr> ys(static_cast<size_t>(steps_));
    for (int64_t s = 0; s < steps_; ++s) {
      int64_t t = backward ? steps_ - 1 - s : s;
      Expr in = slice(x, 0, t * batch_, (t + 1) * batch_, span_);
      step(in, r, rb, &h, &c);
      ys[static_cast<size_t>(t)] = reshape(h, {1, 1, batch_, hidden_}, span_);
    }
    Direction out;
    out.y = concatenate(ys, 0, span_);
    out.h = reshape(h, {1, batch_, hidden_}, span_);
    if (c) out.c = reshape(c, {1, batch_, hidden_}, span_);
    return out;
  }

  void step(const Expr& in, const Expr& r, const Expr& rb, Expr* h, Expr* c) {
    switch (cell_) {
      case Cell::kRnn:
        *h = act("tanh", add(dense(*h, r, span_), in));
        return;
      case Cell::kLstm: {
        Expr all = add(dense(*h, r, span_), in);  // gate order i o f c
        Expr i = act("sigmoid", gate(all, 0)), o = act("sigmoid", gate(all, 1)), f = act("sigmoid", gate(all, 2)), g = act("tanh", gate(all, 3));
        *c = add(mul(f, *c), mul(i, g));
        *h = mul(o, act("tanh", *c));
        return;
      }
      case Cell::kGru: {
        // gate order z r h
        Expr z, n;
        if (attrs_.linear_before_reset) {
          Expr all = add(dense(*h, r, span_), rb);
          z = act("sigmoid", add(gate(all, 0), gate(in, 0)));
          Expr reset = act("sigmoid", add(gate(all, 1), gate(in, 1)));
          n = act("tanh", add(gate(in, 2), mul(reset, gate(all, 2))));
        } else {
          Expr rzr = slice(r, 0, 0, 2 * hidden_, span_), rn = slice(r, 0, 2 * hidden_, 3 * hidden_, span_);
          Expr both = add(dense(*h, rzr, span_), slice(rb, 0, 0, 2 * hidden_, span_));
          z = act("sigmoid", add(gate(both, 0), gate(in, 0)));
          Expr reset = act("sigmoid", add(gate(both, 1), gate(in, 1)));
          Expr candidate = add(dense(mul(reset, *h), rn, span_), slice(rb, 0, 2 * hidden_, 3 * hidden_, span_));
          n = act("tanh", add(candidate, gate(in, 2)));
        }
        // (1 - z) * n + z * h
        *h = add(n, mul(z, call("subtract", {*h, n}, {}, span_)));
        return;
      }
    }
  }

  const CallNode& c_;
  const RecurrentAttrs& attrs_;
  Cell cell_;
  Span span_;
  int64_t steps_, batch_, inputs_, hidden_, gates_;
};

bool default_activations(const RecurrentAttrs& attrs, Cell cell) {
  static const std::vector<std::string> kLstm{"Sigmoid", "Tanh", "Tanh"}, kGru{"Sigmoid", "Tanh"}, kRnn{"Tanh"};
  const auto& unit = cell == Cell::kLstm ? kLstm : cell == Cell::kGru ? kGru : kRnn;
  for (size_t i = 0; i < attrs.activations.size(); ++i)
    if (attrs.activations[i] != unit[i % unit.size()]) return false;
  return true;
}

}  // namespace

Result<Module> unroll_recurrent(const Module& module, PassContext&) {
  const FunctionNode* main = module.main_function();
  if (!main) return module;
  Expr body = rewrite_graph(main->body, [](const Expr&, const Expr& e) -> Expr {
    Cell cell = is_call_to(e, "nn.lstm") ? Cell::kLstm : is_call_to(e, "nn.gru") ? Cell::kGru : Cell::kRnn;
    if (cell == Cell::kRnn && !is_call_to(e, "nn.rnn")) return e;
    const auto* c = as<CallNode>(e);
    const auto* attrs = attrs_as<RecurrentAttrs>(c->attrs);
    for (const Expr& arg : c->args)
      if (!as_tensor(arg->type) || !static_shape(as_tensor(arg->type)->shape)) return e;
    bool plain = !attrs->has_peephole && !attrs->has_lengths && attrs->clip == 0 && !attrs->input_forget && default_activations(*attrs, cell);
    int64_t steps = as_tensor(c->args[0]->type)->shape[0].value();
    if (!plain || steps < 1 || steps > kMaxSteps) return e;
    return Unroller(*c, cell, e->span).run();
  });
  if (body == main->body) return module;
  return module.with_main(make_function(main->params, body, main->attrs, main->span));
}

}  // namespace tilewright::relay
