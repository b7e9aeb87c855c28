// SPDX-License-Identifier: Apache-2.0
#include "interpret/region.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "frontend/onnx/defer.h"
#include "frontend/torch/wait.h"
#include "program/region_source.h"
#include "relay/interpreter.h"
#include "relay/op.h"

namespace tilewright::interpret {
namespace {

// Larger values are never compiled in: they are data.
constexpr uint64_t kLargestKeyBytes = 4096;

}  // namespace

Result<relay::Module> region_module(const std::string& format_name, const onnx::SharedBytes& source,
                                    const std::map<std::string, Tensor>& arguments,
                                    std::vector<std::string>* by_value) {
  const bool evaluated = format_name == "evaluate";
  if (!evaluated && format_name != "relay")
    return Diagnostic(ErrorCode::kBadArtifact,
                      format("a region is in the format '{}', which this compiler does not know", format_name));
  const relay::Module module = TW_TRY(
      program::read_region({reinterpret_cast<const char*>(source.bytes.data()), source.bytes.size()}, source.owner));
  static const onnx::OtherNodes others = {{torch::kWaitingDomain, torch::convert_waiting}};
  return onnx::convert_deferred(module, arguments, evaluated ? UINT64_MAX : kLargestKeyBytes, by_value, others);
}

namespace {

// Limit in interpreter operations, roughly: elements computed, times the terms of each for contractions. They take
// about as long as the smallest compilation, some 20 to 30 ms.
constexpr double kMostEvaluated = 1'500'000;
double work_of(const relay::Module& module) {
  double work = 0;
  for (const relay::Expr& e : relay::post_order(module.main_function()->body)) {
    const relay::OpDef* op = relay::called_op(e);
    if (!op) continue;
    auto elements = [](const Type& type) {
      double n = 0;
      auto add = [&n](const Type& t) {
        const auto* tensor = as_tensor(t);
        auto dims = tensor ? static_shape(tensor->shape) : std::nullopt;
        double count = dims ? 1 : HUGE_VAL;
        if (dims)
          for (int64_t d : *dims) count *= static_cast<double>(d);
        n += count;
      };
      if (const auto* tuple = as_tuple(type))
        for (const Type& t : tuple->fields) add(t);
      else
        add(type);
      return n;
    };
    double each = 1;
    const auto& args = relay::as<relay::CallNode>(e)->args;
    // Convolutions, matrix products and recurrences read all of their weights per output position.
    if ((op->pattern == relay::OpPattern::kOutEWiseFusable || op->pattern == relay::OpPattern::kOpaque) &&
        args.size() > 1 && as_tensor(args[1]->type)) {
      const Shape& weight = as_tensor(args[1]->type)->shape;
      const auto first = weight.empty() ? std::nullopt : weight[0].constant();
      each = std::max(1.0, elements(args[1]->type) / static_cast<double>(std::max<int64_t>(1, first.value_or(1))));
    }
    for (const relay::Expr& a : args) work += elements(a->type) / 4;
    work += elements(e->type) * each;
  }
  return work;
}

}  // namespace

Result<std::vector<Tensor>> evaluate_region(const std::string& format_name, const onnx::SharedBytes& source,
                                            const std::map<std::string, Tensor>& arguments, bool however_long,
                                            std::vector<std::string>* by_value) {
  const relay::Module module = TW_TRY(region_module(format_name, source, arguments, by_value));
  if (format_name != "evaluate" && !however_long && !(work_of(module) <= kMostEvaluated))
    return Diagnostic(ErrorCode::kLimitExceeded, "the region is compiled sooner than evaluated");
  std::map<std::string, relay::Value> inputs;
  for (const auto& p : module.main_function()->params) {
    const std::string& name = relay::as<relay::VarNode>(p)->name;
    inputs[name] = relay::value_from(arguments.at(name));
  }
  std::vector<Tensor> out;
  for (const relay::Value& v : TW_TRY(relay::interpret(module, inputs))) out.push_back(relay::to_tensor(v));
  return out;
}

}  // namespace tilewright::interpret
