// SPDX-License-Identifier: Apache-2.0
// A float32 ONNX model in 8 bits: calibrated on samples, compared with itself, written as QuantizeLinear and
// DequantizeLinear pairs.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "driver/build.h"
#include "driver/calibration.h"
#include "inputs/samples.h"

namespace tilewright::driver {

struct QuantizeOptions {
  BuildOptions build;  // the target that runs are compiled for, shapes
  CalibrationMethod method = CalibrationMethod::kMinMax;
  double percentile = 99.99;
  bool per_channel = true;
  std::vector<std::string> keep;  // names of layers that stay in float32
  double layer_decibels = 12;     // layers whose own result is worse stay in float32
  double output_decibels = 10;    // while an output is worse, the worst layers become float32 again
  int threads = 0;
};

// Accuracies are signal over noise in decibels: 10 log10 of the sum of squares over that of the differences.
struct LayerAccuracy {
  std::string name, op;
  double weights = 0;  // of the weights alone
  double own = 0;      // of the result, on the values that float32 gives
  double so_far = 0;   // of the result, in the quantized model
  std::string kept;    // why it stays in float32; empty: it is in 8 bits
};
struct OutputAccuracy {
  std::string name;
  double decibels = 0;
  double same_largest = -1;  // share of rows along the last axis with the largest element in the same place
};
struct QuantizeReport {
  std::string model;  // its bytes
  std::vector<LayerAccuracy> layers;
  std::vector<OutputAccuracy> outputs;
  size_t samples = 0;
};

// Errors: those of reading, compiling and running the model, and of the samples; UnsupportedModel (nothing can be in 8
// bits), InvalidArgument (a layer's name, values that are not finite).
Result<QuantizeReport> quantize_onnx(const std::string& path, const inputs::Samples& samples,
                                     const QuantizeOptions& options);

}  // namespace tilewright::driver
