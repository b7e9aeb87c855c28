// SPDX-License-Identifier: Apache-2.0
#include "relay/classic/json_nodes.h"

#include <charconv>

#include "base/format.h"

namespace tilewright::relay {
namespace {

using Json = nlohmann::json;

template <class T>
std::optional<T> parsed_number(const std::string& s) {
  T out = 0;
  auto [end, failure] = std::from_chars(s.data(), s.data() + s.size(), out);
  return failure == std::errc() && end == s.data() + s.size() ? std::optional(out) : std::nullopt;
}

}  // namespace

Diagnostic json_error(std::string what, int64_t node) {
  return Diagnostic(ErrorCode::kParseError, std::move(what), node < 0 ? "JSON" : format("JSON: node {}", node));
}

Status JsonNodes::load(std::string_view text) {
  document_ = Json::parse(text, nullptr, false);
  if (document_.is_discarded()) return json_error("the text is not valid JSON");
  if (!document_.is_object() || !document_.contains("nodes") || !document_["nodes"].is_array() ||
      document_["nodes"].empty())
    return json_error("this is not a module: there is no list of nodes");
  nodes_ = &document_["nodes"];
  for (size_t i = 0; i < nodes_->size(); ++i)
    if (!(*nodes_)[i].is_object()) return json_error("it is not an object", static_cast<int64_t>(i));
  return Ok{};
}

int64_t JsonNodes::root() const {
  auto it = document_.find("root");
  return it != document_.end() && it->is_number_unsigned() ? clamp(it->get<uint64_t>()) : 0;
}

std::string JsonNodes::attr(int64_t id, const char* name) const {
  auto it = at(id).find("attrs");
  return it != at(id).end() && it->is_object() ? text_of(*it, name) : "";
}

bool JsonNodes::has_attr(int64_t id, const char* name) const {
  auto it = at(id).find("attrs");
  return it != at(id).end() && it->is_object() && it->contains(name);
}

std::vector<std::string> JsonNodes::attr_names(int64_t id) const {
  std::vector<std::string> out;
  auto it = at(id).find("attrs");
  if (it != at(id).end() && it->is_object())
    for (auto& [name, value] : it->items()) out.push_back(name);
  return out;
}

int64_t JsonNodes::reference(int64_t id, const char* name) const {
  auto value = integer(attr(id, name));
  return value ? clamp(static_cast<uint64_t>(*value)) : 0;
}

std::vector<int64_t> JsonNodes::list(int64_t id) const {
  std::vector<int64_t> out;
  auto it = at(id).find("data");
  if (it != at(id).end() && it->is_array())
    for (const Json& item : *it) out.push_back(item.is_number_unsigned() ? clamp(item.get<uint64_t>()) : 0);
  return out;
}

std::vector<std::string> JsonNodes::keys(int64_t id) const {
  std::vector<std::string> out;
  auto it = at(id).find("keys");
  if (it != at(id).end() && it->is_array())
    for (const Json& item : *it) out.push_back(item.is_string() ? item.get<std::string>() : "");
  return out;
}

const Json* JsonNodes::tensors() const {
  auto it = document_.find("b64ndarrays");
  return it != document_.end() && it->is_array() ? &*it : nullptr;
}

std::optional<int64_t> JsonNodes::integer(const std::string& s) { return parsed_number<int64_t>(s); }
std::optional<double> JsonNodes::real(const std::string& s) { return parsed_number<double>(s); }

std::string JsonNodes::text_of(const Json& object, const char* name) {
  auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

}  // namespace tilewright::relay
