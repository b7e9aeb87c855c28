// SPDX-License-Identifier: Apache-2.0
#include "driver/model_library.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/format.h"
#include "base/formats/function_table.h"
#include "base/read_whole.h"
#include "base/work_folder.h"
#include "codegen/backend.h"
#include "codegen/source/c_packed.h"
#include "driver/build.h"
#include "driver/crt_files.h"
#include "driver/function_metadata.h"
#include "driver/guarded.h"
#include "driver/tar_writer.h"
#include "relay/text.h"
#include "runtime/classic/graph_json.h"
#include "runtime/params_file.h"

namespace tilewright::driver {
namespace {

using nlohmann::json;

constexpr int kLibraryVersion = 7;

std::string name_of(const Built& built) {
  const std::string& name = built.lowered.plan.model_name;
  return name.empty() ? "default" : name;
}

std::string export_time() {
  std::time_t seconds = 0;
  if (const char* given = std::getenv("SOURCE_DATE_EPOCH"))
    std::from_chars(given, given + std::char_traits<char>::length(given), seconds);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%SZ", &parts)};
}

// The size of each storage of the graph executor, and which input it holds.
json storage_map(const std::string& graph_text) {
  const json graph = json::parse(graph_text);
  const json& attrs = graph["attrs"];
  std::map<int, json> storages;
  for (size_t node = 0; node < graph["nodes"].size(); ++node) {
    const size_t begin = graph["node_row_ptr"][node], end = graph["node_row_ptr"][node + 1];
    for (size_t entry = begin; entry < end; ++entry) {
      const int id = attrs["storage_id"][1][entry];
      uint64_t bits = 1;
      for (const json& d : attrs["shape"][1][entry]) bits *= d.get<uint64_t>();
      auto type = parse_dtype(attrs["dltype"][1][entry].get<std::string>());
      bits *= type.ok() ? static_cast<uint64_t>(type->bits) * type->lanes : 8;
      auto [it, fresh] = storages.try_emplace(id, json{{"storage_id", id}, {"size_bytes", (bits + 7) / 8}});
      if (!fresh) it->second["size_bytes"] = std::max(it->second["size_bytes"].get<uint64_t>(), (bits + 7) / 8);
      const json& arguments = graph["arg_nodes"];
      if (std::find(arguments.begin(), arguments.end(), json(node)) != arguments.end())
        it->second["input_binding"] = graph["nodes"][node]["name"];
    }
  }
  json out = json::array();
  for (auto& [id, entry] : storages) out.push_back(std::move(entry));
  return out;
}

// For programs the sum of the pools, since the plan's arena is rounded to cache lines.
uint64_t workspace_of(const Built& built, const FunctionMetadata& main) {
  if (!built.ahead_of_time) return main.workspace;
  uint64_t bytes = 0;
  for (const lower::PlacedPool& pool : built.lowered.pools) bytes += static_cast<uint64_t>(pool.bytes);
  return bytes;
}

// Without what lies between weights: in the C runtime each has its own memory.
uint64_t constants_of(const Built& built, const FunctionMetadata& main) {
  if (!built.graph_in_c) return main.constants;
  uint64_t bytes = 0;
  for (const plan::Param& p : built.lowered.plan.params) bytes += p.bytes;
  return bytes;
}

json memory_map(const Built& built) {
  json functions{{"operator_functions", json::array()}, {"main", json::array()}};
  for (const FunctionMetadata& f : function_metadata(built.lowered)) {
    if (f.name == "__tvm_main__") {
      functions["main"].push_back({{"device", f.device},
                                   {"workspace_size_bytes", workspace_of(built, f)},
                                   {"constants_size_bytes", constants_of(built, f)},
                                   {"io_size_bytes", f.io}});
    } else {
      const json use{{"device", f.device}, {"workspace_size_bytes", f.workspace}};
      functions["operator_functions"].push_back({{"function_name", f.name}, {"workspace", json::array({use})}});
    }
  }
  json memory{{"functions", std::move(functions)}};
  if (!built.ahead_of_time) memory["sids"] = storage_map(runtime::write_graph_json(built.lowered.plan));
  return memory;
}

json tensors_json(const std::vector<plan::TensorInfo>& tensors, const std::vector<std::string>& members, bool packed) {
  json out = json::array();
  for (size_t i = 0; i < tensors.size(); ++i)
    out.push_back({{"name", tensors[i].name},
                   {"member", packed ? "" : members[i]},
                   {"dtype", tensors[i].dtype.str()},
                   {"shape", tensors[i].shape}});
  return out;
}

// Additions to the classic metadata: the model's C interface, for program generators.
Result<json> interface_json(const Built& built) {
  const codegen::CInterface f = TW_TRY(ahead_of_time_interface(built));
  json pools = json::array();
  if (!f.own_workspace)
    for (const codegen::CPool& pool : f.pools)
      pools.push_back({{"name", pool.name}, {"member", pool.member}, {"bytes", pool.bytes}, {"constant", false}});
  for (const codegen::CConstantPool& pool : f.constants)
    pools.push_back({{"name", pool.name}, {"member", pool.member}, {"bytes", pool.bytes}, {"constant", true}});
  const plan::Plan& plan = built.lowered.plan;
  return json{{"api", f.packed ? "packed" : "c"},
              {"header", f.packed ? "" : f.header},
              {"prefix", f.prefix},
              {"alignment", f.alignment},
              {"tensors_in_pools", f.tensors_in_pools()},
              {"pools", std::move(pools)},
              {"inputs", tensors_json(plan.inputs, f.inputs, f.packed)},
              {"outputs", tensors_json(plan.outputs, f.outputs, f.packed)}};
}

Result<json> metadata_of(const Built& built) {
  json out{{"model_name", name_of(built)},
           {"export_datetime", export_time()},
           {"memory", memory_map(built)},
           {"target", json::array({built.target.str()})},
           {"executors", json::array({built.ahead_of_time ? "aot" : "graph"})},
           {"style", "full-model"},
           {"external_dependencies", json::array()}};
  if (built.graph_in_c || built.ahead_of_time)  // the latter for sessions
    out["external_dependencies"].push_back({{"short_name", "tvm_standalone_crt"},
                                            {"url", "./runtime"},
                                            {"url_type", "mlf_path"},
                                            {"version_spec", built.lowered.plan.compiler_version}});
  if (built.ahead_of_time) out["interface"] = TW_TRY(interface_json(built));
  return out;
}

// The code of a model for the graph executor: packed functions for that of the C runtime, an object with the plan for
// the runtime, or one C file.
Result<Files> graph_files(const Built& built, bool alone) {
  const std::string name = name_of(built);
  Files files;
  if (built.graph_in_c) {
    files = TW_TRY(graph_in_c_files(built, alone));
  } else if (codegen::backend_of(built.target).makes_source()) {
    files.emplace_back(format("codegen/host/src/{}_lib0.c", name), TW_TRY(source_of(built)));
  } else {
    const WorkFolder folder = TW_TRY(WorkFolder::temporary("tilewright-library"));
    TW_TRY(export_objects(built, folder.path(), true));
    files.emplace_back(format("codegen/host/lib/{}_lib0.o", name), TW_TRY(read_whole(folder.path() + "/lib0.o")));
  }
  files.emplace_back(format("executor-config/graph/{}.graph", name), runtime::write_graph_json(built.lowered.plan));
  return files;
}

// The C runtime in a Model Library Format: what the graph executor needs, or, without it, what serves ahead-of-time
// models to sessions.
void add_runtime(bool graph, Files* files) {
  for (const CrtFile& file : crt_files()) {
    const bool of_graphs = file.path.starts_with("src/graph_executor/"),
               common = file.path.starts_with("include/") || file.path.starts_with("src/common/") ||
                        file.path == "src/page_allocator.c";
    if (common || (graph ? of_graphs : file.path.starts_with("src/") && !of_graphs))
      files->emplace_back("runtime/" + classic_crt_path(file.path), std::string(file.bytes));
  }
}

Status add_model(const Built& built, bool alone, std::map<std::string, std::string>* members) {
  const std::string name = name_of(built);
  // C source of external code generators is a file of it; nothing else has a place.
  const bool for_c = built.ahead_of_time || built.graph_in_c;
  if (!for_c && (!built.lowered.plan.imports.empty() || !built.lowered.externals.empty()))
    return Diagnostic(ErrorCode::kUnsupportedModel,
                      format("model '{}' imports modules of an external code generator, which a Model Library Format "
                             "has a place for in programs for the C runtime only",
                             name),
                      {},
                      "build with Runtime(\"crt\"), compile without the external code generator, or export a library");
  Files files = TW_TRY(built.ahead_of_time ? ahead_of_time_files(built) : graph_files(built, alone));
  const bool in_code = built.ahead_of_time || (built.graph_in_c && built.graph_in_c->link_params);
  files.emplace_back(format("parameters/{}.params", name),
                     in_code ? runtime::write_params_file({}) : params_file(built.lowered.plan, built.lowered.params));
  if (for_c) add_runtime(!built.ahead_of_time, &files);
  if (!built.imported.functions.empty())
    files.emplace_back(format("src/{}.relay", name), relay::print_module(built.imported).text);
  for (auto& [path, bytes] : files) (*members)["./" + path] = std::move(bytes);
  return Ok{};
}

Status write_members(std::map<std::string, std::string> members, const json& metadata, const std::string& path) {
  members["./metadata.json"] = metadata.dump(2);
  std::set<std::string> folders;
  for (const auto& [name, bytes] : members)
    for (size_t at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1))
      folders.insert(name.substr(0, at + 1));
  const WorkFolder folder = TW_TRY(WorkFolder::beside(path));
  const std::string made = folder.path() + "/library";
  std::ofstream out(made, std::ios::binary);
  TarWriter tar(out);
  for (const std::string& name : folders) tar.add_folder(name);
  for (const auto& [name, bytes] : members) tar.add(name, bytes);
  tar.finish();
  out.close();
  if (!out) return cannot_write(path, "no space, or the folder vanished");
  std::error_code error;
  std::filesystem::rename(made, path, error);
  if (error) return cannot_write(path, error.message());
  return Ok{};
}

// The arguments of each function as the classic operator style lists them.
Result<json> function_memory(const std::vector<plan::Function>& functions) {
  json memory = json::object();
  for (const plan::Function& f : functions) {
    if (!f.sizes.empty() || !f.calls.empty() || f.returns() || f.tensors.size() != f.arguments.size())
      return Diagnostic(ErrorCode::kUnsupportedModel,
                        format("the function '{}' has {}, which the C runtime's functions have not", f.name,
                               f.returns()       ? "a result"
                               : f.calls.empty() ? "sizes that a call gives"
                                                 : "calls of other functions"),
                        {}, "give its tensors fixed shapes");
    json arguments = json::array();
    for (const plan::FunctionArgument& a : f.arguments) {
      json shape = json::array();
      uint64_t count = 1;
      for (const plan::SizeProgram& extent : a.shape) {
        shape.push_back(plan::evaluate(extent, {}).value_or(0));
        count *= shape.back().get<uint64_t>();
      }
      arguments.push_back({{"size_bytes", a.dtype.bytes_for(count)},
                           {"shape", std::move(shape)},
                           {"dtype", a.dtype.str()},
                           {"input_binding", a.name}});
    }
    memory[f.name] = std::move(arguments);
  }
  return memory;
}

}  // namespace

std::string classic_crt_path(std::string_view path) {
  if (path.starts_with("include/")) return std::string(path);
  if (!path.starts_with("src/")) return {};
  const std::string_view file = path.substr(4);
  const std::pair<std::string_view, const char*> parts[] = {{"page_allocator.c", "memory/"},
                                                            {"stack_allocator.c", "memory/"},
                                                            {"aot_executor.c", "aot_executor/"},
                                                            {"rpc_common.c", "microtvm_rpc_common/"},
                                                            {"rpc_server.c", "microtvm_rpc_server/"}};
  const auto* part = std::find_if(std::begin(parts), std::end(parts), [&](const auto& p) { return p.first == file; });
  return format("src/runtime/crt/{}{}", part == std::end(parts) ? "" : part->second, file);
}

Status write_function_library(const Built& functions, const std::string& loops, const std::string& path) {
  return guarded([&]() -> Status {
    const plan::Plan& plan = functions.lowered.plan;
    const auto table = plan.metadata.find(plan::kFunctionsKey);
    if (table == plan.metadata.end())
      return Diagnostic(ErrorCode::kInvalidArgument, "the library has no functions of tensors", path, "build some");
    const auto list = TW_TRY(plan::read_functions(table->second, plan.kernels.size()));
    json memory = TW_TRY(function_memory(list));
    const json metadata{{"version", kLibraryVersion},
                        {"model_name", name_of(functions)},
                        {"export_datetime", export_time()},
                        {"memory", std::move(memory)},
                        {"target", json::array({functions.target.str()})},
                        {"executors", json::array()},
                        {"style", "operator"}};
    const bool source = codegen::backend_of(functions.target).makes_source();
    Files files;
    files.emplace_back(source ? "codegen/host/src/lib1.c" : "codegen/host/lib/lib0.o",
                       TW_TRY(graph_in_c_kernels(functions)));
    files.emplace_back("codegen/host/src/lib0.c", codegen::c_packed_functions(plan, list));
    files.emplace_back("src/tir-1.txt", loops);
    add_runtime(true, &files);
    std::map<std::string, std::string> members;
    for (auto& [name, bytes] : files) members["./" + name] = std::move(bytes);
    return write_members(std::move(members), metadata, path);
  });
}

Status write_model_library(std::span<const Built* const> models, const std::string& path) {
  return guarded([&]() -> Status {
    std::map<std::string, std::string> members;
    json modules = json::object();
    std::vector<const Built*> graphs;
    for (const Built* built : models)
      if (built->graph_in_c) graphs.push_back(built);
    for (const Built* built : models) {
      const std::string name = name_of(*built);
      if (modules.contains(name))
        return Diagnostic(ErrorCode::kInvalidArgument, format("two models are called '{}'", name), path,
                          "build them under different names (mod_name)");
      modules[name] = TW_TRY(metadata_of(*built));
      TW_TRY_STATUS(add_model(*built, graphs.size() < 2, &members));
    }
    if (graphs.size() > 1)
      for (auto& [name, bytes] : system_lib_of(graphs)) members["./" + name] = std::move(bytes);
    const json metadata{{"version", kLibraryVersion}, {"modules", std::move(modules)}};
    return write_members(std::move(members), metadata, path);
  });
}

}  // namespace tilewright::driver
