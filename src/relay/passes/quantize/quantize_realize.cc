// SPDX-License-Identifier: Apache-2.0
// QuantizeRealize.
#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "base/format.h"
#include "relay/calls.h"
#include "relay/ops/quantize/attrs_qnn.h"
#include "relay/passes/quantize/quantize.h"

namespace tilewright::relay {
namespace {

// real = scale * data, where data holds integers (as float32 until cast); without scale: real numbers.
struct Realized {
  Expr data;
  std::optional<double> scale;
};

bool is_whole(double x) { return std::fabs(x - std::nearbyint(x)) < 1e-7; }

class Realizer {
 public:
  explicit Realizer(const QuantizeOptions& options) : options_(options) {}

  Result<Expr> run(const Expr& root) {
    for (const Expr& e : post_order(root)) done_[e.get()] = TW_TRY(realized(e));
    return as_real(done_.at(root.get()), root);
  }

 private:
  using Operands = std::vector<Realized>;
  using Rule = Result<Realized> (Realizer::*)(const Expr& e, Operands args);

  Result<Realized> realized(const Expr& e) {
    static const std::map<std::string_view, Rule> kRules = {
        {"relay.op.annotation.simulated_quantize", &Realizer::quantized},
        {"nn.conv1d", &Realizer::product<Conv1DAttrs>},
        {"nn.conv2d", &Realizer::product<Conv2DAttrs>},
        {"nn.conv2d_transpose", &Realizer::product<Conv2DTransposeAttrs>},
        {"nn.dense", &Realizer::product<DenseAttrs>},
        {"nn.batch_matmul", &Realizer::product<BatchMatmulAttrs>},
        {"add", &Realizer::sum},
        {"nn.bias_add", &Realizer::sum},
        {"multiply", &Realizer::scaled},
        {"clip", &Realizer::clipped},
        {"nn.relu", &Realizer::kept},
        {"strided_slice", &Realizer::kept},
        {"transpose", &Realizer::kept},
        {"reshape", &Realizer::kept},
        {"nn.batch_flatten", &Realizer::kept},
        {"annotation.stop_fusion", &Realizer::kept},
        {"annotation.cast_hint", &Realizer::kept},
        {"nn.max_pool1d", &Realizer::pooled},
        {"nn.max_pool2d", &Realizer::pooled},
        {"nn.avg_pool2d", &Realizer::averaged},
        {"concatenate", &Realizer::joined}};
    if (as<FunctionNode>(e)) return Realized{e, {}};
    const OpDef* op = called_op(e);
    auto rule = op ? kRules.find(op->name) : kRules.end();
    Operands given;
    const auto* tuple = op && op->name == std::string_view("concatenate") ? as<TupleNode>(arg(e, 0)) : nullptr;
    for (const Expr& kid : tuple ? tuple->fields : children(e)) given.push_back(done_.at(kid.get()));
    const bool any = std::any_of(given.begin(), given.end(), [](const Realized& r) { return r.scale.has_value(); });
    const bool begins = is_call_to(e, "relay.op.annotation.simulated_quantize");
    if (rule != kRules.end() && (any || begins)) return (this->*rule->second)(e, std::move(given));
    std::vector<Expr> kids;
    for (const Expr& kid : children(e)) kids.push_back(as_real(done_.at(kid.get()), kid));
    return Realized{with_children(e, kids), {}};
  }

  static Expr as_real(const Realized& r, const Expr& original) {
    if (!r.scale) return r.data;
    const DataType dtype = tensor_of(original).dtype;
    return cast(both("multiply", cast(r.data, kFloat32), make_scalar(*r.scale)), dtype);
  }
  Expr number(double value, DataType dtype) { return full_constant(value, dtype); }
  static Expr bounded(const Expr& x, double low, double high) {
    return call("clip", {x}, make_attrs<ClipAttrs>([&](auto& a) {
                  a.a_min = low;
                  a.a_max = high;
                }),
                x->span);
  }

  // Rescales integers from scale `from` to `to`; x has the activations' dtype.
  Expr rescaled(const Expr& x, double from, double to) {
    const double factor = from / to, shift = std::log2(factor);
    const DataType t = tensor_of(x).dtype;
    if (is_whole(shift)) {
      const auto bits = static_cast<int64_t>(std::nearbyint(shift));
      if (bits == 0) return x;
      if (bits > 0) return both("left_shift", x, number(static_cast<double>(bits), t));
      Expr rounded =
          options_.round_for_shift ? both("add", x, number(std::ldexp(1, static_cast<int>(-bits - 1)), t)) : x;
      return both("right_shift", rounded, number(static_cast<double>(-bits), t));
    }
    if (is_whole(factor)) return both("multiply", x, number(std::nearbyint(factor), t));
    // factor = significand * 2^exponent with 31 bits of significand.
    int exponent = 0;
    const double significand = std::frexp(factor, &exponent);
    const auto multiplier = static_cast<double>(std::llround(std::ldexp(significand, 31)));
    const int right = 31 - exponent;
    Expr wide = both("multiply", cast(x, kInt64), number(multiplier, kInt64));
    if (right <= 0) return cast(both("left_shift", wide, number(-right, kInt64)), t);
    const double half = std::ldexp(1, right - 1);
    Expr bias = number(half, kInt64);
    // Ties away from zero: negative numbers get one less than half as bias.
    if (options_.to_nearest)
      bias =
          call("where", {both("greater_equal", wide, number(0, kInt64)), bias, number(half - 1, kInt64)}, {}, x->span);
    return cast(both("right_shift", both("add", wide, bias), number(right, kInt64)), t);
  }

  Result<double> constant(const Expr& e, size_t i) {
    const Tensor* value = constant_data(arg(e, i));
    if (!value || value->size() != 1)
      return Diagnostic(ErrorCode::kInvalidArgument, "a simulated quantisation has no constant scale",
                        e->span ? *e->span : "", "run QuantizeCalibrate first");
    return value->at_double(0);
  }
  Result<Realized> quantized(const Expr& e, Operands args) {
    const double scale = TW_TRY(constant(e, 1));
    const double low = TW_TRY(constant(e, 2));
    const double high = TW_TRY(constant(e, 3));
    const Realized& x = args[0];
    if (x.scale)
      return Realized{bounded(rescaled(cast(x.data, options_.dtype_activation), *x.scale, scale), low, high), scale};
    Expr whole = one("round", both("multiply", cast(x.data, kFloat32), make_scalar(1 / scale)));
    return Realized{bounded(whole, low, high), scale};
  }

  template <class A>
  Result<Realized> product(const Expr& e, Operands args) {
    if (!args[0].scale || !args[1].scale) return in_floats(e, args);
    AttrsRef attrs(attrs_of<A>(e).clone());
    const_cast<A*>(attrs_as<A>(attrs))->out_dtype = options_.dtype_activation.str();
    const Expr& source = arg(e, 1);
    const bool weight = is_call_to(source, "relay.op.annotation.simulated_quantize") &&
                        attrs_of<SimulatedQuantizeAttrs>(source).kind == static_cast<int64_t>(QuantizeKind::kWeight);
    const DataType other = weight ? options_.dtype_weight : options_.dtype_input;
    Expr y =
        call(called_op(e)->name, {cast(args[0].data, options_.dtype_input), cast(args[1].data, other)}, attrs, e->span);
    return Realized{y, *args[0].scale * *args[1].scale};
  }
  Result<Realized> in_floats(const Expr& e, const Operands& args) {
    std::vector<Expr> kids;
    for (size_t i = 0; i < args.size(); ++i) kids.push_back(as_real(args[i], arg(e, i)));
    return Realized{with_children(e, kids), {}};
  }
  // Brings operands to the activations' dtype and the smallest scale.
  double to_common_scale(Operands* args) {
    double least = INFINITY;
    for (const Realized& r : *args) least = std::min(least, *r.scale);
    for (Realized& r : *args) r.data = rescaled(cast(r.data, options_.dtype_activation), *r.scale, least);
    return least;
  }
  static bool all_whole(const Operands& args) {
    return std::all_of(args.begin(), args.end(), [](const Realized& r) { return r.scale.has_value(); });
  }
  Result<Realized> sum(const Expr& e, Operands args) {
    if (!all_whole(args)) return in_floats(e, args);
    const double scale = to_common_scale(&args);
    return Realized{call(called_op(e)->name, {args[0].data, args[1].data}, as<CallNode>(e)->attrs, e->span), scale};
  }
  Result<Realized> scaled(const Expr& e, Operands args) {
    if (!all_whole(args)) return in_floats(e, args);
    const DataType t = options_.dtype_activation;
    return Realized{both("multiply", cast(args[0].data, t), cast(args[1].data, t)), *args[0].scale * *args[1].scale};
  }
  Result<Realized> clipped(const Expr& e, Operands args) {
    const auto& a = attrs_of<ClipAttrs>(e);
    return Realized{bounded(args[0].data, a.a_min / *args[0].scale, a.a_max / *args[0].scale), args[0].scale};
  }
  Realized moved(const Expr& e, const Expr& data, std::optional<double> scale) {
    return {call(called_op(e)->name, {data}, as<CallNode>(e)->attrs, e->span), scale};
  }
  Result<Realized> kept(const Expr& e, Operands args) { return moved(e, args[0].data, args[0].scale); }
  // Pools in the input dtype, whose range the preceding simulated quantisation guarantees.
  Result<Realized> pooled(const Expr& e, Operands args) {
    return moved(e, cast(args[0].data, options_.dtype_input), args[0].scale);
  }
  Result<Realized> averaged(const Expr& e, Operands args) {
    return moved(e, cast(args[0].data, options_.dtype_activation), args[0].scale);
  }
  Result<Realized> joined(const Expr& e, Operands args) {
    if (!all_whole(args)) {
      std::vector<Expr> fields;
      for (size_t i = 0; i < args.size(); ++i) fields.push_back(as_real(args[i], as<TupleNode>(arg(e, 0))->fields[i]));
      return moved(e, make_tuple(std::move(fields)), {});
    }
    const double scale = to_common_scale(&args);
    std::vector<Expr> fields;
    for (const Realized& r : args) fields.push_back(r.data);
    return moved(e, make_tuple(std::move(fields)), scale);
  }

  const QuantizeOptions& options_;
  std::unordered_map<const ExprNode*, Realized> done_;
};

}  // namespace

Result<Module> quantize_realize(const Module& module, const QuantizeOptions& options) {
  std::optional<Diagnostic> failure;
  Module out = rewrite_functions(module, [&](const Expr& function) {
    const auto* f = as<FunctionNode>(function);
    Realizer realizer(options);
    auto body = realizer.run(f->body);
    if (!body.ok()) {
      if (!failure) failure = body.error();
      return function;
    }
    return *body == f->body ? function : with_body(*f, *body);
  });
  if (failure) return *failure;
  return out;
}

Result<Module> quantize_realize(const Module& module, PassContext&) {
  return quantize_realize(module, QuantizeOptions());
}

}  // namespace tilewright::relay
