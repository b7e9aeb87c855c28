// SPDX-License-Identifier: Apache-2.0
// Functions of complex tensors: powers, logarithms, those of angles; and what moves or adds elements part by part.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "frontend/torch/converters/complex.h"

namespace tilewright::torch {
namespace complex_functions {
namespace {

using complex::angle_of;
using complex::axes_of;
using complex::exponential_of;
using complex::joined;
using complex::length_of;
using complex::Parts;
using complex::parts_of;
using complex::squared_length;
using complex::times;
using complex::zeros_of;

Expr one(NodeContext& c, const char* op, const Expr& e) { return c.call(op, {e}); }
Expr negated(NodeContext& c, const Expr& e) { return one(c, "negative", e); }
Expr by_number(NodeContext& c, const Expr& e, double by) { return c.mul(e, c.scalar_like(by, e)); }
Parts self(NodeContext& c) {
  const Parts p = parts_of(c, c.positional(0));
  return p.imaginary ? p : Parts{p.real, zeros_of(c, p.real)};
}
Values made(NodeContext& c, const Parts& p) { return {joined(c, p.real, p.imaginary)}; }

Parts quotient(NodeContext& c, const Parts& a, const Parts& b) {
  const Expr size = squared_length(c, b);
  const Parts p = times(c, a, {b.real, negated(c, b.imaginary)});
  return {c.div(p.real, size), c.div(p.imaginary, size)};
}
Parts logarithm(NodeContext& c, const Parts& p) { return {one(c, "log", length_of(c, p)), angle_of(c, p)}; }
// By the larger of the root's parts, from which the other follows without a difference of numbers that are alike.
Parts root(NodeContext& c, const Parts& p) {
  const Expr zero = c.zero_like(p.real), size = length_of(c, p);
  const Expr larger = one(c, "sqrt", by_number(c, c.add(size, one(c, "abs", p.real)), 0.5));
  const Expr none = c.call("equal", {larger, zero});
  const Expr other = c.div(by_number(c, p.imaginary, 0.5), c.where(none, c.scalar_like(1, larger), larger));
  const Expr right = c.call("greater_equal", {p.real, zero});
  const Expr signed_larger = c.where(c.call("less", {p.imaginary, zero}), negated(c, larger), larger);
  return {c.where(right, larger, one(c, "abs", other)), c.where(right, other, signed_larger)};
}

Values log(NodeContext& c) { return made(c, logarithm(c, self(c))); }
template <int kBase>
Values log_of_base(NodeContext& c) {
  const Parts p = logarithm(c, self(c));
  return made(c, {by_number(c, p.real, 1 / std::log(kBase)), by_number(c, p.imaginary, 1 / std::log(kBase))});
}
Values sqrt(NodeContext& c) { return made(c, root(c, self(c))); }
Values rsqrt(NodeContext& c) {
  const Parts p = self(c);
  return made(c, quotient(c, {c.scalar_like(1, p.real), c.zero_like(p.real)}, root(c, p)));
}
Values square(NodeContext& c) {
  const Parts p = self(c);
  return made(c, times(c, p, p));
}
// Whole exponents by products, others by the logarithm; 0 to a power stays 0.
Values power(NodeContext& c) {
  const Value& exponent = c.positional(1);
  const Tensor* number = exponent.complex || !exponent.expr ? nullptr : NodeContext::known(exponent.expr);
  constexpr double kMost = 64;
  if (number && number->size() == 1) {
    const double n = number->at_double(0);
    if (n == 0.5) return sqrt(c);
    if (n == std::floor(n) && std::fabs(n) <= kMost && c.positional(0).complex) {
      Parts square = self(c), out = {c.scalar_like(1, square.real), c.zero_like(square.real)};
      for (auto left = static_cast<int64_t>(std::fabs(n)); left > 0; left /= 2) {
        if (left % 2 == 1) out = times(c, out, square);
        if (left > 1) square = times(c, square, square);
      }
      if (n < 0) out = quotient(c, {c.scalar_like(1, out.real), c.zero_like(out.real)}, out);
      if (n == 0) out = {c.add(out.real, zeros_of(c, square.real)), out.imaginary};
      return made(c, out);
    }
  }
  const Value& base = c.positional(0);
  const DataType dtype = c.dtype(base.complex && base.kind != Value::kNumber ? base.expr : exponent.expr);
  auto as_float = [&](const Value& v) {
    const Parts p = parts_of(c, v);
    const DataType own = dtype.is_float() ? dtype : kFloat32;
    const Expr real = c.cast(p.real, own);
    return Parts{real, p.imaginary ? c.cast(p.imaginary, own) : c.zero_like(real)};
  };
  const Parts x = as_float(base), y = as_float(exponent);
  const Parts p = exponential_of(c, times(c, logarithm(c, x), y));
  const Expr none = c.call("equal", {length_of(c, x), c.zero_like(x.real)});
  return made(c, {c.where(none, c.zero_like(p.real), p.real), c.where(none, c.zero_like(p.imaginary), p.imaginary)});
}

// ---- of angles: those of the parts, circular and hyperbolic

Values sine(NodeContext& c) {
  const Parts p = self(c);
  return made(c, {c.mul(one(c, "sin", p.real), one(c, "cosh", p.imaginary)),
                  c.mul(one(c, "cos", p.real), one(c, "sinh", p.imaginary))});
}
Values cosine(NodeContext& c) {
  const Parts p = self(c);
  return made(c, {c.mul(one(c, "cos", p.real), one(c, "cosh", p.imaginary)),
                  negated(c, c.mul(one(c, "sin", p.real), one(c, "sinh", p.imaginary)))});
}
Parts hyperbolic_sine(NodeContext& c, const Parts& p) {
  return {c.mul(one(c, "sinh", p.real), one(c, "cos", p.imaginary)),
          c.mul(one(c, "cosh", p.real), one(c, "sin", p.imaginary))};
}
Parts hyperbolic_cosine(NodeContext& c, const Parts& p) {
  return {c.mul(one(c, "cosh", p.real), one(c, "cos", p.imaginary)),
          c.mul(one(c, "sinh", p.real), one(c, "sin", p.imaginary))};
}
// tanh(x + iy) = (t + i s) / (1 + i t s), t = tanh x, s = tan y, which no large x leads out of the numbers.
Parts hyperbolic_tangent(NodeContext& c, const Parts& p) {
  const Expr t = one(c, "tanh", p.real), sine = one(c, "sin", p.imaginary), cosine = one(c, "cos", p.imaginary);
  return quotient(c, {c.mul(t, cosine), sine}, {cosine, c.mul(t, sine)});
}
Values sinh(NodeContext& c) { return made(c, hyperbolic_sine(c, self(c))); }
Values cosh(NodeContext& c) { return made(c, hyperbolic_cosine(c, self(c))); }
Values tanh(NodeContext& c) { return made(c, hyperbolic_tangent(c, self(c))); }
Values tan(NodeContext& c) {  // -i tanh(iz)
  const Parts p = self(c), t = hyperbolic_tangent(c, {negated(c, p.imaginary), p.real});
  return made(c, {t.imaginary, negated(c, t.real)});
}
Values sigmoid(NodeContext& c) {  // (1 + tanh(z / 2)) / 2
  const Parts p = self(c);
  const Parts t = hyperbolic_tangent(c, {by_number(c, p.real, 0.5), by_number(c, p.imaginary, 0.5)});
  return made(c, {c.add(by_number(c, t.real, 0.5), c.scalar_like(0.5, t.real)), by_number(c, t.imaginary, 0.5)});
}
// Of length 1, or 0.
Values direction(NodeContext& c) {
  const Parts p = self(c);
  const Expr size = length_of(c, p), zero = c.zero_like(size);
  const Expr by = c.where(c.call("equal", {size, zero}), c.scalar_like(1, size), size);
  return made(c, {c.div(p.real, by), c.div(p.imaginary, by)});
}

// ---- comparisons

template <bool kEqual>
Values compared(NodeContext& c) {
  const Parts a = parts_of(c, c.positional(0)), b = parts_of(c, c.positional(1));
  auto alike = [&](const Expr& x, const Expr& y) {
    return c.one_of("aten.eq.Tensor", {{"self", Value(x)}, {"other", Value(y)}});
  };
  const Expr same =
      c.call("logical_and", {alike(a.real, b.real), alike(a.imaginary ? a.imaginary : c.zero_like(a.real),
                                                          b.imaginary ? b.imaginary : c.zero_like(b.real))});
  return {Value(kEqual ? same : c.call("logical_not", {same}))};
}

// ---- products along an axis

Values product(NodeContext& c) {
  Value v = c.positional(0);
  const int64_t rank = axes_of(c, v);
  int64_t axis = 0;
  if (c.has("dim")) {
    axis = c.dim(c.integer("dim"), rank);
  } else {
    v.expr = c.reshape(v.expr, {-1, 2});
    v.complex = true;
  }
  Parts all = parts_of(c, v);
  Parts out;
  for (int64_t i = 0; i < c.dims(all.real).at(static_cast<size_t>(axis)); ++i) {
    const Parts p = {c.slice(all.real, axis, i, i + 1), c.slice(all.imaginary, axis, i, i + 1)};
    out = out.real ? times(c, out, p) : p;
  }
  if (!out.real) c.unsupported("the product of no complex numbers");
  if (!c.flag("keepdim", false)) out = {c.squeeze(out.real, {axis}), c.squeeze(out.imaginary, {axis})};
  return made(c, out);
}
Values running_product(NodeContext& c) {
  const Value& v = c.positional(0);
  const int64_t axis = c.dim(c.integer("dim"), axes_of(c, v));
  const Parts all = parts_of(c, v);
  std::vector<Expr> real, imaginary;
  Parts last;
  for (int64_t i = 0; i < c.dims(all.real).at(static_cast<size_t>(axis)); ++i) {
    const Parts p = {c.slice(all.real, axis, i, i + 1), c.slice(all.imaginary, axis, i, i + 1)};
    last = last.real ? times(c, last, p) : p;
    real.push_back(last.real);
    imaginary.push_back(last.imaginary);
  }
  if (real.empty()) return {v};
  return made(c, {c.concat(real, axis), c.concat(imaginary, axis)});
}

// ---- part by part

// The real operator once for the real parts and once for the imaginary ones, of which real operands have none.
// Places, masks and sizes are the same for both.
Values by_parts(NodeContext& c) {
  auto of = [&](bool imaginary) {
    NamedValues arguments = c.arguments();
    auto part = [&](Value& v) {
      const Parts p = parts_of(c, v);
      const bool number = v.kind == Value::kNumber;
      v = Value(!imaginary ? p.real : p.imaginary ? p.imaginary : zeros_of(c, p.real));
      if (number) v = Value::number(v.expr);
    };
    for (size_t i = 0; i < arguments.size(); ++i) {
      auto& [name, v] = arguments[i];
      const bool content = i == 0 || name == "value" || name == "values" || name == "src" || name == "source" ||
                           name == "other" || name == "fill_value" || name == "input" || name == "end" ||
                           name == "vec2";
      if (v.list && !v.list->empty() &&
          std::any_of(v.list->begin(), v.list->end(), [](const Value& item) { return item.complex; })) {
        v = Value::of_list(*v.list);
        for (Value& item : *v.list) part(item);
      } else if (v.expr && (v.complex || content)) {
        part(v);
      }
    }
    return c.aten(c.node().target, std::move(arguments));
  };
  const Values real = of(false), imaginary = of(true);
  Values out;
  for (size_t i = 0; i < real.size(); ++i) {
    if (!real[i].list) {
      out.push_back(joined(c, real[i].expr, imaginary.at(i).expr));
      continue;
    }
    Values items;
    for (size_t k = 0; k < real[i].list->size(); ++k)
      items.push_back(joined(c, real[i].list->at(k).expr, imaginary.at(i).list->at(k).expr));
    out.push_back(Value::of_list(std::move(items)));
  }
  return out;
}
// The length of vectors is that of the elements' lengths.
Values norm(NodeContext& c) {
  NamedValues arguments = c.arguments();
  arguments.at(0).second = Value(length_of(c, self(c)));
  return c.aten(c.node().target, std::move(arguments));
}
// What looks at the shape alone.
Values of_shape(NodeContext& c) {
  NamedValues arguments = c.arguments();
  arguments.at(0).second = Value(parts_of(c, arguments.at(0).second).real);
  return c.aten(c.node().target, std::move(arguments));
}
// beta * input + alpha * (product of two)
Values added_product(NodeContext& c) {
  const std::string op = std::string(without_overload(c.node().target));
  const char* product = op == "aten.baddbmm" ? "aten.bmm.default"
                        : op == "aten.addmv" ? "aten.mv.default"
                                             : "aten.mm.default";
  if (c.number("beta", 1) != 1 || c.number("alpha", 1) != 1) c.unsupported("factors of complex numbers");
  const Value made = c.aten(product, {{"self", c.positional(1)}, {"mat2", c.positional(2)}}).at(0);
  return c.aten("aten.add.Tensor", {{"self", c.positional(0)}, {"other", made}});
}
// Matrix times vector, vector times vector.
Values vector_product(NodeContext& c) {
  Parts a = self(c);
  const Parts b = parts_of(c, c.positional(1));
  const bool turns = without_overload(c.node().target) == "aten.vdot";
  if (turns) a.imaginary = negated(c, a.imaginary);
  const Expr zero = b.imaginary ? b.imaginary : zeros_of(c, b.real);
  auto product = [&](const Expr& x, const Expr& y) {
    return c.one_of("aten.matmul.default", {{"self", Value(x)}, {"other", Value(y)}});
  };
  return made(c, {c.sub(product(a.real, b.real), product(a.imaginary, zero)),
                  c.add(product(a.real, zero), product(a.imaginary, b.real))});
}
Values outer(NodeContext& c) {
  auto axis_more = [&](const Parts& p, int64_t at) {
    return Parts{c.expand(p.real, at), c.expand(p.imaginary ? p.imaginary : zeros_of(c, p.real), at)};
  };
  return made(c, times(c, axis_more(parts_of(c, c.positional(0)), 1), axis_more(parts_of(c, c.positional(1)), 0)));
}
// The conjugate of the turned matrix.
Values adjoint(NodeContext& c) {
  Parts p = self(c);
  const auto turned = [&](const Expr& e) { return c.one_of("aten.mT.default", {{"self", Value(e)}}); };
  return made(c, {turned(p.real), negated(c, turned(p.imaginary))});
}

constexpr ConverterEntry kTable[] = {
    {"aten.log", log},
    {"aten.log2", log_of_base<2>},
    {"aten.log10", log_of_base<10>},
    {"aten.sqrt", sqrt},
    {"aten.rsqrt", rsqrt},
    {"aten.square", square},
    {"aten.pow", power},
    {"aten.sin", sine},
    {"aten.cos", cosine},
    {"aten.tan", tan},
    {"aten.sinh", sinh},
    {"aten.cosh", cosh},
    {"aten.tanh", tanh},
    {"aten.sigmoid", sigmoid},
    {"aten.sgn", direction},
    {"aten.eq", compared<true>},
    {"aten.ne", compared<false>},
    {"aten.prod", product},
    {"aten.cumprod", running_product},
    {"aten.cumsum", by_parts},
    {"aten.gather", by_parts},
    {"aten.take_along_dim", by_parts},
    {"aten.index", by_parts},
    {"aten.index_put", by_parts},
    {"aten.index_add", by_parts},
    {"aten.index_copy", by_parts},
    {"aten.index_fill", by_parts},
    {"aten.scatter", by_parts},
    {"aten.scatter_add", by_parts},
    {"aten.masked_fill", by_parts},
    {"aten.fill", by_parts},
    {"aten.copy", by_parts},
    {"aten.lerp", by_parts},
    {"aten.diag", by_parts},
    {"aten.diag_embed", by_parts},
    {"aten.diagonal", by_parts},
    {"aten.trace", by_parts},
    {"aten.tril", by_parts},
    {"aten.triu", by_parts},
    {"aten.t", by_parts},
    {"aten.mT", by_parts},
    {"aten.numpy_T", by_parts},
    {"aten.swapaxes", by_parts},
    {"aten.movedim", by_parts},
    {"aten.repeat", by_parts},
    {"aten.repeat_interleave", by_parts},
    {"aten.tile", by_parts},
    {"aten.unflatten", by_parts},
    {"aten.unfold", by_parts},
    {"aten.expand_as", by_parts},
    {"aten.view_as", by_parts},
    {"aten.reshape_as", by_parts},
    {"aten.broadcast_to", by_parts},
    {"aten.broadcast_tensors", by_parts},
    {"aten.slice_scatter", by_parts},
    {"aten.select_scatter", by_parts},
    {"aten.diagonal_scatter", by_parts},
    {"aten.hstack", by_parts},
    {"aten.vstack", by_parts},
    {"aten.diff", by_parts},
    {"aten.zero", by_parts},
    {"aten.rsub", by_parts},
    {"aten.norm", norm},
    {"aten.linalg_norm", norm},
    {"aten.linalg_vector_norm", norm},
    {"aten.linalg_matrix_norm", norm},
    {"aten.size", of_shape},
    {"aten.dim", of_shape},
    {"aten.numel", of_shape},
    {"aten.addmm", added_product},
    {"aten.addmv", added_product},
    {"aten.baddbmm", added_product},
    {"aten.mv", vector_product},
    {"aten.dot", vector_product},
    {"aten.vdot", vector_product},
    {"aten.outer", outer},
    {"aten.ger", outer},
    {"aten.adjoint", adjoint},
    {"aten.mH", adjoint},
};

}  // namespace
}  // namespace complex_functions

std::span<const ConverterEntry> converters_of_complex_functions() { return complex_functions::kTable; }

}  // namespace tilewright::torch
