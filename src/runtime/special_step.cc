// SPDX-License-Identifier: Apache-2.0
#include "runtime/special_step.h"

#include <cstring>

#include "base/format.h"
#include "runtime/dltensor.h"

namespace tilewright::runtime {

SpecialStep::SpecialStep(const plan::Plan& plan, const plan::Step& step, size_t first_argument, FunctionRef function)
    : name_(plan::callee_of(plan, step)), first_argument_(first_argument), function_(std::move(function)) {
  if (step.kind == plan::StepKind::kCopy) {
    bytes_ = plan.buffers[step.buffers[0]].bytes;
    return;
  }
  for (uint32_t number : step.buffers) {
    const plan::Buffer& b = plan.buffers[number];
    tensors_.push_back({nullptr,
                        {static_cast<DLDeviceType>(plan.devices[b.device]), 0},
                        static_cast<int32_t>(b.shape.size()),
                        to_dlpack(b.dtype),
                        const_cast<int64_t*>(b.shape.data()),
                        nullptr,
                        0});
  }
  for (DLTensor& tensor : tensors_) {
    tw_value value{};
    value.kind = TW_TENSOR, value.as.tensor = &tensor;
    values_.push_back(value);
  }
}

Status SpecialStep::run(void* const* arguments) {
  arguments += first_argument_;
  if (!function_) {
    if (bytes_ > 0) std::memmove(arguments[1], arguments[0], bytes_);
    return Ok{};
  }
  for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i].data = arguments[i];
  auto result = call(function_.get(), values_);
  if (result.ok()) return Ok{};
  Diagnostic error = std::move(result).error();
  error.where = error.where.empty() ? format("external function '{}'", name_)
                                    : format("external function '{}', {}", name_, error.where);
  return error;
}

}  // namespace tilewright::runtime
