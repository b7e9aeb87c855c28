// SPDX-License-Identifier: Apache-2.0
// Converts a region between dequantizes and a quantize to integer arithmetic, one rule per operator.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "relay/passes/quantize/affine.h"
#include "relay/passes/quantize/fake_quantization_to_integer.h"

namespace tilewright::relay {

// One region: from a quantize up to the dequantizes.
class FakeQuantizedRegion {
 public:
  FakeQuantizedRegion(Affine target, const FakeQuantizationRules& rules, bool optional)
      : target_(std::move(target)), rules_(rules), optional_(optional) {}
  // `direct`: only data movement and monotone functions lie between here and the quantize, so its scale can be used.
  Found integers(const Expr& e, bool direct);
  bool any() const { return any_; }
  const Expr& culprit() const { return culprit_; }

 private:
  Found fail(const Expr& e);
  Found rule(const Expr& e, bool direct);
  // Both operands of an 8-bit product; the weight may have a scale per index along `axis`.
  struct Operands {
    Quantized x, w;
    std::vector<Expr> args;
    Affine as;
  };
  std::optional<Operands> product(const Expr& e, int64_t weight_axis, int64_t result_axis);
  // The qnn operator with the same attributes, accumulating in int32.
  template <class A>
  Found product_call(const Expr& e, const char* op, const std::optional<Operands>& o);
  Found conv2d(const Expr& e);
  Found conv2d_transpose(const Expr& e);
  Found dense(const Expr& e);
  // A dense layer with its weight transposed.
  Found matmul(const Expr& e);
  Found batch_matmul(const Expr& e);
  // A real constant in steps of `like`, as int32; it broadcasts to a result of rank `rank`.
  Found bias_constant(const Expr& e, const Affine& like, size_t rank, const std::optional<int64_t>& axis);
  // Multiplying by one positive number only changes the scale.
  Found scaled_by_constant(const Expr& e);
  // A real constant quantised to bytes: exactly if it is one number, else to 127 steps.
  Found byte_constant(const Expr& e, DataType dtype);
  // An operand of a binary operator: integers, or a constant quantised with the target scale.
  Found side(const Expr& e, bool direct);
  // Brings operands to one scale: their own if they share it, else the quantize's.
  Found chosen(const Expr& e, bool direct);
  // |x| as the distance from the zero point, in int32.
  Found from_zero(const Expr& e);
  Found sum(const Expr& e, bool direct, const std::optional<int64_t>& bias_axis);
  // Clips to [low, high], which are real numbers.
  Found limited(const Expr& e, bool direct, double low, double high);
  // A unary function, in the quantize's scale.
  Found function(const Expr& e, bool direct, const std::string& op);
  // The operator applied to the integers themselves; indices along the axis `kept` do not move.
  Found moved(const Expr& e, bool direct, std::optional<size_t> kept = {});
  Found turned(const Expr& e, bool direct);
  Found padded(const Expr& e, bool direct);
  Found concatenated(const Expr& e, bool direct);
  // n * mean of the integers minus their zero point, with a scale n times smaller, so that no division rounds.
  Found average_pool(const Expr& e);
  Found global_average(const Expr& e);
  Found mean(const Expr& e);
  // Windows of equal size: n times their mean is their sum.
  template <class A>
  Found adaptive_average(const Expr& e);
  Found averaged(const Expr& e, std::vector<int64_t> axes, bool keepdims);
  static const AttrsRef& as_attrs(const Expr& e) { return as<CallNode>(e)->attrs; }
  struct KeyHash {
    size_t operator()(const std::pair<const ExprNode*, bool>& key) const {
      return std::hash<const void*>()(key.first) * 2 + key.second;
    }
  };
  Found by_script(const OpDef& op, const Expr& e);
  const Affine target_;
  const FakeQuantizationRules& rules_;
  const bool optional_;
  std::unordered_map<std::pair<const ExprNode*, bool>, Found, KeyHash> known_;
  bool any_ = false;
  int depth_ = 0;
  Expr culprit_;
};

}  // namespace tilewright::relay
