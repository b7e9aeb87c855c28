// SPDX-License-Identifier: Apache-2.0
// Operators that a script defines (relay.op.register in Python): they have a type, by the script's relation, and a
// build needs a computation of the script's.
#pragma once
#include <functional>
#include <string>

#include "relay/op.h"

namespace tilewright::relay {

using ScriptRelation = std::function<Result<Type>(const TypeArgs&)>;

// The new operator's record, or null if there is an operator of that name already.
OpDef* define_script_op(const std::string& name, const std::string& doc);
OpDef* find_script_op(std::string_view name);
void set_script_relation(const OpDef& op, ScriptRelation relation);
// The type of a call, by the relation; an error if there is none.
Result<Type> script_op_type(const OpDef& op, const TypeArgs& args);
// A copy that lives as long as the records, which refer to their texts.
const char* kept_text(std::string text);

}  // namespace tilewright::relay
