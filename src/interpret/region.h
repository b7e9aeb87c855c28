// SPDX-License-Identifier: Apache-2.0
// A program's regions without the compiler: converted for the arguments they meet, and computed by the reference
// interpreter.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "frontend/onnx/proto.h"
#include "relay/expr.h"

namespace tilewright::interpret {

// A region's module for arguments of these shapes. `by_value` receives those whose values decide shapes or control
// flow: they are constants of the module. Errors: those of the import.
Result<relay::Module> region_module(const std::string& format, const onnx::SharedBytes& source,
                                    const std::map<std::string, Tensor>& arguments, std::vector<std::string>* by_value);

// The region's results on these arguments. `by_value` as above. Errors: those of import and evaluation; LimitExceeded
// if a region that could be compiled would take more than some milliseconds, unless it is to be evaluated
// `however_long`.
Result<std::vector<Tensor>> evaluate_region(const std::string& format, const onnx::SharedBytes& source,
                                            const std::map<std::string, Tensor>& arguments, bool however_long,
                                            std::vector<std::string>* by_value);

}  // namespace tilewright::interpret
