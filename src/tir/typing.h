// SPDX-License-Identifier: Apache-2.0
// The dtype rules of one node, apart from its children's. The builders assert them; the parser and verifier report
// them.
#pragma once
#include <string>

#include "tir/stmt.h"

namespace tilewright::tir {

// Empty, or what is wrong, for instance "Add of float32 and int64". Children are taken to be right.
std::string typing_error(const ExprNode& e);
std::string typing_error(const StmtNode& s);
std::string typing_error(const BufferNode& b);

// Whether an operator exists for a dtype (lanes do not matter), and the dtype it gives.
bool operator_takes(ExprKind kind, DataType operand);
DataType operator_result(ExprKind kind, DataType operand);
// The dtype of a call, for arguments that follow the rules; those are checked by typing_error.
DataType call_result(Intrinsic op, const std::vector<PrimExpr>& args);

}  // namespace tilewright::tir
