// SPDX-License-Identifier: Apache-2.0
// The executor under its classic function names: set_input, run, get_output and the others (docs/runtime.md).
#pragma once
#include <memory>

#include "runtime/executor.h"
#include "runtime/graph_json.h"
#include "runtime/module.h"

namespace tilewright::runtime {

class GraphExecutorModule : public Module {
 public:
  // `debug` adds the functions that look between the steps.
  static Result<std::shared_ptr<GraphExecutorModule>> create(std::shared_ptr<const Artifact> artifact,
                                                             const ExecutorOptions& options, bool debug);
  const std::string& type_key() const override;
  Result<FunctionRef> get_function(const std::string& name) override;
  Executor& executor() { return *executor_; }

 private:
  friend struct GraphExecutorFunctions;
  GraphExecutorModule(std::unique_ptr<Executor> executor, bool debug) : executor_(std::move(executor)), debug_(debug) {}
  const Graph& graph();  // made when first asked for

  std::unique_ptr<Executor> executor_;
  bool debug_;
  std::mutex graph_mutex_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace tilewright::runtime
