// SPDX-License-Identifier: Apache-2.0
// The classic .params layout: u64 magic number, u64 0, names, then one tensor record per name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"

namespace tilewright::runtime {

inline constexpr uint64_t kParamsMark = 0xF7E58D4F05049CB7;  // the first eight bytes of a file

struct NamedTensor {
  std::string name;
  DataType dtype;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;  // view of the file's bytes, any alignment
};

// Errors: BadArtifact (damaged or not such a file).
Result<std::vector<NamedTensor>> read_params_file(std::span<const std::byte> bytes);
std::string write_params_file(std::span<const NamedTensor> tensors);

}  // namespace tilewright::runtime
