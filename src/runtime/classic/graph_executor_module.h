// SPDX-License-Identifier: Apache-2.0
// The executor under its classic function names: set_input, run, get_output and the others (docs/runtime.md).
#pragma once
#include <memory>

#include "runtime/classic/graph_json.h"
#include "runtime/executor.h"
#include "runtime/module.h"

namespace tilewright::runtime {

class GraphExecutorModule : public Module {
 public:
  // kDebug adds functions that inspect the steps; kAot runs the artifact's generated entry.
  enum class Kind { kGraph, kDebug, kAot };
  static Result<std::shared_ptr<GraphExecutorModule>> create(std::shared_ptr<const Artifact> artifact,
                                                             ExecutorOptions options, Kind kind);
  const std::string& type_key() const override;
  Result<FunctionRef> get_function(const std::string& name) override;
  Executor& executor() { return *executor_; }

 private:
  friend struct GraphExecutorFunctions;
  GraphExecutorModule(std::unique_ptr<Executor> executor, Kind kind) : executor_(std::move(executor)), kind_(kind) {}
  const Graph& graph();  // built on first use

  std::unique_ptr<Executor> executor_;
  Kind kind_;
  std::mutex graph_mutex_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace tilewright::runtime
