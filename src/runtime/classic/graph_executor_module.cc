// SPDX-License-Identifier: Apache-2.0
#include "runtime/classic/graph_executor_module.h"

#include <algorithm>

#include "base/format.h"
#include "runtime/dltensor.h"
#include "runtime/params_file.h"
#include "runtime/tensor_value.h"

namespace tilewright::runtime {

// One body per function, named after it.
struct GraphExecutorFunctions {
  using Self = GraphExecutorModule;

  static Result<uint64_t> tensor_index(const std::vector<plan::TensorInfo>& tensors, const Arguments& args,
                                       const char* kind) {
    if (args.is(0, TW_STR)) return find_tensor(tensors, TW_TRY(args.string(0)), kind);
    int64_t index = TW_TRY(args.integer(0));
    TW_TRY_STATUS(check_index(tensors, static_cast<uint64_t>(index), kind));
    return static_cast<uint64_t>(index);
  }

  static Result<Value> set_input(Self& self, const Arguments& args) {
    TW_TRY_STATUS(args.expect(2, 2));
    const DLTensor* tensor = TW_TRY(args.tensor(1));
    if (args.is(0, TW_STR)) {  // weights have names as well
      int64_t param = self.executor().param_index(TW_TRY(args.string(0)));
      auto input = find_tensor(self.executor().plan().inputs, TW_TRY(args.string(0)), "input");
      if (!input.ok() && param >= 0) {
        TW_TRY_STATUS(self.executor().set_param(static_cast<uint64_t>(param), tensor));
        return Value();
      }
    }
    TW_TRY_STATUS(
        self.executor().set_input(TW_TRY(tensor_index(self.executor().plan().inputs, args, "input")), tensor));
    return Value();
  }
  static Result<Value> set_input_zero_copy(Self& self, const Arguments& args) {
    TW_TRY_STATUS(args.expect(2, 2));
    const DLTensor* tensor = TW_TRY(args.tensor(1));
    TW_TRY_STATUS(
        self.executor().bind_input(TW_TRY(tensor_index(self.executor().plan().inputs, args, "input")), tensor));
    return Value();
  }
  static Result<Value> set_output_zero_copy(Self& self, const Arguments& args) {
    TW_TRY_STATUS(args.expect(2, 2));
    const DLTensor* tensor = TW_TRY(args.tensor(1));
    TW_TRY_STATUS(
        self.executor().bind_output(TW_TRY(tensor_index(self.executor().plan().outputs, args, "output")), tensor));
    return Value();
  }
  // (device type, device, name, tensor, name, tensor, ...) -> copies of the outputs.
  static Result<Value> run_from_inputs(Self& self, const Arguments& args) {
    TW_TRY_STATUS(args.expect(2, 2 + 2 * 4096));
    if (TW_TRY(args.integer(0)) != kDLCPU || TW_TRY(args.integer(1)) != 0 || args.size() % 2 != 0)
      return Diagnostic(ErrorCode::kInvalidArgument,
                        "run_from_inputs takes the outputs' device (the CPU: 1, 0), then names and tensors by turns");
    for (size_t i = 2; i < args.size(); i += 2)
      TW_TRY(set_input(self, Arguments(args.from(i).first(2), "run_from_inputs")));
    TW_TRY_STATUS(self.executor().run());
    std::vector<Value> outputs;
    for (uint64_t i = 0; i < self.executor().plan().outputs.size(); ++i)
      outputs.push_back(copy_value(self.executor().plan().outputs[i], data_of(TW_TRY(self.executor().output(i)))));
    return Value::array(std::move(outputs));
  }
  static Result<Value> run(Self& self, const Arguments&) {
    TW_TRY_STATUS(self.executor().run());
    return Value();
  }

  static Value view(const plan::TensorInfo& info, const DLTensor& tensor, const Tensor& own) {
    return view_value(info, data_of(tensor), own.defined() ? std::make_shared<Tensor>(own) : nullptr);
  }
  static Status copy_to_argument(const plan::TensorInfo& info, const void* data, const DLTensor* destination,
                                 const char* kind) {
    TW_TRY_STATUS(check_tensor(destination, info, format("{} '{}'", kind, info.name)));
    return copy_to(*destination, info.dtype, data);
  }
  static Result<Value> get_input(Self& self, const Arguments& args) {
    TW_TRY_STATUS(args.expect(1, 2));
    const plan::Plan& plan = self.executor().plan();
    if (args.is(0, TW_STR) &&
        !find_tensor(plan.inputs, TW_TRY(args.string(0)), "input").ok())  // a weight, in read-only memory
      if (int64_t p = self.executor().param_index(TW_TRY(args.string(0))); p >= 0) {
        const auto at = static_cast<uint64_t>(p);
        const plan::TensorInfo weight{plan.params[at].name, plan.params[at].dtype, plan.params[at].shape};
        if (args.size() == 1) return copy_value(weight, self.executor().param_data(at));
        TW_TRY_STATUS(copy_to_argument(weight, self.executor().param_data(at), TW_TRY(args.tensor(1)), "weight"));
        return Value();
      }
    uint64_t index = TW_TRY(tensor_index(plan.inputs, args, "input"));
    const plan::TensorInfo& info = self.executor().plan().inputs[index];
    DLTensor tensor = TW_TRY(self.executor().input(index));
    if (args.size() == 1) return view(info, tensor, self.executor().own_input(index));
    TW_TRY_STATUS(copy_to_argument(info, data_of(tensor), TW_TRY(args.tensor(1)), "input"));
    return Value();
  }
  static Result<Value> get_output(Self& self, const Arguments& args) {
    TW_TRY_STATUS(args.expect(1, 2));
    uint64_t index = TW_TRY(tensor_index(self.executor().plan().outputs, args, "output"));
    if (args.size() == 1)
      return view(self.executor().plan().outputs[index], TW_TRY(self.executor().output(index)),
                  self.executor().own_output(index));
    TW_TRY_STATUS(self.executor().copy_output(index, TW_TRY(args.tensor(1))));
    return Value();
  }
  static Result<Value> get_num_inputs(Self& self, const Arguments&) {
    return Value(static_cast<int64_t>(self.executor().plan().inputs.size()));
  }
  static Result<Value> get_num_outputs(Self& self, const Arguments&) {
    return Value(static_cast<int64_t>(self.executor().plan().outputs.size()));
  }
  static Result<Value> index_of(const std::vector<plan::TensorInfo>& tensors, const Arguments& args) {
    TW_TRY_STATUS(args.expect(1, 1));
    std::string_view name = TW_TRY(args.string(0));
    for (size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].name == name) return Value(static_cast<int64_t>(i));
    return Value(int64_t{-1});
  }
  static Result<Value> get_input_index(Self& self, const Arguments& args) {
    return index_of(self.executor().plan().inputs, args);
  }
  static Result<Value> get_output_index(Self& self, const Arguments& args) {
    return index_of(self.executor().plan().outputs, args);
  }
  static Result<Value> get_input_info(Self& self, const Arguments&) {
    return tensor_list(self.executor().plan().inputs);
  }
  static Result<Value> get_output_info(Self& self, const Arguments&) {
    return tensor_list(self.executor().plan().outputs);
  }

  static Result<Value> load_params(Self& self, const Arguments& args) {
    TW_TRY_STATUS(args.expect(1, 1));
    TW_TRY_STATUS(self.executor().load_params(std::as_bytes(std::span(TW_TRY(args.bytes(0))))));
    return Value();
  }
  static Result<Value> share_params(Self& self, const Arguments& args) {
    TW_TRY_STATUS(args.expect(2, 2));
    auto other = std::dynamic_pointer_cast<GraphExecutorModule>(TW_TRY(args.module(0)));
    if (!other)
      return Diagnostic(ErrorCode::kInvalidArgument, "share_params takes the module of another graph executor", {},
                        "give what lib[\"default\"](device) made");
    TW_TRY_STATUS(self.executor().share_params(other->executor(), std::as_bytes(std::span(TW_TRY(args.bytes(1))))));
    TW_TRY_STATUS(self.import_module(other));  // keeps its memory alive
    return Value();
  }
  static Result<Value> num_threads(Self& self, const Arguments&) { return Value(int64_t{self.executor().threads()}); }

  // (repeats, form): "table", "json" or "trace".
  static Result<Value> profile(Self& self, const Arguments& args) {
    TW_TRY_STATUS(args.expect(0, 2));
    int64_t repeats = TW_TRY(args.integer_or(0, 20));
    std::string_view form = args.size() > 1 ? TW_TRY(args.string(1)) : std::string_view("table");
    auto profile = TW_TRY(self.executor().profile(static_cast<uint64_t>(repeats)));
    return Value::string(TW_TRY(profile->text(form)));
  }

  // ---- inspecting steps ----
  static Result<size_t> node_index(Self& self, const Arguments& args) {
    const Graph& g = self.graph();
    if (args.is(0, TW_STR)) {
      std::string_view name = TW_TRY(args.string(0));
      for (size_t i = 0; i < g.nodes.size(); ++i)
        if (g.nodes[i].name == name) return i;
      return Diagnostic(ErrorCode::kUnknownInput, format("the graph has no node '{}'", name), {},
                        "get_graph_json lists the nodes");
    }
    int64_t index = TW_TRY(args.integer(0));
    if (index < 0 || static_cast<uint64_t>(index) >= g.nodes.size())
      return Diagnostic(ErrorCode::kUnknownInput,
                        format("node {} does not exist, the graph has {}", index, g.nodes.size()));
    return static_cast<size_t>(index);
  }
  static Result<Value> node_value(Self& self, const GraphNode& node, size_t output, const DLTensor* destination) {
    const plan::Plan& plan = self.executor().plan();
    plan::TensorInfo info{node.name, {}, {}};
    const void* data = nullptr;
    if (!node.is_call && node.index < plan.inputs.size() && node.name == plan.inputs[node.index].name) {
      info = plan.inputs[node.index];
      data = data_of(TW_TRY(self.executor().input(node.index)));
    } else if (!node.is_call) {
      info = {node.name, plan.params[node.index].dtype, plan.params[node.index].shape};
      data = self.executor().param_data(node.index);
    } else {
      if (output >= node.outputs.size())
        return Diagnostic(ErrorCode::kUnknownInput,
                          format("node '{}' has {} outputs, not {}", node.name, node.outputs.size(), output + 1));
      const plan::Buffer& b = plan.buffers[node.outputs[output]];
      info.dtype = b.dtype;
      info.shape = b.shape;
      if (byte_size(info) > b.bytes)
        info.shape = {static_cast<int64_t>(b.bytes / std::max<uint64_t>(1, b.dtype.bytes()))};
      data = TW_TRY(self.executor().buffer_data(node.outputs[output]));
    }
    if (!destination) return copy_value(info, data);
    TW_TRY_STATUS(copy_to_argument(info, data, destination, "node"));
    return Value();
  }
  // (node, out?): runs the graph up to the node, since later steps reuse its memory.
  static Result<Value> debug_get_output(Self& self, const Arguments& args) {
    TW_TRY_STATUS(args.expect(1, 2));
    const GraphNode& node = self.graph().nodes[TW_TRY(node_index(self, args))];
    if (node.is_call) TW_TRY_STATUS(self.executor().run_steps(0, node.index + 1));
    return node_value(self, node, 0, args.size() > 1 ? TW_TRY(args.tensor(1)) : nullptr);
  }
  static Result<Value> execute_node(Self& self, const Arguments& args) {
    TW_TRY_STATUS(args.expect(1, 1));
    const GraphNode& node = self.graph().nodes[TW_TRY(node_index(self, args))];
    if (node.is_call) TW_TRY_STATUS(self.executor().run_steps(node.index, node.index + 1));
    return Value();
  }
  // (node, output): the current content of its memory.
  static Result<Value> get_node_output(Self& self, const Arguments& args) {
    TW_TRY_STATUS(args.expect(1, 2));
    const GraphNode& node = self.graph().nodes[TW_TRY(node_index(self, args))];
    return node_value(self, node, static_cast<size_t>(TW_TRY(args.integer_or(1, 0))), nullptr);
  }
  // (number, repeat): for every node, its mean seconds in each repeat; 0 for inputs and parameters.
  static Result<Value> run_individual(Self& self, const Arguments& args) {
    TW_TRY_STATUS(args.expect(0, 6));
    int64_t number = TW_TRY(args.integer_or(0, 10)), repeat = TW_TRY(args.integer_or(1, 1));
    if (number < 1 || repeat < 1 || repeat > 10000)
      return Diagnostic(ErrorCode::kInvalidArgument,
                        format("{} runs repeated {} times cannot be timed", number, repeat));
    const Graph& g = self.graph();
    std::vector<std::vector<Value>> times(g.nodes.size());
    for (int64_t r = 0; r < repeat; ++r) {
      auto profile = TW_TRY(self.executor().profile(static_cast<uint64_t>(number)));
      for (size_t i = 0; i < g.nodes.size(); ++i)
        times[i].emplace_back(g.nodes[i].is_call ? profile->steps()[g.nodes[i].index].mean_us * 1e-6 : 0.0);
    }
    std::vector<Value> rows;
    for (auto& row : times) rows.push_back(Value::array(std::move(row)));
    return Value::array(std::move(rows));
  }
};

namespace {

struct ExecutorFunction {
  const char* name;
  Result<Value> (*body)(GraphExecutorModule&, const Arguments&);
  int kinds;  // kinds of executors that have it
};
constexpr int kGraph = 1, kDebug = 2, kAot = 4, kLookInside = kGraph | kDebug, kAll = kGraph | kDebug | kAot;
int bit(GraphExecutorModule::Kind kind) { return 1 << static_cast<int>(kind); }

using F = GraphExecutorFunctions;
constexpr ExecutorFunction kFunctions[] = {
    {"set_input", F::set_input, kAll},
    {"set_input_zero_copy", F::set_input_zero_copy, kAll},
    {"set_output_zero_copy", F::set_output_zero_copy, kAll},
    {"run", F::run, kAll},
    {"run_from_inputs", F::run_from_inputs, kAll},
    {"get_input", F::get_input, kAll},
    {"get_output", F::get_output, kAll},
    {"get_num_inputs", F::get_num_inputs, kAll},
    {"get_num_outputs", F::get_num_outputs, kAll},
    {"get_input_index", F::get_input_index, kAll},
    {"get_output_index", F::get_output_index, kAll},
    {"get_input_info", F::get_input_info, kAll},
    {"get_output_info", F::get_output_info, kAll},
    {"load_params", F::load_params, kLookInside},
    {"share_params", F::share_params, kLookInside},
    {"num_threads", F::num_threads, kAll},
    {"profile", F::profile, kLookInside},
    {"debug_get_output", F::debug_get_output, kDebug},
    {"execute_node", F::execute_node, kDebug},
    {"get_node_output", F::get_node_output, kDebug},
    {"run_individual", F::run_individual, kDebug},
};

}  // namespace

Result<std::shared_ptr<GraphExecutorModule>> GraphExecutorModule::create(std::shared_ptr<const Artifact> artifact,
                                                                         ExecutorOptions options, Kind kind) {
  options.generated_entry = kind == Kind::kAot;
  auto executor = TW_TRY(Executor::create(std::move(artifact), options));
  return std::shared_ptr<GraphExecutorModule>(new GraphExecutorModule(std::move(executor), kind));
}

const std::string& GraphExecutorModule::type_key() const {
  static const std::string kNames[] = {"GraphExecutor", "GraphExecutorDebug", "AotExecutor"};
  return kNames[static_cast<int>(kind_)];
}

const Graph& GraphExecutorModule::graph() {
  std::lock_guard lock(graph_mutex_);
  if (!graph_) graph_ = std::make_unique<Graph>(graph_of(executor_->plan()));
  return *graph_;
}

Result<FunctionRef> GraphExecutorModule::get_function(const std::string& name) {
  for (const ExecutorFunction& e : kFunctions)
    if (name == e.name && (e.kinds & bit(kind_))) {
      auto self = std::static_pointer_cast<GraphExecutorModule>(shared_from_this());
      return make_function(name, [self, body = e.body](const Arguments& args) { return body(*self, args); });
    }
  return FunctionRef();
}

}  // namespace tilewright::runtime
