// SPDX-License-Identifier: Apache-2.0
// Reads of references become the values that were written last, where the order of reads and writes is known.
// Requires: typed module in A-normal form.
// Ensures: the same values; creations and writes stay. References that functions capture, or that are passed on, are
// left alone.
// Why here: partial evaluation decides by values, also those that programs keep in references.
// Test: tests/relay/passes/partial_evaluate_references.txt
#pragma once
#include "relay/expr.h"

namespace tilewright::relay {
bool creates_references(const Expr& function);
Module forward_references(const Module& module);
}  // namespace tilewright::relay
