// SPDX-License-Identifier: Apache-2.0
// Relay modules in files: classic text, or the JSON of the classic save_json.
#pragma once
#include <string_view>

#include "driver/build.h"

namespace tilewright::driver {

// Whether a file with this beginning is a module's text or JSON; ONNX files never are.
bool is_relay_text(std::string_view head);
bool is_json(std::string_view head);
// Error: FileNotFound.
Result<bool> is_relay_file(const std::string& path);

// Reads a module, binds the weights of options.params and sets sizes of main's parameters. Errors: FileNotFound,
// ParseError, MalformedModel (other JSON), BadArtifact (the weights file), those of relay/bind.h.
Result<relay::Module> read_relay_file(const std::string& path, const BuildOptions& options,
                                      const std::map<std::string, std::vector<int64_t>>& shapes);

}  // namespace tilewright::driver
