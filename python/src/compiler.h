// SPDX-License-Identifier: Apache-2.0
// Conversion between the compiler's tensors and numpy arrays.
#pragma once
#include "base/tensor.h"
#include "bind.h"

namespace tilewright::python {

nb::object numpy_of(const Tensor& tensor);
// Raises TypeError for dtypes that model constants cannot have.
DataType dtype_of(const ReadArray& array);
// Copies an array. Raises TypeError for dtypes that model constants cannot have.
Tensor tensor_of(const ReadArray& array);

}  // namespace tilewright::python
