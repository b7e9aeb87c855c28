// SPDX-License-Identifier: Apache-2.0
#include "frontend/torch/schema.h"

#include <limits>

#include "base/format.h"

namespace tilewright::torch {

using nlohmann::json;

[[noreturn]] void malformed(std::string what, std::string where) {
  throw Diagnostic(ErrorCode::kMalformedModel, std::move(what), std::move(where), "export the model again");
}

const json& member(const json& object, const char* name) {
  if (!object.is_object()) malformed(format("the graph has no '{}' where the schema wants it", name));
  auto it = object.find(name);
  if (it == object.end()) malformed(format("the graph has no '{}' where the schema wants it", name));
  return *it;
}
const json* find_member(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  auto it = object.find(name);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}
// A union: an object with exactly one member.
std::pair<std::string, const json&> only_member(const json& j, const char* what) {
  if (!j.is_object()) malformed(format("{} is not an object", what));
  auto found = j.end();
  for (auto it = j.begin(); it != j.end(); ++it) {
    if (it->is_null()) continue;
    if (found != j.end()) malformed(format("{} is of several kinds", what));
    found = it;
  }
  if (found == j.end()) malformed(format("{} is of no kind", what));
  return {found.key(), *found};
}
const json& list_of(const json& j, const char* what) {
  if (!j.is_array()) malformed(format("the graph's '{}' is not a list", what));
  return j;
}
std::string text_of(const json& j, const char* what) {
  if (!j.is_string()) malformed(format("the graph's '{}' is not a text", what));
  return j.get<std::string>();
}
int64_t integer_of(const json& j, const char* what) {
  if (!j.is_number_integer()) malformed(format("the graph's '{}' is not an integer", what));
  if (j.is_number_unsigned() && j.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    malformed(format("the graph's '{}' is beyond 64 bits", what));
  return j.get<int64_t>();
}
// Numbers without a JSON notation (infinity, NaN) are written as strings or by name.
double number_of(const json& j, const char* what) {
  if (j.is_number()) return j.get<double>();
  if (j.is_string()) {
    const std::string text = j.get<std::string>();
    constexpr double inf = std::numeric_limits<double>::infinity();
    if (text == "Infinity" || text == "inf") return inf;
    if (text == "-Infinity" || text == "-inf") return -inf;
    if (text == "NaN" || text == "nan") return std::numeric_limits<double>::quiet_NaN();
  }
  malformed(format("the graph's '{}' is not a number", what));
}
bool bool_of(const json& j, const char* what) {
  if (!j.is_boolean()) malformed(format("the graph's '{}' is neither true nor false", what));
  return j.get<bool>();
}

DataType dtype_of(int64_t number) {
  switch (number) {
    case 1:
      return kUInt8;
    case 2:
      return kInt8;
    case 3:
      return kInt16;
    case 4:
      return kInt32;
    case 5:
      return kInt64;
    case 6:
      return kFloat16;
    case 7:
      return kFloat32;
    case 8:
      return kFloat64;
    case 12:
      return kBool;
    case 13:
      return kBFloat16;
    case 28:
      return kUInt16;
    case 29:
      return {TypeCode::kFloat8E4M3FN, 8, 1};
    case 30:
      return {TypeCode::kFloat8E5M2, 8, 1};
    case 31:
      return {TypeCode::kFloat8E4M3FNUZ, 8, 1};
    case 32:
      return {TypeCode::kFloat8E5M2FNUZ, 8, 1};
    case 33:
      return {TypeCode::kFloat8E8M0, 8, 1};
    case 34:
      return kUInt32;
    case 35:
      return kUInt64;
    default:
      break;
  }
  malformed(format("{} is not an element type of the schema", number));
}
std::optional<DataType> complex_part(int64_t number) {
  if (number == 9) return kFloat16;
  if (number == 10) return kFloat32;
  if (number == 11) return kFloat64;
  return std::nullopt;
}
int64_t complex_number(DataType part) { return part == kFloat16 ? 9 : part == kFloat64 ? 11 : 10; }
constexpr int64_t kHighestDtype = 35;
int64_t dtype_number(DataType dtype) {
  for (int64_t i = 1; i <= kHighestDtype; ++i)
    if ((i < 9 || i > 11) && (i < 14 || i > 27) && dtype_of(i) == dtype) return i;
  return 0;
}

}  // namespace tilewright::torch
