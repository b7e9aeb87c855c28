// SPDX-License-Identifier: Apache-2.0
// The code generator "dnnl" with modules of type "dnnl_json": functions run by oneDNN (docs/external-codegen.md). A
// plug-in of compiler and runtime, so that neither depends on oneDNN.
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "plugins/dnnl_versions.h"
#include "plugins/graph_plugin.h"

namespace {

using Json = nlohmann::json;
namespace onednn = tilewright::plugins::onednn;
using dnnl::memory;
using Dims = memory::dims;

using tilewright::plugins::attribute;
using tilewright::plugins::damaged;
using tilewright::plugins::Graph;
using Operator = tilewright::plugins::ChainOperator;

int64_t bounded(int64_t value, int64_t least) {
  if (value < least || value > 1 << 20) damaged("an attribute is " + std::to_string(value));
  return value;
}
// An attribute's numbers, each of `least` to 2^20.
std::vector<int64_t> integers(const Json& attrs, const char* name, std::vector<int64_t> otherwise = {},
                              int64_t least = 0) {
  if (!attrs.contains(name)) return otherwise;
  std::vector<int64_t> out;
  for (const Json& item : attrs.at(name).at(0)) out.push_back(bounded(std::stoll(item.get<std::string>()), least));
  return out;
}
float real(const Json& attrs, const char* name, float otherwise) {
  return attrs.contains(name) ? std::stof(attribute(attrs, name)) : otherwise;
}

Dims two(const std::vector<int64_t>& v, int64_t otherwise) {
  return v.empty() ? Dims{otherwise, otherwise} : v.size() == 1 ? Dims{v[0], v[0]} : Dims{v[0], v[1]};
}
// Begin and end padding from one, two or four numbers.
std::pair<Dims, Dims> padding(const std::vector<int64_t>& v) {
  if (v.size() == 4) return {{v[0], v[1]}, {v[2], v[3]}};
  return {two(v, 0), two(v, 0)};
}

memory::format_tag plain(size_t rank) {
  using T = memory::format_tag;
  static const T kTags[] = {T::a, T::a, T::ab, T::abc, T::abcd, T::abcde, T::abcdef};
  if (rank >= std::size(kTags)) throw std::runtime_error("oneDNN takes tensors of up to six dimensions here");
  return kTags[rank];
}
memory::desc plain_desc(Dims dims) {
  if (dims.empty()) dims = {1};
  return {dims, memory::data_type::f32, plain(dims.size())};
}
memory::desc any_desc(const Dims& dims) { return {dims, memory::data_type::f32, memory::format_tag::any}; }

// The function: values by graph entry, and primitives in execution order.
class Plan {
 public:
  Plan(const Graph& graph, std::vector<std::string>& constants) : graph_(graph), stream_(engine_) {
    last_use_.assign(nodes().size(), 0);
    for (size_t i = 0; i < nodes().size(); ++i)
      for (size_t entry : nodes()[i].inputs) last_use_[entry] = i;
    for (size_t head : graph_.heads()) last_use_[head] = SIZE_MAX;
    size_t constant = 0;
    for (size_t i = 0; i < nodes().size(); ++i) {
      if (nodes()[i].dtype != "float32") throw std::runtime_error("oneDNN computes float32 here");
      const memory::desc desc = plain_desc(shape_of(i));
      switch (nodes()[i].kind) {
        case Graph::Kind::kInput:
          values_.push_back(memory(desc, engine_, nullptr));
          break;
        case Graph::Kind::kConstant:
          values_.push_back(memory(desc, engine_, constants[constant++].data()));
          break;
        case Graph::Kind::kKernel:
          values_.push_back(kernel(nodes()[i], i));
          if (onednn::dims_of(values_.back().get_desc()) != onednn::dims_of(desc))
            damaged("a kernel has another shape than its node");
          break;
      }
    }
    for (size_t node : graph_.heads()) {
      memory out(plain_desc(shape_of(node)), engine_, nullptr);
      dnnl::reorder copy(values_[node], out);
      run_.push_back({copy, {{DNNL_ARG_FROM, values_[node]}, {DNNL_ARG_TO, out}}});
      outputs_.push_back(out);
    }
  }

  void call(tilewright::Args args) {
    const std::vector<size_t>& inputs = graph_.inputs();
    for (size_t i = 0; i < args.size(); ++i) {
      const DLTensor& t = args[i].tensor();
      memory& value = i < inputs.size() ? values_[inputs[i]] : outputs_[i - inputs.size()];
      value.set_data_handle(static_cast<char*>(t.data) + t.byte_offset);
    }
    for (auto& [view, base] : views_) view.set_data_handle(base.get_data_handle());
    for (auto& [primitive, arguments] : run_) primitive.execute(stream_, arguments);
    stream_.wait();
  }

 private:
  const std::vector<Graph::Node>& nodes() const { return graph_.nodes(); }
  const Dims& shape_of(size_t node) const { return nodes()[node].shape; }
  bool is_constant(size_t node) const { return nodes()[node].kind == Graph::Kind::kConstant; }
  static size_t input(const Graph::Node& node, size_t k) { return node.inputs.at(k); }

  // The value in the layout that a primitive prefers: constants are reordered once, now.
  memory laid_out(const memory& value, const memory::desc& wanted, bool once) {
    if (value.get_desc() == wanted) return value;
    memory out(wanted, engine_);
    dnnl::reorder copy(value, out);
    if (once) {
      copy.execute(stream_, {{DNNL_ARG_FROM, value}, {DNNL_ARG_TO, out}});
      stream_.wait();
    } else {
      run_.push_back({copy, {{DNNL_ARG_FROM, value}, {DNNL_ARG_TO, out}}});
    }
    return out;
  }
  // A view of the memory with another shape; its address may change with each call.
  memory seen_as(const memory& value, const memory::desc& desc, bool once) {
    const memory flat = laid_out(value, plain_desc(onednn::dims_of(value.get_desc())), once);
    if (flat.get_desc().get_size() != desc.get_size()) damaged("an operand has another size than its operator");
    memory view(desc, engine_, flat.get_data_handle());
    views_.emplace_back(view, flat);
    return view;
  }

  static bool eltwise(const Operator& op, dnnl::algorithm* algorithm, float* alpha, float* beta) {
    using A = dnnl::algorithm;
    static const std::pair<const char*, A> kKinds[] = {
        {"nn.relu", A::eltwise_relu}, {"tanh", A::eltwise_tanh},    {"sigmoid", A::eltwise_logistic},
        {"exp", A::eltwise_exp},      {"sqrt", A::eltwise_sqrt},    {"abs", A::eltwise_abs},
        {"log", A::eltwise_log},      {"clip", A::eltwise_clip_v2}, {"nn.leaky_relu", A::eltwise_relu}};
    *alpha = *beta = 0;
    for (const auto& [name, kind] : kKinds)
      if (op.name == name) {
        *algorithm = kind;
        if (op.name == "clip") *alpha = real(op.attrs, "a_min", 0), *beta = real(op.attrs, "a_max", 0);
        if (op.name == "nn.leaky_relu") *alpha = real(op.attrs, "alpha", 0);
        return true;
      }
    return false;
  }

  // The epilogue of a convolution or product in its composite: bias, sums, elementwise functions.
  struct Tail {
    dnnl::primitive_attr attr;
    size_t bias = SIZE_MAX;
    size_t sum = SIZE_MAX;  // index of a tensor to add, shaped like the result
    std::unordered_map<int, memory> arguments;
  };
  Tail tail_of(const Graph::Node& node, const std::vector<Operator>& chain, size_t next_input, const Dims& out,
               size_t channel) {
    Tail tail;
    dnnl::post_ops post;
    for (size_t k = 1; k < chain.size(); ++k) {
      dnnl::algorithm kind{};
      float alpha = 0, beta = 0;
      if (eltwise(chain[k], &kind, &alpha, &beta)) {
        onednn::append_eltwise(&post, kind, alpha, beta);
        continue;
      }
      if (chain[k].name != "add" && chain[k].name != "nn.bias_add")
        throw std::runtime_error("oneDNN has no '" + chain[k].name + "' behind a convolution or a product");
      const size_t operand = input(node, next_input++);
      const Dims dims = shape_of(operand);
      int64_t count = 1;
      for (int64_t d : dims) count *= d;
      Dims seen(out.size(), 1), of_channels(out.size(), 1);
      of_channels[channel] = out[channel];
      if (chain[k].name == "nn.bias_add")
        seen[channel] = count;
      else if (dims.size() > out.size())
        damaged("an addend has more dimensions than what it is added to");
      else
        std::copy(dims.begin(), dims.end(), seen.end() - static_cast<std::ptrdiff_t>(dims.size()));
      if (k == 1 && seen == of_channels && is_constant(operand)) {
        tail.bias = operand;
        continue;
      }
      // oneDNN's fast convolutions can accumulate into the result's memory; other post-op operands are slow.
      if (seen == out && tail.sum == SIZE_MAX) {
        tail.sum = operand;
        post.append_sum(1.0f);
        continue;
      }
      const memory value = seen_as(values_[operand], plain_desc(seen), is_constant(operand));
      tail.arguments[DNNL_ARG_ATTR_MULTIPLE_POST_OP(post.len()) | DNNL_ARG_SRC_1] = value;
      post.append_binary(dnnl::algorithm::binary_add, plain_desc(seen));
    }
    tail.attr.set_post_ops(post);
    return tail;
  }

  // The result's memory, initialised with the addend: that value's own memory if nothing reads it later.
  memory result_of(const memory::desc& desc, size_t sum, size_t index) {
    if (sum == SIZE_MAX) return {desc, engine_};
    const std::vector<size_t>& reads = nodes()[index].inputs;
    const bool own = nodes()[sum].kind == Graph::Kind::kKernel && std::count(reads.begin(), reads.end(), sum) == 1;
    if (own && last_use_[sum] == index && values_[sum].get_desc() == desc) return values_[sum];
    memory out(desc, engine_);
    run_.push_back({dnnl::reorder(values_[sum], out), {{DNNL_ARG_FROM, values_[sum]}, {DNNL_ARG_TO, out}}});
    return out;
  }

  memory emit(const dnnl::primitive& primitive, std::unordered_map<int, memory> arguments) {
    memory out = arguments.at(DNNL_ARG_DST);
    run_.push_back({primitive, std::move(arguments)});
    return out;
  }

  memory kernel(const Graph::Node& node, size_t index);
  memory convolution(const Graph::Node& node, size_t index, const std::vector<Operator>& chain);
  memory product(const Graph::Node& node, size_t index, const std::vector<Operator>& chain);
  memory pooling(const Graph::Node& node, size_t index, const Operator& op);
  memory binary(const Graph::Node& node, size_t index, dnnl::algorithm kind);

  const Graph& graph_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_;
  std::vector<memory> values_, outputs_;
  std::vector<std::pair<memory, memory>> views_;  // views with the memory they refer to
  std::vector<size_t> last_use_;                  // by node: the last kernel that reads it
  std::vector<std::pair<dnnl::primitive, std::unordered_map<int, memory>>> run_;
};

memory Plan::kernel(const Graph::Node& node, size_t index) {
  const std::vector<Operator> chain = tilewright::plugins::operators_of(*node.json);
  if (chain.empty()) damaged("a kernel has no operator");
  const std::string& name = chain[0].name;
  if (name == "nn.conv2d") return convolution(node, index, chain);
  if (name == "nn.dense") return product(node, index, chain);
  if (name == "nn.max_pool2d" || name == "nn.avg_pool2d" || name == "nn.global_avg_pool2d")
    return pooling(node, index, chain[0]);
  if (name == "add") return binary(node, index, dnnl::algorithm::binary_add);
  if (name == "multiply") return binary(node, index, dnnl::algorithm::binary_mul);
  const memory& from = values_[input(node, 0)];
  const memory::desc desc = from.get_desc();
  if (name == "nn.softmax") {
    const int64_t rank = static_cast<int64_t>(onednn::dims_of(desc).size());
    const int64_t axis = integers(chain[0].attrs, "axis", {-1}, -rank).at(0);
    const auto made = onednn::softmax(engine_, desc, static_cast<int>(axis < 0 ? axis + rank : axis));
    return emit(dnnl::softmax_forward(made), {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, memory(desc, engine_)}});
  }
  dnnl::algorithm kind{};
  float alpha = 0, beta = 0;
  if (!eltwise(chain[0], &kind, &alpha, &beta)) throw std::runtime_error("oneDNN has no '" + name + "' here");
  return emit(dnnl::eltwise_forward(onednn::eltwise(engine_, kind, desc, alpha, beta)),
              {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, memory(desc, engine_)}});
}

memory Plan::convolution(const Graph::Node& node, size_t index, const std::vector<Operator>& chain) {
  const Json& attrs = chain[0].attrs;
  const size_t data = input(node, 0), weight = input(node, 1);
  const Dims in = shape_of(data), kernel = shape_of(weight), out = shape_of(index);
  if (in.size() != 4 || kernel.size() != 4 || out.size() != 4) damaged("a convolution is of four dimensions");
  const int64_t groups = bounded(integers(attrs, "groups", {1}).at(0), 1);
  const Dims strides = two(integers(attrs, "strides", {}, 1), 1);
  Dims dilation = two(integers(attrs, "dilation", {}, 1), 1);
  for (int64_t& d : dilation) d -= 1;  // oneDNN counts the gaps between taps
  const auto [before, after] = padding(integers(attrs, "padding"));
  const Dims weights = groups == 1 ? kernel : Dims{groups, kernel[0] / groups, kernel[1], kernel[2], kernel[3]};
  Tail tail = tail_of(node, chain, 2, out, 1);
  const memory::desc bias = any_desc({out[1]});
  const auto made =
      onednn::convolution(engine_, any_desc(in), any_desc(weights), tail.bias == SIZE_MAX ? nullptr : &bias,
                          any_desc(out), {strides, dilation, before, after}, tail.attr);
  std::unordered_map<int, memory> arguments = std::move(tail.arguments);
  arguments[DNNL_ARG_SRC] = laid_out(values_[data], made.src_desc(), is_constant(data));
  const bool fixed = is_constant(weight);
  arguments[DNNL_ARG_WEIGHTS] = laid_out(
      groups == 1 ? values_[weight] : seen_as(values_[weight], plain_desc(weights), fixed), made.weights_desc(), fixed);
  if (tail.bias != SIZE_MAX) arguments[DNNL_ARG_BIAS] = seen_as(values_[tail.bias], plain_desc({out[1]}), true);
  arguments[DNNL_ARG_DST] = result_of(made.dst_desc(), tail.sum, index);
  return emit(dnnl::convolution_forward(made), std::move(arguments));
}

memory Plan::product(const Graph::Node& node, size_t index, const std::vector<Operator>& chain) {
  const size_t data = input(node, 0), weight = input(node, 1);
  const Dims in = shape_of(data), kernel = shape_of(weight), out = shape_of(index);
  if (out.size() != 2) damaged("a product is a matrix");
  Tail tail = tail_of(node, chain, 2, out, 1);
  const memory::desc bias = any_desc({out[1]});
  const auto made = onednn::inner_product(engine_, any_desc(in), any_desc(kernel),
                                          tail.bias == SIZE_MAX ? nullptr : &bias, any_desc(out), tail.attr);
  std::unordered_map<int, memory> arguments = std::move(tail.arguments);
  arguments[DNNL_ARG_SRC] = laid_out(values_[data], made.src_desc(), is_constant(data));
  arguments[DNNL_ARG_WEIGHTS] = laid_out(values_[weight], made.weights_desc(), is_constant(weight));
  if (tail.bias != SIZE_MAX) arguments[DNNL_ARG_BIAS] = seen_as(values_[tail.bias], plain_desc({out[1]}), true);
  arguments[DNNL_ARG_DST] = result_of(made.dst_desc(), tail.sum, index);
  return emit(dnnl::inner_product_forward(made), std::move(arguments));
}

memory Plan::pooling(const Graph::Node& node, size_t index, const Operator& op) {
  const memory& from = values_[input(node, 0)];
  const Dims in = shape_of(input(node, 0)), out = shape_of(index);
  if (in.size() != 4 || out.size() != 4) damaged("a pool is of four dimensions");
  const bool global = op.name == "nn.global_avg_pool2d";
  const Dims window = global ? Dims{in[2], in[3]} : two(integers(op.attrs, "pool_size", {}, 1), 1);
  const Dims strides = global ? Dims{1, 1} : two(integers(op.attrs, "strides", {}, 1), 1);
  auto [before, after] = padding(integers(op.attrs, "padding"));
  for (size_t d = 0; d < 2; ++d)  // additional padding for ceil_mode
    after[d] = std::max(after[d], (out[d + 2] - 1) * strides[d] + window[d] - in[d + 2] - before[d]);
  const auto kind = op.name == "nn.max_pool2d" ? dnnl::algorithm::pooling_max
                    : tilewright::plugins::is_true(op.attrs, "count_include_pad")
                        ? dnnl::algorithm::pooling_avg_include_padding
                        : dnnl::algorithm::pooling_avg_exclude_padding;
  const auto made =
      onednn::pooling(engine_, kind, from.get_desc(), any_desc(out), window, {strides, Dims(2, 0), before, after});
  return emit(dnnl::pooling_forward(made), {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, memory(made.dst_desc(), engine_)}});
}

memory Plan::binary(const Graph::Node& node, size_t index, dnnl::algorithm kind) {
  const Dims out = shape_of(index);
  size_t left = input(node, 0), right = input(node, 1);
  if (shape_of(left) != out) std::swap(left, right);
  if (shape_of(left) != out) throw std::runtime_error("oneDNN broadcasts one operand only");
  const Dims dims = shape_of(right);
  const memory from = values_[left];
  memory other = values_[right];
  if (dims == out) {
    other = laid_out(other, from.get_desc(), is_constant(right));
  } else {
    if (dims.size() > out.size()) damaged("an operand has more dimensions than the result");
    Dims seen(out.size(), 1);
    std::copy(dims.begin(), dims.end(), seen.end() - static_cast<std::ptrdiff_t>(dims.size()));
    other = seen_as(other, plain_desc(seen), is_constant(right));
  }
  const auto made = onednn::binary(engine_, kind, from.get_desc(), other.get_desc(), from.get_desc());
  return emit(dnnl::binary(made),
              {{DNNL_ARG_SRC_0, from}, {DNNL_ARG_SRC_1, other}, {DNNL_ARG_DST, memory(from.get_desc(), engine_)}});
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) const tw_external_codegen* tw_compiler_plugin(uint64_t* count) {
  return tilewright::plugins::graph_codegen<Plan>("dnnl", count);
}

__attribute__((visibility("default"))) int32_t tw_runtime_plugin(void) {
  return tilewright::plugins::register_graph_loader<Plan>("dnnl");
}

}  // extern "C"
