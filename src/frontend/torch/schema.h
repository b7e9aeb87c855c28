// SPDX-License-Identifier: Apache-2.0
// Checked access to the JSON of torch.export's schema: a missing member or one of the wrong kind throws a Diagnostic.
// `what` is the value's name in the schema.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/dtype.h"
#include "base/result.h"

namespace tilewright::torch {

[[noreturn]] void malformed(std::string what, std::string where = {});

const nlohmann::json& member(const nlohmann::json& object, const char* name);
const nlohmann::json* find_member(const nlohmann::json& object, const char* name);  // null where it is absent
std::pair<std::string, const nlohmann::json&> only_member(const nlohmann::json& j, const char* what);
const nlohmann::json& list_of(const nlohmann::json& j, const char* what);
std::string text_of(const nlohmann::json& j, const char* what);
int64_t integer_of(const nlohmann::json& j, const char* what);
double number_of(const nlohmann::json& j, const char* what);
bool bool_of(const nlohmann::json& j, const char* what);

// Element types by the schema's numbers; 0 for a type that the schema does not have.
DataType dtype_of(int64_t number);
int64_t dtype_number(DataType dtype);
// The dtype of the parts of a complex type, and back.
std::optional<DataType> complex_part(int64_t number);
int64_t complex_number(DataType part);

}  // namespace tilewright::torch
