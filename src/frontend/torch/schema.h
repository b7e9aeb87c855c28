// SPDX-License-Identifier: Apache-2.0
// Checked access to the JSON of torch.export's schema: what is not there or of another kind leaves as a Diagnostic.
// `what` is the name of the value in the schema.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/dtype.h"
#include "base/result.h"

namespace tilewright::torch {

[[noreturn]] void malformed(std::string what, std::string where = {});

const nlohmann::json& member(const nlohmann::json& object, const char* name);
const nlohmann::json* find_member(const nlohmann::json& object, const char* name);  // null where it is not there
std::pair<std::string, const nlohmann::json&> only_member(const nlohmann::json& j, const char* what);
const nlohmann::json& list_of(const nlohmann::json& j, const char* what);
std::string text_of(const nlohmann::json& j, const char* what);
int64_t integer_of(const nlohmann::json& j, const char* what);
double number_of(const nlohmann::json& j, const char* what);
bool bool_of(const nlohmann::json& j, const char* what);

// Element types by the schema's numbers; 0 for a type that the schema has not.
DataType dtype_of(int64_t number);
int64_t dtype_number(DataType dtype);

}  // namespace tilewright::torch
