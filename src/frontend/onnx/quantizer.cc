// SPDX-License-Identifier: Apache-2.0
// Selects the layers and values of a model that can be 8-bit.
#include "frontend/onnx/quantizer.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

namespace tilewright::onnx {
namespace {

// Names that subgraphs capture, over-approximated: names defined inside are included.
void collect_captured(const Graph& graph, std::set<std::string>* names) {
  for (const Node& n : graph.nodes) {
    names->insert(n.inputs.begin(), n.inputs.end());
    for (const Attribute& a : n.attributes)
      for (const auto& g : a.graphs) collect_captured(*g, names);
  }
  for (const ValueInfo& o : graph.outputs) names->insert(o.name);
}

int64_t int_attribute(const Node& n, const char* name, int64_t otherwise) {
  const Attribute* a = n.find(name);
  return a ? a->i : otherwise;
}
float float_attribute(const Node& n, const char* name, float otherwise) {
  const Attribute* a = n.find(name);
  return a ? a->f : otherwise;
}
bool is_standard(const Node& n) { return n.domain.empty() || n.domain == "ai.onnx"; }
bool is_one_of(const Node& n, std::initializer_list<const char*> ops) {
  return is_standard(n) && std::any_of(ops.begin(), ops.end(), [&](const char* op) { return n.op_type == op; });
}
bool is_clamp(const Node& n) { return is_one_of(n, {"Relu", "Clip"}); }
// Whether the result consists of operand values, so that it can share the operand's scale.
bool keeps_scale(const Node& n) {
  return is_one_of(n, {"MaxPool", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Identity"}) &&
         n.outputs.size() == 1;
}

}  // namespace

Result<Quantizer> Quantizer::create(const Model& model) {
  Quantizer q(model);
  for (const auto& t : model.graph.initializers) q.constants_[t.name] = t.data;
  for (const auto& o : model.graph.outputs) q.outputs_.insert(o.name);
  for (const auto& i : model.graph.inputs)
    if (!q.constants_.count(i.name)) q.inputs_.insert(i.name);
  for (size_t i = 0; i < model.graph.nodes.size(); ++i) {
    const Node& n = model.graph.nodes[i];
    if (n.outputs.empty()) return Diagnostic(ErrorCode::kMalformedModel, format("node {} has no output", n.label()));
    q.nodes_.push_back({n, static_cast<int64_t>(i)});
    for (const Attribute& a : n.attributes)
      for (const auto& g : a.graphs) collect_captured(*g, &q.captured_);
    const Attribute* value = is_one_of(n, {"Constant"}) ? n.find("value") : nullptr;
    if (value && value->tensors.size() == 1) q.constants_[n.outputs[0]] = value->tensors[0];
  }
  q.fold_batch_norms();
  for (size_t i = 0; i < q.nodes_.size(); ++i) {
    for (const auto& name : q.nodes_[i].node.outputs) q.producer_[name] = i;
    for (const auto& name : q.nodes_[i].node.inputs) q.readers_[name].push_back(i);
  }
  q.find_layers();
  if (q.layers_.empty())
    return Diagnostic(ErrorCode::kUnsupportedModel,
                      "no layer can be in 8 bits: the model has no float32 Conv (two-dimensional), Gemm or MatMul by "
                      "constant weights",
                      {}, "quantize a float32 model whose weights are initializers");
  std::set<std::string> observed;
  for (const auto& [value, source] : q.quantized_values({})) observed.insert(source);
  for (size_t l = 0; l < q.layers_.size(); ++l) observed.insert(q.operand(l));
  q.observed_.assign(observed.begin(), observed.end());
  return q;
}

const Tensor* Quantizer::constant(const std::string& name) const {
  auto it = constants_.find(name);
  return it == constants_.end() ? nullptr : &it->second;
}

bool Quantizer::is_shared(const std::string& name) const {
  auto it = readers_.find(name);
  return outputs_.count(name) || captured_.count(name) || (it != readers_.end() && it->second.size() > 1);
}

// Folds y = (conv(x) + b - mean) * scale / sqrt(variance + epsilon) + shift into the convolution's weights and bias.
void Quantizer::fold_batch_norms() {
  std::map<std::string, size_t> producer, reads;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (const auto& name : nodes_[i].node.outputs) producer[name] = i;
    for (const auto& name : nodes_[i].node.inputs) ++reads[name];
  }
  std::set<size_t> gone;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& norm = nodes_[i].node;
    if (!is_one_of(norm, {"BatchNormalization"}) || norm.inputs.size() != 5 || norm.outputs.size() != 1 ||
        int_attribute(norm, "training_mode", 0) != 0 || int_attribute(norm, "spatial", 1) != 1)
      continue;
    const std::string x = norm.inputs[0];
    auto from = producer.find(x);
    if (from == producer.end() || reads[x] != 1 || outputs_.count(x) || captured_.count(x)) continue;
    Node& conv = nodes_[from->second].node;
    if (!is_one_of(conv, {"Conv"}) || conv.inputs.size() < 2) continue;
    const Tensor* w = constant(conv.inputs[1]);
    const bool has_bias = conv.inputs.size() > 2 && !conv.inputs[2].empty();
    const Tensor* b = has_bias ? constant(conv.inputs[2]) : nullptr;
    std::vector<const Tensor*> of_norm;
    for (size_t k = 1; k < 5; ++k) of_norm.push_back(constant(norm.inputs[k]));
    const int64_t channels = w && w->rank() > 0 ? w->shape()[0] : 0;
    auto fits = [&](const Tensor* t) { return t && t->dtype() == kFloat32 && t->size() == channels; };
    if (channels == 0 || !(w->dtype() == kFloat32) || (has_bias && !fits(b)) ||
        !std::all_of(of_norm.begin(), of_norm.end(), fits))
      continue;
    const double epsilon = float_attribute(norm, "epsilon", 1e-5f);
    Tensor weight(kFloat32, w->shape()), bias(kFloat32, {channels});
    const int64_t block = w->size() / channels;
    for (int64_t c = 0; c < channels; ++c) {
      const double factor = of_norm[0]->at_double(c) / std::sqrt(of_norm[3]->at_double(c) + epsilon);
      for (int64_t k = c * block; k < (c + 1) * block; ++k) weight.set_double(k, w->at_double(k) * factor);
      bias.set_double(c, ((b ? b->at_double(c) : 0) - of_norm[2]->at_double(c)) * factor + of_norm[1]->at_double(c));
    }
    const std::string base = norm.outputs[0];
    constants_[base + "_folded_weight"] = std::move(weight);
    constants_[base + "_folded_bias"] = std::move(bias);
    conv.inputs = {conv.inputs[0], base + "_folded_weight", base + "_folded_bias"};
    conv.outputs[0] = base;
    producer[base] = from->second;
    gone.insert(i);
  }
  std::vector<EditedNode> left;
  for (size_t i = 0; i < nodes_.size(); ++i)
    if (!gone.count(i)) left.push_back(std::move(nodes_[i]));
  nodes_ = std::move(left);
}

std::string Quantizer::behind_activation(std::string value) const {
  while (!is_shared(value)) {
    auto it = readers_.find(value);
    if (it == readers_.end() || !is_clamp(nodes_[it->second[0]].node)) break;
    value = nodes_[it->second[0]].node.outputs[0];
  }
  return value;
}

void Quantizer::find_layers() {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& n = nodes_[i].node;
    if (!is_one_of(n, {"Conv", "Gemm", "MatMul"}) || n.inputs.size() < 2 || constant(n.inputs[0])) continue;
    const Tensor* w = constant(n.inputs[1]);
    if (!w || !(w->dtype() == kFloat32) || w->size() == 0) continue;
    QuantizableLayer layer{n.name.empty() ? n.outputs[0] : n.name, n.op_type, i, 0, {}};
    if (n.op_type == "Conv") {
      if (w->rank() != 4) continue;
      const std::string result = behind_activation(n.outputs[0]);
      if (!outputs_.count(result)) layer.result = result;
    } else if (w->rank() != 2) {
      continue;
    } else if (n.op_type == "Gemm") {
      if (float_attribute(n, "alpha", 1) != 1 || float_attribute(n, "beta", 1) != 1 || int_attribute(n, "transA", 0))
        continue;
      layer.axis = int_attribute(n, "transB", 0) ? 0 : 1;
    } else {
      layer.axis = 1;
    }
    layers_.push_back(std::move(layer));
  }
}

std::map<std::string, std::string> Quantizer::quantized_values(const std::set<size_t>& kept) const {
  std::map<std::string, std::string> values;
  std::vector<std::string> waiting;
  auto add = [&](const std::string& value) {
    if (!value.empty() && !constant(value) && values.emplace(value, value).second) waiting.push_back(value);
  };
  for (size_t l = 0; l < layers_.size(); ++l) {
    if (kept.count(l)) continue;
    add(nodes_[layers_[l].node].node.inputs[0]);
    add(layers_[l].result);
  }
  std::vector<std::pair<std::string, std::string>> moved;  // a value and the value it was moved from
  while (!waiting.empty()) {
    const std::string value = waiting.back();
    waiting.pop_back();
    auto it = producer_.find(value);
    if (it == producer_.end()) continue;
    const Node& n = nodes_[it->second].node;
    if (n.inputs.empty() || constant(n.inputs[0])) continue;
    if (keeps_scale(n)) moved.emplace_back(value, n.inputs[0]);
    if (keeps_scale(n) || is_one_of(n, {"GlobalAveragePool", "AveragePool"})) add(n.inputs[0]);
  }
  for (const auto& [value, before] : moved) values[value] = before;
  for (auto& [value, source] : values)
    while (values.at(source) != source) source = values.at(source);
  return values;
}

}  // namespace tilewright::onnx
