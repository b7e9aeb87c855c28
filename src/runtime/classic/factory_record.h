// SPDX-License-Identifier: Apache-2.0
// The classic stack's record of a built model, without its kernels: graph JSON, parameters, name. Libraries carry it by
// the type keys GraphExecutorFactory, GraphRuntimeFactory (older) and AotExecutorFactory (no graph).
#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/module.h"
#include "runtime/params_file.h"

namespace tilewright::runtime {

struct FactoryRecord {
  std::string graph_json;
  std::vector<NamedTensor> params;  // views of the input bytes
  std::string module_name;
};

// Error: BadArtifact.
Result<FactoryRecord> read_factory_record(std::span<const std::byte> bytes, bool with_graph);
std::string write_factory_record(const FactoryRecord& record, bool with_graph);

// A record as a module of that type key. Its functions return the graph and the parameters; the model's name and
// "default" make executors of an imported library of ours with these parameters, and refuse what the classic stack
// compiled.
Result<std::shared_ptr<Module>> load_factory(const std::string& type_key, std::string_view bytes);

}  // namespace tilewright::runtime
