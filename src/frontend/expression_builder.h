// SPDX-License-Identifier: Apache-2.0
// What the converters of every frontend build graph IR with: calls that are evaluated at once where they are small and
// constant, types, and the ways of giving up. A converter leaves by an exception that its importer turns into a
// diagnostic naming the node.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "relay/expr.h"
#include "relay/op.h"
#include "relay/ops/attrs.h"

namespace tilewright::frontend {

using relay::Expr;
using relay::make_attrs;

struct ConversionFailure {
  Diagnostic diagnostic;
};

// A call; on small constants its value. Leaves by ConversionFailure where the operands do not fit.
Expr folded_call(std::string_view op, const std::vector<Expr>& args, const AttrsRef& attrs, const relay::Span& span);

class ExpressionBuilder {
 public:
  explicit ExpressionBuilder(relay::Span span) : span_(std::move(span)) {}
  ExpressionBuilder(const ExpressionBuilder&) = delete;
  ExpressionBuilder& operator=(const ExpressionBuilder&) = delete;
  virtual ~ExpressionBuilder() = default;

  static const Tensor* known(const Expr& e);  // null when it is not a constant
  // The value of what must be known at import time. `what` names it in the error.
  Tensor constant(const Expr& e, const char* what) const;

  // Types.
  const TensorTypeNode& type(const Expr& e) const;
  const Shape& shape(const Expr& e) const { return type(e).shape; }
  DataType dtype(const Expr& e) const { return type(e).dtype; }
  int64_t rank(const Expr& e) const { return static_cast<int64_t>(type(e).shape.size()); }
  // All sizes as numbers; a symbolic one fails as FreeDimension.
  std::vector<int64_t> dims(const Expr& e) const;
  // The product of sizes [begin, end); fails when it overflows.
  int64_t product(const std::vector<int64_t>& sizes, int64_t begin = 0, int64_t end = INT64_MAX) const;
  // An axis in [-rank, rank) made non-negative.
  int64_t axis(int64_t axis, int64_t rank) const;

  // Building. Calls on small constants are evaluated at once.
  Expr call(std::string_view op, const std::vector<Expr>& args, const AttrsRef& attrs = {}) const;
  Expr get(const Expr& tuple, int64_t index) const;
  Expr constant_of(Tensor t) const;
  Expr scalar(double value, DataType dtype) const;
  Expr scalar_like(double value, const Expr& like) const { return scalar(value, dtype(like)); }
  // Zeros of any shape; not stored when there are many.
  Expr zeros(DataType dtype, std::vector<int64_t> shape) const;
  // first, first + 1, ... (int64).
  Expr counting(int64_t count, int64_t first = 0) const;
  Expr ints_constant(const std::vector<int64_t>& values) const;
  Expr reshape(const Expr& e, std::vector<int64_t> newshape) const;
  Expr transpose(const Expr& e, std::vector<int64_t> axes) const;
  Expr cast(const Expr& e, DataType dtype) const;
  Expr squeeze(const Expr& e, std::vector<int64_t> axes) const;
  Expr expand(const Expr& e, int64_t axis, int64_t count = 1) const;
  Expr concat(std::vector<Expr> parts, int64_t axis) const;
  Expr slice(const Expr& e, int64_t axis, int64_t begin, int64_t end, int64_t step = 1) const;
  Expr broadcast_to(const Expr& e, std::vector<int64_t> shape) const;
  Expr reduce(std::string_view op, const Expr& e, std::vector<int64_t> axes, bool keepdims) const;
  Expr add(const Expr& a, const Expr& b) const { return call("add", {a, b}); }
  Expr sub(const Expr& a, const Expr& b) const { return call("subtract", {a, b}); }
  Expr mul(const Expr& a, const Expr& b) const { return call("multiply", {a, b}); }
  Expr div(const Expr& a, const Expr& b) const { return call("divide", {a, b}); }
  Expr where(const Expr& c, const Expr& a, const Expr& b) const { return call("where", {c, a, b}); }

  // Giving up. fail: the model breaks the operator's rules. unsupported: a legal use that is not implemented, collected
  // with all others of the model. fail_type: operands that do not fit.
  [[noreturn]] void fail(std::string message, std::string hint = {}) const;
  [[noreturn]] void fail_type(std::string message) const;
  [[noreturn]] void unsupported(std::string what) const;

 protected:
  const relay::Span& span() const { return span_; }
  // The model's inputs that an expression is computed from, by name.
  virtual std::vector<std::string> inputs_of(const Expr& e) const = 0;

 private:
  relay::Span span_;
};

}  // namespace tilewright::frontend
