// SPDX-License-Identifier: Apache-2.0
#include "driver/cli/inspect_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/formats/artifact.h"
#include "base/formats/function_table.h"
#include "base/formats/plan.h"
#include "base/formats/stackvm.h"
#include "base/formats/weights_file.h"
#include "driver/model_library_reader.h"
#include "driver/relay_file.h"
#include "driver/tuned.h"
#include "frontend/classic/graph_json_reader.h"
#include "frontend/onnx/file_map.h"
#include "frontend/onnx/proto.h"
#include "frontend/torch/archive.h"
#include "relay/classic/json.h"
#include "relay/op.h"
#include "relay/text.h"
#include "runtime/classic/factory_record.h"
#include "runtime/cpu.h"
#include "runtime/params_file.h"
#include "runtime/vm/executable.h"
#include "runtime/vm/specialized.h"

namespace tilewright::driver {
namespace {
using nlohmann::json;
namespace fs = std::filesystem;

json tensor_json(const plan::TensorInfo& t) { return {{"name", t.name}, {"dtype", t.dtype.str()}, {"shape", t.shape}}; }

// A VM program: inputs, called functions, bytecode.
json program_json(const runtime::vm::Program& program, const plan::Plan& plan) {
  json j{{"kind", "vm program"},
         {"model", plan.model_name},
         {"compiler", plan.compiler_version},
         {"target", program.target},
         {"program_bytes", plan.params_bytes},
         {"metadata", plan.metadata},
         {"bytecode", runtime::vm::bytecode_text(program.executable)},
         {"constants", runtime::vm::constants_text(program.executable)}};
  for (const auto& t : program.inputs)
    j["inputs"].push_back({{"name", t.name}, {"dtype", t.dtype.str()}, {"shape", t.shape}});
  for (const auto& name : program.outputs) j["outputs"].push_back({{"name", name}, {"type", ""}});
  for (size_t i = 0; i < program.regions.size(); ++i) {
    const auto& r = program.regions[i];
    uint64_t bytes = r.source.size();
    for (const auto& piece : r.pieces) bytes += piece.second;
    json region{
        {"name", program.executable.primitives[i]}, {"format", r.format}, {"inputs", r.inputs}, {"bytes", bytes}};
    if (r.format == "host") region["function"] = r.source;
    j["regions"].push_back(std::move(region));
  }
  return j;
}

// One of several instruction sets of a library.
Result<json> set_json(const ArtifactContents::Set& set, const ArtifactContents& contents) {
  const plan::Plan plan = TW_TRY(plan::read_plan(set.plan));
  TW_TRY_STATUS(check_artifact_plan(plan, set.kernels, contents.params.size()));
  json j{{"name", set.name},
         {"target", plan.target},
         {"cpu_features", plan.cpu_features},
         {"kernels", plan.kernels.size()},
         {"steps", plan.steps.size()},
         {"arena_bytes", plan.arena_bytes}};
  if (contents.machine == this_elf_machine())
    j["missing_cpu_features"] = runtime::missing_cpu_features(plan.cpu_features);
  return j;
}

// For any machine: the library is not loaded.
Result<json> inspect_artifact(std::span<const std::byte> file) {
  const ArtifactContents contents = TW_TRY(read_artifact_file(file));
  const plan::Plan plan = TW_TRY(plan::read_plan(contents.plan));
  TW_TRY_STATUS(check_artifact_plan(plan, contents.kernels, contents.params.size()));
  if (auto program = TW_TRY(runtime::vm::program_of(plan, contents.params.data()))) return program_json(*program, plan);
  json j{{"kind", "artifact"},
         {"machine", contents.machine == 0 ? "byte code" : elf_machine_name(contents.machine)},
         {"model", plan.model_name},
         {"compiler", plan.compiler_version},
         {"target", plan.target},
         {"cpu_features", plan.cpu_features},
         {"arena_bytes", plan.arena_bytes},
         {"weights_bytes", plan::weight_bytes(plan)},
         {"kernels", plan.kernels.size()}};
  for (const auto& set : contents.sets) j["instruction_sets"].push_back(TW_TRY(set_json(set, contents)));
  if (!plan.weights_file.empty()) j["weights_file"] = plan.weights_file;
  for (const auto& t : plan.inputs) j["inputs"].push_back(tensor_json(t));
  for (const auto& t : plan.outputs) j["outputs"].push_back(tensor_json(t));
  for (const auto& variant : plan.variants) {
    json tensors{{"arena_bytes", variant.arena_bytes}, {"steps", variant.steps.size()}, {"inputs", json::array()}};
    for (const auto& t : variant.inputs) tensors["inputs"].push_back(tensor_json(t));
    for (const auto& t : variant.outputs) tensors["outputs"].push_back(tensor_json(t));
    j["variants"].push_back(std::move(tensors));
  }
  if (!plan.externals.empty()) j["externals"] = plan.externals;
  std::vector<std::string> least = plan.cpu_features;
  if (!contents.sets.empty()) j["instruction_sets"].back()["cpu_features"].get_to(least);
  if (const auto missing = runtime::missing_cpu_features(least);
      contents.machine == this_elf_machine() && !missing.empty())
    j["missing_cpu_features"] = missing;
  if (const size_t imports = plan.imports.size() + contents.imports.size()) j["imported_modules_bytes"] = imports;
  if (plan.devices.size() > 1) j["devices"] = plan.devices;
  if (!plan.device_arena_bytes.empty()) j["device_arena_bytes"] = plan.device_arena_bytes;
  j["steps"] = json::array();
  for (const auto& s : plan.steps) {
    json buffers = json::array();
    for (uint32_t b : s.buffers) {
      const auto& x = plan.buffers[b];
      buffers.push_back({{"name", x.name},
                         {"space", plan::name_of(x.space)},
                         {"offset", x.offset},
                         {"bytes", x.bytes},
                         {"dtype", x.dtype.str()},
                         {"shape", x.shape},
                         {"layout", x.layout}});
      if (plan.devices.size() > 1) buffers.back()["device"] = plan.devices[x.device];
    }
    j["steps"].push_back({{"name", s.name},
                          {"kind", plan::name_of(s.kind)},
                          {"kernel", plan::callee_of(plan, s)},
                          {"source", s.source},
                          {"flops", s.flops},
                          {"bytes", s.bytes},
                          {"predicted_us", s.predicted_us},
                          {"parallel", s.parallel},
                          {"implementation", s.implementation},
                          {"buffers", buffers}});
  }
  j["weights"] = json::array();
  for (const auto& p : plan.params)
    j["weights"].push_back(
        {{"name", p.name}, {"dtype", p.dtype.str()}, {"shape", p.shape}, {"offset", p.offset}, {"bytes", p.bytes}});
  j["metadata"] = plan.metadata;
  if (auto table = plan.metadata.find(plan::kFunctionsKey); table != plan.metadata.end()) {
    j["metadata"].erase(plan::kFunctionsKey);
    for (const plan::Function& f : TW_TRY(plan::read_functions(table->second, plan.kernels.size())))
      j["callable"].push_back(plan::to_text(f));
  }
  if (auto records = read_record_notes(plan); !records.empty()) {
    j["records"] = std::move(records);
    j["metadata"].erase(kTuningKey);
  }
  return j;
}

Result<json> inspect_onnx(const std::string& path) {
  auto model = TW_TRY(onnx::read_model(path));
  json j{{"kind", "onnx"},
         {"producer", model.producer},
         {"ir_version", model.ir_version},
         {"nodes", model.graph.nodes.size()},
         {"functions", model.functions.size()}};
  for (const auto& [domain, version] : model.opsets) j["opsets"][domain.empty() ? "ai.onnx" : domain] = version;
  std::map<std::string, int> counts;
  for (const auto& node : model.graph.nodes) ++counts[node.op_type];
  j["operators"] = counts;
  uint64_t bytes = 0;
  for (const auto& t : model.graph.initializers) bytes += t.data.dtype().is_string() ? 0 : t.data.bytes();
  j["weights_bytes"] = bytes;
  for (const auto& v : model.graph.inputs) j["inputs"].push_back({{"name", v.name}, {"type", v.type.str()}});
  for (const auto& v : model.graph.outputs) j["outputs"].push_back({{"name", v.name}, {"type", v.type.str()}});
  j["metadata"] = model.metadata;
  return j;
}

std::string size_text(const torch::Size& size) { return size.value ? std::to_string(*size.value) : size.expression; }

Result<json> inspect_torch(const onnx::SharedBytes& bytes) {
  const torch::Program program = TW_TRY(torch::read_archive(bytes));
  json j{{"kind", "torch exported program"},
         {"torch_version", program.torch_version},
         {"schema_version", format("{}.{}", program.schema_major, program.schema_minor)},
         {"nodes", program.graph.nodes.size()}};
  std::map<std::string, int> counts;
  for (const torch::Node& node : program.graph.nodes) ++counts[node.target];
  j["operators"] = counts;
  uint64_t weights = 0;
  for (const auto& [name, tensor] : program.weights) weights += tensor.bytes();
  j["weights_bytes"] = weights;
  auto type_of = [&](const std::string& name) {
    auto it = program.graph.tensors.find(name);
    if (it == program.graph.tensors.end()) return std::string("computed");
    std::string type = it->second.dtype.str() + "[";
    for (size_t i = 0; i < it->second.sizes.size(); ++i) type += (i ? "," : "") + size_text(it->second.sizes[i]);
    return type + "]";
  };
  for (const torch::InputSpec& input : program.inputs)
    if (input.kind == torch::InputSpec::kUser)
      j["inputs"].push_back({{"name", input.name}, {"type", type_of(input.name)}});
  for (const auto& output : program.outputs) {
    j["outputs"].push_back({{"name", output.value.text}, {"type", type_of(output.value.text)}});
    if (!output.target.empty()) j["outputs"].back()["changes"] = output.target;
  }
  for (const auto& [symbol, range] : program.ranges) {
    json& r = j["sizes"][symbol] = json::object();
    if (range.least) r["least"] = *range.least;
    if (range.most) r["most"] = *range.most;
  }
  return j;
}

void add_weights(const std::vector<runtime::NamedTensor>& tensors, json* out) {
  uint64_t bytes = 0;
  json& list = (*out)["weights"] = json::array();
  for (const auto& t : tensors) {
    bytes += t.data.size();
    list.push_back({{"name", t.name}, {"dtype", t.dtype.str()}, {"shape", t.shape}, {"bytes", t.data.size()}});
  }
  (*out)["weights_bytes"] = bytes;
}

// Reads all tensors, so that the list matches the content.
Result<json> inspect_weights(std::span<const std::byte> file) {
  const WeightsList list = TW_TRY(read_weights_list(file));
  TW_TRY_STATUS(check_weights_content(file, list));
  json j{{"kind", "weights"}, {"tensors", list.weights.size()}, {"weights", json::array()}};
  uint64_t bytes = 0;
  for (const StoredWeight& w : list.weights) {
    bytes += w.bytes;
    j["weights"].push_back({{"offset", w.offset}, {"bytes", w.bytes}, {"hash", format("{:016x}", w.hash)}});
  }
  j["weights_bytes"] = bytes;
  return j;
}

Result<json> inspect_params(std::span<const std::byte> file) {
  const auto tensors = TW_TRY(runtime::read_params_file(file));
  json j{{"kind", "params"}, {"tensors", tensors.size()}};
  add_weights(tensors, &j);
  return j;
}

Result<json> inspect_executable(std::span<const std::byte> file) {
  const auto executable = TW_TRY(runtime::vm::read_executable(file));
  json j{{"kind", "vm executable"},
         {"layout", executable.version},
         {"packed_functions", executable.primitives},
         {"bytecode", runtime::vm::bytecode_text(executable)},
         {"constants", runtime::vm::constants_text(executable)}};
  for (const auto& f : executable.functions)
    j["functions"].push_back({{"name", f.name}, {"parameters", f.params}, {"instructions", f.code.size()}});
  return j;
}

json inspect_module(const relay::Module& module, const char* kind) {
  json j{{"kind", kind}, {"functions", json::array()}};
  std::map<std::string, int> counts;
  std::map<const relay::ExprNode*, uint64_t> constants;
  uint64_t bytes = 0;
  for (const auto& [name, function] : module.functions) {
    j["functions"].push_back({{"name", name}, {"type", type_str(function->type)}});
    for (const relay::Expr& e : relay::post_order(function, true)) {
      if (const relay::OpDef* op = relay::called_op(e)) ++counts[op->name];
      const auto* constant = relay::as<relay::ConstantNode>(e);
      if (constant && constants.emplace(e.get(), 0).second && !constant->data.dtype().is_string())
        bytes += static_cast<uint64_t>(constant->data.bytes());
    }
  }
  j["operators"] = counts;
  j["constants_count"] = constants.size();
  j["weights_bytes"] = bytes;
  if (const relay::Expr main = module.functions.count("main") ? module.main() : relay::Expr(); main) {
    const auto* function = relay::as<relay::FunctionNode>(main);
    for (const relay::Expr& p : function ? function->params : std::vector<relay::Expr>())
      j["inputs"].push_back({{"name", relay::as<relay::VarNode>(p)->name}, {"type", type_str(p->type)}});
    if (function) j["outputs"].push_back({{"name", "result"}, {"type", type_str(function->body->type)}});
  }
  j["metadata"] = module.metadata;
  return j;
}

json graph_json(const frontend::GraphJson& graph) {
  auto tensor = [&](const frontend::GraphJson::Entry& e) {
    std::string type = graph.dtypes[graph.entry(e)] + "[";
    for (int64_t d : graph.shapes[graph.entry(e)]) type += (type.back() == '[' ? "" : ",") + std::to_string(d);
    return json{{"name", graph.nodes[e.first].name}, {"type", type + "]"}};
  };
  json j{{"kind", "graph json"},
         {"nodes", graph.nodes.size()},
         {"storage_bytes", graph.storage_bytes()},
         {"inputs", json::array()},
         {"outputs", json::array()}};
  for (size_t node : graph.arguments) j["inputs"].push_back(tensor({node, 0}));
  for (const auto& head : graph.heads) j["outputs"].push_back(tensor(head));
  std::map<std::string, int> counts;
  for (const auto& node : graph.nodes)
    if (node.is_call) ++counts[node.attrs.at("func_name")];
  j["operators"] = counts;
  return j;
}

// A classic build without kernels: graph and parameters.
Result<json> inspect_factory(std::span<const std::byte> file) {
  const auto record = TW_TRY(runtime::read_factory_record(file, true));
  json j = graph_json(TW_TRY(frontend::read_graph_json(record.graph_json)));
  j["kind"] = "graph executor factory";
  j["model"] = record.module_name;
  add_weights(record.params, &j);
  return j;
}

Result<json> inspect_json(std::string_view text) {
  const json parsed = json::parse(text, nullptr, false);
  if (parsed.is_discarded()) return Diagnostic(ErrorCode::kParseError, "the file is not valid JSON");
  if (parsed.contains("arg_nodes")) return graph_json(TW_TRY(frontend::read_graph_json(text)));
  if (parsed.contains("root") && parsed.contains("nodes"))
    return inspect_module(TW_TRY(relay::load_json(text)), "relay json");
  json keys = json::array();
  for (const auto& [key, value] : parsed.items()) keys.push_back({{"key", key}, {"size", value.size()}});
  return json{{"kind", "json"}, {"keys", keys}};
}

json library_tensors(const std::vector<LibraryTensor>& tensors) {
  json out = json::array();
  for (const LibraryTensor& t : tensors)
    out.push_back({{"name", t.name}, {"dtype", t.dtype.str()}, {"shape", t.shape}});
  return out;
}

// A Model Library Format: each model's interface and memory use.
Status add_library(const std::vector<TarMember>& members, json* out) {
  const ModelLibrary library = TW_TRY(read_model_library(members));
  json& j = *out;
  j["kind"] = "model library format";
  j["version"] = library.version;
  j["models"] = json::array();
  for (const LibraryModel& m : library.models) {
    json model{{"name", m.name},           {"target", m.targets},
               {"executors", m.executors}, {"workspace_bytes", m.workspace},
               {"io_bytes", m.io},         {"constants_bytes", m.constants}};
    if (m.has_interface) {
      const LibraryInterface& f = m.interface;
      model["function"] = f.prefix + "_run";
      model["interface"] = f.packed ? "packed" : "c";
      model["inputs"] = library_tensors(f.inputs);
      model["outputs"] = library_tensors(f.outputs);
      for (const LibraryPool& pool : f.pools)
        model["pools"].push_back({{"name", pool.name}, {"bytes", pool.bytes}, {"constant", pool.constant}});
    }
    j["models"].push_back(std::move(model));
  }
  return Ok{};
}

// A package (`compile -o model.tar`) or a Model Library Format: its members, and its library's content.
Result<json> inspect_package(std::span<const std::byte> file) {
  const std::vector<TarMember> members = TW_TRY(read_tar(file));
  json j{{"kind", "package"}, {"members", json::array()}};
  for (const TarMember& m : members) {
    if (!m.name.ends_with('/')) j["members"].push_back({{"name", m.name}, {"bytes", m.bytes.size()}});
    if (m.name.ends_with(".so")) j["library"] = TW_TRY(inspect_artifact(std::as_bytes(std::span(m.bytes))));
  }
  if (is_model_library(members)) TW_TRY_STATUS(add_library(members, &j));
  return j;
}

// Advice for a folder, depending on its content.
std::string advice_for_folder(const fs::path& folder) {
  std::error_code ignored;
  std::vector<std::string> files, models;  // inspectable files; folders with a model.onnx
  bool empty = true;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    empty = false;
    if (fs::exists(entry.path() / "model.onnx", ignored)) models.push_back(entry.path().string());
    const std::string ending = entry.path().extension().string();
    for (const char* known : {".onnx", ".so", ".tar", ".params", ".ro", ".json", ".relay", ".txt"})
      if (ending == known && entry.is_regular_file(ignored)) files.push_back(entry.path().string());
  }
  if (empty) return "the folder is empty: name a file";
  std::sort(files.begin(), files.end());
  std::sort(models.begin(), models.end());
  const std::string path = folder.string();
  if (fs::exists(folder / "model.onnx", ignored) && fs::exists(folder / "test_data_set_0", ignored))
    return format("it is an ONNX test case: inspect {}, or run it with 'tilewright verify {}'",
                  (folder / "model.onnx").string(), path);
  if (!models.empty())
    return format(
        "it holds {} folder{} with a model: inspect {}/model.onnx, or run test cases with 'tilewright verify {}'",
        models.size(), models.size() == 1 ? "" : "s", models[0], path);
  if (files.empty()) return "nothing in it can be inspected by its name: name a file";
  std::string list;
  for (size_t i = 0; i < std::min<size_t>(files.size(), 3); ++i) list += (i ? ", " : "") + files[i];
  return format("name a file in it: {}{}", list, files.size() > 3 ? format(" or {} more", files.size() - 3) : "");
}

}  // namespace

Result<json> inspect_file(const std::string& path) {
  if (std::error_code ignored; fs::is_directory(path, ignored))
    return Diagnostic(ErrorCode::kFileNotFound, "this is a folder, not a file", path, advice_for_folder(path));
  const onnx::SharedBytes mapped = TW_TRY(onnx::map_file(path));
  const auto bytes = mapped.bytes;
  const std::string_view file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  // .params and .ro files begin with distinctive eight bytes; a factory record begins with its graph's length.
  uint64_t mark = 0;
  if (file.size() >= sizeof mark) std::memcpy(&mark, file.data(), sizeof mark);
  if (mark == runtime::kParamsMark) return inspect_params(bytes);
  if (is_weights_file(bytes)) return inspect_weights(bytes);
  if (mark == runtime::vm::kExecutableMark) return inspect_executable(bytes);
  if (file.size() > sizeof mark && mark < (uint64_t{1} << 32) && file[sizeof mark] == '{')
    return inspect_factory(bytes);
  if (file.starts_with("\x7f\x45\x4c\x46") || stackvm::is_file(bytes)) return inspect_artifact(bytes);
  if (is_tar(file)) return inspect_package(bytes);
  if (torch::is_archive(bytes)) return inspect_torch(mapped);
  if (is_json(file)) return inspect_json(file);
  if (is_relay_text(file))
    return inspect_module(TW_TRY(relay::parse_module(file, {}, {.origin = path, .zero_missing_constants = true})),
                          "relay text");
  return inspect_onnx(path);
}

}  // namespace tilewright::driver
