// SPDX-License-Identifier: Apache-2.0
// Concatenation along a short last dimension: out[r, :] = first[r, :], second[r, :], ... Rows shorter than a few
// vectors would be stored in masked pieces; instead whole vectors of the result, which cover several rows, are put
// together by shuffles of contiguous loads.
#pragma once
#include "topi/view.h"

namespace tilewright::topi {

// All views are contiguous, of one dtype and of equal shapes up to the last dimension.
bool can_join_rows(const std::vector<View>& parts, const View& out, const Target& target);
tir::Stmt join_rows(const std::vector<View>& parts, const View& out, const KernelContext& context);

}  // namespace tilewright::topi
