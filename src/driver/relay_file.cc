// SPDX-License-Identifier: Apache-2.0
#include "driver/relay_file.h"

#include <filesystem>
#include <fstream>

#include "base/format.h"
#include "frontend/onnx/file_map.h"
#include "relay/bind.h"
#include "relay/classic/json.h"
#include "relay/infer_type.h"
#include "relay/text.h"
#include "runtime/params_file.h"

namespace tilewright::driver {
namespace {

std::string_view without_space(std::string_view head) {
  const size_t first = head.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string_view() : head.substr(first);
}

Result<relay::Module> parse(std::string_view file, const std::string& path) {
  if (!is_json(file)) {
    relay::ParseOptions options;
    options.origin = std::filesystem::path(path).filename().string();  // the artifact must not depend on the folder
    options.spans = true;
    return relay::parse_module(file, {}, options);
  }
  if (file.substr(0, 4096).find("\"arg_nodes\"") != std::string_view::npos ||
      file.find("\"root\"") == std::string_view::npos)
    return Diagnostic(ErrorCode::kMalformedModel, "the JSON is not a Relay module's (save_json of an IRModule)", path,
                      "a graph executor's JSON names kernels, not operators: compile the module that it came from");
  auto module = relay::load_json(file);
  return module.ok() ? std::move(module) : std::move(module).error().at(path);
}

Result<std::map<std::string, Tensor>> read_weights(const std::string& path) {
  const onnx::SharedBytes mapped = TW_TRY(onnx::map_file(path));
  auto tensors = runtime::read_params_file(mapped.bytes);
  if (!tensors.ok()) return std::move(tensors).error().at(path);
  std::map<std::string, Tensor> out;
  for (const runtime::NamedTensor& t : *tensors) {
    Tensor tensor(t.dtype, t.shape);
    std::copy(t.data.begin(), t.data.end(), tensor.mutable_raw());
    out.emplace(t.name, std::move(tensor));
  }
  return out;
}

}  // namespace

bool is_relay_text(std::string_view head) {
  head = without_space(head);
  return head.starts_with("#[") || head.starts_with("def @") || head.starts_with("fn ");
}

bool is_json(std::string_view head) {
  head = without_space(head);
  return head.starts_with("{") || head.starts_with("[");
}

Result<bool> is_relay_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  char head[256];
  in.read(head, sizeof head);
  const std::string_view text(head, static_cast<size_t>(in.gcount()));
  if (in.bad() || (text.empty() && !in.is_open()))
    return Diagnostic(ErrorCode::kFileNotFound, "there is no such file, or it cannot be read", path, "check the path");
  return is_relay_text(text) || is_json(text);
}

Result<relay::Module> read_relay_file(const std::string& path, const BuildOptions& options,
                                      const std::map<std::string, std::vector<int64_t>>& shapes) {
  if (!options.constants.empty() || !options.constant_tensors.empty())
    return Diagnostic(ErrorCode::kInvalidArgument, "constants are given to inputs of ONNX models", path,
                      "a Relay module's come from a .params file: --params");
  const onnx::SharedBytes mapped = TW_TRY(onnx::map_file(path));
  relay::Module module = TW_TRY(parse({reinterpret_cast<const char*>(mapped.bytes.data()), mapped.bytes.size()}, path));
  if (!options.params.empty()) {
    const auto weights = TW_TRY(read_weights(options.params));
    module = TW_TRY(relay::bind_params(module, weights));
  }
  PassContext context;
  module = TW_TRY(relay::infer_type(module, context));
  return shapes.empty() ? module : relay::with_shapes(module, shapes);
}

}  // namespace tilewright::driver
