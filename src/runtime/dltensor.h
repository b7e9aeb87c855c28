// SPDX-License-Identifier: Apache-2.0
// DLPack tensors from callers: checked, described, copied.
#pragma once
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/formats/plan.h"
#include "base/result.h"
#include "tilewright/dlpack.h"

namespace tilewright::runtime {

DLDataType to_dlpack(DataType dtype);
Result<DataType> from_dlpack(DLDataType dtype);  // Error: DtypeMismatch
// "float32 1x3x224x224", for any DLTensor, valid or not.
std::string describe(const DLTensor& tensor);
std::string describe(const plan::TensorInfo& info);
uint64_t byte_size(const plan::TensorInfo& info);

// Checks that the tensor is in host memory and has the dtype and shape of `info`. `role` names it in errors: "input
// 'x'". Errors: InvalidArgument, ShapeMismatch, DtypeMismatch.
Status check_tensor(const DLTensor* tensor, const plan::TensorInfo& info, const std::string& role);
bool is_compact(const DLTensor& tensor);
inline void* data_of(const DLTensor& tensor) { return static_cast<char*>(tensor.data) + tensor.byte_offset; }
// Copies a checked tensor (any strides) to compact memory, or the reverse. Errors: InvalidArgument (strides over
// elements smaller than a byte).
Status copy_from(const DLTensor& tensor, DataType dtype, void* compact);
Status copy_to(const DLTensor& tensor, DataType dtype, const void* compact);

}  // namespace tilewright::runtime
