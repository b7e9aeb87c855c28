// SPDX-License-Identifier: Apache-2.0
// com.microsoft: the search for a text by a decoder that is a subgraph, written as a Loop of ONNX, which sizes that
// only a run knows turn into a loop of the program.
#include <limits>

#include "base/format.h"
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;
using Names = std::vector<std::string>;

// A graph in the making. Its names begin so that no name of a model is one of them.
class GraphWriter {
 public:
  explicit GraphWriter(std::string prefix) : prefix_(std::move(prefix)) {}
  Graph graph;

  std::string name(const std::string& of) const { return prefix_ + of; }
  std::string input(const std::string& value) {
    graph.inputs.push_back({value, {}});
    return value;
  }
  std::string constant(Tensor t) {
    graph.initializers.push_back({fresh(), std::move(t)});
    return graph.initializers.back().name;
  }
  std::string ints(const Ints& values) {
    return constant(Tensor::from<int64_t>(kInt64, {static_cast<int64_t>(values.size())}, values));
  }
  std::string number(DataType dtype, double value) {
    Tensor t = Tensor::zeros(dtype, {});
    if (dtype.is_float())
      t.set_double(0, value);
    else
      t.set_int(0, static_cast<int64_t>(value));
    return constant(std::move(t));
  }
  std::string add(const char* op, Names inputs, std::vector<Attribute> attributes = {}) {
    Node n;
    n.op_type = op;
    n.outputs = {fresh()};
    n.name = n.outputs[0];
    n.inputs = std::move(inputs);
    n.attributes = std::move(attributes);
    graph.nodes.push_back(std::move(n));
    return graph.nodes.back().outputs[0];
  }
  std::string cast(const std::string& x, DataType dtype) {
    return add("Cast", {x}, {int_attribute("to", dtype == kInt32 ? 6 : dtype == kInt64 ? 7 : 1)});
  }
  std::string reshape(const std::string& x, const Ints& shape) { return add("Reshape", {x, ints(shape)}); }

 private:
  std::string fresh() { return format("{}{}", prefix_, next_++); }
  std::string prefix_;
  int64_t next_ = 0;
};

// The decoder of GPT-2's kind: (input_ids, position_ids, attention_mask, past_0, ...) -> (logits, present_0, ...).
struct Decoder {
  const Graph& graph;
  size_t layers;
};
Decoder decoder_of(NodeContext& c) {
  if (c.int_attr("model_type", 0) != 0) c.unsupported("a model with an encoder");
  if (c.has_attr("init_decoder")) c.unsupported("a decoder of its own for the first step");
  if (c.int_attr("no_repeat_ngram_size", 0) > 0) c.unsupported("runs of words that may not repeat");
  const Attribute* a = c.attr("decoder", AttributeKind::kGraph);
  if (!a) c.fail("its attribute 'decoder' is missing");
  const Graph& graph = *a->graphs.at(0);
  if (graph.outputs.size() < 2 || graph.inputs.size() != graph.outputs.size() + 2)
    c.unsupported(format("a decoder of {} inputs and {} outputs", graph.inputs.size(), graph.outputs.size()));
  return {graph, graph.outputs.size() - 1};
}

// The state of a search between steps, in the order of the loop's carried values. Caches follow.
struct State {
  std::string tokens;                // (batch, longest), the words so far, then pads
  std::string ids, positions, mask;  // of the decoder
  std::string next;                  // (batch, 1): position of the next word
  std::string done;                  // (batch)
};

struct GreedySearch {
  NodeContext& c;
  Decoder decoder;
  GraphWriter out{"greedy search/"};
  std::string given_ids = {}, length = {},
              longest = {};  // length, longest: one int64 each, of the prompt and the result

  std::string given(size_t i) const { return c.has(i) ? out.name(format("input {}", i)) : std::string(); }
  double pad() const { return static_cast<double>(c.int_attr("pad_token_id")); }
  double end() const { return static_cast<double>(c.int_attr("eos_token_id")); }

  // Scores at the step for the words that the operands allow. `at`: the place that the next word gets.
  std::string allowed(GraphWriter& b, std::string scores, const State& s, const std::string& step,
                      const std::string& at) const {
    const std::string lowest = b.number(kFloat32, std::numeric_limits<float>::lowest());
    auto hide = [&](const std::string& hidden) { scores = b.add("Where", {hidden, lowest, scores}); };
    const Tensor* penalty = c.has(3) ? NodeContext::known(c.input(3)) : nullptr;
    if (c.has(3) && !(penalty && penalty->size() == 1 && penalty->at_double(0) == 1)) {
      const std::string columns =
          b.reshape(b.add("Range", {b.number(kInt64, 0), longest, b.number(kInt64, 1)}), {1, -1});
      const std::string first = b.add("Gather", {s.tokens, b.ints({0})}, {int_attribute("axis", 1)});
      const std::string words = b.add("Where", {b.add("Less", {columns, at}), s.tokens, first});
      const std::string none = b.add("ConstantOfShape", {b.add("Shape", {scores})});
      const std::string ones = b.cast(b.add("Equal", {words, words}), kFloat32);
      const std::string seen = b.add("ScatterElements", {none, words, ones}, {int_attribute("axis", 1)});
      const std::string below = b.add("Less", {scores, b.number(kFloat32, 0)});
      const std::string worse =
          b.add("Where", {below, b.add("Mul", {scores, given(3)}), b.add("Div", {scores, given(3)})});
      scores = b.add("Where", {b.add("Greater", {seen, b.number(kFloat32, 0.5)}), worse, scores});
    }
    if (c.has(4)) hide(b.add("Equal", {given(4), b.number(kInt32, 0)}));
    if (c.has(5)) {
      const std::string is_first = b.add("Equal", {step, b.number(kInt64, 0)});
      hide(b.add("And", {is_first, b.add("Equal", {given(5), b.number(kInt32, 0)})}));
    }
    if (c.has(2)) {
      const std::string words =
          b.add("Gather", {b.add("Shape", {scores}), b.number(kInt64, 1)}, {int_attribute("axis", 0)});
      const std::string all = b.add("Range", {b.number(kInt64, 0), words, b.number(kInt64, 1)});
      const std::string early = b.add("Less", {at, b.cast(given(2), kInt64)});
      hide(b.add("And", {early, b.add("Equal", {all, b.number(kInt64, end())})}));
    }
    return scores;
  }

  // One step: the decoder, the best word, and the state with it.
  Graph body() const {
    GraphWriter b(out.name("step/"));
    b.graph = decoder.graph;
    b.graph.inputs.clear(), b.graph.outputs.clear(), b.graph.value_info.clear();
    const std::vector<ValueInfo>& in = decoder.graph.inputs;
    const std::string step = b.input(b.name("step"));
    b.input(b.name("go"));
    State s;
    s.tokens = b.input(b.name("tokens")), s.ids = b.input(in[0].name), s.positions = b.input(in[1].name);
    s.mask = b.input(in[2].name), s.next = b.input(b.name("next")), s.done = b.input(b.name("done"));
    for (size_t i = 0; i < decoder.layers; ++i) b.input(in[3 + i].name);
    const std::string at = b.add("Add", {step, length});
    const std::string logits = decoder.graph.outputs[0].name;
    const std::string last = b.add("Gather", {logits, b.number(kInt64, -1)}, {int_attribute("axis", 1)});
    const std::string best = b.cast(b.add("ArgMax", {allowed(b, b.cast(last, kFloat32), s, step, at)},
                                          {int_attribute("axis", 1), int_attribute("keepdims", 0)}),
                                    kInt32);
    const std::string done = b.add("Or", {s.done, b.add("Equal", {best, b.number(kInt32, end())})});
    const std::string word = b.reshape(b.add("Where", {done, b.number(kInt32, pad()), best}), {-1, 1});
    const std::string columns = b.reshape(b.add("Range", {b.number(kInt64, 0), longest, b.number(kInt64, 1)}), {1, -1});
    const std::string tokens = b.add("Where", {b.add("Equal", {columns, at}), word, s.tokens});
    const std::string one = b.number(kInt32, 1), zero = b.number(kInt32, 0);
    const std::string ones = b.add("Add", {b.add("Mul", {word, zero}), one});
    const std::string mask = b.add("Concat", {s.mask, ones}, {int_attribute("axis", 1)});
    const std::string all = b.add("ReduceMin", {b.cast(done, kInt32)}, {int_attribute("keepdims", 0)});
    Names results = {b.add("Equal", {all, zero}), tokens, word, s.next, mask, b.add("Add", {s.next, one}), done};
    for (size_t i = 0; i < decoder.layers; ++i) results.push_back(decoder.graph.outputs[1 + i].name);
    for (const std::string& result : results) b.graph.outputs.push_back({result, {}});
    return std::move(b.graph);
  }

  // An empty cache of the decoder's shape (2, batch, heads, sequence, size).
  std::string empty_cache(const ValueInfo& past, const std::string& batch) {
    const auto& shape = past.type.shape;
    if (!shape || shape->size() != 5 || !(*shape)[2].value || !(*shape)[4].value || past.type.elem != kFloat32)
      c.unsupported(format("a past of the type {}", past.type.str()));
    const std::string rest = out.ints({*(*shape)[2].value, 0, *(*shape)[4].value});
    return out.add("ConstantOfShape", {out.add("Concat", {out.ints({2}), batch, rest}, {int_attribute("axis", 0)})});
  }

  Graph whole() {
    for (size_t i = 0; i < 7; ++i) out.input(out.name(format("input {}", i)));
    given_ids = given(0);
    const std::string sizes = out.add("Shape", {given_ids});
    auto size = [&](int64_t axis) { return out.add("Gather", {sizes, out.ints({axis})}, {int_attribute("axis", 0)}); };
    const std::string batch = size(0), whole_length = size(1);
    length = out.reshape(whole_length, {});
    longest = out.reshape(out.cast(given(1), kInt64), {});
    const std::string steps = out.add("Sub", {longest, length});
    const std::string pads = out.number(kInt32, pad());
    const std::string room = out.add("Concat", {batch, out.reshape(steps, {1})}, {int_attribute("axis", 0)});
    const std::string tokens =
        out.add("Concat", {given_ids, out.add("Expand", {pads, room})}, {int_attribute("axis", 1)});
    const std::string words = out.cast(out.add("Not", {out.add("Equal", {given_ids, pads})}), kInt32);
    const std::string count = out.add("CumSum", {words, out.number(kInt64, 1)});
    const std::string positions = out.add("Mul", {out.add("Sub", {count, out.number(kInt32, 1)}), words});
    const std::string next = out.add("Gather", {count, out.ints({-1})}, {int_attribute("axis", 1)});
    const std::string done = out.add("Less", {out.reshape(next, {-1}), out.number(kInt32, 0)});
    Node loop;
    loop.op_type = "Loop";
    loop.name = out.name("loop");
    loop.inputs = {steps, "", tokens, given_ids, positions, c.has(6) ? given(6) : words, next, done};
    for (size_t i = 0; i < decoder.layers; ++i) loop.inputs.push_back(empty_cache(decoder.graph.inputs[3 + i], batch));
    for (size_t i = 2; i < loop.inputs.size(); ++i) loop.outputs.push_back(out.name(format("output {}", i)));
    Attribute inner;
    inner.name = "body";
    inner.kind = AttributeKind::kGraph;
    inner.graphs = {std::make_shared<const Graph>(body())};
    loop.attributes = {inner};
    out.graph.outputs = {{loop.outputs[0], {}}};
    out.graph.nodes.push_back(std::move(loop));
    return std::move(out.graph);
  }
};

Values greedy_search(NodeContext& c) {
  GreedySearch search{c, decoder_of(c)};
  const Graph graph = search.whole();
  Values arguments;
  for (size_t i = 0; i < 7; ++i) arguments.push_back(c.has(i) ? c.value(i) : Value());
  return c.inline_graph(graph, std::move(arguments));
}

constexpr ConverterEntry kSearches[] = {
    {"GreedySearch", 1, greedy_search, "com.microsoft"},
};

}  // namespace

std::span<const ConverterEntry> search_converters() { return kSearches; }

}  // namespace tilewright::onnx
