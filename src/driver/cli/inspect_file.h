// SPDX-License-Identifier: Apache-2.0
// Describes a file's content as JSON. Nothing is executed or loaded, so libraries for other machines can be inspected
// as well.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"

namespace tilewright::driver {

// ONNX models, artifacts and packages, .params, graph JSON, factory records, VM executables (.ro), Relay modules as
// text and JSON, other JSON. "kind" says which. Errors: FileNotFound, and those of the file's reader.
Result<nlohmann::json> inspect_file(const std::string& path);

}  // namespace tilewright::driver
