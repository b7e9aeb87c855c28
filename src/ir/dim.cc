// SPDX-License-Identifier: Apache-2.0
#include "ir/dim.h"

#include <algorithm>

#include "base/result.h"

namespace tilewright {
namespace {

// A sum as coefficient per non-constant term, keyed by the term's text so that the order is canonical.
struct Term {
  Dim dim;
  int64_t coefficient;
};
using Sum = std::map<std::string, Term>;

void add_to(Sum* sum, int64_t* constant, const Dim& d, int64_t scale) {
  if (d.is_const()) {
    *constant += scale * d.value();
  } else if (d.node()->kind == DimKind::kAdd) {
    add_to(sum, constant, d.node()->a, scale);
    add_to(sum, constant, d.node()->b, scale);
  } else if (d.node()->kind == DimKind::kMul && d.node()->b.is_const()) {
    add_to(sum, constant, d.node()->a, scale * d.node()->b.value());
  } else {
    // Every `?` is a term of its own: keys of different ones must differ.
    std::string key = d.str();
    if (d.node()->kind == DimKind::kAny) key += std::to_string(reinterpret_cast<uintptr_t>(d.node()));
    auto [it, fresh] = sum->try_emplace(key, Term{d, 0});
    it->second.coefficient += scale;
  }
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - ((a % b != 0 && (a % b < 0) != (b < 0)) ? 1 : 0); }

std::optional<int64_t> fold(DimKind kind, int64_t a, int64_t b) {
  int64_t out = 0;
  switch (kind) {
    case DimKind::kAdd:
      return __builtin_add_overflow(a, b, &out) ? std::nullopt : std::optional(out);
    case DimKind::kMul:
      return __builtin_mul_overflow(a, b, &out) ? std::nullopt : std::optional(out);
    case DimKind::kFloorDiv:
      return b == 0 ? std::nullopt : std::optional(floor_div(a, b));
    case DimKind::kMod:
      return b == 0 ? std::nullopt : std::optional(a - b * floor_div(a, b));
    case DimKind::kMin:
      return std::min(a, b);
    case DimKind::kMax:
      return std::max(a, b);
    case DimKind::kSymbol:
    case DimKind::kAny:
      break;
  }
  return std::nullopt;
}

}  // namespace

Dim Dim::symbol(std::string name) { return Dim(make_node<DimNode>(DimKind::kSymbol, std::move(name), Dim(0), Dim(0))); }
Dim Dim::any() { return Dim(make_node<DimNode>(DimKind::kAny, "?", Dim(0), Dim(0))); }

bool Dim::operator==(const Dim& other) const {
  if (!node_ || !other.node_) return !node_ && !other.node_ && value_ == other.value_;
  if (node_ == other.node_) return true;
  const DimNode &x = *node_, &y = *other.node_;
  return x.kind == y.kind && x.kind != DimKind::kAny && x.name == y.name && x.a == y.a && x.b == y.b;
}

Dim make_dim(DimKind kind, Dim a, Dim b) {
  if (a.is_const() && b.is_const()) {
    auto v = fold(kind, a.value(), b.value());
    return v ? Dim(*v) : Dim::any();  // overflow or a division by zero: no valid size
  }
  auto raw = [](DimKind k, Dim x, Dim y) { return Dim(make_node<DimNode>(k, "", std::move(x), std::move(y))); };
  switch (kind) {
    case DimKind::kAdd: {
      Sum sum;
      int64_t constant = 0;
      add_to(&sum, &constant, a, 1);
      add_to(&sum, &constant, b, 1);
      std::optional<Dim> out;
      for (auto& [key, term] : sum) {
        if (term.coefficient == 0) continue;
        Dim d = term.coefficient == 1 ? term.dim : raw(DimKind::kMul, term.dim, Dim(term.coefficient));
        out = out ? raw(DimKind::kAdd, *out, d) : d;
      }
      if (!out) return Dim(constant);
      return constant == 0 ? *out : raw(DimKind::kAdd, *out, Dim(constant));
    }
    case DimKind::kMul: {
      if (a.is_const()) std::swap(a, b);
      if (b.is_const()) {
        if (b.value() == 0) return Dim(0);
        if (b.value() == 1) return a;
        if (a.node()->kind == DimKind::kAdd)
          return make_dim(DimKind::kMul, a.node()->a, b) + make_dim(DimKind::kMul, a.node()->b, b);
        if (a.node()->kind == DimKind::kMul && a.node()->b.is_const())
          return make_dim(DimKind::kMul, a.node()->a, make_dim(DimKind::kMul, a.node()->b, b));
        return raw(kind, a, b);
      }
      return a.str() <= b.str() ? raw(kind, a, b) : raw(kind, b, a);
    }
    case DimKind::kFloorDiv:
      if (b == Dim(1)) return a;
      // (x*c) / c and (x*c*k) / c are exact.
      if (b.is_const() && b.value() > 0 && !a.is_const() && a.node()->kind == DimKind::kMul && a.node()->b.is_const() &&
          a.node()->b.value() % b.value() == 0)
        return a.node()->a * Dim(a.node()->b.value() / b.value());
      if (a == b) return Dim(1);
      return raw(kind, a, b);
    case DimKind::kMod:
      if (b == Dim(1)) return Dim(0);
      return raw(kind, a, b);
    case DimKind::kMin:
    case DimKind::kMax:
      return a == b ? a : raw(kind, a, b);
    case DimKind::kSymbol:
    case DimKind::kAny:
      break;
  }
  internal_error(__FILE__, __LINE__, "make_dim of a leaf");
}

std::string Dim::str() const {
  if (!node_) return std::to_string(value_);
  const DimNode& n = *node_;
  auto paren = [](const Dim& d) {
    bool leaf = d.is_const() || d.node()->kind == DimKind::kSymbol || d.node()->kind == DimKind::kAny;
    return leaf ? d.str() : "(" + d.str() + ")";
  };
  switch (n.kind) {
    case DimKind::kSymbol:
    case DimKind::kAny:
      return n.name;
    case DimKind::kAdd:
      return n.a.str() + " + " + n.b.str();
    case DimKind::kMul:
      return paren(n.a) + "*" + paren(n.b);
    case DimKind::kFloorDiv:
      return paren(n.a) + "//" + paren(n.b);
    case DimKind::kMod:
      return paren(n.a) + "%" + paren(n.b);
    case DimKind::kMin:
      return "min(" + n.a.str() + ", " + n.b.str() + ")";
    case DimKind::kMax:
      return "max(" + n.a.str() + ", " + n.b.str() + ")";
  }
  return "?";
}

std::optional<int64_t> Dim::evaluate(const std::map<std::string, int64_t>& symbols) const {
  if (!node_) return value_;
  if (node_->kind == DimKind::kSymbol) {
    auto it = symbols.find(node_->name);
    return it == symbols.end() ? std::nullopt : std::optional(it->second);
  }
  if (node_->kind == DimKind::kAny) return std::nullopt;
  auto a = node_->a.evaluate(symbols), b = node_->b.evaluate(symbols);
  return a && b ? fold(node_->kind, *a, *b) : std::nullopt;
}

Dim Dim::substitute(const std::map<std::string, Dim>& symbols) const {
  if (!node_ || node_->kind == DimKind::kAny) return *this;
  if (node_->kind == DimKind::kSymbol) {
    auto it = symbols.find(node_->name);
    return it == symbols.end() ? *this : it->second;
  }
  return make_dim(node_->kind, node_->a.substitute(symbols), node_->b.substitute(symbols));
}

void Dim::collect_symbols(std::vector<std::string>* out) const {
  if (!node_) return;
  if (node_->kind == DimKind::kSymbol) {
    if (std::find(out->begin(), out->end(), node_->name) == out->end()) out->push_back(node_->name);
    return;
  }
  node_->a.collect_symbols(out);
  node_->b.collect_symbols(out);
}

Shape to_shape(const std::vector<int64_t>& dims) { return Shape(dims.begin(), dims.end()); }

std::optional<std::vector<int64_t>> static_shape(const Shape& shape) {
  std::vector<int64_t> out;
  for (const Dim& d : shape) {
    if (!d.is_const()) return std::nullopt;
    out.push_back(d.value());
  }
  return out;
}

std::string shape_str(const Shape& shape) {
  std::string out = "(";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + shape[i].str();
  return out + (shape.size() == 1 ? ",)" : ")");
}

Dim element_count(const Shape& shape) {
  Dim n = 1;
  for (const Dim& d : shape) n = n * d;
  return n;
}

}  // namespace tilewright
