// SPDX-License-Identifier: Apache-2.0
#include "driver/torch_file.h"

#include <fstream>

#include "frontend/onnx/file_map.h"
#include "frontend/torch/archive.h"

namespace tilewright::driver {

Result<bool> is_torch_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  char head[4] = {};
  in.read(head, sizeof head);
  // Reads on only if it begins like a zip archive.
  if (std::string_view(head, sizeof head) != std::string_view("PK\x03\x04", 4)) return false;
  return torch::is_archive(TW_TRY(onnx::map_file(path)).bytes);
}

Result<relay::Module> read_torch_file(const onnx::SharedBytes& bytes, const BuildOptions& options,
                                      const std::map<std::string, std::vector<int64_t>>& shapes,
                                      torch::Programs programs) {
  if (!options.params.empty())
    return Diagnostic(ErrorCode::kInvalidArgument, "a .pt2 file holds its weights; --params is for Relay modules",
                      options.params, "leave it out");
  if (!options.constants.empty())
    return Diagnostic(ErrorCode::kInvalidArgument, "--constant gives values to inputs of ONNX models", "",
                      "export the PyTorch model with the value in it");
  const torch::Program program = TW_TRY(torch::read_archive(bytes));
  torch::ImportOptions import;
  import.shapes = shapes;
  import.constants = options.constant_tensors;
  import.programs = programs;
  return torch::import_torch(program, import);
}

Result<relay::Module> read_torch_file(const std::string& path, const BuildOptions& options,
                                      const std::map<std::string, std::vector<int64_t>>& shapes,
                                      torch::Programs programs) {
  auto module = read_torch_file(TW_TRY(onnx::map_file(path)), options, shapes, programs);
  if (module.ok()) return module;
  Diagnostic error = std::move(module).error();
  error.where = path + (error.where.empty() ? "" : ": " + error.where);
  return error;
}

}  // namespace tilewright::driver
