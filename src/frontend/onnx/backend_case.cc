// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/backend_case.h"

#include <algorithm>
#include <filesystem>

#include "base/checked.h"
#include "base/format.h"
#include "frontend/onnx/file_map.h"

namespace tilewright::onnx {
namespace {

namespace fs = std::filesystem;

Result<CaseValue> read_value(const std::string& path, const ValueInfo& info) {
  CaseValue v;
  v.name = info.name;
  SharedBytes bytes = TW_TRY(map_file(path));
  ValueType type = info.type;
  if (type.kind == ValueType::kOptional) {
    if (bytes.bytes.empty()) {
      v.absent = true;
      return v;
    }
    // An OptionalProto holds its value, length-delimited, in field 3 (a tensor) or 5 (a sequence).
    bool sequence = type.element && type.element->kind == ValueType::kSequence;
    auto read = sequence ? read_optional_sequence(bytes) : read_optional_tensor(bytes);
    if (!read) return std::move(read).error().at(path);
    v.is_sequence = sequence;
    v.absent = read->empty() && !sequence;
    if (sequence)
      v.sequence = std::move(read).value();
    else if (!v.absent)
      v.tensor = read->at(0);
    return v;
  }
  if (type.kind == ValueType::kSequence) {
    auto read = read_sequence(bytes);
    if (!read) return std::move(read).error().at(path);
    v.is_sequence = true;
    v.sequence = std::move(read).value();
    return v;
  }
  auto read = read_tensor(bytes);
  if (!read) return std::move(read).error().at(path);
  v.tensor = read->data;
  return v;
}

Result<std::vector<CaseValue>> read_values(const fs::path& folder, const char* prefix,
                                           const std::vector<ValueInfo>& infos) {
  std::vector<CaseValue> out;
  for (size_t i = 0; i < infos.size(); ++i) {
    fs::path path = folder / format("{}_{}.pb", prefix, i);
    if (!fs::exists(path)) break;
    out.push_back(TW_TRY(read_value(path.string(), infos[i])));
  }
  return out;
}

// The light models have no input files: element i of n is i / n, and unknown dimensions are 1.
Result<Tensor> counting_input(const ValueInfo& info) {
  if (info.type.kind != ValueType::kTensor || !info.type.elem || *info.type.elem != kFloat32 || !info.type.shape)
    return Diagnostic(ErrorCode::kUnsupportedModel,
                      format("the input '{}' is not a float32 tensor of known rank", info.name));
  std::vector<int64_t> shape;
  for (const auto& d : *info.type.shape) shape.push_back(d.value.value_or(1));
  int64_t n = TW_TRY(checked_element_count(shape));
  if (n > (int64_t{1} << 28))
    return Diagnostic(ErrorCode::kLimitExceeded, format("the input '{}' is too large", info.name));
  Tensor t(kFloat32, shape);
  for (int64_t i = 0; i < n; ++i) t.set_double(i, static_cast<double>(i) / static_cast<double>(n));
  return t;
}

Result<BackendCase> load_light_case(const fs::path& file) {
  BackendCase out;
  out.folder = file.string();
  out.name = file.stem().string();
  out.model = TW_TRY(read_model(file.string()));
  BackendCase::DataSet data;
  for (const auto& info : out.model.graph.inputs) {
    const auto& init = out.model.graph.initializers;
    if (std::any_of(init.begin(), init.end(), [&](const NamedTensor& t) { return t.name == info.name; })) continue;
    CaseValue v;
    v.name = info.name;
    v.tensor = TW_TRY(counting_input(info));
    data.inputs.push_back(std::move(v));
  }
  for (size_t i = 0; i < out.model.graph.outputs.size(); ++i) {
    fs::path path = file.parent_path() / format("{}_output_{}.pb", out.name, i);
    data.outputs.push_back(TW_TRY(read_value(path.string(), out.model.graph.outputs[i])));
  }
  out.sets.push_back(std::move(data));
  return out;
}

}  // namespace

Result<BackendCase> load_backend_case(const std::string& folder) try {
  BackendCase out;
  fs::path root(folder);
  if (root.extension() == ".onnx") return load_light_case(root);
  out.folder = folder;
  out.name = root.filename().empty() ? root.parent_path().filename().string() : root.filename().string();
  out.model = TW_TRY(read_model((root / "model.onnx").string()));
  std::vector<ValueInfo> inputs;
  for (const auto& info : out.model.graph.inputs) {
    const auto& init = out.model.graph.initializers;
    if (std::none_of(init.begin(), init.end(), [&](const NamedTensor& t) { return t.name == info.name; }))
      inputs.push_back(info);
  }
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(root))
    if (entry.is_directory() && entry.path().filename().string().rfind("test_data_set_", 0) == 0)
      sets.push_back(entry.path());
  std::sort(sets.begin(), sets.end());
  for (const auto& set : sets) {
    BackendCase::DataSet data;
    data.inputs = TW_TRY(read_values(set, "input", inputs));
    data.outputs = TW_TRY(read_values(set, "output", out.model.graph.outputs));
    if (data.inputs.size() < inputs.size())
      return Diagnostic(ErrorCode::kFileNotFound,
                        format("it has {} inputs for a model with {}", data.inputs.size(), inputs.size()),
                        set.string());
    out.sets.push_back(std::move(data));
  }
  return out;
} catch (const fs::filesystem_error& e) {
  return Diagnostic(ErrorCode::kFileNotFound, e.code().message(), folder);
}

Result<relay::Module> import_backend_case(const BackendCase& test, const BackendCase::DataSet& data,
                                          std::vector<std::string>* constants, bool all_constant) {
  ImportOptions options;
  for (const auto& v : data.inputs) {
    if (v.absent || v.is_sequence)
      options.values[v.name] = v.is_sequence ? v.sequence : std::vector<Tensor>();
    else if (all_constant || v.tensor.dtype().is_string())
      options.constants[v.name] = v.tensor;
    else
      options.shapes[v.name] = v.tensor.shape();
  }
  // The data may disagree with a size that the model fixes; only free dimensions are bound to the data's sizes.
  for (const auto& info : test.model.graph.inputs) {
    auto it = options.shapes.find(info.name);
    if (it == options.shapes.end() || !info.type.shape || info.type.shape->size() != it->second.size()) continue;
    for (size_t i = 0; i < it->second.size(); ++i)
      if ((*info.type.shape)[i].value) it->second[i] = -1;
  }
  while (true) {
    std::vector<std::string> needed;
    options.needed_constants = &needed;
    auto module = import_onnx(test.model, options);
    if (module || needed.empty()) {
      for (const auto& [name, tensor] : options.constants) constants->push_back(name);
      return module;
    }
    for (const auto& name : needed)
      for (const auto& v : data.inputs)
        if (v.name == name) {
          options.constants[name] = v.tensor;
          options.shapes.erase(name);
        }
  }
}

}  // namespace tilewright::onnx
