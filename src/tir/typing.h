// SPDX-License-Identifier: Apache-2.0
// The typing rules of a single node, assuming that its children are correct. Builders assert them; parser and verifier
// report them.
#pragma once
#include <string>

#include "tir/stmt.h"

namespace tilewright::tir {

// Empty, or the violated rule, such as "Add of float32 and int64".
std::string typing_error(const ExprNode& e);
std::string typing_error(const StmtNode& s);
std::string typing_error(const BufferNode& b);

// Whether an operator supports a dtype (regardless of lanes), and the dtype of its result.
bool operator_takes(ExprKind kind, DataType operand);
DataType operator_result(ExprKind kind, DataType operand);
// The dtype of a call whose arguments obey the rules; typing_error checks those.
DataType call_result(Intrinsic op, const std::vector<PrimExpr>& args);

}  // namespace tilewright::tir
