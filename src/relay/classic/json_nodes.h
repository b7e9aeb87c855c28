// SPDX-License-Identifier: Apache-2.0
// The table of nodes that is the JSON form: objects of strings that name each other by index.
#pragma once
#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "relay/op.h"

namespace tilewright::relay {

// ParseError with the node as its place.
Diagnostic json_error(std::string what, int64_t node = -1);

// Every index that is given out is one of the table. Text that is not there reads as empty, references as 0, the null
// node.
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
  // The texts of all tensors, or null.
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

// The attributes of a call of `op` from node `id`; their defaults where it is the null node.
Result<AttrsRef> read_attributes(const JsonNodes& nodes, const OpDef& op, int64_t id);

}  // namespace tilewright::relay
