// SPDX-License-Identifier: Apache-2.0
// A folder of samples: what a model is calibrated with, or judged by.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "inputs/input_spec.h"

namespace tilewright::inputs {

// Files below a folder, in the order of their names: .npy and .pb (models of one input), .npz (entries by the inputs'
// names), pictures. A tensor that is longer than its input along the first axis holds several samples.
class Samples {
 public:
  // `picture_options`: as in --input, "preset=imagenet" say; may be empty. At most `limit` samples are read; 0: all.
  // Errors: FileNotFound, InvalidArgument (no file that could be a sample).
  static Result<Samples> open(const std::string& folder, const std::string& picture_options, size_t limit);
  // Free sizes become those of the first sample; the first one is taken for a batch, of one. Errors: FreeDimension and
  // the readers'.
  Status fill_free_sizes(std::vector<InputInfo>* inputs) const;
  // One tensor for each input, in order; `done` is the share of the files before. Errors: UnknownInput, ShapeMismatch,
  // DtypeMismatch, those of the readers and of `visit`.
  using Visit = std::function<Status(double done, const std::vector<Tensor>& sample)>;
  Status for_each(const std::vector<InputInfo>& inputs, const Visit& visit) const;
  const std::vector<std::string>& files() const { return files_; }

 private:
  std::string picture_options_;
  size_t limit_ = 0;
  std::vector<std::string> files_;
};

}  // namespace tilewright::inputs
