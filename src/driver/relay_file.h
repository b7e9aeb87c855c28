// SPDX-License-Identifier: Apache-2.0
// Relay modules as files: the classic text, or the JSON of the classic save_json.
#pragma once
#include <string_view>

#include "driver/build.h"

namespace tilewright::driver {

// Whether a file that begins like this is a module's text, or a module's JSON; ONNX files never do.
bool is_relay_text(std::string_view head);
bool is_json(std::string_view head);
// Error: FileNotFound.
Result<bool> is_relay_file(const std::string& path);

// The module with the weights of options.params bound and these sizes of main's parameters given. Errors: FileNotFound,
// ParseError, MalformedModel (JSON of another kind), BadArtifact (the weights' file), those of relay/bind.h.
Result<relay::Module> read_relay_file(const std::string& path, const BuildOptions& options,
                                      const std::map<std::string, std::vector<int64_t>>& shapes);

}  // namespace tilewright::driver
