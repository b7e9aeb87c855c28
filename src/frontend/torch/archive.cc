// SPDX-License-Identifier: Apache-2.0
#include "frontend/torch/archive.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "archive/zip.h"
#include "base/checked.h"
#include "base/format.h"
#include "frontend/onnx/file_map.h"
#include "frontend/torch/read_json.h"

namespace tilewright::torch {
namespace {

using archive::ZipMember;
using nlohmann::json;

// The whole JSON text of the graph is held in memory.
constexpr uint64_t kLargestGraph = uint64_t{1} << 30;

Diagnostic malformed_archive(std::string what) {
  return Diagnostic(ErrorCode::kMalformedModel, std::move(what), "", "export the model again");
}

// The members below the archive's top folder ("model/"), by their path in it.
class Members {
 public:
  explicit Members(std::vector<ZipMember> members) : members_(std::move(members)) {
    for (const ZipMember& m : members_) {
      const size_t slash = m.name.find('/');
      if (slash != std::string::npos) by_name_.emplace(m.name.substr(slash + 1), &m);
      by_name_.emplace(m.name, &m);  // older archives have no top folder
    }
  }
  const ZipMember* find(const std::string& name) const {
    auto it = by_name_.find(name);
    return it == by_name_.end() ? nullptr : it->second;
  }
  std::vector<std::string> below(const std::string& folder, std::string_view ending) const {
    std::vector<std::string> out;
    for (const auto& [name, member] : by_name_)
      if (name.starts_with(folder) && name.ends_with(ending)) out.push_back(name);
    return out;
  }

 private:
  std::vector<ZipMember> members_;
  std::map<std::string, const ZipMember*> by_name_;
};

Result<std::string> text_of(const ZipMember& member) {
  if (member.size > kLargestGraph)
    return Diagnostic(ErrorCode::kLimitExceeded, format("'{}' has {} bytes", member.name, member.size));
  return archive::unpack(member);
}

// The bytes of a member; an uncompressed one is a view of the file.
Result<SharedBytes> bytes_of(const ZipMember& member, const SharedBytes& file) {
  if (member.stored()) {
    TW_TRY_STATUS(archive::check_sum(member));
    return SharedBytes{member.packed, file.owner, file.mapped};
  }
  auto owned = std::make_shared<const std::string>(TW_TRY(archive::unpack(member)));
  return SharedBytes{std::as_bytes(std::span(*owned)), owned, false};
}

struct Payload {
  std::string name, path;
  bool pickled = false;
  TensorMeta meta;
  std::vector<int64_t> strides;
  int64_t offset = 0;  // in elements
};

int64_t known_size(const json& size) {
  if (!size.is_object() || !size.contains("as_int") || !size["as_int"].is_number_integer())
    throw malformed_archive("a weight's size is not a number");
  return size["as_int"].get<int64_t>();
}

// Places of complex numbers as places of their parts, which lie beside each other.
void in_parts(Payload* p) {
  auto doubled = [](int64_t* i) {
    if (!checked_mul(*i, int64_t{2}, i)) throw malformed_archive("a weight's strides are impossible");
  };
  for (int64_t& stride : p->strides) doubled(&stride);
  doubled(&p->offset);
  p->strides.push_back(1);
}

Result<std::vector<Payload>> read_config(const std::string& text) try {
  const json j = json::parse(text, nullptr, false);
  std::vector<Payload> out;
  if (j.is_discarded() || !j.is_object() || !j.contains("config") || !j["config"].is_object())
    return malformed_archive("the list of its weights is not JSON of the schema");
  for (const auto& [name, entry] : j["config"].items()) {
    Payload p;
    p.name = name;
    p.path = entry.at("path_name").get<std::string>();
    p.pickled = entry.value("use_pickle", false) || entry.at("tensor_meta").is_null();
    if (!p.pickled) {
      const json& meta = entry["tensor_meta"];
      p.meta = read_tensor_meta(meta);
      for (const json& s : meta.at("strides")) p.strides.push_back(known_size(s));
      p.offset = known_size(meta.at("storage_offset"));
      if (p.meta.complex) in_parts(&p);
    }
    out.push_back(std::move(p));
  }
  return out;
} catch (const json::exception&) {
  return malformed_archive("the list of its weights does not follow the schema");
} catch (Diagnostic& failure) {
  return std::move(failure);
}

bool is_compact(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  int64_t next = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (strides[i] != next) return false;
    next *= shape[i];
  }
  return true;
}

// Copies a tensor with arbitrary strides to contiguous memory.
Tensor gathered(const Payload& p, const std::vector<int64_t>& shape, const std::byte* from) {
  Tensor out(p.meta.dtype, shape);
  const auto width = static_cast<int64_t>(p.meta.dtype.bytes());
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t n = 0; n < out.size(); ++n) {
    int64_t at = p.offset;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * p.strides[d];
    std::memcpy(out.mutable_raw() + n * width, from + at * width, static_cast<size_t>(width));
    for (size_t d = index.size(); d-- > 0 && ++index[d] == shape[d];) index[d] = 0;
  }
  return out;
}

Result<Tensor> read_payload(const Payload& p, const SharedBytes& data) {
  std::vector<int64_t> shape;
  for (const Size& size : p.meta.sizes) {
    if (!size.value || *size.value < 0) return malformed_archive(format("the weight '{}' has no sizes", p.name));
    shape.push_back(*size.value);
  }
  if (!p.meta.strided)
    return Diagnostic(ErrorCode::kUnsupportedModel, format("the weight '{}' is sparse", p.name), "",
                      "make it dense before the export");
  const int64_t count = TW_TRY(checked_element_count(shape));
  if (count == 0) return Tensor::zeros(p.meta.dtype, shape);
  const auto width = static_cast<int64_t>(p.meta.dtype.bytes());
  if (p.strides.size() != shape.size() || p.offset < 0)
    return malformed_archive(format("the weight '{}' has sizes without strides", p.name));
  // One past the last element that is read.
  int64_t last = p.offset;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t reach = 0;
    if (p.strides[i] < 0 || !checked_mul(p.strides[i], shape[i] - 1, &reach) || !checked_add(last, reach, &last))
      return malformed_archive(format("the strides of the weight '{}' are impossible", p.name));
  }
  int64_t needed = 0;
  if (!checked_add(last, 1, &needed) || !checked_mul(needed, width, &needed) ||
      static_cast<uint64_t>(needed) > data.bytes.size())
    return malformed_archive(
        format("the weight '{}' needs more than the {} bytes of '{}'", p.name, data.bytes.size(), p.path));
  if (!is_compact(shape, p.strides)) {
    // Expanded (stride 0) tensors are small in the file, so the size that they unpack to needs a bound of its own.
    if (count > (int64_t{16} << 30) / width)
      return Diagnostic(ErrorCode::kLimitExceeded, format("the weight '{}' has {} elements", p.name, count));
    return gathered(p, shape, data.bytes.data());
  }
  const std::byte* first = data.bytes.data() + p.offset * width;
  const bool aligned = reinterpret_cast<uintptr_t>(first) % static_cast<uintptr_t>(std::min<int64_t>(width, 8)) == 0;
  if (aligned) return Tensor::view(p.meta.dtype, shape, first, data.owner);
  Tensor copy(p.meta.dtype, shape);
  std::memcpy(copy.mutable_raw(), first, copy.bytes());
  return copy;
}

// Adds the weights that one list (config) names to the program.
Status add_payloads(const Members& members, const std::string& config, const std::string& folder,
                    const SharedBytes& file, Program* program) {
  const ZipMember* list = members.find(config);
  if (!list) return Ok{};
  std::map<std::string, SharedBytes> shared;  // several weights may be views of one payload
  for (const Payload& p : TW_TRY(read_config(TW_TRY(text_of(*list))))) {
    if (p.pickled) {
      program->why.emplace(p.name, format("the archive holds '{}' pickled, which is not read", p.name));
      continue;
    }
    auto known = shared.find(p.path);
    if (known == shared.end()) {
      const ZipMember* member = members.find(folder + p.path);
      if (!member) return malformed_archive(format("the archive does not hold '{}{}'", folder, p.path));
      known = shared.emplace(p.path, TW_TRY(bytes_of(*member, file))).first;
    }
    program->weights.emplace(p.name, TW_TRY(read_payload(p, known->second)));
  }
  return Ok{};
}

// Archives before PyTorch 2.8: the graph is JSON, everything else is pickled.
Result<Program> read_older(const Members& members, const ZipMember& graph) {
  Program program = TW_TRY(read_program(TW_TRY(text_of(graph))));
  for (const InputSpec& spec : program.inputs)
    if (!spec.target.empty())
      program.why.emplace(spec.target,
                          format("the file was written by PyTorch {}, which pickled weights such as '{}'; pickles are "
                                 "not read",
                                 program.torch_version, spec.target));
  return program;
}

constexpr const char* kOlderGraph = "serialized_exported_program.json";

}  // namespace

bool is_archive(std::span<const std::byte> bytes) {
  if (!archive::is_zip(bytes)) return false;
  auto members = archive::zip_members(bytes);
  // A damaged archive counts as one too: it is no ONNX file.
  if (!members.ok()) return true;
  const Members all(std::move(*members));
  return all.find("archive_format") || all.find(kOlderGraph) || !all.below("models/", ".json").empty();
}

Result<Program> read_archive(const SharedBytes& bytes) {
  const Members members(TW_TRY(archive::zip_members(bytes.bytes)));
  if (const ZipMember* older = members.find(kOlderGraph)) return read_older(members, *older);
  const std::vector<std::string> models = members.below("models/", ".json");
  if (models.empty())
    return Diagnostic(ErrorCode::kUnsupportedModel, "the archive holds no exported program", "",
                      "write it with torch.export.save");
  if (models.size() > 1) {
    std::string names;
    for (const auto& name : models) names += (names.empty() ? "" : ", ") + name;
    return Diagnostic(ErrorCode::kUnsupportedModel, format("the archive holds several models: {}", names), "",
                      "save each on its own");
  }
  Program program = TW_TRY(read_program(TW_TRY(text_of(*members.find(models[0])))));
  const std::string name = models[0].substr(7, models[0].size() - 7 - 5);  // models/NAME.json
  TW_TRY_STATUS(
      add_payloads(members, "data/weights/" + name + "_weights_config.json", "data/weights/", bytes, &program));
  TW_TRY_STATUS(
      add_payloads(members, "data/constants/" + name + "_constants_config.json", "data/constants/", bytes, &program));
  return program;
}

Result<Program> read_archive(const std::string& path) {
  auto program = read_archive(TW_TRY(onnx::map_file(path)));
  return program.ok() ? std::move(program) : std::move(program).error().at(path);
}

}  // namespace tilewright::torch
