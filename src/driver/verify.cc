// SPDX-License-Identifier: Apache-2.0
#include "driver/verify.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>

#include "base/format.h"
#include "codegen/backend.h"
#include "driver/loaded_build.h"
#include "driver/model_file.h"
#include "driver/relay_file.h"
#include "driver/run_elsewhere.h"
#include "driver/source_run.h"
#include "driver/torch_file.h"
#include "driver/verify_ties.h"
#include "frontend/onnx/import.h"
#include "relay/interpreter.h"
#include "relay/op.h"
#include "runtime/artifact.h"

namespace tilewright::driver {
namespace {

// Executes a plan step by step on one thread, so that every kernel's operands can be inspected.
class SteppedRun {
 public:
  SteppedRun(const runtime::Artifact& artifact, const std::vector<Tensor>& inputs)
      : artifact_(artifact), inputs_(inputs) {
    const auto& plan = artifact.plan();
    arena_ = Tensor::zeros(kUInt8, {static_cast<int64_t>(plan.arena_bytes + 64)});
    for (uint64_t bytes : plan.device_arena_bytes)
      device_arenas_.push_back(Tensor::zeros(kUInt8, {static_cast<int64_t>(bytes + 64)}));
    for (const auto& t : plan.outputs) outputs_.push_back(Tensor::zeros(t.dtype, t.shape));
  }
  Status run_step(size_t i) {
    const auto& step = artifact_.plan().steps[i];
    std::vector<void*> args;
    for (uint32_t b : step.buffers) args.push_back(const_cast<std::byte*>(address(b)));
    if (step.kind == plan::StepKind::kCopy)
      std::memmove(args[1], args[0], artifact_.plan().buffers[step.buffers[0]].bytes);
    else
      return artifact_.kernels()[step.kernel].run(args.data(), 0, 1);
    return Ok{};
  }
  const std::byte* address(uint32_t buffer) const {
    const auto& b = artifact_.plan().buffers[buffer];
    switch (b.space) {
      case plan::Space::kArena:
        return (b.device == 0 ? arena_ : device_arenas_[b.device - 1]).raw() + b.offset;
      case plan::Space::kParams:
        return artifact_.params() + b.offset;
      case plan::Space::kInput:
        return inputs_[b.index].raw() + b.offset;
      case plan::Space::kOutput:
        return outputs_[b.index].raw() + b.offset;
      case plan::Space::kScratch:
        return arena_.raw() + (artifact_.plan().arena_bytes - artifact_.plan().scratch_bytes) + b.offset;
    }
    return nullptr;
  }
  // An operand's elements in row-major order.
  Tensor read(const lower::OperandTrace& o) const {
    if (o.constant.defined()) return o.constant;
    Tensor out(o.dtype, o.shape);
    const std::byte* base = address(o.buffer);
    auto width = static_cast<int64_t>(o.dtype.bytes());
    const bool packed = o.dtype.bits < 8;
    const auto stored_bits = static_cast<int64_t>(artifact_.plan().buffers[o.buffer].bytes) * 8;
    const Tensor whole = packed ? Tensor::view(o.dtype, {stored_bits / o.dtype.bits}, base, nullptr) : Tensor();
    std::vector<int64_t> index(o.shape.size(), 0);
    for (int64_t n = 0; n < out.size(); ++n) {
      int64_t at = o.offset;
      for (size_t d = 0; d < index.size(); ++d) at += index[d] * o.strides[d];
      if (packed)
        out.set_double(n, whole.at_double(at));
      else
        std::memcpy(out.mutable_raw() + n * width, base + at * width, static_cast<size_t>(width));
      for (size_t d = index.size(); d-- > 0 && ++index[d] == o.shape[d];) index[d] = 0;
    }
    return out;
  }
  const std::vector<Tensor>& outputs() const { return outputs_; }

 private:
  const runtime::Artifact& artifact_;
  const std::vector<Tensor>& inputs_;
  Tensor arena_;
  std::vector<Tensor> device_arenas_;
  std::vector<Tensor> outputs_;
};

struct Comparison {
  double worst = 0;      // error relative to the tolerance
  double largest = 0;    // largest absolute error
  double magnitude = 0;  // largest magnitude of the reference
  int64_t at = -1;
  size_t ties = 0;  // elements that are right on the other side of a tie
};

// The relative rounding error of a small float.
double rounding_of(DataType t) { return t == kFloat16 ? 0x1p-11 : t == kBFloat16 ? 0x1p-8 : 0; }

// The accumulated rounding errors of a module's small floats. Compiled code does not round between operators (decision
// 012), so outputs may differ from the interpreter's by the sum along the longest path.
double roundings_of(const relay::Module& module) {
  double most = 0;
  for (const auto& [name, function] : module.functions)
    for (const relay::Expr& e : relay::post_order(function, true))
      if (const auto* t = e->type ? as_tensor(e->type) : nullptr) most = std::max(most, rounding_of(t->dtype));
  return most;
}
VerifyOptions with_roundings(VerifyOptions options, const relay::Module& module) {
  double rounding = roundings_of(module);
  // -math=bf16 rounds the operands of products.
  if (auto target = parse_target(options.build.target); target.ok() && target->bfloat16_products)
    rounding = std::max(rounding, rounding_of(kBFloat16));
  options.rtol += 4 * rounding;
  options.atol += 8 * rounding;
  return options;
}

double value_of(const relay::Value& v, int64_t i) {
  return v.is_float() ? v.f[static_cast<size_t>(i)] : static_cast<double>(v.i[static_cast<size_t>(i)]);
}

// Compares elementwise: |ours - reference| against rtol*|reference| + atol*max|reference| (+ the interpreter's own
// bound). With the reference's values on both sides of ties, what lies between them is right.
Comparison compare(const Tensor& ours, const relay::Value& reference, const VerifyOptions& options,
                   const relay::Value* low = nullptr, const relay::Value* high = nullptr) {
  Comparison c;
  int64_t n = reference.size();
  // Both values may round to different sides.
  const double rtol = options.rtol + 2 * rounding_of(ours.dtype());
  for (int64_t i = 0; i < n; ++i)
    if (const double r = value_of(reference, i); std::isfinite(r)) c.magnitude = std::max(c.magnitude, std::fabs(r));
  for (int64_t i = 0; i < n; ++i) {
    double r = value_of(reference, i),
           x = reference.is_float() ? ours.at_double(i) : static_cast<double>(ours.at_int(i));
    if ((std::isnan(r) && std::isnan(x)) || r == x) continue;
    double error = std::fabs(x - r);
    if (low) {
      const auto [least, most] = std::minmax({r, value_of(*low, i), value_of(*high, i)});
      if (least <= x && x <= most) {
        ++c.ties;
        continue;
      }
      error = x < least ? least - x : x - most;
    }
    double budget = reference.is_float() ? rtol * std::fabs(r) + options.atol * c.magnitude + options.absolute_atol +
                                               (reference.bound.empty() ? 0 : reference.bound[static_cast<size_t>(i)])
                                         : 0;
    double ratio = std::isfinite(error) && std::isfinite(budget) && budget > 0 ? error / budget : HUGE_VAL;
    c.largest = std::max(c.largest, error);
    if (ratio > c.worst) {
      c.worst = ratio;
      c.at = i;
    }
  }
  return c;
}

std::vector<int64_t> unravel(int64_t at, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0; at /= std::max<int64_t>(1, shape[d])) index[d] = shape[d] ? at % shape[d] : 0;
  return index;
}

Result<std::vector<Tensor>> gather_inputs(const plan::Plan& plan, const VerifyOptions& options) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const auto& info = plan.inputs[i];
    auto given = options.inputs.find(info.name);
    if (given == options.inputs.end()) {
      inputs.push_back(random_tensor(info.dtype, info.shape, options.seed + i));
      continue;
    }
    if (given->second.shape() != info.shape)
      return Diagnostic(ErrorCode::kShapeMismatch, format("input '{}' is {}, the model takes {}", info.name,
                                                          shape_str(given->second.shape()), shape_str(info.shape)));
    if (given->second.dtype() != info.dtype)
      return Diagnostic(ErrorCode::kDtypeMismatch, format("input '{}' is {}, the model takes {}", info.name,
                                                          given->second.dtype().str(), info.dtype.str()));
    inputs.push_back(given->second);
  }
  return inputs;
}

std::map<std::string, relay::Value> values_by_name(const plan::Plan& plan, const std::vector<Tensor>& inputs) {
  std::map<std::string, relay::Value> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[plan.inputs[i].name] = relay::value_from(inputs[i]);
  return values;
}
Result<std::vector<relay::Value>> reference_outputs(const relay::Module& module, const plan::Plan& plan,
                                                    const std::vector<Tensor>& inputs) {
  return relay::interpret(module, values_by_name(plan, inputs));
}

double largest_difference(const relay::Value& a, const relay::Value& b) {
  double largest = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double apart = std::fabs(value_of(a, i) - value_of(b, i));
    largest = std::max(largest, std::isnan(apart) ? 0 : apart);
  }
  return largest;
}
// Whether the optimised graph's results are as near to the imported one's as they are to its own with its roundings
// moved: passes reorder arithmetic, and what lies beside a tie then falls to the other side. No pass is at fault.
Result<bool> differs_by_ties(const relay::Module& optimized, const plan::Plan& plan, const std::vector<Tensor>& inputs,
                             const std::vector<relay::Value>& truth) {
  const auto values = values_by_name(plan, inputs);
  const auto sides = TW_TRY(rounded_both_ways(optimized, values));
  if (!sides) return false;
  const auto got = TW_TRY(relay::interpret(optimized, values));
  for (size_t i = 0; i < truth.size(); ++i) {
    const double reach =
        std::max(largest_difference(got[i], sides->low[i]), largest_difference(got[i], sides->high[i]));
    if (largest_difference(got[i], truth[i]) > reach) return false;
  }
  return true;
}

// Finds the pass after which the optimised graph's result differs from the imported one's; of those that every build
// needs, all that changed the graph.
class PassToBlame {
 public:
  PassToBlame(const relay::Module& module, const plan::Plan& plan, const std::vector<Tensor>& inputs,
              const VerifyOptions& options)
      : module_(module), plan_(plan), inputs_(inputs), options_(options) {}

  // Empty if nothing differs, or only by ties.
  Result<std::string> find(bool* ties) {
    truth_ = TW_TRY(reference_outputs(module_, plan_, inputs_));
    if (!TW_TRY(differs(kAll))) return std::string();
    *ties = TW_TRY(differs_by_ties(TW_TRY(optimized(kAll)).optimized, plan_, inputs_, truth_));
    if (*ties) return std::string();
    if (TW_TRY(differs(0))) return needed();
    int64_t low = 0, high = 1;
    while (!TW_TRY(differs(high)) && high < 1 << 12) high *= 2;
    while (low + 1 < high) {
      const int64_t middle = (low + high) / 2;
      (TW_TRY(differs(middle)) ? high : low) = middle;
    }
    for (const auto& record : TW_TRY(optimized(low)).passes)
      if (record.skipped == "bisection") return record.name;
    return std::string("unknown");
  }

 private:
  static constexpr int64_t kAll = -1;

  // By the first `passes` optional passes, and those that every build needs.
  Result<Built> optimized(int64_t passes) {
    BuildOptions build = options_.build;
    build.stop_after = passes;
    build.progress = {};
    return optimize(module_, build);
  }
  Result<bool> differs(int64_t passes) {
    const auto got = TW_TRY(reference_outputs(TW_TRY(optimized(passes)).optimized, plan_, inputs_));
    for (size_t i = 0; i < truth_.size(); ++i)
      if (compare(to_tensor(got[i]), truth_[i], with_roundings(options_, module_)).worst > 1) return true;
    return false;
  }
  Result<std::string> needed() {
    std::string names;
    for (const auto& record : TW_TRY(optimized(0)).passes)
      if (record.changed) names += (names.empty() ? "" : " or ") + record.name;
    return names;
  }

  const relay::Module& module_;
  const plan::Plan& plan_;
  const std::vector<Tensor>& inputs_;
  const VerifyOptions& options_;
  std::vector<relay::Value> truth_;
};

// Completes the report: compares the outputs with the expected ones and, if they differ although no kernel does, finds
// the pass.
Result<VerifyReport> compare_outputs(const relay::Module& module, const plan::Plan& plan,
                                     const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                                     const VerifyOptions& options, VerifyReport report) {
  std::vector<relay::Value> truth;
  if (options.expected.empty()) truth = TW_TRY(reference_outputs(module, plan, inputs));
  for (const auto& expected : options.expected)
    if (std::none_of(plan.outputs.begin(), plan.outputs.end(),
                     [&](const auto& output) { return output.name == expected.first; }))
      return Diagnostic(ErrorCode::kUnknownInput,
                        format("an output '{}' is expected, which the model does not have", expected.first));
  for (size_t k = 0; k < plan.outputs.size(); ++k) {
    relay::Value expected;
    if (options.expected.empty()) {
      expected = truth[k];
    } else {
      auto it = options.expected.find(plan.outputs[k].name);
      if (it == options.expected.end()) continue;
      if (it->second.dtype() != plan.outputs[k].dtype)
        return Diagnostic(ErrorCode::kDtypeMismatch, format("expected output '{}' is {}, the model gives {}", it->first,
                                                            it->second.dtype().str(), plan.outputs[k].dtype.str()));
      if (it->second.shape() != plan.outputs[k].shape)
        return Diagnostic(ErrorCode::kShapeMismatch,
                          format("expected output '{}' is {}, the model gives {}", it->first,
                                 shape_str(it->second.shape()), shape_str(plan.outputs[k].shape)));
      expected = relay::value_from(it->second);
    }
    expected.bound.clear();  // no error bounds: outputs are judged by the tolerance alone
    Comparison c = compare(outputs[k], expected, options.expected.empty() ? with_roundings(options, module) : options);
    report.largest_output_error = std::max(report.largest_output_error, c.worst);
    report.outputs.push_back(format("{}: largest error {:.3g} at magnitude {:.3g}, {:.3g} of the budget",
                                    plan.outputs[k].name, c.largest, c.magnitude, c.worst));
  }
  if (report.largest_output_error > 1 && report.mismatches.empty()) {
    report.pass_to_blame = TW_TRY(PassToBlame(module, plan, inputs, options).find(&report.passes_tie));
    report.steps_add_up =
        report.pass_to_blame.empty() && (report.ties > 0 || report.passes_tie) && options.expected.empty();
  }
  return report;
}

// C programs are checked by their outputs only, since they have no entries for single kernels; so are libraries that
// run elsewhere.
Result<VerifyReport> verify_outputs(const relay::Module& module, const Built& built, const VerifyOptions& options) {
  const plan::Plan& plan = built.lowered.plan;
  const auto inputs = TW_TRY(gather_inputs(plan, options));
  VerifyReport report;
  report.steps = plan.steps.size();
  report.taken_apart = built.lowered.taken_apart;
  const auto outputs =
      TW_TRY(options.run_with.empty() ? run_source(built, inputs) : run_elsewhere(built, inputs, options.run_with));
  return compare_outputs(module, plan, inputs, outputs, options, std::move(report));
}

}  // namespace

Tensor random_tensor(DataType dtype, const std::vector<int64_t>& shape, uint64_t seed) {
  Tensor t(dtype, shape);
  std::mt19937_64 engine(seed + 1);
  for (int64_t i = 0; i < t.size(); ++i) {
    uint64_t bits = engine();
    if (dtype.is_float())
      t.set_double(i, static_cast<double>(bits >> 11) * 0x1p-52 - 1.0);
    else
      t.set_int(i, dtype.is_bool() ? static_cast<int64_t>(bits & 1) : static_cast<int64_t>(bits % 8));
  }
  return t;
}

Result<VerifyReport> verify_module(const relay::Module& module, const VerifyOptions& options) {
  TW_TRY(parse_target(options.build.target));  // not a list: the comparison covers what runs here
  auto built = TW_TRY(build(module, options.build));
  if (codegen::backend_of(built.target).makes_source() || !options.run_with.empty())
    return verify_outputs(module, built, options);
  const auto artifact = TW_TRY(load_build(built));
  const auto& plan = artifact->plan();
  if (!plan.externals.empty())
    return Diagnostic(ErrorCode::kUnsupportedModel,
                      format("the model calls '{}' of an external code generator, which only its own device can check",
                             plan.externals[0]),
                      {}, "verify the model without the external code generator");
  auto inputs = TW_TRY(gather_inputs(plan, options));
  VerifyReport report;
  report.steps = plan.steps.size();
  report.taken_apart = built.lowered.taken_apart;
  SteppedRun run(*artifact, inputs);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    TW_TRY_STATUS(run.run_step(i));
    if (!options.layers) continue;
    if (options.build.progress)
      options.build.progress("verify", static_cast<double>(i) / static_cast<double>(plan.steps.size()));
    const auto& trace = built.lowered.traces[i];
    const auto* function = relay::as<relay::FunctionNode>(trace.function);
    relay::Environment arguments;
    size_t next = 0;
    for (const auto& param : function->params) {
      const auto* tuple = as_tuple(param->type);
      auto& values = arguments[param.get()];
      for (size_t k = tuple ? tuple->fields.size() : 1; k > 0; --k)
        values.push_back(relay::value_from(run.read(trace.inputs[next++])));
    }
    auto expected = TW_TRY(relay::evaluate(function->body, arguments));
    std::optional<Sides> sides;
    for (size_t k = 0; k < trace.outputs.size(); ++k) {
      Comparison c = compare(run.read(trace.outputs[k]), expected[k], options);
      if (c.worst <= 1) continue;
      if (!sides) sides = TW_TRY(rounded_both_ways(function->body, arguments));
      if (sides) c = compare(run.read(trace.outputs[k]), expected[k], options, &sides->low[k], &sides->high[k]);
      report.ties += c.ties;
      if (c.worst <= 1) continue;
      Mismatch m;
      m.step = plan.steps[i].name;
      m.source = plan.steps[i].source;
      m.kernel = plan::callee_of(plan, plan.steps[i]);
      m.largest = c.worst;
      m.at = unravel(c.at, trace.outputs[k].shape);
      Tensor ours = run.read(trace.outputs[k]);
      m.ours = ours.at_double(c.at);
      m.reference = value_of(expected[k], c.at);
      report.mismatches.push_back(std::move(m));
    }
  }
  return compare_outputs(module, plan, inputs, run.outputs(), options, std::move(report));
}

Result<VerifyReport> verify_onnx(const std::string& path, const VerifyOptions& options) {
  if (TW_TRY(is_relay_file(path)))
    return verify_module(TW_TRY(read_relay_file(path, options.build, options.build.shapes)), options);
  if (TW_TRY(is_torch_file(path)))
    return verify_module(TW_TRY(read_torch_file(path, options.build, options.build.shapes, torch::Programs::kRefused)),
                         options);
  onnx::ImportOptions import;
  import.shapes = options.build.shapes;
  import.channel_block = TW_TRY(channel_block(options.build));
  auto module = TW_TRY(onnx::import_onnx(path, import));
  return verify_module(module, options);
}

}  // namespace tilewright::driver
