// SPDX-License-Identifier: Apache-2.0
// Complex tensors are real tensors with an additional last axis of real and imaginary parts. The operators that create
// or take them are here; all others refuse complex operands with an error that names them.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace complex {
namespace {

using Ints = std::vector<int64_t>;

Value as_complex(Expr e) {
  Value v(std::move(e));
  v.complex = true;
  return v;
}
Value whole_at(int64_t i) { return Value::number(relay::make_constant(Tensor::scalar<int64_t>(kInt64, i))); }

// The number of axes as PyTorch counts them.
int64_t axes_of(NodeContext& c, const Value& v) { return c.rank(v.expr) - (v.complex ? 1 : 0); }

struct Parts {
  Expr real, imaginary;  // imaginary: null for real tensors
};
Parts parts_of(NodeContext& c, const Value& v) {
  if (!v.expr) c.fail_type("an operand is not a tensor");
  if (!v.complex) return {v.expr, {}};
  const int64_t last = c.rank(v.expr) - 1;
  return {c.squeeze(c.slice(v.expr, last, 0, 1), {last}), c.squeeze(c.slice(v.expr, last, 1, 2), {last})};
}
// A complex tensor from its parts; a missing part is zero.
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
Values magnitude(NodeContext& c) {
  const Parts p = parts_of(c, c.value("self"));
  return {Value(c.call("sqrt", {c.add(c.mul(p.real, p.real), c.mul(p.imaginary, p.imaginary))}))};
}
Values angle(NodeContext& c) {
  const Parts p = parts_of(c, c.value("self"));
  if (!p.imaginary) c.unsupported("of a real tensor");
  Node node = c.node();
  node.target = "aten.atan2.default";
  return convert_resolved(c.place(), node, {{"self", Value(p.imaginary)}, {"other", Value(p.real)}});
}

// ---- arithmetic

// A Python number takes the other operand's dtype.
Parts operand(NodeContext& c, const Value& v, const Value& other) {
  Parts p = parts_of(c, v);
  const DataType dtype = c.dtype(v.complex ? v.expr : other.expr);
  p.real = c.cast(p.real, dtype);
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
  return {joined(c, c.sub(c.mul(p.real, q.real), c.mul(p.imaginary, q.imaginary)),
                 c.add(c.mul(p.real, q.imaginary), c.mul(p.imaginary, q.real)))};
}
Values quotient(NodeContext& c) {
  const Value &a = c.value("self"), &b = c.value("other");
  const Parts p = operand(c, a, b), q = operand(c, b, a);
  auto divided = [&](const Expr& x, const Expr& y) { return c.call("divide", {x, y}); };
  if (!q.imaginary) return {joined(c, divided(p.real, q.real), divided(p.imaginary, q.real))};
  const Expr size = c.add(c.mul(q.real, q.real), c.mul(q.imaginary, q.imaginary));
  const Expr below = c.mul(p.real, q.imaginary);
  if (!p.imaginary)
    return {joined(c, divided(c.mul(p.real, q.real), size), c.call("negative", {divided(below, size)}))};
  return {joined(c, divided(c.add(c.mul(p.real, q.real), c.mul(p.imaginary, q.imaginary)), size),
                 divided(c.sub(c.mul(p.imaginary, q.real), below), size))};
}
Values negative(NodeContext& c) { return {as_complex(c.call("negative", {c.tensor("self")}))}; }
Values itself(NodeContext& c) { return {as_complex(c.tensor("self"))}; }

Values reciprocal(NodeContext& c) {
  const Parts p = parts_of(c, c.value("self"));
  const Expr size = c.add(c.mul(p.real, p.real), c.mul(p.imaginary, p.imaginary));
  return {joined(c, c.div(p.real, size), c.call("negative", {c.div(p.imaginary, size)}))};
}
Values exponential(NodeContext& c) {
  const Parts p = parts_of(c, c.value("self"));
  const Expr size = c.call("exp", {p.real});
  return {joined(c, c.mul(size, c.call("cos", {p.imaginary})), c.mul(size, c.call("sin", {p.imaginary})))};
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
    if (axis < 0) v = whole_at(axis + rank + more);
  };
  for (size_t i = 1; i < arguments.size(); ++i) {
    auto& [name, v] = arguments[i];
    if (name.starts_with("dim") || name == "start_dim" || name == "end_dim") {
      if (v.list) {
        v = Value::of_list(*v.list);
        for (Value& item : *v.list) from_start(item);
        if (c.node().target.starts_with("aten.permute")) v.list->push_back(whole_at(rank));
      } else if (v.expr) {
        from_start(v);
      }
    }
    if ((name == "size" || name == "shape") && v.list) {
      v = Value::of_list(*v.list);
      v.list->push_back(whole_at(2));
    }
  }
  if (c.node().target.starts_with("aten.flatten") && !c.has("end_dim"))
    arguments.emplace_back("end_dim", whole_at(rank - 1));
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
  for (int64_t i = 0; i < axes_of(c, x); ++i) axes.push_back(whole_at(i));
  x.complex = false;
  Values out = c.aten(c.node().target, {{"self", x}, {"dim", Value::of_list(axes)}});
  out.at(0).complex = true;
  return out;
}
Values one_axis_more(NodeContext& c) { return reshaped_parts(c, 1); }

// ---- Fourier transforms

enum class Kind { kComplex, kInverse, kReal, kInverseReal };

struct Transform {
  NodeContext& c;
  std::string norm;

  Expr scaled(const Expr& e, int64_t length, bool inverse) const {
    const auto n = static_cast<double>(length);
    double factor = 1;  // beyond the inverse's division by the length
    if (norm == "ortho") factor = inverse ? std::sqrt(n) : 1 / std::sqrt(n);
    if (norm == "forward") factor = inverse ? n : 1 / n;
    return factor == 1 ? e : c.mul(e, c.scalar_like(factor, e));
  }
  // z has both parts. A length of -1 keeps the axis as it is.
  Expr along(Expr z, int64_t axis, int64_t length, bool inverse) const {
    z = fitted(std::move(z), axis, length);
    const int64_t n = c.dims(z).at(static_cast<size_t>(axis));
    Expr y = c.onnx("DFT", 20, {z, Expr(), c.constant_of(Tensor::scalar<int64_t>(kInt64, axis))},
                    {{"inverse", int64_t{inverse}}})[0];
    return scaled(y, n, inverse);
  }
  // Cuts the axis, or pads it with zeros.
  Expr fitted(Expr z, int64_t axis, int64_t length) const {
    Ints d = c.dims(z);
    const int64_t n = d.at(static_cast<size_t>(axis));
    if (length < 0 || length == n) return z;
    if (length == 0) c.fail("its length is 0");
    if (length < n) return c.slice(z, axis, 0, length);
    d[static_cast<size_t>(axis)] = length - n;
    return c.concat({z, c.zeros(c.dtype(z), d)}, axis);
  }
  // The full spectrum of a real signal of `length` from its one-sided half.
  Expr mirrored(Expr z, int64_t axis, int64_t length) const {
    const int64_t half = length / 2 + 1, last = c.rank(z) - 1;
    z = fitted(std::move(z), axis, half);
    const int64_t more = length - half;
    if (more <= 0) return z;
    Expr back = c.slice(z, axis, 1, 1 + more);
    back = c.call("reverse", {back}, make_attrs<relay::ReverseAttrs>([&](auto& a) { a.axis = axis; }));
    back = c.concat({c.slice(back, last, 0, 1), c.call("negative", {c.slice(back, last, 1, 2)})}, last);
    return c.concat({z, back}, axis);
  }
};

template <Kind kKind>
Values transform(NodeContext& c) {
  const Value& self = c.value("self");
  const int64_t rank = axes_of(c, self);
  Transform t{c, c.text("norm", "backward")};
  const bool one = without_overload(c.node().target).ends_with("fft");
  Ints axes, lengths;
  if (one) {
    axes = {c.dim(c.integer("dim", -1), rank)};
    lengths = {c.integer("n", -1)};
  } else {
    if (c.has("s")) lengths = c.ints("s");
    if (c.has("dim"))
      for (int64_t a : c.ints("dim")) axes.push_back(c.dim(a, rank));
    const bool two = c.node().target.find("fft2") != std::string::npos;
    if (axes.empty()) {
      const int64_t count = two ? 2 : lengths.empty() ? rank : static_cast<int64_t>(lengths.size());
      for (int64_t i = rank - count; i < rank; ++i) axes.push_back(i);
    }
    if (lengths.empty()) lengths.assign(axes.size(), -1);
    if (lengths.size() != axes.size() || axes.front() < 0) c.fail("it has other lengths than axes");
  }
  constexpr bool kInverse = kKind == Kind::kInverse || kKind == Kind::kInverseReal;
  Expr z = self.complex ? self.expr : joined(c, c.real(self.expr), {}).expr;
  const int64_t last = axes.back();
  if (kKind == Kind::kInverseReal) {
    for (size_t i = 0; i + 1 < axes.size(); ++i) z = t.along(z, axes[i], lengths[i], true);
    const int64_t now = c.dims(z).at(static_cast<size_t>(last));
    const int64_t length = lengths.back() < 0 ? 2 * (now - 1) : lengths.back();
    if (length < 1) c.fail("its length is 0");
    z = t.along(t.mirrored(z, last, length), last, -1, true);
    return {Value(parts_of(c, as_complex(z)).real)};
  }
  for (size_t i = axes.size(); i-- > 0;) {
    z = t.along(z, axes[i], lengths[i], kInverse);
    if (kKind == Kind::kReal && i + 1 == axes.size())
      z = c.slice(z, last, 0, c.dims(z).at(static_cast<size_t>(last)) / 2 + 1);
  }
  return {as_complex(z)};
}

// The zero frequency in the middle, and back.
template <bool kBack>
Values shifted(NodeContext& c) {
  Value self = c.value("self");
  const int64_t rank = axes_of(c, self);
  Values shifts, axes;
  Ints of = c.has("dim") ? c.ints("dim") : Ints();
  if (!c.has("dim"))
    for (int64_t i = 0; i < rank; ++i) of.push_back(i);
  for (int64_t i : of) {
    const int64_t axis = c.dim(i, rank), size = c.dims(self.expr).at(static_cast<size_t>(axis));
    axes.push_back(whole_at(axis));
    shifts.push_back(whole_at(kBack ? (size + 1) / 2 : size / 2));
  }
  const bool complex = self.complex;
  self.complex = false;
  Value out =
      c.aten("aten.roll.default", {{"self", self}, {"shifts", Value::of_list(shifts)}, {"dims", Value::of_list(axes)}})
          .at(0);
  out.complex = complex;
  return {out};
}

// The signal of a spectrum by frames: windowed frames are added where they overlap and divided by the windows there.
Values istft(NodeContext& c) {
  const Value& self = c.value("self");
  if (!self.complex) c.fail_type("its operand is not complex");
  const int64_t n = c.integer("n_fft"), hop = c.integer("hop_length", n / 4), width = c.integer("win_length", n);
  if (c.flag("return_complex", false) || !c.flag("onesided", true)) c.unsupported("a complex signal");
  if (n < 1 || hop < 1 || width < 1 || width > n) c.fail("its frames are impossible");
  const bool alone = axes_of(c, self) == 2;
  const Value spectrum = as_complex(alone ? c.expand(self.expr, 0) : self.expr);
  Expr frames =
      c.aten("aten.fft_irfft.default", {{"self", spectrum}, {"n", whole_at(n)}, {"dim", whole_at(1)}}).at(0).expr;
  frames = c.transpose(frames, {0, 2, 1});
  const DataType dtype = c.dtype(frames);
  if (c.flag("normalized", false)) frames = c.mul(frames, c.scalar(std::sqrt(static_cast<double>(n)), dtype));
  Expr window = c.has("window") ? c.tensor("window") : c.add(c.zeros(dtype, {width}), c.scalar(1, dtype));
  const int64_t before = (n - width) / 2;
  window = c.concat({c.zeros(dtype, {before}), window, c.zeros(dtype, {n - width - before})}, 0);
  const Ints d = c.dims(frames);
  const int64_t count = d[1], total = n + hop * (count - 1);
  Ints places;
  for (int64_t t = 0; t < count; ++t)
    for (int64_t i = 0; i < n; ++i) places.push_back(t * hop + i);
  auto overlapped = [&](const Expr& e, int64_t rows) {
    const Expr at = c.broadcast_to(c.expand(c.ints_constant(places), 0), {rows, count * n});
    return c.call("scatter_elements", {c.zeros(dtype, {rows, total}), at, c.reshape(e, {rows, count * n})},
                  make_attrs<relay::ScatterElementsAttrs>([](auto& a) {
                    a.axis = 1;
                    a.reduction = "add";
                  }));
  };
  const Expr sums = overlapped(c.mul(frames, window), d[0]);
  const Expr weights = overlapped(c.broadcast_to(c.mul(window, window), {1, count, n}), 1);
  const int64_t start = c.flag("center", true) ? n / 2 : 0;
  const int64_t length = c.integer("length", total - start - (c.flag("center", true) ? n / 2 : 0));
  const int64_t end = std::min(total, start + length);
  if (length < 0 || end <= start) c.fail(format("its length {} is impossible", length));
  Expr y = c.div(c.slice(sums, 1, start, end), c.slice(weights, 1, start, end));
  if (end - start < length) y = c.concat({y, c.zeros(dtype, {d[0], length - (end - start)})}, 1);
  return {alone ? c.squeeze(y, {0}) : y};
}

constexpr ConverterEntry kTable[] = {
    {"aten.istft", istft},
    {"aten.fft_fftshift", shifted<false>},
    {"aten.fft_ifftshift", shifted<true>},
    {"aten.view_as_complex", view_as_complex},
    {"aten.view_as_real", view_as_real},
    {"aten.complex", from_parts},
    {"aten.polar", polar},
    {"aten.real", real_part},
    {"aten.imag", imaginary_part},
    {"aten.angle", angle},
    {"aten.conj", conjugate},
    {"aten._conj", conjugate},
    {"aten._conj_physical", conjugate},
    {"aten.conj_physical", conjugate},
    {"aten.fft_fft", transform<Kind::kComplex>},
    {"aten.fft_fft2", transform<Kind::kComplex>},
    {"aten.fft_fftn", transform<Kind::kComplex>},
    {"aten.fft_ifft", transform<Kind::kInverse>},
    {"aten.fft_ifft2", transform<Kind::kInverse>},
    {"aten.fft_ifftn", transform<Kind::kInverse>},
    {"aten.fft_rfft", transform<Kind::kReal>},
    {"aten.fft_rfft2", transform<Kind::kReal>},
    {"aten.fft_rfftn", transform<Kind::kReal>},
    {"aten.fft_irfft", transform<Kind::kInverseReal>},
    {"aten.fft_irfft2", transform<Kind::kInverseReal>},
    {"aten.fft_irfftn", transform<Kind::kInverseReal>},
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
    {"aten.where", chosen},
    {"aten.sum", over_axes},
    {"aten.mean", over_axes},
    {"aten.unbind", same_rank},
    {"aten.chunk", same_rank},
    {"aten.split", same_rank},
    {"aten.split_with_sizes", same_rank},
    {"aten.index_select", same_rank},
};

}  // namespace
}  // namespace complex

std::span<const ConverterEntry> complex_converters() { return complex::kTable; }

const ConverterEntry* find_complex_converter(std::string_view target) {
  for (const auto table :
       {std::span<const ConverterEntry>(complex::kTable), std::span<const ConverterEntry>(complex::kOfComplex)})
    for (const ConverterEntry& entry : table)
      if (without_overload(target) == entry.target) return &entry;
  return nullptr;
}

}  // namespace tilewright::torch
