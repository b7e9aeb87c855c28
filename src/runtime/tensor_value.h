// SPDX-License-Identifier: Apache-2.0
// Tensors as function results: views that keep their owner alive.
#pragma once
#include <memory>
#include <vector>

#include "base/formats/plan.h"
#include "runtime/function.h"

namespace tilewright::runtime {

// A view of `data`, kept valid by `owner`.
Value view_value(const plan::TensorInfo& info, void* data, std::shared_ptr<const void> owner);
// A compact copy.
Value copy_value(const plan::TensorInfo& info, const void* data);
// What describes tensors: [[name, [sizes], dtype], ...]
Value tensor_list(const std::vector<plan::TensorInfo>& tensors);

}  // namespace tilewright::runtime
