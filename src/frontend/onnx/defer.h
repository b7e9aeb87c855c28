// SPDX-License-Identifier: Apache-2.0
// Deferred nodes. With ImportOptions::programs, a node whose conversion needs sizes or values that exist only at run
// time becomes a call of onnx.node; convert_deferred converts it once they are known.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "relay/expr.h"

namespace tilewright::onnx {

class Importer;

// Converters for deferred nodes of other formats (onnx.node with another domain), by domain: from the node's text and
// its operands to the node's results. They fail by ConversionFailure.
using OtherNodes =
    std::map<std::string, std::function<std::vector<relay::Expr>(const std::string& node,
                                                                 const std::vector<relay::Expr>& operands, Importer&)>>;

// main converted for arguments of these types, without onnx.node and without unknown sizes. Arguments that sizes depend
// on, and strings, become constants, whose names go to `by_value`; those above `largest` bytes do not. Errors: those of
// the import; FreeDimension where a size depends on a value that is no argument or is too large.
Result<relay::Module> convert_deferred(const relay::Module& module, const std::map<std::string, Tensor>& arguments,
                                       uint64_t largest, std::vector<std::string>* by_value,
                                       const OtherNodes& others = {});

}  // namespace tilewright::onnx
