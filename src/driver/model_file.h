// SPDX-License-Identifier: Apache-2.0
// A model's file as a module, and the module as an ordinary library: the two halves of build_onnx, for what decides
// between them.
#pragma once
#include <string>

#include "driver/build.h"
#include "frontend/onnx/import.h"

namespace tilewright::driver {

// Reads a model (ONNX, a .pt2 file of PyTorch, or a Relay module: driver/relay_file.h). Errors: FileNotFound,
// MalformedModel and the importer's others.
Result<relay::Module> read_model_file(const std::string& path, const BuildOptions& options, onnx::Programs programs);
// The channels of a block in models that onnxruntime's layout optimiser wrote on a machine like the target.
Result<int64_t> channel_block(const BuildOptions& options);
// Builds what was read from the file.
Result<Built> build_read(relay::Module module, const std::string& path, const BuildOptions& options);

}  // namespace tilewright::driver
