// SPDX-License-Identifier: Apache-2.0
// The classic record of a tensor: u64 magic number, u64 0, device, rank, dtype, shape, size in bytes, data. Used in
// parameter files, graph JSON and bytecode.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/dtype.h"

namespace tilewright {

struct TensorRecord {
  DataType dtype;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;  // view of the reader's bytes, any alignment
};

// `name` and `where` (the kind of file) are for messages. Error: BadArtifact.
Result<TensorRecord> read_tensor_record(ByteReader& in, const std::string& name, const std::string& where);
void write_tensor_record(ByteWriter& out, const TensorRecord& tensor);

}  // namespace tilewright
