// SPDX-License-Identifier: Apache-2.0
// Reads PyTorch's exported programs (.pt2) as modules.
#pragma once
#include "driver/build.h"
#include "frontend/torch/import.h"

namespace tilewright::driver {

// Whether the content is an archive of torch.export.save. Error: FileNotFound.
Result<bool> is_torch_file(const std::string& path);

// The program's module for these input sizes. Errors: FileNotFound and those of frontend/torch/archive.h and import.h;
// InvalidArgument for options of other formats.
Result<relay::Module> read_torch_file(const onnx::SharedBytes& bytes, const BuildOptions& options,
                                      const std::map<std::string, std::vector<int64_t>>& shapes,
                                      torch::Programs programs);
Result<relay::Module> read_torch_file(const std::string& path, const BuildOptions& options,
                                      const std::map<std::string, std::vector<int64_t>>& shapes,
                                      torch::Programs programs);

}  // namespace tilewright::driver
