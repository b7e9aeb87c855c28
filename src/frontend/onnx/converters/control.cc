// SPDX-License-Identifier: Apache-2.0
// Control flow that can be resolved at import time, sequences of known length, and operators without effect at
// inference.
#include <algorithm>
#include <random>

#include "base/format.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/run_time_control.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kMaxUnrolled = 10'000;  // iterations of one loop
// A VM program has loops, so there only short loops are unrolled; elsewhere unrolling is the only way.
constexpr int64_t kMostUnrolledInProgram = 16;

Values identity(NodeContext& c) { return {c.value(0)}; }

Values dropout(NodeContext& c) {
  bool training = c.opset() >= 12 ? c.has(2) && c.constant(c.input(2), "training_mode").at_int(0) != 0 : false;
  const double ratio = training && c.has(1) ? c.constant(c.input(1), "ratio").at_double(0) : training ? 0.5 : 0;
  if (!(ratio >= 0 && ratio < 1)) c.fail(format("its ratio is {}", ratio));
  if (ratio != 0) {
    // numpy's uniform numbers in [0, 1) for the seed: the elements dropped are those of the reference implementation.
    const int64_t seed = c.int_attr("seed", 0);
    std::mt19937 engine(static_cast<uint32_t>(seed));
    Tensor kept = Tensor::zeros(kBool, c.dims(c.input(0)));
    for (int64_t i = 0; i < kept.size(); ++i) {
      const uint64_t high = engine() >> 5, low = engine() >> 6;
      kept.set_int(i, static_cast<double>(high << 26 | low) * 0x1p-53 >= ratio);
    }
    Expr mask = c.constant_of(kept), x = c.input(0);
    return {c.where(mask, c.mul(x, c.scalar_like(1 / (1 - ratio), x)), c.scalar_like(0, x)), mask};
  }
  Values out = {c.input(0)};
  if (c.wants(1)) {
    Expr one = c.scalar(1, c.opset() >= 10 ? kBool : c.dtype(c.input(0)));
    out.push_back(c.broadcast_to(one, c.dims(c.input(0))));
  }
  return out;
}

const Graph& subgraph(NodeContext& c, const char* name) {
  const Attribute* a = c.attr(name, AttributeKind::kGraph);
  if (!a) c.fail(format("its attribute '{}' is missing", name));
  return *a->graphs.at(0);
}

Values if_else(NodeContext& c) {
  const Tensor* known = c.known(c.input(0));
  if (!known) {
    if (c.importer().programs()) return branch_at_run_time(c, subgraph(c, "then_branch"), subgraph(c, "else_branch"));
    c.constant(c.input(0), "condition");  // fails, and records the inputs it depends on
  }
  if (known->size() != 1) c.fail_type("its condition is not one boolean");
  Values out = c.inline_graph(subgraph(c, known->at_int(0) != 0 ? "then_branch" : "else_branch"), {});
  if (out.size() < c.node().outputs.size()) c.fail("its branch has fewer outputs than it");
  return out;
}

// The result of `unrolled`; nothing where a run-time loop is the better form: its iterations depend on values, or a
// program would unroll too many. Without programs every loop is unrolled.
template <class Unrolled>
std::optional<Values> where_unrolled(NodeContext& c, int64_t steps, Unrolled&& unrolled) {
  Importer& importer = c.importer();
  if (!importer.programs()) return unrolled();
  if (steps > kMaxUnrolled || (importer.is_program && steps > kMostUnrolledInProgram)) return std::nullopt;
  const bool before = std::exchange(importer.is_program, false);
  const size_t unsupported = importer.unsupported_count();
  std::optional<Values> out;
  try {
    out = unrolled();
  } catch (ConversionFailure& failure) {
    const ErrorCode code = failure.diagnostic.code;
    if (code != ErrorCode::kUnsupportedModel && code != ErrorCode::kFreeDimension && code != ErrorCode::kUnsupportedOp)
      throw;
  }
  if (out && importer.is_program && steps > kMostUnrolledInProgram) out.reset();
  if (!out) importer.forget_unsupported(unsupported);
  importer.is_program = importer.is_program || before;
  return out;
}

// What an iteration makes for a stack of all iterations' tensors, if that can be unrolled.
const Expr& stacked_part(NodeContext& c, const Value& made) {
  if (!made.expr) c.fail_type("its body gives something that is not a tensor for every iteration");
  if (!as_tensor(made.expr->type)) c.unsupported("a body's result of a type that only a run can tell");
  return made.expr;
}

// Requires a known number of iterations. Body: (step, condition, carried...) -> (condition, carried..., scanned...).
Values unrolled_loop(NodeContext& c, const Graph& body) {
  int64_t limit = INT64_MAX;
  if (c.has(0)) limit = c.int_scalar(0, "trip count");
  bool go = !c.has(1) || c.constant(c.input(1), "condition").at_int(0) != 0;
  Values carried;
  for (size_t i = 2; i < c.input_count(); ++i) carried.push_back(c.has(i) ? c.value(i) : Value());
  std::vector<std::vector<Expr>> scanned(body.outputs.size() - 1 - carried.size());
  for (int64_t step = 0; go && step < limit; ++step) {
    if (step >= kMaxUnrolled) c.unsupported(format("more than {} steps", kMaxUnrolled));
    Values arguments = {c.constant_of(Tensor::scalar<int64_t>(kInt64, step)), c.scalar(1, kBool)};
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    Values made = c.inline_graph(body, arguments);
    go = made[0].expr && c.constant(made[0].expr, "loop condition").at_int(0) != 0;
    for (size_t i = 0; i < carried.size(); ++i) carried[i] = made[i + 1];
    for (size_t i = 0; i < scanned.size(); ++i) {
      scanned[i].push_back(c.expand(stacked_part(c, made[i + 1 + carried.size()]), 0));
    }
  }
  Values out = carried;
  for (size_t i = 0; i < scanned.size(); ++i) {
    if (scanned[i].empty()) {
      // Without iterations: an empty tensor of the type that the body declares.
      const ValueType& t = body.outputs[i + 1 + carried.size()].type;
      std::vector<int64_t> shape = {0};
      if (!t.elem || !t.shape) c.unsupported("a loop without steps and with an output of unknown type");
      for (const auto& d : *t.shape) shape.push_back(d.value.value_or(0));
      out.push_back(c.zeros(*t.elem, shape));
    } else {
      out.push_back(c.concat(scanned[i], 0));
    }
  }
  return out;
}

Values loop(NodeContext& c) {
  const Graph& body = subgraph(c, "body");
  const size_t carried = c.input_count() > 2 ? c.input_count() - 2 : 0;
  if (body.inputs.size() != carried + 2 || body.outputs.size() < carried + 1)
    c.fail(format("its body has {} inputs and {} outputs for {} carried values", body.inputs.size(),
                  body.outputs.size(), carried));
  const Tensor* steps = c.has(0) ? c.known(c.input(0)) : nullptr;
  const int64_t count = steps && steps->size() == 1 ? steps->at_int(0) : c.has(0) ? kMaxUnrolled + 1 : 0;
  auto out = where_unrolled(c, count, [&] { return unrolled_loop(c, body); });
  return out ? *out : loop_at_run_time(c, body);
}

// A Scan's attributes, and its iterations unrolled. Body: (state..., slices...) -> (state..., slices...).
struct ScanSteps {
  NodeContext& c;
  const Graph& body;
  size_t states, scans;
  Ints in_axes, in_back, out_axes, out_back;

  Values run(Values state, const std::vector<Expr>& sources) {
    int64_t steps = -1;
    for (size_t i = 0; i < scans; ++i) {
      in_axes[i] = c.axis(in_axes[i], c.rank(sources[i]));
      int64_t size = c.dims(sources[i])[static_cast<size_t>(in_axes[i])];
      if (steps >= 0 && size != steps) c.fail_type(format("its scan inputs have {} and {} steps", steps, size));
      steps = size;
    }
    if (steps < 1 || steps > kMaxUnrolled) c.unsupported(format("{} steps", steps));
    const size_t outputs = body.outputs.size() - states;
    std::vector<std::vector<Expr>> made(outputs);
    for (int64_t step = 0; step < steps; ++step) {
      Values arguments = state;
      for (size_t i = 0; i < scans; ++i) {
        int64_t at = in_back[i] != 0 ? steps - 1 - step : step;
        arguments.push_back(c.squeeze(c.slice(sources[i], in_axes[i], at, at + 1), {in_axes[i]}));
      }
      Values result = c.inline_graph(body, arguments);
      for (size_t i = 0; i < states; ++i) state[i] = result[i];
      for (size_t i = 0; i < outputs; ++i) {
        const Expr& e = stacked_part(c, result[states + i]);
        made[i].push_back(c.expand(e, c.axis(out_axes[i], c.rank(e) + 1)));
      }
    }
    for (size_t i = 0; i < outputs; ++i) {
      if (out_back[i] != 0) std::reverse(made[i].begin(), made[i].end());
      state.push_back(c.concat(made[i], c.axis(out_axes[i], c.rank(made[i][0]))));
    }
    return state;
  }
};

// Opset 8's batched form: each sample is scanned by itself. The first input, the sequence lengths, was removed.
Values scan_of_batch(NodeContext& c, ScanSteps& steps) {
  if (c.has(0)) c.unsupported("samples of different lengths");
  const auto inputs = steps.states + steps.scans;
  if (inputs == 0 || c.rank(c.input(1)) < 1) c.fail_type("its inputs have no axis of samples");
  const int64_t batch = c.dims(c.input(1))[0];
  if (batch < 1 || batch > kMaxUnrolled) c.unsupported(format("{} samples", batch));
  std::vector<std::vector<Expr>> made;
  for (int64_t b = 0; b < batch; ++b) {
    Values state;
    std::vector<Expr> sources;
    for (size_t i = 0; i < inputs; ++i) {
      const Expr& whole = c.input(i + 1);
      if (c.rank(whole) < 1 || c.dims(whole)[0] != batch) c.fail_type("its inputs have different numbers of samples");
      Expr sample = c.squeeze(c.slice(whole, 0, b, b + 1), {0});
      if (i < steps.states)
        state.emplace_back(sample);
      else
        sources.push_back(sample);
    }
    const Values results = steps.run(std::move(state), sources);
    made.resize(results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].expr) c.fail_type("its body makes something that is not a tensor");
      made[i].push_back(c.expand(results[i].expr, 0));
    }
  }
  Values out;
  for (const auto& samples : made) out.emplace_back(c.concat(samples, 0));
  return out;
}

// The extent of an axis; where it is unknown, more than can be unrolled.
int64_t length_of(const Expr& e, int64_t axis) {
  const auto* t = as_tensor(e->type);
  const auto rank = t ? static_cast<int64_t>(t->shape.size()) : 0;
  if (axis < -rank || axis >= rank) return kMaxUnrolled + 1;
  return t->shape[static_cast<size_t>(axis < 0 ? axis + rank : axis)].constant().value_or(kMaxUnrolled + 1);
}

// Unrolled along the scan axes, or a loop at run time.
Values scan(NodeContext& c) {
  const bool batched = c.opset() < 9;
  const Graph& body = subgraph(c, "body");
  const int64_t scans = c.int_attr("num_scan_inputs"),
                inputs = static_cast<int64_t>(c.input_count()) - static_cast<int64_t>(batched);
  if (scans < 1 || scans > inputs) c.fail(format("it has {} scan inputs of {} inputs", scans, inputs));
  const auto states = static_cast<size_t>(inputs - scans);
  if (body.inputs.size() != static_cast<size_t>(inputs) || body.outputs.size() < states)
    c.fail("its body does not fit its inputs");
  const size_t outputs = body.outputs.size() - states;
  auto list = [&](const char* name, size_t n) {
    auto v = c.ints_attr(name, Ints(n, 0));
    if (v.size() != n) c.fail(format("its {} has {} values where {} are needed", name, v.size(), n));
    return v;
  };
  const auto n = static_cast<size_t>(scans);
  ScanSteps steps{c, body, states, n, Ints(n, 0), {}, Ints(outputs, 0), Ints(outputs, 0)};
  steps.in_back = list(batched ? "directions" : "scan_input_directions", n);
  if (batched) return scan_of_batch(c, steps);
  steps.in_axes = list("scan_input_axes", n);
  steps.out_axes = list("scan_output_axes", outputs);
  steps.out_back = list("scan_output_directions", outputs);
  Values state;
  std::vector<Expr> sources;
  for (size_t i = 0; i < states; ++i) state.push_back(c.value(i));
  for (size_t i = 0; i < n; ++i) sources.push_back(c.input(states + i));
  const ScanAxes axes{states, steps.in_axes, steps.in_back, steps.out_axes, steps.out_back};
  auto out =
      where_unrolled(c, length_of(sources[0], steps.in_axes[0]), [&] { return steps.run(std::move(state), sources); });
  return out ? *out : scan_at_run_time(c, body, axes);
}

// Sequences.
Value sequence_of(std::vector<Value> values) {
  Value v;
  v.sequence = std::make_shared<const std::vector<Value>>(std::move(values));
  return v;
}
const std::vector<Value>& sequence(NodeContext& c, size_t i) {
  const Value& v = c.value(i);
  if (!v.sequence) c.fail_type(format("its input {} is not a sequence", i));
  return *v.sequence;
}
int64_t position(NodeContext& c, size_t input, int64_t size) {
  int64_t at = c.int_scalar(input, "position");
  if (at < -size || at >= size) c.fail(format("its position {} is out of range for {} elements", at, size));
  return at < 0 ? at + size : at;
}

Values sequence_construct(NodeContext& c) {
  std::vector<Value> values;
  for (const Expr& e : c.all_inputs()) values.emplace_back(e);
  return {sequence_of(std::move(values))};
}
Values sequence_empty(NodeContext&) { return {sequence_of({})}; }
Values sequence_at(NodeContext& c) {
  const auto& s = sequence(c, 0);
  return {s[static_cast<size_t>(position(c, 1, static_cast<int64_t>(s.size())))]};
}
Values sequence_insert(NodeContext& c) {
  std::vector<Value> s = sequence(c, 0);
  auto size = static_cast<int64_t>(s.size());
  int64_t at = size;
  if (c.has(2)) {
    at = c.int_scalar(2, "position");
    if (at < -size || at > size) c.fail(format("its position {} is out of range for {} elements", at, size));
    if (at < 0) at += size;
  }
  s.insert(s.begin() + at, c.value(1));
  return {sequence_of(std::move(s))};
}
Values sequence_erase(NodeContext& c) {
  std::vector<Value> s = sequence(c, 0);
  if (s.empty()) c.fail("its sequence is empty");
  auto size = static_cast<int64_t>(s.size());
  s.erase(s.begin() + (c.has(1) ? position(c, 1, size) : size - 1));
  return {sequence_of(std::move(s))};
}
Values sequence_length(NodeContext& c) {
  return {c.constant_of(Tensor::scalar<int64_t>(kInt64, static_cast<int64_t>(sequence(c, 0).size())))};
}
Values concat_from_sequence(NodeContext& c) {
  std::vector<Expr> parts;
  bool fresh = c.int_attr("new_axis", 0) != 0;
  const auto& s = sequence(c, 0);
  if (s.empty()) c.fail("its sequence is empty");
  int64_t rank = c.rank(s[0].expr) + (fresh ? 1 : 0), axis = c.axis(c.int_attr("axis"), rank);
  for (const Value& v : s) parts.push_back(fresh ? c.expand(v.expr, axis) : v.expr);
  return {c.concat(parts, axis)};
}
Values split_to_sequence(NodeContext& c) {
  Expr x = c.input(0);
  int64_t axis = c.axis(c.int_attr("axis", 0), c.rank(x)), size = c.dims(x)[static_cast<size_t>(axis)];
  bool keep = c.int_attr("keepdims", 1) != 0 || c.has(1);
  std::vector<int64_t> parts;
  if (c.has(1) && c.constant(c.input(1), "split sizes").rank() == 1) {
    parts = c.ints(1, "split sizes");
  } else {
    int64_t part = c.has(1) ? c.int_scalar(1, "split size") : 1;
    if (part < 1 || size / part > kMaxUnrolled) c.fail(format("its split size is {}", part));
    for (int64_t at = 0; at < size; at += part) parts.push_back(std::min(part, size - at));
  }
  std::vector<Value> out;
  int64_t at = 0;
  for (int64_t part : parts) {
    if (part < 0 || part > size - at) c.fail_type(format("its split sizes exceed the axis of {}", size));
    Expr e = c.slice(x, axis, at, at + part);
    out.emplace_back(keep ? e : c.squeeze(e, {axis}));
    at += part;
  }
  return {sequence_of(std::move(out))};
}
Values sequence_map(NodeContext& c) {
  const Graph& body = subgraph(c, "body");
  bool known = true;
  for (size_t k = 0; k < c.input_count(); ++k)
    known = known && (c.value(k).sequence || is_complete(c.value(k).expr->type));
  if (!known && c.importer().programs()) return map_at_run_time(c, body);
  const auto& first = sequence(c, 0);
  std::vector<std::vector<Value>> outputs(c.node().outputs.size());
  if (body.outputs.size() != outputs.size()) c.fail("its body has another number of outputs");
  for (size_t i = 0; i < first.size(); ++i) {
    Values arguments;
    for (size_t k = 0; k < c.input_count(); ++k) {
      const Value& v = c.value(k);
      if (v.sequence && i >= v.sequence->size()) c.fail("its sequences have different lengths");
      arguments.push_back(v.sequence ? (*v.sequence)[i] : v);
    }
    Values made = c.inline_graph(body, arguments);
    for (size_t k = 0; k < outputs.size(); ++k) outputs[k].push_back(made[k]);
  }
  Values out;
  for (auto& o : outputs) out.push_back(sequence_of(std::move(o)));
  return out;
}

// An absent optional is a Value without content.
Values optional(NodeContext& c) { return {c.has(0) ? c.value(0) : Value()}; }
Values optional_has_element(NodeContext& c) { return {c.scalar(c.has(0), kBool)}; }
Values optional_get_element(NodeContext& c) { return {c.value(0)}; }

constexpr ConverterEntry kControlConverters[] = {
    {"Identity", 1, identity},
    {"Dropout", 1, dropout},
    {"If", 1, if_else},
    {"Loop", 1, loop},
    {"Scan", 8, scan},
    {"SequenceConstruct", 11, sequence_construct},
    {"SequenceEmpty", 11, sequence_empty},
    {"SequenceAt", 11, sequence_at},
    {"SequenceInsert", 11, sequence_insert},
    {"SequenceErase", 11, sequence_erase},
    {"SequenceLength", 11, sequence_length},
    {"ConcatFromSequence", 11, concat_from_sequence},
    {"SplitToSequence", 11, split_to_sequence},
    {"SequenceMap", 17, sequence_map},
    {"Optional", 15, optional},
    {"OptionalHasElement", 15, optional_has_element},
    {"OptionalGetElement", 15, optional_get_element},
};

}  // namespace

std::span<const ConverterEntry> control_converters() { return kControlConverters; }

}  // namespace tilewright::onnx
