// SPDX-License-Identifier: Apache-2.0
// Read-only file mappings, and opening of external files that a model names, which must lie inside the model's folder.
#pragma once
#include <string>

#include "frontend/onnx/proto.h"

namespace tilewright::onnx {

// The whole file, mapped. Errors: FileNotFound.
Result<SharedBytes> map_file(const std::string& path);

// Returns the whole pages of a mapped file to the system; they can still be read, more slowly. No-op for other bytes,
// and for less than 256 KiB, which are not worth it.
void drop_pages(const SharedBytes& data);

// Maps `location` below `folder`: a relative path of plain components, no link anywhere on the way, a regular file with
// one name on disk. Containment is ensured by opening component by component without following links, so there is no
// race between check and use. Errors: MalformedModel (a path that breaks the rules), FileNotFound.
Result<SharedBytes> map_file_below(const std::string& folder, const std::string& location, bool allow_hard_links);

}  // namespace tilewright::onnx
