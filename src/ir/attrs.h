// SPDX-License-Identifier: Apache-2.0
// Attributes of operator calls: plain structs whose one field list drives printing, parsing, equality, hashing,
// serialisation and Python. A struct derives from Attrs<Itself> and lists its fields:
//
//   struct SoftmaxAttrs : Attrs<SoftmaxAttrs> {
//     static constexpr const char* kName = "relay.attrs.SoftmaxAttrs";
//     int64_t axis = -1;
//     template <class V> void fields(V& v) { v("axis", axis, "the axis to normalise"); }
//   };
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "ir/object.h"

namespace tilewright {

// The types that a field can have.
class AttrVisitor {
 public:
  virtual ~AttrVisitor() = default;
  virtual void visit(const char* name, bool* value) = 0;
  virtual void visit(const char* name, int64_t* value) = 0;
  virtual void visit(const char* name, double* value) = 0;
  virtual void visit(const char* name, std::string* value) = 0;
  virtual void visit(const char* name, DataType* value) = 0;
  virtual void visit(const char* name, std::optional<int64_t>* value) = 0;
  virtual void visit(const char* name, std::vector<int64_t>* value) = 0;
  virtual void visit(const char* name, std::optional<std::vector<int64_t>>* value) = 0;
  virtual void visit(const char* name, std::vector<double>* value) = 0;
  virtual void visit(const char* name, std::vector<std::string>* value) = 0;
  virtual void visit(const char* name, std::vector<std::vector<int64_t>>* value) = 0;
};

class AttrsNode : public Node {
 public:
  virtual const char* type_name() const = 0;
  // Visits every field in declaration order. A visitor that only reads must not modify the fields.
  virtual void visit(AttrVisitor& visitor) = 0;
  virtual AttrsNode* clone() const = 0;
};
using AttrsRef = Ref<AttrsNode>;

template <class Derived>
class Attrs : public AttrsNode {
 public:
  Attrs() = default;
  Attrs(const Attrs&) : AttrsNode() {}
  Attrs& operator=(const Attrs&) { return *this; }
  const char* type_name() const override { return Derived::kName; }
  AttrsNode* clone() const override { return new Derived(static_cast<const Derived&>(*this)); }
  void visit(AttrVisitor& visitor) override {
    auto each = [&](const char* name, auto& field, const char* /*doc*/ = "") { visitor.visit(name, &field); };
    static_cast<Derived*>(this)->fields(each);
  }
};

template <class T>
const T* attrs_as(const AttrsRef& attrs) {
  return dynamic_cast<const T*>(attrs.get());
}

// Field-wise equality of two attribute structs of the same type (both null counts as equal).
bool attrs_equal(const AttrsRef& a, const AttrsRef& b);
uint64_t attrs_hash(const AttrsRef& attrs);
// Names and values of all fields in the text form, in declaration order.
std::vector<std::pair<std::string, std::string>> attr_texts(const AttrsRef& attrs);
// "axis=1, keepdims=False": the classic text of a call's attributes; fields equal to their defaults included.
std::string attrs_str(const AttrsRef& attrs);

// Attributes of functions and user-registered ops: typed values by name.
using AttrValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<std::string>>;
std::string attr_text(const AttrValue& value);
// A double-quoted string with escapes.
std::string quoted(const std::string& text);

}  // namespace tilewright
