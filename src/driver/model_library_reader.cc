// SPDX-License-Identifier: Apache-2.0
#include "driver/model_library_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "base/format.h"

namespace tilewright::driver {
namespace {

using nlohmann::json;

constexpr int64_t kReadVersion = 7;
// More than any firmware has, and small enough that sums of sizes do not overflow.
constexpr uint64_t kMostBytes = uint64_t{1} << 40;
constexpr size_t kMostListed = 4096;

Diagnostic damaged_library(const std::string& what) {
  return {ErrorCode::kBadArtifact,
          format("the Model Library Format is damaged: {}", what),
          {},
          "compile the model again with --format mlf"};
}

// Checked access to members of metadata.json, by path and with the required type.
class Field {
 public:
  Field(const json& value, std::string path) : value_(value), path_(std::move(path)) {}

  Result<Field> at(const char* key) const {
    if (!value_.is_object()) return wrong("no object");
    const auto found = value_.find(key);
    if (found == value_.end()) return damaged_library(format("metadata.json has no {}.{}", path_, key));
    return Field(*found, path_ + "." + key);
  }
  bool has(const char* key) const { return value_.is_object() && value_.contains(key); }
  Result<std::string> text() const {
    if (!value_.is_string()) return wrong("no text");
    std::string out = value_.get<std::string>();
    if (out.find('\0') != std::string::npos) return wrong("a text with a zero in it");
    return out;
  }
  Result<bool> flag() const {
    if (!value_.is_boolean()) return wrong("neither true nor false");
    return value_.get<bool>();
  }
  Result<uint64_t> bytes() const {
    if (!value_.is_number_unsigned() || value_.get<uint64_t>() > kMostBytes) return wrong("no number of bytes");
    return value_.get<uint64_t>();
  }
  Result<int64_t> extent() const { return static_cast<int64_t>(TW_TRY(bytes())); }
  Result<std::vector<Field>> list() const {
    if (!value_.is_array() || value_.size() > kMostListed) return wrong("no list of up to 4096");
    std::vector<Field> out;
    for (size_t i = 0; i < value_.size(); ++i) out.emplace_back(value_[i], format("{}[{}]", path_, i));
    return out;
  }
  Result<std::vector<std::string>> texts() const {
    std::vector<std::string> out;
    for (const Field& f : TW_TRY(list())) out.push_back(TW_TRY(f.text()));
    return out;
  }
  // A C identifier: it is written into source that a project compiles.
  Result<std::string> name_in_c() const {
    std::string out = TW_TRY(text());
    const bool good =
        std::all_of(out.begin(), out.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    if (!good || out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0) return wrong("no name of C");
    return out;
  }
  Diagnostic wrong(const char* what) const { return damaged_library(format("{} in metadata.json is {}", path_, what)); }

 private:
  const json& value_;
  std::string path_;
};

Result<std::vector<LibraryTensor>> read_tensors(const Field& field, bool packed) {
  std::vector<LibraryTensor> out;
  for (const Field& f : TW_TRY(field.list())) {
    LibraryTensor t;
    t.name = TW_TRY(TW_TRY(f.at("name")).text());
    if (!packed) t.member = TW_TRY(TW_TRY(f.at("member")).name_in_c());
    const Field dtype = TW_TRY(f.at("dtype"));
    auto parsed = parse_dtype(TW_TRY(dtype.text()));
    if (!parsed.ok() || parsed->lanes != 1) return dtype.wrong("no dtype");
    t.dtype = *parsed;
    const Field shape = TW_TRY(f.at("shape"));
    for (const Field& d : TW_TRY(shape.list())) t.shape.push_back(TW_TRY(d.extent()));
    auto count = checked_element_count(t.shape);
    if (!count.ok() || static_cast<uint64_t>(*count) > kMostBytes) return shape.wrong("larger than a tensor can be");
    out.push_back(std::move(t));
  }
  return out;
}

Result<LibraryInterface> read_interface(const Field& field) {
  LibraryInterface out;
  const Field api = TW_TRY(field.at("api"));
  const std::string text = TW_TRY(api.text());
  if (text != "c" && text != "packed") return api.wrong("neither c nor packed");
  out.packed = text == "packed";
  out.prefix = TW_TRY(TW_TRY(field.at("prefix")).name_in_c());
  if (!out.packed) {
    const Field header = TW_TRY(field.at("header"));
    out.header = TW_TRY(header.text());
    if (!out.header.ends_with(".h") || out.header.find_first_of("/\\\"\n") != std::string::npos)
      return header.wrong("no file's name");
  }
  const Field alignment = TW_TRY(field.at("alignment"));
  out.alignment = TW_TRY(alignment.bytes());
  if (out.alignment == 0 || out.alignment > 4096) return alignment.wrong("no alignment");
  out.tensors_in_pools = TW_TRY(TW_TRY(field.at("tensors_in_pools")).flag());
  const Field pools = TW_TRY(field.at("pools"));
  for (const Field& f : TW_TRY(pools.list())) {
    LibraryPool pool;
    pool.name = TW_TRY(TW_TRY(f.at("name")).text());
    pool.member = TW_TRY(TW_TRY(f.at("member")).name_in_c());
    pool.bytes = TW_TRY(TW_TRY(f.at("bytes")).bytes());
    pool.constant = TW_TRY(TW_TRY(f.at("constant")).flag());
    out.pools.push_back(std::move(pool));
  }
  out.inputs = TW_TRY(read_tensors(TW_TRY(field.at("inputs")), out.packed));
  out.outputs = TW_TRY(read_tensors(TW_TRY(field.at("outputs")), out.packed));
  return out;
}

Result<LibraryModel> read_model(const std::string& name, const Field& field) {
  LibraryModel out;
  out.name = name;
  out.targets = TW_TRY(TW_TRY(field.at("target")).texts());
  out.executors = TW_TRY(TW_TRY(field.at("executors")).texts());
  const Field functions = TW_TRY(TW_TRY(field.at("memory")).at("functions"));
  const Field main = TW_TRY(functions.at("main"));
  for (const Field& f : TW_TRY(main.list())) {  // one per device
    out.workspace += TW_TRY(TW_TRY(f.at("workspace_size_bytes")).bytes());
    out.constants += TW_TRY(TW_TRY(f.at("constants_size_bytes")).bytes());
    out.io += TW_TRY(TW_TRY(f.at("io_size_bytes")).bytes());
  }
  out.has_interface = field.has("interface");
  if (out.has_interface) out.interface = TW_TRY(read_interface(TW_TRY(field.at("interface"))));
  return out;
}

// The path without "./". It must stay inside the archive and be a valid file name.
Result<std::string> path_inside(const std::string& name) {
  std::string path = name.starts_with("./") ? name.substr(2) : name;
  const bool out =
      path.starts_with('/') || path.find('\\') != std::string::npos || path.find('\n') != std::string::npos;
  bool up = false;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    up |= path.compare(at, end - at, "..") == 0;
    at = end + 1;
  }
  if (out || up) return damaged_library(format("a member's path, '{}', leads out of it", name));
  return path;
}

}  // namespace

uint64_t LibraryTensor::bytes() const {
  uint64_t n = 1;
  for (const int64_t d : shape) n *= static_cast<uint64_t>(d);
  return dtype.bytes_for(n);
}

bool ModelLibrary::has_system_lib() const {
  constexpr std::string_view kGraphExecutor = "runtime/src/runtime/crt/graph_executor/";
  const auto first = files.lower_bound(std::string(kGraphExecutor));
  return first != files.end() && first->first.starts_with(kGraphExecutor);
}

bool is_model_library(const std::vector<TarMember>& members) {
  return std::any_of(members.begin(), members.end(),
                     [](const TarMember& m) { return m.name == "./metadata.json" || m.name == "metadata.json"; });
}

Result<ModelLibrary> read_model_library(const std::vector<TarMember>& members) {
  ModelLibrary out;
  for (const TarMember& m : members) {
    if (m.name.ends_with('/')) continue;
    const std::string path = TW_TRY(path_inside(m.name));
    if (!out.files.emplace(path, m.bytes).second) return damaged_library(format("'{}' is there twice", path));
  }
  const auto metadata = out.files.find("metadata.json");
  if (metadata == out.files.end()) return damaged_library("it has no metadata.json");
  const json parsed = json::parse(metadata->second, nullptr, false);
  if (!parsed.is_object()) return damaged_library("metadata.json is no JSON object");
  const auto version = parsed.find("version");
  if (version == parsed.end() || !version->is_number_integer())
    return damaged_library("metadata.json does not say its version");
  out.version = version->get<int64_t>();
  if (out.version != kReadVersion)
    return Diagnostic(
        ErrorCode::kArtifactVersion,
        format("the Model Library Format has version {}, and {} is what is read", out.version, kReadVersion), {},
        "write it with a version of the compiler that belongs to this one");
  if (const auto style = parsed.find("style"); style != parsed.end() && *style == "operator") {
    out.functions_of = TW_TRY(TW_TRY(Field(parsed, "metadata").at("model_name")).text());
    return out;
  }
  const auto modules = parsed.find("modules");
  if (modules == parsed.end() || !modules->is_object()) return damaged_library("metadata.json lists no modules");
  for (const auto& [name, value] : modules->items())
    out.models.push_back(TW_TRY(read_model(name, Field(value, "modules." + name))));
  return out;
}

}  // namespace tilewright::driver
