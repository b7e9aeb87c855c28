// SPDX-License-Identifier: Apache-2.0
#include "driver/graph_in_c.h"

#include <cctype>
#include <map>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/hash.h"
#include "base/read_whole.h"
#include "base/work_folder.h"
#include "codegen/backend.h"
#include "codegen/source/c_packed.h"
#include "codegen/source/c_program.h"
#include "codegen/source/c_types.h"
#include "driver/build.h"
#include "runtime/classic/graph_json.h"

namespace tilewright::driver {
namespace {

bool kernels_are_source(const Built& built) { return codegen::backend_of(built.target).makes_source(); }

// The executor knows tensors as wholes: each argument of a call is one entry of the graph, from its start.
Status check_graph(const Built& built) {
  auto refused = [](std::string what, std::string hint) {
    return Diagnostic(ErrorCode::kUnsupportedModel, std::move(what), {}, std::move(hint));
  };
  const plan::Plan& plan = built.lowered.plan;
  if (!plan.variants.empty() || !plan.free_sizes.empty())
    return refused("the C runtime's graph executor runs a model for one set of input shapes", "give them to the build");
  if (plan.devices.size() > 1 || !built.others.empty())
    return refused("the C runtime's graph executor runs on one processor", "build for one target");
  const runtime::Graph graph = runtime::graph_of(plan);
  for (const runtime::GraphNode& node : graph.nodes) {
    if (!node.is_call) continue;
    const plan::Step& step = plan.steps[node.index];
    size_t tensors = 0;
    for (uint32_t b : step.buffers) tensors += plan.buffers[b].space != plan::Space::kScratch;
    if (node.inputs.size() + node.outputs.size() != tensors)
      return Diagnostic(ErrorCode::kInternal, format("'{}' has an argument that is no entry of the graph", step.name));
  }
  return Ok{};
}

// The storage of each parameter in the graph JSON.
std::vector<codegen::LinkedParam> linked_params(const plan::Plan& plan) {
  const auto graph = nlohmann::json::parse(runtime::write_graph_json(plan));
  std::vector<codegen::LinkedParam> out;
  for (size_t i = 0; i < plan.params.size(); ++i) {
    const size_t entry = graph["node_row_ptr"][plan.inputs.size() + i];
    out.push_back({i, graph["attrs"]["storage_id"][1][entry].get<int64_t>()});
  }
  return out;
}

}  // namespace

lower::MemoryOptions memory_of(const GraphInC&, const Target& target) {
  lower::MemoryOptions memory;
  memory.apart = true;
  memory.exact = codegen::backend_of(target).makes_source();
  return memory;
}

void name_packed_functions(const std::string& model, lower::Lowered* lowered) {
  constexpr size_t kLongest = 80;
  const std::string prefix = codegen::c_identifier(format("tvmgen_{}_fused_", model.empty() ? "default" : model));
  std::vector<std::string> operators(lowered->kernels.size());
  for (const plan::Step& step : lowered->plan.steps)
    if (step.kind == plan::StepKind::kKernel && operators[step.kernel].empty()) operators[step.kernel] = step.name;
  std::map<std::string, int> uses;
  for (size_t i = 0; i < operators.size(); ++i) {
    std::string name = operators[i];
    for (char& c : name)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    if (name.size() > kLongest) name = format("{}_{}_", name.substr(0, kLongest), hash_bytes(name.data(), name.size()));
    const int before = uses[name]++;
    lowered->plan.kernels[i] = lowered->kernels[i].name = prefix + (before ? format("{}_{}", name, before) : name);
  }
}

namespace {

Result<std::string> source_of_graph(const Built& built, bool alone) {
  TW_TRY_STATUS(check_graph(built));
  std::vector<codegen::LinkedParam> linked;
  if (built.graph_in_c->link_params) linked = linked_params(built.lowered.plan);
  return codegen::c_packed_functions(
      built.lowered.plan, linked, TW_TRY(c_externals(built.lowered.plan, built.external)),
      [&](size_t i) { return built.lowered.params[i].tensor(); }, alone);
}

}  // namespace

Result<std::string> graph_in_c_source(const Built& built) { return source_of_graph(built, true); }

Result<std::string> graph_in_c_kernels(const Built& built) {
  if (kernels_are_source(built))
    return codegen::c_kernel_functions(built.lowered.kernels, built.objects,
                                       built.lowered.plan.steps.empty() ? nullptr : &built.lowered.plan);
  const WorkFolder folder = TW_TRY(WorkFolder::temporary("tilewright-object"));
  const std::string path = folder.path() + "/lib1.o";
  TW_TRY_STATUS(codegen::join_kernels(built.objects, path, built.target));
  return read_whole(path);
}

Result<Files> graph_in_c_files(const Built& built, bool alone) {
  const std::string& model = built.lowered.plan.model_name;
  const std::string name = model.empty() ? "default" : model;
  if (!alone && built.graph_in_c->link_params)
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("'{}' has its weights in the code, which the system library of several models cannot tell "
                             "apart",
                             name),
                      {}, "build each without link-params, or write one file for each");
  Files files;
  files.emplace_back(format("codegen/host/src/{}_lib0.c", name), TW_TRY(source_of_graph(built, alone)));
  files.emplace_back(kernels_are_source(built) ? format("codegen/host/src/{}_lib1.c", name)
                                               : format("codegen/host/lib/{}_lib1.o", name),
                     TW_TRY(graph_in_c_kernels(built)));
  for (auto& file : c_external_files(built.external, name, 2)) files.push_back(std::move(file));
  return files;
}

Files system_lib_of(const std::vector<const Built*>& models) {
  std::vector<std::string> names;
  for (const Built* built : models)
    for (const auto* list : {&built->lowered.plan.kernels, &built->lowered.plan.externals})
      names.insert(names.end(), list->begin(), list->end());
  return {{"codegen/host/src/system_lib.c", codegen::c_system_lib(names)}};
}

}  // namespace tilewright::driver
