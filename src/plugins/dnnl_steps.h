// SPDX-License-Identifier: Apache-2.0
// A function for oneDNN as the steps that compute it: which primitive for each kernel of the graph, its sizes, its
// post-ops and their operands. Read once, for what runs the steps (dnnl_plugin.cc) and for what writes them as C
// (dnnl_source.h).
#pragma once
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugins/dnnl_versions.h"
#include "plugins/graph.h"
#include "plugins/module_record.h"

namespace tilewright::plugins::onednn {

// An algorithm with its name in C.
struct Algorithm {
  const char* name = nullptr;
  dnnl_alg_kind_t kind = dnnl_alg_kind_undef;
  dnnl::algorithm cpp() const { return static_cast<dnnl::algorithm>(kind); }
};
#define TW_ALGORITHM(name) \
  Algorithm { #name, name }

constexpr size_t kNone = SIZE_MAX;

// What follows a convolution or a product in its primitive.
struct PostOp {
  enum class Kind { kEltwise, kSum, kBinaryAdd };
  Kind kind = Kind::kEltwise;
  Algorithm function;  // of kEltwise, with its two numbers
  float alpha = 0, beta = 0;
  size_t operand = kNone;  // a node
  Dims seen;               // of kBinaryAdd: the operand's sizes, as many as the result's
};

struct Step {
  enum class Kind { kConvolution, kProduct, kPool, kSoftmax, kEltwise, kBinary };
  Kind kind = Kind::kEltwise;
  size_t node = 0;                     // the result
  size_t data = kNone, other = kNone;  // `other`: weights, or the right operand
  Dims in, weights, out;               // of a binary step `weights` is what the right operand is seen as
  size_t bias = kNone;
  size_t sum = kNone;               // a tensor to add, shaped like the result
  bool sum_may_be_written = false;  // nothing reads it later: the result may have its memory
  std::vector<PostOp> tail;
  Dims window;
  Window slide;
  Algorithm algorithm;
  float alpha = 0, beta = 0;
  int axis = 0;
  std::string operators;  // "nn.conv2d nn.relu"
};

inline int64_t bounded(int64_t value, int64_t least) {
  if (value < least || value > 1 << 20) damaged("an attribute is " + std::to_string(value));
  return value;
}
// An attribute's numbers, each of `least` to 2^20.
inline std::vector<int64_t> integers(const nlohmann::json& attrs, const char* name, std::vector<int64_t> otherwise = {},
                                     int64_t least = 0) {
  if (!attrs.contains(name)) return otherwise;
  std::vector<int64_t> out;
  for (const nlohmann::json& item : attrs.at(name).at(0))
    out.push_back(bounded(std::stoll(item.get<std::string>()), least));
  return out;
}
inline float real(const nlohmann::json& attrs, const char* name, float otherwise) {
  return attrs.contains(name) ? std::stof(attribute(attrs, name)) : otherwise;
}
inline Dims two(const std::vector<int64_t>& v, int64_t otherwise) {
  return v.empty() ? Dims{otherwise, otherwise} : v.size() == 1 ? Dims{v[0], v[0]} : Dims{v[0], v[1]};
}
// Begin and end padding from one, two or four numbers.
inline std::pair<Dims, Dims> padding(const std::vector<int64_t>& v) {
  if (v.size() == 4) return {{v[0], v[1]}, {v[2], v[3]}};
  return {two(v, 0), two(v, 0)};
}

class StepReader {
 public:
  explicit StepReader(const Graph& graph) : graph_(graph), last_use_(graph.nodes().size(), 0) {
    for (size_t i = 0; i < nodes().size(); ++i) {
      if (nodes()[i].dtype != "float32") throw std::runtime_error("oneDNN computes float32 here");
      for (size_t entry : nodes()[i].inputs) last_use_[entry] = i;
    }
    for (size_t head : graph_.heads()) last_use_[head] = kNone;
  }

  // By node: the last kernel that reads it, kNone for results.
  const std::vector<size_t>& last_use() const { return last_use_; }

  // The step of a kernel. Throws for what oneDNN does not compute.
  Step step_of(size_t index) const {
    const std::vector<ChainOperator> chain = operators_of(*nodes()[index].json);
    if (chain.empty()) damaged("a kernel has no operator");
    const std::string& name = chain[0].name;
    Step step;
    step.node = index;
    step.out = shape_of(index);
    step.data = input(index, 0);
    step.in = shape_of(step.data);
    for (const ChainOperator& op : chain) step.operators += (step.operators.empty() ? "" : " ") + op.name;
    if (name == "nn.conv2d") {
      convolution(chain, &step);
    } else if (name == "nn.dense") {
      product(chain, &step);
    } else if (name == "nn.max_pool2d" || name == "nn.avg_pool2d" || name == "nn.global_avg_pool2d") {
      pooling(chain[0], &step);
    } else if (name == "add" || name == "multiply") {
      binary(name == "add" ? TW_ALGORITHM(dnnl_binary_add) : TW_ALGORITHM(dnnl_binary_mul), &step);
    } else if (name == "nn.softmax") {
      step.kind = Step::Kind::kSoftmax;
      const int64_t rank = static_cast<int64_t>(std::max<size_t>(step.in.size(), 1));
      const int64_t axis = integers(chain[0].attrs, "axis", {-1}, -rank).at(0);
      step.axis = static_cast<int>(axis < 0 ? axis + rank : axis);
    } else if (!eltwise(chain[0], &step.algorithm, &step.alpha, &step.beta)) {
      throw std::runtime_error("oneDNN has no '" + name + "' here");
    }
    return step;
  }

 private:
  const std::vector<Graph::Node>& nodes() const { return graph_.nodes(); }
  const Dims& shape_of(size_t node) const { return nodes()[node].shape; }
  bool is_constant(size_t node) const { return nodes()[node].kind == Graph::Kind::kConstant; }
  size_t input(size_t node, size_t k) const { return nodes()[node].inputs.at(k); }

  static bool eltwise(const ChainOperator& op, Algorithm* algorithm, float* alpha, float* beta) {
    static const std::pair<const char*, Algorithm> kKinds[] = {
        {"nn.relu", TW_ALGORITHM(dnnl_eltwise_relu)},      {"tanh", TW_ALGORITHM(dnnl_eltwise_tanh)},
        {"sigmoid", TW_ALGORITHM(dnnl_eltwise_logistic)},  {"exp", TW_ALGORITHM(dnnl_eltwise_exp)},
        {"sqrt", TW_ALGORITHM(dnnl_eltwise_sqrt)},         {"abs", TW_ALGORITHM(dnnl_eltwise_abs)},
        {"log", TW_ALGORITHM(dnnl_eltwise_log)},           {"clip", TW_ALGORITHM(dnnl_eltwise_clip_v2)},
        {"nn.leaky_relu", TW_ALGORITHM(dnnl_eltwise_relu)}};
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

  // Bias, sums and elementwise functions behind a convolution or product; the channels are axis 1.
  void read_tail(const std::vector<ChainOperator>& chain, Step* step) const {
    const Dims& out = step->out;
    for (size_t k = 1, next_input = 2; k < chain.size(); ++k) {
      PostOp op;
      if (eltwise(chain[k], &op.function, &op.alpha, &op.beta)) {
        step->tail.push_back(op);
        continue;
      }
      if (chain[k].name != "add" && chain[k].name != "nn.bias_add")
        throw std::runtime_error("oneDNN has no '" + chain[k].name + "' behind a convolution or a product");
      op.operand = input(step->node, next_input++);
      const Dims dims = shape_of(op.operand);
      int64_t count = 1;
      for (int64_t d : dims) count *= d;
      Dims of_channels(out.size(), 1);
      op.seen = of_channels;
      of_channels[1] = out[1];
      if (chain[k].name == "nn.bias_add")
        op.seen[1] = count;
      else if (dims.size() > out.size())
        damaged("an addend has more dimensions than what it is added to");
      else
        std::copy(dims.begin(), dims.end(), op.seen.end() - static_cast<std::ptrdiff_t>(dims.size()));
      if (k == 1 && op.seen == of_channels && is_constant(op.operand)) {
        step->bias = op.operand;
        continue;
      }
      // oneDNN's fast convolutions can accumulate into the result's memory; other post-op operands are slow.
      const bool sum = op.seen == out && step->sum == kNone;
      op.kind = sum ? PostOp::Kind::kSum : PostOp::Kind::kBinaryAdd;
      if (sum) {
        const std::vector<size_t>& reads = nodes()[step->node].inputs;
        step->sum = op.operand;
        step->sum_may_be_written = nodes()[op.operand].kind == Graph::Kind::kKernel &&
                                   std::count(reads.begin(), reads.end(), op.operand) == 1 &&
                                   last_use_[op.operand] == step->node;
      }
      step->tail.push_back(op);
    }
  }

  void convolution(const std::vector<ChainOperator>& chain, Step* step) const {
    const nlohmann::json& attrs = chain[0].attrs;
    step->kind = Step::Kind::kConvolution;
    step->other = input(step->node, 1);
    const Dims kernel = shape_of(step->other);
    if (step->in.size() != 4 || kernel.size() != 4 || step->out.size() != 4)
      damaged("a convolution is of four dimensions");
    const int64_t groups = bounded(integers(attrs, "groups", {1}).at(0), 1);
    step->slide.strides = two(integers(attrs, "strides", {}, 1), 1);
    step->slide.dilation = two(integers(attrs, "dilation", {}, 1), 1);
    for (int64_t& d : step->slide.dilation) d -= 1;  // oneDNN counts the gaps between taps
    std::tie(step->slide.before, step->slide.after) = padding(integers(attrs, "padding"));
    step->weights = groups == 1 ? kernel : Dims{groups, kernel[0] / groups, kernel[1], kernel[2], kernel[3]};
    read_tail(chain, step);
  }

  void product(const std::vector<ChainOperator>& chain, Step* step) const {
    step->kind = Step::Kind::kProduct;
    step->other = input(step->node, 1);
    step->weights = shape_of(step->other);
    if (step->out.size() != 2) damaged("a product is a matrix");
    read_tail(chain, step);
  }

  void pooling(const ChainOperator& op, Step* step) const {
    const Dims &in = step->in, &out = step->out;
    step->kind = Step::Kind::kPool;
    if (in.size() != 4 || out.size() != 4) damaged("a pool is of four dimensions");
    const bool global = op.name == "nn.global_avg_pool2d";
    step->window = global ? Dims{in[2], in[3]} : two(integers(op.attrs, "pool_size", {}, 1), 1);
    Window& slide = step->slide;
    slide.strides = global ? Dims{1, 1} : two(integers(op.attrs, "strides", {}, 1), 1);
    slide.dilation = Dims(2, 0);
    std::tie(slide.before, slide.after) = padding(integers(op.attrs, "padding"));
    for (size_t d = 0; d < 2; ++d)  // additional padding for ceil_mode
      slide.after[d] =
          std::max(slide.after[d], (out[d + 2] - 1) * slide.strides[d] + step->window[d] - in[d + 2] - slide.before[d]);
    step->algorithm = op.name == "nn.max_pool2d"               ? TW_ALGORITHM(dnnl_pooling_max)
                      : is_true(op.attrs, "count_include_pad") ? TW_ALGORITHM(dnnl_pooling_avg_include_padding)
                                                               : TW_ALGORITHM(dnnl_pooling_avg_exclude_padding);
  }

  void binary(Algorithm algorithm, Step* step) const {
    step->kind = Step::Kind::kBinary;
    step->algorithm = algorithm;
    step->other = input(step->node, 1);
    if (shape_of(step->data) != step->out) std::swap(step->data, step->other);
    if (shape_of(step->data) != step->out) throw std::runtime_error("oneDNN broadcasts one operand only");
    step->in = step->out;
    const Dims& dims = shape_of(step->other);
    if (dims.size() > step->out.size()) damaged("an operand has more dimensions than the result");
    step->weights = Dims(step->out.size(), 1);
    std::copy(dims.begin(), dims.end(), step->weights.end() - static_cast<std::ptrdiff_t>(dims.size()));
  }

  const Graph& graph_;
  std::vector<size_t> last_use_;
};

#undef TW_ALGORITHM

}  // namespace tilewright::plugins::onednn
