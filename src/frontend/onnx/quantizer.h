// SPDX-License-Identifier: Apache-2.0
// A float32 model as one of 8-bit products: QuantizeLinear and DequantizeLinear pairs around the convolutions and
// matrix products by constant weights. What: batch normalisations go into the convolutions before them. Activations
// become uint8 with a zero point, one scale
//   a value; weights int8, one scale for each output channel; biases int32 of both scales. A convolution's result is
//   quantized behind its Relu or Clip; what moves values or takes maxima between has the scale of its operand.
//   Biases make up for what the rounding of the weights adds to each channel on average.
// The rest of the model stays what it is, byte by byte.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "frontend/onnx/write.h"

namespace tilewright::onnx {

struct ValueRange {
  float low = 0, high = 0;
};

// A product that can be in 8 bits.
struct QuantizableLayer {
  std::string label;  // the node's name, or its output's
  std::string op;
  size_t node = 0;     // index into Quantizer's nodes
  int64_t axis = 0;    // the weight's axis of output channels
  std::string result;  // the value that is quantised behind the layer; empty: none
};

class Quantizer {
 public:
  // The model must outlive it. Error: UnsupportedModel (no layer can be in 8 bits).
  static Result<Quantizer> create(const Model& model);

  const std::vector<QuantizableLayer>& layers() const { return layers_; }
  // The values that need ranges for `set_ranges`, and the layers' operands.
  const std::vector<std::string>& observed() const { return observed_; }
  // The float model with these values as additional outputs.
  EditedModel observing() const;

  void set_ranges(std::map<std::string, ValueRange> ranges) { ranges_ = std::move(ranges); }
  // The mean of each channel of a layer's operand (axis 1 for convolutions, else the last), for bias correction. Layers
  // without means keep their biases.
  void set_operand_means(size_t layer, std::vector<double> means) { means_[layer] = std::move(means); }
  const std::string& operand(size_t layer) const { return nodes_[layers_[layer].node].node.inputs[0]; }
  void set_per_channel(bool per_channel) { per_channel_ = per_channel; }

  // `kept`: indices of layers that stay in float32.
  EditedModel quantized(const std::set<size_t>& kept) const;
  // Both models in one. Its outputs: the model's own, the quantized model's, then for each layer four numbers: the sums
  // of squares of its float32 result, of the difference to the layer in 8 bits on float32 values, and of the difference
  // to the layer in the quantized model; those of layers in `kept` are not there.
  EditedModel study(const std::set<size_t>& kept) const;
  // Signal-to-noise ratio of a layer's quantised weights: a ratio of sums of squares.
  double weight_accuracy(size_t layer) const;

 private:
  struct Linear;  // scale and zero point of one tensor
  class Build;
  explicit Quantizer(const Model& model) : model_(model) {}
  void fold_batch_norms();
  void find_layers();
  const Tensor* constant(const std::string& name) const;
  bool is_shared(const std::string& name) const;  // read by several nodes or a subgraph, or an output
  std::string behind_activation(std::string value) const;
  // The values that become uint8 when layers in `kept` stay float32, each with the value whose scale it shares.
  std::map<std::string, std::string> quantized_values(const std::set<size_t>& kept) const;
  // The average error that rounding a layer's weights adds to each output channel.
  std::vector<double> mean_errors(size_t layer, const Tensor& bytes, const Linear& steps) const;
  Linear weight_scales(size_t layer, const std::string& bias, float input_scale) const;

  const Model& model_;
  std::vector<EditedNode> nodes_;
  std::map<std::string, Tensor> constants_;
  std::map<std::string, size_t> producer_;
  std::map<std::string, std::vector<size_t>> readers_;
  std::set<std::string> outputs_, captured_, inputs_;
  std::vector<QuantizableLayer> layers_;
  std::vector<std::string> observed_;
  std::map<std::string, ValueRange> ranges_;
  std::map<size_t, std::vector<double>> means_;
  bool per_channel_ = true;
};

}  // namespace tilewright::onnx
