// SPDX-License-Identifier: Apache-2.0
// A tensor dimension: a constant, or an integer expression over named symbols ("N", "2*seq + 1").
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/object.h"

namespace tilewright {

// kAny is a fresh unknown (the classic `?`): equal only to itself by identity.
enum class DimKind : uint8_t { kSymbol, kAny, kAdd, kMul, kFloorDiv, kMod, kMin, kMax };

class DimNode;

class Dim {
 public:
  Dim(int64_t value = 0) : value_(value) {}
  static Dim symbol(std::string name);
  static Dim any();
  bool is_const() const { return !node_; }
  int64_t value() const { return value_; }  // for constants only
  const DimNode* node() const { return node_.get(); }
  std::optional<int64_t> constant() const { return node_ ? std::nullopt : std::optional(value_); }
  // Structural equality after the simplification done on construction; `?` equals only itself.
  bool operator==(const Dim& other) const;
  std::string str() const;
  // The value for these symbols' values; nothing if a symbol has none.
  std::optional<int64_t> evaluate(const std::map<std::string, int64_t>& symbols) const;
  // Replaces symbols and simplifies.
  Dim substitute(const std::map<std::string, Dim>& symbols) const;
  void collect_symbols(std::vector<std::string>* out) const;

 private:
  friend Dim make_dim(DimKind kind, Dim a, Dim b);
  explicit Dim(Ref<DimNode> node) : node_(std::move(node)) {}
  int64_t value_ = 0;
  Ref<DimNode> node_;
};

class DimNode : public Node {
 public:
  DimNode(DimKind k, std::string n, Dim x, Dim y) : kind(k), name(std::move(n)), a(std::move(x)), b(std::move(y)) {}
  DimKind kind;
  std::string name;  // kSymbol only
  Dim a, b;          // operands of the arithmetic kinds
};

// Builds and simplifies (constants folded, sums and products in a canonical order).
Dim make_dim(DimKind kind, Dim a, Dim b);
inline Dim operator+(const Dim& a, const Dim& b) { return make_dim(DimKind::kAdd, a, b); }
inline Dim operator*(const Dim& a, const Dim& b) { return make_dim(DimKind::kMul, a, b); }
inline Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }
inline Dim floordiv(const Dim& a, const Dim& b) { return make_dim(DimKind::kFloorDiv, a, b); }
inline Dim ceildiv(const Dim& a, int64_t b) { return floordiv(a + Dim(b - 1), Dim(b)); }

using Shape = std::vector<Dim>;
Shape to_shape(const std::vector<int64_t>& dims);
// All dims as numbers, or nothing when one is symbolic.
std::optional<std::vector<int64_t>> static_shape(const Shape& shape);
// "(1, N, 224)"
std::string shape_str(const Shape& shape);
// The number of elements.
Dim element_count(const Shape& shape);

}  // namespace tilewright
