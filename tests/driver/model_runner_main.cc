// SPDX-License-Identifier: Apache-2.0
// Compiles and runs one ONNX model after another for tests/fuzz/models: reads commands from standard input, answers
// each with a line of JSON on standard output, and writes tensors as files. Not run by ctest itself.
//
//   run MODEL FOLDER      compile, run on FOLDER/input_*.pb; results as FOLDER/ours_N, the reference's as
//                         FOLDER/reference_N
//   spread MODEL FOLDER   FOLDER/spread_N: how far each element of the reference's results moves when every floating
//                         value on the way is off by some units in its last place, and zero or infinite where its
//                         dtype does not hold it
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/format.h"
#include "base/work_folder.h"
#include "driver/build.h"
#include "driver/guarded.h"
#include "driver/model_file.h"
#include "driver/vm.h"
#include "frontend/onnx/file_map.h"
#include "frontend/onnx/import.h"
#include "relay/interpreter.h"
#include "relay/op.h"
#include "relay/ops/tensor/attrs_reduce.h"
#include "runtime/executor.h"
#include "runtime/vm/compiler_hook.h"
#include "tilewright/compiler.h"

namespace tilewright::driver {
namespace {
using nlohmann::json;
using Inputs = std::map<std::string, Tensor>;

constexpr int kSamples = 24;  // of disturbed references: a quantised value at a tie must go both ways in one of them

json failure(const Diagnostic& error) {
  return {
      {"status", "error"}, {"code", static_cast<int>(error.code)}, {"where", error.where}, {"message", error.message}};
}

Result<Inputs> read_inputs(const std::string& folder) {
  Inputs inputs;
  for (int i = 0;; ++i) {
    const std::string path = format("{}/input_{}.pb", folder, i);
    if (!std::filesystem::exists(path)) return inputs;
    auto tensor = TW_TRY(onnx::read_tensor(TW_TRY(onnx::map_file(path))));
    inputs[tensor.name] = tensor.data;
  }
}

void write_file(const std::string& path, const void* data, size_t bytes) {
  std::ofstream(path, std::ios::binary).write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
}

json described(const Tensor& t) { return {{"dtype", t.dtype().str()}, {"shape", t.shape()}}; }

// Floats of every width as doubles, everything else as int64.
json write_value(const relay::Value& v, const std::string& path) {
  if (v.is_float())
    write_file(path, v.f.data(), v.f.size() * sizeof(double));
  else
    write_file(path, v.i.data(), v.i.size() * sizeof(int64_t));
  return {{"dtype", v.dtype.str()}, {"shape", v.shape}};
}

Result<std::vector<Tensor>> run_library(const Built& built, const Inputs& inputs) {
  const WorkFolder place = TW_TRY(WorkFolder::temporary("tilewright-models"));
  const std::string path = place.path() + "/model.so";
  TW_TRY_STATUS(export_library(built, path));
  const auto artifact = TW_TRY(runtime::Artifact::load(path));
  const plan::Plan& plan = artifact->plan();
  runtime::ExecutorOptions options;
  options.threads = 2;
  options.least_shared_us = 0;
  auto executor = TW_TRY(runtime::Executor::create(artifact, options));
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    auto given = inputs.find(plan.inputs[i].name);
    if (given == inputs.end())
      return Diagnostic(ErrorCode::kUnknownInput, format("no values for input '{}'", plan.inputs[i].name));
    auto slot = TW_TRY(executor->input(i));
    if (given->second.shape() != plan.inputs[i].shape || given->second.dtype() != plan.inputs[i].dtype)
      return Diagnostic(ErrorCode::kShapeMismatch, format("input '{}' is another tensor", plan.inputs[i].name));
    std::memcpy(slot.data, given->second.raw(), given->second.bytes());
  }
  TW_TRY_STATUS(executor->run());
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    outputs.push_back(Tensor::zeros(plan.outputs[i].dtype, plan.outputs[i].shape));
    const auto out = TW_TRY(executor->output(i));
    std::memcpy(outputs.back().mutable_raw(), out.data, outputs.back().bytes());
  }
  return outputs;
}

Result<std::vector<Tensor>> run_program(runtime::vm::Program compiled, const Inputs& inputs) {
  auto program = std::make_shared<runtime::vm::Program>(std::move(compiled));
  runtime::vm::SpecializedOptions options;
  options.threads = 1;
  options.evaluate_first = 0;
  options.evaluate = runtime::vm::evaluate_with(program, tw_compiler_evaluate, tw_compiler_last_error_message);
  auto runner = TW_TRY(runtime::vm::ProgramRunner::create(
      program, runtime::vm::specialize_with(program, tw_compiler_specialize, tw_compiler_last_error_message), options));
  std::vector<Tensor> values;
  for (const auto& spec : program->inputs) {
    auto given = inputs.find(spec.name);
    if (given == inputs.end())
      return Diagnostic(ErrorCode::kUnknownInput, format("no values for input '{}'", spec.name));
    values.push_back(given->second);
  }
  return runner->run(std::move(values));
}

std::map<std::string, relay::Value> values_of(const Inputs& inputs) {
  std::map<std::string, relay::Value> out;
  for (const auto& [name, tensor] : inputs) out[name] = relay::value_from(tensor);
  return out;
}

Result<json> run(const std::string& model, const std::string& folder) {
  const Inputs inputs = TW_TRY(read_inputs(folder));
  json out{{"status", "ok"}, {"program", false}};
  BuildOptions options;
  options.jobs = 1;
  Compiled made = TW_TRY(compile_model(model, options, /*may_be_program=*/true));
  const auto& built = made.ordinary;
  std::vector<Tensor> outputs;
  if (built) {
    out["taken_apart"] = built->lowered.taken_apart;
    outputs = TW_TRY(run_library(*built, inputs));
  } else {
    out["program"] = true;
    outputs = TW_TRY(run_program(std::move(*made.program), inputs));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    out["outputs"].push_back(described(outputs[i]));
    if (outputs[i].dtype().is_string())
      out["outputs"].back()["strings"] = outputs[i].string_values();
    else
      write_file(format("{}/ours_{}", folder, i), outputs[i].raw(), outputs[i].bytes());
  }
  if (!built) return out;
  auto reference = relay::interpret(built->imported, values_of(inputs));
  if (!reference.ok()) {
    out["reference_error"] = reference.error().str();
    return out;
  }
  for (size_t i = 0; i < reference->size(); ++i)
    out["reference"].push_back(write_value((*reference)[i], format("{}/reference_{}", folder, i)));
  return out;
}

// The least and the largest number that kernels keep: what is below is taken as zero, what is above is infinite.
struct Limits {
  double least, most;
};
Limits limits_of(DataType dtype) {
  if (dtype == kFloat64) return {0x1p-1022, HUGE_VAL};
  if (dtype == kFloat16) return {0x1p-24, 65504};
  return {0x1p-126, dtype == kBFloat16 ? 3.38e38 : 3.4e38};
}

// Whether the reference, which computes in double, met numbers on the way that their dtypes do not hold.
Result<bool> beyond_limits(const relay::Module& module, const std::map<std::string, relay::Value>& inputs) {
  bool met = false;
  relay::InterpretOptions watching;
  watching.hook = [&](const relay::Expr&, std::span<const relay::Value> values) -> Status {
    for (const relay::Value& v : values) {
      if (!v.is_float() || v.dtype.bits < 16) continue;
      const Limits limits = limits_of(v.dtype);
      met = met || std::any_of(v.f.begin(), v.f.end(), [&](double f) {
              return std::isfinite(f) && f != 0 && (std::fabs(f) < limits.least || std::fabs(f) > limits.most);
            });
    }
    return Ok{};
  };
  TW_TRY(relay::interpret(module, inputs, watching));
  return met;
}

relay::Expr scalar(DataType dtype, double value) {
  Tensor t = Tensor::zeros(dtype, {});
  t.set_double(0, value);
  return relay::make_constant(std::move(t));
}

// The value as its dtype holds it.
relay::Expr held(const relay::Expr& e, DataType dtype) {
  const Limits limits = limits_of(dtype);
  auto number = [&](double value) { return scalar(dtype, value); };
  relay::Expr kept =
      relay::call("where", {relay::call("less", {relay::call("abs", {e}), number(limits.least)}), number(0), e});
  if (limits.most == HUGE_VAL) return kept;
  kept = relay::call("where", {relay::call("greater", {e, number(limits.most)}), number(HUGE_VAL), kept});
  return relay::call("where", {relay::call("less", {e, number(-limits.most)}), number(-HUGE_VAL), kept});
}

// Whether this is a recurrent layer, or one of its results, or another one that is as far off as numbers around 1 are:
// gates next to 0 and 1, the logarithm of a sum next to 1.
bool near_one(const relay::Expr& e) {
  static constexpr std::string_view kNames[] = {"nn.log_softmax", "nn.gru", "nn.gru_scan", "nn.lstm",
                                                "nn.lstm_scan",   "nn.rnn", "nn.rnn_scan"};
  const auto* item = relay::as<relay::TupleGetItemNode>(e);
  const relay::OpDef* op = relay::called_op(item ? item->tuple : e);
  return op && std::find(std::begin(kNames), std::end(kNames), op->name) != std::end(kNames);
}

// Whether whole numbers come of fractions inside of it, of which the fraction is cut off.
bool cuts_fractions(const relay::Expr& e) {
  const relay::OpDef* op = relay::called_op(e);
  return op && std::string_view(op->name).starts_with("image.resize");
}

relay::Expr cast(const relay::Expr& e, DataType dtype) {
  return relay::call("cast", {e}, relay::make_attrs<relay::CastAttrs>([&](auto& a) { a.dtype = dtype; }));
}

// The module with every floating result on the way multiplied by numbers next to 1, and, if `limited`, as its dtype
// holds it.
relay::Module disturbed(const relay::Module& module, std::mt19937& random, bool limited) {
  std::function<relay::Expr(const relay::Expr&)> noisy = [&](const relay::Expr& e) {
    const auto* type = as_tensor(e->type);
    const auto shape = type ? static_shape(type->shape) : std::nullopt;
    if (shape && type->dtype.is_integral() && cuts_fractions(e)) {
      const auto* resize = relay::as<relay::CallNode>(e);
      return cast(noisy(relay::call(relay::called_op(e)->name, {cast(resize->args[0], kFloat32)}, resize->attrs)),
                  type->dtype);
    }
    if (!shape || !type->dtype.is_float() || type->dtype.bits < 16) return e;
    const double unit = type->dtype == kFloat64   ? 0x1p-52
                        : type->dtype == kFloat32 ? 0x1p-23
                        : type->dtype == kFloat16 ? 0x1p-10
                                                  : 0x1p-7;
    auto around = [&](double value) {
      Tensor noise = Tensor::zeros(type->dtype, *shape);
      for (int64_t i = 0; i < noise.size(); ++i)
        noise.set_double(i, value + (static_cast<int>(random() % 5) - 2) * unit);
      return relay::make_constant(std::move(noise));
    };
    relay::Expr near = relay::call("multiply", {e, around(1)});
    if (near_one(e)) near = relay::call("add", {near, around(0)});
    return limited ? held(near, type->dtype) : near;
  };
  const auto* main = module.main_function();
  relay::Expr body = relay::rewrite_graph(main->body, [&](const relay::Expr& original, const relay::Expr& e) {
    const relay::ExprKind kind = original->kind;
    const bool value = kind == relay::ExprKind::kVar || kind == relay::ExprKind::kConstant ||
                       kind == relay::ExprKind::kTupleGetItem || relay::called_op(original);
    return value ? noisy(e) : e;
  });
  return module.with_main(relay::make_function(main->params, body, main->attrs, main->span));
}

Result<json> spread(const std::string& path, const std::string& folder) {
  const auto inputs = values_of(TW_TRY(read_inputs(folder)));
  const auto module = TW_TRY(read_model_file(path, BuildOptions{}, onnx::Programs::kWhereNeeded));
  const auto reference = TW_TRY(relay::interpret(module, inputs));
  const bool limited = TW_TRY(beyond_limits(module, inputs));
  std::vector<std::vector<double>> most;
  for (const auto& v : reference) most.emplace_back(static_cast<size_t>(v.size()), 0.0);
  std::mt19937 random(1);
  for (int sample = 0; sample < kSamples; ++sample) {
    const auto other = TW_TRY(relay::interpret(disturbed(module, random, limited && sample % 2 == 1), inputs));
    for (size_t k = 0; k < reference.size(); ++k)
      for (size_t i = 0; i < most[k].size(); ++i) {
        const double a = reference[k].is_float() ? reference[k].f[i] : static_cast<double>(reference[k].i[i]);
        const double b = other[k].is_float() ? other[k].f[i] : static_cast<double>(other[k].i[i]);
        if (a == b || (std::isnan(a) && std::isnan(b))) continue;
        const double by = std::fabs(a - b);
        most[k][i] = std::max(most[k][i], std::isnan(by) ? HUGE_VAL : by);
      }
  }
  for (size_t k = 0; k < most.size(); ++k)
    write_file(format("{}/spread_{}", folder, k), most[k].data(), most[k].size() * sizeof(double));
  return json{{"status", "ok"}};
}

}  // namespace
}  // namespace tilewright::driver

int main() {
  using namespace tilewright;
  std::string verb, model, folder;
  while (std::cin >> verb >> model >> folder) {
    auto answer = driver::guarded([&]() -> Result<nlohmann::json> {
      return verb == "spread" ? driver::spread(model, folder) : driver::run(model, folder);
    });
    std::cout << (answer.ok() ? *answer : driver::failure(answer.error()))
                     .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
              << std::endl;
  }
  return 0;
}
