// SPDX-License-Identifier: Apache-2.0
// Groups that are one concatenation, split or slice of their inputs as they are.
#pragma once
#include "lower/group.h"

namespace tilewright::lower {

// Copies each window of a tensor to its place, with the dimensions that all windows take whole as one: rows are as long
// as memory allows. Null where no dimensions are so, and for other groups.
tir::Stmt window_copy(const GroupScope& scope, const topi::KernelContext& context);

}  // namespace tilewright::lower
