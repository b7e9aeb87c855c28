// SPDX-License-Identifier: Apache-2.0
#include "tir/passes/index_algebra.h"

#include <algorithm>

namespace tilewright::tir {

using arith::Interval;
using arith::Symbol;

namespace {
// Forms below this bound can be added and subtracted without 64-bit overflow.
constexpr int64_t kLargest = int64_t{1} << 61;

int dtype_key(DataType t) { return static_cast<int>(t.code) << 8 | t.bits; }
}  // namespace

Interval IndexAlgebra::dtype_range(DataType t) {
  if (t.is_bool()) return {0, 1};
  if (!t.is_integral() || t.bits >= 64) return Interval::everything();
  if (t.is_int()) return {-(int64_t{1} << (t.bits - 1)), (int64_t{1} << (t.bits - 1)) - 1};
  return {0, (int64_t{1} << t.bits) - 1};
}

Symbol IndexAlgebra::add_atom(Atom atom, Interval range) {
  atoms_.push_back(std::move(atom));
  return ranges_.add(range);
}

void IndexAlgebra::bind(const PrimExpr& var, Interval range) {
  variables_[var.get()] = Form::of_symbol(add_atom({var, true, ExprKind::kVar, {}, 0}, range));
}
void IndexAlgebra::bind(const PrimExpr& var, Form value) { variables_[var.get()] = std::move(value); }

const IndexAlgebra::Form* IndexAlgebra::variable(const ExprNode* var) const {
  auto it = variables_.find(var);
  return it == variables_.end() ? nullptr : &it->second;
}

IndexAlgebra::Form IndexAlgebra::lane(int lanes) {
  auto it = lanes_.find(lanes);
  if (it == lanes_.end()) it = lanes_.emplace(lanes, add_atom({}, {0, lanes - 1})).first;
  return Form::of_symbol(it->second);
}

IndexAlgebra::Form IndexAlgebra::opaque(const PrimExpr& e, Interval range, bool pure) {
  auto it = opaques_.find(e.get());
  if (it == opaques_.end()) {
    it = opaques_.emplace(e.get(), add_atom({e, pure, ExprKind::kLoad, {}, 0}, range)).first;
    opaque_order_.push_back(e.get());
  }
  return Form::of_symbol(it->second);
}

bool IndexAlgebra::exact(const Form& form, DataType dtype) const {
  for (const auto& t : form.terms())
    if (t.coefficient > kLargest || t.coefficient < -kLargest) return false;
  if (no_overflow_) return form.constant() <= kLargest && form.constant() >= -kLargest;
  Interval range = ranges_.of(form);
  return range.inside(dtype_range(dtype)) && range.inside({-kLargest, kLargest});
}

Interval IndexAlgebra::range(const Form& form, DataType dtype) const {
  return exact(form, dtype) ? ranges_.of(form) : dtype_range(dtype);
}

bool IndexAlgebra::is_pure(const Form& form) const {
  return std::all_of(form.terms().begin(), form.terms().end(), [&](const auto& t) { return atoms_[t.symbol].pure; });
}

bool IndexAlgebra::is_short(const Form& form) const {
  return form.terms().size() <= 3 && std::all_of(form.terms().begin(), form.terms().end(), [&](const auto& t) {
           return atoms_[t.symbol].expr && atoms_[t.symbol].expr->kind == ExprKind::kVar;
         });
}

bool IndexAlgebra::has_lanes(const Form& form) const {
  return std::any_of(form.terms().begin(), form.terms().end(), [&](const auto& t) { return !atoms_[t.symbol].expr; });
}

// An operator on two scalars as one symbol, the same for equal operands.
std::optional<Symbol> IndexAlgebra::composite(ExprKind kind, DataType dtype, const Form& a, const Form& b) {
  if (has_lanes(a) || has_lanes(b)) return std::nullopt;
  Key key{kind, dtype_key(dtype), a, b};
  if (auto it = composites_.find(key); it != composites_.end()) return it->second;
  Interval x = range(a, dtype), y = range(b, dtype), result;
  switch (kind) {
    case ExprKind::kMul:
      result = arith::mul(x, y);
      break;
    case ExprKind::kFloorDiv:
      result = arith::floor_div(x, y);
      break;
    case ExprKind::kFloorMod:
      result = arith::floor_mod(x, y);
      break;
    case ExprKind::kMin:
      result = arith::min(x, y);
      break;
    case ExprKind::kMax:
      result = arith::max(x, y);
      break;
    default:
      break;
  }
  // It may wrap around, unless sums and products are assumed not to.
  if (!result.inside(dtype_range(dtype)))
    result = assumes_no_overflow() ? arith::intersect(result, dtype_range(dtype)) : dtype_range(dtype);
  if (result.empty()) result = dtype_range(dtype);
  DataType type = dtype.element();
  Atom atom{tir::binary(kind, scalar(a, type), scalar(b, type)), is_pure(a) && is_pure(b), kind, {}, 0};
  if (b.is_constant()) {
    atom.operand = a;
    atom.divisor = b.constant();
  }
  Symbol s = add_atom(std::move(atom), result);
  composite_order_.push_back(key);
  composites_.emplace(std::move(key), s);
  return s;
}

// floor(a / divisor), or its remainder, for divisor > 0.
std::optional<IndexAlgebra::Form> IndexAlgebra::divided(ExprKind kind, DataType dtype, const Form& a, int64_t divisor) {
  auto whole = [&](const Form& form, int64_t d) -> std::optional<Form> {
    if (d == 1) return kind == ExprKind::kFloorDiv ? form : Form();
    auto s = composite(kind, dtype, form, Form::of_constant(d));
    return s ? std::optional(Form::of_symbol(*s)) : std::nullopt;
  };
  if (!exact(a, dtype)) return whole(a, divisor);
  // A quotient divided again, and a remainder by a multiple of this divisor, need only one division.
  if (a.terms().size() == 1 && a.terms()[0].coefficient == 1) {
    const Atom& inner = atoms_[a.terms()[0].symbol];
    int64_t product, shift;
    if (kind == ExprKind::kFloorDiv && inner.kind == ExprKind::kFloorDiv && inner.divisor > 0 &&
        !__builtin_mul_overflow(inner.divisor, divisor, &product) && product < kLargest &&
        !__builtin_mul_overflow(a.constant(), inner.divisor, &shift)) {
      Form operand = inner.operand.plus(shift);
      if (exact(inner.operand, dtype) && exact(operand, dtype)) return divided(kind, dtype, operand, product);
    }
    if (kind == ExprKind::kFloorMod && inner.kind == ExprKind::kFloorMod && inner.divisor > 0 &&
        inner.divisor % divisor == 0) {
      Form operand = inner.operand.plus(a.constant());
      if (exact(inner.operand, dtype) && exact(operand, dtype)) return divided(kind, dtype, operand, divisor);
    }
  }
  arith::Division d = arith::divide(a, divisor, ranges_);
  if (!exact(d.rest, dtype)) return whole(a, divisor);
  if (kind == ExprKind::kFloorDiv) {
    if (d.rest.is_constant()) return d.quotient;
    // The same division, unless a multiple was taken out of the dividend.
    auto rest = d.rest == a ? whole(a, divisor) : divided(kind, dtype, d.rest, d.rest_divisor);
    return rest ? std::optional(d.quotient.plus(*rest)) : std::nullopt;
  }
  if (d.rest.is_constant()) return d.offset;
  auto rest = d.rest == a ? whole(a, divisor) : divided(kind, dtype, d.rest, d.rest_divisor);
  return rest ? std::optional(rest->times(d.factor).plus(d.offset)) : std::nullopt;
}

// Recombines q * d + r to the dividend, if q and r are its quotient and remainder by d.
IndexAlgebra::Form IndexAlgebra::recombined(Form form) const {
  for (size_t i = 0; i < form.terms().size(); ++i) {
    const auto remainder = form.terms()[i];
    const Atom& r = atoms_[remainder.symbol];
    if (r.kind != ExprKind::kFloorMod || r.divisor == 0) continue;
    for (const auto& t : form.terms()) {
      const Atom& q = atoms_[t.symbol];
      int64_t wanted;
      if (q.kind != ExprKind::kFloorDiv || q.divisor != r.divisor || q.operand != r.operand) continue;
      if (__builtin_mul_overflow(remainder.coefficient, r.divisor, &wanted) || t.coefficient != wanted) continue;
      Form parts = Form::of_symbol(remainder.symbol)
                       .times(remainder.coefficient)
                       .plus(Form::of_symbol(t.symbol).times(t.coefficient));
      form = form.minus(parts).plus(r.operand.times(remainder.coefficient));
      i = static_cast<size_t>(-1);  // restart, since the terms have changed
      break;
    }
  }
  return form;
}

std::optional<IndexAlgebra::Form> IndexAlgebra::binary(ExprKind kind, DataType dtype, const Form& a, const Form& b) {
  auto other = [&]() -> std::optional<Form> {
    auto s = composite(kind, dtype, a, b);
    return s ? std::optional(Form::of_symbol(*s)) : std::nullopt;
  };
  switch (kind) {
    case ExprKind::kAdd:
      return recombined(a.plus(b));
    case ExprKind::kSub:
      return recombined(a.minus(b));
    case ExprKind::kMul:
      if (a.is_constant()) return b.times(a.constant());
      if (b.is_constant()) return a.times(b.constant());
      return b < a ? binary(kind, dtype, b, a) : other();
    case ExprKind::kFloorDiv:
    case ExprKind::kFloorMod:
      if (b.is_constant() && b.constant() > 0) return divided(kind, dtype, a, b.constant());
      return other();
    case ExprKind::kMin:
    case ExprKind::kMax: {
      if (a == b) return a;
      if (auto less = compare(ExprKind::kLE, dtype, a, b)) return *less == (kind == ExprKind::kMin) ? a : b;
      if (auto less = compare(ExprKind::kLT, dtype, a, b); less && !*less) return kind == ExprKind::kMin ? b : a;
      return no_overflow_ && b < a ? binary(kind, dtype, b, a) : other();
    }
    default:
      return std::nullopt;
  }
}

std::optional<bool> IndexAlgebra::compare(ExprKind kind, DataType dtype, const Form& a, const Form& b) const {
  Form difference = a.minus(b);
  if (difference == Form()) return kind == ExprKind::kEQ || kind == ExprKind::kLE || kind == ExprKind::kGE;
  if (!exact(a, dtype) || !exact(b, dtype)) return std::nullopt;
  auto negated = [](std::optional<bool> v) { return v ? std::optional(!*v) : v; };
  switch (kind) {
    case ExprKind::kLT:
      return arith::less_than_zero(difference, ranges_);
    case ExprKind::kGE:
      return negated(arith::less_than_zero(difference, ranges_));
    case ExprKind::kGT:
      return arith::less_than_zero(difference.times(-1), ranges_);
    case ExprKind::kLE:
      return negated(arith::less_than_zero(difference.times(-1), ranges_));
    case ExprKind::kEQ:
      return arith::equal_to_zero(difference, ranges_);
    case ExprKind::kNE:
      return negated(arith::equal_to_zero(difference, ranges_));
    default:
      return std::nullopt;
  }
}

// Terms in the order of their symbols' first use (outer loops first), subtractions last, then the constant: indices
// that differ in the constant share the sum's node.
PrimExpr IndexAlgebra::scalar(const Form& form, DataType dtype) {
  if (form.is_constant()) return make_int(form.constant(), dtype);
  const bool subtracts = std::all_of(form.terms().begin(), form.terms().end(), [](const arith::Term& t) {
    return t.coefficient < 0 && t.coefficient > INT64_MIN;
  });
  const bool product = form.constant() == 0 && form.terms().size() == 1;
  if (subtracts && !product) {  // 8 - i
    PrimExpr rest = make_int(form.constant(), dtype);
    for (const auto& t : form.terms()) rest = rest - atoms_[t.symbol].expr * make_int(-t.coefficient, dtype);
    return rest;
  }
  PrimExpr& sum = sums_[{dtype_key(dtype), form.terms()}];
  if (!sum) {
    auto part = [&](const arith::Term& t, int64_t c) { return atoms_[t.symbol].expr * make_int(c, dtype); };
    for (const auto& t : form.terms())
      if (t.coefficient > 0) sum = sum ? sum + part(t, t.coefficient) : part(t, t.coefficient);
    for (const auto& t : form.terms()) {
      if (t.coefficient > 0) continue;
      if (!sum || t.coefficient == INT64_MIN)
        sum = sum ? sum + part(t, t.coefficient) : part(t, t.coefficient);
      else
        sum = sum - part(t, -t.coefficient);
    }
  }
  return sum + make_int(form.constant(), dtype);
}

PrimExpr IndexAlgebra::expr(const Form& form, DataType dtype) {
  const DataType element = dtype.element();
  if (dtype.lanes == 1) return scalar(form, element);
  Form number = lane(dtype.lanes);
  const int64_t stride = form.coefficient(number.terms()[0].symbol);
  return ramp(scalar(form.minus(number.times(stride)), element), stride, dtype.lanes);
}

void IndexAlgebra::assume(ExprKind comparison, DataType dtype, const Form& a, const Form& b, bool truth) {
  if (!exact(a, dtype) || !exact(b, dtype) || has_lanes(a) || has_lanes(b)) return;
  const Form less = a.minus(b), more = b.minus(a);
  switch (comparison) {
    case ExprKind::kLT:
      return assume_not_positive(truth ? less.plus(1) : more);
    case ExprKind::kGE:
      return assume_not_positive(truth ? more : less.plus(1));
    case ExprKind::kLE:
      return assume_not_positive(truth ? less : more.plus(1));
    case ExprKind::kGT:
      return assume_not_positive(truth ? more.plus(1) : less);
    case ExprKind::kEQ:
    case ExprKind::kNE:
      if (truth != (comparison == ExprKind::kEQ)) return;
      assume_not_positive(less);
      assume_not_positive(more);
      return;
    default:
      return;
  }
}

void IndexAlgebra::assume_not_positive(const Form& form) {
  for (const auto& t : form.terms()) {
    if (!atoms_[t.symbol].pure) continue;  // memory may change before the branch ends
    Interval before = ranges_.of(t.symbol), after = arith::narrowed_by(form, t.symbol, ranges_);
    if (after == before || after.empty()) continue;
    narrowed_.emplace_back(t.symbol, before);
    ranges_.set(t.symbol, after);
  }
}

void IndexAlgebra::release(const Mark& mark) {
  for (; narrowed_.size() > mark.narrowed; narrowed_.pop_back())
    ranges_.set(narrowed_.back().first, narrowed_.back().second);
  for (; composite_order_.size() > mark.composites; composite_order_.pop_back())
    composites_.erase(composite_order_.back());
  for (; opaque_order_.size() > mark.opaques; opaque_order_.pop_back()) opaques_.erase(opaque_order_.back());
}

void IndexAlgebra::forget_opaque() {
  opaques_.clear();
  // The order list is not shortened, since open marks refer to its length; erasing missing entries is harmless.
}

}  // namespace tilewright::tir
