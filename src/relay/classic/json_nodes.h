// SPDX-License-Identifier: Apache-2.0
// The node table of the JSON form: objects with string attributes that refer to each other by index.
#pragma once
#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "relay/op.h"

namespace tilewright::relay {

// A ParseError located at the node.
Diagnostic json_error(std::string what, int64_t node = -1);

// Checked access: every index it returns is within the table. A missing string reads as empty, a missing reference as
// 0, the null node.
class JsonNodes {
 public:
  Status load(std::string_view text);
  int64_t root() const;
  std::string kind(int64_t id) const { return text_of(at(id), "type_key"); }
  std::string text(int64_t id) const { return text_of(at(id), "repr_str"); }
  std::string attr(int64_t id, const char* name) const;
  bool has_attr(int64_t id, const char* name) const;
  std::vector<std::string> attr_names(int64_t id) const;
  int64_t reference(int64_t id, const char* name) const;
  std::vector<int64_t> list(int64_t id) const;
  std::vector<std::string> keys(int64_t id) const;
  // The encoded texts of all tensors, or null.
  const nlohmann::json* tensors() const;
  static std::optional<int64_t> integer(const std::string& s);
  static std::optional<double> real(const std::string& s);

 private:
  const nlohmann::json& at(int64_t id) const { return (*nodes_)[static_cast<size_t>(id)]; }
  int64_t clamp(uint64_t id) const { return id < nodes_->size() ? static_cast<int64_t>(id) : 0; }
  static std::string text_of(const nlohmann::json& object, const char* name);
  nlohmann::json document_;
  const nlohmann::json* nodes_ = nullptr;
};

// The attributes of a call of `op` from node `id`; the defaults when that is the null node.
Result<AttrsRef> read_attributes(const JsonNodes& nodes, const OpDef& op, int64_t id);

}  // namespace tilewright::relay
