// SPDX-License-Identifier: Apache-2.0
// A folder of samples for calibrating or evaluating a model.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "inputs/input_spec.h"

namespace tilewright::inputs {

// The files of a folder in name order: .npy and .pb (for models with one input), .npz (entries named like inputs),
// images. A tensor longer than its input along the first axis contains several samples.
class Samples {
 public:
  // `picture_options`: as in --input, for example "preset=imagenet"; may be empty. Reads at most `limit` samples; 0:
  // all. Errors: FileNotFound, InvalidArgument (no suitable file).
  static Result<Samples> open(const std::string& folder, const std::string& picture_options, size_t limit);
  // Sets free sizes from the first sample; a free first dimension is taken as a batch of one. Errors: FreeDimension and
  // those of the readers.
  Status fill_free_sizes(std::vector<InputInfo>* inputs) const;
  // Visits each sample, one tensor per input in order; `done` is the fraction of files already processed. Errors:
  // UnknownInput, ShapeMismatch, DtypeMismatch, those of the readers and of `visit`.
  using Visit = std::function<Status(double done, const std::vector<Tensor>& sample)>;
  Status for_each(const std::vector<InputInfo>& inputs, const Visit& visit) const;
  const std::vector<std::string>& files() const { return files_; }

 private:
  std::string picture_options_;
  size_t limit_ = 0;
  std::vector<std::string> files_;
};

}  // namespace tilewright::inputs
