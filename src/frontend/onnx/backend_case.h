// SPDX-License-Identifier: Apache-2.0
// Test folders in the layout of ONNX's backend tests: model.onnx and test_data_set_*/{input,output}_*.pb.
#pragma once
#include <string>
#include <vector>

#include "frontend/onnx/import.h"

namespace tilewright::onnx {

// What an input or output file holds: a tensor, or a sequence of them; an optional without a value is neither.
struct CaseValue {
  std::string name;
  Tensor tensor;
  std::vector<Tensor> sequence;
  bool is_sequence = false;
  bool absent = false;
};

struct BackendCase {
  std::string name, folder;
  Model model;
  struct DataSet {
    std::vector<CaseValue> inputs, outputs;
  };
  std::vector<DataSet> sets;
};

// Reads a test folder, or a single-file light model X.onnx: its outputs lie beside it in X_output_0.pb, and its inputs
// are ramps from 0 towards 1. Errors: FileNotFound, MalformedModel.
Result<BackendCase> load_backend_case(const std::string& folder);

// The model imported for one data set: free dimensions take the sizes of the data, and inputs whose values the import
// needs (a Reshape's target shape, axes, pads ...) become constants, whose names go to `constants`. main's
// "input_names" lists the remaining inputs in order. `all_constant`: so do all tensors.
Result<relay::Module> import_backend_case(const BackendCase& test, const BackendCase::DataSet& data,
                                          std::vector<std::string>* constants, bool all_constant = false);

}  // namespace tilewright::onnx
