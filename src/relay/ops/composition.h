// SPDX-License-Identifier: Apache-2.0
// How a composed operator's expansion is written: call by call, without looking at errors in between. The first
// failure (operands of the wrong types, sizes that do not fit) is kept, everything made of it is null, and `result`
// returns it:
//
//   Result<Expr> expand_hardswish(const TypeArgs& args) {
//     Composition c(args);
//     Expr gate = c.clip(c.plus(c[0], 3), 0, 6);
//     return c.result(c.divide(c.times(c[0], gate), 6));
//   }
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "relay/op.h"
#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {

// Operand i's shape. Errors: FreeDimension where a size is unknown.
Result<std::vector<int64_t>> known_sizes(const TypeArgs& args, size_t i);
// Operand i's integers. Errors: FreeDimension where it is not constant.
Result<std::vector<int64_t>> known_values(const TypeArgs& args, size_t i);
// Whether an expansion may contain a constant of this shape. Errors: LimitExceeded, TypeMismatch (a negative size).
Status fits_constant(std::vector<int64_t> shape);

class Composition {
 public:
  using Ints = std::vector<int64_t>;
  explicit Composition(const TypeArgs& args) : args_(args) {}
  const Expr& operator[](size_t i) const { return args_.args[i]; }
  Result<Expr> result(Expr e) const;

  Expr call(std::string_view op, std::vector<Expr> operands, AttrsRef attrs = {});
  template <class A, class F>
  Expr call(std::string_view op, std::vector<Expr> operands, F&& fill) {
    return call(op, std::move(operands), make_attrs<A>(std::forward<F>(fill)));
  }
  Expr tuple(std::vector<Expr> fields);
  Expr field(const Expr& tuple, int64_t i);

  // Constants. A number takes the dtype of the other operand.
  Expr number(double value, DataType dtype);
  Expr numbers(const std::vector<double>& values, Ints shape, DataType dtype);
  Expr indices(const Ints& values, Ints shape);  // int64
  Expr vector(const Ints& values) { return indices(values, {static_cast<int64_t>(values.size())}); }

  // Elementwise, with broadcasting.
  Expr plus(const Expr& a, const Expr& b) { return call("add", {a, b}); }
  Expr minus(const Expr& a, const Expr& b) { return call("subtract", {a, b}); }
  Expr times(const Expr& a, const Expr& b) { return call("multiply", {a, b}); }
  Expr divide(const Expr& a, const Expr& b) { return call("divide", {a, b}); }
  Expr plus(const Expr& a, double b) { return plus(a, beside(a, b)); }
  Expr minus(const Expr& a, double b) { return minus(a, beside(a, b)); }
  Expr times(const Expr& a, double b) { return times(a, beside(a, b)); }
  Expr divide(const Expr& a, double b) { return divide(a, beside(a, b)); }
  Expr where(const Expr& condition, const Expr& a, const Expr& b) { return call("where", {condition, a, b}); }
  Expr compare(const char* op, const Expr& a, double b) { return call(op, {a, beside(a, b)}); }
  Expr clip(const Expr& x, double low, double high);
  Expr cast(const Expr& x, DataType dtype);  // x itself where it has the dtype

  // Data movement.
  Expr reshape(const Expr& x, Ints shape);
  Expr transpose(const Expr& x, Ints axes);
  Expr expand_dims(const Expr& x, int64_t axis, int64_t count = 1);
  Expr broadcast(const Expr& x, Ints shape);
  Expr slice(const Expr& x, int64_t axis, int64_t begin, int64_t end, int64_t stride = 1);
  Expr take(const Expr& x, const Expr& indices, int64_t axis);
  Expr concatenate(std::vector<Expr> parts, int64_t axis);               // a single part: that part
  Expr pad(const Expr& x, std::vector<Ints> widths, const Expr& value);  // x itself where all widths are zero
  // Reductions over these axes; without axes, x itself.
  Expr sum(const Expr& x, Ints axes, bool keepdims = false);

 private:
  Expr beside(const Expr& x, double value);
  const TypeArgs& args_;
  std::optional<Diagnostic> failure_;
};

}  // namespace tilewright::relay
