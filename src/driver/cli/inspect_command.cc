// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "driver/cli/commands.h"
#include "frontend/onnx/proto.h"
#include "runtime/artifact.h"
#include "runtime/vm/specialized.h"

namespace tilewright::driver {
namespace {
using nlohmann::json;

const char* space_name(plan::Space space) {
  switch (space) {
    case plan::Space::kArena:
      return "arena";
    case plan::Space::kParams:
      return "weights";
    case plan::Space::kInput:
      return "input";
    case plan::Space::kOutput:
      return "output";
    case plan::Space::kScratch:
      return "scratch";
  }
  return "";
}

const char* step_kind(plan::StepKind kind) {
  switch (kind) {
    case plan::StepKind::kKernel:
      return "kernel";
    case plan::StepKind::kExternal:
      return "external";
    case plan::StepKind::kCopy:
      return "copy";
  }
  return "";
}

json tensor_json(const plan::TensorInfo& t) { return {{"name", t.name}, {"dtype", t.dtype.str()}, {"shape", t.shape}}; }

// A VM program: its inputs, what its functions call, and the bytecode.
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

Result<json> inspect_artifact(const std::string& path) {
  auto artifact = TW_TRY(runtime::Artifact::load(path));
  if (auto program = TW_TRY(runtime::vm::program_of(*artifact))) return program_json(*program, artifact->plan());
  const auto& plan = artifact->plan();
  json j{{"kind", "artifact"},
         {"model", plan.model_name},
         {"compiler", plan.compiler_version},
         {"target", plan.target},
         {"cpu_features", plan.cpu_features},
         {"arena_bytes", plan.arena_bytes},
         {"weights_bytes", plan.params_bytes},
         {"kernels", plan.kernels.size()}};
  for (const auto& t : plan.inputs) j["inputs"].push_back(tensor_json(t));
  for (const auto& t : plan.outputs) j["outputs"].push_back(tensor_json(t));
  for (const auto& variant : plan.variants) {
    json tensors{{"arena_bytes", variant.arena_bytes}, {"steps", variant.steps.size()}};
    for (const auto& t : variant.inputs) tensors["inputs"].push_back(tensor_json(t));
    for (const auto& t : variant.outputs) tensors["outputs"].push_back(tensor_json(t));
    j["variants"].push_back(std::move(tensors));
  }
  if (!plan.externals.empty()) j["externals"] = plan.externals;
  if (plan.devices.size() > 1) j["devices"] = plan.devices;
  if (!plan.device_arena_bytes.empty()) j["device_arena_bytes"] = plan.device_arena_bytes;
  j["steps"] = json::array();
  for (const auto& s : plan.steps) {
    json buffers = json::array();
    for (uint32_t b : s.buffers) {
      const auto& x = plan.buffers[b];
      buffers.push_back({{"name", x.name},
                         {"space", space_name(x.space)},
                         {"offset", x.offset},
                         {"bytes", x.bytes},
                         {"dtype", x.dtype.str()},
                         {"shape", x.shape},
                         {"layout", x.layout}});
      if (plan.devices.size() > 1) buffers.back()["device"] = plan.devices[x.device];
    }
    j["steps"].push_back({{"name", s.name},
                          {"kind", step_kind(s.kind)},
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

Result<json> inspect_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Diagnostic(ErrorCode::kFileNotFound, format("'{}' cannot be read", path));
  char head[8] = {};
  file.read(head, sizeof head);
  std::string_view magic(head, static_cast<size_t>(file.gcount()));
  if (magic.substr(0, 4) ==
      "\x7f"
      "ELF")
    return inspect_artifact(path);
  if (!magic.empty() && magic[0] == '{') {
    file.seekg(0);
    auto parsed = json::parse(file, nullptr, false);
    if (parsed.is_discarded()) return Diagnostic(ErrorCode::kParseError, "the file is not valid JSON", path);
    json keys = json::array();
    for (const auto& [key, value] : parsed.items()) keys.push_back({{"key", key}, {"size", value.size()}});
    return json{{"kind", "json"}, {"keys", keys}};
  }
  return inspect_onnx(path);
}

// A few lines for people: the JSON's scalars, then inputs, outputs, the memory and the largest steps.
void print(const json& j) {
  for (const auto& [key, value] : j.items())
    if (value.is_primitive() && key != "bytecode" && key != "constants")
      std::printf("%-14s %s\n", key.c_str(),
                  value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
  for (const char* list : {"inputs", "outputs"})
    if (j.contains(list))
      for (const auto& t : j[list])
        std::printf("%-14s %s\n", std::string(list).substr(0, std::string(list).size() - 1).c_str(),
                    t.contains("type")
                        ? (t["name"].get<std::string>() + ": " + t["type"].get<std::string>()).c_str()
                        : format("{}: {} {}", t["name"].get<std::string>(), t["dtype"].get<std::string>(),
                                 runtime::vm::free_shape_str(t["shape"].get<std::vector<int64_t>>()))
                              .c_str());
  if (j.contains("regions")) {
    for (size_t i = 0; i < j["regions"].size(); ++i) {
      const auto& r = j["regions"][i];
      std::string inputs;
      for (const auto& name : r["inputs"]) inputs += (inputs.empty() ? "" : ", ") + name.get<std::string>();
      std::string what = r.contains("function")
                             ? r["function"].get<std::string>()
                             : format("{}, {} bytes", r["format"].get<std::string>(), r["bytes"].get<uint64_t>());
      std::replace(what.begin(), what.end(), '\n', ' ');
      std::printf("%4zu %-24s (%s) %s\n", i, r["name"].get<std::string>().c_str(), inputs.c_str(), what.c_str());
    }
    std::printf("\n%s%s", j["constants"].get<std::string>().c_str(), j["bytecode"].get<std::string>().c_str());
  }
  if (j.contains("devices")) std::printf("%-14s %s\n", "device types", j["devices"].dump().c_str());
  if (j.contains("variants"))
    for (const auto& variant : j["variants"])
      for (const auto& t : variant["inputs"])
        std::printf("%-14s %s: %s %s\n", "or input", t["name"].get<std::string>().c_str(),
                    t["dtype"].get<std::string>().c_str(), shape_str(t["shape"].get<std::vector<int64_t>>()).c_str());
  if (j.contains("operators"))
    for (const auto& [op, count] : j["operators"].items()) std::printf("  %-24s %d\n", op.c_str(), count.get<int>());
  if (j.contains("steps")) {
    std::printf("\n%4s %10s %10s  %-40s %s\n", "step", "MFLOP", "KiB", "operators", "result (space offset)");
    int i = 0;
    for (const auto& s : j["steps"]) {
      std::string where;
      if (!s["buffers"].empty()) {
        const auto& b = s["buffers"].back();
        where =
            format("{} {} ({} {})", b["dtype"].get<std::string>(), shape_str(b["shape"].get<std::vector<int64_t>>()),
                   b["space"].get<std::string>(), b["offset"].get<uint64_t>());
      }
      std::printf("%4d %10.2f %10.1f  %-40s %s\n", i++, s["flops"].get<double>() / 1e6, s["bytes"].get<double>() / 1024,
                  (s["kind"] == "kernel" ? s["name"].get<std::string>()
                                         : s["kind"].get<std::string>() + " " + s["kernel"].get<std::string>())
                      .c_str(),
                  where.c_str());
    }
  }
  if (j.contains("metadata"))
    for (const auto& [key, value] : j["metadata"].items()) {
      std::string text = value.get<std::string>();
      std::replace(text.begin(), text.end(), '\n', ' ');
      std::printf("metadata       %s = %s\n", key.c_str(),
                  text.size() > 80 ? (text.substr(0, 77) + "...").c_str() : text.c_str());
    }
}

}  // namespace

Command add_inspect(CLI::App* app) {
  auto* cmd = app->add_subcommand(
      "inspect", "Show what is inside a model, an artifact or a JSON file: types, sizes, the memory plan");
  auto file = std::make_shared<std::string>();
  auto as_json = std::make_shared<bool>(false);
  cmd->add_option("file", *file, "An .onnx model, a compiled .so, a .json")->required();
  cmd->add_flag("--json", *as_json, "Everything, as JSON");
  return [=] {
    auto j = inspect_file(*file);
    if (!j.ok()) return fail(std::move(j).error().at(*file));
    if (*as_json)
      std::printf("%s\n", j->dump(2, ' ', false, json::error_handler_t::replace).c_str());
    else
      print(*j);
    return static_cast<int>(kExitOk);
  };
}

}  // namespace tilewright::driver
