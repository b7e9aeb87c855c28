// SPDX-License-Identifier: Apache-2.0
#include "ir/attrs.h"

#include <cmath>

#include "base/format.h"
#include "ir/attr_literal.h"

namespace tilewright {
std::string quoted(const std::string& v) {
  std::string out = "\"";
  for (char c : v) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

namespace {

std::string text(bool v) { return v ? "True" : "False"; }
std::string text(int64_t v) { return std::to_string(v); }
std::string text(double v) {
  if (std::isnan(v)) return "nanf";
  if (std::isinf(v)) return v > 0 ? "inff" : "-inff";
  return format("{}f", v);
}
std::string text(const std::string& v) { return quoted(v); }
std::string text(const DataType& v) { return "\"" + v.str() + "\""; }
template <class T>
std::string text(const std::vector<T>& v) {
  std::string out = "[";
  for (size_t i = 0; i < v.size(); ++i) out += (i ? ", " : "") + text(v[i]);
  return out + "]";
}
template <class T>
std::string text(const std::optional<T>& v) {
  return v ? text(*v) : "None";
}

// The fields as text; equality, hashing and printing all use it, so they cannot disagree.
class FieldTexts : public AttrVisitor {
 public:
  std::vector<std::pair<std::string, std::string>> fields;
#define TW_VISIT(T) \
  void visit(const char* name, T* v) override { fields.emplace_back(name, text(*v)); }
  TW_VISIT(bool)
  TW_VISIT(int64_t)
  TW_VISIT(double)
  TW_VISIT(std::string)
  TW_VISIT(DataType)
  TW_VISIT(std::optional<int64_t>)
  TW_VISIT(std::vector<int64_t>)
  TW_VISIT(std::optional<std::vector<int64_t>>)
  TW_VISIT(std::vector<double>)
  TW_VISIT(std::vector<std::string>)
  TW_VISIT(std::vector<std::vector<int64_t>>)
#undef TW_VISIT
};

}  // namespace

std::vector<std::pair<std::string, std::string>> attr_texts(const AttrsRef& attrs) {
  FieldTexts out;
  // Safe: FieldTexts does not modify the node.
  if (attrs) const_cast<AttrsNode*>(attrs.get())->visit(out);
  return std::move(out.fields);
}

std::string attr_text(const AttrValue& value) {
  if (const auto* written = std::get_if<std::string>(&value);
      written && !written->empty() && (*written)[0] == kLiteralAttr)
    return written->substr(1);
  return std::visit([](const auto& v) { return text(v); }, value);
}

bool attrs_equal(const AttrsRef& a, const AttrsRef& b) {
  if (a == b) return true;
  if (!a || !b || std::string_view(a->type_name()) != b->type_name()) return false;
  return attr_texts(a) == attr_texts(b);
}

uint64_t attrs_hash(const AttrsRef& attrs) {
  return std::hash<std::string>()(attrs ? attrs->type_name() + attrs_str(attrs) : std::string());
}

std::string attrs_str(const AttrsRef& attrs) {
  std::string out;
  for (auto& [name, value] : attr_texts(attrs)) out += (out.empty() ? "" : ", ") + name + "=" + value;
  return out;
}

}  // namespace tilewright
