// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "driver/cli/commands.h"
#include "driver/cli/inspect_file.h"
#include "runtime/vm/program.h"

namespace tilewright::driver {
namespace {
using nlohmann::json;

std::string strings(const json& list) {
  std::string out;
  for (const auto& text : list) out += (out.empty() ? "" : ", ") + text.get<std::string>();
  return out;
}

// The models of a Model Library Format.
void print_models(const json& models) {
  for (const json& m : models) {
    std::printf("%-14s %s, for %s (%s)\n", "model", m["name"].get<std::string>().c_str(), strings(m["target"]).c_str(),
                strings(m["executors"]).c_str());
    std::printf("%-14s workspace %s, inputs and outputs %s, weights %s\n", "  bytes",
                m["workspace_bytes"].dump().c_str(), m["io_bytes"].dump().c_str(), m["constants_bytes"].dump().c_str());
    if (!m.contains("function")) continue;
    std::printf("%-14s %s (%s)\n", "  function", m["function"].get<std::string>().c_str(),
                m["interface"].get<std::string>().c_str());
    for (const char* list : {"inputs", "outputs"})
      for (const json& t : m[list])
        std::printf("  %-12s %s: %s %s\n", list[0] == 'i' ? "input" : "output", t["name"].get<std::string>().c_str(),
                    t["dtype"].get<std::string>().c_str(), shape_str(t["shape"].get<std::vector<int64_t>>()).c_str());
    if (m.contains("pools"))
      for (const json& p : m["pools"])
        std::printf("  %-12s %s: %s bytes%s\n", "pool", p["name"].get<std::string>().c_str(), p["bytes"].dump().c_str(),
                    p["constant"].get<bool>() ? " of weights" : "");
  }
}

// A summary for people: scalars, then inputs, outputs, memory and the largest steps.
void print(const json& j) {
  for (const auto& [key, value] : j.items())
    if (value.is_primitive() && key != "bytecode" && key != "constants")
      std::printf("%-14s %s\n", key.c_str(),
                  value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
  if (j.contains("instruction_sets"))
    for (const auto& set : j["instruction_sets"])
      std::printf("%-14s %s: %zu kernels%s\n", "instructions", set["name"].get<std::string>().c_str(),
                  set["kernels"].get<size_t>(),
                  set.contains("missing_cpu_features") && !set["missing_cpu_features"].empty()
                      ? (", this machine lacks " + strings(set["missing_cpu_features"])).c_str()
                      : "");
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
      const std::string inputs = strings(r["inputs"]);
      std::string what = r.contains("function")
                             ? r["function"].get<std::string>()
                             : format("{}, {} bytes", r["format"].get<std::string>(), r["bytes"].get<uint64_t>());
      std::replace(what.begin(), what.end(), '\n', ' ');
      std::printf("%4zu %-24s (%s) %s\n", i, r["name"].get<std::string>().c_str(), inputs.c_str(), what.c_str());
    }
  }
  if (j.contains("bytecode"))
    std::printf("\n%s%s", j["constants"].get<std::string>().c_str(), j["bytecode"].get<std::string>().c_str());
  if (j.contains("devices")) std::printf("%-14s %s\n", "device types", j["devices"].dump().c_str());
  if (j.contains("variants"))
    for (const auto& variant : j["variants"])
      for (const auto& t : variant["inputs"])
        std::printf("%-14s %s: %s %s\n", "or input", t["name"].get<std::string>().c_str(),
                    t["dtype"].get<std::string>().c_str(), shape_str(t["shape"].get<std::vector<int64_t>>()).c_str());
  if (j.contains("functions") && j["functions"].is_array())
    for (const auto& f : j["functions"])
      std::printf(
          "%-14s %s%s\n", "function", f["name"].get<std::string>().c_str(),
          f.contains("type")
              ? (": " + f["type"].get<std::string>()).c_str()
              : format("({}), {} instructions", strings(f["parameters"]), f["instructions"].get<size_t>()).c_str());
  if (j.contains("callable"))
    for (const auto& f : j["callable"]) std::printf("%-14s %s\n", "function", f.get<std::string>().c_str());
  if (j.contains("members"))
    for (const auto& m : j["members"])
      std::printf("%-14s %s, %s bytes\n", "member", m["name"].get<std::string>().c_str(), m["bytes"].dump().c_str());
  if (j.contains("models")) print_models(j["models"]);
  if (j.contains("library")) print(j["library"]);
  if (j.contains("missing_cpu_features"))
    std::printf("%-14s %s: this machine cannot run it\n", "lacks", strings(j["missing_cpu_features"]).c_str());
  if (j["kind"] == "params" || j["kind"] == "graph executor factory")
    for (const auto& w : j["weights"])
      std::printf("%10s bytes  %s: %s %s\n", w["bytes"].dump().c_str(), w["name"].get<std::string>().c_str(),
                  w["dtype"].get<std::string>().c_str(), shape_str(w["shape"].get<std::vector<int64_t>>()).c_str());
  if (j["kind"] == "json")
    for (const auto& key : j["keys"])
      std::printf("%-14s %s, %s entries\n", "key", key["key"].get<std::string>().c_str(), key["size"].dump().c_str());
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
  if (j.contains("records"))
    for (const auto& r : j["records"])
      std::printf("record         step %s: %s, %s %s, measured %.2f us\n", r["step"].dump().c_str(),
                  r["task"].get<std::string>().c_str(), r["implementation"].get<std::string>().c_str(),
                  r["configuration"].get<std::string>().c_str(), r["seconds"].get<double>() * 1e6);
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
  auto* cmd = app->add_subcommand("inspect",
                                  "Show what is inside a file: types, sizes, the memory plan. Nothing of it is run: "
                                  "libraries for other processors are "
                                  "read, too");
  auto file = std::make_shared<std::string>();
  auto as_json = std::make_shared<bool>(false);
  cmd->add_option("file", *file,
                  "An .onnx or .pt2 model, a compiled .so or .tar, .params, graph JSON, a factory record, a VM program "
                  "(.ro), a Relay "
                  "module as text or JSON")
      ->required();
  cmd->add_flag("--json", *as_json, "Everything, as JSON");
  return [=] {
    auto j = inspect_file(*file);
    if (!j.ok()) {
      Diagnostic error = std::move(j).error();
      if (error.where.find(*file) == std::string::npos)  // a position inside the file
        error.where = *file + (error.where.empty() ? "" : ": " + error.where);
      return fail(error);
    }
    if (*as_json)
      std::printf("%s\n", j->dump(2, ' ', false, json::error_handler_t::replace).c_str());
    else
      print(*j);
    return static_cast<int>(kExitOk);
  };
}

}  // namespace tilewright::driver
