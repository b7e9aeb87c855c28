// SPDX-License-Identifier: Apache-2.0
// Quantises a float32 ONNX model to 8 bits: calibrated on samples, compared with the original, written with
// QuantizeLinear and DequantizeLinear pairs.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "driver/build.h"
#include "driver/calibration.h"
#include "inputs/samples.h"

namespace tilewright::driver {

struct QuantizeOptions {
  BuildOptions build;  // target for the calibration runs, shapes
  CalibrationMethod method = CalibrationMethod::kMinMax;
  double percentile = 99.99;
  bool per_channel = true;
  std::vector<std::string> keep;  // layers that stay in float32
  double layer_decibels = 12;     // layers whose own result is less accurate stay in float32
  double output_decibels = 10;    // while an output is less accurate, the worst layers return to float32
  int threads = 0;
};

// Accuracies are signal-to-noise ratios in decibels: 10 log10 of the sum of squares over that of the differences.
struct LayerAccuracy {
  std::string name, op;
  double weights = 0;  // of the weights alone
  double own = 0;      // of the layer's result on float32 inputs
  double so_far = 0;   // of the layer's result in the quantised model
  std::string kept;    // why it stays in float32; empty: it is quantised
};
struct OutputAccuracy {
  std::string name;
  double decibels = 0;
  double same_largest = -1;  // fraction of rows along the last axis whose argmax agrees
};
struct QuantizeReport {
  std::string model;  // the model's bytes
  std::vector<LayerAccuracy> layers;
  std::vector<OutputAccuracy> outputs;
  size_t samples = 0;
};

// Errors: those of reading, compiling and running the model, and of the samples; UnsupportedModel (nothing can be
// quantised), InvalidArgument (an unknown layer, values that are not finite).
Result<QuantizeReport> quantize_onnx(const std::string& path, const inputs::Samples& samples,
                                     const QuantizeOptions& options);

}  // namespace tilewright::driver
