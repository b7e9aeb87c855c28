// SPDX-License-Identifier: Apache-2.0
// numpy's .npy and .npz files. Format: numpy.lib.format, versions 1 to 3; an .npz is a zip archive of .npy files.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"

namespace tilewright::inputs {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// Errors: MalformedModel (damaged), UnsupportedModel (object arrays, or element types without a dtype here).
Result<Tensor> read_npy(std::span<const std::byte> bytes);
// bfloat16 and float8 have no numpy dtype and are written as raw uint16 and uint8. Errors: UnsupportedModel.
Result<std::string> write_npy(const Tensor& tensor);
Result<NamedTensors> read_npz(std::span<const std::byte> bytes);
Result<std::string> write_npz(const NamedTensors& tensors);

}  // namespace tilewright::inputs
