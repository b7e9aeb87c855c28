// SPDX-License-Identifier: Apache-2.0
// The models that Quantizer builds.
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "frontend/onnx/quantizer.h"

namespace tilewright::onnx {

struct Quantizer::Linear {
  std::vector<float> scale;
  int64_t axis = 0;
};

namespace {

constexpr float kByteSteps = 255, kWeightSteps = 127;

struct Bytes {
  float scale;
  uint8_t zero;
};
// Zero must be exactly representable, since padding is zero: the range is widened to contain it.
Bytes bytes_for(ValueRange range) {
  const float low = std::min(range.low, 0.0f), high = std::max(range.high, 0.0f);
  const float scale = std::max((high - low) / kByteSteps, FLT_MIN * 1e6f);
  return {scale, static_cast<uint8_t>(std::clamp(std::nearbyint(-low / scale), 0.0f, kByteSteps))};
}

// Calls `visit` for the slices of a tensor along `axis` that have a scale of their own (or once for the whole tensor).
template <class F>
void for_each_place(const Tensor& t, int64_t axis, F&& visit) {
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(axis) + 1; d < t.shape().size(); ++d) inner *= t.shape()[d];
  const int64_t places = t.shape()[static_cast<size_t>(axis)];
  for (int64_t i = 0; i < t.size(); ++i) visit(i, i / inner % places);
}

float to_step(float value, float scale, float most) { return std::clamp(std::nearbyint(value / scale), -most, most); }

}  // namespace

Quantizer::Linear Quantizer::weight_scales(size_t layer, const std::string& bias, float input_scale) const {
  const QuantizableLayer& l = layers_[layer];
  const Tensor& w = constants_.at(nodes_[l.node].node.inputs[1]);
  const auto values = w.as<float>();
  Linear out;
  out.axis = l.axis;
  out.scale.assign(static_cast<size_t>(w.shape()[static_cast<size_t>(l.axis)]), 0);
  for_each_place(w, l.axis, [&](int64_t i, int64_t c) {
    float& most = out.scale[static_cast<size_t>(c)];
    most = std::max(most, std::fabs(values[static_cast<size_t>(i)]));
  });
  if (!per_channel_) out.scale.assign(1, *std::max_element(out.scale.begin(), out.scale.end()));
  // The bias is int32 at the scale of the product's sums, input scale times weight scale.
  float least = FLT_MIN * 1e6f;
  const Tensor* b = bias.empty() ? nullptr : constant(bias);
  for (size_t c = 0; c < out.scale.size(); ++c) {
    out.scale[c] = std::max(out.scale[c] / kWeightSteps, least);
    for (int64_t k = 0; b && k < b->size(); ++k)
      if (!per_channel_ || k == static_cast<int64_t>(c))
        out.scale[c] =
            std::max(out.scale[c], std::fabs(b->as<float>()[static_cast<size_t>(k)]) / input_scale * 0x1p-30f);
  }
  return out;
}

std::vector<double> Quantizer::mean_errors(size_t layer, const Tensor& bytes, const Linear& steps) const {
  const QuantizableLayer& l = layers_[layer];
  const Tensor& w = constants_.at(nodes_[l.node].node.inputs[1]);
  const auto& shape = w.shape();
  const int64_t outputs = shape[static_cast<size_t>(l.axis)];
  std::vector<double> errors(static_cast<size_t>(outputs), 0);
  auto found = means_.find(layer);
  if (found == means_.end()) return errors;
  const auto channels = static_cast<int64_t>(found->second.size());
  const bool conv = l.op == "Conv";
  const int64_t taps = conv ? shape[2] * shape[3] : 1,
                in_group = conv ? shape[1] : shape[static_cast<size_t>(1 - l.axis)];
  const int64_t groups = conv ? channels / in_group : 1;
  if (groups * in_group != channels || outputs % groups != 0) return errors;
  const auto values = w.as<float>();
  const auto whole = bytes.as<int8_t>();
  for_each_place(w, l.axis, [&](int64_t i, int64_t o) {
    const int64_t within = conv || l.axis == 0 ? i / taps % in_group : i / outputs;
    const int64_t channel = o / (outputs / groups) * in_group + within;
    const double exact = values[static_cast<size_t>(i)];
    const double rounded = static_cast<double>(whole[static_cast<size_t>(i)]) *
                           steps.scale[steps.scale.size() == 1 ? 0 : static_cast<size_t>(o)];
    errors[static_cast<size_t>(o)] += (rounded - exact) * found->second[static_cast<size_t>(channel)];
  });
  return errors;
}

double Quantizer::weight_accuracy(size_t layer) const {
  const Tensor& w = constants_.at(nodes_[layers_[layer].node].node.inputs[1]);
  const Linear steps = weight_scales(layer, {}, 1);
  const auto values = w.as<float>();
  double signal = 0, noise = 0;
  for_each_place(w, steps.axis, [&](int64_t i, int64_t c) {
    const float v = values[static_cast<size_t>(i)],
                scale = steps.scale[steps.scale.size() == 1 ? 0 : static_cast<size_t>(c)];
    const float error = v - scale * to_step(v, scale, kWeightSteps);
    signal += static_cast<double>(v) * v, noise += static_cast<double>(error) * error;
  });
  return noise > 0 ? signal / noise : HUGE_VAL;
}

// Builds the nodes and constants of one model. A prefix distinguishes the quantised model's values when both models are
// in one.
class Quantizer::Build {
 public:
  explicit Build(const Quantizer& q) : q_(q) {
    out_.original = &q.model_;
    for (const auto& [name, data] : q.constants_) taken_.insert(name);
    for (const auto& n : q.nodes_) taken_.insert(n.node.outputs.begin(), n.node.outputs.end());
    taken_.insert(q.inputs_.begin(), q.inputs_.end());
    const auto opset = q.model_.opsets.find("");
    // The standard operators take per-axis scales from opset 13 on; onnxruntime's always did.
    if (opset == q.model_.opsets.end() || opset->second < 13) domain_ = "com.microsoft";
    if (!domain_.empty()) out_.more_opsets[domain_] = 1;
  }
  std::string unique(const std::string& wanted) {
    std::string name = wanted;
    for (int n = 2; !taken_.insert(name).second; ++n) name = wanted + "_" + std::to_string(n);
    return name;
  }
  std::string constant(const std::string& wanted, const Tensor& data) {
    std::string name = unique(wanted);
    out_.initializers.push_back({name, data});
    return name;
  }
  std::string node(const char* op, std::vector<std::string> inputs, const std::string& output,
                   const std::string& domain = {}, std::vector<Attribute> attributes = {}) {
    Node n;
    n.name = n.outputs.emplace_back(unique(output));
    n.op_type = op, n.domain = domain;
    n.inputs = std::move(inputs);
    n.attributes = std::move(attributes);
    out_.nodes.push_back({n, -1});
    return n.name;
  }
  void float_model() {
    for (const EditedNode& n : q_.nodes_) out_.nodes.push_back(n);
    for (const auto& [name, data] : q_.constants_) wanted_.insert(name);
  }
  // Adds QuantizeLinear and DequantizeLinear for the value; `name` with suffixes names their results.
  std::string pair(const std::string& value, const std::string& scale_of, const std::string& name) {
    auto& made = scales_[scale_of];
    if (made.first.empty()) {
      const Bytes bytes = bytes_for(q_.ranges_.at(scale_of));
      made.first = constant(scale_of + "_scale", Tensor::scalar(kFloat32, bytes.scale));
      made.second = constant(scale_of + "_zero_point", Tensor::scalar(kUInt8, bytes.zero));
    }
    const std::string q = node("QuantizeLinear", {value, made.first, made.second}, name + "_quantized", domain_);
    return node("DequantizeLinear", {q, made.first, made.second}, name + "_dequantized", domain_);
  }
  // The layer's quantised weight and bias, to replace inputs 1 and 2.
  std::vector<std::string> byte_constants(size_t layer, const std::string& scale_of);
  // Quantises the layers not in `kept`, on the values that `read` maps float32 values to.
  void quantized_model(const std::set<size_t>& kept, const std::string& prefix);
  // Quantises each layer alone, on the float model's values, and adds the sums of squares of its error.
  void compare(const std::set<size_t>& kept, const std::string& prefix);
  EditedModel finish() {
    // Removes constants that nothing reads any more.
    std::erase_if(out_.nodes, [&](const EditedNode& n) {
      const std::string& name = n.node.outputs.front();
      return n.source >= 0 && q_.constant(name) && !wanted_.count(name);
    });
    for (const auto& name : wanted_) {
      auto it = q_.constants_.find(name);
      const bool is_node = q_.producer_.count(name) > 0;  // a Constant node, not an initializer
      if (it != q_.constants_.end() && !is_node) out_.initializers.push_back({name, it->second});
    }
    return std::move(out_);
  }
  void want(const std::string& name) { wanted_.insert(name); }
  void output(const std::string& name, DataType dtype) { out_.more_outputs.push_back({name, dtype}); }

 private:
  std::string sum_of_squares(const std::string& value) {
    const std::string squares = node("Mul", {value, value}, value + "_squares");
    return node("ReduceSum", {squares}, value + "_energy", {}, {int_attribute("keepdims", 0)});
  }

  const Quantizer& q_;
  EditedModel out_;
  std::set<std::string> taken_, wanted_;
  std::string domain_;
  std::map<std::string, std::pair<std::string, std::string>> scales_;
  std::map<size_t, std::vector<std::string>> byte_constants_;
};

std::vector<std::string> Quantizer::Build::byte_constants(size_t layer, const std::string& scale_of) {
  auto& made = byte_constants_[layer];
  if (!made.empty()) return made;
  const QuantizableLayer& l = q_.layers_[layer];
  const Node& n = q_.nodes_[l.node].node;
  const std::string weight = n.inputs[1];
  const Tensor& w = q_.constants_.at(weight);
  const Tensor* b = n.inputs.size() > 2 && !n.inputs[2].empty() ? q_.constant(n.inputs[2]) : nullptr;
  const int64_t places = w.shape()[static_cast<size_t>(l.axis)];
  // whether the layer has a free bias input
  const bool has_place = l.op != "MatMul" && (n.inputs.size() <= 2 || n.inputs[2].empty());
  const bool byte_bias = has_place || (b && b->dtype() == kFloat32 && b->rank() == 1 && b->size() == places);
  const float x = bytes_for(q_.ranges_.at(scale_of)).scale;
  const Linear steps = q_.weight_scales(layer, b && byte_bias ? n.inputs[2] : std::string(), x);
  auto scale_at = [&](int64_t c) { return steps.scale[steps.scale.size() == 1 ? 0 : static_cast<size_t>(c)]; };
  Tensor bytes(kInt8, w.shape());
  const auto values = w.as<float>();
  auto into = bytes.as_mutable<int8_t>();
  for_each_place(w, l.axis, [&](int64_t i, int64_t c) {
    into[static_cast<size_t>(i)] =
        static_cast<int8_t>(to_step(values[static_cast<size_t>(i)], scale_at(c), kWeightSteps));
  });
  const bool each = steps.scale.size() > 1;
  auto scales = [&](const std::string& name, float factor) {
    std::vector<float> list = steps.scale;
    for (float& s : list) s *= factor;
    return constant(name, each ? Tensor::from<float>(kFloat32, {places}, list) : Tensor::scalar(kFloat32, list[0]));
  };
  const std::vector<int64_t> shape = each ? std::vector<int64_t>{places} : std::vector<int64_t>{};
  const std::vector<Attribute> axis =
      each ? std::vector<Attribute>{int_attribute("axis", l.axis)} : std::vector<Attribute>{};
  const std::string q = constant(weight + "_quantized", bytes);
  made.push_back(node("DequantizeLinear",
                      {q, scales(weight + "_scale", 1), constant(weight + "_zero_point", Tensor::zeros(kInt8, shape))},
                      weight + "_dequantized", domain_, axis));
  if (byte_bias) {
    const std::string bias = b ? n.inputs[2] : n.outputs[0] + "_bias";
    const std::vector<double> errors = q_.mean_errors(layer, bytes, steps);
    Tensor sums(kInt32, {places});
    for (int64_t c = 0; c < places; ++c)
      sums.set_int(c, std::llround(std::clamp(((b ? b->at_double(c) : 0) - errors[static_cast<size_t>(c)]) /
                                                  (static_cast<double>(x) * scale_at(c)),
                                              -0x1p31 + 1, 0x1p31 - 1)));
    const std::string sums_name = constant(bias + "_quantized", sums);
    const std::vector<Attribute> along =
        each ? std::vector<Attribute>{int_attribute("axis", 0)} : std::vector<Attribute>{};
    made.push_back(
        node("DequantizeLinear",
             {sums_name, scales(bias + "_scale", x), constant(bias + "_zero_point", Tensor::zeros(kInt32, shape))},
             bias + "_dequantized", domain_, along));
  } else if (n.inputs.size() > 2) {
    wanted_.insert(n.inputs[2]);
    made.push_back(n.inputs[2]);
  }
  return made;
}

void Quantizer::Build::quantized_model(const std::set<size_t>& kept, const std::string& prefix) {
  const auto bytes = q_.quantized_values(kept);
  std::map<std::string, std::string> read;  // a float value's name to the name that its readers use
  auto define = [&](const std::string& value, const std::string& name) {
    auto it = bytes.find(value);
    read[value] = it == bytes.end() ? name : pair(name, it->second, prefix + value);
  };
  for (const auto& input : q_.model_.graph.inputs)
    if (q_.inputs_.count(input.name)) define(input.name, input.name);
  std::map<size_t, size_t> layer_of;
  for (size_t l = 0; l < q_.layers_.size(); ++l)
    if (!kept.count(l)) layer_of[q_.layers_[l].node] = l;
  for (size_t i = 0; i < q_.nodes_.size(); ++i) {
    EditedNode n = q_.nodes_[i];
    auto layer = layer_of.find(i);
    std::vector<std::string> replaced;
    if (layer != layer_of.end()) replaced = byte_constants(layer->second, bytes.at(n.node.inputs[0]));
    if (n.node.inputs.size() < 1 + replaced.size()) n.node.inputs.resize(1 + replaced.size());
    for (size_t k = 0; k < n.node.inputs.size(); ++k) {
      std::string& name = n.node.inputs[k];
      if (k > 0 && k <= replaced.size()) {
        name = replaced[k - 1];
      } else if (auto it = read.find(name); it != read.end()) {
        name = it->second;
      } else {
        wanted_.insert(name);
      }
    }
    if (!prefix.empty() && q_.constant(n.node.outputs[0])) continue;  // a Constant, which the float model already has
    for (std::string& name : n.node.outputs)
      if (!name.empty()) name = prefix + name;
    out_.nodes.push_back(n);
    for (size_t k = 0; k < n.node.outputs.size(); ++k)
      if (const std::string& value = q_.nodes_[i].node.outputs[k]; !value.empty() && !q_.constant(value))
        define(value, prefix + value);
  }
}

void Quantizer::Build::compare(const std::set<size_t>& kept, const std::string& prefix) {
  const auto bytes = q_.quantized_values(kept);
  std::map<std::string, std::string> own;
  for (size_t l = 0; l < q_.layers_.size(); ++l) {
    if (kept.count(l)) continue;
    EditedNode n = q_.nodes_[q_.layers_[l].node];
    const std::string x = n.node.inputs[0], y = n.node.outputs[0];
    const std::string& scale_of = bytes.at(x);
    if (own[x].empty()) own[x] = pair(x, scale_of, prefix + "own_" + x);
    n.node.inputs = {own[x]};
    for (const auto& name : byte_constants(l, scale_of)) n.node.inputs.push_back(name);
    const std::string alone = n.node.outputs[0] = unique(prefix + "own_" + y);
    out_.nodes.push_back(n);
    const std::string places[] = {y, node("Sub", {alone, y}, prefix + y + "_own_error"),
                                  node("Sub", {prefix + y, y}, prefix + y + "_error")};
    for (const std::string& value : places) output(sum_of_squares(value), kFloat32);
  }
}

EditedModel Quantizer::observing() const {
  Build build(*this);
  build.float_model();
  for (const auto& value : observed_) build.output(build.node("Identity", {value}, value + "_observed"), kFloat32);
  return build.finish();
}

EditedModel Quantizer::quantized(const std::set<size_t>& kept) const {
  Build build(*this);
  build.quantized_model(kept, {});
  for (const auto& name : captured_) build.want(name);
  for (const auto& name : outputs_) build.want(name);
  return build.finish();
}

EditedModel Quantizer::study(const std::set<size_t>& kept) const {
  static constexpr const char* kPrefix = "in_bytes/";
  Build build(*this);
  build.float_model();
  build.quantized_model(kept, kPrefix);
  for (const auto& output : model_.graph.outputs)
    build.output(constant(output.name) || inputs_.count(output.name) ? output.name : kPrefix + output.name,
                 output.type.elem.value_or(kFloat32));
  build.compare(kept, kPrefix);
  return build.finish();
}

}  // namespace tilewright::onnx
