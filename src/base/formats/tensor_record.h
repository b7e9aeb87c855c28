// SPDX-License-Identifier: Apache-2.0
// The classic stack's record of one tensor: u64 mark, u64 0, device, rank, dtype, shape, size in bytes, bytes.
// Parameter files, graph JSON and bytecode hold it.
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
  std::span<const std::byte> data;  // into the reader's bytes, any alignment
};

// `name` is for messages; `where` the kind of file. Error: BadArtifact.
Result<TensorRecord> read_tensor_record(ByteReader& in, const std::string& name, const std::string& where);
void write_tensor_record(ByteWriter& out, const TensorRecord& tensor);

}  // namespace tilewright
