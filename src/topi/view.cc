// SPDX-License-Identifier: Apache-2.0
#include "topi/view.h"

#include <algorithm>
#include <utility>

#include "tir/schedule.h"

namespace tilewright::topi {

using namespace tir;

PrimExpr View::flat(const Index& index) const {
  TW_ICHECK(index.size() == strides.size(), "View::flat: rank of the index");
  // Constants are summed separately, so that unrolled accesses differ by one literal offset only.
  int64_t constant = offset;
  PrimExpr sum;
  for (size_t i = 0; i < index.size(); ++i) {
    if (strides[i] == 0) continue;
    if (const int64_t* c = constant_value(index[i])) {
      constant += *c * strides[i];
      continue;
    }
    PrimExpr term = index[i];
    if (const auto* add = term->kind == ExprKind::kAdd ? as<BinaryNode>(term) : nullptr) {
      if (const int64_t* c = constant_value(add->b)) {
        constant += *c * strides[i];
        term = add->a;
      }
    }
    term = term * strides[i];
    sum = sum ? sum + term : term;
  }
  return sum ? sum + constant : make_int(constant);
}

PrimExpr View::load(const Index& index, int lanes, const PrimExpr& mask) const {
  if (lanes == 1) return tir::load(buffer, flat(index), mask);
  int64_t stride = strides.empty() ? 0 : strides.back();
  if (stride == 0) return broadcast(tir::load(buffer, flat(index)), lanes);
  return tir::load(buffer, ramp(flat(index), stride, lanes), mask);
}

Stmt View::store(const Index& index, const PrimExpr& value, PrimExpr mask) const {
  int lanes = value->dtype.lanes;
  PrimExpr at = flat(index);
  if (lanes > 1) at = ramp(at, strides.back(), lanes);
  return tir::store(buffer, at, value, std::move(mask));
}

bool View::contiguous() const {
  int64_t expected = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

View make_view(Buffer buffer, std::vector<int64_t> shape) {
  View view{std::move(buffer), std::move(shape), {}, 0, {}, {}};
  view.strides.assign(view.shape.size(), 1);
  for (int i = view.rank() - 2; i >= 0; --i) view.strides[i] = view.strides[i + 1] * view.shape[i + 1];
  return view;
}

View flattened(const View& view) {
  TW_ICHECK(view.contiguous(), "flattened: the view has gaps");
  return View{view.buffer, {product(view.shape)}, {1}, view.offset, {}, {}};
}

Epilogue convert_epilogue(DataType dtype) {
  return [dtype](const PrimExpr& value, const Index&, const PrimExpr&) {
    DataType wanted = dtype.with_lanes(value->dtype.lanes);
    return value->dtype == wanted ? value : cast(wanted, value);
  };
}

Operand view_operand(const View& view) {
  return [view](const Index& index, int lanes, const PrimExpr& mask) { return view.load(index, lanes, mask); };
}

const int64_t* constant_value(const PrimExpr& e) {
  const auto* imm = e->kind == ExprKind::kIntImm ? as<IntImmNode>(e) : nullptr;
  return imm ? &imm->value : nullptr;
}

int64_t product(const std::vector<int64_t>& extents) {
  int64_t n = 1;
  for (int64_t e : extents) n *= e;
  return n;
}

Range parallel_range(const KernelContext& context, int64_t extent, int64_t granule) {
  if (!context.tid) return {make_int(0), make_int(extent)};
  auto [begin, end] = thread_share(context.tid, context.nthreads, extent, granule);
  return {begin, end};
}

// By value: a body may change the variable that its caller passed.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
Stmt loop(const char* name, PrimExpr begin, PrimExpr end, const std::function<Stmt(PrimExpr)>& body) {
  const int64_t* b = constant_value(begin);
  const int64_t* e = constant_value(end);
  if (b && e && *e - *b == 1) return body(begin);
  PrimExpr var = make_var(name);
  return make_for(var, begin, end - begin, body(var));
}

Stmt loop(const char* name, int64_t extent, const std::function<Stmt(PrimExpr)>& body) {
  return loop(name, make_int(0), make_int(extent), body);
}

Stmt parallel_for(const KernelContext& context, const char* name, int64_t extent,
                  const std::function<Stmt(PrimExpr)>& body) {
  if (!context.tid) return loop(name, extent, body);
  Range range = parallel_range(context, extent);
  return bind((std::string(name) + "_begin").c_str(), range.begin, [&](PrimExpr begin) {
    return bind((std::string(name) + "_end").c_str(), range.end, [&](const PrimExpr& end) {
      PrimExpr var = make_var(name);
      return make_for(var, begin, end - begin, body(var));
    });
  });
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): as in loop
Stmt bind(const char* name, PrimExpr value, const std::function<Stmt(PrimExpr)>& body) {
  if (value->kind == ExprKind::kIntImm || value->kind == ExprKind::kVar) return body(value);
  PrimExpr var = make_var(name, value->dtype);
  return let_stmt(var, value, body(var));
}

Index unravel(const PrimExpr& unit, const std::vector<int64_t>& extents) {
  Index index(extents.size());
  PrimExpr rest = unit;
  int64_t left = product(extents);
  for (int i = static_cast<int>(extents.size()) - 1; i >= 0; --i) {
    left /= std::max<int64_t>(extents[i], 1);
    if (extents[i] == 1) {
      index[i] = make_int(0);
    } else if (left <= 1) {
      index[i] = rest;
      rest = make_int(0);
    } else {
      index[i] = floormod(rest, extents[i]);
      rest = floordiv(rest, extents[i]);
    }
  }
  return index;
}

PrimExpr taps_below(const PrimExpr& start, int64_t bound, int64_t kernel, int64_t dilation) {
  PrimExpr n = floordiv(make_int(bound + dilation - 1) - start, dilation);
  return max(min(n, make_int(kernel)), make_int(0));
}

PrimExpr tail_mask(int lanes, int64_t valid) {
  if (valid >= lanes) return {};
  return lt(ramp(make_int(0), 1, lanes), broadcast(make_int(valid), lanes));
}

PrimExpr multiply_add(const PrimExpr& a, const PrimExpr& b, const PrimExpr& c) {
  return c->dtype.is_float() ? fma(a, b, c) : a * b + c;
}

DataType accumulator_dtype(DataType dtype) {
  if (dtype.is_float() && dtype.bits < 32) return kFloat32.with_lanes(dtype.lanes);
  if ((dtype.is_integral() || dtype.is_bool()) && dtype.bits < 32) return kInt32.with_lanes(dtype.lanes);
  return dtype;
}

double overlapped_microseconds(double cycles, double bytes, double gbps, const MachineModel& machine) {
  return std::max(cycles / machine.cycles_per_microsecond(), bytes / (gbps * 1e3));
}

double cache_gbps(double bytes, const MachineModel& machine) {
  return bytes <= static_cast<double>(machine.l2_bytes) ? machine.l2_gbps : machine.l3_gbps;
}

}  // namespace tilewright::topi
