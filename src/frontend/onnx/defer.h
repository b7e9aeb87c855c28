// SPDX-License-Identifier: Apache-2.0
// Nodes whose conversion waits. With ImportOptions::programs a node that needs sizes or values that only a run has
// becomes a call of onnx.node; convert_deferred is the other half, when those sizes and values are there.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "relay/expr.h"

namespace tilewright::onnx {

class Importer;

// Nodes of other formats that wait in the same way (onnx.node of another domain): by domain, what makes the node's
// results of its text and its operands. Leaves by ConversionFailure.
using OtherNodes =
    std::map<std::string, std::function<std::vector<relay::Expr>(const std::string& node,
                                                                 const std::vector<relay::Expr>& operands, Importer&)>>;

// main for arguments of these types, without onnx.node and without sizes that are not known. Arguments that sizes
// depend on become constants, as do texts: `by_value` receives their names; larger ones than `largest` bytes do not.
// Errors: those of the import; FreeDimension where a value that decides a size is no argument, or a large one.
Result<relay::Module> convert_deferred(const relay::Module& module, const std::map<std::string, Tensor>& arguments,
                                       uint64_t largest, std::vector<std::string>* by_value,
                                       const OtherNodes& others = {});

}  // namespace tilewright::onnx
