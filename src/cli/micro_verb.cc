// SPDX-License-Identifier: Apache-2.0
// tilewright micro run: runs a built project's model on its device, over the project's transport.
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/format.h"
#include "base/plugin.h"
#include "cli/model_run.h"
#include "cli/verbs.h"
#include "inputs/input_spec.h"
#include "runtime/dltensor.h"
#include "runtime/profile.h"
#include "tilewright/function.h"

namespace tilewright::cli {
namespace {

namespace fs = std::filesystem;

struct MicroRunOptions {
  std::string folder, output, model;
  std::vector<std::string> inputs;
  uint64_t seed = 0;
  int repeat = 0;
  double start_seconds = 10, patience_seconds = 120;
  bool json = false;
};

// The project's transport script, whose standard input and output are the device's line; the destructor ends it.
class Transport {
 public:
  static Result<std::unique_ptr<Transport>> start(const std::string& folder) {
    std::error_code ignored;
    const fs::path script = fs::absolute(fs::path(folder) / "transport.sh"), program = fs::path(folder) / "build/main";
    if (!fs::exists(script, ignored))
      return Diagnostic(ErrorCode::kInvalidArgument, "this is no project that can be run here", folder,
                        "make one with tilewright micro create; other platforms are run by their own tools");
    if (!fs::exists(program, ignored))
      return Diagnostic(ErrorCode::kFileNotFound, "the project is not built", folder,
                        format("tilewright micro build {}", folder));
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      return Diagnostic(ErrorCode::kLimitExceeded, "no more connections can be opened", folder);
    const std::string path = script.string();
    const pid_t child = fork();
    if (child == 0) {
      setpgid(0, 0);
      dup2(ends[1], 0);
      dup2(ends[1], 1);
      execl("/bin/sh", "sh", path.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    ::close(ends[1]);
    if (child < 0) {
      ::close(ends[0]);
      return Diagnostic(ErrorCode::kLimitExceeded, "no more processes can be started", folder);
    }
    return std::unique_ptr<Transport>(new Transport(child, ends[0]));
  }
  ~Transport() {
    kill(-child_, SIGKILL);
    kill(child_, SIGKILL);  // in case it has not entered its own process group yet
    waitpid(child_, nullptr, 0);
  }
  int take_socket() { return std::exchange(socket_, -1); }

 private:
  Transport(pid_t child, int socket) : child_(child), socket_(socket) {}
  pid_t child_;
  int socket_;
};

// Functions of the RPC client's library (decision 021), located beside this program or in the library path.
Result<Function> session_function(const char* name) {
  static const Status loaded = []() -> Status {
    const std::string file = "libtilewright_rpc_client.so";
    for (const std::string& place :
         {own_folder() + file, own_folder() + "../lib/" + file, own_folder() + "../lib/x86_64-linux-gnu/" + file}) {
      if (access(place.c_str(), R_OK) != 0) continue;
      void* library = TW_TRY(open_plugin(place));
      if (auto entry = reinterpret_cast<int32_t (*)()>(dlsym(library, "tw_runtime_plugin"))) detail::check(entry());
      return Ok{};
    }
    return Diagnostic(ErrorCode::kFileNotFound, "sessions with devices need libtilewright_rpc_client.so", own_folder(),
                      "put it beside this program or into ../lib");
  }();
  if (!loaded.ok()) return Diagnostic(loaded.error());
  return global_function(name);
}

Result<inputs::InputInfo> describe(const std::string& name, const DLTensor& tensor) {
  inputs::InputInfo out;
  out.name = name;
  out.dtype = TW_TRY(runtime::from_dlpack(tensor.dtype));
  out.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  return out;
}

DLTensor view_of(Tensor* tensor, std::vector<int64_t>* shape) {
  *shape = tensor->shape();
  return {tensor->mutable_raw(),
          {kDLCPU, 0},
          static_cast<int32_t>(shape->size()),
          runtime::to_dlpack(tensor->dtype()),
          shape->data(),
          nullptr,
          0};
}

Result<int> micro_run(const MicroRunOptions& o) {
  const Function connect = TW_TRY(session_function("rpc.ConnectMicro"));
  const Function copy = TW_TRY(session_function("rpc.Copy"));
  const auto transport = TW_TRY(Transport::start(o.folder));
  const Value session = connect(transport->take_socket(), o.start_seconds, o.patience_seconds);
  const Module device = session[0].module();
  const Value library = device["runtime.SystemLib"]();
  const Module model = (o.model.empty() ? device["tvm.aot_executor.create"](library, 0)
                                        : device["tvm.aot_executor.create"](library, 0, o.model))
                           .module();
  const int64_t input_count = model["get_num_inputs"]().integer(), output_count = model["get_num_outputs"]().integer();
  std::vector<inputs::InputInfo> infos;
  std::vector<Value> remote;
  for (int64_t i = 0; i < input_count; ++i) {
    remote.push_back(model["get_input"](i));
    infos.push_back(TW_TRY(describe(model["get_input_name"](i).string(), remote.back().tensor())));
  }
  std::vector<Tensor> given = TW_TRY(inputs::make_inputs(infos, o.inputs, o.seed));
  std::vector<int64_t> shape;
  for (size_t i = 0; i < given.size(); ++i) copy(view_of(&given[i], &shape), remote[i].tensor());
  model["run"]();
  inputs::NamedTensors outputs;
  for (int64_t i = 0; i < output_count; ++i) {
    const Value there = model["get_output"](i);
    const inputs::InputInfo info = TW_TRY(describe(model["get_output_name"](i).string(), there.tensor()));
    Tensor here = Tensor::zeros(info.dtype, info.shape);
    copy(there.tensor(), view_of(&here, &shape));
    outputs.emplace_back(info.name, here);
  }
  double seconds = 0;
  if (o.repeat > 0) {
    const Function timed = device["runtime.RPCTimeEvaluator"](model, "run", 1, 0, o.repeat, 1).function();
    const std::string bytes = timed().bytes();
    if (bytes.size() == sizeof seconds) std::memcpy(&seconds, bytes.data(), sizeof seconds);
  }
  device["__close__"]();
  if (!o.output.empty())
    TW_TRY_STATUS(inputs::write_tensor_file(o.output[0] == '@' ? o.output.substr(1) : o.output, outputs));
  if (o.json) {
    std::string text = format("{{\"project\":{},\"seconds\":{},\"outputs\":[", runtime::json_string(o.folder), seconds);
    for (size_t i = 0; i < outputs.size(); ++i)
      text += format("{}{{\"name\":{},\"dtype\":\"{}\",\"shape\":{}}}", i ? "," : "",
                     runtime::json_string(outputs[i].first), outputs[i].second.dtype().str(),
                     json_shape(outputs[i].second.shape()));
    std::printf("%s]}\n", text.c_str());
    return 0;
  }
  for (const auto& [name, tensor] : outputs) {
    std::string values;
    for (int64_t i = 0; i < std::min<int64_t>(tensor.size(), 8); ++i) values += format(" {:.6g}", tensor.at_double(i));
    std::printf("%s  %s %s %s%s\n", name.c_str(), tensor.dtype().str().c_str(), shape_str(tensor.shape()).c_str(),
                values.c_str(), tensor.size() > 8 ? " ..." : "");
  }
  if (o.repeat > 0) std::printf("%.9f seconds a run, by the device's own timer\n", seconds);
  return 0;
}

}  // namespace

void add_micro_verb(CLI::App& app, Action* action) {
  auto o = std::make_shared<MicroRunOptions>();
  CLI::App* micro = app.add_subcommand("micro", "Run a model on a device");
  micro->require_subcommand(1);
  CLI::App* verb = micro->add_subcommand("run", "Run the model of a built project on its device");
  verb->add_option("DIR", o->folder, "What tilewright micro create made and micro build compiled")->required();
  verb->add_option("-i,--input", o->inputs,
                   "[NAME=]VALUE: a file, a picture, random, zeros, ones or numbers (see below)")
      ->allow_extra_args(false);
  verb->add_option("-o,--output", o->output, "Write the outputs to a .npz file (.npy or .pb for a single one)")
      ->type_name("FILE");
  verb->add_option("--model", o->model, "Which of several models of the project")->type_name("NAME");
  verb->add_option("--seed", o->seed, "Seed of random inputs")->capture_default_str();
  verb->add_option("--repeat", o->repeat, "Measure so many runs there, by the device's timer")
      ->check(CLI::Range(0, 1000000));
  verb->add_option("--start-timeout", o->start_seconds, "Seconds until the device must have begun a session")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  verb->add_option("--timeout", o->patience_seconds, "Seconds that the device may be silent")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  verb->add_flag("--json", o->json, "Print the results as one JSON object");
  verb->footer(inputs::kInputHelp);
  verb->callback([o, action] { *action = [o] { return micro_run(*o); }; });
}

}  // namespace tilewright::cli
