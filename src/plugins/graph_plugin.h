// SPDX-License-Identifier: Apache-2.0
// A plug-in of compiler and runtime around a Plan, which runs one graph (docs/external-codegen.md) with third-party
// kernels. Plan(graph, constants) throws for unsupported graphs; call(arguments) runs it, with tensors that were
// checked. The graph's modules have the type NAME_json, where NAME is the code generator.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "plugins/graph.h"
#include "plugins/module_record.h"
#include "tilewright/function.h"

namespace tilewright::plugins {

template <class Plan>
class GraphModule : public ModuleKind {
 public:
  GraphModule(std::string type_key, const std::string& bytes)
      : type_key_(std::move(type_key)), shared_(std::make_shared<Shared>(bytes)) {}
  std::string type_key() const override { return type_key_; }
  std::string save() const override { return write_record(shared_->record); }
  Function get_function(const std::string& name) override {
    if (name != shared_->record.symbol) return {};
    return Function::of([shared = shared_](Args args) -> Value {
      std::lock_guard lock(shared->mutex);
      shared->graph.check(args);
      shared->plan.call(args);
      return {};
    });
  }

 private:
  struct Shared {
    explicit Shared(const std::string& bytes)
        : record(read_record(bytes)), graph(record.graph, record.constants), plan(graph, record.constants) {}
    ModuleRecord record;
    const Graph graph;
    Plan plan;
    std::mutex mutex;  // one call at a time, since intermediate memory is shared
  };
  const std::string type_key_;
  const std::shared_ptr<Shared> shared_;
};

// The code generator `name`.
template <class Plan>
ExternalCodegen graph_codegen(const std::string& name) {
  ExternalCodegen g;
  g.name = name;
  g.generate = [type_key = name + "_json"](const std::string& symbol, const std::string& graph,
                                           const std::vector<DLTensor>& constants) {
    std::string written = write_record(record_of(symbol, graph, constants));
    // Constructs the plan once, so that unsupported graphs fail at compile time and not at the user's run.
    const GraphModule<Plan> tried(type_key, written);
    return std::pair(type_key, std::move(written));
  };
  return g;
}

// Implements tw_runtime_plugin: registers the loader of its modules. Returns 0 or an error number.
template <class Plan>
int32_t register_graph_loader(const char* name) {
  static const int32_t status = [&] {
    const std::string type_key = std::string(name) + "_json";
    try {
      register_function("runtime.module.loadbinary_" + type_key, [type_key](Args args) -> Value {
        return Module::of(std::make_unique<GraphModule<Plan>>(type_key, args[0].bytes()));
      });
      return 0;
    } catch (const Error& e) {
      return e.code();
    }
  }();
  return status;
}

}  // namespace tilewright::plugins
