// SPDX-License-Identifier: Apache-2.0
// The two halves of build_onnx, reading a model file and building an ordinary library, for callers that decide in
// between.
#pragma once
#include <string>

#include "driver/build.h"
#include "frontend/onnx/import.h"

namespace tilewright::driver {

// Reads a model (ONNX, a .pt2 file of PyTorch, or a Relay module: driver/relay_file.h). Errors: FileNotFound,
// MalformedModel and the importer's others.
Result<relay::Module> read_model_file(const std::string& path, const BuildOptions& options, onnx::Programs programs);
// The channel block size of models written by onnxruntime's layout optimiser on a machine like the target.
Result<int64_t> channel_block(const BuildOptions& options);
// Builds a module read from the file.
Result<Built> build_read(relay::Module module, const std::string& path, const BuildOptions& options);

}  // namespace tilewright::driver
