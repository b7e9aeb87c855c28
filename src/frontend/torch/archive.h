// SPDX-License-Identifier: Apache-2.0
// Files of torch.export.save (.pt2): a zip archive with the graph as JSON and the weights as raw bytes. Weights are
// views of the file where they are stored uncompressed and aligned. Nothing is ever unpickled: a model that needs
// pickled data is refused.
#pragma once
#include <string>

#include "base/result.h"
#include "frontend/torch/graph.h"

namespace tilewright::torch {

// Whether the bytes are an archive with an exported program.
bool is_archive(std::span<const std::byte> bytes);

// Errors: MalformedModel, LimitExceeded, UnsupportedModel (another major version of the schema, several models in one
// archive, compiled code only).
Result<Program> read_archive(const SharedBytes& bytes);
// Reads a mapped file. Further error: FileNotFound.
Result<Program> read_archive(const std::string& path);

}  // namespace tilewright::torch
