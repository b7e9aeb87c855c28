// SPDX-License-Identifier: Apache-2.0
// Complex tensors are real tensors with an additional last axis of real and imaginary parts. The operators that create
// or take them are here; all others refuse complex operands with an error that names them.
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/format.h"
#include "frontend/torch/converters/complex.h"

namespace tilewright::torch {
namespace complex {
using Ints = std::vector<int64_t>;

Value as_complex(Expr e) {
  Value v(std::move(e));
  v.complex = true;
  return v;
}

int64_t axes_of(NodeContext& c, const Value& v) { return c.rank(v.expr) - (v.complex ? 1 : 0); }

Parts parts_of(NodeContext& c, const Value& v) {
  if (!v.expr) c.fail_type("an operand is not a tensor");
  if (!v.complex) return {v.expr, {}};
  const int64_t last = c.rank(v.expr) - 1;
  return {c.squeeze(c.slice(v.expr, last, 0, 1), {last}), c.squeeze(c.slice(v.expr, last, 1, 2), {last})};
}
Value joined(NodeContext& c, Expr real, Expr imaginary) {
  if (!imaginary) imaginary = c.zero_like(real);
  Ints shape = c.dims(real);
  const Ints other = c.dims(imaginary);
  if (shape != other) {
    const Expr sum = c.add(real, imaginary);  // for the broadcast shape
    shape = c.dims(sum);
    real = c.broadcast_to(real, shape);
    imaginary = c.broadcast_to(imaginary, shape);
  }
  const auto rank = static_cast<int64_t>(shape.size());
  return as_complex(c.concat({c.expand(real, rank), c.expand(imaginary, rank)}, rank));
}
Expr zeros_of(NodeContext& c, const Expr& e) { return c.broadcast_to(c.zero_like(e), c.dims(e)); }
Parts times(NodeContext& c, const Parts& a, const Parts& b) {
  return {c.sub(c.mul(a.real, b.real), c.mul(a.imaginary, b.imaginary)),
          c.add(c.mul(a.real, b.imaginary), c.mul(a.imaginary, b.real))};
}
Parts exponential_of(NodeContext& c, const Parts& p) {
  const Expr size = c.call("exp", {p.real});
  return {c.mul(size, c.call("cos", {p.imaginary})), c.mul(size, c.call("sin", {p.imaginary}))};
}
Expr squared_length(NodeContext& c, const Parts& p) {
  return c.add(c.mul(p.real, p.real), c.mul(p.imaginary, p.imaginary));
}
Expr length_of(NodeContext& c, const Parts& p) { return c.call("sqrt", {squared_length(c, p)}); }
Expr angle_of(NodeContext& c, const Parts& p) {
  return c.one_of("aten.atan2.default", {{"self", Value(p.imaginary)}, {"other", Value(p.real)}});
}

namespace {

// ---- creation from real tensors

Values view_as_complex(NodeContext& c) { return {as_complex(c.tensor("self"))}; }
Values view_as_real(NodeContext& c) {
  if (!c.value("self").complex) c.fail_type("its operand is not complex");
  return {Value(c.tensor("self"))};
}
Values from_parts(NodeContext& c) { return {joined(c, c.tensor("real"), c.tensor("imag"))}; }
Values polar(NodeContext& c) {
  const Expr radius = c.tensor("abs"), angle = c.tensor("angle");
  return {joined(c, c.mul(radius, c.call("cos", {angle})), c.mul(radius, c.call("sin", {angle})))};
}

// ---- parts

Values real_part(NodeContext& c) { return {Value(parts_of(c, c.value("self")).real)}; }
Values imaginary_part(NodeContext& c) {
  const Expr e = parts_of(c, c.value("self")).imaginary;
  if (!e) c.fail_type("its operand is not complex");
  return {Value(e)};
}
Values conjugate(NodeContext& c) {
  const Value& v = c.value("self");
  if (!v.complex) return {Value(v.expr)};
  const Parts p = parts_of(c, v);
  return {joined(c, p.real, c.call("negative", {p.imaginary}))};
}
Values magnitude(NodeContext& c) { return {Value(length_of(c, parts_of(c, c.value("self"))))}; }
Values angle(NodeContext& c) {
  const Parts p = parts_of(c, c.value("self"));
  if (!p.imaginary) c.unsupported("of a real tensor");
  return {Value(angle_of(c, p))};
}

// ---- arithmetic

// A number, complex or not, takes the other operand's dtype; integers become what a complex tensor has.
Parts operand(NodeContext& c, const Value& v, const Value& other) {
  Parts p = parts_of(c, v);
  const bool number = v.kind == Value::kNumber, beside_number = other.kind == Value::kNumber;
  const bool own = number ? beside_number : v.complex || beside_number;
  DataType dtype = c.dtype(own ? v.expr : other.expr);
  if (!dtype.is_float()) dtype = kFloat32;
  p.real = c.cast(p.real, dtype);
  if (p.imaginary) p.imaginary = c.cast(p.imaginary, dtype);
  return p;
}
template <bool kAdds>
Values sum(NodeContext& c) {
  const Value &a = c.value("self"), &b = c.value("other");
  const double alpha = c.number("alpha", 1);
  if (alpha != 1) c.unsupported("a factor");
  const Parts p = operand(c, a, b), q = operand(c, b, a);
  const char* op = kAdds ? "add" : "subtract";
  Expr imaginary = p.imaginary && q.imaginary ? c.call(op, {p.imaginary, q.imaginary}) : p.imaginary;
  if (!p.imaginary) imaginary = kAdds ? q.imaginary : c.call("negative", {q.imaginary});
  return {joined(c, c.call(op, {p.real, q.real}), imaginary)};
}
Values product(NodeContext& c) {
  const Value &a = c.value("self"), &b = c.value("other");
  const Parts p = operand(c, a, b), q = operand(c, b, a);
  if (!p.imaginary) return {joined(c, c.mul(p.real, q.real), c.mul(p.real, q.imaginary))};
  if (!q.imaginary) return {joined(c, c.mul(p.real, q.real), c.mul(p.imaginary, q.real))};
  const Parts made = times(c, p, q);
  return {joined(c, made.real, made.imaginary)};
}
Values quotient(NodeContext& c) {
  const Value &a = c.value("self"), &b = c.value("other");
  const Parts p = operand(c, a, b), q = operand(c, b, a);
  auto divided = [&](const Expr& x, const Expr& y) { return c.call("divide", {x, y}); };
  if (!q.imaginary) return {joined(c, divided(p.real, q.real), divided(p.imaginary, q.real))};
  const Expr size = squared_length(c, q);
  const Expr below = c.mul(p.real, q.imaginary);
  if (!p.imaginary)
    return {joined(c, divided(c.mul(p.real, q.real), size), c.call("negative", {divided(below, size)}))};
  return {joined(c, divided(c.add(c.mul(p.real, q.real), c.mul(p.imaginary, q.imaginary)), size),
                 divided(c.sub(c.mul(p.imaginary, q.real), below), size))};
}
// A complex dtype stands for that of the parts.
NamedValues without_complex_dtype(NamedValues arguments) {
  for (auto& [name, v] : arguments)
    if (v.kind == Value::kDtype) v.complex = false;
  return arguments;
}
bool has_real_dtype(NodeContext& c) {
  for (const auto& [name, v] : c.arguments())
    if (v.kind == Value::kDtype) return !v.complex;
  return false;
}
// Tensors of one number, like a complex one: real parts. A dtype that is named is a real one.
Values made_alike(NodeContext& c) {
  NamedValues arguments = c.arguments();
  arguments.at(0).second = Value(parts_of(c, arguments.at(0).second).real);
  const Value real = c.aten(c.node().target, without_complex_dtype(std::move(arguments))).at(0);
  return {has_real_dtype(c) ? real : joined(c, real.expr, {})};
}
// Tensors of one number whose dtype is a complex one.
Values made_of_parts(NodeContext& c) {
  NamedValues arguments = c.arguments();
  std::optional<Parts> fill;
  for (auto& [name, v] : arguments)
    if (v.complex && v.kind == Value::kNumber) {
      fill = parts_of(c, v);
      v = Value::number(fill->real);
    }
  const bool parts = !has_real_dtype(c);
  arguments = without_complex_dtype(std::move(arguments));
  if (fill && !c.has("dtype")) arguments.emplace_back("dtype", Value::of_dtype(kFloat32));
  const Expr real = c.aten(c.node().target, arguments).at(0).expr;
  if (!parts) return {real};
  Expr imaginary;
  if (fill) imaginary = c.add(c.zero_like(real), c.cast(fill->imaginary, c.dtype(real)));
  return {joined(c, real, imaginary)};
}
// To another dtype: a complex tensor's real part, or a real tensor as a complex one.
Values converted(NodeContext& c) {
  NamedValues arguments = c.arguments();
  const Parts p = parts_of(c, arguments.at(0).second);
  arguments = without_complex_dtype(std::move(arguments));
  auto part = [&](const Expr& e) {
    arguments.at(0).second = Value(e);
    return c.aten(c.node().target, arguments).at(0).expr;
  };
  if (has_real_dtype(c)) return {part(p.real)};
  return {joined(c, part(p.real), p.imaginary ? part(p.imaginary) : Expr())};
}
// What is moved or filled with zeros, part by part.
Values padded(NodeContext& c) {
  NamedValues arguments = c.arguments();
  const Parts p = parts_of(c, arguments.at(0).second);
  arguments.at(0).second = Value(p.real);
  const Expr real = c.aten(c.node().target, arguments).at(0).expr;
  arguments.at(0).second = Value(p.imaginary);
  for (auto& [name, v] : arguments)
    if (name == "value") v = Value::number(c.scalar(0, kFloat64));
  return {joined(c, real, c.aten(c.node().target, arguments).at(0).expr)};
}
Values negative(NodeContext& c) { return {as_complex(c.call("negative", {c.tensor("self")}))}; }
Values negative_view(NodeContext& c) {
  const Expr e = c.call("negative", {c.tensor("self")});
  return {c.value("self").complex ? as_complex(e) : Value(e)};
}
Values itself(NodeContext& c) { return {as_complex(c.tensor("self"))}; }

Values reciprocal(NodeContext& c) {
  const Parts p = parts_of(c, c.value("self"));
  const Expr size = squared_length(c, p);
  return {joined(c, c.div(p.real, size), c.call("negative", {c.div(p.imaginary, size)}))};
}
Values exponential(NodeContext& c) {
  const Parts p = exponential_of(c, parts_of(c, c.value("self")));
  return {joined(c, p.real, p.imaginary)};
}
// The product of matrices by those of their parts.
Values matrix_product(NodeContext& c) {
  const auto& given = c.arguments();
  if (given.size() < 2) c.fail_type("it has no two operands");
  const Parts a = parts_of(c, given[0].second), b = parts_of(c, given[1].second);
  auto times = [&](const Expr& x, const Expr& y) {
    return c.aten(c.node().target, {{given[0].first, Value(x)}, {given[1].first, Value(y)}}).at(0).expr;
  };
  Expr real = times(a.real, b.real), imaginary;
  if (a.imaginary && b.imaginary) real = c.sub(real, times(a.imaginary, b.imaginary));
  if (a.imaginary) imaginary = times(a.imaginary, b.real);
  if (b.imaginary) {
    const Expr other = times(a.real, b.imaginary);
    imaginary = imaginary ? c.add(imaginary, other) : other;
  }
  return {joined(c, real, imaginary)};
}
// Sums of products: of parts in every combination, with a sign that the imaginary ones decide.
Values contracted(NodeContext& c) {
  const auto& given = c.arguments();
  if (given.size() < 2 || !given[1].second.list) c.fail_type("it has no list of operands");
  const Values& operands = *given[1].second.list;
  if (operands.size() > 4) c.unsupported("complex numbers of more than four operands");
  Expr real, imaginary;
  for (unsigned taken = 0; taken < 1U << operands.size(); ++taken) {  // bit i: the imaginary part of operand i
    Values parts;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Parts p = parts_of(c, operands[i]);
      parts.emplace_back(taken >> i & 1U ? p.imaginary : p.real);
    }
    if (std::any_of(parts.begin(), parts.end(), [](const Value& v) { return !v.expr; })) continue;
    NamedValues arguments = given;
    arguments[1].second = Value::of_list(std::move(parts));
    Expr term = c.one_of(c.node().target, std::move(arguments));
    const int turns = std::popcount(taken) % 4;
    if (turns > 1) term = c.call("negative", {term});
    Expr& sum = turns % 2 ? imaginary : real;
    sum = sum ? c.add(sum, term) : term;
  }
  return {joined(c, real, imaginary)};
}
Values chosen(NodeContext& c) {
  const Value &a = c.value("self"), &b = c.value("other");
  const Parts p = operand(c, a, b), q = operand(c, b, a);
  auto part = [&](const Expr& x, const Expr& y, const Expr& like) {
    return c.where(c.tensor("condition"), x ? x : c.zero_like(like), y ? y : c.zero_like(like));
  };
  return {joined(c, part(p.real, q.real, p.real), part(p.imaginary, q.imaginary, p.real))};
}

// ---- shape operators: the real operator applies, and leaves the last axis alone

// Rewrites negative axes to count from the start, since the last axis is not PyTorch's. `more`: axes that the result
// has in addition to the operand's.
Values reshaped_parts(NodeContext& c, int64_t more = 0) {
  NamedValues arguments = c.arguments();
  Value& first = arguments.at(0).second;
  if (first.list)
    for (Value& item : *(first = Value::of_list(*first.list)).list) {
      if (!item.complex) item = joined(c, item.expr, {});
      item.complex = false;
    }
  const Value& like = first.list ? first.list->at(0) : first;
  const int64_t rank = c.rank(like.expr) - 1;
  first.complex = false;
  auto from_start = [&](Value& v) {
    const int64_t axis = c.integer_of(v, "dim");
    if (axis < 0) v = whole(axis + rank + more);
  };
  for (size_t i = 1; i < arguments.size(); ++i) {
    auto& [name, v] = arguments[i];
    if (name.starts_with("dim") || name == "start_dim" || name == "end_dim") {
      if (v.list) {
        v = Value::of_list(*v.list);
        for (Value& item : *v.list) from_start(item);
        if (c.node().target.starts_with("aten.permute")) v.list->push_back(whole(rank));
      } else if (v.expr) {
        from_start(v);
      }
    }
    if ((name == "size" || name == "shape") && v.list) {
      v = Value::of_list(*v.list);
      v.list->push_back(whole(2));
    }
  }
  if (c.node().target.starts_with("aten.flatten") && !c.has("end_dim"))
    arguments.emplace_back("end_dim", whole(rank - 1));
  Values out = convert_resolved(c.place(), c.node(), std::move(arguments));
  for (Value& v : out) {
    v.complex = true;
    if (v.list)
      for (Value& item : *v.list) item.complex = true;
  }
  return out;
}
Values same_rank(NodeContext& c) { return reshaped_parts(c); }
// Over all axes but the parts' where none are named.
Values over_axes(NodeContext& c) {
  if (c.has("dim")) return reshaped_parts(c);
  Value x = c.value("self");
  Values axes;
  for (int64_t i = 0; i < axes_of(c, x); ++i) axes.push_back(whole(i));
  x.complex = false;
  Values out = c.aten(c.node().target, {{"self", x}, {"dim", Value::of_list(axes)}});
  out.at(0).complex = true;
  return out;
}
Values one_axis_more(NodeContext& c) { return reshaped_parts(c, 1); }

constexpr ConverterEntry kTable[] = {
    {"aten.view_as_complex", view_as_complex},
    {"aten.view_as_real", view_as_real},
    {"aten.complex", from_parts},
    {"aten.polar", polar},
    {"aten.real", real_part},
    {"aten.imag", imaginary_part},
    {"aten.angle", angle},
    {"aten.conj", conjugate},
    {"aten._conj", conjugate},
    {"aten._neg_view", negative_view},
    {"aten._conj_physical", conjugate},
    {"aten.conj_physical", conjugate},
};

// Complex versions of operators that also have converters for real tensors.
constexpr ConverterEntry kOfComplex[] = {
    {"aten.add", sum<true>},
    {"aten.sub", sum<false>},
    {"aten.mul", product},
    {"aten.div", quotient},
    {"aten.neg", negative},
    {"aten.abs", magnitude},
    {"aten.clone", itself},
    {"aten.contiguous", itself},
    {"aten.detach", itself},
    {"aten.alias", itself},
    {"aten.resolve_conj", itself},
    {"aten.resolve_neg", itself},
    {"aten.view", same_rank},
    {"aten.reshape", same_rank},
    {"aten._unsafe_view", same_rank},
    {"aten.expand", same_rank},
    {"aten.squeeze", same_rank},
    {"aten.flatten", same_rank},
    {"aten.transpose", same_rank},
    {"aten.permute", same_rank},
    {"aten.slice", same_rank},
    {"aten.select", same_rank},
    {"aten.narrow", same_rank},
    {"aten.cat", same_rank},
    {"aten.flip", same_rank},
    {"aten.roll", same_rank},
    {"aten.unsqueeze", one_axis_more},
    {"aten.stack", one_axis_more},
    {"aten.reciprocal", reciprocal},
    {"aten.exp", exponential},
    {"aten.mm", matrix_product},
    {"aten.bmm", matrix_product},
    {"aten.matmul", matrix_product},
    {"aten.einsum", contracted},
    {"aten.where", chosen},
    {"aten.sum", over_axes},
    {"aten.mean", over_axes},
    {"aten.unbind", same_rank},
    {"aten.chunk", same_rank},
    {"aten.split", same_rank},
    {"aten.split_with_sizes", same_rank},
    {"aten.index_select", same_rank},
    {"aten.zeros_like", made_alike},
    {"aten.ones_like", made_alike},
    {"aten.empty_like", made_alike},
    {"aten.full_like", made_alike},
    {"aten.new_zeros", made_alike},
    {"aten.new_ones", made_alike},
    {"aten.new_empty", made_alike},
    {"aten.new_full", made_alike},
    {"aten.zeros", made_of_parts},
    {"aten.ones", made_of_parts},
    {"aten.empty", made_of_parts},
    {"aten.full", made_of_parts},
    {"aten.eye", made_of_parts},
    {"aten.scalar_tensor", made_of_parts},
    {"aten._to_copy", converted},
    {"aten.to", converted},
    {"aten.constant_pad_nd", padded},
    {"aten.pad", padded},
};

}  // namespace
}  // namespace complex

std::span<const ConverterEntry> complex_converters() { return complex::kTable; }

const ConverterEntry* find_complex_converter(std::string_view target) {
  for (const auto table :
       {complex_converters(), fourier_converters(), converters_of_complex_functions(), complex_matrices_converters(),
        converters_of_complex_matrices(), std::span<const ConverterEntry>(complex::kOfComplex)})
    for (const ConverterEntry& entry : table)
      if (without_overload(target) == entry.target) return &entry;
  return nullptr;
}

}  // namespace tilewright::torch
