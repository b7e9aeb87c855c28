// SPDX-License-Identifier: Apache-2.0
// Nodes whose conversion waits. With ImportOptions::programs a node that needs sizes or values that only a run has
// becomes a call of onnx.node; convert_deferred is the other half, when those sizes and values are there.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "relay/expr.h"

namespace tilewright::onnx {

// main for arguments of these types, without onnx.node and without sizes that are not known. Arguments that sizes
// depend on become constants, as do texts: `by_value` receives their names; larger ones than `largest` bytes do not.
// Errors: those of the import; FreeDimension where a value that decides a size is no argument, or a large one.
Result<relay::Module> convert_deferred(const relay::Module& module, const std::map<std::string, Tensor>& arguments,
                                       uint64_t largest, std::vector<std::string>* by_value);

}  // namespace tilewright::onnx
