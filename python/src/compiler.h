// SPDX-License-Identifier: Apache-2.0
// Tensors of the compiler as numpy arrays and back.
#pragma once
#include "base/tensor.h"
#include "bind.h"

namespace tilewright::python {

nb::object numpy_of(const Tensor& tensor);
// Raises TypeError for a dtype that models have no constants of.
DataType dtype_of(const ReadArray& array);
// A copy. Raises TypeError for a dtype that models have no constants of.
Tensor tensor_of(const ReadArray& array);

}  // namespace tilewright::python
